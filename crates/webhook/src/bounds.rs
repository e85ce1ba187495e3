//! The bounds of a spec: how long a text, a list and a map may be, and of which type a value is.
//!
//! An API server sends no review of an object that its schema refuses. Whoever else sends one is
//! answered before an expression runs over it: the cost of the rules is bounded only for objects
//! within these bounds.

use fivespot_api::{Resource, crd};
use kubemu_admission::schema::Structural;
use kubemu_admission::{ErrorKind, FieldError, KubeVersion};
use serde_json::{Value, json};

/// The bounds of the spec of one kind.
#[derive(Debug)]
pub(crate) struct Bounds(Structural);

impl Bounds {
    /// The bounds in the schema of the kind.
    ///
    /// # Errors
    /// The schema is not structural, which is not known to happen.
    pub(crate) fn of(resource: &Resource) -> Result<Self, Vec<FieldError>> {
        let mut crd = crd::without_rules(resource);
        let spec =
            crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
        let mut spec = spec.map(Value::take).unwrap_or_default();
        for provider in ["bootstrapSpec", "infrastructureSpec"] {
            let content = format!("/properties/{provider}/properties/spec");
            if let Some(Value::Object(schema)) = spec.pointer_mut(&content) {
                // A review has its hash instead.
                schema.remove("type");
            }
        }
        let root = json!({"type": "object", "properties": {"spec": spec}});
        Structural::compile(&root, KubeVersion::default()).map(Self)
    }

    /// The first excess of the object's spec, in the words of the schema. What else the schema
    /// refuses costs no rule anything.
    pub(crate) fn check(&self, object: &Value) -> Option<FieldError> {
        let mut errors = self.0.validate(object, None).errors.into_iter();
        errors.find(|error| {
            let kinds = [
                ErrorKind::TooLong,
                ErrorKind::TooMany,
                ErrorKind::TypeInvalid,
            ];
            kinds.contains(&error.kind)
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;

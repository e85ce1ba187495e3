//! The types of `Object.spec{replicas: 1}` and `JSONPatch{op: 'add'}`.

use super::Checker;
use crate::ast::{Expr, FieldEntry};
use crate::{ObjectType, Type};

/// The type of a whole object, and the first part of the names of its nested types.
pub(super) const OBJECT: &str = "Object";

const JSON_PATCH: &str = "JSONPatch";

/// Whether a type of this name has values that are written with braces, in an environment with
/// patches.
pub(crate) fn is_patch_type(name: &str) -> bool {
    let within = name.strip_prefix(OBJECT);
    name == JSON_PATCH || within.is_some_and(|it| it.is_empty() || it.starts_with('.'))
}

impl Checker<'_> {
    /// The type of this name, if its values are written with braces.
    pub(super) fn struct_type(&self, name: &str) -> Option<Type> {
        if !self.env.has_patches() || !is_patch_type(name) {
            return None;
        }
        if name == JSON_PATCH {
            let patch = ObjectType::new([
                ("op", Type::String),
                ("path", Type::String),
                ("from", Type::String),
                ("value", Type::Dyn),
            ]);
            return Some(Type::object(patch.named(JSON_PATCH)));
        }
        Some(Type::object(ObjectType::open(name)))
    }

    pub(super) fn structure(
        &mut self,
        expr: &Expr,
        name: &str,
        fields: &[FieldEntry],
    ) -> Type {
        let Some(ty) = self.struct_type(name) else {
            for field in fields {
                self.check(&field.value);
            }
            self.undeclared(expr, name);
            return Type::Error;
        };
        for field in fields {
            self.check(&field.value);
            self.struct_field(&ty, field);
        }
        ty
    }

    fn struct_field(&mut self, ty: &Type, field: &FieldEntry) {
        let given = self.unwrapped(&field.value, field.optional);
        let Type::Object(object) = ty else { return };
        let Some(wanted) = object.field_type(&field.name) else {
            return self.report(field.at, format!("undefined field '{}'", field.name));
        };
        if self.substitutions.assignable(&given, wanted) {
            return;
        }
        let given = self.substitutions.apply(&given);
        self.report(
            field.at,
            format!(
                "expected type of field '{}' is '{wanted}' but provided type is '{given}'",
                field.name
            ),
        );
    }
}

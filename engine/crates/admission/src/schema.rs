//! Structural schemas: the fields that an object may have, their defaults, and the validation
//! of their values.

mod check;
mod embedded;
pub(crate) mod entries;
mod fill;
mod list_type;
mod metadata;
pub(crate) mod node;
mod number;
mod prune;
mod quick;
mod reader;
mod structure;
mod unknown_fields;
mod validation_error;

use serde_json::Value;

use crate::field::Path;
use crate::{FieldError, KubeVersion, format};
use check::Checker;
use node::Node;
use reader::Reader;

/// A compiled `openAPIV3Schema`.
///
/// ```
/// use kubemu_admission::{KubeVersion, schema::Structural};
/// use serde_json::json;
///
/// let schema = Structural::compile(
///     &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
///         "replicas": {"type": "integer", "minimum": 0, "default": 1},
///     }}}}),
///     KubeVersion::default(),
/// )
/// .expect("the schema is structural");
///
/// let mut object = json!({"spec": {"replicas": -1, "color": "red"}});
/// assert_eq!(schema.prune(&mut object), ["spec.color"]);
/// let result = schema.validate(&object, None);
/// assert_eq!(
///     result.errors[0].to_string(),
///     "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or \
///      equal to 0"
/// );
///
/// let mut object = json!({"spec": {}});
/// schema.default(&mut object);
/// assert_eq!(object, json!({"spec": {"replicas": 1}}));
/// ```
#[derive(Clone, Debug)]
pub struct Structural {
    root: Node,
    version: KubeVersion,
}

/// The result of a validation.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ValidationResult {
    /// Why the object is rejected; empty if it is accepted.
    pub errors: Vec<FieldError>,
    /// Errors that are ignored because they existed before the update; sent to the client as
    /// `Warning` headers.
    pub warnings: Vec<String>,
    /// The cost of the validation rules, in the units of Kubernetes' cost tracker; 0 if none
    /// ran.
    pub cost: u64,
}

impl Structural {
    /// Compiles a schema as the API server of `version` does.
    ///
    /// # Errors
    /// All errors of a schema that is not structural, with paths that start at
    /// `openAPIV3Schema`, sorted by text as in Kubernetes.
    pub fn compile(
        schema: &Value,
        version: KubeVersion,
    ) -> Result<Self, Vec<FieldError>> {
        let path = Path::Root;
        let path = path.field("openAPIV3Schema");
        let structural = Self::read(schema, &path, version)?;
        let errors = structural.structure_errors(&path);
        if errors.is_empty() {
            Ok(structural.with_checked_formats())
        } else {
            Err(errors)
        }
    }

    /// Reads a schema that may not be structural yet, with every format: a default is also
    /// validated with the formats that are ignored later.
    pub(crate) fn read(
        schema: &Value,
        path: &Path<'_>,
        version: KubeVersion,
    ) -> Result<Self, Vec<FieldError>> {
        let mut reader = Reader::new();
        let root = reader.node(schema, path);
        if !reader.errors.is_empty() {
            return Err(reader.errors);
        }
        Ok(Self { root, version })
    }

    /// The same schema without the formats that the version does not validate in objects.
    pub(crate) fn with_checked_formats(mut self) -> Self {
        strip_formats(&mut self.root, self.version);
        self
    }

    /// A schema without fields.
    pub(crate) fn empty(version: KubeVersion) -> Self {
        Self {
            root: Node::default(),
            version,
        }
    }

    pub(crate) fn structure_errors(&self, path: &Path<'_>) -> Vec<FieldError> {
        structure::check(&self.root, path)
    }

    pub(crate) const fn root(&self) -> &Node {
        &self.root
    }

    /// Removes the fields that are not in the schema and returns their paths, sorted: `spec.x`,
    /// `spec.list[0].y`. `apiVersion`, `kind` and `metadata` of the root are kept. Of paths that
    /// have more than 8 MiB together, only the first fields of the object are returned.
    ///
    /// The metadata of embedded resources is rewritten as the API server writes it: without
    /// unknown fields and without empty fields. Pruning is idempotent.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = prune::resource(&self.root, object);
        metadata::rewrite(&self.root, object, &Path::Root, &mut unknown);
        unknown.into_sorted()
    }

    /// Removes nulls that are not allowed if the field may be absent, then fills in defaults,
    /// also in place of nulls that are not allowed.
    pub fn default(&self, object: &mut Value) {
        fill::drop_nulls(&self.root, object);
        fill::fill(&self.root, object);
    }

    /// Fills in defaults, also in place of nulls that are not allowed. Other nulls are kept.
    pub(crate) fn fill(&self, object: &mut Value) {
        fill::fill(&self.root, object);
    }

    /// Validates an object: types and bounds, embedded resources, uniqueness in lists. Neither
    /// the object's own `metadata` nor validation rules are checked.
    ///
    /// With `old`, the object's previous state, errors of unchanged values are ignored
    /// (ratcheting, from 1.30 on).
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> ValidationResult {
        let mut errors = self.check_values(object, old);
        errors.extend(self.check_lists(object, old));
        ValidationResult {
            errors,
            ..ValidationResult::default()
        }
    }

    /// Validates types, bounds, patterns and formats.
    pub(crate) fn check_values(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        Checker::new(self.version).errors(&self.root, object, old, "")
    }

    /// Validates types, bounds, patterns and formats of the status alone.
    pub(crate) fn check_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        match (self.root.properties.get("status"), object.get("status")) {
            (Some(node), Some(status)) => Checker::new(self.version).errors(
                node,
                status,
                old.get("status"),
                "status",
            ),
            _ => Vec::new(),
        }
    }

    /// The errors of a default: unknown fields, and the errors of any value. The default of a
    /// whole resource (`is_root`) must have `apiVersion` and `kind`. Also returns whether the
    /// rules may run; unknown fields do not prevent them.
    pub(crate) fn check_default(
        node: &Node,
        value: &Value,
        path: &Path<'_>,
        (is_root, version): (bool, KubeVersion),
    ) -> (Vec<FieldError>, bool) {
        let mut errors = Vec::new();
        let mut pruned = value.clone();
        if is_root {
            prune::resource(node, &mut pruned);
        } else {
            prune::plain(node, &mut pruned);
        }
        if pruned != *value {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(*path, value.clone(), detail));
        }
        let mut wrong = Vec::new();
        if is_root {
            embedded::check_resource(node, value, path, &mut wrong);
        } else {
            embedded::check(node, value, path, &mut wrong);
        }
        if wrong.is_empty() {
            wrong = Self::check_default_value(node, value, path, version);
        }
        let usable = wrong.is_empty();
        errors.extend(wrong);
        (errors, usable)
    }

    /// The errors of a default inside an embedded resource's `apiVersion`, `kind` or
    /// `metadata`. `resource` is that resource with only the default in it, and `root` is its
    /// schema. Unknown fields are not checked.
    pub(crate) fn check_metadata_default(
        node: &Node,
        value: &Value,
        path: &Path<'_>,
        (root, resource, version): (&Node, &Value, KubeVersion),
    ) -> Vec<FieldError> {
        let mut wrong = Vec::new();
        embedded::check_resource(root, resource, &Path::Root, &mut wrong);
        if wrong.is_empty() {
            return Self::check_default_value(node, value, path, version);
        }
        let mut texts: Vec<String> = Vec::new();
        for text in wrong.iter().map(ToString::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = match texts.as_slice() {
            [only] => only.clone(),
            texts => format!("[{}]", texts.join(", ")),
        };
        let detail = format!("must result in valid metadata: {all}");
        vec![FieldError::invalid(*path, value.clone(), detail)]
    }

    fn check_default_value(
        node: &Node,
        value: &Value,
        path: &Path<'_>,
        version: KubeVersion,
    ) -> Vec<FieldError> {
        let prefix = path.to_string();
        Checker::of_default(version).errors(node, value, None, &prefix)
    }

    /// Validates embedded resources, and uniqueness in lists unless the old object violates it.
    pub(crate) fn check_lists(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        embedded::check(&self.root, object, &Path::Root, &mut errors);
        errors.extend(self.check_unique(object, old));
        errors
    }

    /// Validates uniqueness in lists, unless the old object violates it.
    pub(crate) fn check_unique(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        list_type::check(&self.root, object, &Path::Root, &mut errors);
        let mut before = Vec::new();
        if let (Some(old), false) = (old, errors.is_empty()) {
            list_type::check(&self.root, old, &Path::Root, &mut before);
        }
        if before.is_empty() {
            errors
        } else {
            Vec::new()
        }
    }
}

/// Whether the version ignores errors of unchanged values by default (ratcheting).
pub(crate) const fn ratchets(version: KubeVersion) -> bool {
    version.is_at_least(30)
}

/// Removes the formats that the version does not validate.
fn strip_formats(node: &mut Node, version: KubeVersion) {
    let checks = &mut node.checks;
    if !format::is_checked(&node.kind, node.int_or_string, &checks.format, version) {
        checks.format.clear();
    }
    let branches = [&mut checks.all_of, &mut checks.any_of, &mut checks.one_of];
    for branch in branches.into_iter().flatten() {
        strip_formats(branch, version);
    }
    for child in node.properties.values_mut() {
        strip_formats(child, version);
    }
    if let Some(items) = &mut node.items {
        strip_formats(items, version);
    }
    if let node::Additional::Each(each) = &mut node.additional {
        strip_formats(each, version);
    }
    if let Some(not) = &mut node.checks.not {
        strip_formats(not, version);
    }
}

//! A place in a schema: what patches, apply and validation ask about a field.

use serde_json::Value;

use super::definitions;
use crate::resource::Resource;

/// A place in an OpenAPI schema, with references to built-in definitions followed.
///
/// Places that no schema describes are [`Shape::UNKNOWN`]; everything is allowed there,
/// lists are atomic and objects are granular.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// The schema at the place itself, which may carry extensions beside a reference.
    outer: Option<&'a Value>,
    /// The schema referred to, or the same.
    inner: Option<&'a Value>,
    /// Whether this is the root of a custom object, whose metadata has no schema of its own.
    custom_root: bool,
}

/// How a list is merged by server-side apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    /// Owned as a whole.
    Atomic,
    /// Distinct scalars.
    Set,
    /// Objects distinguished by the named fields.
    Map(Vec<String>),
}

impl<'a> Shape<'a> {
    /// A place without schema.
    pub(crate) const UNKNOWN: Shape<'static> = Shape {
        outer: None,
        inner: None,
        custom_root: false,
    };

    /// The root of the objects of `resource`.
    pub(crate) fn of(resource: &'a Resource) -> Self {
        let mut shape = Self::new(resource.schema.as_deref());
        shape.custom_root = resource.custom;
        shape
    }

    /// The root of the objects of a built-in kind; [`Shape::UNKNOWN`] for one without schema.
    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Shape<'static> {
        Shape::new(definitions::kind(group, version, kind))
    }

    /// The metadata of every object.
    pub(crate) fn metadata() -> Shape<'static> {
        Shape::new(definitions::find(definitions::OBJECT_META))
    }

    pub(super) fn new(outer: Option<&'a Value>) -> Self {
        let inner = outer.map(follow);
        Self {
            outer,
            inner,
            custom_root: false,
        }
    }

    /// The place of a field of an object.
    pub(crate) fn field(&self, name: &str) -> Shape<'a> {
        if self.custom_root {
            match name {
                "metadata" => return Self::metadata(),
                "apiVersion" | "kind" => return Shape::UNKNOWN,
                _ => {}
            }
        }
        let declared = self.inner.and_then(|it| it.get("properties")?.get(name));
        if declared.is_some() {
            return Self::new(declared);
        }
        self.values()
    }

    /// Whether the schema names that field, as against a key of a map.
    pub(crate) fn declares(&self, name: &str) -> bool {
        let own = self.custom_root && matches!(name, "metadata" | "apiVersion" | "kind");
        own || self
            .inner
            .and_then(|it| it.get("properties")?.get(name))
            .is_some()
    }

    /// Whether it is a struct that has no fields.
    pub(crate) fn has_no_fields(&self) -> bool {
        self.name() == Some("CustomResourceSubresourceStatus")
    }

    /// Whether the object may have a field of that name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        let Some(inner) = self.inner else {
            return true;
        };
        if self.custom_root && matches!(name, "metadata" | "apiVersion" | "kind") {
            return true;
        }
        if self.extension("x-kubernetes-preserve-unknown-fields")
            == Some(&Value::Bool(true))
        {
            return true;
        }
        match inner.get("additionalProperties") {
            Some(Value::Bool(false)) | None => {}
            Some(_) => return true,
        }
        match inner.get("properties") {
            Some(properties) => properties.get(name).is_some(),
            None => !self.has_no_fields(),
        }
    }

    /// The place of the entries of a list.
    pub(crate) fn items(&self) -> Shape<'a> {
        Self::new(self.inner.and_then(|it| it.get("items")))
    }

    /// The name of the built-in definition here, such as `PodSpec`.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.definition()?.rsplit('.').next()
    }

    /// The whole name of the built-in definition here, such as `io.k8s.api.core.v1.PodSpec`.
    pub(crate) fn definition(&self) -> Option<&'a str> {
        reference(self.outer?)
    }

    /// Whether the fields of the object here are named by no schema, as in a map.
    pub(crate) fn is_map(&self) -> bool {
        self.inner
            .is_some_and(|it| it.get("additionalProperties").is_some())
    }

    /// The place of the values of a map.
    pub(crate) fn values(&self) -> Shape<'a> {
        match self.inner.and_then(|it| it.get("additionalProperties")) {
            Some(schema @ Value::Object(_)) => Self::new(Some(schema)),
            _ => Shape::UNKNOWN,
        }
    }

    /// The declared type, such as `object`; `None` where none is declared.
    pub(crate) fn kind(&self) -> Option<&'a str> {
        self.inner?.get("type")?.as_str()
    }

    /// The declared format.
    pub(crate) fn format(&self) -> Option<&'a str> {
        self.inner?.get("format")?.as_str()
    }

    /// Whether any schema describes this place.
    pub(crate) fn is_known(&self) -> bool {
        self.inner.is_some()
    }

    /// How server-side apply merges the list here.
    pub(crate) fn list_type(&self) -> ListType {
        match self.text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(self.list_map_keys()),
            _ => ListType::Atomic,
        }
    }

    /// The value that stands in for an absent key of a list entry.
    pub(crate) fn default(&self) -> Option<&'a Value> {
        self.extension("default")
    }

    /// Whether server-side apply owns the object here as a whole.
    pub(crate) fn is_atomic_map(&self) -> bool {
        self.text("x-kubernetes-map-type") == Some("atomic")
    }

    /// Whether strategic merge has `strategy` (`merge`, `replace`, `retainKeys`) here.
    pub(crate) fn has_patch_strategy(&self, strategy: &str) -> bool {
        self.text("x-kubernetes-patch-strategy")
            .is_some_and(|it| it.split(',').any(|it| it == strategy))
    }

    /// The field by which strategic merge distinguishes the entries of the list here.
    pub(crate) fn patch_merge_key(&self) -> Option<&'a str> {
        self.text("x-kubernetes-patch-merge-key")
    }

    fn list_map_keys(&self) -> Vec<String> {
        let keys = self.extension("x-kubernetes-list-map-keys");
        let keys = keys.and_then(Value::as_array).map(Vec::as_slice);
        keys.unwrap_or_default()
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.extension(name)?.as_str()
    }

    fn extension(&self, name: &str) -> Option<&'a Value> {
        self.outer
            .and_then(|it| it.get(name))
            .or_else(|| self.inner.and_then(|it| it.get(name)))
    }
}

/// Follows `$ref`, bare or as the single entry of `allOf`.
fn follow(schema: &Value) -> &Value {
    reference(schema)
        .and_then(definitions::find)
        .unwrap_or(schema)
}

/// The name of the definition that a schema consists of.
fn reference(schema: &Value) -> Option<&str> {
    let target = schema.get("$ref").or_else(|| {
        match schema.get("allOf")?.as_array()?.as_slice() {
            [only] => only.get("$ref"),
            _ => None,
        }
    });
    target?.as_str()?.strip_prefix(definitions::PREFIX)
}

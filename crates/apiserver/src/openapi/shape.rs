//! A place in a schema: what patches, apply and validation ask about a field.

use serde_json::Value;

use super::definitions;
use super::schema::{Node, Schema, Values};
use crate::resource::Resource;

/// A place in an OpenAPI schema, with references to built-in definitions followed.
///
/// Places that no schema describes are [`Shape::UNKNOWN`]; everything is allowed there,
/// lists are atomic and objects are granular.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// The schema at the place itself, which may carry extensions beside a reference.
    outer: Option<&'a Node>,
    /// The schema referred to, or the same.
    inner: Option<&'a Node>,
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
        let schema = resource.schema.as_ref();
        let mut shape = Self::new(schema.map(Schema::root));
        shape.custom_root = resource.custom;
        shape
    }

    /// The root of the objects of a built-in kind; [`Shape::UNKNOWN`] for one without schema.
    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Shape<'static> {
        let name = definitions::name_of(group, version, kind);
        Shape::new(name.and_then(definitions::place))
    }

    /// The metadata of every object.
    pub(crate) fn metadata() -> Shape<'static> {
        Shape::new(definitions::place(definitions::OBJECT_META))
    }

    /// The body of a DELETE.
    pub(super) fn delete_options() -> Shape<'static> {
        Shape::new(definitions::place(definitions::DELETE_OPTIONS))
    }

    fn new(outer: Option<&'a Node>) -> Self {
        Self {
            outer,
            inner: outer.map(Node::target),
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
        match self.declared(name) {
            None => self.values(),
            declared => Self::new(declared),
        }
    }

    fn declared(&self, name: &str) -> Option<&'a Node> {
        self.inner?.properties.as_ref()?.get(name)
    }

    /// Whether the schema names that field, as against a key of a map.
    pub(crate) fn declares(&self, name: &str) -> bool {
        let own = self.custom_root && matches!(name, "metadata" | "apiVersion" | "kind");
        own || self.declared(name).is_some()
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
        if self.keyword(|it| it.preserves_unknown) == Some(true) {
            return true;
        }
        match inner.values {
            Values::Refused | Values::Undeclared => {}
            Values::Any | Values::Schema(_) => return true,
        }
        match &inner.properties {
            Some(properties) => properties.get(name).is_some(),
            None => !self.has_no_fields(),
        }
    }

    /// The place of the entries of a list.
    pub(crate) fn items(&self) -> Shape<'a> {
        Self::new(self.inner.and_then(|it| it.items.as_deref()))
    }

    /// The name of the built-in definition here, such as `PodSpec`.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.definition()?.rsplit('.').next()
    }

    /// The whole name of the built-in definition here, such as `io.k8s.api.core.v1.PodSpec`.
    pub(crate) fn definition(&self) -> Option<&'a str> {
        self.outer?.definition.as_deref()
    }

    /// Whether the fields of the object here are named by no schema, as in a map.
    pub(crate) fn is_map(&self) -> bool {
        self.inner
            .is_some_and(|it| !matches!(it.values, Values::Undeclared))
    }

    /// The place of the values of a map.
    pub(crate) fn values(&self) -> Shape<'a> {
        match self.inner.map(|it| &it.values) {
            Some(Values::Schema(node)) => Self::new(Some(node)),
            _ => Shape::UNKNOWN,
        }
    }

    /// The declared type, such as `object`; `None` where none is declared.
    pub(crate) fn kind(&self) -> Option<&'a str> {
        self.inner?.kind.as_deref()
    }

    /// The declared format.
    pub(crate) fn format(&self) -> Option<&'a str> {
        self.inner?.format.as_deref()
    }

    /// Whether any schema describes this place.
    pub(crate) fn is_known(&self) -> bool {
        self.inner.is_some()
    }

    /// How server-side apply merges the list here.
    pub(crate) fn list_type(&self) -> &'a ListType {
        self.keyword(|it| it.list_type.as_ref())
            .unwrap_or(&ListType::Atomic)
    }

    /// The value that stands in for an absent key of a list entry.
    pub(crate) fn default(&self) -> Option<&'a Value> {
        self.keyword(|it| it.default.as_ref())
    }

    /// Whether server-side apply owns the object here as a whole.
    pub(crate) fn is_atomic_map(&self) -> bool {
        self.keyword(|it| it.is_atomic_map) == Some(true)
    }

    /// Whether strategic merge has `strategy` (`merge`, `replace`, `retainKeys`) here.
    pub(crate) fn has_patch_strategy(&self, strategy: &str) -> bool {
        self.keyword(|it| it.patch_strategy.as_deref())
            .is_some_and(|it| it.split(',').any(|it| it == strategy))
    }

    /// The field by which strategic merge distinguishes the entries of the list here.
    pub(crate) fn patch_merge_key(&self) -> Option<&'a str> {
        self.keyword(|it| it.patch_merge_key.as_deref())
    }

    /// A keyword of the place itself, or else of the one that it refers to.
    fn keyword<T>(&self, read: impl Fn(&'a Node) -> Option<T>) -> Option<T> {
        self.outer
            .and_then(&read)
            .or_else(|| self.inner.and_then(&read))
    }
}

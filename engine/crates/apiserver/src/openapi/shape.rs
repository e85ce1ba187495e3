//! A node of a schema, with the lookups that patches, apply and validation need.

use serde_json::Value;

use super::definitions;
use super::schema::{ListType, Node, Schema, Values};
use crate::resource::Resource;

/// A node of an OpenAPI schema, with references to built-in definitions resolved.
///
/// Fields without a schema have the shape [`Shape::UNKNOWN`]: everything is allowed, lists are
/// atomic and objects are granular.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// The schema of the node itself, which may have extensions next to a reference.
    outer: Option<&'a Node>,
    /// The schema that it refers to, or the same schema.
    inner: Option<&'a Node>,
    /// Whether this is the root of a custom object, whose metadata has no schema of its own.
    custom_root: bool,
}

impl<'a> Shape<'a> {
    /// The shape of a field without a schema.
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
        Shape::new(name.and_then(definitions::reference_node))
    }

    /// The objects of the built-in definition of that name, such as `io.k8s.api.core.v1.PodSpec`.
    pub(crate) fn defined(name: &str) -> Shape<'static> {
        Shape::new(definitions::reference_node(name))
    }

    /// The metadata of every object.
    pub(crate) fn metadata() -> Shape<'static> {
        Shape::new(definitions::reference_node(definitions::OBJECT_META))
    }

    /// The body of a DELETE.
    pub(super) fn delete_options() -> Shape<'static> {
        Shape::new(definitions::reference_node(definitions::DELETE_OPTIONS))
    }

    fn new(outer: Option<&'a Node>) -> Self {
        Self {
            outer,
            inner: outer.map(Node::target),
            custom_root: false,
        }
    }

    /// The shape of a field of an object.
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

    /// Whether the schema declares that field, in contrast to a key of a map.
    pub(crate) fn declares(&self, name: &str) -> bool {
        let own = self.custom_root && matches!(name, "metadata" | "apiVersion" | "kind");
        own || self.declared(name).is_some()
    }

    /// Whether it is a struct without fields.
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

    /// The shape of the entries of a list.
    pub(crate) fn items(&self) -> Shape<'a> {
        Self::new(self.inner.and_then(|it| it.items.as_deref()))
    }

    /// The shapes of which a value has one, such as a schema or a boolean; `None` for most.
    pub(crate) fn alternatives(
        &self,
    ) -> Option<impl Iterator<Item = Shape<'a>> + use<'a>> {
        let all = self.inner?.alternatives.as_ref()?;
        Some(all.iter().map(|it| Self::new(Some(it))))
    }

    /// The shape of an object whose field holds a schema of a definition or something else, such as
    /// a boolean.
    pub(crate) fn schema_alternative(&self) -> Option<Shape<'a>> {
        self.alternatives()?
            .find(|it| it.name() == Some("JSONSchemaProps"))
    }

    /// The short name of the built-in definition, such as `PodSpec`.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.definition()?.rsplit('.').next()
    }

    /// The full name of the built-in definition, such as `io.k8s.api.core.v1.PodSpec`.
    pub(crate) fn definition(&self) -> Option<&'a str> {
        self.outer?.definition.as_deref()
    }

    /// Whether the object is a map: the schema declares no fields.
    pub(crate) fn is_map(&self) -> bool {
        self.inner
            .is_some_and(|it| !matches!(it.values, Values::Undeclared))
    }

    /// The short name of a struct with no field in JSON, of which Go keeps the text: `RawExtension`.
    /// `None` for any other shape.
    pub(crate) fn opaque_struct(&self) -> Option<&'a str> {
        let inner = self.inner?;
        let is_opaque = inner.properties.is_none() && !self.is_map();
        self.name().filter(|_| is_opaque)
    }

    /// The shape of the values of a map.
    pub(crate) fn values(&self) -> Shape<'a> {
        match self.inner.map(|it| &it.values) {
            Some(Values::Schema(node)) => Self::new(Some(node)),
            _ => Shape::UNKNOWN,
        }
    }

    /// The declared type, such as `object`; `None` if no type is declared.
    pub(crate) fn kind(&self) -> Option<&'a str> {
        self.inner?.kind.as_deref()
    }

    /// The declared format.
    pub(crate) fn format(&self) -> Option<&'a str> {
        self.inner?.format.as_deref()
    }

    /// Whether a schema describes this field.
    pub(crate) fn is_known(&self) -> bool {
        self.inner.is_some()
    }

    /// How server-side apply merges the list.
    pub(crate) fn list_type(&self) -> &'a ListType {
        self.keyword(|it| it.list_type.as_ref())
            .unwrap_or(&ListType::Atomic)
    }

    /// The default of a field, used for an absent key of a list entry.
    pub(crate) fn default(&self) -> Option<&'a Value> {
        self.keyword(|it| it.default.as_ref())
    }

    /// Whether server-side apply treats the object as atomic.
    pub(crate) fn is_atomic_map(&self) -> bool {
        self.keyword(|it| it.is_atomic_map) == Some(true)
            || self.opaque_struct().is_some()
    }

    /// Whether the field has the strategic merge patch strategy `strategy` (`merge`,
    /// `replace`, `retainKeys`).
    pub(crate) fn has_patch_strategy(&self, strategy: &str) -> bool {
        self.keyword(|it| it.patch_strategy.as_deref())
            .is_some_and(|it| it.split(',').any(|it| it == strategy))
    }

    /// The merge key of the list for strategic merge patches.
    pub(crate) fn patch_merge_key(&self) -> Option<&'a str> {
        self.keyword(|it| it.patch_merge_key.as_deref())
    }

    /// A keyword of the node itself, or else of the schema that it refers to.
    fn keyword<T>(&self, read: impl Fn(&'a Node) -> Option<T>) -> Option<T> {
        self.outer
            .and_then(&read)
            .or_else(|| self.inner.and_then(&read))
    }
}

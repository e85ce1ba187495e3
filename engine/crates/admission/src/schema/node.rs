//! One node of a schema.

use std::sync::Arc;

use serde_json::Value;

use super::entries::Entries;

/// One node of a schema, which describes the values at its place.
///
/// The branches of `allOf`, `anyOf`, `oneOf` and `not` are nodes too; they may only constrain
/// fields that the structural part declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`; empty if not declared.
    pub(crate) kind: String,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) properties: Entries<Node>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) default: Option<Value>,
    /// `atomic`, `set`, `map`.
    pub(crate) list_type: Option<String>,
    pub(crate) list_keys: Vec<String>,
    /// `atomic`, `granular`.
    pub(crate) map_type: Option<String>,
    pub(crate) rules: Vec<Arc<RuleSource>>,
    pub(crate) checks: Checks,
    /// The rest of the JSON, needed only to reject it.
    pub(crate) extras: Extras,
    pub(crate) contents: NodeContents,
}

/// The contents of a node and its descendants, so that values without them can be skipped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeContents {
    /// Whether there are defaults; only below the node.
    pub(crate) defaults: bool,
    /// Whether there are embedded resources.
    pub(crate) embedded: bool,
    /// Whether there are lists of type `set` or `map`.
    pub(crate) unique: bool,
}

impl Node {
    /// The schema of a declared field.
    pub(crate) fn property(&self, name: &str) -> Option<&Node> {
        self.properties.get(name)
    }

    pub(super) fn sum_up(&mut self) {
        let is_unique = matches!(self.list_type.as_deref(), Some("set" | "map"));
        let mut contents = NodeContents {
            defaults: false,
            embedded: self.embedded,
            unique: is_unique,
        };
        let each = self.additional.schema().into_iter();
        for child in self
            .properties
            .values()
            .chain(each)
            .chain(self.items.as_deref())
        {
            contents.defaults |= child.default.is_some() || child.contents.defaults;
            contents.embedded |= child.contents.embedded;
            contents.unique |= child.contents.unique;
        }
        self.contents = contents;
    }
}

/// The additional fields that an object may have.
#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    /// Not set: none.
    #[default]
    Unset,
    /// `additionalProperties: true` or `false`.
    Allowed(bool),
    /// Fields of any name with values of this schema: a map.
    Each(Box<Node>),
}

impl Additional {
    pub(crate) fn schema(&self) -> Option<&Node> {
        match self {
            Self::Each(node) => Some(node),
            Self::Unset | Self::Allowed(_) => None,
        }
    }
}

/// The constraints on a value in addition to its type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    /// The format, if the version validates it; empty otherwise.
    pub(crate) format: String,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) allowed: Vec<Value>,
    pub(crate) required: Vec<String>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

/// A regular expression that strings must match, unanchored.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    /// The compiled pattern, or why it cannot be compiled.
    pub(crate) regex: Result<kubemu_gostd::regexp::Pattern, String>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleSource {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
}

/// Parts that are not used for validation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    pub(crate) description: bool,
    pub(crate) title: bool,
    pub(crate) has_properties: bool,
    /// Whether nothing is set except `type`, `properties` and `default`.
    pub(crate) is_plain: bool,
    /// The names of the unsupported keywords that are set.
    pub(crate) unsupported: Vec<&'static str>,
    /// Whether `x-kubernetes-preserve-unknown-fields: false` is set, which is not allowed.
    pub(crate) preserve_false: bool,
    pub(crate) items_is_list: bool,
}

//! Errors of strategic merge patches, with Kubernetes' messages.

use serde_json::{Map, Value};

use crate::openapi::shape::Shape;
use crate::patch::rejected;
use crate::status::{Reason, Status};

/// The reason why a strategic merge patch cannot be merged.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(in crate::patch) enum Error {
    /// A value is not a JSON object as required.
    #[error("invalid JSON document")]
    Document,
    /// A list in a list.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A malformed `$deleteFromPrimitiveList`.
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    /// A malformed `$retainKeys`, or one that omits a field that the patch sets.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// A malformed `$setElementOrder`.
    #[error("invalid patch format of setElementOrder list")]
    ElementOrder,
    /// The patch has the entries of a list in another order than its `$setElementOrder`.
    #[error(
        "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
    )]
    OrderMismatch {
        /// The entries.
        patch: String,
        /// The order in `$setElementOrder`.
        order: String,
    },
    /// An entry without its merge key.
    #[error("map: {entry} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The entry.
        entry: String,
        /// The merge key.
        key: String,
    },
    /// A list of objects without a merge key.
    #[error("cannot merge lists without merge key for {0}")]
    NoKeyDeclared(String),
    /// `$patch` with an unknown directive.
    #[error("unknown patch type: {word} in map: {entry}")]
    Directive {
        /// The directive.
        word: String,
        /// The entry that contains it.
        entry: String,
    },
    /// `$patch: merge` in a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirective,
    /// `$setElementOrder` for a list that is empty on both sides.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// An object or a list below a field whose Go type is a struct without fields of its own, such
    /// as `RawExtension`.
    #[error("unable to find api field in struct {of} for the json field {field:?}")]
    NoField {
        /// The Go type.
        of: String,
        /// The field.
        field: String,
    },
    /// A list of mixed entries.
    #[error("list element types are not identical: {0}")]
    MixedList(String),
}

impl Error {
    /// The error for a field to merge below `shape`, if Go has no field for it.
    pub(super) fn no_field(shape: Shape<'_>, field: &str) -> Option<Self> {
        Some(Self::NoField {
            of: shape.opaque_struct()?.to_owned(),
            field: field.to_owned(),
        })
    }

    pub(super) fn directive(word: &Value, mut entry: Map<String, Value>) -> Self {
        entry.insert(super::DIRECTIVE.to_owned(), word.clone());
        Self::Directive {
            word: go(word),
            entry: go(&Value::Object(entry)),
        }
    }

    pub(super) fn no_merge_key(entry: &Value, key: &str) -> Self {
        Self::NoMergeKey {
            entry: go(entry),
            key: key.to_owned(),
        }
    }

    /// The error response of the API server: 400 for malformed directives, 422 for lists of
    /// lists, 500 for the others.
    pub(in crate::patch) fn to_status(&self) -> Status {
        match self {
            Self::Document
            | Self::PrimitiveList
            | Self::RetainKeys
            | Self::ElementOrder => Status::bad_request(self.to_string()),
            Self::ListOfLists => rejected(),
            Self::OrderMismatch { .. }
            | Self::NoMergeKey { .. }
            | Self::NoKeyDeclared(_)
            | Self::Directive { .. }
            | Self::MergeDirective
            | Self::NoElements
            | Self::NoField { .. }
            | Self::MixedList(_) => Status::new(500, Reason::Unknown, self.to_string()),
        }
    }
}

/// A value as Go's `%v` prints it: `map[key:value]` with sorted keys, `[a b]`.
pub(super) fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", go(value)))
                .collect();
            fields.sort_unstable();
            format!("map[{}]", fields.join(" "))
        }
    }
}

//! The metadata of embedded resources as the API server stores it: decoded to its Go type and
//! encoded again, so that unknown and empty fields are removed.

use kubemu_cel::Timestamp;
use serde_json::{Map, Value};

use super::node::Node;
use super::unknown_fields::UnknownFields;
use crate::field::Path;

/// The type of a field.
enum Kind {
    Text,
    /// Text that is written even if empty.
    RequiredText,
    Integer,
    /// An optional integer or boolean, for which absent is not the same as zero.
    Pointer(fn(&Value) -> bool),
    Time,
    TextMap,
    TextList,
    /// Objects with these fields.
    List(&'static [(&'static str, Kind)]),
    /// Any value.
    Raw,
}

const OWNER: &[(&str, Kind)] = &[
    ("apiVersion", Kind::RequiredText),
    ("kind", Kind::RequiredText),
    ("name", Kind::RequiredText),
    ("uid", Kind::RequiredText),
    ("controller", Kind::Pointer(Value::is_boolean)),
    ("blockOwnerDeletion", Kind::Pointer(Value::is_boolean)),
];

const MANAGED: &[(&str, Kind)] = &[
    ("manager", Kind::Text),
    ("operation", Kind::Text),
    ("apiVersion", Kind::Text),
    ("time", Kind::Time),
    ("fieldsType", Kind::Text),
    ("fieldsV1", Kind::Raw),
    ("subresource", Kind::Text),
];

/// `ObjectMeta` of `meta/v1`.
const METADATA: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("generateName", Kind::Text),
    ("namespace", Kind::Text),
    ("selfLink", Kind::Text),
    ("uid", Kind::Text),
    ("resourceVersion", Kind::Text),
    ("generation", Kind::Integer),
    ("creationTimestamp", Kind::Time),
    ("deletionTimestamp", Kind::Time),
    ("deletionGracePeriodSeconds", Kind::Pointer(Value::is_i64)),
    ("labels", Kind::TextMap),
    ("annotations", Kind::TextMap),
    ("ownerReferences", Kind::List(OWNER)),
    ("finalizers", Kind::TextList),
    ("managedFields", Kind::List(MANAGED)),
];

/// Rewrites the metadata of every embedded resource in `value`, and adds the paths of unknown
/// fields. Metadata with a field of a wrong type is unchanged: it is rejected later.
pub(super) fn rewrite(
    node: &Node,
    value: &mut Value,
    path: &Path<'_>,
    unknown: &mut UnknownFields,
) {
    if !node.contents.embedded {
        return;
    }
    match value {
        Value::Object(fields) => {
            if node.embedded
                && let Some(metadata) = fields.get_mut("metadata")
            {
                let path = path.field("metadata");
                let before = unknown.len();
                if let Some(written) = object(metadata, METADATA, &path, unknown) {
                    *metadata = written;
                } else {
                    unknown.truncate(before);
                }
            }
            for (name, value) in fields {
                if let Some(property) = node.property(name) {
                    rewrite(property, value, &path.field(name), unknown);
                } else if let Some(each) = node.additional.schema() {
                    rewrite(each, value, &path.key(name), unknown);
                }
            }
        }
        Value::Array(items) => {
            let Some(each) = &node.items else {
                return;
            };
            for (at, item) in items.iter_mut().enumerate() {
                rewrite(each, item, &path.index(at), unknown);
            }
        }
        _ => {}
    }
}

/// The object as its Go type encodes it; `None` if a field has a wrong type.
fn object(
    value: &Value,
    kinds: &[(&str, Kind)],
    path: &Path<'_>,
    unknown: &mut UnknownFields,
) -> Option<Value> {
    let none = Map::new();
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => &none,
        _ => return None,
    };
    let mut written = Map::new();
    for (name, kind) in kinds {
        let value = fields.get(*name).unwrap_or(&Value::Null);
        if let Some(value) = field(value, kind, &path.field(name), unknown)? {
            written.insert((*name).to_owned(), value);
        }
    }
    for name in fields.keys() {
        if !kinds.iter().any(|(known, _)| known == name) {
            unknown.add(path.field(name));
        }
    }
    Some(Value::Object(written))
}

/// The encoded field, `Some(None)` if it is omitted; `None` if it has a wrong type.
#[expect(
    clippy::option_option,
    reason = "a wrong type differs from an omitted field"
)]
fn field(
    value: &Value,
    kind: &Kind,
    path: &Path<'_>,
    unknown: &mut UnknownFields,
) -> Option<Option<Value>> {
    Some(match (kind, value) {
        (Kind::RequiredText, Value::Null) => Some("".into()),
        (_, Value::Null) => None,
        (Kind::Text, Value::String(text)) if text.is_empty() => None,
        (Kind::Text | Kind::RequiredText, Value::String(_)) | (Kind::Raw, _) => {
            Some(value.clone())
        }
        (Kind::Integer, Value::Number(number)) => {
            number.as_i64().map(|it| (it != 0).then(|| it.into()))?
        }
        (Kind::Pointer(is_right), _) if is_right(value) => Some(value.clone()),
        (Kind::Time, Value::String(text)) => {
            let time = Timestamp::parse(text)?;
            let in_utc = Timestamp::from_seconds(time.seconds())?;
            Some(in_utc.to_string().into())
        }
        (Kind::TextMap, Value::Object(entries)) => {
            let written = entries
                .iter()
                .map(|(name, value)| Some((name.clone(), text_or_null(value)?)));
            let written = written.collect::<Option<Map<_, _>>>()?;
            (!written.is_empty()).then_some(Value::Object(written))
        }
        (Kind::TextList, Value::Array(items)) => {
            let written = items.iter().map(text_or_null).collect::<Option<Vec<_>>>()?;
            (!written.is_empty()).then_some(Value::Array(written))
        }
        (Kind::List(kinds), Value::Array(items)) => {
            let mut written = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                written.push(object(item, kinds, &path.index(at), unknown)?);
            }
            (!written.is_empty()).then_some(Value::Array(written))
        }
        _ => return None,
    })
}

/// Null represents empty text inside lists and maps.
fn text_or_null(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some("".into()),
        Value::String(_) => Some(value.clone()),
        _ => None,
    }
}

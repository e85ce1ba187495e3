//! One element of a path into an object.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

/// One path element. Sorted as Kubernetes writes them: fields, keys, values, indices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// A field of an object, or a key of a map.
    Field(Arc<str>),
    /// The list entry with these values in its key fields, sorted by field.
    Key(Arc<[(String, Scalar)]>),
    /// The entry of a set, by its value.
    Value(Scalar),
    /// The list entry at an index.
    Index(i64),
}

impl Element {
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The entry of a list whose entries are identified by `keys`.
    ///
    /// An absent key field counts with its default from `default_of`; without a default it is
    /// left out.
    ///
    /// # Errors
    /// Kubernetes' message for an entry that has none of the keys.
    pub(super) fn of_entry<'s>(
        entry: &Value,
        keys: &[String],
        default_of: impl Fn(&str) -> Option<&'s Value>,
    ) -> Result<Self, String> {
        let Some(fields) = entry.as_object() else {
            let what = if entry.is_null() {
                "a null element"
            } else {
                "non-map elements"
            };
            return Err(format!("associative list with keys may not have {what}"));
        };
        let mut found: Vec<_> = keys
            .iter()
            .filter_map(|key| {
                let value = fields.get(key).cloned();
                let value = value.or_else(|| default_of(key).cloned())?;
                Some((key.clone(), Scalar::new(value)))
            })
            .collect();
        if found.is_empty() {
            let keys: Vec<_> = keys.iter().map(|it| format!("{it:?}")).collect();
            let keys = keys.join(" ");
            return Err(format!(
                "associative list with keys has an element that omits all key fields \
                 [{keys}] (and doesn't have default values for any key fields)"
            ));
        }
        found.sort();
        Ok(Self::Key(found.into()))
    }

    /// The entry of a set.
    ///
    /// # Errors
    /// Kubernetes' message for an entry that is not a scalar.
    pub(super) fn of_scalar(entry: &Value) -> Result<Self, String> {
        let what = match entry {
            Value::Object(_) => {
                "associative list without keys has an element that's a map type"
            }
            Value::Array(_) => "not supported: associative list with lists as elements",
            Value::Null => {
                "associative list without keys has an element that's an explicit null"
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Ok(Self::Value(Scalar::new(entry.clone())));
            }
        };
        Err(what.to_owned())
    }

    /// Whether it equals only elements of the same text: 1 equals 1.0.
    pub(super) fn has_one_text(&self) -> bool {
        match self {
            Self::Field(_) | Self::Index(_) => true,
            Self::Key(fields) => fields.iter().all(|it| it.1.has_one_text()),
            Self::Value(value) => value.has_one_text(),
        }
    }

    /// The key of the path element in `fieldsV1`.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(fields) => {
                let fields: Map<_, _> = fields
                    .iter()
                    .map(|(key, value)| (key.clone(), Value::clone(&value.0)))
                    .collect();
                format!("k:{}", Value::Object(fields))
            }
            Self::Value(value) => format!("v:{}", value.0),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Parses a key of `fieldsV1`; `None` if it is malformed or of an unknown type.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let (sort, rest) = text.split_once(':')?;
        match sort {
            "f" => Some(Self::field(rest)),
            "k" => {
                let fields: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let mut fields: Vec<_> = fields
                    .into_iter()
                    .map(|(key, value)| (key, Scalar::new(value)))
                    .collect();
                fields.sort();
                Some(Self::Key(fields.into()))
            }
            "v" => serde_json::from_str(rest)
                .ok()
                .map(|it| Self::Value(Scalar::new(it))),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A JSON value with an order. Numbers are compared by value, so that 1 equals 1.0.
///
/// It is behind a pointer because sets of paths are trees of elements, most of which are fields: with
/// the value itself each node of a tree would be several times as large.
#[derive(Clone, Debug)]
pub(super) struct Scalar(Arc<Value>);

impl Scalar {
    fn new(value: Value) -> Self {
        Self(Arc::new(value))
    }

    fn has_one_text(&self) -> bool {
        !self.0.is_number() || self.0.is_i64()
    }

    fn rank(&self) -> u8 {
        match &*self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.0))
    }
}

/// A value in a path (`ToString` in sigs.k8s.io/structured-merge-diff/value).
fn text(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(text).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, it)| format!("{key}={}", text(it)));
            fields.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            value.to_string()
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&*self.0, &*other.0) {
            (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (a, b) if self.rank() == other.rank() => a.to_string().cmp(&b.to_string()),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    let value = |it: &Number| it.as_f64().unwrap_or_default();
    value(a).total_cmp(&value(b))
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scalar {}

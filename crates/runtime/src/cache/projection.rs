//! Reads no more of an object than is kept of it. The rest is skipped in the text, so that it
//! costs no memory and is not parsed again.

mod text;

use std::fmt;

use kube::api::ApiResource;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use super::store::Object;
use text::{Text, TextSeed};

/// How many levels of objects and lists are read of a value. An API server stores values that are
/// nested deeper than most parsers accept, and one object must not make a whole list unreadable.
const MAX_DEPTH: usize = 100;

/// Replaces a value that is nested deeper. No schema accepts it in the place of that value.
pub const TOO_DEEP: &str = "(nested more than 100 levels deep)";

/// How many bytes of labels, or of annotations, are kept of one object.
const MAX_LABEL_BYTES: usize = 64 << 10;

/// How much of a value is read.
#[derive(Debug)]
pub enum FieldMask {
    /// All of it.
    All,
    /// Of an object: these fields whole, and these as far as their masks allow.
    Only(
        &'static [&'static str],
        &'static [(&'static str, FieldMask)],
    ),
    /// Of an object: every field, these as far as their masks allow.
    AllBut(&'static [(&'static str, FieldMask)]),
    /// Of labels or annotations: those of these domains. A domain that begins with a dot matches
    /// its subdomains.
    Domains(&'static [&'static str]),
    /// Of a list of conditions: those of these types, without the time of the last heartbeat.
    Conditions(&'static [&'static str]),
    /// Its compact JSON text, as a string; null if that would have more bytes than this.
    Text(usize),
    /// Nothing: it is skipped.
    Nothing,
}

/// How the objects of one kind are read.
pub trait Projection: fmt::Debug + Send + Sync {
    /// How much is kept of an object.
    fn mask(&self) -> &'static FieldMask;

    /// Completes an object that was read live, [as it is kept](Self::mask).
    fn complete(&self, _object: &mut Value) {}

    /// Whether only the metadata of objects is requested from the server.
    fn is_metadata_only(&self) -> bool {
        false
    }
}

/// How a cache keeps the objects of one kind.
pub trait CacheProjection: Projection {
    /// The targets that an object may affect, such as keys to enqueue.
    type Target: Clone + Ord + fmt::Debug + Send + Sync;

    /// The cached form of an object of that kind, which was read [as it is
    /// kept](Projection::mask).
    fn cache(&self, object: Value, resource: &ApiResource) -> Object<Self::Target>;
}

/// Reads all of an object except its managed fields.
#[derive(Clone, Copy, Debug)]
pub struct WholeObject;

impl Projection for WholeObject {
    fn mask(&self) -> &'static FieldMask {
        &LEAN
    }
}

/// Requests only an object's metadata.
#[derive(Clone, Copy, Debug)]
pub struct MetadataOnly;

impl Projection for MetadataOnly {
    fn mask(&self) -> &'static FieldMask {
        &LEAN
    }

    fn is_metadata_only(&self) -> bool {
        true
    }
}

/// Everything except the managed fields: they are often half of an object, and nothing reads them
/// here.
pub static LEAN: FieldMask = FieldMask::AllBut(&[(
    "metadata",
    FieldMask::AllBut(&[("managedFields", FieldMask::Nothing)]),
)]);

impl FieldMask {
    /// Reads a JSON document.
    ///
    /// # Errors
    /// The text is not JSON, or an object of which a part is kept has a field twice.
    pub fn read(&'static self, text: &[u8]) -> serde_json::Result<Value> {
        let mut document = serde_json::Deserializer::from_slice(text);
        let value = self.deserialize(&mut document)?;
        document.end()?;
        Ok(value)
    }

    /// How much is kept of a field; `None` if it is left out.
    fn field(&'static self, name: &str) -> Option<&'static FieldMask> {
        let among = |fields: &'static [(&'static str, FieldMask)]| {
            let found = fields.iter().find(|(field, _)| *field == name);
            found.map(|(_, keep)| keep)
        };
        let found = match self {
            Self::Only(whole, parts) => {
                among(parts).or_else(|| whole.contains(&name).then_some(&Self::All))
            }
            Self::AllBut(parts) => Some(among(parts).unwrap_or(&Self::All)),
            Self::Domains(domains) => is_of_domain(name, domains).then_some(&Self::All),
            Self::All | Self::Conditions(_) | Self::Text(_) | Self::Nothing => {
                Some(&Self::All)
            }
        };
        found.filter(|keep| !matches!(keep, Self::Nothing))
    }
}

/// Whether the key of a label or an annotation is in one of the domains.
fn is_of_domain(key: &str, domains: &[&str]) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domains
        .iter()
        .any(|of| *of == domain || (of.starts_with('.') && domain.ends_with(of)))
}

impl<'de> DeserializeSeed<'de> for &'static FieldMask {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        match self {
            FieldMask::All => whole(deserializer),
            FieldMask::Only(..)
            | FieldMask::AllBut(_)
            | FieldMask::Domains(_)
            | FieldMask::Conditions(_) => deserializer.deserialize_any(PartVisitor(self)),
            FieldMask::Text(limit) => {
                let mut text = Text::with_limit(*limit);
                TextSeed(&mut text, MAX_DEPTH).deserialize(deserializer)?;
                Ok(text.value())
            }
            FieldMask::Nothing => {
                deserializer.deserialize_ignored_any(IgnoredAny)?;
                Ok(Value::Null)
            }
        }
    }
}

/// All of a value, or [`TOO_DEEP`] if it is nested too deep.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let mut is_whole = true;
    let nested = NestedSeed {
        levels: MAX_DEPTH,
        is_whole: &mut is_whole,
    };
    let value = nested.deserialize(deserializer)?;
    Ok(if is_whole { value } else { TOO_DEEP.into() })
}

/// What the visitors of JSON have in common: a scalar is returned as it is.
macro_rules! scalars_as_they_are {
    () => {
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("any JSON value")
        }

        fn visit_unit<E>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }

        fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_str<E>(self, value: &str) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_string<E>(self, value: String) -> Result<Value, E> {
            Ok(value.into())
        }
    };
}

/// A value of which a part is kept. A value of another type than expected is kept as it is, or as
/// an empty list: the reader of the object reports what is wrong with it.
struct PartVisitor(&'static FieldMask);

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Value;

    scalars_as_they_are!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let FieldMask::Conditions(types) = self.0 else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Array(Vec::new()));
        };
        let mut kept = Vec::new();
        while let Some(mut item) = items.next_element_seed(&FieldMask::All)? {
            let kind = item["type"].as_str().unwrap_or_default();
            if !types.contains(&kind) {
                continue;
            }
            if let Value::Object(condition) = &mut item {
                condition.shift_remove("lastHeartbeatTime");
            }
            kept.push(item);
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        let mut label_bytes = 0;
        while let Some(name) = map.next_key::<String>()? {
            let Some(keep) = self.0.field(&name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(keep)?;
            if matches!(self.0, FieldMask::Domains(_)) {
                label_bytes += name.len() + value.as_str().map_or(0, str::len);
                if label_bytes > MAX_LABEL_BYTES {
                    continue;
                }
            }
            if fields.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate field"));
            }
        }
        Ok(Value::Object(fields))
    }
}

/// A value that is read to at most so many more levels.
struct NestedSeed<'a> {
    levels: usize,
    /// Whether all of it has been read.
    is_whole: &'a mut bool,
}

impl NestedSeed<'_> {
    /// A value within this one.
    fn inner(&mut self) -> NestedSeed<'_> {
        NestedSeed {
            levels: self.levels - 1,
            is_whole: self.is_whole,
        }
    }
}

impl<'de> DeserializeSeed<'de> for NestedSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        if self.levels > 0 {
            return deserializer.deserialize_any(self);
        }
        *self.is_whole = false;
        deserializer.deserialize_ignored_any(IgnoredAny)?;
        Ok(Value::Null)
    }
}

impl<'de> Visitor<'de> for NestedSeed<'_> {
    type Value = Value;

    scalars_as_they_are!();

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner())? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key()? {
            all.insert(name, fields.next_value_seed(self.inner())?);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests;

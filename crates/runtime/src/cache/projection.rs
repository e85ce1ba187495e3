//! Reading no more of an object than is kept of it: what is left out is passed over in the text,
//! so that it costs neither memory nor a second look.

mod text;

use std::fmt;

use kube::api::ApiResource;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use super::store::Object;
use text::{Expectation, Text};

/// How many levels of objects and lists a value is read to. An API server keeps what is nested
/// deeper than most readers go, and one object must not make a whole list unreadable.
const DEEPEST: usize = 100;

/// What is read in the place of a value that is nested deeper: no schema takes it for what should
/// be there.
pub const TOO_DEEP: &str = "(nested more than 100 levels deep)";

/// How many bytes of labels, or of annotations, are kept of one object.
const MOST_MARKS: usize = 64 << 10;

/// How much is read of a value.
#[derive(Debug)]
pub enum FieldMask {
    /// All of it.
    All,
    /// Of an object, these fields, and these as far as each says.
    Only(
        &'static [&'static str],
        &'static [(&'static str, FieldMask)],
    ),
    /// Of an object, every field, these as far as each says.
    AllBut(&'static [(&'static str, FieldMask)]),
    /// Of labels or annotations, those of these domains. One that begins with a dot stands for its
    /// subdomains.
    Marks(&'static [&'static str]),
    /// Of a list of conditions, those of these types, without the time of the last heartbeat.
    Conditions(&'static [&'static str]),
    /// Its compact JSON text, as a string; null where that would have more bytes than this.
    Text(usize),
    /// Nothing: it is passed over.
    Nothing,
}

/// How the objects of one kind are read.
pub trait Projection: fmt::Debug + Send + Sync {
    /// How much is kept of an object.
    fn keeps(&self) -> &'static FieldMask;

    /// Completes an object that was read live, [as it is kept](Self::keeps).
    fn settle(&self, _object: &mut Value) {}

    /// Whether a server is asked for nothing but the metadata of objects.
    fn is_metadata_only(&self) -> bool {
        false
    }
}

/// How a cache keeps the objects of one kind.
pub trait Cached: Projection {
    /// Who may be concerned by an object.
    type Target: Clone + Ord + fmt::Debug + Send + Sync;

    /// What a cache keeps of an object of that kind that was read [as it is
    /// kept](Projection::keeps).
    fn cache(&self, object: Value, resource: &ApiResource) -> Object<Self::Target>;
}

/// Reads all of an object but who has written what.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

impl Projection for Whole {
    fn keeps(&self) -> &'static FieldMask {
        &LEAN
    }
}

/// Asks for no more than an object's metadata.
#[derive(Clone, Copy, Debug)]
pub struct MetadataOnly;

impl Projection for MetadataOnly {
    fn keeps(&self) -> &'static FieldMask {
        &LEAN
    }

    fn is_metadata_only(&self) -> bool {
        true
    }
}

/// Everything but who has written what: often half of an object, and nobody here reads it.
pub static LEAN: FieldMask = FieldMask::AllBut(&[(
    "metadata",
    FieldMask::AllBut(&[("managedFields", FieldMask::Nothing)]),
)]);

impl FieldMask {
    /// Reads a JSON document.
    ///
    /// # Errors
    /// It is no JSON, or no object where this needs one.
    pub fn read(&'static self, text: &[u8]) -> serde_json::Result<Value> {
        let mut document = serde_json::Deserializer::from_slice(text);
        let value = self.deserialize(&mut document)?;
        document.end()?;
        Ok(value)
    }

    /// What is kept of a field; none where it is left out.
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
            Self::Marks(domains) => is_of_domain(name, domains).then_some(&Self::All),
            Self::All | Self::Conditions(_) | Self::Text(_) | Self::Nothing => {
                Some(&Self::All)
            }
        };
        found.filter(|keep| !matches!(keep, Self::Nothing))
    }
}

/// Whether a label or an annotation is of one of the domains.
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
            | FieldMask::Marks(_)
            | FieldMask::Conditions(_) => deserializer.deserialize_any(Part(self)),
            FieldMask::Text(most) => {
                let mut text = Text::of_at_most(*most);
                Expectation(&mut text, DEEPEST).deserialize(deserializer)?;
                Ok(text.value())
            }
            FieldMask::Nothing => {
                deserializer.deserialize_ignored_any(IgnoredAny)?;
                Ok(Value::Null)
            }
        }
    }
}

/// All of a value, or words that say that it is nested too deep.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let mut is_whole = true;
    let nested = Nested {
        levels: DEEPEST,
        is_whole: &mut is_whole,
    };
    let value = nested.deserialize(deserializer)?;
    Ok(if is_whole { value } else { TOO_DEEP.into() })
}

/// What visitors of JSON have in common: a value that holds no others is returned as it is.
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

/// A value of which a part is kept. One that is of another form than expected is kept as null or
/// as it is: whoever reads it then says what is wrong with it.
struct Part(&'static FieldMask);

impl<'de> Visitor<'de> for Part {
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
        let mut marks = 0;
        while let Some(name) = map.next_key::<String>()? {
            let Some(keep) = self.0.field(&name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(keep)?;
            if matches!(self.0, FieldMask::Marks(_)) {
                marks += name.len() + value.as_str().map_or(0, str::len);
                if marks > MOST_MARKS {
                    continue;
                }
            }
            if fields.insert(name, value).is_some() {
                return Err(A::Error::custom("a field is there twice"));
            }
        }
        Ok(Value::Object(fields))
    }
}

/// A value that is read to so many levels more, and no deeper.
struct Nested<'a> {
    levels: usize,
    /// Whether all of it has been read.
    is_whole: &'a mut bool,
}

impl Nested<'_> {
    /// A value within this one.
    fn inner(&mut self) -> Nested<'_> {
        Nested {
            levels: self.levels - 1,
            is_whole: self.is_whole,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
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

impl<'de> Visitor<'de> for Nested<'_> {
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

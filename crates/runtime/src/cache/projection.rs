//! Reads no more of an object than is kept of it. The rest is skipped in the text, so that it
//! costs no memory and is not parsed again.

mod text;

use std::cell::Cell;
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

/// How many values are read of one object, in all its lists and objects. Dense JSON takes fifty
/// times its bytes in memory.
pub(super) const MAX_VALUES: usize = 100_000;

/// Replaces a value with which an object has more values than are read. No schema accepts it in
/// the place of that value.
pub const TOO_MANY: &str = "(more than 100000 values)";

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

    /// Whether an object with too many values is an error, because no API server stores one.
    /// Otherwise [`TOO_MANY`] replaces a part of it: one object of a server that is trusted must
    /// not make a whole list unreadable.
    fn rejects_too_many_values(&self) -> bool {
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
        self.read_within(text, &ValueLimit::default())
    }

    /// The same, and counts the values.
    pub(crate) fn read_within(
        &'static self,
        text: &[u8],
        limit: &ValueLimit,
    ) -> serde_json::Result<Value> {
        let mut document = serde_json::Deserializer::from_slice(text);
        let value = self.within(limit).deserialize(&mut document)?;
        document.end()?;
        Ok(value)
    }

    /// Reads a value as a part of an object.
    pub(crate) fn within<'a>(&'static self, limit: &'a ValueLimit) -> MaskSeed<'a> {
        MaskSeed { mask: self, limit }
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

/// How many more values are read of one object.
#[derive(Debug)]
pub(crate) struct ValueLimit {
    remaining: Cell<usize>,
    is_exceeded: Cell<bool>,
}

impl Default for ValueLimit {
    fn default() -> Self {
        Self {
            remaining: Cell::new(MAX_VALUES),
            is_exceeded: Cell::new(false),
        }
    }
}

impl ValueLimit {
    /// Whether the object has more values.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Counts a value, and returns whether it may be kept.
    fn count(&self) -> bool {
        let remaining = self.remaining.get().checked_sub(1);
        match remaining {
            Some(remaining) => self.remaining.set(remaining),
            None => self.is_exceeded.set(true),
        }
        remaining.is_some()
    }
}

/// Reads as much of a value as a mask keeps.
#[derive(Clone, Copy)]
pub(crate) struct MaskSeed<'a> {
    mask: &'static FieldMask,
    limit: &'a ValueLimit,
}

impl<'de> DeserializeSeed<'de> for MaskSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        match self.mask {
            FieldMask::All => whole(deserializer, self.limit),
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

/// All of a value, or [`TOO_DEEP`] or [`TOO_MANY`] if it has too many levels or values.
fn whole<'de, D: Deserializer<'de>>(
    deserializer: D,
    limit: &ValueLimit,
) -> Result<Value, D::Error> {
    let (before, excess) = (limit.remaining.get(), Cell::new(None));
    let nested = NestedSeed {
        levels: MAX_DEPTH,
        limit,
        excess: &excess,
    };
    let value = nested.deserialize(deserializer)?;
    Ok(match excess.get() {
        None => value,
        Some(marker) => {
            // What was read of it is dropped.
            limit.remaining.set(before);
            marker.into()
        }
    })
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
struct PartVisitor<'a>(MaskSeed<'a>);

impl<'de> Visitor<'de> for PartVisitor<'_> {
    type Value = Value;

    scalars_as_they_are!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let Self(MaskSeed { mask, limit }) = self;
        let FieldMask::Conditions(types) = mask else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Array(Vec::new()));
        };
        let mut kept = Vec::new();
        let mut before = limit.remaining.get();
        while let Some(mut item) =
            items.next_element_seed(FieldMask::All.within(limit))?
        {
            let kind = item["type"].as_str().unwrap_or_default();
            if !types.contains(&kind) {
                limit.remaining.set(before);
                continue;
            }
            if !limit.count() {
                continue;
            }
            before = limit.remaining.get();
            if let Value::Object(condition) = &mut item {
                condition.shift_remove("lastHeartbeatTime");
            }
            kept.push(item);
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Self(MaskSeed { mask, limit }) = self;
        let mut fields = Map::new();
        let mut label_bytes = 0;
        while let Some(name) = map.next_key::<String>()? {
            let field = mask.field(&name);
            // The others are named in the mask.
            let is_any = matches!(mask, FieldMask::Domains(_) | FieldMask::AllBut(_));
            let Some(keep) = field.filter(|_| !is_any || limit.count()) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value_seed(keep.within(limit))?;
            if matches!(mask, FieldMask::Domains(_)) {
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
#[derive(Clone, Copy)]
struct NestedSeed<'a> {
    levels: usize,
    limit: &'a ValueLimit,
    /// What replaces the whole value, once it has turned out to be too large.
    excess: &'a Cell<Option<&'static str>>,
}

impl NestedSeed<'_> {
    /// A value within this one.
    fn inner(self) -> Self {
        Self {
            levels: self.levels - 1,
            ..self
        }
    }

    /// Counts a value within this one, and returns whether it is kept.
    fn keeps_item(self) -> bool {
        if self.excess.get().is_none() && !self.limit.count() {
            self.excess.set(Some(TOO_MANY));
        }
        self.excess.get().is_none()
    }
}

impl<'de> DeserializeSeed<'de> for NestedSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        if self.levels == 0 && self.excess.get().is_none() {
            self.excess.set(Some(TOO_DEEP));
        }
        if self.excess.get().is_none() {
            return deserializer.deserialize_any(self);
        }
        deserializer.deserialize_ignored_any(IgnoredAny)?;
        Ok(Value::Null)
    }
}

impl<'de> Visitor<'de> for NestedSeed<'_> {
    type Value = Value;

    scalars_as_they_are!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner())? {
            if self.keeps_item() {
                all.push(item);
            }
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key()? {
            let value = fields.next_value_seed(self.inner())?;
            if self.keeps_item() {
                all.insert(name, value);
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests;

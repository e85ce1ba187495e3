//! Objects as the policy needs them: the provider specs are skipped, because no rule reads them,
//! and the rest is bounded. Dense JSON takes fifty times its bytes in memory.

use std::cell::Cell;
use std::{fmt, io};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

/// How many values an object may have, not counting those that are skipped. The bounds of the
/// schema allow far fewer.
const MAX_VALUES: usize = 100_000;

/// An object in which each provider's `spec` is replaced by a hash of its content: equal for
/// equal texts. `metadata.managedFields` are left out. Text that nests deeper than serde_json's
/// 128 levels is rejected.
#[derive(Debug, Default)]
pub(crate) struct ReviewedObject(pub(crate) Value);

/// The position of a value in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Object,
    Metadata,
    Spec,
    Provider,
    Other,
}

/// Reads one value.
#[derive(Clone, Copy)]
struct Reader<'a> {
    position: Position,
    remaining: &'a Cell<usize>,
}

impl<'de> Deserialize<'de> for ReviewedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let remaining = Cell::new(MAX_VALUES);
        let reader = Reader {
            position: Position::Object,
            remaining: &remaining,
        };
        reader.deserialize(deserializer).map(Self)
    }
}

impl Reader<'_> {
    fn count<E: Error>(&self) -> Result<(), E> {
        let remaining = self.remaining.get().checked_sub(1);
        let too_many = || E::custom(format!("more than {MAX_VALUES} values"));
        self.remaining.set(remaining.ok_or_else(too_many)?);
        Ok(())
    }

    fn at(self, position: Position) -> Self {
        Self { position, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
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
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element_seed(self.at(Position::Other))? {
            list.push(entry);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let position = match (self.position, key.as_str()) {
                (Position::Metadata, "managedFields") => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Position::Provider, "spec") => {
                    let mut hash = Sha256::new();
                    entries.next_value_seed(Hashing(&mut hash))?;
                    map.insert(key, format!("{:x}", hash.finalize()).into());
                    continue;
                }
                (Position::Object, "metadata") => Position::Metadata,
                (Position::Object, "spec") => Position::Spec,
                (Position::Spec, "bootstrapSpec" | "infrastructureSpec") => {
                    Position::Provider
                }
                _ => Position::Other,
            };
            let value = entries.next_value_seed(self.at(position))?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

/// Skips a value and adds it to a hash: as JSON, so that white space makes no difference.
struct Hashing<'a>(&'a mut Sha256);

impl<'de> DeserializeSeed<'de> for Hashing<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let mut hashing = serde_json::Serializer::new(io::BufWriter::new(self.0));
        serde_transcode::transcode(deserializer, &mut hashing).map_err(Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str::<ReviewedObject>(text).unwrap().0
    }

    #[test]
    fn everything_but_the_provider_specs_is_read_unchanged() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"managedFields": "b"}},
            "spec": {
                "clusterName": "c",
                "bootstrapSpec": {"kind": "K", "list": [1, -2, 3.5, null, true, {"spec": 1}]},
                "schedule": {"spec": ["mon"]},
            },
            "status": {"spec": {"bootstrapSpec": {"spec": {}}}},
        });
        assert_eq!(read(&object.to_string()), object);
    }

    #[test]
    fn provider_specs_are_equal_if_their_contents_are() {
        let object = |spec: &str| {
            read(&format!(
                r#"{{"spec": {{"infrastructureSpec": {{"spec": {spec}}}}}}}"#
            ))
        };
        let first = object(r#"{"address": "10.0.0.1", "ports": [22, 2222]}"#);
        assert!(first["spec"]["infrastructureSpec"]["spec"].is_string());
        assert_eq!(first, object(r#"{"address":"10.0.0.1","ports":[22,2222]}"#));
        for other in [
            r#"{"address": "10.0.0.1", "ports": [22], "more": [2222]}"#,
            r#"{"address": "10.0.0.2", "ports": [22, 2222]}"#,
            r#"{"address": "10.0.0.1", "ports": ["22", 2222]}"#,
            "{}",
            "null",
            "[]",
        ] {
            assert_ne!(first, object(other), "{other}");
        }
    }

    #[test]
    fn the_managed_fields_are_left_out() {
        let text = r#"{"metadata": {"name": "a", "managedFields": [{"manager": "b"}]}}"#;
        assert_eq!(read(text), json!({"metadata": {"name": "a"}}));
    }

    #[test]
    fn an_object_with_too_many_values_is_rejected() {
        let text = format!(r#"{{"spec": [{}0]}}"#, "0,".repeat(MAX_VALUES));
        let refused = serde_json::from_str::<ReviewedObject>(&text)
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with("more than 100000 values"), "{refused}");
    }
}

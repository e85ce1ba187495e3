//! A JSON parser that reports duplicate keys.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

/// The maximum number of duplicate keys that are reported, as in Kubernetes' decoder.
pub(crate) const MAX_ERRORS: usize = 100;

/// A key that an object has more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// Its path, such as `spec.items[0].name`.
    pub(crate) path: String,
    pub(crate) key: String,
    /// The path of the last different key before its repetition.
    pub(crate) after: String,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate field \"{}\"", self.path)
    }
}

/// Parses JSON text. Returns the value, with the last of duplicate keys, and the first
/// [`MAX_ERRORS`] duplicate keys.
///
/// # Errors
/// The parser's error for a text that is not JSON.
pub(crate) fn read(text: &[u8]) -> Result<(Value, Vec<Duplicate>), serde_json::Error> {
    let mut repeated = Vec::new();
    let mut parser = serde_json::Deserializer::from_slice(text);
    let seed = Reader {
        path: String::new(),
        repeated: &mut repeated,
    };
    let value = seed.deserialize(&mut parser)?;
    parser.end()?;
    Ok((value, repeated))
}

struct Reader<'a> {
    path: String,
    repeated: &'a mut Vec<Duplicate>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
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

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number =
            Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, all.len());
            let seed = Reader {
                path,
                repeated: &mut *self.repeated,
            };
            match items.next_element_seed(seed)? {
                Some(item) => all.push(item),
                None => return Ok(Value::Array(all)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        let mut last = String::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            let seed = Reader {
                path: path.clone(),
                repeated: &mut *self.repeated,
            };
            let value = entries.next_value_seed(seed).map_err(A::Error::custom)?;
            if all.insert(key.clone(), value).is_none() {
                last = path;
            } else if self.repeated.len() < MAX_ERRORS
                && !self.repeated.iter().any(|it| it.path == path)
            {
                let after = last.clone();
                self.repeated.push(Duplicate { path, key, after });
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_duplicate_key_is_reported_with_its_path_and_the_last_one_is_used() {
        let text =
            br#"{"spec": {"a": 1, "list": [{"b": 1, "b": 2}], "a": 3}, "n": -1.5}"#;
        let (value, repeated) = read(text).unwrap();
        let expected = json!({"spec": {"a": 3, "list": [{"b": 2}]}, "n": -1.5});
        assert_eq!(value, expected);
        let repeated = repeated.iter().map(|it| (&*it.path, &*it.key, &*it.after));
        let expected = [
            ("spec.list[0].b", "b", "spec.list[0].b"),
            ("spec.a", "a", "spec.list"),
        ];
        assert!(repeated.eq(expected));
    }

    #[test]
    fn data_after_the_value_is_an_error() {
        assert!(read(b"{} {}").is_err());
        assert!(read(b"{").is_err());
    }
}

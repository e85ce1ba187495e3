//! A JSON parser that reports duplicate keys.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, DefaultHasher, Hasher as _, RandomState};

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use crate::path::Path;

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
    let mut found = Found::default();
    let mut parser = serde_json::Deserializer::from_slice(text);
    let seed = Reader {
        path: Path::Root,
        parent: &RandomState::new().build_hasher(),
        found: &mut found,
    };
    let value = seed.deserialize(&mut parser)?;
    parser.end()?;
    Ok((value, found.repeated))
}

/// The duplicate keys so far.
#[derive(Default)]
struct Found {
    repeated: Vec<Duplicate>,
    /// The hashes of their paths. Paths are not compared as texts: a document of a few MiB can have
    /// a duplicate key at every few bytes, all below one key of a MiB.
    paths: HashSet<u64>,
}

impl Found {
    /// Adds the key at `path`, whose hash is `hash`, which follows the key at `after`.
    fn add(&mut self, path: Path<'_>, key: &str, after: Path<'_>, hash: u64) {
        if self.repeated.len() < MAX_ERRORS && self.paths.insert(hash) {
            self.repeated.push(Duplicate {
                path: path.to_string(),
                key: key.to_owned(),
                after: after.to_string(),
            });
        }
    }
}

struct Reader<'a> {
    path: Path<'a>,
    /// Has hashed the path of the parent.
    parent: &'a DefaultHasher,
    found: &'a mut Found,
}

impl Reader<'_> {
    /// `parent` after the last part of `path`. Equal paths have equal hashes, however their text is
    /// divided into keys.
    fn hasher(parent: &DefaultHasher, path: Path<'_>) -> DefaultHasher {
        let mut hasher = parent.clone();
        match path {
            Path::Root => {}
            Path::Field(Path::Root, name) => hasher.write(name.as_bytes()),
            Path::Field(_, name) => {
                hasher.write(b".");
                hasher.write(name.as_bytes());
            }
            Path::Item(_, index) => hasher.write(format!("[{index}]").as_bytes()),
        }
        hasher
    }
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
        let hasher = Self::hasher(self.parent, self.path);
        let mut all = Vec::new();
        loop {
            let seed = Reader {
                path: Path::Item(&self.path, all.len()),
                parent: &hasher,
                found: &mut *self.found,
            };
            match items.next_element_seed(seed)? {
                Some(item) => all.push(item),
                None => return Ok(Value::Array(all)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let hasher = Self::hasher(self.parent, self.path);
        let mut all = Map::new();
        let mut last = String::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = Path::Field(&self.path, &key);
            let seed = Reader {
                path,
                parent: &hasher,
                found: &mut *self.found,
            };
            let value = entries.next_value_seed(seed).map_err(A::Error::custom)?;
            if all.insert(key.clone(), value).is_none() {
                last = key;
            } else {
                let after = Path::Field(&self.path, &last);
                let hash = Self::hasher(&hasher, path).finish();
                self.found.add(path, &key, after, hash);
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
    fn a_path_is_reported_once_however_its_text_is_divided_into_keys() {
        let text = br#"{"a.b": {"c": 1, "c": 2}, "a": {"b": {"c": 1, "c": 2}, "b": 3}}"#;
        let (_, repeated) = read(text).unwrap();
        let paths: Vec<&str> = repeated.iter().map(|it| &*it.path).collect();
        assert_eq!(paths, ["a.b.c", "a.b"]);
    }

    #[test]
    fn data_after_the_value_is_an_error() {
        assert!(read(b"{} {}").is_err());
        assert!(read(b"{").is_err());
    }
}

//! Objects as API servers send them, less the list of who has written what: often half of an
//! object, and nobody here reads it.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// How many levels of objects and lists a field is read to. An API server keeps what is nested
/// deeper than most readers go, and one object must not make a whole list unreadable.
const DEEPEST: usize = 100;

/// What is read in the place of a field that is nested deeper.
const TOO_DEEP: &str = "(nested more than 100 levels deep)";

/// A document without the bookkeeping in its `metadata`, which is passed over while it is read:
/// many are read at a time at an edge. A field that is nested too deep is read as words that say
/// so, which no schema takes for what should be there.
#[derive(Clone, Debug)]
pub(crate) struct Lean(pub(crate) Value);

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields::OfObject).map(Self)
    }
}

/// What the fields belong to that are being read.
#[derive(Clone, Copy)]
enum Fields {
    OfObject,
    OfMetadata,
}

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OfObject => "an object",
            Self::OfMetadata => "metadata, which is an object",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = match (self, name.as_str()) {
                (Self::OfObject, "metadata") => map.next_value_seed(Self::OfMetadata)?,
                (Self::OfMetadata, "managedFields") => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Self::OfObject | Self::OfMetadata, _) => {
                    let mut is_whole = true;
                    let field = Nested {
                        levels: DEEPEST,
                        is_whole: &mut is_whole,
                    };
                    let value = map.next_value_seed(field)?;
                    if is_whole { value } else { TOO_DEEP.into() }
                }
            };
            fields.insert(name, value);
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

/// An object as lists and watches bring it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Its namespace, its name and its version, and no more.
    meta: ObjectMeta,
    /// All of it.
    pub(crate) value: Value,
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Lean(value) = Lean::deserialize(deserializer)?;
        let text = |field: &str| value["metadata"][field].as_str().map(str::to_owned);
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, value })
    }
}

impl Resource for Shown {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.kind)
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_has_written_what_is_left_out_and_nothing_else() {
        let text = json!({
            "apiVersion": "v1",
            "metadata": {
                "name": "a",
                "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {}}}],
                "labels": {"managedFields": "a label"},
            },
            "data": {"metadata": {"managedFields": "what somebody has written"}},
        });
        let mut expected = text.clone();
        expected["metadata"]
            .as_object_mut()
            .unwrap()
            .shift_remove("managedFields");
        let Lean(read) = serde_json::from_str(&text.to_string()).unwrap();
        assert_eq!(read, expected);
    }

    /// A list in a list, so many times.
    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn whatever_is_nested_no_deeper_than_may_be_is_read_as_it_is() {
        let text = format!(
            r#"{{"spec": {}, "all": [null, true, -1, 1, 1.5, "a", {{"b": "c"}}, []]}}"#,
            nested(99)
        );
        let Lean(read) = serde_json::from_str(&text).unwrap();
        assert_eq!(read, serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn an_object_that_is_nested_too_deep_leaves_the_others_of_a_list_readable() {
        for levels in [101, 1_000, 100_000] {
            let text = format!(
                r#"[{{"kind": "A", "spec": {}, "status": {{}}}}, {{"kind": "B"}}]"#,
                nested(levels)
            );
            let all: Vec<Lean> = serde_json::from_str(&text).unwrap();
            let said = json!("(nested more than 100 levels deep)");
            assert_eq!(all[0].0, json!({"kind": "A", "spec": said, "status": {}}));
            assert_eq!(all[1].0, json!({"kind": "B"}));
        }
    }

    #[test]
    fn an_object_that_is_shown_has_its_names_and_its_version() {
        let text =
            r#"{"kind": "Node", "metadata": {"name": "a", "resourceVersion": "7"}}"#;
        let shown: Shown = serde_json::from_str(text).unwrap();
        assert_eq!(shown.meta().name.as_deref(), Some("a"));
        assert_eq!(shown.meta().namespace, None);
        assert_eq!(shown.meta().resource_version.as_deref(), Some("7"));
        assert_eq!(shown.value["kind"], "Node");
    }
}

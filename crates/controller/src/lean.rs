//! Objects as API servers send them, less the list of who has written what: often half of an
//! object, and nobody here reads it.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// A document without the bookkeeping in its `metadata`, which is passed over while it is read:
/// many are read at a time at an edge.
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
                (Self::OfObject | Self::OfMetadata, _) => map.next_value()?,
            };
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
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

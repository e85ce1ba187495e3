//! Declared types from structural schemas, as far as the data needs them.

use kubemu_cel::{ListKind, ObjectType, Type};
use serde_json::Value as Json;

/// The declared type of a schema, `None` if rules cannot read such values.
pub(crate) fn declared(schema: &Json, root: bool) -> Option<Type> {
    let ty = typed(schema, root)?;
    Some(if schema["nullable"] == true {
        Type::nullable(ty)
    } else {
        ty
    })
}

fn typed(schema: &Json, root: bool) -> Option<Type> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(Type::IntOrString);
    }
    let embedded = root || schema["x-kubernetes-embedded-resource"] == true;
    match schema["type"].as_str()? {
        "object" if embedded || schema["properties"].is_object() => {
            Some(Type::object(object(schema, embedded)))
        }
        "object" => match &schema["additionalProperties"] {
            Json::Object(_) => {
                declared(&schema["additionalProperties"], false).map(Type::map)
            }
            _ => Some(Type::object(ObjectType::new::<String>([]))),
        },
        "array" => {
            let kind = match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => ListKind::Set,
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array();
                    let keys = keys.into_iter().flatten().filter_map(Json::as_str);
                    ListKind::Map(keys.map(str::to_owned).collect())
                }
                _ => ListKind::Atomic,
            };
            declared(&schema["items"], false).map(|item| Type::list_of(item, kind))
        }
        "string" => Some(match schema["format"].as_str() {
            Some("byte") => Type::Bytes,
            Some("duration") => Type::Duration,
            Some("date") => Type::Date,
            Some("date-time") => Type::Timestamp,
            _ => Type::String,
        }),
        "boolean" => Some(Type::Bool),
        "number" => Some(Type::Double),
        "integer" => Some(Type::Int),
        _ => None,
    }
}

fn object(schema: &Json, embedded: bool) -> ObjectType {
    let properties = schema["properties"].as_object();
    let mut fields: Vec<(String, Type)> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), declared(schema, false)?)))
        .collect();
    if embedded
        && schema["properties"]["metadata"]["properties"]["generateName"].is_null()
    {
        let metadata =
            ObjectType::new([("name", Type::String), ("generateName", Type::String)]);
        let always = ["apiVersion", "kind", "metadata"];
        fields.retain(|(name, _)| !always.contains(&name.as_str()));
        fields.push(("apiVersion".to_owned(), Type::String));
        fields.push(("kind".to_owned(), Type::String));
        fields.push(("metadata".to_owned(), Type::object(metadata)));
    }
    ObjectType::new(fields)
}

//! One OpenAPI v3 document: the paths and schemas of one group and version.

use serde_json::{Map, Value, json};

use super::definitions::{self, DELETE_OPTIONS, LIST_META, OBJECT_META, STATUS};
use super::naming::group_version_kind;
use super::object_field::{API_VERSION, KIND, add_object_fields};
use super::operation::{self, Names};
use crate::registry::Registry;
use crate::resource::Resource;

/// The document of one group and version.
pub(super) fn of(
    registry: &Registry,
    (group, version): (&str, &str),
    release: &str,
) -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    definitions::copy_with_parts(&[STATUS, DELETE_OPTIONS], &mut schemas);
    let mut title = "Kubernetes";
    for resource in registry.resources(group, version) {
        if resource.custom {
            title = "Kubernetes CRD Swagger";
        }
        let names = add_schemas(resource, &mut schemas);
        operation::add_paths(resource, &names, &mut paths);
    }
    schemas.sort_keys();
    json!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": release},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Adds the schemas of an object and of a list; returns the names of both.
fn add_schemas(resource: &Resource, schemas: &mut Map<String, Value>) -> Names {
    let (group, version, kind) = (&resource.group, &resource.version, &resource.kind);
    let object = match definitions::name_of(group, version, kind) {
        Some(name) if !resource.custom => name.to_owned(),
        _ => {
            let name = custom_name(resource, kind);
            schemas.insert(name.clone(), custom(resource));
            name
        }
    };
    let list = match object.strip_suffix(kind.as_str()) {
        Some(prefix) => format!("{prefix}{}", resource.list_kind),
        None => custom_name(resource, &resource.list_kind),
    };
    schemas.insert(list.clone(), list_of(resource, &object));
    let mut needed = vec![object.as_str(), OBJECT_META, LIST_META];
    let mut custom_parts = Vec::new();
    if let Some(schema) = schemas.get(&object) {
        definitions::references(schema, &mut custom_parts);
    }
    needed.extend(custom_parts.iter().map(String::as_str));
    for subresource in &resource.subresources {
        let (group, version, kind) =
            crate::discovery::response_kind(resource, subresource);
        needed.extend(definitions::name_of(group, version, kind));
    }
    definitions::copy_with_parts(&needed, schemas);
    Names { object, list }
}

/// `com.example.v1.Widget` for `Widget` of `example.com/v1`.
fn custom_name(resource: &Resource, kind: &str) -> String {
    let mut parts: Vec<&str> = resource.group.split('.').rev().collect();
    parts.extend([resource.version.as_str(), kind]);
    parts.join(".")
}

/// The schema of a custom resource with the fields that every object has.
fn custom(resource: &Resource) -> Value {
    let mut schema = match &resource.schema {
        Some(own) => own.document().clone(),
        None => json!({"type": "object"}),
    };
    embed(&mut schema);
    add_object_fields(&mut schema);
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(resource)]);
    schema
}

/// Adds the fields that every object has to embedded objects.
fn embed(schema: &mut Value) {
    if schema["x-kubernetes-embedded-resource"] == true {
        add_object_fields(schema);
    }
    let Value::Object(fields) = schema else {
        return;
    };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(embed);
            }
            ("items" | "additionalProperties", value @ Value::Object(_)) => embed(value),
            _ => {}
        }
    }
}

fn list_of(resource: &Resource, object: &str) -> Value {
    let prefix = definitions::PREFIX;
    let (kind, plural) = (&resource.kind, &resource.plural);
    let mut list_kind = group_version_kind(resource);
    list_kind["kind"] = resource.list_kind.as_str().into();
    json!({
        "description": format!("{} is a list of {kind}", resource.list_kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": API_VERSION, "type": "string"},
            "items": {
                "description": format!("List of {plural}. More info: https://git.k8s.io/\
                    community/contributors/devel/sig-architecture/api-conventions.md"),
                "type": "array",
                "items": {"$ref": format!("{prefix}{object}")},
            },
            "kind": {"description": KIND, "type": "string"},
            "metadata": {
                "description": "Standard list metadata. More info: https://git.k8s.io/\
                    community/contributors/devel/sig-architecture/api-conventions.md\
                    #types-kinds",
                "allOf": [{"$ref": format!("{prefix}{LIST_META}")}],
            },
        },
        "x-kubernetes-group-version-kind": [list_kind],
    })
}

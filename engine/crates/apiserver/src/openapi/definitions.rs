//! The schemas of the built-in kinds, as generated into `schema/builtin.json`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::schema::Node;

/// The prefix of a definition's name in a `$ref`.
pub(crate) const PREFIX: &str = "#/components/schemas/";

/// Definition of the metadata of every object.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Definition of the metadata of every list.
pub(crate) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
/// Definition of error responses.
pub(crate) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
/// Definition of the body of a DELETE.
pub(crate) const DELETE_OPTIONS: &str =
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

static ALL: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    // The file is generated and covered by a test; if it cannot be read, the built-in kinds
    // have no schemas.
    serde_json::from_str(include_str!("../../schema/builtin.json")).unwrap_or_default()
});

static KINDS: LazyLock<HashMap<(String, String, String), String>> = LazyLock::new(|| {
    let key = |kind: &Value| {
        let text = |name: &str| kind[name].as_str().unwrap_or_default().to_owned();
        (text("group"), text("version"), text("kind"))
    };
    ALL.iter()
        .filter_map(|(name, schema)| {
            let kind = schema
                .get("x-kubernetes-group-version-kind")?
                .as_array()?
                .first()?;
            Some((key(kind), name.clone()))
        })
        .collect()
});

/// Each definition, and a reference to it.
static NODES: LazyLock<HashMap<&str, DefinitionNodes>> = LazyLock::new(|| {
    let nodes = |(name, schema): (&'static String, &Value)| {
        let nodes = DefinitionNodes {
            definition: Node::new(schema),
            reference: Node::new(&reference(name)),
        };
        (name.as_str(), nodes)
    };
    ALL.iter().map(nodes).collect()
});

struct DefinitionNodes {
    definition: Node,
    reference: Node,
}

/// A schema that refers to the definition called `name`.
pub(crate) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// The node of the definition called `name`.
pub(super) fn node(name: &str) -> Option<&'static Node> {
    NODES.get(name).map(|it| &it.definition)
}

/// A node that refers to the definition called `name`.
pub(super) fn reference_node(name: &str) -> Option<&'static Node> {
    NODES.get(name).map(|it| &it.reference)
}

/// The definition called `name`, such as `io.k8s.api.core.v1.Pod`.
pub(crate) fn find(name: &str) -> Option<&'static Value> {
    ALL.get(name)
}

/// The name of the definition of a built-in kind.
pub(crate) fn name_of(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let key = (group.to_owned(), version.to_owned(), kind.to_owned());
    KINDS.get(&key).map(String::as_str)
}

/// Whether a built-in kind of that name exists.
pub(crate) fn names_kind(group: &str, version: &str, kind: &str) -> bool {
    name_of(group, version, kind).is_some()
}

/// Copies the definitions `names`, and all definitions that they refer to, into `into`.
pub(crate) fn copy_with_parts(names: &[&str], into: &mut Map<String, Value>) {
    let mut remaining: Vec<String> = names.iter().map(|&it| it.to_owned()).collect();
    while let Some(name) = remaining.pop() {
        if into.contains_key(&name) {
            continue;
        }
        if let Some(schema) = find(&name) {
            references(schema, &mut remaining);
            into.insert(name, schema.clone());
        }
    }
}

/// Adds the name of every definition that `schema` refers to.
pub(crate) fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|it| it.strip_prefix(PREFIX))
            {
                found.push(name.to_owned());
            }
            fields.values().for_each(|it| references(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| references(it, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_the_generated_schemas_is_defined() {
        assert!(find("io.k8s.api.core.v1.Pod").is_some());
        let mut found = Vec::new();
        ALL.values().for_each(|it| references(it, &mut found));
        for name in found {
            assert!(find(&name).is_some(), "{name}");
        }
    }
}

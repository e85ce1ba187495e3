//! The names that an expression can use, according to a schema.

use kubemu_cel::escape;
use serde_json::Value;

use super::expression::Scope;
use super::kind::Kind;

/// Adds `path`, whose schema is `node`, and the paths below it.
pub(super) fn add(scope: &mut Scope, path: &str, node: &Value, depth: usize) {
    if let Some(kind) = kind(node) {
        scope.add(path, kind);
    }
    if node["x-kubernetes-int-or-string"] == true {
        scope.presence.push(format!("(type({path}) == string)"));
        scope.add(format!("string({path})"), Kind::plain("string"));
    }
    if depth == 0 || !is_typed(node) {
        return;
    }
    if let Some(properties) = node["properties"].as_object() {
        for (name, property) in properties {
            let Some(name) = escape(name) else { continue };
            let path_of = format!("{path}.{name}");
            scope.presence.push(format!("has({path_of})"));
            if let Some(kind) = kind(property) {
                scope.add(format!("{path}.?{name}"), Kind::optional(kind));
            }
            add(scope, &path_of, property, depth - 1);
        }
    }
    let items = &node["items"];
    if items.is_object() {
        add_items(scope, path, items, depth - 1);
    }
    let each = &node["additionalProperties"];
    if each.is_object() {
        scope.presence.push(format!("('a' in {path})"));
        add(scope, &format!("{path}['a']"), each, depth - 1);
        if let Some(kind) = kind(each) {
            let values = format!("{path}.map(key, {path}[key])");
            scope.add(values, Kind::list(kind));
        }
    }
}

/// Adds the fields that every rule at the root of a resource can read.
pub(super) fn add_resource(scope: &mut Scope, path: &str) {
    for field in ["metadata.name", "kind"] {
        scope.add(format!("{path}.{field}"), Kind::plain("string"));
    }
}

fn add_items(scope: &mut Scope, path: &str, items: &Value, depth: usize) {
    add(scope, &format!("{path}[0]"), items, depth);
    scope.add(format!("size({path})"), Kind::plain("int"));
    let Some(properties) = items["properties"].as_object() else {
        return;
    };
    for (name, property) in properties {
        let Some(name) = escape(name) else { continue };
        scope
            .presence
            .push(format!("{path}.all(item, has(item.{name}))"));
        if let Some(kind) = kind(property) {
            let all = format!("{path}.map(item, item.{name})");
            scope.add(all, Kind::list(kind));
            let some = format!("{path}.filter(item, has(item.{name})).size()");
            scope.add(some, Kind::plain("int"));
        }
    }
}

/// Whether rules can see the values of a schema.
fn is_typed(node: &Value) -> bool {
    node["type"].is_string() || node["x-kubernetes-int-or-string"] == true
}

/// The type of the values of a schema; `None` if no expressions are generated for it.
fn kind(node: &Value) -> Option<Kind> {
    let text = |name: &str| node[name].as_str().unwrap_or_default();
    Some(match (text("type"), text("format")) {
        ("string", "date-time" | "date" | "datetime") => Kind::plain("timestamp"),
        ("string", "duration") => Kind::plain("duration"),
        ("string", "byte") => Kind::plain("bytes"),
        ("string", _) => Kind::plain("string"),
        ("integer", _) => Kind::plain("int"),
        ("number", _) => Kind::plain("double"),
        ("boolean", _) => Kind::plain("bool"),
        ("array", _) => Kind::list(kind(&node["items"])?),
        ("object", _) => Kind::map(kind(&node["additionalProperties"])?),
        _ => return None,
    })
}

//! Validates `x-kubernetes-list-type` and `x-kubernetes-map-type` of a schema.

use serde_json::Value;

use crate::FieldError;
use crate::field::Path;
use crate::schema::node::Node;

/// Adds the errors of one node.
pub(super) fn check(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(map_type) = node.map_type.as_deref() {
        errors.extend(wrong_kind(node, "object", "x-kubernetes-map-type", path));
        if !["atomic", "granular"].contains(&map_type) {
            let path = path.field("x-kubernetes-map-type");
            let known = ["atomic", "granular"];
            errors.push(FieldError::not_supported(path, map_type.into(), known));
        }
    }
    let list_type = node.list_type.as_deref();
    if let Some(list_type) = list_type {
        errors.extend(wrong_kind(node, "array", "x-kubernetes-list-type", path));
        if node.kind == "array" && list_type == "set" {
            set_items(node, path, errors);
        }
        if !["atomic", "set", "map"].contains(&list_type) {
            let path = path.field("x-kubernetes-list-type");
            let known = ["atomic", "set", "map"];
            errors.push(FieldError::not_supported(path, list_type.into(), known));
        }
    }
    if !node.list_keys.is_empty() && list_type != Some("map") {
        let path = path.field("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(path, detail),
            Some(other) => FieldError::invalid(path, other.into(), detail),
        });
    }
    if list_type == Some("map") {
        map_list(node, path, errors);
    }
    nullable_items(node, path, errors);
}

fn wrong_kind(
    node: &Node,
    wanted: &str,
    keyword: &str,
    path: &Path<'_>,
) -> Option<FieldError> {
    let path = path.field("type");
    let detail = format!("must be {wanted} if {keyword} is specified");
    match node.kind.as_str() {
        "" => Some(FieldError::required(path, detail)),
        kind if kind != wanted => Some(FieldError::invalid(path, kind.into(), detail)),
        _ => None,
    }
}

/// Items of a set are compared as a whole, so that they must not be merged by field.
fn set_items(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(each) = node.items.as_deref() else {
        return;
    };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let path = path.field("items");
    let value = each.list_type.as_deref().map_or(Value::Null, Value::from);
    let atomic_list = each.list_type.as_deref().is_none_or(|it| it == "atomic");
    if each.kind == "array" && !atomic_list {
        let path = path.field("x-kubernetes-list-type");
        errors.push(FieldError::invalid(path, value, detail));
    } else if each.kind == "object" && each.map_type.as_deref() != Some("atomic") {
        let path = path.field("x-kubernetes-map-type");
        errors.push(FieldError::invalid(path, value, detail));
    }
}

fn map_list(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let keys = path.field("x-kubernetes-list-map-keys");
    if node.list_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(keys, detail));
    }
    let at = path.field("items");
    let Some(each) = node.items.as_deref() else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at, detail));
        return;
    };
    if each.kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let kind = each.kind.as_str().into();
        errors.push(FieldError::invalid(at.field("type"), kind, detail));
        return;
    }
    let properties = at.field("properties");
    for (index, key) in node.list_keys.iter().enumerate() {
        let all = || Value::from(node.list_keys.clone());
        match each.properties.get(key) {
            Some(property) if matches!(property.kind.as_str(), "array" | "object") => {
                let detail = "must be a scalar type if parent array's \
                              x-kubernetes-list-type is map";
                let path = properties.key(key);
                let kind = each.kind.as_str().into();
                errors.push(FieldError::invalid(path.field("type"), kind, detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(keys, all(), detail));
            }
        }
        if node
            .list_keys
            .iter()
            .take(index)
            .any(|earlier| earlier == key)
        {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(keys, all(), detail));
        }
    }
}

fn nullable_items(node: &Node, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (Some(each), Some(list_type @ ("set" | "map"))) =
        (node.items.as_deref(), node.list_type.as_deref())
    else {
        return;
    };
    let at = path.field("items");
    if each.nullable {
        let detail =
            format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at.field("nullable"), detail));
    }
    if list_type == "set" {
        return;
    }
    let properties = at.field("properties");
    for key in &node.list_keys {
        let Some(property) = each.properties.get(key) else {
            continue;
        };
        let path = properties.key(key);
        if !each.checks.required.contains(key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have \
                          a default or be a required property";
            errors.push(FieldError::required(path.field("default"), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be \
                          nullable";
            errors.push(FieldError::forbidden(path.field("nullable"), detail));
        }
    }
}

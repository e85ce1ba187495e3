//! The form of an object as a Scale.

use serde_json::{Map, Value, json};

use crate::kind::column;
use crate::resource::{Resource, Scale, Subresource};
use crate::route::Target;

/// The Scale of an object, if `target` is the `scale` subresource.
pub(in crate::verb) fn of(target: &Target, object: &Value) -> Option<Value> {
    if target.subresource != "scale" {
        return None;
    }
    paths(&target.resource).map(|paths| scale(object, paths))
}

pub(super) fn paths(resource: &Resource) -> Option<&Scale> {
    resource.subresources.iter().find_map(|it| match it {
        Subresource::Scale(scale) => Some(scale),
        _ => None,
    })
}

pub(super) fn scale(object: &Value, paths: &Scale) -> Value {
    let metadata = &object["metadata"];
    let mut shown = Map::new();
    for key in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = metadata.get(key) {
            shown.insert(key.to_owned(), value.clone());
        }
    }
    let count = |path: &str| get(object, path).as_i64().unwrap_or_default();
    let mut status = json!({"replicas": count(&paths.status_replicas_path)});
    if let Some(path) = &paths.label_selector_path {
        let selector = get(object, path);
        match selector {
            Value::Null => {}
            // Built-in kinds have a label selector object.
            Value::Object(_) => {
                status["selector"] = column::selector_text(selector).into();
            }
            _ => status["selector"] = selector.clone(),
        }
    }
    // Kubernetes omits zero replicas.
    let spec = match count(&paths.spec_replicas_path) {
        0 => json!({}),
        replicas => json!({ "replicas": replicas }),
    };
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": shown,
        "spec": spec,
        "status": status,
    })
}

fn get<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .filter(|it| !it.is_empty())
        .fold(object, |at, key| &at[key])
}

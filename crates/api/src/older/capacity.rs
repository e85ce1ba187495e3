//! The form of a ScheduledCapacity in finos/5-spot 0.3.2, which named an object that exists.

use serde_json::{Map, Value};

use super::Change;
use crate::name;

/// Renames `spec.targetRef` to `target`, and `spec.capacity.path` to `field`, which is relative to
/// the spec of the target. A field whose new name exists, or a path that does not begin with `spec.`,
/// stays unchanged.
pub(super) fn convert(object: &mut Value) -> Vec<Change> {
    let is_ours = object["apiVersion"] == name::API_VERSION
        && object["kind"] == name::CAPACITY_KIND;
    let Some(Value::Object(spec)) = object.get_mut("spec").filter(|_| is_ours) else {
        return Vec::new();
    };
    let mut changes: Vec<Change> = Vec::new();
    if let Some(Value::Object(capacity)) = spec.get_mut("capacity") {
        let field = capacity.get("path").and_then(Value::as_str);
        let field = field.and_then(|path| path.strip_prefix("spec."));
        if let Some(field) = field.map(|it| Value::from(it.to_owned())) {
            changes.extend(rename(capacity, ("spec.capacity", "path", "field"), field));
        }
    }
    if let Some(target) = spec.get("targetRef").cloned() {
        changes.extend(rename(spec, ("spec", "targetRef", "target"), target));
    }
    changes
}

/// Gives a field another name and value, in its place.
fn rename(
    fields: &mut Map<String, Value>,
    (path, old, new): (&str, &str, &'static str),
    to: Value,
) -> Option<Change> {
    if fields.contains_key(new) {
        return None;
    }
    let from = fields.get(old)?.clone();
    let members = std::mem::take(fields);
    fields.extend(members.into_iter().map(|(key, value)| {
        if key == old {
            (new.to_owned(), to.clone())
        } else {
            (key, value)
        }
    }));
    Some(Change {
        field: format!("{path}.{old}"),
        from,
        to: Some(to),
        renamed: Some(new),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::older::convert;

    #[test]
    fn a_capacity_that_names_its_target_has_the_current_fields() {
        let mut object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledCapacity",
            "metadata": {"name": "web"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "capacity": {"path": "spec.replicas", "activeValue": 3},
            },
        });
        assert_eq!(convert(&mut object).len(), 2);
        let expected = json!({
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "capacity": {"field": "replicas", "activeValue": 3},
        });
        assert_eq!(object["spec"], expected);
        assert_eq!(convert(&mut object), []);
    }

    #[test]
    fn a_capacity_whose_path_is_not_understood_or_that_has_both_names_is_unchanged() {
        let mut object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledCapacity",
            "spec": {
                "targetRef": {"name": "web"},
                "target": {"name": "other"},
                "capacity": {"path": "status.replicas", "activeValue": 3},
            },
        });
        let before = object.clone();
        assert_eq!(convert(&mut object), []);
        assert_eq!(object, before);
    }
}

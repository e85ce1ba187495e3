//! Field selectors: `metadata.name=x`, and a few more for the kinds that have them.

use serde_json::Value;

use crate::resource::Resource;
use crate::status::Status;

/// A selector of the form `a=b,c!=d`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    /// Path in the object as it is kept.
    path: Vec<String>,
    equal: bool,
    value: String,
}

impl Fields {
    /// Reads the text of a `fieldSelector` parameter for a list of `resource`.
    ///
    /// # Errors
    /// `BadRequest` for a field that the kind cannot be selected by, or a malformed text.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, Status> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts
            .map(|part| Requirement::parse(part, resource))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0
            .iter()
            .all(|it| (read(object, &it.path) == it.value) == it.equal)
    }

    /// The value that the field at `path` has to have, if the selector demands one.
    pub(crate) fn exactly(&self, path: &str) -> Option<&str> {
        let found = self
            .0
            .iter()
            .find(|it| it.equal && it.path.join(".") == path);
        found.map(|it| it.value.as_str())
    }
}

impl Requirement {
    fn parse(part: &str, resource: &Resource) -> Result<Self, Status> {
        let split = |mark| part.split_once(mark);
        let (field, equal, value) = if let Some((field, value)) = split("!=") {
            (field, false, value)
        } else if let Some((field, value)) = split("==").or_else(|| split("=")) {
            (field, true, value)
        } else {
            let message =
                format!("invalid selector: '{part}'; can't understand '{part}'");
            return Err(Status::bad_request(message));
        };
        let path = kept_path(resource, field)
            .ok_or_else(|| Status::bad_request(unknown(resource, field)))?;
        Ok(Self {
            path: path.split('.').map(str::to_owned).collect(),
            equal,
            value: value
                .replace("\\,", ",")
                .replace("\\=", "=")
                .replace("\\\\", "\\"),
        })
    }
}

/// What Kubernetes says of a field that the kind cannot be selected by; kinds that have no
/// list of their own share one.
fn unknown(resource: &Resource, field: &str) -> String {
    let kept = &resource.storage;
    let own = ["pods", "nodes", "namespaces", "secrets", "events"];
    if resource.custom || (kept.group.is_empty() && own.contains(&&*kept.resource)) {
        return format!("field label not supported: {field}");
    }
    format!(
        "{field:?} is not a known field selector: only \"metadata.name\", \
         \"metadata.namespace\""
    )
}

/// Where the field that a selector names is in the object as it is kept.
fn kept_path(resource: &Resource, field: &str) -> Option<String> {
    const EVENT: [&str; 10] = [
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "type",
    ];
    const POD: [&str; 8] = [
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ];
    let known = |all: &[&str]| all.contains(&field).then(|| field.to_owned());
    if field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced)
    {
        return Some(field.to_owned());
    }
    if resource.custom {
        let path = format!(".{field}");
        return resource
            .selectable
            .contains(&path)
            .then(|| field.to_owned());
    }
    match (
        resource.storage.group.as_str(),
        resource.storage.resource.as_str(),
    ) {
        ("", "pods") => known(&POD),
        ("", "nodes") => known(&["spec.unschedulable"]),
        ("", "namespaces") => known(&["status.phase"]),
        ("", "secrets") => known(&["type"]),
        ("", "events") => {
            let old = field.replacen("regarding.", "involvedObject.", 1);
            let old = if old == "reportingController" {
                "reportingComponent"
            } else {
                &old
            };
            if old == "source" {
                return Some("source.component".to_owned());
            }
            EVENT.contains(&old).then(|| old.to_owned())
        }
        _ => None,
    }
}

/// The text of a field; empty when absent, as Kubernetes compares it.
fn read(object: &Value, path: &[String]) -> String {
    let mut at = object;
    for key in path {
        at = &at[key.as_str()];
    }
    match at {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => at.to_string(),
        Value::Null if path.last().is_some_and(|it| it == "unschedulable") => {
            "false".to_owned()
        }
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_selected_by_their_node() {
        let pods = Resource::new("", "v1", "Pod", "pods");
        let selector =
            Fields::parse("spec.nodeName=n1,status.phase!=Failed", &pods).unwrap();
        assert!(selector.matches(&json!({"spec": {"nodeName": "n1"}})));
        assert!(!selector.matches(&json!({"spec": {"nodeName": "n2"}})));
        let failed = json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Failed"}});
        assert!(!selector.matches(&failed));
        assert_eq!(selector.exactly("spec.nodeName"), Some("n1"));
        assert_eq!(selector.exactly("status.phase"), None);
    }

    #[test]
    fn events_are_selected_by_either_name_of_their_object() {
        let events = Resource::new("", "v1", "Event", "events");
        let event = json!({"involvedObject": {"name": "x"}});
        for text in ["involvedObject.name=x", "regarding.name=x"] {
            assert!(
                Fields::parse(text, &events).unwrap().matches(&event),
                "{text}"
            );
        }
    }

    #[test]
    fn a_field_that_cannot_be_selected_by_is_a_bad_request() {
        let mut custom = Resource::new("g", "v1", "Thing", "things");
        custom.custom = true;
        let refused = Fields::parse("spec.color=red", &custom).unwrap_err();
        assert_eq!(refused.code, 400);
        assert_eq!(refused.message, "field label not supported: spec.color");
        custom.selectable = vec![".spec.color".to_owned()];
        assert!(Fields::parse("spec.color=red", &custom).is_ok());
    }
}

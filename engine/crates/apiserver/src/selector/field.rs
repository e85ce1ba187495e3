//! Field selectors: `metadata.name=x`, and the further fields of some kinds.

use serde_json::Value;

use crate::resource::Resource;
use crate::status::Status;

/// A selector of the form `a=b,c!=d`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    /// Path in the stored object.
    path: Vec<String>,
    /// Path of the field that counts if the first is empty; empty for none.
    fallback: &'static str,
    /// The value of an absent field.
    absent: &'static str,
    equal: bool,
    value: String,
}

impl Fields {
    /// Parses a `fieldSelector` parameter for a list of `resource`.
    ///
    /// # Errors
    /// `BadRequest` for a field that the kind does not support, or a malformed selector.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, Status> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts
            .map(|part| Requirement::parse(part, resource))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether a text has the form of a selector, whatever the fields are.
    pub(crate) fn is_well_formed(text: &str) -> bool {
        let mut parts = text.split(',').filter(|part| !part.is_empty());
        parts.all(|part| part.contains('='))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0
            .iter()
            .all(|it| (read(object, it) == it.value) == it.equal)
    }

    /// The value that the selector requires for the field at `path`, if any.
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
        let selected = resource
            .selected_field(field)
            .ok_or_else(|| Status::bad_request(unknown(resource, field)))?;
        Ok(Self {
            fallback: selected.fallback,
            absent: selected.absent,
            path: selected.path.split('.').map(str::to_owned).collect(),
            equal,
            value: value
                .replace("\\,", ",")
                .replace("\\=", "=")
                .replace("\\\\", "\\"),
        })
    }
}

/// Kubernetes' message for a field that the kind does not support; kinds without their own fields
/// share one message.
fn unknown(resource: &Resource, field: &str) -> String {
    match resource.kind.as_str() {
        "Job" => return format!("field label {field:?} not supported for Job"),
        "ResourceSlice" => {
            let (version, kind) = (resource.api_version(), &resource.kind);
            return format!(
                "field label not supported for {version}, Kind={kind}: {field}"
            );
        }
        _ => {}
    }
    let kind = resource.builtin.as_ref();
    if kind.is_none_or(|it| !it.field_selectors().is_empty()) {
        return format!("field label not supported: {field}");
    }
    format!(
        "{field:?} is not a known field selector: only \"metadata.name\", \
         \"metadata.namespace\""
    )
}

/// The value of a field as a string, as Kubernetes compares it.
fn read(object: &Value, requirement: &Requirement) -> String {
    let path = requirement.path.iter().map(String::as_str);
    let mut found = text_at(object, path);
    let is_empty = found.as_ref().is_none_or(String::is_empty);
    if is_empty && !requirement.fallback.is_empty() {
        found = text_at(object, requirement.fallback.split('.'));
    }
    found.unwrap_or_else(|| requirement.absent.to_owned())
}

/// The text of a scalar; `None` for another value.
fn text_at<'a>(object: &Value, path: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut at = object;
    for key in path {
        at = &at[key];
    }
    match at {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(at.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Registry;

    #[test]
    fn pods_are_selected_by_node() {
        let registry = Registry::builtin();
        let pods = registry.find("", "v1", "pods").unwrap();
        let selector =
            Fields::parse("spec.nodeName=n1,status.phase!=Failed", pods).unwrap();
        assert!(selector.matches(&json!({"spec": {"nodeName": "n1"}})));
        assert!(!selector.matches(&json!({"spec": {"nodeName": "n2"}})));
        let failed = json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Failed"}});
        assert!(!selector.matches(&failed));
        assert_eq!(selector.exactly("spec.nodeName"), Some("n1"));
        assert_eq!(selector.exactly("status.phase"), None);
    }

    #[test]
    fn events_are_selected_by_the_name_of_the_involved_object_in_their_version() {
        let registry = Registry::builtin();
        let event = json!({"involvedObject": {"name": "x"}});
        for (group, text) in [
            ("", "involvedObject.name=x"),
            ("events.k8s.io", "regarding.name=x"),
        ] {
            let events = registry.find(group, "v1", "events").unwrap();
            assert!(
                Fields::parse(text, events).unwrap().matches(&event),
                "{text}"
            );
        }
    }

    #[test]
    fn an_unsupported_field_is_a_bad_request() {
        let mut custom = Resource::new("g", "v1", "Thing", "things");
        custom.custom = true;
        let refused = Fields::parse("spec.color=red", &custom).unwrap_err();
        assert_eq!(refused.code, 400);
        assert_eq!(refused.message, "field label not supported: spec.color");
        custom.selectable = vec![".spec.color".to_owned()];
        assert!(Fields::parse("spec.color=red", &custom).is_ok());
    }
}

//! Audit events: requests and their responses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

/// One request and its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// The time of the response, from the server's clock.
    pub at: Timestamp,
    /// The user name.
    pub user: String,
    /// The impersonated user name; empty without impersonation.
    pub impersonated: String,
    /// The API verb for resources (`get`, `list`, `create`…), otherwise the HTTP method in
    /// lower case.
    pub verb: String,
    /// The path without its query.
    pub path: String,
    /// API group; empty for the core group and for non-resource requests.
    pub group: String,
    /// Plural name, or empty.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name in the path, or empty.
    pub name: String,
    /// The label selector of the request, decoded; empty if there is none.
    pub label_selector: String,
    /// HTTP status code of the response.
    pub code: u16,
    /// The audit annotations of admission.
    pub annotations: BTreeMap<String, String>,
}

impl AuditEvent {
    /// Whether the request is a write.
    pub fn is_write(&self) -> bool {
        !matches!(
            self.verb.as_str(),
            "get" | "list" | "watch" | "head" | "options"
        )
    }

    /// The event as an `audit.k8s.io/v1` Event at level Metadata.
    pub fn to_value(&self) -> Value {
        let mut object = json!({});
        let parts = [
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("apiGroup", &self.group),
            ("subresource", &self.subresource),
        ];
        for (key, text) in parts {
            if !text.is_empty() {
                object[key] = text.as_str().into();
            }
        }
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "stage": "ResponseComplete",
            "requestURI": self.path,
            "verb": self.verb,
            "user": {"username": self.user},
            "objectRef": object,
            "responseStatus": {"code": self.code},
            "stageTimestamp": self.at.to_string(),
            "annotations": self.annotations,
        });
        if !self.impersonated.is_empty() {
            event["impersonatedUser"] = json!({"username": self.impersonated});
        }
        event
    }
}

/// Records every request, in the order of the responses. It is called while the server waits,
/// so it must neither block nor send the server a request.
#[derive(Clone)]
pub struct Audit(Arc<dyn Fn(&AuditEvent) + Send + Sync>);

impl Audit {
    /// Calls `record` with each event.
    pub fn new(record: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(record))
    }

    pub(crate) fn record(&self, event: &AuditEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Audit")
    }
}

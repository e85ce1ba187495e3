//! What was asked and answered, for whoever keeps a record.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// When it was answered, by the server's clock.
    pub at: Timestamp,
    /// The user name.
    pub user: String,
    /// Whom the user asked to be taken for; empty for nobody.
    pub impersonated: String,
    /// Discovery's word for resources (`get`, `list`, `create`…), else the HTTP method in
    /// lower case.
    pub verb: String,
    /// The path without its query.
    pub path: String,
    /// API group; empty for the core group, and for what is no resource.
    pub group: String,
    /// Plural name, or empty.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name as the path gives it, or empty.
    pub name: String,
    /// The label selector that was asked for, decoded; empty for none.
    pub label_selector: String,
    /// HTTP status code of the answer.
    pub code: u16,
    /// What admission wanted on record.
    pub annotations: BTreeMap<String, String>,
}

impl AuditEvent {
    /// Whether the request was for a change.
    pub fn is_write(&self) -> bool {
        !matches!(
            self.verb.as_str(),
            "get" | "list" | "watch" | "head" | "options"
        )
    }

    /// As an `audit.k8s.io/v1` Event at level Metadata.
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

/// Records every request, in the order in which they were answered. Called while the
/// server waits: it must neither block nor send the server a request.
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

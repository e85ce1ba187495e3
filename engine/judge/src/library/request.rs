//! The requests that policies decide about, with parameters and permissions.

use serde_json::{Map, Value, json};

use super::policy::Policies;

impl Policies<'_> {
    pub(super) fn request(&mut self, object: &Value, old: &Value) -> Value {
        let operation = self
            .random
            .pick(&["CREATE", "CREATE", "UPDATE", "UPDATE", "DELETE"]);
        let mut user = json!({"name": "ann", "groups": ["dev", "system:authenticated"]});
        if self.random.chance(30) {
            user = json!({"name": "bob", "uid": "u1", "groups": [],
                "extra": {"scopes": ["a", "b"]}});
        }
        let mut request = json!({
            "operation": operation,
            "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
            "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
            "subresource": if self.random.chance(8) { "status" } else { "" },
            "namespace": "n", "name": "w", "dryRun": self.random.chance(15), "user": user,
        });
        if operation != "DELETE" {
            request["object"] = object.clone();
        }
        if operation != "CREATE" {
            request["oldObject"] = old.clone();
        }
        if self.random.chance(30) {
            request["equivalents"] = json!([{
                "kind": {"group": "example.com", "version": "v2", "kind": "Widget"},
                "resource": {"group": "example.com", "version": "v2", "resource": "widgets"}}]);
        }
        request
    }

    /// Parameter objects.
    pub(super) fn params(&mut self) -> Value {
        let mut params = Vec::new();
        for name in ["p", "q"] {
            if self.random.chance(70) {
                params.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": "n", "labels": {"app": "x"}},
                    "data": {"limit": "5"}}));
            }
            if self.random.chance(70) {
                params.push(json!({"apiVersion": "example.com/v1", "kind": "Limit",
                    "metadata": {"name": name}, "spec": {"max": 3}}));
            }
        }
        json!(params)
    }

    pub(super) fn allowed(&mut self) -> Value {
        let all = [
            json!({"user": "ann", "verb": "get", "resource": "pods", "namespace": "n"}),
            json!({"user": "*", "verb": "update", "group": "example.com", "resource": "widgets",
                "namespace": "n", "name": "*", "subresource": "*"}),
            json!({"user": "system:serviceaccount:n:sa", "verb": "get", "path": "/healthz"}),
            json!({"user": "ann", "verb": "*", "path": "*"}),
        ];
        let some: Vec<_> = all.into_iter().filter(|_| self.random.chance(50)).collect();
        json!(some)
    }

    pub(super) fn namespace(&mut self) -> Value {
        let mut labels = Map::new();
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!("n"));
        if self.random.chance(50) {
            labels.insert("app".to_owned(), json!("x"));
        }
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "n", "labels": labels}, "status": {"phase": "Active"}})
    }
}

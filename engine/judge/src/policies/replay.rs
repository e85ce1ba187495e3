//! The cases of a policy on a real API server.
//!
//! Cases with the same stored object, parameters and labels of the namespace are one round: what they
//! need is stored, then the policy is created, and each case is a request with `dryRun=All`. An API server
//! applies policies a moment after they are stored, in the order in which they were: when a policy that
//! was created last refuses a request, those before it are in force, and when it was deleted last and
//! refuses no more, they are not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kubemu_judge::record::BoxError;
use serde_json::{Map, Value, json};

use crate::program::PAUSE;

/// How long a server may take to apply what is stored.
const LIMIT: Duration = Duration::from_mins(1);

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";
const DEFINITION: &str = "CustomResourceDefinition";
/// The name of the policy that shows what is in force, and of what it refuses.
const MARKER: &str = "judge-policies-marker";

/// A response: its code and its body.
type Response = (u16, Value);

/// Sends cases to a server.
pub(super) struct Replay {
    client: Client,
}

impl Replay {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Asks every case of a folder, and returns those with another response.
    ///
    /// # Errors
    /// A request fails that prepares a case, or what is stored is not applied in time.
    pub(super) async fn run(
        &self,
        folder: &Path,
        cases: &Value,
    ) -> Result<Vec<String>, BoxError> {
        self.grant().await?;
        let documents = documents(folder)?;
        let of_kind = |kind: &str| -> Vec<&Value> {
            documents.iter().filter(|it| it["kind"] == kind).collect()
        };
        for object in of_kind(DEFINITION) {
            self.create(object).await?;
            self.until_served(object).await?;
        }
        let policies = of_kind(POLICY);
        let mut bindings: Vec<Value> = of_kind(BINDING).into_iter().cloned().collect();
        bindings.extend(missing_bindings(&policies, &bindings));
        // What a run that was ended has left.
        for object in policies.iter().copied().chain(&bindings) {
            self.delete(object).await?;
        }
        self.unmark().await?;
        let params = documents.iter().filter(|it| {
            policies.iter().any(|policy| {
                let kind = &policy["spec"]["paramKind"];
                kind["kind"] == it["kind"] && kind["apiVersion"] == it["apiVersion"]
            })
        });
        for object in of_kind("Namespace").into_iter().chain(params) {
            self.create(object).await?;
        }
        let mut rounds: Vec<(Value, Vec<&Value>)> = Vec::new();
        for case in cases.as_array().into_iter().flatten() {
            let key = around(&case["request"]);
            match rounds.iter_mut().find(|it| it.0 == key) {
                Some(round) => round.1.push(case),
                None => rounds.push((key, vec![case])),
            }
        }
        let mut differences = Vec::new();
        for (key, cases) in rounds {
            let stored = self.prepare(&key, &cases).await?;
            for object in policies.iter().copied().chain(&bindings) {
                self.create(object).await?;
            }
            self.mark().await?;
            for case in cases {
                let response = self.ask(&case["request"]).await?;
                differences.extend(difference(case, &response));
            }
            for object in policies.iter().copied().chain(&bindings) {
                self.delete(object).await?;
            }
            self.unmark().await?;
            for object in &stored {
                self.delete(object).await?;
            }
        }
        for object in of_kind(DEFINITION) {
            self.delete(object).await?;
        }
        Ok(differences)
    }

    /// Lets every user write: who may do so is no part of a case.
    async fn grant(&self) -> Result<(), BoxError> {
        let group = "rbac.authorization.k8s.io";
        self.create(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "judge-policies"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}],
        }))
        .await
    }

    /// Stores what the cases of a round need, and returns what is to be deleted afterwards.
    async fn prepare(
        &self,
        key: &Value,
        cases: &[&Value],
    ) -> Result<Vec<Value>, BoxError> {
        for case in cases {
            let object = &case["request"]["object"];
            if self.resource(object).await?.is_namespaced {
                let name = object["metadata"]["namespace"].as_str();
                self.namespace(name.unwrap_or("default"), &key["labels"])
                    .await?;
            }
        }
        let mut stored: Vec<Value> = key["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        stored.extend(Some(&key["stored"]).filter(|it| !it.is_null()).cloned());
        for object in &stored {
            self.delete(object).await?;
            self.create(object).await?;
        }
        Ok(stored)
    }

    /// Creates a namespace with these labels, or gives them to it.
    async fn namespace(&self, name: &str, labels: &Value) -> Result<(), BoxError> {
        let path = format!("/api/v1/namespaces/{name}");
        self.create(&json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name}}))
            .await?;
        let (_, mut found) = self.send("GET", &path, None).await?;
        let mut wanted = labels.as_object().cloned().unwrap_or_default();
        wanted.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        if found["metadata"]["labels"] != Value::Object(wanted.clone()) {
            found["metadata"]["labels"] = wanted.into();
            accepted(&path, self.send("PUT", &path, Some(&found)).await?)?;
        }
        // Pods are refused before it is there.
        let account = format!("{path}/serviceaccounts/default");
        self.until(&account, |it| it.0 == 200).await
    }

    /// Creates the policy that shows that all before it are in force, and waits until it is.
    async fn mark(&self) -> Result<(), BoxError> {
        for object in markers() {
            self.create(&object).await?;
        }
        self.until_marked(true).await
    }

    /// Deletes it, and waits until it is not in force.
    async fn unmark(&self) -> Result<(), BoxError> {
        for object in markers() {
            self.delete(&object).await?;
        }
        self.until_marked(false).await
    }

    async fn until_marked(&self, is_refused: bool) -> Result<(), BoxError> {
        let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": MARKER}});
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            let (code, body) = self.send("POST", path, Some(&object)).await?;
            let message = body["message"].as_str().unwrap_or_default();
            if (code >= 400 && message.contains(MARKER)) == is_refused {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err("the server does not apply policies".into())
    }

    /// Sends the request of a case. A server refuses with an error while it does not know the kind of a
    /// parameter yet.
    async fn ask(&self, request: &Value) -> Result<Response, BoxError> {
        let end = Instant::now() + LIMIT;
        loop {
            let response = self.ask_once(request).await?;
            let message = response.1["message"].as_str().unwrap_or_default();
            let is_late =
                message.contains("paramKind") || message.contains("not yet synced");
            if !is_late || Instant::now() > end {
                return Ok(response);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask_once(&self, request: &Value) -> Result<Response, BoxError> {
        let object = &request["object"];
        let resource = self.resource(object).await?;
        let path = resource.path(object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let query = "dryRun=All&fieldValidation=Strict";
        let (method, path, body) = if request["operation"] == "Delete" {
            ("DELETE", format!("{path}/{name}?dryRun=All"), None)
        } else if request["oldObject"].is_object() {
            // What a server has added to the old object stays.
            let change = change(&request["oldObject"], object);
            ("PATCH", format!("{path}/{name}?{query}"), Some(change))
        } else {
            ("POST", format!("{path}?{query}"), Some(object.clone()))
        };
        self.send_as(request, (method, &path, body.as_ref())).await
    }

    /// Creates an object, unless it exists.
    async fn create(&self, object: &Value) -> Result<(), BoxError> {
        let resource = self.resource(object).await?;
        let path = resource.path(object);
        let response = self.send("POST", &path, Some(object)).await?;
        if response.1["reason"] == "AlreadyExists" {
            return Ok(());
        }
        accepted(&path, response)
    }

    /// Deletes an object, and waits until it is gone.
    async fn delete(&self, object: &Value) -> Result<(), BoxError> {
        let resource = self.resource(object).await?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/{name}", resource.path(object));
        let at_once = "gracePeriodSeconds=0&propagationPolicy=Background";
        self.send("DELETE", &format!("{path}?{at_once}"), None)
            .await?;
        self.until(&path, |it| it.0 == 404).await
    }

    async fn until_served(&self, definition: &Value) -> Result<(), BoxError> {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|it| it["served"] == true) {
            let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
            let (group, version) = (word(&spec["group"]), word(&version["name"]));
            let plural = word(&spec["names"]["plural"]);
            let path = format!("/apis/{group}/{version}/{plural}");
            self.until(&path, |it| it.0 == 200).await?;
        }
        Ok(())
    }

    async fn until(
        &self,
        path: &str,
        holds: impl Fn(&Response) -> bool,
    ) -> Result<(), BoxError> {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            if holds(&self.send("GET", path, None).await?) {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("{path}: not in time").into())
    }

    /// The resource of an object's kind.
    async fn resource(&self, object: &Value) -> Result<Resource, BoxError> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let group = if api_version.contains('/') {
            format!("/apis/{api_version}")
        } else {
            format!("/api/{api_version}")
        };
        let (_, list) = self.send("GET", &group, None).await?;
        let resources = list["resources"].as_array().into_iter().flatten();
        let mut found = resources.filter_map(|it| {
            let name = it["name"].as_str().filter(|it| !it.contains('/'))?;
            (it["kind"] == object["kind"]).then(|| Resource {
                group: group.clone(),
                plural: name.to_owned(),
                is_namespaced: it["namespaced"] == true,
            })
        });
        found.next().ok_or_else(|| {
            format!("{api_version} has no {} on the server", object["kind"]).into()
        })
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, BoxError> {
        self.send_as(&Value::Null, (method, path, body)).await
    }

    /// Sends a request as the user of a case: without one, as the administrator.
    async fn send_as(
        &self,
        case: &Value,
        (method, path, body): (&str, &str, Option<&Value>),
    ) -> Result<Response, BoxError> {
        let media = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media);
        for (name, value) in impersonation(case) {
            request = request.header(name, value);
        }
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let response = self.client.send(request.body(Body::from(body))?).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
    }
}

/// The path of a kind.
struct Resource {
    group: String,
    plural: String,
    is_namespaced: bool,
}

impl Resource {
    /// The path of the collection that an object is in.
    fn path(&self, object: &Value) -> String {
        let Self { group, plural, .. } = self;
        if !self.is_namespaced {
            return format!("{group}/{plural}");
        }
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default");
        format!("{group}/namespaces/{namespace}/{plural}")
    }
}

/// What has to be stored for a request.
fn around(request: &Value) -> Value {
    let is_deleted = request["operation"] == "Delete";
    let stored = &request[if is_deleted { "object" } else { "oldObject" }];
    json!({
        "stored": stored,
        "parameters": request["parameters"],
        "labels": request["namespaceLabels"],
    })
}

/// The headers with which the administrator asks as the user of a case.
fn impersonation(case: &Value) -> Vec<(String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|it| it.as_str().map(str::to_owned))
            .collect()
    };
    let Some(user) = case["user"].as_str() else {
        return Vec::new();
    };
    let mut headers = vec![("Impersonate-User".to_owned(), user.to_owned())];
    for group in texts(&case["groups"]) {
        headers.push(("Impersonate-Group".to_owned(), group));
    }
    for (key, values) in case["extra"].as_object().into_iter().flatten() {
        let key = key.replace('/', "%2F");
        for value in texts(values) {
            headers.push((format!("Impersonate-Extra-{key}"), value));
        }
    }
    headers
}

/// Bindings for policies without one, as `kubemu test` makes them.
fn missing_bindings(policies: &[&Value], bindings: &[Value]) -> Vec<Value> {
    let is_unbound = |policy: &&&Value| {
        let name = &policy["metadata"]["name"];
        bindings.iter().all(|it| it["spec"]["policyName"] != *name)
    };
    let unbound = policies.iter().filter(is_unbound);
    let bindings = unbound.map(|policy| {
        let name = &policy["metadata"]["name"];
        let mut spec = json!({"policyName": name, "validationActions": ["Deny"]});
        if policy["spec"]["paramKind"].is_object() {
            spec["paramRef"] = json!({"selector": {}, "parameterNotFoundAction": "Deny"});
        }
        json!({"apiVersion": ADMISSION, "kind": BINDING, "metadata": {"name": name},
            "spec": spec})
    });
    bindings.collect()
}

/// A policy and its binding that refuse a ConfigMap which no case has.
fn markers() -> [Value; 2] {
    let metadata = json!({"name": MARKER});
    let expression = format!("object.metadata.name != '{MARKER}'");
    let policy = json!({"apiVersion": ADMISSION, "kind": POLICY, "metadata": metadata, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": expression, "message": MARKER}],
    }});
    let binding = json!({"apiVersion": ADMISSION, "kind": BINDING, "metadata": metadata,
        "spec": {"policyName": MARKER, "validationActions": ["Deny"]}});
    [policy, binding]
}

/// The merge patch that makes the new object from the old one.
fn change(old: &Value, new: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return new.clone();
    };
    let mut changes = Map::new();
    for name in before.keys().filter(|it| !after.contains_key(*it)) {
        changes.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        match before.get(name) {
            Some(before) if before == value => {}
            Some(before) => {
                changes.insert(name.clone(), change(before, value));
            }
            None => {
                changes.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(changes)
}

/// How a response differs from that of `kubemu test`.
fn difference(case: &Value, (code, body): &Response) -> Option<String> {
    let theirs = (*code >= 400).then(|| body["message"].as_str().unwrap_or_default());
    let ours = case["message"].as_str();
    let is_answered = case["got"]
        .as_str()
        .is_some_and(|it| !it.starts_with("no verdict"));
    (theirs != ours || !is_answered).then(|| {
        format!(
            "{}\n  kube-apiserver: {}\n  kubemu test: {}",
            case["name"],
            theirs.unwrap_or("admitted"),
            case["got"].as_str().unwrap_or_default()
        )
    })
}

fn accepted(path: &str, (code, body): Response) -> Result<(), BoxError> {
    match code {
        200..300 => Ok(()),
        _ => Err(format!("{path}: {code} {}", body["message"]).into()),
    }
}

/// The objects of all files of a folder.
fn documents(folder: &Path) -> Result<Vec<Value>, BoxError> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        files.insert(path.clone(), fs::read_to_string(&path)?);
    }
    let mut all = Vec::new();
    for (path, text) in files {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        all.extend(documents.into_iter().filter(Value::is_object));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_removes_adds_and_replaces() {
        let old = json!({"a": {"b": 1, "c": 2}, "d": [1], "e": 0});
        let new = json!({"a": {"b": 1, "f": 3}, "d": [2], "e": 0});
        let expected = json!({"a": {"c": null, "f": 3}, "d": [2]});
        assert_eq!(change(&old, &new), expected);
    }

    #[test]
    fn a_user_is_impersonated_with_groups_and_attributes() {
        let case = json!({"user": "u", "groups": ["g"], "extra": {"a.b/c": ["d"]}});
        let headers = impersonation(&case);
        let header = |name: &str| headers.iter().find(|it| it.0 == name).map(|it| &*it.1);
        assert_eq!(header("Impersonate-User"), Some("u"));
        assert_eq!(header("Impersonate-Group"), Some("g"));
        assert_eq!(header("Impersonate-Extra-a.b%2Fc"), Some("d"));
        assert!(impersonation(&json!({})).is_empty());
    }

    #[test]
    fn another_verdict_or_message_is_a_difference() {
        let refused = json!({"name": "a", "got": "refused: b", "message": "b"});
        assert!(difference(&refused, &(422, json!({"message": "b"}))).is_none());
        assert!(difference(&refused, &(422, json!({"message": "c"}))).is_some());
        assert!(difference(&refused, &(201, json!({}))).is_some());
        let admitted = json!({"name": "a", "got": "admitted"});
        assert!(difference(&admitted, &(201, json!({}))).is_none());
        assert!(difference(&admitted, &(403, json!({"message": "b"}))).is_some());
    }
}

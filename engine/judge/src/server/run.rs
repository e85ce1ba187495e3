//! Sends cases to a server.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request as HttpRequest;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kubemu_clock::Clock;
use serde_json::{Value, json};

use super::case::{Case, Request, Step};
use super::compare::Response;
use super::seed::{Method, Seed, Setup};
use crate::record::BoxError;
use crate::record::mask::Mask;

/// The maximum number of attempts while waiting for the work of controllers.
const MAX_ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of attempts while waiting for a status.
const SETTLES: usize = 50;
const MOMENT: Duration = Duration::from_millis(10);

/// The administrator that removes what a case has left. The policy of `engine/judge/server/setup.yaml`
/// that refuses deletions lets it.
const CLEANER: &str = "differential-cleaner";

/// A server.
pub(super) struct Server {
    client: Client,
}

/// A response as received.
struct Raw {
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

impl Raw {
    /// The name of the object that was created or changed.
    fn name(&self) -> Option<String> {
        let is_created = (200..300).contains(&self.code);
        let name = self.body["metadata"]["name"]
            .as_str()
            .filter(|_| is_created)?;
        Some(name.to_owned())
    }
}

impl Server {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates the namespaces and definitions that the seeds need, and waits until they can be
    /// used.
    ///
    /// # Errors
    /// A request cannot be sent, or an expected response does not come.
    pub(super) async fn prepare(
        &self,
        seeds: &[Seed],
        setup: &[Setup],
    ) -> Result<(), BoxError> {
        for namespace in seeds.iter().filter_map(Seed::namespace) {
            let body = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace}});
            self.create(&plain("POST", "/api/v1/namespaces", Some(body)))
                .await?;
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
            self.until(&plain("GET", &path, None), 200).await?;
        }
        for part in setup {
            let method = part.method.unwrap_or(Method::Post).name();
            let is_new = self
                .create(&plain(method, &part.path, part.object.clone()))
                .await?;
            if !is_new {
                continue;
            }
            if let Some(until) = &part.until {
                let object = until.object.clone();
                let method = if object.is_some() { "POST" } else { "GET" };
                self.until(&plain(method, &until.path, object), until.code)
                    .await?;
            }
        }
        Ok(())
    }

    /// Creates an object. Returns `false` if it exists or is being deleted by an earlier run.
    async fn create(&self, request: &Request) -> Result<bool, BoxError> {
        let raw = self.send(request).await?;
        let is_ending = raw.body["message"]
            .as_str()
            .is_some_and(|it| it.contains("is being terminated"));
        match raw.code {
            200..300 => return Ok(true),
            409 => return Ok(false),
            403 if is_ending => return Ok(false),
            _ => {}
        }
        Err(format!("{}: {} {}", request.path, raw.code, raw.body).into())
    }

    async fn until(&self, request: &Request, code: u16) -> Result<(), BoxError> {
        for _ in 0..MAX_ATTEMPTS {
            if self.send(request).await?.code == code {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("{} does not respond with {code}", request.path).into())
    }

    /// Sends the requests of a case and returns the responses. Deletes the object afterwards.
    ///
    /// # Errors
    /// A request cannot be sent.
    pub(super) async fn run(&self, case: &Case<'_>) -> Result<Vec<Response>, BoxError> {
        let mut mask = Mask::new(Clock::system().now());
        let mut version = String::new();
        let mut answers = Vec::new();
        let mut names = BTreeSet::from([case.name()]);
        for step in &case.steps {
            let mut raw = self.send_step(case, step, &mut version).await?;
            let current = raw.body["metadata"]["resourceVersion"].as_str();
            if let Some(current) = current.filter(|it| !it.is_empty()) {
                current.clone_into(&mut version);
            }
            names.extend(raw.name());
            let is_written = raw.name().is_some() && step.writes();
            mask.apply(&mut raw.body);
            mask_token_volumes(&mut raw.body);
            answers.push(Response::new(raw.code, raw.body, raw.warnings));
            if is_written && (case.seed.observed || case.seed.counted) {
                self.settle(case, &mut version).await?;
            }
        }
        self.clear(case, &names).await?;
        Ok(answers)
    }

    /// Sends a step and returns the response. If a controller has written since, the step is sent
    /// again with the current resourceVersion, as clients do.
    async fn send_step(
        &self,
        case: &Case<'_>,
        step: &Step,
        version: &mut String,
    ) -> Result<Raw, BoxError> {
        for attempt in 0..MAX_ATTEMPTS {
            let request = case.request(step, version);
            let raw = self.send(&request).await?;
            if attempt < SETTLES
                && !step.of_missing
                && is_from_old_cache(&request, &raw, version)
            {
                tokio::time::sleep(MOMENT).await;
                continue;
            }
            let metadata = request.body.as_ref().map(|it| &it["metadata"]);
            let is_ours = metadata.is_some_and(|it| it["resourceVersion"] == *version);
            let message = raw.body["message"].as_str().unwrap_or_default();
            let is_stale = raw.code == 409 && message.contains("has been modified");
            if !is_stale || !is_ours || version.is_empty() {
                return Ok(raw);
            }
            let path = request.path.split('?').next().unwrap_or_default();
            let now = self.send(&plain("GET", path, None)).await?;
            let Some(current) = now.body["metadata"]["resourceVersion"].as_str() else {
                return Ok(raw);
            };
            current.clone_into(version);
        }
        Err("an object keeps changing".into())
    }

    /// Waits until a controller has observed the object.
    async fn settle(
        &self,
        case: &Case<'_>,
        version: &mut String,
    ) -> Result<(), BoxError> {
        let path = format!("{}/{}", case.collection(), escaped(&case.name()));
        for _ in 0..SETTLES {
            let now = self.send(&plain("GET", &path, None)).await?;
            let (spec, status) = (&now.body["spec"], &now.body["status"]);
            let is_done = if case.seed.counted {
                status["hard"] == spec["hard"]
            } else {
                status["observedGeneration"] == now.body["metadata"]["generation"]
            };
            if now.code != 200 || is_done {
                if let Some(current) = now.body["metadata"]["resourceVersion"].as_str() {
                    current.clone_into(version);
                }
                break;
            }
            tokio::time::sleep(MOMENT).await;
        }
        Ok(())
    }

    async fn clear(
        &self,
        case: &Case<'_>,
        names: &BTreeSet<String>,
    ) -> Result<(), BoxError> {
        for name in names {
            let path = format!("{}/{}", case.collection(), escaped(name));
            let now = format!("{path}?gracePeriodSeconds=0");
            let raw = self.send(&by_cleaner(plain("DELETE", &now, None))).await?;
            if let Some(body) = finalized(&raw.body) {
                let finalize = format!("{path}/finalize");
                let request = plain("PUT", &finalize, Some(body));
                self.send(&by_cleaner(request)).await?;
            }
            let finalizers = &raw.body["metadata"]["finalizers"];
            if raw.code == 404 || finalizers.is_null() {
                continue;
            }
            let body = json!({"metadata": {"finalizers": null}});
            let mut patch = plain("PATCH", &path, Some(body));
            patch.media = "application/merge-patch+json";
            self.send(&by_cleaner(patch)).await?;
        }
        Ok(())
    }

    /// Sends a request and returns the response. The code is 0 if there is none: a server that
    /// panics closes the connection.
    async fn send(&self, request: &Request) -> Result<Raw, BoxError> {
        for _ in 0..2 {
            // The first connection may have been closed because it was idle.
            if let Some(raw) = self.send_once(request).await? {
                return Ok(raw);
            }
        }
        Ok(Raw {
            code: 0,
            body: Value::Null,
            warnings: Vec::new(),
        })
    }

    async fn send_once(&self, request: &Request) -> Result<Option<Raw>, BoxError> {
        let mut built = HttpRequest::builder()
            .method(request.method)
            .uri(&request.path)
            .header("user-agent", "differential");
        // The administrator has the same user name on both servers.
        let (user, group) = match request.user.as_str() {
            "" => ("admin", Some("system:masters")),
            CLEANER => (CLEANER, Some("system:masters")),
            node if node.starts_with("system:node:") => (node, Some("system:nodes")),
            user => (user, None),
        };
        built = built.header("impersonate-user", user);
        if let Some(group) = group {
            built = built.header("impersonate-group", group);
        }
        if request.body.is_some() {
            built = built.header("content-type", request.media);
        }
        let body = request.body.as_ref().map(Value::to_string);
        let sent = built.body(Body::from(body.unwrap_or_default().into_bytes()))?;
        let Ok(answer) = self.client.send(sent).await else {
            return Ok(None);
        };
        let (head, body) = answer.into_parts();
        let Ok(body) = body.collect().await else {
            return Ok(None);
        };
        let bytes = body.to_bytes();
        let warnings = head.headers.get_all("warning").iter();
        let warnings = warnings.filter_map(|it| it.to_str().ok().map(str::to_owned));
        Ok(Some(Raw {
            code: head.status.as_u16(),
            body: serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into()),
            warnings: warnings.collect(),
        }))
    }
}

/// Whether a real server may have read an object from a cache that does not have its last version
/// yet. Any version may be read from there if the request asks for the version 0.
fn is_from_old_cache(request: &Request, raw: &Raw, version: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    let found = raw.body["metadata"]["resourceVersion"].as_str();
    let is_cached =
        request.method == "GET" && request.path.ends_with("resourceVersion=0");
    let (Some(last), true) = (number(version), is_cached) else {
        return false;
    };
    raw.code == 404 || found.and_then(number).is_some_and(|it| it < last)
}

/// A namespace whose deletion waits for no more than the removal of its content. `None` if it
/// already does, and for other objects.
fn finalized(object: &Value) -> Option<Value> {
    const OF_CONTENT: &str = "kubernetes";
    let finalizers = object["spec"]["finalizers"].as_array()?;
    let (content, others): (Vec<_>, Vec<_>) =
        finalizers.iter().partition(|it| **it == OF_CONTENT);
    if others.is_empty() {
        return None;
    }
    Some(json!({"metadata": {"name": object["metadata"]["name"]},
        "spec": {"finalizers": content}}))
}

/// Masks the random suffix of the volume with a pod's token, also in a quoted pod.
fn mask_token_volumes(value: &mut Value) {
    const PREFIX: &str = "kube-api-access-";
    const SUFFIX: usize = 5;
    match value {
        Value::String(text) if text.contains(PREFIX) => {
            let mut parts = text.split(PREFIX);
            let first = parts.next().unwrap_or_default().to_owned();
            let masked = parts.map(|it| {
                let rest = it.get(SUFFIX..).unwrap_or_default();
                format!("{PREFIX}?????{rest}")
            });
            *text = first + &masked.collect::<String>();
        }
        Value::Array(items) => items.iter_mut().for_each(mask_token_volumes),
        Value::Object(fields) => fields.values_mut().for_each(mask_token_volumes),
        _ => {}
    }
}

/// Escapes a name as a path segment.
fn escaped(name: &str) -> String {
    let step = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(step).collect()
}

fn by_cleaner(request: Request) -> Request {
    Request {
        user: CLEANER.to_owned(),
        ..request
    }
}

fn plain(method: &'static str, path: &str, body: Option<Value>) -> Request {
    Request {
        method,
        path: path.to_owned(),
        media: "application/json",
        body,
        user: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_at_the_version_0_may_find_an_old_version_or_none() {
        let read = |path: &str, code: u16, found: &str| {
            let raw = Raw {
                code,
                body: json!({"metadata": {"resourceVersion": found}}),
                warnings: Vec::new(),
            };
            is_from_old_cache(&plain("GET", path, None), &raw, "10")
        };
        assert!(read("/a?resourceVersion=0", 200, "9"));
        assert!(read("/a?resourceVersion=0", 404, ""));
        assert!(!read("/a?resourceVersion=0", 200, "10"));
        assert!(!read("/a?resourceVersion=0", 200, "11"));
        assert!(!read("/a", 200, "9"));
    }

    #[test]
    fn a_namespace_that_is_cleared_waits_for_its_content_alone() {
        let with = |finalizers: Value| {
            finalized(&json!({"metadata": {"name": "a"},
                "spec": {"finalizers": finalizers}}))
        };
        let body = with(json!(["kubernetes", "a/b"])).expect("another finalizer");
        assert_eq!(body["spec"]["finalizers"], json!(["kubernetes"]));
        let body = with(json!(["a/b"])).expect("another finalizer");
        assert_eq!(body["spec"]["finalizers"], json!([]));
        assert_eq!(with(json!(["kubernetes"])), None);
        assert_eq!(finalized(&json!({"metadata": {"name": "a"}})), None);
    }

    #[test]
    fn a_name_is_one_step_of_a_path() {
        assert_eq!(escaped("a-b.c"), "a-b.c");
        assert_eq!(escaped("a:b é"), "a%3Ab%20%C3%A9");
    }
}

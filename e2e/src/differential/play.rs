//! Puts cases to a server.

use std::collections::BTreeSet;
use std::time::Duration;

use fivespot_clock::Clock;
use http::Request as HttpRequest;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::case::{Case, Request};
use super::compare::Answer;
use super::seed::Seed;
use crate::record::Trouble;
use crate::record::mask::Mask;

/// How often a server is asked for what its controllers make.
const TRIES: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// A server.
pub(super) struct Server {
    client: Client,
}

/// An answer as it came.
struct Raw {
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

impl Raw {
    /// The name of the object that was made or changed.
    fn name(&self) -> Option<String> {
        let done = (200..300).contains(&self.code);
        let name = self.body["metadata"]["name"].as_str().filter(|_| done)?;
        Some(name.to_owned())
    }
}

impl Server {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Makes the namespaces and definitions that the seeds need, and waits until they can be
    /// used.
    ///
    /// # Errors
    /// The server cannot be asked, or does not get there.
    pub(super) async fn prepare(
        &self,
        seeds: &[Seed],
        setup: &[Value],
    ) -> Result<(), Trouble> {
        for namespace in seeds.iter().filter_map(Seed::namespace) {
            let body = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace}});
            self.made("/api/v1/namespaces", body).await?;
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
            self.until_there(&path).await?;
        }
        for definition in setup {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            self.made(path, definition.clone()).await?;
            let spec = &definition["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let group = text(&spec["group"]);
            let version = text(&spec["versions"][0]["name"]);
            let plural = text(&spec["names"]["plural"]);
            let path = format!("/apis/{group}/{version}/{plural}");
            self.until_there(&path).await?;
        }
        Ok(())
    }

    async fn made(&self, path: &str, body: Value) -> Result<(), Trouble> {
        let raw = self.send(&plain("POST", path, Some(body))).await?;
        if raw.code == 201 || raw.code == 409 {
            return Ok(());
        }
        Err(format!("{path}: {} {}", raw.code, raw.body).into())
    }

    async fn until_there(&self, path: &str) -> Result<(), Trouble> {
        for _ in 0..TRIES {
            if self.send(&plain("GET", path, None)).await?.code == 200 {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("{path} does not come").into())
    }

    /// The answers to the requests of a case. The object is gone afterwards.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn play(&self, case: &Case<'_>) -> Result<Vec<Answer>, Trouble> {
        let mut mask = Mask::new(Clock::system().now());
        let mut version = String::new();
        let mut answers = Vec::new();
        let mut names = BTreeSet::from([case.name()]);
        for step in &case.steps {
            let mut raw = self.send(&case.request(step, &version)).await?;
            let told = raw.body["metadata"]["resourceVersion"].as_str();
            if let Some(told) = told.filter(|it| !it.is_empty()) {
                told.clone_into(&mut version);
            }
            names.extend(raw.name());
            mask.apply(&mut raw.body);
            answers.push(Answer::new(raw.code, raw.body, raw.warnings));
        }
        self.clear(case, &names).await?;
        Ok(answers)
    }

    async fn clear(
        &self,
        case: &Case<'_>,
        names: &BTreeSet<String>,
    ) -> Result<(), Trouble> {
        for name in names {
            let path = format!("{}/{}", case.seed.collection(), escaped(name));
            let now = format!("{path}?gracePeriodSeconds=0");
            let raw = self.send(&plain("DELETE", &now, None)).await?;
            let finalizers = &raw.body["metadata"]["finalizers"];
            if raw.code == 404 || finalizers.is_null() {
                continue;
            }
            let body = json!({"metadata": {"finalizers": null}});
            let mut patch = plain("PATCH", &path, Some(body));
            patch.media = "application/merge-patch+json";
            self.send(&patch).await?;
        }
        Ok(())
    }

    /// The answer to a request. None is an answer too, with the code 0: a server that panics
    /// closes the connection.
    async fn send(&self, request: &Request) -> Result<Raw, Trouble> {
        for _ in 0..2 {
            // The first connection may have been closed because nobody used it.
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

    async fn send_once(&self, request: &Request) -> Result<Option<Raw>, Trouble> {
        let mut built = HttpRequest::builder()
            .method(request.method)
            .uri(&request.path)
            .header("user-agent", "differential");
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

/// A name as it is a step of a path.
fn escaped(name: &str) -> String {
    let step = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(step).collect()
}

fn plain(method: &'static str, path: &str, body: Option<Value>) -> Request {
    Request {
        method,
        path: path.to_owned(),
        media: "application/json",
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_step_of_a_path() {
        assert_eq!(escaped("a-b.c"), "a-b.c");
        assert_eq!(escaped("a:b é"), "a%3Ab%20%C3%A9");
    }
}

//! Sends the requests of a case to a server.

use std::collections::HashMap;
use std::time::Duration;

use http::Request as HttpRequest;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kubemu_clock::Clock;
use serde_json::{Value, json};

use super::corpus::{Case, Request, ResponseCondition};
use super::mask::Mask;
use super::{BoxError, pattern};

/// How a request is repeated that waits for a result.
#[derive(Clone, Copy, Debug)]
pub enum RetryMode {
    /// For a remote server: this long between two attempts.
    Pause(Duration),
    /// For a server in this process: its tasks run first.
    Yield,
}

impl RetryMode {
    /// The maximum number of attempts.
    fn max_attempts(self) -> u32 {
        match self {
            Self::Pause(_) => 600,
            Self::Yield => 2000,
        }
    }

    /// The timeout of a body. All events that a watch must report have happened before it begins,
    /// so the timeout only ends watches that should not have been accepted.
    fn body_timeout(self) -> Duration {
        match self {
            Self::Pause(_) => Duration::from_secs(20),
            Self::Yield => Duration::from_secs(2),
        }
    }

    async fn wait(self) {
        match self {
            Self::Pause(pause) => tokio::time::sleep(pause).await,
            Self::Yield => tokio::task::yield_now().await,
        }
    }
}

/// A server during one case.
pub struct Runner<'a> {
    client: Client,
    retry_mode: RetryMode,
    case: &'a Case,
    /// Responses by the id of their request, as received.
    responses: HashMap<String, Value>,
    /// Paths of the created cluster-scoped objects, oldest first.
    created: Vec<String>,
}

/// A response as received.
struct Raw {
    code: u16,
    headers: http::HeaderMap,
    body: Value,
}

impl<'a> Runner<'a> {
    /// Starts a case.
    pub fn new(client: Client, retry_mode: RetryMode, case: &'a Case) -> Self {
        Self {
            client,
            retry_mode,
            case,
            responses: HashMap::new(),
            created: Vec::new(),
        }
    }

    /// Sends every request and returns the recorded parts of the responses.
    ///
    /// # Errors
    /// A request of the setup is refused, or a request cannot be sent.
    pub async fn run(&mut self) -> Result<Vec<Value>, BoxError> {
        let namespace = Request {
            send: "POST /api/v1/namespaces".to_owned(),
            body: Some(json!({"metadata": {"name": "$ns"}})),
            ..Request::default()
        };
        for request in std::iter::once(&namespace).chain(&self.case.setup) {
            let raw = self.send(request).await?;
            let failed = request.until.is_none() && raw.code >= 300;
            if failed || !request.until.as_ref().is_none_or(|it| holds(it, &raw)) {
                let key = self.case.key();
                let (send, code, body) = (&request.send, raw.code, raw.body);
                return Err(format!("{key}: {send}: {code} {body}").into());
            }
        }
        let mut mask = Mask::new(Clock::system().now());
        let mut answers = Vec::new();
        for request in &self.case.steps {
            let raw = self.send(request).await?;
            answers.push(self.kept(request, raw, &mut mask));
        }
        Ok(answers)
    }

    /// Deletes the created objects that would affect other cases.
    ///
    /// # Errors
    /// A request cannot be sent, or an object is not removed.
    pub async fn clear(&mut self) -> Result<(), BoxError> {
        let namespaces = "/api/v1/namespaces/";
        for path in std::mem::take(&mut self.created).into_iter().rev() {
            let delete = Request {
                send: format!("DELETE {path}"),
                ..Request::default()
            };
            self.send(&delete).await?;
            // A namespace is removed when it is empty. Its name is not used again.
            if path.starts_with(namespaces) {
                continue;
            }
            let gone = Request {
                send: format!("GET {path}"),
                until: Some(ResponseCondition {
                    code: Some(404),
                    at: None,
                    is: None,
                }),
                ..Request::default()
            };
            if self.send(&gone).await?.code != 404 {
                return Err(format!("{path} still exists").into());
            }
        }
        Ok(())
    }

    async fn send(&mut self, request: &Request) -> Result<Raw, BoxError> {
        let mut max_attempts = 1;
        let raw = loop {
            let raw = self.send_once(request).await?;
            let done = request.until.as_ref().is_none_or(|it| holds(it, &raw));
            if done || max_attempts == self.retry_mode.max_attempts() {
                break raw;
            }
            max_attempts += 1;
            self.retry_mode.wait().await;
        };
        if !request.id.is_empty() {
            self.responses.insert(request.id.clone(), raw.body.clone());
        }
        Ok(raw)
    }

    async fn send_once(&mut self, request: &Request) -> Result<Raw, BoxError> {
        let line = self.filled(&request.send)?;
        let (method, path) = line
            .split_once(' ')
            .ok_or_else(|| format!("{line}: a method and a path are needed"))?;
        let path = path.replace(' ', "%20").replace('"', "%22");
        let mut built = HttpRequest::builder()
            .method(method)
            .uri(&path)
            .header("user-agent", "corpus");
        let media = media_type(&request.media);
        let body = self.body(request)?;
        if body.is_some() && !request.headers.contains_key("content-type") {
            built = built.header("content-type", media);
        }
        for (name, value) in &request.headers {
            built = built.header(name, self.filled(value)?);
        }
        let sent = built.body(Body::from(body.unwrap_or_default().into_bytes()))?;
        let answer = self.client.send(sent).await;
        let answer = answer.map_err(|error| format!("{line}: {error:?}"))?;
        let (head, body) = answer.into_parts();
        let body = if request.events > 0 && head.status.is_success() {
            events(body, request.events, self.retry_mode.body_timeout()).await?
        } else {
            let read =
                tokio::time::timeout(self.retry_mode.body_timeout(), body.collect())
                    .await;
            let read =
                read.map_err(|_| format!("{path}: the response did not end in time"));
            match read {
                Ok(read) => content(&read?.to_bytes(), &head.headers),
                Err(endless) => endless.into(),
            }
        };
        let raw = Raw {
            code: head.status.as_u16(),
            headers: head.headers,
            body,
        };
        self.note(&path, &raw);
        Ok(raw)
    }

    /// Remembers created cluster-scoped objects.
    fn note(&mut self, path: &str, raw: &Raw) {
        let path = path.split('?').next().unwrap_or_default();
        let name = raw.body["metadata"]["name"].as_str().unwrap_or_default();
        let inside = path.contains("/namespaces/");
        if raw.code != 201 || name.is_empty() || inside {
            return;
        }
        // The path of a POST is the collection's, that of an apply is the object's.
        let own = format!("/{name}");
        let created = path.strip_suffix(&own).unwrap_or(path);
        self.created.push(format!("{created}{own}"));
    }

    /// The recorded parts of a response.
    fn kept(&self, request: &Request, raw: Raw, mask: &mut Mask) -> Value {
        let mut body = raw.body;
        let patterns = |all: &[String]| -> Vec<String> {
            all.iter()
                .map(|it| it.replace("$ns", &self.case.namespace()))
                .collect()
        };
        if !request.keep.is_empty() && raw.code < 400 {
            body = pattern::select(&body, &patterns(&request.keep));
        }
        pattern::remove(&mut body, &patterns(&request.drop));
        mask.apply(&mut body);
        let mut kept = json!({"request": request.send, "code": raw.code});
        if !request.id.is_empty() {
            kept["id"] = request.id.as_str().into();
        }
        let header = |name: &str| -> Vec<&str> {
            let all = raw.headers.get_all(name).iter();
            all.filter_map(|it| it.to_str().ok()).collect()
        };
        let media = header("content-type").join(",");
        if media != "application/json" {
            kept["contentType"] = media.into();
        }
        for (key, name) in [("warnings", "warning"), ("retryAfter", "retry-after")] {
            let values = header(name);
            if !values.is_empty() {
                kept[key] = json!(values);
            }
        }
        kept["body"] = body;
        kept
    }

    fn body(&self, request: &Request) -> Result<Option<String>, BoxError> {
        if let Some(text) = &request.text {
            return self.filled(text).map(Some);
        }
        let mut body = if request.base.is_empty() {
            None
        } else {
            Some(self.case.object(&request.base)?)
        };
        if let Some(change) = &request.body {
            match &mut body {
                Some(body) => merge(body, change),
                None => body = Some(change.clone()),
            }
        }
        body.map(|mut it| {
            self.fill(&mut it)?;
            Ok(it.to_string())
        })
        .transpose()
    }

    fn fill(&self, value: &mut Value) -> Result<(), BoxError> {
        match value {
            Value::String(text) => *text = self.filled(text)?,
            Value::Array(items) => {
                for item in items {
                    self.fill(item)?;
                }
            }
            Value::Object(fields) => {
                for (key, mut below) in std::mem::take(fields) {
                    self.fill(&mut below)?;
                    fields.insert(self.filled(&key)?, below);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Replaces the placeholders in a text.
    fn filled(&self, text: &str) -> Result<String, BoxError> {
        let mut filled = text.replace("$ns", &self.case.namespace());
        while let Some((before, rest)) = filled.split_once("${") {
            let (inner, after) = rest.split_once('}').ok_or("${ without a closing }")?;
            let (id, pointer) = inner.split_once('/').unwrap_or((inner, ""));
            let responses = self.responses.get(id);
            let responses =
                responses.ok_or_else(|| format!("{}: no {id}", self.case.key()))?;
            let found = responses.pointer(&format!("/{pointer}"));
            let found = match found {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => return Err(format!("{}: no {inner}", self.case.key()).into()),
            };
            filled = format!("{before}{found}{after}");
        }
        Ok(filled)
    }
}

fn holds(until: &ResponseCondition, raw: &Raw) -> bool {
    let code = until.code.is_none_or(|it| it == raw.code);
    let Some(at) = &until.at else {
        return code;
    };
    let found = raw.body.pointer(at);
    code && match &until.is {
        Some(wanted) => found == Some(wanted),
        None => found.is_some(),
    }
}

fn media_type(word: &str) -> &str {
    match word {
        "" | "json" => "application/json",
        "yaml" => "application/yaml",
        "merge" => "application/merge-patch+json",
        "json-patch" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        other => other,
    }
}

/// Parses a body as JSON or YAML. Other bodies are texts.
fn content(bytes: &[u8], headers: &http::HeaderMap) -> Value {
    let text = String::from_utf8_lossy(bytes);
    let media = headers.get("content-type").and_then(|it| it.to_str().ok());
    let read = match media {
        Some("application/yaml") => serde_saphyr::from_str(&text).ok(),
        _ => serde_json::from_str(&text).ok(),
    };
    read.unwrap_or_else(|| text.into())
}

/// The first events of a watch that arrive within `body_timeout`.
async fn events(
    mut body: Body,
    wanted: usize,
    body_timeout: Duration,
) -> Result<Value, BoxError> {
    let mut events = Vec::new();
    let mut unread = Vec::new();
    let reading = async {
        while events.len() < wanted {
            let Some(frame) = body.frame().await else {
                break;
            };
            unread.extend(frame?.into_data().unwrap_or_default());
            while let Some(end) = unread.iter().position(|it| *it == b'\n') {
                let line: Vec<u8> = unread.drain(..=end).collect();
                events.push(serde_json::from_slice::<Value>(&line)?);
            }
        }
        Ok::<_, BoxError>(())
    };
    if let Ok(done) = tokio::time::timeout(body_timeout, reading).await {
        done?;
    }
    events.truncate(wanted);
    Ok(json!({ "events": events }))
}

/// RFC 7386.
fn merge(target: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            fields.shift_remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

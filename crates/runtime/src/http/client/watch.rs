//! Lists and watches, object by object.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::time::Duration;

use kube::client::Body;
use kube::core::Status;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::response::{self, Deadline};
use super::{Address, ApiClient, Form, Request};
use crate::cache::{LEAN, MaskSeed, ValueLimit};
use crate::http::chunks::{EventSplitter, ListSplitter, SplitError};

/// After how long a server should end a watch, in seconds.
const WATCH_SECONDS: u64 = 290;

/// A watch from which nothing has arrived is given up this long after that.
const MARGIN: Duration = Duration::from_secs(5);

/// The result of a page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The list's version; empty if the server sent none.
    pub version: String,
    /// The continue token of the next page; empty after the last.
    pub next: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: Option<String>,
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// An event of a watch.
#[derive(Debug)]
pub enum WatchEvent {
    /// The object is new or has changed.
    Modified(Value),
    /// The object is gone; this is its last state.
    Deleted(Value),
    /// A bookmark: nothing has happened up to this version.
    Bookmark(String),
}

/// An event of a watch. Only as much of its object is read as is kept.
struct EventSeed<'a>(MaskSeed<'a>);

impl<'de> DeserializeSeed<'de> for EventSeed<'_> {
    type Value = (String, Value);

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<(String, Value), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventSeed<'_> {
    type Value = (String, Value);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut fields: A,
    ) -> Result<(String, Value), A::Error> {
        let (mut kind, mut object) = (String::new(), Value::Null);
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "type" => kind = fields.next_value()?,
                // Of an error, everything is read: the type comes first.
                "object" if kind == "ERROR" => {
                    let limit = ValueLimit::default();
                    object = fields.next_value_seed(LEAN.within(&limit))?;
                }
                "object" => object = fields.next_value_seed(self.0)?,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok((kind, object))
    }
}

impl ApiClient {
    /// Lists one page of a collection, selected by `query`, and calls `each` with each object as
    /// it is read, so that at most one is held as text.
    ///
    /// # Errors
    /// The server refuses, the response is cut off or is not a list, or `each` returns an error;
    /// the rest is not read.
    pub async fn page(
        &self,
        at: &Address<'_>,
        query: &[(&str, &str)],
        mut each: impl FnMut(Value) -> kube::Result<()>,
    ) -> kube::Result<Page> {
        let deadline = Deadline::of_request();
        let request = Request {
            accept: at.accept(Form::List),
            ..at.request("list", None, &query_string(query))
        };
        let response = self.exchange(request, deadline).await?;
        let mut body = response.into_body();
        let mut items = ListSplitter::default();
        while let Some(chunk) = deadline.bound(response::next_chunk(&mut body)).await? {
            items.push(&chunk, |item| -> Result<(), Stop> {
                each(at.parse(item)?).map_err(Stop::Error)
            })?;
            // A long list does not block other tasks.
            tokio::task::yield_now().await;
        }
        let meta = items.end().map_err(broken)?;
        let meta: ListMeta = match meta.as_slice() {
            [] => ListMeta::default(),
            text => serde_json::from_slice(text)
                .map_err(|error| response::parse_error(&error))?,
        };
        Ok(Page {
            version: meta.resource_version.unwrap_or_default(),
            next: meta.next.unwrap_or_default(),
        })
    }

    /// Watches a collection from `version` on, selected by `query`.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn watch(
        &self,
        at: &Address<'_>,
        query: &[(&str, &str)],
        version: &str,
    ) -> kube::Result<EventStream> {
        let seconds = WATCH_SECONDS.to_string();
        let mut query = query.to_vec();
        query.extend([
            ("watch", "true"),
            ("timeoutSeconds", &seconds),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
        ]);
        let request = Request {
            accept: at.accept(Form::Object),
            ..at.request("watch", None, &query_string(&query))
        };
        let response = self.exchange(request, Deadline::of_request()).await?;
        Ok(EventStream {
            body: response.into_body(),
            lines: EventSplitter::default(),
            complete: VecDeque::new(),
        })
    }
}

/// A running watch.
#[derive(Debug)]
pub struct EventStream {
    body: Body,
    lines: EventSplitter,
    complete: VecDeque<Vec<u8>>,
}

impl EventStream {
    /// The next event of the watch at `at`; `None` once it has ended, or has been silent for
    /// longer than it may last.
    ///
    /// # Errors
    /// It is cut off, or sends an error.
    pub async fn next(&mut self, at: &Address<'_>) -> kube::Result<Option<WatchEvent>> {
        let limit = Duration::from_secs(WATCH_SECONDS) + MARGIN;
        loop {
            if let Some(line) = self.complete.pop_front() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return parse_event(at, &line).map(Some);
            }
            let Ok(chunk) =
                tokio::time::timeout(limit, response::next_chunk(&mut self.body)).await
            else {
                return Ok(None);
            };
            match chunk {
                Ok(Some(chunk)) => {
                    self.complete
                        .extend(self.lines.push(&chunk).map_err(broken)?);
                }
                Ok(None) => return Ok(None),
                Err(error) if response::is_end_of_watch(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

fn parse_event(at: &Address<'_>, line: &[u8]) -> kube::Result<WatchEvent> {
    let mut text = serde_json::Deserializer::from_slice(line);
    let limit = ValueLimit::default();
    let read = EventSeed(at.mask().within(&limit)).deserialize(&mut text);
    let (kind, object) = read.map_err(|error| response::parse_error(&error))?;
    at.check(&limit)?;
    match kind.as_str() {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Modified(object)),
        "DELETED" => Ok(WatchEvent::Deleted(object)),
        "BOOKMARK" => {
            let version = object["metadata"]["resourceVersion"].as_str();
            Ok(WatchEvent::Bookmark(version.unwrap_or_default().to_owned()))
        }
        _ => {
            let status = response::parse_status(object.to_string().as_bytes());
            let status = status.unwrap_or_else(|| Status::failure("", "").with_code(500));
            Err(kube::Error::Api(Box::new(status)))
        }
    }
}

/// Why a page is not read to its end.
enum Stop {
    Split(SplitError),
    Error(kube::Error),
}

impl From<SplitError> for Stop {
    fn from(why: SplitError) -> Self {
        Self::Split(why)
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        Self::Error(error)
    }
}

impl From<Stop> for kube::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Split(why) => broken(why),
            Stop::Error(error) => error,
        }
    }
}

fn broken(why: SplitError) -> kube::Error {
    kube::Error::Service(Box::new(why))
}

/// A query as part of a URL.
fn query_string(query: &[(&str, &str)]) -> String {
    let pairs = query
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encode(value)));
    match pairs.collect::<Vec<_>>().join("&") {
        none if none.is_empty() => none,
        pairs => format!("?{pairs}"),
    }
}

/// A value as part of a query: each character with a meaning there is escaped.
fn percent_encode(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/!".contains(&byte);
    let mut text = String::new();
    for byte in value.bytes() {
        if plain(byte) {
            text.push(byte.into());
        } else {
            // Writing to a string never fails.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

//! One watch: past events first, then new ones.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kubemu_clock::Busy;
use serde_json::{Value, json};

use crate::broadcaster::{ChangeEvent, EventKind, Subscription};
use crate::conversion::{self, Conversion, ConversionCall, ConversionResults};
use crate::meta;
use crate::resource::Resource;
use crate::status::Status;
use crate::store::Object;

/// The interval of bookmarks of an idle watch that allows them, by the machine's clock.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// A running watch.
///
/// Each event holds a virtual clock from the write until the next poll after its delivery:
/// that poll indicates that the event has been handled.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) resource: Arc<Resource>,
    conversion: Conversion,
    /// An event whose object is being converted by a webhook.
    converting: Option<PendingConversion>,
    backlog: VecDeque<Event>,
    live: Option<Subscription>,
    /// Held while there is a backlog, or an event that is being handled.
    busy: Vec<Busy>,
    version: u64,
    bookmarks: bool,
    /// By the machine's clock, so that a client's timeout is real time.
    timeout: Option<Duration>,
    deadline: Option<Pin<Box<tokio::time::Sleep>>>,
    bookmark_due: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// The webhook call that converts the object of an event.
struct PendingConversion {
    kind: EventKind,
    result: Pin<Box<dyn Future<Output = ConversionOutcome> + Send>>,
}

/// The original version, and the converted object.
type ConversionOutcome = (String, Result<Value, String>);

impl PendingConversion {
    fn new(kind: EventKind, call: ConversionCall) -> Self {
        let result = async move {
            let from = call.object["apiVersion"].as_str().unwrap_or_default();
            let from = from.to_owned();
            let mut results = ConversionResults::default();
            conversion::call_webhooks(vec![call.clone()], &mut results).await;
            let result = results.remove(&call);
            (
                from,
                result.unwrap_or_else(|| Err("no response".to_owned())),
            )
        };
        Self {
            kind,
            result: Box::pin(result),
        }
    }
}

impl fmt::Debug for PendingConversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingConversion")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// One event to send.
#[derive(Debug)]
pub(crate) enum Event {
    /// A write, in the storage version.
    Changed(ChangeEvent),
    /// An object that existed when the watch started.
    Initial(Object),
    /// A converted event, in the version of the watch.
    Converted(EventKind, Object),
    /// A resourceVersion to resume from.
    Bookmark(Object),
    /// An error that ends the watch.
    Error(Status),
}

/// The initial values of a watch.
#[derive(Debug)]
pub(crate) struct WatchParameters {
    pub(crate) resource: Arc<Resource>,
    pub(crate) conversion: Conversion,
    pub(crate) backlog: VecDeque<Event>,
    pub(crate) live: Subscription,
    pub(crate) busy: Option<Busy>,
    pub(crate) version: u64,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Option<Duration>,
}

impl Watch {
    pub(crate) fn open(parameters: WatchParameters) -> Self {
        Self {
            resource: parameters.resource,
            conversion: parameters.conversion,
            converting: None,
            backlog: parameters.backlog,
            live: Some(parameters.live),
            busy: parameters.busy.into_iter().collect(),
            version: parameters.version,
            bookmarks: parameters.bookmarks,
            timeout: parameters.timeout,
            deadline: None,
            bookmark_due: None,
        }
    }

    /// A watch that returns an error and ends.
    pub(crate) fn refused(resource: Arc<Resource>, why: Status) -> Self {
        Self {
            resource,
            conversion: Conversion::default(),
            converting: None,
            backlog: VecDeque::from([Event::Error(why)]),
            live: None,
            busy: Vec::new(),
            version: 0,
            bookmarks: false,
            timeout: None,
            deadline: None,
            bookmark_due: None,
        }
    }

    /// The next event; `None` if the watch has ended. The previously delivered event counts as
    /// handled.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Some(pending) = &mut self.converting {
            let kind = pending.kind;
            let result = ready!(pending.result.as_mut().poll(cx));
            self.converting = None;
            return Poll::Ready(Some(self.finish_conversion(kind, result)));
        }
        if let Some(event) = self.backlog.pop_front() {
            return self.convert(event, cx);
        }
        self.busy.clear();
        let Some(live) = &mut self.live else {
            return Poll::Ready(None);
        };
        let published = live.published.load(Ordering::Acquire);
        match live.events.poll_recv(cx) {
            Poll::Ready(Some(delivery)) => {
                drop(delivery.undelivered);
                self.busy.extend(delivery.busy);
                self.version = delivery.event.change.version;
                return self.convert(Event::Changed(delivery.event), cx);
            }
            Poll::Ready(None) => {
                self.live = None;
                return Poll::Ready(None);
            }
            // A bookmark is as new as the last write, as Kubernetes' are: the version of the last
            // event may be too old when a client resumes from it.
            Poll::Pending => self.version = self.version.max(published),
        }
        self.poll_timers(cx)
    }

    /// Converts the object of an event to the version of the watch. If that fails, the watch
    /// ends with the error.
    fn convert(&mut self, event: Event, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let (kind, object) = match &event {
            Event::Changed(it) => (it.kind, it.object()),
            Event::Initial(object) => (EventKind::Added, object),
            Event::Converted(..) | Event::Bookmark(_) | Event::Error(_) => {
                return Poll::Ready(Some(event));
            }
        };
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        if self.resource.is_served_as(api_version) {
            return Poll::Ready(Some(event));
        }
        let requested = self.resource.api_version();
        let converted =
            match self
                .conversion
                .webhook_call(&self.resource, object, &requested)
            {
                None => self.conversion.in_version_of(&self.resource, object),
                Some(Ok(call)) => {
                    self.converting = Some(PendingConversion::new(kind, call));
                    return self.poll_event(cx);
                }
                Some(Err(why)) => Err(conversion::conversion_error(
                    &self.resource,
                    api_version,
                    &why,
                )),
            };
        Poll::Ready(Some(self.event_or_end(kind, converted)))
    }

    fn finish_conversion(
        &mut self,
        kind: EventKind,
        (from, result): ConversionOutcome,
    ) -> Event {
        let api_version = self.resource.api_version();
        let converted = result
            .map(|it| Arc::new(self.conversion.finish(it, &api_version)))
            .map_err(|why| conversion::conversion_error(&self.resource, &from, &why));
        self.event_or_end(kind, converted)
    }

    fn event_or_end(
        &mut self,
        kind: EventKind,
        converted: Result<Object, Status>,
    ) -> Event {
        match converted {
            Ok(object) => Event::Converted(kind, object),
            Err(refused) => {
                self.backlog.clear();
                self.live = None;
                Event::Error(refused)
            }
        }
    }

    fn poll_timers(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Some(timeout) = self.timeout {
            let deadline = self
                .deadline
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
            if deadline.as_mut().poll(cx).is_ready() {
                self.live = None;
                return Poll::Ready(self.bookmarks.then(|| self.bookmark()));
            }
        }
        if self.bookmarks {
            let due = self
                .bookmark_due
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(BOOKMARK_INTERVAL)));
            if due.as_mut().poll(cx).is_ready() {
                self.bookmark_due = None;
                return Poll::Ready(Some(self.bookmark()));
            }
        }
        Poll::Pending
    }

    fn bookmark(&self) -> Event {
        Event::Bookmark(bookmark(&self.resource, self.version, false))
    }
}

/// A bookmark at `version`; the one after the initial events has the annotation for it.
pub(crate) fn bookmark(resource: &Resource, version: u64, ends_initial: bool) -> Object {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if ends_initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    // Kubernetes sends an otherwise empty object of the kind; for a custom resource it
    // includes the null creation timestamp.
    if resource.custom {
        metadata["creationTimestamp"] = Value::Null;
    }
    Arc::new(json!({
        "kind": resource.kind,
        "apiVersion": resource.api_version(),
        "metadata": metadata,
    }))
}

impl Event {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Changed(it) => it.kind.as_str(),
            Self::Initial(_) => EventKind::Added.as_str(),
            Self::Converted(kind, _) => kind.as_str(),
            Self::Bookmark(_) => EventKind::Bookmark.as_str(),
            Self::Error(_) => "ERROR",
        }
    }

    /// The object; `None` for an error.
    pub(crate) fn object(&self) -> Option<&Object> {
        match self {
            Self::Changed(it) => Some(it.object()),
            Self::Initial(object)
            | Self::Converted(_, object)
            | Self::Bookmark(object) => Some(object),
            Self::Error(_) => None,
        }
    }

    /// The event as one line of JSON.
    pub(crate) fn line(&self) -> Vec<u8> {
        let object = match self {
            Self::Error(status) => meta::json(&status.to_value()),
            Self::Changed(it) if it.object.is_none() => it.change.json().clone(),
            _ => self.object().map(|it| meta::json(it)).unwrap_or_default(),
        };
        frame(self.kind(), &object)
    }
}

/// `{"type":…,"object":…}` and a newline.
pub(crate) fn frame(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line
}

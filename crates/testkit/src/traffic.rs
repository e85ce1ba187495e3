//! A client that records the traffic between an operator and a remote server: the requests, and
//! whether any are in flight.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Method, Request, Response, Uri};
use http_body::{Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use kubemu_apiserver::AuditEvent;
use kubemu_clock::Clock;
use tower::Service;

use crate::Cluster;
use crate::cluster::BackendState;
use crate::shared_cluster::POLL_INTERVAL;

/// How long there must be no traffic before the cluster counts as idle, if responses are
/// immediate.
const SILENCE: Duration = Duration::from_millis(400);
/// The multiple of the slowest recent response that is added to it: on a busy machine, Cluster
/// API is slow too.
const LATENCY_FACTOR: u32 = 4;
/// The maximum silence to wait for.
const MAX_SILENCE: Duration = Duration::from_secs(6);

/// The recorded traffic between an operator and its servers.
#[derive(Clone, Debug)]
pub(crate) struct Traffic(Arc<Mutex<TrafficLog>>);

#[derive(Debug)]
struct TrafficLog {
    clock: Clock,
    /// The suffix of the names of the test's own Nodes.
    suffix: String,
    events: Vec<AuditEvent>,
    last: Instant,
    /// The duration of the slowest recent response, which decays.
    slowest: Duration,
}

impl Traffic {
    /// No traffic yet. `clock` provides the times of requests. The names of the test's own
    /// Nodes end with `suffix`: events of other tests' Nodes, which every watch of Nodes has,
    /// are ignored.
    pub(crate) fn new(clock: Clock, suffix: String) -> Self {
        Self(Arc::new(Mutex::new(TrafficLog {
            clock,
            suffix,
            events: Vec::new(),
            last: Instant::now(),
            slowest: Duration::ZERO,
        })))
    }

    fn log(&self) -> MutexGuard<'_, TrafficLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every request with a response so far, in the order of the responses.
    pub(crate) fn events(&self) -> Vec<AuditEvent> {
        self.log().events.clone()
    }

    /// The same since the last call; they are removed.
    pub(crate) fn take_events(&self) -> Vec<AuditEvent> {
        std::mem::take(&mut self.log().events)
    }

    /// Whether there has been no traffic for so long that the clock may be advanced.
    pub(crate) fn is_settled(&self) -> bool {
        let log = self.log();
        let silence = SILENCE + log.slowest * LATENCY_FACTOR;
        log.last.elapsed() >= silence.min(MAX_SILENCE)
    }

    /// Waits until that is the case, and the operator is idle.
    pub(crate) async fn settle(&self) {
        let clock = self.log().clock.clone();
        loop {
            clock.wait_until_idle().await;
            if self.is_settled() {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn record_activity(&self) {
        self.log().last = Instant::now();
    }

    /// Records an event of a watch of all Nodes.
    fn record_node(&self, event: &[u8]) {
        let mut log = self.log();
        let suffix = log.suffix.as_bytes();
        if suffix.is_empty() || event.windows(suffix.len()).any(|part| part == suffix) {
            log.last = Instant::now();
        }
    }

    /// Records the response to a request that was sent at `sent`.
    fn record(&self, mut event: AuditEvent, code: u16, sent: Instant) {
        let mut log = self.log();
        log.slowest = sent.elapsed().max(log.slowest * 7 / 8);
        event.code = code;
        event.at = log.clock.now();
        log.events.push(event);
        log.last = Instant::now();
    }
}

/// A client whose requests and responses are recorded.
#[derive(Clone)]
pub(crate) struct RecordingClient {
    client: Client,
    user: &'static str,
    traffic: Traffic,
}

impl RecordingClient {
    /// Wraps `client` and records its requests as those of `user`.
    pub(crate) fn new(client: Client, user: &'static str, traffic: Traffic) -> Self {
        Self {
            client,
            user,
            traffic,
        }
    }
}

impl fmt::Debug for RecordingClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RecordingClient")
            .finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for RecordingClient {
    type Response = Response<RecordedBody>;
    type Error = kube::Error;
    type Future =
        Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self {
            client,
            user,
            traffic,
        } = self.clone();
        Box::pin(async move {
            traffic.record_activity();
            let sent = Instant::now();
            let event = audit_event(user, request.method(), request.uri());
            let is_shared = event.verb == "watch" && event.resource == "nodes";
            let response = client.send(request).await?;
            traffic.record(event, response.status().as_u16(), sent);
            Ok(response.map(|body| RecordedBody {
                body,
                traffic,
                is_shared,
            }))
        })
    }
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct RecordedBody {
    body: Body,
    traffic: Traffic,
    /// Whether the watch also returns objects of other tests.
    is_shared: bool,
}

impl http_body::Body for RecordedBody {
    type Data = <Body as http_body::Body>::Data;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) if self.is_shared => {
                let event = frame.data_ref().map(AsRef::as_ref);
                self.traffic.record_node(event.unwrap_or_default());
            }
            Poll::Ready(_) => self.traffic.record_activity(),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The parts of a path after the version: the group and the namespace, each empty if absent,
/// and resource, name and subresource.
fn parts(path: &str) -> (&str, &str, Vec<&str>) {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => ("", [].as_slice()),
    };
    match rest {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            (group, namespace, rest.to_vec())
        }
        _ => (group, "", rest.to_vec()),
    }
}

/// The resource of a path; empty if there is none.
pub(crate) fn resource(path: &str) -> &str {
    let (_, _, rest) = parts(path);
    rest.first().copied().unwrap_or_default()
}

/// The audit event of a request, from its method and URI.
pub(crate) fn audit_event(user: &str, method: &Method, uri: &Uri) -> AuditEvent {
    let (group, namespace, rest) = parts(uri.path());
    let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
    let is_watch = uri
        .query()
        .is_some_and(|query| query.split('&').any(|word| word.starts_with("watch=")));
    let verb = match (method.as_str(), part(1).is_empty()) {
        _ if rest.is_empty() => method.as_str().to_lowercase(),
        ("GET", _) if is_watch => "watch".to_owned(),
        ("GET", true) => "list".to_owned(),
        ("POST", _) => "create".to_owned(),
        ("PUT", _) => "update".to_owned(),
        ("DELETE", true) => "deletecollection".to_owned(),
        (other, _) => other.to_lowercase(),
    };
    AuditEvent {
        at: jiff::Timestamp::UNIX_EPOCH,
        user: user.to_owned(),
        impersonated: String::new(),
        verb,
        path: uri.path().to_owned(),
        group: group.to_owned(),
        resource: part(0),
        subresource: part(2),
        namespace: namespace.to_owned(),
        name: part(1),
        label_selector: label_selector(uri),
        code: 0,
        annotations: std::collections::BTreeMap::new(),
    }
}

/// The label selector of a query, decoded from kube's encoding.
fn label_selector(uri: &Uri) -> String {
    let mut words = uri.query().unwrap_or_default().split('&');
    let selector = words.find_map(|word| word.strip_prefix("labelSelector="));
    let decode = |selector: &str| {
        [("%2F", "/"), ("%3D", "="), ("%2C", ",")]
            .iter()
            .fold(selector.to_owned(), |text, (code, sign)| {
                text.replace(code, sign)
            })
    };
    selector.map_or_else(String::new, decode)
}

impl Cluster {
    /// Every request since the last call, in the order of the responses; they are removed. For
    /// a test that is so long that they would exhaust the memory. On a real cluster only those
    /// of the operator.
    pub fn take_requests(&self) -> Vec<AuditEvent> {
        match self.backend() {
            BackendState::Embedded(embedded) => embedded.take_requests(),
            BackendState::Kubernetes(real) => real.traffic.take_events(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_other_tests_nodes_are_ignored() {
        let traffic = Traffic::new(Clock::system(), ".e2e-1".to_owned());
        let long_ago = Instant::now().checked_sub(SILENCE * 2).unwrap();
        traffic.log().last = long_ago;
        traffic.record_node(br#"{"object":{"metadata":{"name":"worker.e2e-2"}}}"#);
        assert_eq!(traffic.log().last, long_ago);
        traffic.record_node(br#"{"object":{"metadata":{"name":"worker.e2e-1"}}}"#);
        assert!(traffic.log().last > long_ago);
    }

    #[test]
    fn a_request_is_parsed_as_by_the_server() {
        let parsed = |method: &str, path: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let event = audit_event("me", &method, &path.parse().unwrap());
            format!(
                "{} {:?} {}/{} {} in {:?}",
                event.verb,
                event.group,
                event.resource,
                event.subresource,
                event.name,
                event.namespace
            )
        };
        let pods = "/api/v1/namespaces/a/pods";
        assert_eq!(
            parsed("POST", &format!("{pods}/x/eviction?")),
            r#"create "" pods/eviction x in "a""#
        );
        assert_eq!(parsed("GET", pods), r#"list "" pods/  in "a""#);
        assert_eq!(
            parsed("GET", &format!("{pods}?labelSelector=a&watch=true")),
            r#"watch "" pods/  in "a""#
        );
        assert_eq!(
            parsed("PATCH", "/api/v1/nodes/n/status"),
            r#"patch "" nodes/status n in """#
        );
        assert_eq!(
            parsed(
                "DELETE",
                "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/m"
            ),
            r#"delete "cluster.x-k8s.io" machines/ m in "a""#
        );
        assert_eq!(
            parsed("GET", "/api/v1/namespaces/a"),
            r#"get "" namespaces/ a in """#
        );
        assert_eq!(parsed("GET", "/version"), r#"get "" /  in """#);
    }
}

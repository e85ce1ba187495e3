//! A client that records the traffic between an operator and a remote server: the requests, and
//! whether any are in flight.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fivespot_apiserver::AuditEvent;
use fivespot_clock::Clock;
use http::{Method, Request, Response, Uri};
use http_body::{Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use tower::Service;

use crate::Cluster;
use crate::cluster::Ground;
use crate::site::TICK;

/// How long there must be no traffic before the cluster counts as idle, if responses are
/// immediate.
const SILENCE: Duration = Duration::from_millis(400);
/// The multiple of the slowest recent response that is added to it: on a busy machine, Cluster
/// API is slow too.
const LATENESS: u32 = 4;
/// The maximum silence to wait for.
const LONGEST_SILENCE: Duration = Duration::from_secs(6);

/// The recorded traffic between an operator and its servers.
#[derive(Clone, Debug)]
pub(crate) struct Traffic(Arc<Mutex<Passed>>);

#[derive(Debug)]
struct Passed {
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
        Self(Arc::new(Mutex::new(Passed {
            clock,
            suffix,
            events: Vec::new(),
            last: Instant::now(),
            slowest: Duration::ZERO,
        })))
    }

    fn passed(&self) -> MutexGuard<'_, Passed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every request with a response so far, in the order of the responses.
    pub(crate) fn events(&self) -> Vec<AuditEvent> {
        self.passed().events.clone()
    }

    /// The same since the last call; they are removed.
    pub(crate) fn take_events(&self) -> Vec<AuditEvent> {
        std::mem::take(&mut self.passed().events)
    }

    /// Whether there has been no traffic for so long that the clock may be advanced.
    pub(crate) fn is_settled(&self) -> bool {
        let passed = self.passed();
        let silence = SILENCE + passed.slowest * LATENESS;
        passed.last.elapsed() >= silence.min(LONGEST_SILENCE)
    }

    /// Waits until that is the case, and the operator is idle.
    pub(crate) async fn settle(&self) {
        let clock = self.passed().clock.clone();
        loop {
            clock.quiet().await;
            if self.is_settled() {
                return;
            }
            tokio::time::sleep(TICK).await;
        }
    }

    fn stir(&self) {
        self.passed().last = Instant::now();
    }

    /// Records an event of a watch of all Nodes.
    fn record_node(&self, event: &[u8]) {
        let mut passed = self.passed();
        let own = passed.suffix.as_bytes();
        if own.is_empty() || event.windows(own.len()).any(|part| part == own) {
            passed.last = Instant::now();
        }
    }

    /// Records the response to a request that was sent at `sent`.
    fn record(&self, mut event: AuditEvent, code: u16, sent: Instant) {
        let mut passed = self.passed();
        passed.slowest = sent.elapsed().max(passed.slowest * 7 / 8);
        event.code = code;
        event.at = passed.clock.now();
        passed.events.push(event);
        passed.last = Instant::now();
    }
}

/// A client whose requests and responses are recorded.
#[derive(Clone)]
pub(crate) struct Wire {
    client: Client,
    user: &'static str,
    traffic: Traffic,
}

impl Wire {
    /// Wraps `client` and records its requests as those of `user`.
    pub(crate) fn new(client: Client, user: &'static str, traffic: Traffic) -> Self {
        Self {
            client,
            user,
            traffic,
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Response<Noted>;
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
            traffic.stir();
            let sent = Instant::now();
            let asked = asked(user, request.method(), request.uri());
            let is_shared = asked.verb == "watch" && asked.resource == "nodes";
            let answer = client.send(request).await?;
            traffic.record(asked, answer.status().as_u16(), sent);
            Ok(answer.map(|body| Noted {
                body,
                traffic,
                is_shared,
            }))
        })
    }
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct Noted {
    body: Body,
    traffic: Traffic,
    /// Whether the watch also returns objects of other tests.
    is_shared: bool,
}

impl http_body::Body for Noted {
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
            Poll::Ready(_) => self.traffic.stir(),
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
pub(crate) fn asked(user: &str, method: &Method, uri: &Uri) -> AuditEvent {
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
    let said = words.find_map(|word| word.strip_prefix("labelSelector="));
    let decode = |said: &str| {
        [("%2F", "/"), ("%3D", "="), ("%2C", ",")]
            .iter()
            .fold(said.to_owned(), |text, (code, sign)| {
                text.replace(code, sign)
            })
    };
    said.map_or_else(String::new, decode)
}

impl Cluster {
    /// Every request since the last call, in the order of the responses; they are removed. For
    /// a test that is so long that they would exhaust the memory. On a real cluster only those
    /// of the operator.
    pub fn take_requests(&self) -> Vec<AuditEvent> {
        match self.ground() {
            Ground::Embedded(embedded) => embedded.take_requests(),
            Ground::Kubernetes(real) => real.traffic.take_events(),
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
        traffic.passed().last = long_ago;
        traffic.record_node(br#"{"object":{"metadata":{"name":"worker.e2e-2"}}}"#);
        assert_eq!(traffic.passed().last, long_ago);
        traffic.record_node(br#"{"object":{"metadata":{"name":"worker.e2e-1"}}}"#);
        assert!(traffic.passed().last > long_ago);
    }

    #[test]
    fn a_request_is_parsed_as_by_the_server() {
        let said = |method: &str, path: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let event = asked("me", &method, &path.parse().unwrap());
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
            said("POST", &format!("{pods}/x/eviction?")),
            r#"create "" pods/eviction x in "a""#
        );
        assert_eq!(said("GET", pods), r#"list "" pods/  in "a""#);
        assert_eq!(
            said("GET", &format!("{pods}?labelSelector=a&watch=true")),
            r#"watch "" pods/  in "a""#
        );
        assert_eq!(
            said("PATCH", "/api/v1/nodes/n/status"),
            r#"patch "" nodes/status n in """#
        );
        assert_eq!(
            said(
                "DELETE",
                "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/m"
            ),
            r#"delete "cluster.x-k8s.io" machines/ m in "a""#
        );
        assert_eq!(
            said("GET", "/api/v1/namespaces/a"),
            r#"get "" namespaces/ a in """#
        );
        assert_eq!(said("GET", "/version"), r#"get "" /  in """#);
    }
}

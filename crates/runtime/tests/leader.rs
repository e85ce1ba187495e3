//! A replica that takes part in a leader election on a server, on a virtual clock.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::{Arc, Mutex};

use fivespot_runtime::http::ApiClient;
use fivespot_runtime::lease::{
    Fence, Lease, LeaseTiming, Observer, Ownership, Replica, Role, run_leader_election,
};
use fivespot_runtime::queue::Backoff;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kubemu_apiserver::{Options, Server};
use kubemu_clock::Clock;
use tokio::sync::oneshot;

/// Records the failures.
#[derive(Default)]
struct Failures(Mutex<Vec<String>>);

impl Observer for Failures {
    fn role(&self, _role: Role) {}
    fn gained(&self) {}
    fn failed(&self, _what: &'static str, error: &str) {
        self.0.lock().unwrap().push(error.to_owned());
    }
}

#[tokio::test]
async fn a_missing_namespace_is_reported() {
    let clock = Clock::stopped_at(Timestamp::UNIX_EPOCH);
    let server = Server::new(Options::new(clock.clone())).unwrap();
    let failures = Arc::new(Failures::default());
    let replica = Replica {
        client: ApiClient::new(Client::new(server.in_process(), "default"), "test"),
        fence: Arc::new(Fence::new(clock.clone(), Ownership::Nothing)),
        clock: clock.clone(),
        backoff: Backoff::seeded(7),
        identity: "pod-0".to_owned(),
        lease: Lease {
            namespace: "not-there".to_owned(),
            name: "leader".to_owned(),
            timing: LeaseTiming::default(),
        },
        observer: failures.clone(),
    };
    let (_leave, left) = oneshot::channel();
    let task = tokio::spawn(run_leader_election(replica, left));
    clock
        .advance_to(clock.now() + SignedDuration::from_mins(1))
        .await;
    task.abort();
    let failures = failures.0.lock().unwrap();
    assert_eq!(
        failures.first().map(String::as_str),
        Some("namespaces \"not-there\" not found")
    );
    // A failed request is retried after the retry period.
    assert!(failures.len() <= 60, "{} requests a minute", failures.len());
}

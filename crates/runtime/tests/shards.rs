//! Replicas that divide shards among them on a server, on a virtual clock: no object ever has two
//! owners, and after every fault each object soon has one.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fivespot_runtime::http::ApiClient;
use fivespot_runtime::lease::{
    Fence, Lease, LeaseTiming, Observer, Ownership, Replica, Role, ShardNames,
    run_sharding,
};
use fivespot_runtime::queue::Backoff;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use kubemu_apiserver::{Options, Server};
use kubemu_clock::Clock;
use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::Service;

/// How many objects there are. Each has its own uid.
const OBJECTS: u32 = 40;

fn start() -> Timestamp {
    "2026-03-06T21:30:00Z".parse().unwrap()
}

struct TestCluster {
    clock: Clock,
    server: Server,
    replicas: Vec<RunningReplica>,
    /// How many replicas there have been: each has its own name.
    started: usize,
}

/// One replica. Dropping it crashes it.
struct RunningReplica {
    fence: Arc<Fence>,
    is_cut_off: Arc<AtomicBool>,
    leave: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Drop for RunningReplica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct NoObserver;

impl Observer for NoObserver {
    fn role(&self, _role: Role) {}
    fn gained(&self) {}
    fn failed(&self, _what: &'static str, _error: &str) {}
}

impl TestCluster {
    fn new() -> Self {
        let clock = Clock::stopped_at(start());
        let server = Server::new(Options::new(clock.clone())).unwrap();
        Self {
            clock,
            server,
            replicas: Vec::new(),
            started: 0,
        }
    }

    /// Starts a replica with so many shards.
    fn start_replica(&mut self, count: u32) {
        let is_cut_off = Arc::new(AtomicBool::new(false));
        // Writes are lost while the replica is cut off.
        let (mut server, is_lost) = (self.server.in_process(), is_cut_off.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_write = request.method() != Method::GET;
            let is_lost = is_write && is_lost.load(Ordering::Relaxed);
            let response = (!is_lost).then(|| server.call(request));
            async move {
                match response {
                    Some(response) => response.await,
                    None => std::future::pending().await,
                }
            }
        });
        let fence = Fence::new(self.clock.clone(), Ownership::Nothing);
        let fence = Arc::new(fence);
        let replica = Replica {
            client: ApiClient::new(Client::new(service, "default"), "test"),
            fence: fence.clone(),
            clock: self.clock.clone(),
            backoff: Backoff::seeded(7),
            identity: format!("pod-{}", self.started),
            lease: Lease {
                namespace: "default".to_owned(),
                name: String::new(),
                timing: LeaseTiming::default(),
            },
            observer: Arc::new(NoObserver),
        };
        let names = ShardNames {
            prefix: "x".to_owned(),
            label: "x.example/shards".to_owned(),
        };
        let (leave, left) = oneshot::channel();
        self.started += 1;
        self.replicas.push(RunningReplica {
            fence,
            is_cut_off,
            leave: Some(leave),
            task: tokio::spawn(run_sharding(replica, names, count, left)),
        });
    }

    /// Advances the clock by so many seconds, a quarter of a second at a time; panics if an
    /// object has two owners.
    async fn advance(&self, seconds: i64) {
        for _ in 0..seconds * 4 {
            let next = self.clock.now() + SignedDuration::from_millis(250);
            self.clock.advance_to(next).await;
            for owners in self.owners() {
                assert!(owners.len() <= 1, "{owners:?} own one object");
            }
        }
    }

    /// Which replicas own each object.
    fn owners(&self) -> Vec<Vec<usize>> {
        let owns = |index: &usize, object: u32| {
            let fence = &self.replicas[*index].fence;
            fence.covers(&format!("uid-{object}"))
        };
        (0..OBJECTS)
            .map(|object| {
                let all = 0..self.replicas.len();
                all.filter(|index| owns(index, object)).collect()
            })
            .collect()
    }

    /// How many objects each replica owns; panics if an object does not have one owner.
    fn objects_per_replica(&self) -> Vec<usize> {
        let mut shares = vec![0; self.replicas.len()];
        for owners in self.owners() {
            let [owner] = owners[..] else {
                panic!("an object is owned by {owners:?}");
            };
            shares[owner] += 1;
        }
        shares
    }

    async fn shut_down(&mut self, index: usize) {
        let mut leaving = self.replicas.remove(index);
        drop(leaving.leave.take());
        let _ = (&mut leaving.task).await;
    }
}

#[tokio::test]
async fn a_single_replica_owns_everything_at_once() {
    let mut cluster = TestCluster::new();
    cluster.start_replica(3);
    cluster.advance(1).await;
    assert_eq!(cluster.objects_per_replica(), [OBJECTS as usize]);
}

#[tokio::test]
async fn replicas_divide_everything_and_take_over_from_one_that_crashes() {
    let mut cluster = TestCluster::new();
    for _ in 0..3 {
        cluster.start_replica(3);
    }
    cluster.advance(5).await;
    assert!(cluster.objects_per_replica().iter().all(|share| *share > 0));
    drop(cluster.replicas.remove(1));
    cluster.advance(20).await;
    assert!(cluster.objects_per_replica().iter().all(|share| *share > 0));
    cluster.shut_down(0).await;
    cluster.advance(3).await;
    assert_eq!(cluster.objects_per_replica(), [OBJECTS as usize]);
}

#[tokio::test]
async fn a_replica_that_cannot_renew_owns_nothing_until_it_can_again() {
    let mut cluster = TestCluster::new();
    cluster.start_replica(2);
    cluster.start_replica(2);
    cluster.advance(5).await;
    cluster.replicas[0]
        .is_cut_off
        .store(true, Ordering::Relaxed);
    cluster.advance(20).await;
    assert_eq!(cluster.objects_per_replica(), [0, OBJECTS as usize]);
    cluster.replicas[0]
        .is_cut_off
        .store(false, Ordering::Relaxed);
    cluster.advance(30).await;
    assert!(cluster.objects_per_replica().iter().all(|share| *share > 0));
}

#[tokio::test]
async fn replicas_with_another_number_of_shards_own_nothing_until_the_first_end() {
    let mut cluster = TestCluster::new();
    cluster.start_replica(2);
    cluster.start_replica(2);
    cluster.advance(5).await;
    let before = cluster.objects_per_replica();
    cluster.start_replica(3);
    cluster.advance(30).await;
    assert_eq!(cluster.objects_per_replica(), [&*before, &[0]].concat());
    cluster.shut_down(0).await;
    cluster.shut_down(0).await;
    cluster.advance(5).await;
    assert_eq!(cluster.objects_per_replica(), [OBJECTS as usize]);
}

#[tokio::test]
async fn two_numbers_that_begin_together_settle_on_one_and_leave_no_lease_behind() {
    let mut cluster = TestCluster::new();
    cluster.start_replica(2);
    cluster.start_replica(3);
    cluster.advance(40).await;
    let shares = cluster.objects_per_replica();
    assert!(shares.contains(&(OBJECTS as usize)), "{shares:?}");
    let leases = cluster.server.client();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    drop(cluster.replicas.drain(..));
    cluster.start_replica(3);
    cluster.advance(40).await;
    let left = leases
        .list(path, &kubemu_apiserver::Selector::default())
        .await
        .unwrap();
    let names: Vec<&str> = left
        .items
        .iter()
        .map(|lease| lease["metadata"]["name"].as_str().unwrap())
        .collect();
    let expected = [
        "x-member-pod-2",
        "x-shard-0-of-3",
        "x-shard-1-of-3",
        "x-shard-2-of-3",
    ];
    assert_eq!(names, expected);
}

/// What happens to the replicas.
#[derive(Clone, Copy, Debug)]
enum Event {
    Starts,
    StartsWithOtherShardCount,
    Crashes(usize),
    ShutsDown(usize),
    Disconnects(usize),
    Reconnects(usize),
    Nothing,
}

fn any_event() -> impl Strategy<Value = Event> {
    let index = 0..4_usize;
    prop_oneof![
        3 => Just(Event::Starts),
        1 => Just(Event::StartsWithOtherShardCount),
        2 => index.clone().prop_map(Event::Crashes),
        2 => index.clone().prop_map(Event::ShutsDown),
        2 => index.clone().prop_map(Event::Disconnects),
        2 => index.prop_map(Event::Reconnects),
        1 => Just(Event::Nothing),
    ]
}

async fn run(events: &[(Event, i64)]) {
    let mut cluster = TestCluster::new();
    for (event, seconds) in events {
        let count = cluster.replicas.len();
        let set = |index: usize, is_cut_off: bool| {
            if let Some(it) = cluster.replicas.get(index) {
                it.is_cut_off.store(is_cut_off, Ordering::Relaxed);
            }
        };
        match *event {
            Event::Starts if count < 4 => cluster.start_replica(3),
            Event::StartsWithOtherShardCount if count < 4 => cluster.start_replica(2),
            Event::Crashes(index) if index < count => {
                drop(cluster.replicas.remove(index));
            }
            Event::ShutsDown(index) if index < count => {
                drop(cluster.replicas[index].leave.take());
            }
            Event::Disconnects(index) => set(index, true),
            Event::Reconnects(index) => set(index, false),
            _ => {}
        }
        cluster.advance(*seconds).await;
        cluster.replicas.retain(|it| !it.task.is_finished());
    }
    for replica in &cluster.replicas {
        replica.is_cut_off.store(false, Ordering::Relaxed);
    }
    // All replicas leave, so that only one number of shards is left.
    for replica in &mut cluster.replicas {
        drop(replica.leave.take());
    }
    cluster.start_replica(3);
    cluster.advance(60).await;
    cluster.objects_per_replica();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_object_ever_has_two_owners_and_each_soon_has_one(
        events in prop::collection::vec((any_event(), 0..20_i64), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(run(&events));
    }
}

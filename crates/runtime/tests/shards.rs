//! Replicas that divide shards among them on a server, on a virtual clock: no object ever has two
//! owners, and after every fault each object soon has one.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fivespot_apiserver::{Options, Server};
use fivespot_clock::Clock;
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::lease::{
    Fence, Lease, Observer, Ownership, Replica, Role, ShardNames, Terms, share,
};
use fivespot_runtime::queue::Backoff;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::Service;

/// How many objects there are. Each has its own uid.
const OBJECTS: u32 = 40;

fn start() -> Timestamp {
    "2026-03-06T21:30:00Z".parse().unwrap()
}

struct World {
    clock: Clock,
    server: Server,
    replicas: Vec<Running>,
    /// How many replicas there have been: each has its own name.
    begun: usize,
}

/// One replica. Dropping it crashes it.
struct Running {
    fence: Arc<Fence>,
    is_cut_off: Arc<AtomicBool>,
    leave: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Drop for Running {
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

impl World {
    fn new() -> Self {
        let clock = Clock::stopped_at(start());
        let server = Server::new(Options::new(clock.clone())).unwrap();
        Self {
            clock,
            server,
            replicas: Vec::new(),
            begun: 0,
        }
    }

    /// Starts a replica with so many shards.
    fn begin(&mut self, count: u32) {
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
            identity: format!("pod-{}", self.begun),
            lease: Lease {
                namespace: "default".to_owned(),
                name: String::new(),
                terms: Terms::default(),
            },
            observer: Arc::new(NoObserver),
        };
        let names = ShardNames {
            prefix: "x".to_owned(),
            label: "x.example/shards".to_owned(),
        };
        let (leave, left) = oneshot::channel();
        self.begun += 1;
        self.replicas.push(Running {
            fence,
            is_cut_off,
            leave: Some(leave),
            task: tokio::spawn(share(replica, names, count, left)),
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
    fn shares(&self) -> Vec<usize> {
        let mut shares = vec![0; self.replicas.len()];
        for owners in self.owners() {
            let [owner] = owners[..] else {
                panic!("an object is owned by {owners:?}");
            };
            shares[owner] += 1;
        }
        shares
    }

    async fn leave(&mut self, index: usize) {
        let mut leaving = self.replicas.remove(index);
        drop(leaving.leave.take());
        let _ = (&mut leaving.task).await;
    }
}

#[tokio::test]
async fn a_single_replica_owns_everything_at_once() {
    let mut world = World::new();
    world.begin(3);
    world.advance(1).await;
    assert_eq!(world.shares(), [OBJECTS as usize]);
}

#[tokio::test]
async fn replicas_divide_everything_and_take_over_from_one_that_crashes() {
    let mut world = World::new();
    for _ in 0..3 {
        world.begin(3);
    }
    world.advance(5).await;
    assert!(world.shares().iter().all(|share| *share > 0));
    drop(world.replicas.remove(1));
    world.advance(20).await;
    assert!(world.shares().iter().all(|share| *share > 0));
    world.leave(0).await;
    world.advance(3).await;
    assert_eq!(world.shares(), [OBJECTS as usize]);
}

#[tokio::test]
async fn a_replica_that_cannot_renew_owns_nothing_until_it_can_again() {
    let mut world = World::new();
    world.begin(2);
    world.begin(2);
    world.advance(5).await;
    world.replicas[0].is_cut_off.store(true, Ordering::Relaxed);
    world.advance(20).await;
    assert_eq!(world.shares(), [0, OBJECTS as usize]);
    world.replicas[0].is_cut_off.store(false, Ordering::Relaxed);
    world.advance(30).await;
    assert!(world.shares().iter().all(|share| *share > 0));
}

#[tokio::test]
async fn replicas_with_another_number_of_shards_own_nothing_until_the_first_end() {
    let mut world = World::new();
    world.begin(2);
    world.begin(2);
    world.advance(5).await;
    let before = world.shares();
    world.begin(3);
    world.advance(30).await;
    assert_eq!(world.shares(), [&*before, &[0]].concat());
    world.leave(0).await;
    world.leave(0).await;
    world.advance(5).await;
    assert_eq!(world.shares(), [OBJECTS as usize]);
}

#[tokio::test]
async fn two_numbers_that_begin_together_settle_on_one_and_leave_no_lease_behind() {
    let mut world = World::new();
    world.begin(2);
    world.begin(3);
    world.advance(40).await;
    let shares = world.shares();
    assert!(shares.contains(&(OBJECTS as usize)), "{shares:?}");
    let leases = world.server.client();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    drop(world.replicas.drain(..));
    world.begin(3);
    world.advance(40).await;
    let left = leases
        .list(path, &fivespot_apiserver::Selector::default())
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
enum Happening {
    Begins,
    BeginsWithAnotherNumber,
    Crashes(usize),
    Leaves(usize),
    IsCutOff(usize),
    IsBack(usize),
    Nothing,
}

fn happening() -> impl Strategy<Value = Happening> {
    let whom = 0..4_usize;
    prop_oneof![
        3 => Just(Happening::Begins),
        1 => Just(Happening::BeginsWithAnotherNumber),
        2 => whom.clone().prop_map(Happening::Crashes),
        2 => whom.clone().prop_map(Happening::Leaves),
        2 => whom.clone().prop_map(Happening::IsCutOff),
        2 => whom.prop_map(Happening::IsBack),
        1 => Just(Happening::Nothing),
    ]
}

async fn run(happenings: &[(Happening, i64)]) {
    let mut world = World::new();
    for (happening, seconds) in happenings {
        let count = world.replicas.len();
        let set = |whom: usize, is_cut_off: bool| {
            if let Some(it) = world.replicas.get(whom) {
                it.is_cut_off.store(is_cut_off, Ordering::Relaxed);
            }
        };
        match *happening {
            Happening::Begins if count < 4 => world.begin(3),
            Happening::BeginsWithAnotherNumber if count < 4 => world.begin(2),
            Happening::Crashes(whom) if whom < count => {
                drop(world.replicas.remove(whom));
            }
            Happening::Leaves(whom) if whom < count => {
                drop(world.replicas[whom].leave.take());
            }
            Happening::IsCutOff(whom) => set(whom, true),
            Happening::IsBack(whom) => set(whom, false),
            _ => {}
        }
        world.advance(*seconds).await;
        world.replicas.retain(|it| !it.task.is_finished());
    }
    for replica in &world.replicas {
        replica.is_cut_off.store(false, Ordering::Relaxed);
    }
    // All replicas leave, so that only one number of shards is left.
    for replica in &mut world.replicas {
        drop(replica.leave.take());
    }
    world.begin(3);
    world.advance(60).await;
    world.shares();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_object_ever_has_two_owners_and_each_soon_has_one(
        happenings in prop::collection::vec((happening(), 0..20_i64), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(run(&happenings));
    }
}

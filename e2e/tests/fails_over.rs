//! Of several operators, exactly one acts on a machine. When it ends, another one acts at once.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use fivespot_controller::Detail;
use fivespot_testkit::{
    AuditEvent, Cluster, Replica, instant, machine_path, scheduled_machine,
};
use insta::assert_snapshot;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::promise::{Promise, promise};

const REPLICAS: &str = "needs the audit log of each replica at its instants";

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(the_second_of_two_acts_on_every_machine_when_the_leader_crashes)
        .on_embedded_alone(REPLICAS),
    promise!(a_leader_that_stops_releases_its_lease_at_once).on_embedded_alone(REPLICAS),
    promise!(a_leader_that_cannot_renew_writes_nothing_and_follows_when_it_can)
        .on_embedded_alone(REPLICAS),
    promise!(an_operator_of_the_same_name_waits_for_the_first_to_end)
        .on_embedded_alone(REPLICAS),
    promise!(shards_divide_the_machines_and_take_over_from_one_that_crashes)
        .on_embedded_alone(REPLICAS),
    promise!(a_shard_that_crashes_before_an_edge_is_stood_in_for_in_time)
        .on_embedded_alone(REPLICAS),
    promise!(another_number_of_shards_writes_nothing_until_the_first_has_ended)
        .on_embedded_alone(REPLICAS),
    promise!(a_shard_that_cannot_renew_writes_nothing_until_it_has_joined_again)
        .on_embedded_alone(REPLICAS),
    promise!(a_new_shard_acts_at_once).on_embedded_alone(REPLICAS),
];

/// Kubernetes waits 15 s before it takes over. The promise is 20 s.
const HAND_OVER: SignedDuration = SignedDuration::from_secs(20);

/// Machines whose windows are open for the first five of every ten minutes.
async fn with_machines(count: usize) -> Cluster {
    let cluster = Cluster::start(at("13:56:00")).await;
    cluster.add_cluster().await;
    for number in 0..count {
        let mut machine = scheduled_machine(&name(number));
        machine["spec"]["schedule"] = json!({"cron": "*/10 * * * *", "duration": "5m"});
        cluster.apply(&machine).await;
    }
    cluster
}

fn name(number: usize) -> String {
    format!("worker-{number}")
}

/// A time on the day of these tests.
fn at(time: &str) -> Timestamp {
    instant(&format!("2026-03-06T{time}Z"))
}

fn readiness(replica: &Replica) -> String {
    let answer = replica
        .instruments()
        .on_health_port("/readyz", Detail::Verbose);
    format!("{}\n{}", answer.code, answer.body)
}

async fn phases(cluster: &Cluster, count: usize) -> Vec<String> {
    let mut phases = Vec::new();
    for number in 0..count {
        let status = cluster.status(&name(number)).await;
        phases.push(status["phase"].as_str().unwrap_or_default().to_owned());
    }
    phases
}

/// The writers for each machine in order, without consecutive repetitions. Writes for a machine
/// have its name. Creates are ignored, because their names are not in the log.
fn writers(writes: &[AuditEvent]) -> BTreeMap<String, Vec<String>> {
    let mut writers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for write in writes.iter().filter(|write| !write.name.is_empty()) {
        let of_machine = writers.entry(write.name.clone()).or_default();
        if of_machine.last() != Some(&write.user) {
            of_machine.push(write.user.clone());
        }
    }
    writers
}

async fn the_second_of_two_acts_on_every_machine_when_the_leader_crashes() {
    let cluster = with_machines(5).await;
    let leader = cluster.candidate("a");
    cluster.advance_until(at("13:57:00")).await;
    let _standby = cluster.candidate("b");
    cluster.advance_until(at("13:59:50")).await;
    assert_eq!(phases(&cluster, 5).await, ["Inactive"; 5]);
    assert!(cluster.writes_of(&["b"]).is_empty());
    let before = cluster.writes_of(&["a"]).len();

    // The window opens while there is no leader.
    drop(leader);
    cluster.advance_until(at("13:59:50") + HAND_OVER).await;
    for number in 0..5 {
        let [bootstrap, infrastructure, machine] = cluster.owned_paths(&name(number));
        for path in [bootstrap, infrastructure, machine] {
            assert!(cluster.get(&path).await.is_some(), "{path}");
        }
    }
    cluster.advance_until(at("14:04:00")).await;
    assert_eq!(phases(&cluster, 5).await, ["Active"; 5]);
    assert_eq!(cluster.writes_of(&["a"]).len(), before);
    // The next edge is met too.
    cluster.advance_until(at("14:09:00")).await;
    assert_eq!(phases(&cluster, 5).await, ["Inactive"; 5]);
}

async fn a_leader_that_stops_releases_its_lease_at_once() {
    let cluster = with_machines(3).await;
    let leader = cluster.candidate("a");
    cluster.advance_until(at("13:57:00")).await;
    let _standby = cluster.candidate("b");
    cluster.advance_until(at("13:59:59")).await;
    leader.shut_down().await;
    cluster.advance_until(at("14:00:00")).await;
    let first = &cluster.writes_of(&["b"])[0];
    assert_eq!(first.at, at("14:00:00"));
    cluster.advance_until(at("14:04:00")).await;
    assert_eq!(phases(&cluster, 3).await, ["Active"; 3]);
}

async fn a_leader_that_cannot_renew_writes_nothing_and_follows_when_it_can() {
    let cluster = with_machines(3).await;
    let first = cluster.candidate("a");
    cluster.advance_until(at("13:57:00")).await;
    let second = cluster.candidate("b");
    cluster.advance_until(at("13:59:49")).await;
    first.cut_off();
    // Its term has ended when the window opens, and no other term has begun.
    cluster.advance_until(at("14:00:00")).await;
    assert!(cluster.writes_of(&["b"]).is_empty());
    assert_snapshot!(readiness(&first), @r"
    503
    [+]cache capitalmarketsschedules.spotschedules.5spot.finos.org/v1alpha1 ok
    [+]cache clusters.cluster.x-k8s.io/v1beta2 ok
    [+]cache k0sworkerconfigs.bootstrap.cluster.x-k8s.io/v1beta1 ok
    [+]cache machines.cluster.x-k8s.io/v1beta2 ok
    [+]cache remotemachines.infrastructure.cluster.x-k8s.io/v1beta1 ok
    [+]cache scheduledcapacities.5spot.finos.org/v1alpha1 ok
    [+]cache scheduledmachines.5spot.finos.org/v1alpha1 ok
    [+]cache scheduledmachinesets.5spot.finos.org/v1alpha1 ok
    [+]cache scheduleoverrides.5spot.finos.org/v1alpha1 ok
    [+]cache timebasedspotschedules.spotschedules.5spot.finos.org/v1alpha1 ok
    [+]crd ok
    [-]lease failed: the Lease could not be renewed in time
    [+]api-server ok
    not ready
    ");
    assert_snapshot!(readiness(&second), @r"
    200
    [+]cache capitalmarketsschedules.spotschedules.5spot.finos.org/v1alpha1 ok
    [+]cache clusters.cluster.x-k8s.io/v1beta2 ok
    [+]cache k0sworkerconfigs.bootstrap.cluster.x-k8s.io/v1beta1 ok
    [+]cache machines.cluster.x-k8s.io/v1beta2 ok
    [+]cache remotemachines.infrastructure.cluster.x-k8s.io/v1beta1 ok
    [+]cache scheduledcapacities.5spot.finos.org/v1alpha1 ok
    [+]cache scheduledmachines.5spot.finos.org/v1alpha1 ok
    [+]cache scheduledmachinesets.5spot.finos.org/v1alpha1 ok
    [+]cache scheduleoverrides.5spot.finos.org/v1alpha1 ok
    [+]cache timebasedspotschedules.spotschedules.5spot.finos.org/v1alpha1 ok
    [+]crd ok
    [+]lease ok: a is the leader
    [+]api-server ok
    ready
    ");
    cluster.advance_until(at("14:04:00")).await;
    assert_eq!(phases(&cluster, 3).await, ["Active"; 3]);
    let written = cluster.writes_of(&["a"]);
    assert!(written.iter().all(|write| write.at < at("14:00:00")));
    first.reconnect();
    cluster.advance_until(at("14:04:30")).await;
    assert_eq!(
        first
            .instruments()
            .on_health_port("/readyz", Detail::Brief)
            .code,
        200
    );
    let metrics = second.instruments().on_metrics_port("/metrics").body;
    for line in [
        "fivespot_is_leader 1\n",
        "fivespot_machines_active 3\n",
        "fivespot_transition_lateness_seconds_bucket{le=\"5.0\"} 3\n",
        "fivespot_reconciliations_total{phase=\"Active\",result=\"success\"}",
        "fivespot_api_requests_total{cluster=\"management\",verb=\"create\",resource=\"machines\",code=\"201\"} 3\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    // It is on standby, and takes over when the other one ends.
    drop(second);
    cluster.advance_until(at("14:09:00")).await;
    assert_eq!(phases(&cluster, 3).await, ["Inactive"; 3]);
}

async fn an_operator_of_the_same_name_waits_for_the_first_to_end() {
    let cluster = with_machines(2).await;
    let first = cluster.candidate("a");
    cluster.advance_until(at("13:57:00")).await;
    let writes = cluster.writes_of(&["a"]).len();
    let _second = cluster.candidate("a");
    cluster.advance_until(at("13:58:30")).await;
    assert_eq!(cluster.writes_of(&["a"]).len(), writes);
    drop(first);
    cluster.advance_until(at("14:04:00")).await;
    assert_eq!(phases(&cluster, 2).await, ["Active"; 2]);
}

const MACHINES: usize = 12;
/// The number of shards.
const COUNT: NonZeroU32 = NonZeroU32::new(3).unwrap();
const SHARDS: [&str; 4] = ["shard-a", "shard-b", "shard-c", "shard-d"];

/// The writer of each machine from the write `from` on. Panics if there is more than one.
fn owners(cluster: &Cluster, from: usize) -> BTreeMap<String, String> {
    let writers = writers(&cluster.writes_of(&SHARDS)[from..]);
    writers
        .into_iter()
        .map(|(machine, writers)| {
            assert_eq!(writers.len(), 1, "{machine}: {writers:?}");
            (machine, writers[0].clone())
        })
        .collect()
}

/// Advances to the opening or closing of the windows, and returns the writer of each machine.
async fn advance_to(
    cluster: &Cluster,
    time: &str,
    phase: &str,
) -> BTreeMap<String, String> {
    let from = cluster.writes_of(&SHARDS).len();
    cluster.advance_until(at(time)).await;
    assert_eq!(phases(cluster, MACHINES).await, [phase; MACHINES]);
    owners(cluster, from)
}

async fn shards_divide_the_machines_and_take_over_from_one_that_crashes() {
    let cluster = with_machines(MACHINES).await;
    let [a, b, c] =
        ["shard-a", "shard-b", "shard-c"].map(|name| cluster.shard(name, COUNT));
    let three = advance_to(&cluster, "14:04:00", "Active").await;
    assert_eq!(three.len(), MACHINES);
    let busy: BTreeSet<&String> = three.values().collect();
    assert_eq!(busy.len(), 3, "{three:?}");

    // One crashes half a minute before the windows close.
    cluster.advance_until(at("14:04:30")).await;
    drop(b);
    let two = advance_to(&cluster, "14:09:00", "Inactive").await;
    assert_eq!(two.len(), MACHINES);
    let busy: BTreeSet<&String> = two.values().collect();
    assert_eq!(
        busy,
        BTreeSet::from([&a.name().to_owned(), &c.name().to_owned()])
    );

    // One joins, and one stops gracefully.
    let _d = cluster.shard("shard-d", COUNT);
    let joined = advance_to(&cluster, "14:14:00", "Active").await;
    assert!(joined.values().any(|owner| owner == "shard-d"));
    a.shut_down().await;
    let left = advance_to(&cluster, "14:19:00", "Inactive").await;
    assert!(left.values().all(|owner| owner != "shard-a"));
    assert_eq!(left.len(), MACHINES);
    drop(c);
}

async fn a_shard_that_crashes_before_an_edge_is_stood_in_for_in_time() {
    let cluster = with_machines(MACHINES).await;
    let [_a, b] = ["shard-a", "shard-b"].map(|name| cluster.shard(name, COUNT));
    cluster.advance_until(at("13:59:50")).await;
    // The windows open while no operator acts on its machines.
    drop(b);
    cluster.advance_until(at("13:59:50") + HAND_OVER).await;
    for number in 0..MACHINES {
        for path in cluster.owned_paths(&name(number)) {
            assert!(cluster.get(&path).await.is_some(), "{path}");
        }
    }
}

async fn another_number_of_shards_writes_nothing_until_the_first_has_ended() {
    let cluster = with_machines(MACHINES).await;
    let [a, b] = ["shard-a", "shard-b"].map(|name| cluster.shard(name, COUNT));
    cluster.advance_until(at("13:57:00")).await;
    let other = cluster.shard("shard-c", NonZeroU32::new(5).unwrap());
    let both = advance_to(&cluster, "14:04:00", "Active").await;
    assert!(both.values().all(|owner| owner != "shard-c"), "{both:?}");
    let answer = readiness(&other);
    let expected = "[-]lease failed: other replicas use 3 shards, and this one 5: start all of \
                    them with the same --instance-count\n";
    assert!(answer.contains(expected), "{answer}");
    a.shut_down().await;
    b.shut_down().await;
    let alone = advance_to(&cluster, "14:09:00", "Inactive").await;
    assert!(alone.values().all(|owner| owner == "shard-c"), "{alone:?}");
}

async fn a_shard_that_cannot_renew_writes_nothing_until_it_has_joined_again() {
    let cluster = with_machines(MACHINES).await;
    let [a, _b] = ["shard-a", "shard-b"].map(|name| cluster.shard(name, COUNT));
    let first = advance_to(&cluster, "14:04:00", "Active").await;
    cluster.advance_until(at("14:04:40")).await;
    a.cut_off();
    let alone = advance_to(&cluster, "14:08:00", "Inactive").await;
    assert!(alone.values().all(|owner| owner == "shard-b"), "{alone:?}");
    a.reconnect();
    cluster.advance_until(at("14:09:00")).await;
    let again = advance_to(&cluster, "14:14:00", "Active").await;
    assert_eq!(again, first);
}

async fn a_new_shard_acts_at_once() {
    let cluster = with_machines(1).await;
    let _shard = cluster.shard("shard-a", COUNT);
    let limit = cluster.deadline_in(SignedDuration::from_secs(1));
    cluster
        .wait_for(&machine_path("worker-0"), limit, |machine| {
            machine["status"]["phase"] == "Inactive"
        })
        .await;
}

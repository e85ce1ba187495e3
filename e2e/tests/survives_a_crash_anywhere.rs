//! When an operator crashes after any of its writes, another one completes the work: nothing is
//! duplicated, nothing is orphaned. Every crash is in a cluster, or namespace, of its own,
//! concurrently with the others.

use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, instant, machine_path, scheduled_machine,
};
use futures::future::join_all;
use serde_json::json;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(of_an_opening),
    promise!(of_a_closing),
    promise!(of_the_kill_switch),
];

/// The number of concurrent crashes.
const CONCURRENT_RUNS: usize = 8;
/// More writes than any scenario needs. With a real Cluster API, there is a write for each step.
const MAX_WRITES: usize = 48;

/// The number of the operator's writes to a resource whose line contains `deed`: the verb, the name
/// and the status code.
fn count_writes(cluster: &Cluster, resource: &str, deed: &str) -> usize {
    let writes = cluster.operator_writes_to(resource);
    writes.iter().filter(|line| line.contains(deed)).count()
}

/// Runs a scenario with a crash after each write, several at a time, until a run needs fewer writes
/// than its limit.
async fn with_every_crash(
    prepare: impl AsyncFn(&Cluster),
    scenario: impl AsyncFn(&Cluster),
) {
    let mut done = 0;
    loop {
        let wave = (done + 1..=done + CONCURRENT_RUNS)
            .map(async |limit| crashes_after(limit, &prepare, &scenario).await);
        done += CONCURRENT_RUNS;
        let crashed = join_all(wave).await;
        assert!(
            crashed[0] || done > CONCURRENT_RUNS,
            "the operator must write"
        );
        if crashed.contains(&false) {
            break;
        }
        assert!(done < MAX_WRITES, "no end of writes");
    }
}

/// Returns whether the operator reached its `limit`-th write and crashed.
async fn crashes_after(
    limit: usize,
    prepare: &impl AsyncFn(&Cluster),
    scenario: &impl AsyncFn(&Cluster),
) -> bool {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    cluster.add_cluster().await;
    let healthy = cluster.operator();
    prepare(&cluster).await;
    drop(healthy);
    let crashing = cluster.operator_crashing_after(limit);
    let crash_switch = crashing.crash_switch().clone();
    let succession = async {
        crash_switch.crashed().await;
        let _heir = cluster.operator();
        drop(crashing);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = scenario(&cluster) => {}
        () = succession => {}
    }
    crash_switch.is_crashed()
}

async fn of_an_opening() {
    with_every_crash(
        async |_| {},
        async |cluster| {
            cluster.bring_up(&scheduled_machine("worker")).await;
            for resource in ["k0sworkerconfigs", "remotemachines", "machines"] {
                assert_eq!(count_writes(cluster, resource, "create"), 1, "{resource}");
                assert_eq!(count_writes(cluster, resource, "delete"), 0, "{resource}");
            }
        },
    )
    .await;
}

/// Brings the worker up to Active, with a pod.
async fn bring_up(cluster: &Cluster) {
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
}

async fn assert_gone(cluster: &Cluster) {
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    assert_eq!(count_writes(cluster, "machines", "create"), 1);
    assert_eq!(count_writes(cluster, "machines", "delete worker 200"), 1);
}

async fn of_a_closing() {
    with_every_crash(bring_up, async |cluster| {
        cluster.advance_to(CLOSING).await;
        let limit = instant("2026-03-06T23:20:00Z");
        cluster.wait_for_phase("worker", "Inactive", limit).await;
        assert_eq!(count_writes(cluster, "pods/eviction", "create only 201"), 1);
        assert_gone(cluster).await;
    })
    .await;
}

async fn of_the_kill_switch() {
    with_every_crash(bring_up, async |cluster| {
        let kill = json!({"spec": {"killSwitch": true}});
        cluster.patch(&machine_path("worker"), &kill).await;
        let limit = instant("2026-03-06T22:59:00Z");
        cluster.wait_for_phase("worker", "Terminated", limit).await;
        let [.., machine] = cluster.owned_paths("worker");
        cluster.wait_until_gone(&machine, limit).await;
        assert_eq!(count_writes(cluster, "pods/eviction", "create"), 0);
        assert_gone(cluster).await;
    })
    .await;
}

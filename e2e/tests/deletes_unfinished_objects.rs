//! Objects that a crashed operator left incomplete are removed by the next operator if they are no
//! longer wanted.

use fivespot_testkit::{
    Cluster, Contract, cluster_object, condition, instant, machine_path, path_of,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// A behaviour of a real Cluster API 1.8 that newer versions do not have.
const HANGS: &str = "Cluster API 1.8 never owns the objects of a Machine that is deleted \
     as soon as it is created, and such an infrastructure object may hang";

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(though_the_window_has_closed).not_kept_with(Contract::V1Beta1, HANGS),
    promise!(though_the_kill_switch_was_set).not_kept_with(Contract::V1Beta1, HANGS),
    promise!(though_the_scheduled_machine_was_deleted)
        .not_kept_with(Contract::V1Beta1, HANGS),
    promise!(though_the_cluster_is_gone),
    promise!(or_completes_it_for_the_cluster_that_it_was_begun_for),
    promise!(though_cluster_api_claims_it_late)
        .on_embedded_alone("follows an annotation of the simulator"),
];

/// An event between two operators.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    /// The window closes.
    Closes,
    /// The kill switch is set.
    IsKilled,
    /// The ScheduledMachine is deleted.
    IsDeleted,
    /// The Cluster is deleted.
    LosesItsCluster,
}

impl Interruption {
    async fn cause(self, cluster: &Cluster) {
        let worker = machine_path("worker");
        match self {
            Self::Closes => cluster.advance_to("2026-03-06T23:00:00Z").await,
            Self::IsKilled => {
                let kill = json!({"spec": {"killSwitch": true}});
                cluster.patch(&worker, &kill).await;
            }
            Self::IsDeleted => cluster.delete(&worker).await,
            Self::LosesItsCluster => {
                let path = path_of(&cluster_object(cluster.contract()));
                cluster.delete(&path).await;
                cluster.advance_to("2026-03-06T23:00:00Z").await;
            }
        }
    }
}

/// Crashes an operator after its `writes`-th write of an opening. Returns whether it crashed.
async fn crashes_after_writes(writes: usize, interruption: Interruption) -> bool {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let crashing = cluster.operator_crashing_after(writes);
    let has_died = tokio::select! {
        () = cluster.advance_to("2026-03-06T15:05:00Z") => false,
        () = crashing.crash_switch().crashed() => true,
    };
    drop(crashing);
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    interruption.cause(&cluster).await;
    let _heir = cluster.operator();
    cluster.advance_to("2026-03-06T23:15:00Z").await;
    let limit = instant("2026-03-07T12:00:00Z");
    match interruption {
        Interruption::Closes => {
            cluster.wait_for_phase("worker", "Inactive", limit).await;
        }
        Interruption::IsKilled => {
            cluster.wait_for_phase("worker", "Terminated", limit).await;
            let [.., machine] = cluster.owned_paths("worker");
            cluster.wait_until_gone(&machine, limit).await;
        }
        Interruption::IsDeleted => {
            cluster
                .wait_until_gone(&machine_path("worker"), limit)
                .await;
        }
        Interruption::LosesItsCluster => {
            let is_decided = |object: &Value| {
                let status = &object["status"];
                status["phase"] == "Inactive"
                    || condition(status, "Ready")["reason"] == "RemovalStalled"
            };
            cluster
                .wait_for(&machine_path("worker"), limit, is_decided)
                .await;
        }
    }
    let mut hangs = false;
    let paths = cluster.owned_paths("worker");
    let machine = cluster.get(&paths[2]).await.unwrap_or_default();
    for path in &paths {
        let Some(left) = cluster.get(path).await else {
            continue;
        };
        // A provider does not release its object without a Machine and a Cluster.
        assert!(
            matches!(interruption, Interruption::LosesItsCluster),
            "{interruption:?}, died after {writes}: {left:#}"
        );
        // Cluster API deletes the objects of a Machine one after the other.
        let is_going =
            |object: &Value| object["metadata"].get("deletionTimestamp").is_some();
        assert!(
            is_going(&left) || is_going(&machine),
            "died after {writes}: {left:#}"
        );
        hangs = true;
    }
    if hangs {
        let is_reported = |object: &Value| {
            condition(&object["status"], "Ready")["reason"] == "RemovalStalled"
        };
        cluster
            .wait_for(&machine_path("worker"), limit, is_reported)
            .await;
    }
    let status = cluster.status("worker").await;
    match interruption {
        Interruption::LosesItsCluster if hangs => {}
        Interruption::Closes | Interruption::LosesItsCluster => {
            cluster.wait_for_phase("worker", "Inactive", limit).await;
        }
        Interruption::IsKilled => assert_eq!(status["phase"], "Terminated"),
        Interruption::IsDeleted => {
            assert_eq!(cluster.get(&machine_path("worker")).await, None);
        }
    }
    has_died
}

async fn at_every_write(interruption: Interruption) {
    let mut limit = 1;
    while crashes_after_writes(limit, interruption).await {
        limit += 1;
    }
    assert!(limit > 5, "an opening takes more writes than {limit}");
}

async fn though_the_window_has_closed() {
    at_every_write(Interruption::Closes).await;
}

async fn though_the_kill_switch_was_set() {
    at_every_write(Interruption::IsKilled).await;
}

async fn though_the_scheduled_machine_was_deleted() {
    at_every_write(Interruption::IsDeleted).await;
}

async fn though_the_cluster_is_gone() {
    at_every_write(Interruption::LosesItsCluster).await;
}

/// The Cluster can still be edited then, because no uid is recorded.
async fn or_completes_it_for_the_cluster_that_it_was_begun_for() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    // Finalizer, record, bootstrap and infrastructure object.
    let crashing = cluster.operator_crashing_after(4);
    crashing.crash_switch().crashed().await;
    drop(crashing);
    let [_, infrastructure, machine] = cluster.owned_paths("worker");
    assert!(cluster.get(&infrastructure).await.is_some());
    assert_eq!(cluster.get(&machine).await, None);
    let other = json!({"spec": {"clusterName": "another-cluster"}});
    cluster.patch(&machine_path("worker"), &other).await;
    let _heir = cluster.operator();
    let limit = instant("2026-03-06T15:10:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
    let made = cluster.get(&machine).await.unwrap_or_default();
    assert_eq!(made["spec"]["clusterName"], "production-cluster");
}

/// A provider needs the Machine and its bootstrap data to release its host. Objects that the
/// operator deletes must not be removed before a Cluster API that claims them late has used them.
async fn though_cluster_api_claims_it_late() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    cluster.add_cluster().await;
    let late = json!({"metadata": {"annotations": {
        "sim.5spot.finos.org/claims-after": "10m",
    }}});
    cluster.patch(&cluster.cluster_path(), &late).await;
    let _operator = cluster.operator();
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    Interruption::IsKilled.cause(&cluster).await;
    cluster.advance_to("2026-03-06T15:02:30Z").await;
    let [bootstrap, infrastructure, machine] = cluster.owned_paths("worker");
    for (path, is_deleted) in [
        (&bootstrap, false),
        (&infrastructure, true),
        (&machine, true),
    ] {
        let object = cluster.get(path).await.unwrap_or_default();
        let at = &object["metadata"]["deletionTimestamp"];
        assert_eq!(at.is_string(), is_deleted, "{object:#}");
    }
    let limit = instant("2026-03-06T15:12:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
}

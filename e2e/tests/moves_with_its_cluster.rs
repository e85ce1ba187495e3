//! `clusterctl move` moves a Cluster and its objects to another cluster: it pauses the Cluster,
//! creates the objects at their destination with corrected owner references, and deletes the old
//! ones without their finalizers. The machine continues to run.

use fivespot_api::name;
use fivespot_testkit::{
    Cluster, Operator, instant, machine_path, node_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(what_is_left_behind_is_let_go_untouched),
    promise!(what_has_arrived_is_taken_over_as_it_is),
    promise!(a_moved_machine_is_removed_when_it_is_deleted_in_the_background),
    promise!(a_moved_machine_is_removed_when_it_is_deleted_in_the_foreground),
    promise!(a_moved_machine_is_removed_when_it_is_deleted_with_orphans),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";

fn paused(is_paused: bool) -> Value {
    json!({"spec": {"paused": is_paused}})
}

async fn what_is_left_behind_is_let_go_untouched() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.patch(&cluster.cluster_path(), &paused(true)).await;
    let worker = machine_path("worker");
    let is_paused = |object: &Value| {
        let status = &object["status"];
        fivespot_testkit::condition(status, "Ready")["reason"] == "Paused"
    };
    cluster.wait_briefly(&worker, is_paused).await;
    let before = cluster.operator_writes().len();
    let owned = cluster.owned_paths("worker");
    let for_move = json!({"metadata": {
        "annotations": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""},
        "finalizers": null,
    }});
    for path in owned.iter().rev().chain([&worker]) {
        // In the other order, a controller that ignores the pause might add its finalizer again.
        cluster.delete(path).await;
        // A controller that ignores the pause may have released it already.
        let _ = cluster.try_patch(path, &for_move).await;
        let now = cluster.clock().now();
        cluster.wait_until_gone(path, now).await;
    }
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    let writes = cluster.operator_writes().split_off(before);
    let touched: Vec<_> = writes
        .iter()
        .filter(|event| event.subresource != "status")
        .collect();
    assert!(touched.is_empty(), "{touched:?}");
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"].get("unschedulable"), None);
}

/// Creates an object as `clusterctl` does: the same, except for its owner references.
async fn create_moved_object(
    cluster: &Cluster,
    path: &str,
    source: &Value,
    owner: &Value,
) {
    let mut object = source.clone();
    let meta = &source["metadata"];
    object["metadata"] = json!({
        "name": meta["name"],
        "namespace": "team-b",
        "labels": meta["labels"],
        "annotations": meta["annotations"],
        "ownerReferences": [{
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledMachine",
            "name": "worker",
            "uid": owner["metadata"]["uid"],
        }],
    });
    object["status"] = json!({});
    // The infrastructure is another one: the old one still serves at the source.
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("providerID");
    }
    let made = cluster.create(&object).await;
    assert!(made.is_ok(), "{path}: {made:?}");
}

/// The path of an object after the move.
fn there(path: &str) -> String {
    path.replace("/default/", "/team-b/")
}

/// A cluster in which a worker has arrived with its objects. Returns their uids in the order of
/// [`Cluster::owned_paths`].
async fn moved_cluster() -> (Cluster, Operator, Vec<Value>) {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    cluster.add_namespace("team-b").await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let mut destination = fivespot_testkit::cluster_object(cluster.contract());
    destination["metadata"]["namespace"] = json!("team-b");
    destination["spec"]["paused"] = json!(true);
    cluster.apply(&destination).await;
    let mut worker = scheduled_machine("worker");
    worker["metadata"]["namespace"] = json!("team-b");
    worker["metadata"]["finalizers"] = json!([name::FINALIZER]);
    cluster.apply(&worker).await;
    let owner = cluster.get(&there(&machine_path("worker"))).await.unwrap();
    let mut uids = Vec::new();
    for path in cluster.owned_paths("worker") {
        let seen = cluster.get(&path).await.unwrap();
        create_moved_object(&cluster, &path, &seen, &owner).await;
        let made = cluster.get(&there(&path)).await.unwrap();
        uids.push(made["metadata"]["uid"].clone());
    }
    cluster
        .patch(&there(&cluster.cluster_path()), &paused(false))
        .await;
    let is_active = |object: &Value| object["status"]["phase"] == "Active";
    let worker = there(&machine_path("worker"));
    cluster.wait_briefly(&worker, is_active).await;
    (cluster, operator, uids)
}

async fn what_has_arrived_is_taken_over_as_it_is() {
    let (cluster, _operator, uids) = moved_cluster().await;
    let active = cluster.get(&there(&machine_path("worker"))).await.unwrap();
    let status = &active["status"];
    let [.., machine] = cluster.owned_paths("worker").map(|path| there(&path));
    let machine = cluster.get(&machine).await.unwrap();
    let label = &machine["metadata"]["labels"][name::SCHEDULED_MACHINE_UID_LABEL];
    assert_eq!(*label, active["metadata"]["uid"]);
    let refs = ["bootstrapRef", "infrastructureRef", "machineRef"];
    assert_eq!(refs.map(|it| status[it]["uid"].clone()).to_vec(), uids);
}

/// The state after a move: the objects have the ScheduledMachine's previous uid in their labels,
/// and belong to it only by their owner references. The garbage collector removes these for a
/// deletion in the foreground or with orphans. The machine leaves nevertheless.
async fn leaves_with(propagation: &str) {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.patch(&cluster.cluster_path(), &paused(true)).await;
    let worker = machine_path("worker");
    let is_paused = |object: &Value| {
        let ready = fivespot_testkit::condition(&object["status"], "Ready");
        ready["reason"] == "Paused"
    };
    cluster.wait_briefly(&worker, is_paused).await;
    let earlier = "6f1f3c1e-0000-4000-8000-000000000000";
    let labels = json!({"metadata": {"labels": {
        name::SCHEDULED_MACHINE_UID_LABEL: earlier,
    }}});
    let owned = cluster.owned_paths("worker");
    for path in &owned {
        cluster.patch(path, &labels).await;
    }
    cluster.settle().await;
    let label = |object: &Value| {
        object["metadata"]["labels"][name::SCHEDULED_MACHINE_UID_LABEL].clone()
    };
    let machine = cluster.get(&owned[2]).await.unwrap();
    assert_eq!(label(&machine), earlier, "nothing is touched while paused");
    cluster.patch(&cluster.cluster_path(), &paused(false)).await;
    let is_relabelled = |object: &Value| label(object) == active["metadata"]["uid"];
    cluster.wait_briefly(&owned[2], is_relabelled).await;
    let options = json!({"propagationPolicy": propagation});
    cluster.delete_with(&worker, &options).await;
    let limit = instant("2026-03-06T15:30:00Z");
    cluster.wait_until_gone(&worker, limit).await;
    for path in &owned {
        assert_eq!(cluster.get(path).await, None, "{propagation}: {path}");
    }
}

async fn a_moved_machine_is_removed_when_it_is_deleted_in_the_background() {
    leaves_with("Background").await;
}

async fn a_moved_machine_is_removed_when_it_is_deleted_in_the_foreground() {
    leaves_with("Foreground").await;
}

async fn a_moved_machine_is_removed_when_it_is_deleted_with_orphans() {
    leaves_with("Orphan").await;
}

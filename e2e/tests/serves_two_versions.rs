//! ScheduledMachine is served in two versions with the same schema, rules and policy.

use fivespot_testkit::{Cluster, instant, machine_path, scheduled_machine};
use serde_json::{Value, json};

use crate::admits_exactly_the_table::refusal;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_machine_of_the_beta_version_is_served_in_both_and_runs),
    promise!(both_versions_are_refused_with_the_same_words),
    promise!(the_created_objects_have_the_metadata_of_their_specs),
    promise!(either_field_disables_the_machine),
];

const NOW: &str = "2026-03-06T15:00:00Z";
const LIMIT: &str = "2026-03-06T15:05:00Z";
const BETA: &str = "5spot.finos.org/v1beta1";

fn beta(name: &str) -> Value {
    let mut worker = scheduled_machine(name);
    worker["apiVersion"] = json!(BETA);
    worker
}

fn beta_path(name: &str) -> String {
    machine_path(name).replace("v1alpha1", "v1beta1")
}

async fn a_machine_of_the_beta_version_is_served_in_both_and_runs() {
    let cluster = Cluster::start(instant(NOW)).await;
    let _operator = cluster.operator();
    let object = cluster.bring_up(&beta("worker")).await;
    assert_eq!(object["status"]["ready"], true);
    let [bootstrap, ..] = cluster.owned_paths("worker");
    let made = cluster.get(&bootstrap).await.unwrap();
    let owner = &made["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "5spot.finos.org/v1alpha1");
    let mut read = cluster.get(&beta_path("worker")).await.unwrap();
    assert_eq!(read["apiVersion"], BETA);
    // Except for the version, both are the same.
    let stored = cluster.get(&machine_path("worker")).await.unwrap();
    read["apiVersion"] = stored["apiVersion"].clone();
    for part in ["spec", "status"] {
        assert_eq!(read[part], stored[part], "{part}");
    }
    let disable = json!({"spec": {"enabled": false}});
    cluster.patch(&beta_path("worker"), &disable).await;
    let limit = instant(LIMIT);
    let object = cluster.wait_for_phase("worker", "Disabled", limit).await;
    assert_eq!(object["status"]["ready"], false);
}

async fn both_versions_are_refused_with_the_same_words() {
    let cluster = Cluster::start(instant(NOW)).await;
    let metadata = "/spec/bootstrapSpec/metadata";
    for (place, value, words) in [
        (
            "/spec/kata",
            json!({"kind": "ConfigMap"}),
            "kata is not part of this API",
        ),
        (
            metadata,
            json!({"name": "x"}),
            "name must not be set: the object has the name",
        ),
        (
            metadata,
            json!({"namespace": "x"}),
            "namespace must not be set: the object is",
        ),
        // Only the policy checks keys.
        (
            metadata,
            json!({"labels": {"cluster.x-k8s.io/cluster-name": "x"}}),
            "keys must not be reserved by Kubernetes, Cluster API or 5-Spot",
        ),
    ] {
        let mut texts = Vec::new();
        for mut object in [scheduled_machine("refused"), beta("refused")] {
            let (parent, member) = place.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[member] = value.clone();
            let refused = refusal(cluster.create(&object).await);
            texts.push(refused.expect("it is refused").message);
        }
        assert!(texts[0].contains(words), "{}", texts[0]);
        assert_eq!(texts[0], texts[1]);
    }
}

async fn the_created_objects_have_the_metadata_of_their_specs() {
    let cluster = Cluster::start(instant(NOW)).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["bootstrapSpec"]["metadata"] = json!({"labels": {"rack": "7"}});
    worker["spec"]["infrastructureSpec"]["metadata"] =
        json!({"labels": {"rack": "8"}, "annotations": {"example.com/note": "a note"}});
    cluster.bring_up(&worker).await;
    let [bootstrap, infrastructure, _] = cluster.owned_paths("worker");
    for (path, rack, note) in [
        (bootstrap, "7", None),
        (infrastructure, "8", Some("a note")),
    ] {
        let made = cluster.get(&path).await.unwrap();
        assert_eq!(made["metadata"]["labels"]["rack"], rack, "{path}");
        let found = &made["metadata"]["annotations"]["example.com/note"];
        assert_eq!(found.as_str(), note, "{path}");
    }
}

async fn either_field_disables_the_machine() {
    let cluster = Cluster::start(instant(NOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let limit = instant(LIMIT);
    for spec in [
        json!({"enabled": false}),
        json!({"enabled": true, "schedule": {"enabled": false}}),
    ] {
        cluster
            .patch(&machine_path("worker"), &json!({"spec": spec}))
            .await;
        cluster.wait_for_phase("worker", "Disabled", limit).await;
        let on = json!({"spec": {"enabled": null, "schedule": {"enabled": true}}});
        cluster.patch(&machine_path("worker"), &on).await;
        cluster.wait_for_phase("worker", "Active", limit).await;
    }
}

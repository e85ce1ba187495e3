//! No phase is final: from each, a deletion leaves nothing behind, the kill switch removes the
//! machine and can be released, and a corrected spec takes effect.

use fivespot_api::{name, reclaim};
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Contract, condition, instant, machine_path,
    node_path, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(deletion_leaves_nothing_behind_in_any_phase)
        .not_kept_with(Contract::V1Beta1, HANGS),
    promise!(the_kill_switch_works_in_every_phase_and_can_be_released)
        .not_kept_with(Contract::V1Beta1, HANGS),
    promise!(a_kind_that_was_misspelt_is_put_right),
    promise!(what_the_server_rejects_is_reported_with_its_message_and_created_once_it_is_allowed),
    promise!(a_machine_half_made_does_not_outlive_its_window),
];

/// A behaviour of a real Cluster API 1.8 that newer versions do not have.
const HANGS: &str = "Cluster API 1.8 sets no bootstrap data on a Machine that is being \
     deleted, and the infrastructure object of a Machine without it may hang";

/// Every phase.
const PHASES: [&str; 8] = [
    "Pending",
    "Active",
    "ShuttingDown",
    "Inactive",
    "Disabled",
    "Terminated",
    "Error",
    "EmergencyRemove",
];

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

/// Makes the server refuse infrastructure objects of the test, as a quota or a policy may.
async fn refuse_hosts(cluster: &Cluster) {
    let namespace = cluster.namespace("default");
    let group = "admissionregistration.k8s.io/v1";
    let name = format!("no-hosts-in-{namespace}");
    cluster
        .apply(&json!({
            "apiVersion": group, "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["infrastructure.cluster.x-k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": ["remotemachines"],
                }]},
                "validations": [{
                    "expression": format!("object.metadata.namespace != '{namespace}'"),
                    "message": "there are no hosts today",
                }],
            },
        }))
        .await;
    cluster
        .apply(&json!({
            "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }))
        .await;
    let probe = host("probe");
    cluster
        .eventually(async || cluster.dry_run(&probe).await.is_err())
        .await;
}

fn host(name: &str) -> Value {
    let worker = scheduled_machine(name);
    json!({
        "apiVersion": worker["spec"]["infrastructureSpec"]["apiVersion"],
        "kind": worker["spec"]["infrastructureSpec"]["kind"],
        "metadata": {"name": name, "namespace": "default"},
        "spec": worker["spec"]["infrastructureSpec"]["spec"],
    })
}

/// Ends [`refuse_hosts`].
async fn allow_hosts(cluster: &Cluster) {
    let name = format!("no-hosts-in-{}", cluster.namespace("default"));
    for kind in ["policies", "policybindings"] {
        let path = format!("{POLICIES}/validatingadmission{kind}/{name}");
        cluster.delete(&path).await;
    }
    let probe = host("probe");
    cluster
        .eventually(async || cluster.dry_run(&probe).await.is_ok())
        .await;
}

async fn change(cluster: &Cluster, spec: Value) {
    let patch = json!({"spec": spec});
    cluster.patch(&machine_path("worker"), &patch).await;
}

/// Brings the worker into a phase, at most ten minutes before its window closes or after it.
async fn bring_into(cluster: &Cluster, phase: &str) {
    let worker = scheduled_machine("worker");
    let [_, _, machine] = cluster.owned_paths("worker");
    match phase {
        "Pending" => {
            cluster.add_cluster().await;
            cluster.apply(&worker).await;
            // A real Cluster API may have progressed further.
            cluster
                .wait_briefly(&machine, |machine| !machine.is_null())
                .await;
            return;
        }
        "Error" => {
            cluster.add_cluster().await;
            refuse_hosts(cluster).await;
            cluster.apply(&worker).await;
        }
        _ => drop(cluster.bring_up(&worker).await),
    }
    match phase {
        "ShuttingDown" | "Inactive" => {
            if phase == "ShuttingDown" {
                cluster.run_pod("only", "worker").await;
                cluster.hold_last_pod().await;
            }
            cluster.advance_to(CLOSING).await;
        }
        "Disabled" => change(cluster, json!({"schedule": {"enabled": false}})).await,
        "Terminated" => change(cluster, json!({"killSwitch": true})).await,
        "EmergencyRemove" => {
            cluster.hold(&machine).await;
            let request = json!({"metadata": {"annotations": {
                name::RECLAIM_REQUESTED_ANNOTATION: reclaim::REQUESTED,
            }}});
            cluster.patch(&node_path("worker"), &request).await;
        }
        _ => {}
    }
    let limit = cluster.deadline_in(SignedDuration::from_mins(5));
    cluster.wait_for_phase("worker", phase, limit).await;
}

/// Waits until the worker's three objects are removed.
async fn is_gone(cluster: &Cluster) {
    for path in cluster.owned_paths("worker") {
        let limit = cluster.deadline_in(SignedDuration::from_mins(10));
        cluster.wait_until_gone(&path, limit).await;
    }
}

/// Releases what [`bring_into`] holds.
async fn release_held(cluster: &Cluster, phase: &str) {
    let [_, _, machine] = cluster.owned_paths("worker");
    match phase {
        "EmergencyRemove" => cluster.release(&machine).await,
        "Error" => allow_hosts(cluster).await,
        _ => {}
    }
}

async fn deletion_leaves_nothing_behind_in_any_phase() {
    for phase in PHASES {
        let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
        let _operator = cluster.operator();
        bring_into(&cluster, phase).await;
        let worker = machine_path("worker");
        cluster.delete(&worker).await;
        release_held(&cluster, phase).await;
        let limit = cluster.deadline_in(SignedDuration::from_mins(10));
        cluster.wait_until_gone(&worker, limit).await;
        for path in cluster.owned_paths("worker") {
            assert_eq!(cluster.get(&path).await, None, "from {phase}");
        }
    }
}

async fn the_kill_switch_works_in_every_phase_and_can_be_released() {
    for phase in PHASES {
        let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
        let _operator = cluster.operator();
        bring_into(&cluster, phase).await;
        change(&cluster, json!({"killSwitch": true})).await;
        release_held(&cluster, phase).await;
        let limit = cluster.deadline_in(SignedDuration::from_mins(10));
        cluster.wait_for_phase("worker", "Terminated", limit).await;
        is_gone(&cluster).await;
        // Brings the machine back into service from any phase.
        let serve = json!({
            "killSwitch": false,
            "schedule": {"enabled": true, "hoursOfDay": ["0-23"]},
        });
        change(&cluster, serve).await;
        let limit = cluster.deadline_in(SignedDuration::from_mins(5));
        cluster.wait_for_phase("worker", "Active", limit).await;
    }
}

async fn a_kind_that_was_misspelt_is_put_right() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut misspelt = cluster.with_kinds(scheduled_machine("worker"));
    let named = &mut misspelt["spec"]["infrastructureSpec"]["kind"];
    let kind = named.take();
    *named = json!(kind.as_str().unwrap().trim_end_matches('e'));
    cluster.apply(&misspelt).await;
    let is_reported = |object: &Value| {
        condition(&object["status"], "ReferencesValid")["reason"] == "KindNotServed"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_reported)
        .await;
    change(&cluster, json!({"infrastructureSpec": {"kind": kind}})).await;
    // Immediately: a change of the spec is not delayed by the backoff of earlier errors.
    let now = cluster.clock().now();
    let [_, _, machine] = cluster.owned_paths("worker");
    cluster
        .wait_for(&machine, now, |machine| !machine.is_null())
        .await;
    let limit = cluster.deadline_in(SignedDuration::from_mins(2));
    let active = cluster.wait_for_phase("worker", "Active", limit).await;
    let reported = condition(&active["status"], "ReferencesValid");
    assert_eq!(reported["status"], "True");
}

async fn what_the_server_rejects_is_reported_with_its_message_and_created_once_it_is_allowed()
 {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    bring_into(&cluster, "Error").await;
    let reported = condition(&cluster.status("worker").await, "Ready");
    assert_eq!(reported["status"], "False");
    let message = reported["message"].as_str().unwrap();
    assert!(message.contains("there are no hosts today"), "{message}");
    allow_hosts(&cluster).await;
    // It is retried after five minutes at most.
    let limit = cluster.deadline_in(SignedDuration::from_mins(6));
    cluster.wait_for_phase("worker", "Active", limit).await;
}

async fn a_machine_half_made_does_not_outlive_its_window() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    bring_into(&cluster, "Error").await;
    let [bootstrap, ..] = cluster.owned_paths("worker");
    assert!(cluster.get(&bootstrap).await.is_some());
    cluster.advance_to(CLOSING).await;
    let limit = cluster.deadline_in(SignedDuration::from_mins(2));
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    is_gone(&cluster).await;
    allow_hosts(&cluster).await;
}

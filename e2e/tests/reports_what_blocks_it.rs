//! The message in a machine's status contains why it does not start, is not removed, or has left
//! without a drain, as reported by the provider.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, Contract, condition, instant, machine_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(why_a_host_does_not_join_is_in_the_message)
        .with_stand_ins_alone("needs a provider that reports failures as k0smotron does"),
    promise!(a_clean_up_that_cannot_begin_is_in_the_message_and_continues_with_the_key)
        .with_stand_ins_alone("needs a provider that reports failures as k0smotron does"),
    promise!(a_host_that_is_tried_once_is_gone_from_the_api_alone).with_stand_ins_alone(
        "needs a provider that releases a host that does not respond",
    ),
    promise!(a_failure_reported_during_a_shutdown_is_in_the_message)
        .with_stand_ins_alone("needs a provider that reports failures as k0smotron does"),
    promise!(a_drain_that_is_cut_off_is_reported_until_the_next_activation),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const SECRET: &str = "/api/v1/namespaces/default/secrets/worker-key";

/// A worker whose provider reads its key from a Secret.
fn with_key() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["infrastructureSpec"]["spec"]["sshKeyRef"] =
        json!({"name": "worker-key"});
    worker
}

fn key() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "worker-key", "namespace": "default"},
        "stringData": {"value": "a key"},
    })
}

/// Waits until the message contains a text, and returns the message.
async fn message(cluster: &Cluster, text: &str, limit: &str) -> String {
    let of = |object: &Value| {
        object["status"]["message"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    let path = machine_path("worker");
    let is_reported = |object: &Value| of(object).contains(text);
    of(&cluster.wait_for(&path, instant(limit), is_reported).await)
}

async fn why_a_host_does_not_join_is_in_the_message() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let cluster = Cluster::with_contract(instant(IN_WINDOW), contract).await;
        let _operator = cluster.operator();
        cluster.add_cluster().await;
        cluster.apply(&with_key()).await;
        let reported = "waiting for Machine worker to get a Node; RemoteMachine worker: \
                    ProvisionFailed: secrets \"worker-key\" not found";
        // On a real cluster, the operator and the provider each take their time.
        let is_whole = |object: &Value| {
            let status = &object["status"];
            status["message"] == reported
                && condition(status, "NodeAccess")["reason"] == "Connected"
        };
        let limit = instant("2026-03-06T15:03:00Z");
        let blocked = cluster
            .wait_for(&machine_path("worker"), limit, is_whole)
            .await;
        assert_eq!(blocked["status"]["phase"], "Pending");
        cluster.apply(&key()).await;
        let limit = instant("2026-03-06T15:05:00Z");
        let active = cluster.wait_for_phase("worker", "Active", limit).await;
        let message = active["status"]["message"].as_str().unwrap();
        assert!(!message.contains("secrets"), "{message}");
    }
}

async fn a_clean_up_that_cannot_begin_is_in_the_message_and_continues_with_the_key() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let cluster = Cluster::with_contract(instant(BEFORE_CLOSING), contract).await;
        let _operator = cluster.operator();
        cluster.apply(&key()).await;
        cluster.bring_up(&with_key()).await;
        cluster.delete(SECRET).await;
        let reported = message(&cluster, "secrets", "2026-03-06T23:04:00Z").await;
        assert!(
            reported.starts_with(
                "the window has closed; waiting for Machine worker to be removed"
            ),
            "{reported}"
        );
        let why =
            "RemoteMachine worker: ProvisionFailed: secrets \"worker-key\" not found";
        assert!(reported.ends_with(why), "{reported}");
        cluster.advance_to("2026-03-06T23:05:00Z").await;
        assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
        cluster.apply(&key()).await;
        let limit = instant("2026-03-06T23:06:00Z");
        cluster.wait_for_phase("worker", "Inactive", limit).await;
    }
}

async fn a_host_that_is_tried_once_is_gone_from_the_api_alone() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    let unreachable =
        json!({"metadata": {"annotations": {"sim.5spot.finos.org/host": "unreachable"}}});
    cluster.patch(&infrastructure, &unreachable).await;
    let limit = instant("2026-03-06T23:00:02Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
}

async fn a_failure_reported_during_a_shutdown_is_in_the_message() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    let stored = cluster.get(&infrastructure).await.unwrap();
    let mut finalizers = stored["metadata"]["finalizers"].as_array().unwrap().clone();
    finalizers.push(json!("example.com/hangs"));
    let hang = json!({"metadata": {"finalizers": finalizers}});
    cluster.patch(&infrastructure, &hang).await;
    let failure = json!({"status": {"deprecated": {"v1beta1": {
        "failureReason": "ProvisionFailed",
        "failureMessage": "failed to run command: \nexited with status 1",
    }}}});
    cluster
        .patch(&format!("{infrastructure}/status"), &failure)
        .await;
    let reported = message(&cluster, "exited", "2026-03-06T23:06:00Z").await;
    let why = ": ProvisionFailed: failed to run command: exited with status 1";
    assert!(reported.ends_with(why), "{reported}");
    assert!(!reported.contains('\n'), "{reported}");
    let release = json!({"metadata": {"finalizers": Value::Null}});
    cluster.patch(&infrastructure, &release).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_drain_that_is_cut_off_is_reported_until_the_next_activation() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let limit = instant("2026-03-06T23:06:00Z");
    let left = cluster.wait_for_phase("worker", "Inactive", limit).await;
    let message = left["status"]["message"].as_str().unwrap();
    let note = "the Machine was deleted without a finished drain: at the deadline pods remained on \
                Node";
    assert!(message.contains(note), "{message}");
    assert!(message.ends_with("/only"), "{message}");
    let worker = cluster.get(&machine_path("worker")).await.unwrap();
    let events = cluster
        .list("/apis/events.k8s.io/v1/namespaces/default/events")
        .await;
    let warnings = events.iter().filter(|event| {
        event["regarding"]["uid"] == worker["metadata"]["uid"]
            && event["reason"] == "DrainIncomplete"
            && event["type"] == "Warning"
    });
    assert_eq!(warnings.count(), 1);
    cluster.release_last_pod().await;
    let limit = instant("2026-03-09T14:02:00Z");
    let active = cluster.wait_for_phase("worker", "Active", limit).await;
    let message = active["status"]["message"].as_str().unwrap();
    assert!(!message.contains("drain"), "{message}");
}

//! Errors around a machine are reported in its status, change nothing unnecessarily, and are
//! resolved without intervention.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fivespot_api::crd;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Contract, ProxiedRequest, Proxy, RequestOutcome,
    condition, instant, machine_path, node_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_node_that_is_no_longer_ready_is_reported_and_stays),
    promise!(an_invalid_schedule_that_got_past_admission_changes_nothing).disruptive(),
    promise!(without_a_kubeconfig_cluster_api_drains),
    promise!(a_kubeconfig_deleted_before_its_cluster_blocks_nothing)
        .on_embedded_alone("needs a clock that stops while events are unread"),
    promise!(a_removal_that_hangs_is_reported_after_ten_minutes_and_waited_for),
    promise!(a_machine_that_its_health_check_gave_up_is_replaced),
    promise!(each_change_of_phase_is_one_event)
        .on_embedded_alone("dates events to the second, and lets them expire"),
    promise!(an_invalid_object_is_reported_and_changes_nothing)
        .disruptive()
        .on_embedded_alone("removes rules of the CRD that all other promises use"),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/scheduledmachine-validation";
const KUBECONFIG: &str =
    "/api/v1/namespaces/default/secrets/production-cluster-kubeconfig";

async fn reason(cluster: &Cluster, kind: &str) -> Value {
    let status = cluster.status("worker").await;
    condition(&status, kind)["reason"].clone()
}

async fn a_node_that_is_no_longer_ready_is_reported_and_stays() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let node = node_path("worker");
    let ready = |status: &str| {
        json!({"status": {"conditions": [
            {"type": "Ready", "status": status, "reason": "KubeletReady"},
        ]}})
    };
    let path = format!("{node}/status");
    cluster.patch(&path, &ready("Unknown")).await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    let reported = condition(&status, "Ready");
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("False"), &json!("NodeNotReady"))
    );
    cluster.patch(&path, &ready("True")).await;
    let is_running = |object: &Value| {
        condition(&object["status"], "Ready")["reason"] == "MachineRunning"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_running)
        .await;
    assert_eq!(
        cluster.status("worker").await["machineRef"],
        active["status"]["machineRef"]
    );
}

async fn an_invalid_schedule_that_got_past_admission_changes_nothing() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.apply(&crd::render_without_rules()).await;
    cluster.delete(POLICY).await;
    let broken = json!({"spec": {"schedule": {"hoursOfDay": ["25"]}}});
    cluster
        .patch_once_admitted(&machine_path("worker"), &broken)
        .await;
    cluster.advance_to("2026-03-07T12:00:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Error");
    assert_eq!(reason(&cluster, "ScheduleValid").await, "InvalidHours");
    assert_eq!(status["machineRef"], active["status"]["machineRef"]);
    assert_eq!(cluster.operator_writes_to("machines").len(), 1);
    let mended = json!({"spec": {"schedule": {"hoursOfDay": ["9-17"]}}});
    cluster.patch(&machine_path("worker"), &mended).await;
    let limit = instant("2026-03-07T12:01:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn without_a_kubeconfig_cluster_api_drains() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let refused = json!({"data": {"value": "bm90IGEga3ViZWNvbmZpZw=="}});
    cluster.patch(KUBECONFIG, &refused).await;
    let is_refused = |object: &Value| {
        condition(&object["status"], "NodeAccess")["reason"] == "KubeconfigRefused"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_refused)
        .await;
    assert_eq!(cluster.status("worker").await["phase"], "Active");

    cluster.advance_to("2026-03-06T23:00:00Z").await;
    let [_, _, path] = cluster.owned_paths("worker");
    let going = cluster.get(&path).await.unwrap();
    assert_ne!(going["metadata"]["deletionTimestamp"], Value::Null);
    let annotations = going["metadata"]["annotations"].to_string();
    assert!(!annotations.contains("exclude"), "{annotations}");
    assert_eq!(cluster.operator_writes_to("pods/eviction"), [""; 0]);
    // At the deadline, Cluster API is requested to stop draining.
    let limit = instant("2026-03-06T23:06:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert!(cluster.clock().now() >= instant("2026-03-06T23:05:00Z"));
}

/// Loses the response to the next read of a Node.
#[derive(Default)]
struct LosesNodeResponse {
    is_next: AtomicBool,
}

impl Proxy for LosesNodeResponse {
    fn request<'a>(
        &'a self,
        request: &'a ProxiedRequest,
    ) -> Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'a>> {
        let is_node_read =
            request.event.verb == "get" && request.event.resource == "nodes";
        let is_lost = is_node_read && self.is_next.swap(false, Ordering::Relaxed);
        Box::pin(ready(if is_lost {
            RequestOutcome::Lose
        } else {
            RequestOutcome::Pass
        }))
    }
}

async fn a_kubeconfig_deleted_before_its_cluster_blocks_nothing() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let proxy = Arc::new(LosesNodeResponse::default());
    let _operator = cluster.operator_behind(proxy.clone(), |_| {});
    cluster.bring_up(&scheduled_machine("worker")).await;
    proxy.is_next.store(true, Ordering::Relaxed);
    cluster.advance_to(CLOSING).await;
    assert_eq!(reason(&cluster, "NodeAccess").await, "Unreachable");
    cluster.delete(KUBECONFIG).await;
    // Cluster API drains if the operator cannot.
    let limit = instant("2026-03-06T23:01:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_removal_that_hangs_is_reported_after_ten_minutes_and_waited_for() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    let stored = cluster.get(&infrastructure).await.unwrap();
    let mut finalizers = stored["metadata"]["finalizers"].as_array().unwrap().clone();
    finalizers.push(json!("example.com/hangs"));
    let hang = json!({"metadata": {"finalizers": finalizers}});
    cluster.patch(&infrastructure, &hang).await;
    // The last change is that of the Machine, which gets its exclusions at the deadline.
    cluster.advance_to("2026-03-06T23:14:59Z").await;
    assert_eq!(reason(&cluster, "Ready").await, "ShuttingDown");
    // A real Cluster API may report a change meanwhile.
    let limit = instant("2026-03-06T23:40:00Z");
    let is_reported = |object: &Value| {
        condition(&object["status"], "Ready")["reason"] == "RemovalStalled"
    };
    let stalled = cluster
        .wait_for(&machine_path("worker"), limit, is_reported)
        .await;
    assert!(cluster.clock().now() >= instant("2026-03-06T23:15:00Z"));
    let reported = condition(&stalled["status"], "Ready");
    let message = reported["message"].as_str().unwrap();
    if cluster.contract() == Contract::V1Beta2 {
        let why = "WaitingForInfrastructureDeletion";
        assert!(message.contains(why), "{message}");
    }
    cluster.advance_to("2026-03-07T23:11:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    let release = json!({"metadata": {"finalizers": Value::Null}});
    cluster.patch(&infrastructure, &release).await;
    let limit = instant("2026-03-07T23:12:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_machine_that_its_health_check_gave_up_is_replaced() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, _, path] = cluster.owned_paths("worker");
    let mut machine = cluster.get(&path).await.unwrap();
    let conditions = machine["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({
        "type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation",
        "message": "", "lastTransitionTime": "2026-03-06T15:01:00Z",
    }));
    let given_up = json!({"status": {"conditions": machine["status"]["conditions"]}});
    cluster.patch(&format!("{path}/status"), &given_up).await;
    cluster.advance_to("2026-03-06T15:09:59Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["machineRef"], active["status"]["machineRef"]);
    let limit = instant("2026-03-06T15:12:00Z");
    let is_replaced = |object: &Value| {
        let status = &object["status"];
        status["phase"] == "Active"
            && status["machineRef"] != active["status"]["machineRef"]
    };
    cluster
        .wait_for(&machine_path("worker"), limit, is_replaced)
        .await;
}

/// The reasons of the events about the worker, each with its time, ordered by name as in
/// `kubectl describe`.
async fn events(cluster: &Cluster) -> Vec<String> {
    let worker = cluster.get(&machine_path("worker")).await.unwrap();
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    cluster
        .list(path)
        .await
        .iter()
        .filter(|event| event["regarding"]["uid"] == worker["metadata"]["uid"])
        .map(|event| {
            let time = instant(event["eventTime"].as_str().unwrap());
            format!("{time} {}", event["reason"].as_str().unwrap())
        })
        .collect()
}

async fn each_change_of_phase_is_one_event() {
    let cluster = Cluster::start(instant("2026-03-06T13:59:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T14:10:00Z").await;
    let opening = [
        "2026-03-06T14:00:00Z ScheduleActive",
        "2026-03-06T14:00:12Z MachineCreated",
    ];
    assert!(
        events(&cluster)
            .await
            .ends_with(&opening.map(str::to_owned))
    );
    // Events are deleted after an hour.
    cluster.advance_to("2026-03-06T23:10:00Z").await;
    assert_eq!(
        events(&cluster).await,
        [
            "2026-03-06T23:00:00Z GracePeriodActive",
            "2026-03-06T23:00:03Z MachineDeleted",
        ]
    );
}

async fn an_invalid_object_is_reported_and_changes_nothing() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let mut loose = crd::render_without_rules();
    let priority =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/priority";
    let priority = loose.pointer_mut(priority).unwrap();
    *priority = json!({"type": "integer"});
    cluster.apply(&loose).await;
    let broken = json!({"spec": {"priority": 300}});
    cluster.patch(&machine_path("worker"), &broken).await;
    cluster.settle().await;
    let writes = cluster.operator_writes().len();
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Error");
    let reported = condition(&status, "Ready");
    assert_eq!(reported["reason"], "InvalidSpec");
    let message = reported["message"].as_str().unwrap();
    assert!(message.contains("300"), "{message}");
    assert_eq!(status["machineRef"], active["status"]["machineRef"]);
    assert_eq!(cluster.operator_writes().len(), writes);
    let mended = json!({"spec": {"priority": 30}});
    cluster.patch(&machine_path("worker"), &mended).await;
    cluster
        .wait_for_phase("worker", "Active", instant("2026-03-06T16:01:00Z"))
        .await;
}

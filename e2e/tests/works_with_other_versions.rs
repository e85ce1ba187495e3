//! During an upgrade, the CRDs, the roles and the operator have different versions for a while. The
//! manifests of `0.1.0` are from before ScheduleOverrides existed.

use fivespot_api::manifest;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Operator, condition, instant, machine_path,
    scheduled_machine,
};
use jiff::ToSpan as _;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(with_the_roles_before_the_schedule_waits_until_they_are_upgraded)
        .disruptive(),
    promise!(with_the_roles_before_the_kill_switch_and_a_deletion_are_carried_out)
        .disruptive(),
    promise!(with_the_definition_before_a_machine_stays_and_leaves_in_time).disruptive(),
    promise!(a_shutdown_that_the_definition_before_stored_is_continued).disruptive(),
];

const ROLES: &str = include_str!("works_with_other_versions/0.1.0/rbac.yaml");
const DEFINITION: &str = include_str!("works_with_other_versions/0.1.0/crd.yaml");
/// The ClusterRoles of both controllers: the operator of a test has the rights of both.
const ROLE_PATHS: [&str; 2] = [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/5spot-controller",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/5spot-controller-capacity",
];
const AFTER_CLOSING: &str = "2026-03-06T23:10:00Z";
/// When the test checks the reason for which a schedule waits.
const EVENING: &str = "2026-03-06T23:10:00Z";

/// The rules of the operator's ClusterRoles in the earlier version, which had one.
fn rules_before() -> [Value; 2] {
    let documents: Vec<Value> = serde_saphyr::from_multiple(ROLES).unwrap();
    let mut roles = documents.into_iter();
    let role = roles
        .find(|it| it["metadata"]["name"] == "5spot-controller")
        .unwrap();
    [role["rules"].clone(), json!([])]
}

/// Sets the rules of the operator's ClusterRoles, and waits until the server applies them. Returns
/// the previous rules.
async fn change_rules(
    cluster: &Cluster,
    rules: &[Value; 2],
    may_list: bool,
) -> [Value; 2] {
    let mut before = [Value::Null, Value::Null];
    for (place, path) in ROLE_PATHS.into_iter().enumerate() {
        before[place] = cluster.get(path).await.unwrap()["rules"].clone();
        cluster.patch(path, &json!({"rules": rules[place]})).await;
    }
    let review = json!({"spec": {
        "user": "system:serviceaccount:5spot-system:5spot-controller",
        "resourceAttributes": {
            "group": "5spot.finos.org", "resource": "scheduleoverrides", "verb": "list",
            "namespace": cluster.namespace("default"),
        },
    }});
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let reviews = Api::<SubjectAccessReview>::all(cluster.client());
    let agrees = async || {
        let answer = reviews.create(&PostParams::default(), &review).await;
        answer.unwrap().status.unwrap().allowed == may_list
    };
    cluster.eventually(agrees).await;
    before
}

/// A worker in service whose operator was restarted with the earlier roles. Returns the operator
/// and the previous rules of its ClusterRoles.
async fn restarted_with_roles_before(cluster: &Cluster) -> (Operator, [Value; 2]) {
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    drop(operator);
    let rules = change_rules(cluster, &rules_before(), false).await;
    (cluster.operator(), rules)
}

async fn with_the_roles_before_the_schedule_waits_until_they_are_upgraded() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let (_operator, rules) = restarted_with_roles_before(&cluster).await;
    cluster.advance_to(EVENING).await;
    let status = cluster.status("worker").await;
    let ready = condition(&status, "Ready");
    assert_eq!(ready["reason"], "Forbidden", "{ready}");
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("scheduleoverrides"), "{message}");
    assert!(
        message.ends_with("; extend the ClusterRole 5spot-controller"),
        "{message}"
    );
    for path in cluster.owned_paths("worker") {
        let found = cluster.get(&path).await.unwrap();
        assert_eq!(found["metadata"].get("deletionTimestamp"), None, "{path}");
    }
    change_rules(&cluster, &rules, true).await;
    let limit = instant("2026-03-06T23:40:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn with_the_roles_before_the_kill_switch_and_a_deletion_are_carried_out() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let (operator, rules) = restarted_with_roles_before(&cluster).await;
    let worker = machine_path("worker");
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&worker, &kill).await;
    let limit = instant("2026-03-06T22:58:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
    drop(operator);

    change_rules(&cluster, &rules, true).await;
    let operator = cluster.operator();
    let revive =
        json!({"spec": {"killSwitch": false, "schedule": {"hoursOfDay": ["0-23"]}}});
    cluster.patch(&worker, &revive).await;
    let limit = instant("2026-03-06T23:05:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
    drop(operator);
    change_rules(&cluster, &rules_before(), false).await;
    let _operator = cluster.operator();
    cluster.delete(&worker).await;
    let limit = instant("2026-03-06T23:20:00Z");
    cluster.wait_until_gone(&worker, limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None, "{path}");
    }
    change_rules(&cluster, &rules, true).await;
}

/// Installs the CRDs of this version.
async fn upgrade_definitions(cluster: &Cluster) {
    for definition in manifest::definitions(cluster.kube_minor()) {
        cluster.apply(&definition).await;
    }
}

/// Installs the earlier version's CRD of ScheduledMachines. Fields that it does not have are pruned
/// on writes, as they were for its operator.
async fn roll_back_definition(cluster: &Cluster) {
    cluster.apply_yaml(DEFINITION).await;
    let worker = machine_path("worker");
    let drops = async || {
        let write = json!({"status": {"usage": {"startTime": BEFORE_CLOSING}}});
        let path = format!("{worker}/status");
        let written = cluster.patch(&path, &write).await;
        written["status"].get("usage").is_none()
    };
    cluster.eventually(drops).await;
}

async fn with_the_definition_before_a_machine_stays_and_leaves_in_time() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    drop(operator);
    roll_back_definition(&cluster).await;
    let _operator = cluster.operator();
    cluster.advance_to("2026-03-06T22:58:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    assert_eq!(status["machineRef"], active["status"]["machineRef"]);
    let limit = instant(AFTER_CLOSING);
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    upgrade_definitions(&cluster).await;
    let longer = json!({"spec": {"schedule": {"hoursOfDay": ["0-23"]}}});
    cluster
        .patch_once_admitted(&machine_path("worker"), &longer)
        .await;
    let limit = instant("2026-03-06T23:30:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
}

async fn a_shutdown_that_the_definition_before_stored_is_continued() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    // The drain lasts until its deadline.
    cluster.hold_last_pod().await;
    cluster.advance_to(CLOSING).await;
    let limit = instant(AFTER_CLOSING);
    let leaving = cluster
        .wait_for_phase("worker", "ShuttingDown", limit)
        .await;
    drop(operator);
    roll_back_definition(&cluster).await;
    upgrade_definitions(&cluster).await;
    let _operator = cluster.operator();
    let is_observed = |worker: &Value| worker["status"].get("usage").is_some();
    let found = cluster
        .wait_briefly(&machine_path("worker"), is_observed)
        .await;
    let shutdown = &leaving["status"]["shutdown"];
    assert_eq!(found["status"]["shutdown"], *shutdown);
    let machine = cluster
        .owned_paths("worker")
        .into_iter()
        .next_back()
        .unwrap();
    let deadline = instant(shutdown["deadline"].as_str().unwrap());
    let is_deleted =
        |machine: &Value| machine["metadata"].get("deletionTimestamp").is_some();
    cluster.advance_until(deadline - 1.second()).await;
    let kept = cluster.get(&machine).await.unwrap();
    assert!(!is_deleted(&kept), "not before its deadline: {kept}");
    cluster.release_last_pod().await;
    let limit = instant("2026-03-06T23:20:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

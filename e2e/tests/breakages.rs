//! Each breakage is visible where users look for it: in `kubectl get`, the message, the events, and
//! the result of kstatus, which Flux and other tools use. One table describes the breakages. The
//! page about them is generated from it. The result is that of the Go library itself: one written
//! in Rust would test our own interpretation.

mod page;
mod table;
mod while_it_runs;

use fivespot_api::condition::{Actor, ConditionType, Reason, Remedy, find};
use fivespot_api::verdict::{Lease, State, Verdict, verdict};
use fivespot_api::{ScheduledMachine, crd};
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, condition, instant, machine_path, mask,
    scheduled_machine,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::program;
use crate::promise::{Promise, promise};

use self::table::ExpectedColumns;
use self::while_it_runs::{
    a_deleted_machine_has_a_host_that_stays,
    the_cluster_is_paused_and_the_machine_is_deleted, the_host_is_reclaimed,
    the_kind_of_the_provider_is_removed, the_node_is_not_ready_and_the_window_closes,
    the_shared_schedule_does_not_exist, the_time_zone_is_unknown_and_there_is_no_cluster,
    two_machines_have_one_node,
};

/// The promises of this file: one for each row of the table, and the page.
pub(crate) const PROMISES: &[Promise] = &[
    judged(promise!(the_operator_does_not_run)),
    judged(promise!(the_bootstrap_kind_is_not_served)),
    judged(promise!(the_infrastructure_kind_is_not_served)),
    judged(promise!(the_cluster_does_not_exist)),
    judged(promise!(
        the_cluster_does_not_exist_and_the_window_is_closed
    )),
    judged(promise!(an_object_has_the_name)),
    judged(promise!(a_quota_refuses_an_object))
        .on_embedded_alone("needs a quota that counts a new kind at once"),
    judged(promise!(a_policy_refuses_an_object)).on_embedded_alone(REFUSES_OTHERS),
    judged(promise!(a_webhook_does_not_answer)).on_embedded_alone(REFUSES_OTHERS),
    judged(promise!(the_operator_lacks_a_permission))
        .on_embedded_alone("changes the roles that every other promise uses"),
    judged(promise!(the_provider_reports_a_failure)).on_embedded_alone(FAILS_ON_REQUEST),
    judged(promise!(the_machine_gets_no_node)).on_embedded_alone(FAILS_ON_REQUEST),
    judged(promise!(the_node_is_not_ready_any_more)),
    judged(promise!(the_calendar_does_not_exist)),
    judged(promise!(the_time_zone_is_unknown)),
    judged(promise!(the_schedule_is_invalid)).disruptive(),
    judged(promise!(the_cron_expression_never_fires)),
    judged(promise!(a_disruption_budget_blocks_the_drain))
        .on_embedded_alone("compares the API server's message, which differs by version"),
    judged(promise!(the_provider_does_not_remove_the_host))
        .on_embedded_alone("compares Cluster API's message, which differs by version"),
    judged(promise!(the_kubeconfig_does_not_exist))
        .on_embedded_alone("deletes a kubeconfig that a real control plane recreates"),
    judged(promise!(the_cluster_is_paused_and_the_kill_switch_is_set)),
    judged(promise!(the_time_zone_is_unknown_and_there_is_no_cluster)),
    judged(promise!(the_cluster_is_paused_and_the_machine_is_deleted)),
    judged(promise!(two_machines_have_one_node))
        .on_embedded_alone("changes an annotation that a real Cluster API writes again"),
    judged(promise!(the_host_is_reclaimed)),
    judged(promise!(the_kind_of_the_provider_is_removed))
        .on_embedded_alone(REFUSES_OTHERS),
    judged(promise!(the_shared_schedule_does_not_exist)),
    judged(promise!(the_node_is_not_ready_and_the_window_closes))
        .on_embedded_alone("changes the Node of a host that a real provider reports"),
    judged(promise!(a_deleted_machine_has_a_host_that_stays))
        .on_embedded_alone("compares Cluster API's message, which differs by version"),
    judged(promise!(in_service)),
    judged(promise!(outside_its_window)),
    judged(promise!(being_provisioned))
        .on_embedded_alone("stops during the provisioning, which needs an exact clock"),
    judged(promise!(disabled)),
    judged(promise!(killed)),
    judged(promise!(audited)),
    promise!(the_page_is_printed_from_the_table),
];

const REFUSES_OTHERS: &str = "rejects the objects of every other promise";
const FAILS_ON_REQUEST: &str = "needs a provider that fails on request";

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/scheduledmachine-validation";
const KUBECONFIG: &str =
    "/api/v1/namespaces/default/secrets/production-cluster-kubeconfig";
const BOOTSTRAP: (&str, &str) = ("bootstrap.cluster.x-k8s.io", "k0sworkerconfigs");

const fn judged(promise: Promise) -> Promise {
    promise.with_programs(&["kstatus"])
}

/// The result of kstatus for an object.
async fn kstatus(object: &Value) -> String {
    let mut judge = tokio::process::Command::new(program::path("kstatus").unwrap())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("kstatus");
    let mut input = judge.stdin.take().expect("a standard input");
    input
        .write_all(object.to_string().as_bytes())
        .await
        .unwrap();
    drop(input);
    let done = judge.wait_with_output().await.unwrap();
    assert!(done.status.success(), "kstatus: {}", done.status);
    let said = String::from_utf8(done.stdout).unwrap();
    let (status, _) = said.split_once('\t').expect("a status and a message");
    status.to_owned()
}

/// The worker's cells in these columns of `kubectl get`.
async fn printed(cluster: &Cluster, columns: [&str; 3]) -> [Value; 3] {
    let path = "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";
    let table = cluster.table(path).await.unwrap();
    let definitions = table["columnDefinitions"].as_array().unwrap();
    columns.map(|name| {
        let place = definitions.iter().position(|it| it["name"] == name);
        table["rows"][0]["cells"][place.unwrap()].clone()
    })
}

/// The text of a value. `-` if it is not a text.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or("-").to_owned()
}

/// What a user sees of the worker, with masked times and names of this cluster.
fn columns_of(cluster: &Cluster, object: &Value) -> ExpectedColumns {
    let mut status = object["status"].clone();
    mask(&mut status, &cluster.own_names());
    let ready = condition(&status, "Ready");
    ExpectedColumns {
        phase: text(&status["phase"]),
        ready: format!("{} {}", text(&ready["status"]), text(&ready["reason"])),
        stalled: text(&condition(&status, "Stalled")["reason"]),
        message: text(&status["message"]),
    }
}

/// Waits as [`looks`], and checks the verdict that the commands and the dashboard show.
async fn shows(cluster: &Cluster, title: &str) {
    let object = looks(cluster, title).await;
    let row = table::row(title);
    let lease = if row.phase == "-" {
        let cause = "no operator runs".to_owned();
        Lease::NotHeld { cause, since: None }
    } else {
        Lease::Held
    };
    let machine: ScheduledMachine = serde_json::from_value(object.clone()).unwrap();
    let now = cluster.clock().now();
    let found = verdict(&machine, &lease, now);
    assert_eq!(found.state, row.state, "{found:?}");
    if lease == Lease::Held {
        has_three_viewers(&machine, &found, now);
    }
    let table = Reason::row(row.remedy).and_then(|of| of.remedy);
    let namespace = object["metadata"]["namespace"].as_str().unwrap();
    let expected = table.map_or(row.remedy, |of| of.text);
    let expected = expected
        .replace("OBJECT", "remotemachine worker")
        .replace("NAMESPACE", namespace);
    match found.remedy {
        Some(remedy) if row.remedy != "-" => assert_eq!(remedy, expected),
        Some(_) => {}
        None => assert!(row.ready.starts_with("True"), "no remedy: {found:?}"),
    }
}

/// Checks that the owner of the machine, who may read it and not the operator's Lease, sees what the
/// administrator sees, and that without an operator nobody takes the last report for the present
/// state, and everybody sees it.
fn has_three_viewers(machine: &ScheduledMachine, found: &Verdict, now: Timestamp) {
    let cause = "leases.coordination.k8s.io is forbidden".to_owned();
    let by_owner = verdict(machine, &Lease::NotReadable { cause }, now);
    assert_eq!(by_owner, *found);
    let lease = Lease::NotHeld {
        cause: "no operator runs: 5spot-0 renewed the Lease 5m ago".to_owned(),
        since: None,
    };
    let without_operator = verdict(machine, &lease, now);
    assert_eq!(without_operator.state, State::Unknown);
    assert_eq!(without_operator.actor, Actor::PlatformTeam);
    let remedy = Some(Remedy::NO_OPERATOR.text);
    assert_eq!(without_operator.remedy.as_deref(), remedy);
    let last = condition_message(machine);
    let expected = format!(
        "no operator runs: 5spot-0 renewed the Lease 5m ago; the last report was: {last}"
    );
    assert_eq!(without_operator.cause, expected);
}

/// The operator's message.
fn condition_message(machine: &ScheduledMachine) -> &str {
    let status = machine.status.as_ref().unwrap();
    let ready = find(&status.conditions, ConditionType::Ready);
    &ready.unwrap().message
}

/// Waits at most an hour until the worker looks as in the row with this title. Then checks kstatus,
/// the columns and the events, and returns the worker.
async fn looks(cluster: &Cluster, title: &str) -> Value {
    let row = table::row(title);
    let limit = cluster.deadline_in(SignedDuration::from_hours(1));
    let path = machine_path("worker");
    let object = cluster
        .wait_for(&path, limit, |object| {
            columns_of(cluster, object) == row.columns()
        })
        .await;
    assert_eq!(kstatus(&object).await, row.kstatus, "{object:#}");
    let status = &object["status"];
    let ready = condition(status, "Ready")["status"].clone();
    let cells = printed(cluster, ["Phase", "Ready", "Reason"]).await;
    let reason = condition(status, "Ready")["reason"].clone();
    let expected = [&status["phase"], &ready, &reason];
    assert_eq!(cells.each_ref(), expected, "kubectl get");
    let warnings = async || {
        let events = "/apis/events.k8s.io/v1/namespaces/default/events";
        let mut all = cluster.list(events).await;
        all.retain(|event| {
            event["regarding"]["uid"] == object["metadata"]["uid"]
                && event["type"] == "Warning"
        });
        all
    };
    if row.warning == "-" {
        // Events are published after the status. After this, no publication is pending.
        cluster.settle().await;
        assert_eq!(warnings().await, [Value::Null; 0]);
    } else {
        let is_warned = async || {
            let all = warnings().await;
            all.iter().any(|event| event["reason"] == row.warning)
        };
        cluster.eventually(is_warned).await;
        cluster.settle().await;
        let all = warnings().await;
        // A schedule that is missing is reported at once, and again when that has lasted.
        let same = all.iter().filter(|event| event["reason"] == row.warning);
        let mut actions: Vec<_> = same.map(|it| it["action"].to_string()).collect();
        let count = actions.len();
        actions.sort();
        actions.dedup();
        assert_eq!(actions.len(), count, "{all:#?}");
    }
    object
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut worker = scheduled_machine("worker");
    change(&mut worker["spec"]);
    worker
}

async fn the_operator_does_not_run() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "the operator does not run").await;
}

async fn the_bootstrap_kind_is_not_served() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = with(|spec| spec["bootstrapSpec"]["kind"] = json!("NowhereConfig"));
    cluster.apply(&worker).await;
    shows(&cluster, "the bootstrap kind is not served").await;
}

async fn the_infrastructure_kind_is_not_served() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker =
        with(|spec| spec["infrastructureSpec"]["kind"] = json!("NowhereMachine"));
    cluster.apply(&worker).await;
    shows(&cluster, "the infrastructure kind is not served").await;
}

async fn the_cluster_does_not_exist() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "the Cluster does not exist").await;
}

async fn the_cluster_does_not_exist_and_the_window_is_closed() {
    let cluster = Cluster::start(instant("2026-03-07T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "the Cluster does not exist, outside the window").await;
}

async fn an_object_has_the_name() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = scheduled_machine("worker");
    let foreign = json!({
        "apiVersion": worker["spec"]["bootstrapSpec"]["apiVersion"],
        "kind": worker["spec"]["bootstrapSpec"]["kind"],
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {},
    });
    cluster.apply(&foreign).await;
    cluster.apply(&worker).await;
    shows(&cluster, "another object already has the name").await;
}

async fn a_quota_refuses_an_object() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let (group, resource) = BOOTSTRAP;
    cluster
        .apply(&json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "machines", "namespace": "default"},
            "spec": {"hard": {format!("count/{resource}.{group}"): "0"}},
        }))
        .await;
    cluster.settle().await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "a quota refuses an object").await;
}

/// Applies an object of the group admissionregistration.k8s.io.
async fn admit(cluster: &Cluster, kind: &str, members: Value) {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "refuses"},
    });
    for (name, member) in members.as_object().unwrap() {
        object[name] = member.clone();
    }
    cluster.apply(&object).await;
}

/// The match rule for the creation of bootstrap objects.
fn creation() -> Value {
    let (group, resource) = BOOTSTRAP;
    json!({
        "apiGroups": [group], "apiVersions": ["*"], "resources": [resource],
        "operations": ["CREATE"],
    })
}

async fn a_policy_refuses_an_object() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let policy = json!({"spec": {
        "matchConstraints": {"resourceRules": [creation()]},
        "validations": [{
            "expression": "has(object.spec.preInstalledK0s)",
            "message": "k0s must be installed on the host",
        }],
    }});
    admit(&cluster, "ValidatingAdmissionPolicy", policy).await;
    let binding =
        json!({"spec": {"policyName": "refuses", "validationActions": ["Deny"]}});
    admit(&cluster, "ValidatingAdmissionPolicyBinding", binding).await;
    cluster.settle().await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "a policy or a webhook refuses an object").await;
}

async fn a_webhook_does_not_answer() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let webhook = json!({"webhooks": [{
        "name": "bootstrap.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/validate"},
        "rules": [creation()],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }]});
    admit(&cluster, "ValidatingWebhookConfiguration", webhook).await;
    cluster.settle().await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T15:06:00Z").await;
    shows(&cluster, "a webhook of the provider does not respond").await;
}

async fn the_operator_lacks_a_permission() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    for role in cluster.list(roles).await {
        let mut rules = role["rules"].clone();
        let all = rules.as_array_mut().into_iter().flatten();
        for rule in all.filter(|rule| rule["apiGroups"] == json!([BOOTSTRAP.0])) {
            let verbs = rule["verbs"].as_array_mut().unwrap();
            verbs.retain(|verb| verb != "create");
        }
        let name = role["metadata"]["name"].as_str().unwrap();
        if rules != role["rules"] {
            let path = format!("{roles}/{name}");
            cluster.patch(&path, &json!({"rules": rules})).await;
        }
    }
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "the operator lacks a permission").await;
}

/// A worker whose provider reads its key from a Secret that does not exist.
fn without_its_key() -> Value {
    with(|spec| {
        spec["infrastructureSpec"]["spec"]["sshKeyRef"] = json!({"name": "worker-key"});
    })
}

async fn the_provider_reports_a_failure() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&without_its_key()).await;
    shows(&cluster, "the provider reports a failure").await;
}

async fn the_machine_gets_no_node() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&without_its_key()).await;
    cluster.advance_to("2026-03-06T15:29:00Z").await;
    looks(&cluster, "the provider reports a failure").await;
    shows(&cluster, "no Node is ready after provisioning.timeout").await;
}

async fn the_node_is_not_ready_any_more() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let path = format!("{}/status", fivespot_testkit::node_path("worker"));
    let unknown = json!({"status": {"conditions": [
        {"type": "Ready", "status": "Unknown", "reason": "KubeletReady"},
    ]}});
    cluster.patch(&path, &unknown).await;
    shows(&cluster, "the Node is no longer ready").await;
}

async fn the_calendar_does_not_exist() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let worker = with(|spec| {
        spec["schedule"]["exceptions"] = json!([
            {"name": "holidays", "action": "Stop", "calendarRef": {"name": "company"}},
        ]);
    });
    cluster.bring_up(&worker).await;
    shows(&cluster, "a calendar does not exist").await;
}

async fn the_time_zone_is_unknown() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = with(|spec| spec["schedule"]["timezone"] = json!("Europe/Zurch"));
    cluster.apply(&worker).await;
    shows(&cluster, "the time zone is unknown").await;
}

async fn the_schedule_is_invalid() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.apply(&crd::render_without_rules()).await;
    cluster.delete(POLICY).await;
    let broken = json!({"spec": {"schedule": {"hoursOfDay": ["25"]}}});
    cluster
        .patch_once_admitted(&machine_path("worker"), &broken)
        .await;
    shows(&cluster, "an invalid schedule was admitted").await;
}

async fn the_cron_expression_never_fires() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = with(|spec| spec["schedule"] = json!({"cron": "0 0 30 2 *"}));
    cluster.apply(&worker).await;
    shows(&cluster, "the cron expression never fires").await;
}

async fn a_disruption_budget_blocks_the_drain() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    cluster.advance_to(CLOSING).await;
    shows(&cluster, "a disruption budget blocks the drain").await;
}

async fn the_provider_does_not_remove_the_host() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    cluster.hold(&infrastructure).await;
    cluster.advance_to(CLOSING).await;
    shows(&cluster, "the provider does not remove the host").await;
}

async fn the_kubeconfig_does_not_exist() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let taints = json!([{"key": "workload", "value": "batch", "effect": "NoSchedule"}]);
    cluster.add_cluster().await;
    cluster.settle().await;
    cluster.delete(KUBECONFIG).await;
    let worker = with(|spec| spec["nodeTaints"] = taints);
    cluster.apply(&worker).await;
    shows(&cluster, "the kubeconfig of the Cluster does not exist").await;
    let status = cluster.status("worker").await;
    assert_eq!(
        condition(&status, "NodeAccess")["reason"],
        "KubeconfigMissing"
    );
}

async fn the_cluster_is_paused_and_the_kill_switch_is_set() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let pause = json!({"spec": {"paused": true}});
    cluster.patch(&cluster.cluster_path(), &pause).await;
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("worker"), &kill).await;
    shows(
        &cluster,
        "the Cluster is paused, and the kill switch is set",
    )
    .await;
}

async fn in_service() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    shows(&cluster, "the machine is in service").await;
}

async fn outside_its_window() {
    let cluster = Cluster::start(instant("2026-03-07T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "no window is open").await;
}

async fn being_provisioned() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    shows(&cluster, "the machine is being provisioned").await;
}

async fn disabled() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = with(|spec| spec["schedule"]["enabled"] = json!(false));
    cluster.apply(&worker).await;
    shows(&cluster, "the schedule is disabled").await;
}

async fn killed() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = with(|spec| spec["killSwitch"] = json!(true));
    cluster.apply(&worker).await;
    shows(&cluster, "the kill switch is set").await;
}

async fn audited() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = with(|spec| spec["enforcement"] = json!("Audit"));
    cluster.apply(&worker).await;
    shows(&cluster, "the window is open in audit mode").await;
}

async fn the_page_is_printed_from_the_table() {
    page::compare_with_output();
}

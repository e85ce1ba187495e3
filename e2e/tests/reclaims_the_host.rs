//! The owner of a host takes it back at once. The agent that requests this is deployed to the Node
//! and removed again.

use fivespot_api::{name, reclaim};
use fivespot_testkit::{
    Cluster, condition, instant, machine_path, node_path, pod_path, scheduled_machine,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_request_ejects_the_machine_and_switches_the_schedule_off),
    promise!(
        by_an_override_the_machine_is_stopped_for_a_time_and_its_spec_is_not_written
    ),
    promise!(the_machine_returns_once_its_host_has_been_free_for_long_enough),
    promise!(a_crash_after_any_write_of_a_reclaim_ends_in_the_same_state),
    promise!(though_a_policy_keeps_its_schedule_on)
        .on_embedded_alone("creates a policy that would affect every ScheduledMachine"),
    promise!(the_agents_label_and_configuration_exist_while_commands_are_listed),
    promise!(the_configuration_is_deleted_with_its_node),
    promise!(without_the_agents_namespace_the_machine_serves_and_the_status_reports_it)
        .on_embedded_alone("needs a cluster without the agent's namespace"),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const LIMIT: &str = "2026-03-06T15:05:00Z";

/// The path of the agent's configuration.
fn config_path(cluster: &Cluster) -> String {
    let name = name::reclaim_config_map(&cluster.node_name("worker"));
    format!(
        "/api/v1/namespaces/{}/configmaps/{name}",
        name::SYSTEM_NAMESPACE
    )
}

fn watched() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["killIfCommands"] = json!(["steam"]);
    worker
}

async fn namespace(cluster: &Cluster) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                           "metadata": {"name": name::SYSTEM_NAMESPACE}});
    cluster.apply_to_workload(&namespace).await;
}

/// What an agent reports about a host that is free since an instant, and confirms at another one.
pub(crate) fn host_is_free(since: Timestamp, confirmed: Timestamp) -> Value {
    let free = format!("{since} {confirmed}");
    json!({"metadata": {"annotations": {"5spot.finos.org/host-free": free}}})
}

/// Makes the request that the agent writes on its Node.
pub(crate) async fn request(cluster: &Cluster) {
    let request = json!({"metadata": {"annotations": {
        name::RECLAIM_REQUESTED_ANNOTATION: reclaim::REQUESTED,
        name::RECLAIM_REASON_ANNOTATION: "process-match: steam",
        name::RECLAIM_REQUESTED_AT_ANNOTATION: "2026-03-06T15:00:00Z",
    }}});
    cluster.patch(&node_path("worker"), &request).await;
}

/// Refuses updates of `resource` for which `expression` is false.
pub(crate) async fn refuse_updates(
    cluster: &Cluster,
    (group, resource): (&str, &str),
    expression: &str,
) {
    let of = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "refused-for-a-test"}, "spec": spec,
        })
    };
    let rule = json!({
        "apiGroups": [group], "apiVersions": ["*"], "resources": [resource],
        "operations": ["UPDATE"],
    });
    let policy = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "refused for a test"}],
    });
    let binding =
        json!({"policyName": "refused-for-a-test", "validationActions": ["Deny"]});
    cluster
        .apply(&of("ValidatingAdmissionPolicy", policy))
        .await;
    let binding = of("ValidatingAdmissionPolicyBinding", binding);
    cluster.apply(&binding).await;
    cluster.settle().await;
}

async fn though_a_policy_keeps_its_schedule_on() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("guarded", "worker").await;
    let resource = ("5spot.finos.org", "scheduledmachines");
    let kept_on = "object.spec.schedule.enabled == true";
    refuse_updates(&cluster, resource, kept_on).await;
    request(&cluster).await;
    let [.., machine] = cluster.owned_paths("worker");
    cluster
        .wait_until_gone(&machine, instant("2026-03-06T15:01:00Z"))
        .await;
    // The owner keeps the host while the schedule cannot be disabled.
    cluster.advance_to("2026-03-06T15:04:00Z").await;
    assert_eq!(cluster.get(&machine).await, None);
    let status = cluster.status("worker").await;
    let message = condition(&status, "Ready")["message"].clone();
    let message = message.as_str().unwrap_or_default().to_owned();
    assert!(
        message.contains("cannot disable the schedule:"),
        "{message}"
    );
    let policies = "/apis/admissionregistration.k8s.io/v1";
    let binding =
        format!("{policies}/validatingadmissionpolicybindings/refused-for-a-test");
    cluster.delete(&binding).await;
    let limit = instant("2026-03-06T15:20:00Z");
    let object = cluster.wait_for_phase("worker", "Disabled", limit).await;
    assert_eq!(object["spec"]["schedule"]["enabled"], false);
}

async fn agent(cluster: &Cluster) -> Value {
    condition(&cluster.status("worker").await, "AgentReady")
}

async fn a_request_ejects_the_machine_and_switches_the_schedule_off() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("guarded", "worker").await;
    cluster.hold_last_pod().await;
    let before = cluster.operator_writes().len();
    let begun = cluster.clock().now();
    request(&cluster).await;
    let object = cluster
        .wait_for_phase("worker", "Disabled", instant(LIMIT))
        .await;
    let writes: Vec<String> = cluster.operator_writes()[before..]
        .iter()
        // Cluster API also writes to the Machine. A patch that failed with a conflict did nothing.
        .filter(|event| event.subresource != "status" && event.code != 409)
        .map(|event| format!("{} {} {}", event.verb, event.resource, event.code))
        .collect();
    assert_eq!(
        writes,
        [
            "patch machines 200",
            "patch scheduledmachines 200",
            "patch machines 200",
            "patch nodes 200",
            "delete pods 200",
            "patch machines 200",
            "delete machines 200",
        ]
    );
    assert!(cluster.clock().now() <= begun + SignedDuration::from_secs(30));
    assert_eq!(object["spec"]["schedule"]["enabled"], false);
    let scheduled = condition(&object["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "EmergencyReclaimDisabledSchedule");
    assert_eq!(object["status"].get("nodeRef"), None);
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None, "{path}");
    }
    assert_ne!(
        cluster
            .get(&pod_path("guarded"))
            .await
            .map(|pod| pod["spec"]["nodeName"].clone()),
        Some(json!("worker"))
    );
    // The machine is in service again, and is removed again while the process still runs.
    let enable = json!({"spec": {"schedule": {"enabled": true}}});
    for _ in 0..2 {
        cluster.patch(&machine_path("worker"), &enable).await;
        cluster
            .wait_for_phase("worker", "Active", instant(LIMIT))
            .await;
        request(&cluster).await;
        cluster
            .wait_for_phase("worker", "Disabled", instant(LIMIT))
            .await;
    }
}

async fn by_an_override_the_machine_is_stopped_for_a_time_and_its_spec_is_not_written() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator_with(|options| {
        options.reclaim_override = Some(SignedDuration::from_hours(1));
    });
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let uid = active["status"]["machineRef"]["uid"].as_str().unwrap();
    let begun = cluster.clock().now();
    request(&cluster).await;
    let limit = instant(LIMIT);
    let stopped = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(stopped["spec"], active["spec"]);
    let scheduled = condition(&stopped["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "OverrideStop");
    let name = format!("worker-{}", &uid[..8]);
    assert_eq!(stopped["status"]["override"]["name"], name.as_str());
    let path = format!(
        "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides/{name}"
    );
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["spec"]["mode"], "Stop");
    assert_eq!(found["spec"]["targetRef"]["name"], "worker");
    let end = instant(found["spec"]["endTime"].as_str().unwrap());
    let hour = SignedDuration::from_hours(1);
    let latest = cluster.clock().now() + hour;
    assert!((begun + hour..=latest).contains(&end), "{end}");

    // The machine is created again automatically.
    cluster
        .advance_until(end - SignedDuration::from_secs(1))
        .await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let limit = end + SignedDuration::from_mins(1);
    let back = cluster.wait_for_phase("worker", "Active", limit).await;
    assert_eq!(back["spec"], active["spec"]);
    assert_ne!(
        back["status"]["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
}

async fn the_machine_returns_once_its_host_has_been_free_for_long_enough() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let mut object = scheduled_machine("worker");
    object["spec"]["reclaim"] = json!({"return": {"after": "10m"}});
    let active = cluster.bring_up(&object).await;
    request(&cluster).await;
    let limit = instant(LIMIT);
    let stopped = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(stopped["spec"], active["spec"]);
    let name = stopped["status"]["override"]["name"].as_str().unwrap();
    let path = format!(
        "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides/{name}"
    );
    let minutes = SignedDuration::from_mins;
    let since = cluster.clock().now() + minutes(1);
    cluster.advance_until(since).await;
    cluster
        .patch(&machine_path("worker"), &host_is_free(since, since))
        .await;
    let says = async |words: &str| {
        let is_said = |object: &Value| {
            let message = &condition(&object["status"], "Scheduled")["message"];
            message
                .as_str()
                .is_some_and(|message| message.contains(words))
        };
        cluster.wait_briefly(&machine_path("worker"), is_said).await;
    };
    let back = format!("back at {} if the host stays free", since + minutes(10));
    says(&back).await;
    // An agent confirms it every minute; this one has stopped.
    cluster.advance_until(since + minutes(9)).await;
    says("is more than five minutes old").await;
    assert!(cluster.get(&path).await.is_some());
    let due = since + minutes(10);
    cluster.advance_until(due).await;
    cluster
        .patch(&machine_path("worker"), &host_is_free(since, due))
        .await;
    let limit = due + minutes(2);
    let back = cluster.wait_for_phase("worker", "Active", limit).await;
    assert_eq!(cluster.get(&path).await, None);
    assert_eq!(back["status"]["returns"].as_array().map(Vec::len), Some(1));
    assert_eq!(back["spec"], active["spec"]);
}

async fn a_crash_after_any_write_of_a_reclaim_ends_in_the_same_state() {
    let mut limit = 1;
    loop {
        let cluster = Cluster::start(instant(IN_WINDOW)).await;
        let operator = cluster.operator();
        cluster.bring_up(&scheduled_machine("worker")).await;
        drop(operator);
        request(&cluster).await;
        let crashing = cluster.operator_crashing_after(limit);
        let over = async {
            cluster
                .wait_for_phase("worker", "Disabled", instant(LIMIT))
                .await;
        };
        let is_over = tokio::select! {
            () = crashing.crash_switch().crashed() => false,
            () = over => true,
        };
        drop(crashing);
        let _operator = cluster.operator();
        let object = cluster
            .wait_for_phase("worker", "Disabled", instant(LIMIT))
            .await;
        assert_eq!(
            object["spec"]["schedule"]["enabled"], false,
            "write {limit}"
        );
        for path in cluster.owned_paths("worker") {
            assert_eq!(cluster.get(&path).await, None, "write {limit}: {path}");
        }
        let scheduled = condition(&object["status"], "Scheduled");
        assert_eq!(
            scheduled["reason"], "EmergencyReclaimDisabledSchedule",
            "write {limit}"
        );
        if is_over {
            break;
        }
        limit += 1;
    }
    assert!(limit > 7, "{limit} writes");
}

async fn the_agents_label_and_configuration_exist_while_commands_are_listed() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    namespace(&cluster).await;
    cluster.bring_up(&watched()).await;
    cluster.settle().await;
    let config = cluster.get(&config_path(&cluster)).await.unwrap();
    let text = config["data"][name::RECLAIM_CONFIG_KEY].as_str().unwrap();
    assert_eq!(text, reclaim::agent_config(&["steam".to_owned()]));
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(
        node["metadata"]["labels"][name::RECLAIM_AGENT_KEY],
        "enabled"
    );
    assert_eq!(agent(&cluster).await["status"], "Unknown");
    cluster.advance_to("2026-03-06T15:02:00Z").await;
    assert_eq!(agent(&cluster).await["reason"], "NotInstalled");
    let report = reclaim::Report::accepted(reclaim::config_hash(text)).to_string();
    let report = json!({"metadata": {"annotations": {name::RECLAIM_AGENT_KEY: report}}});
    cluster.patch(&node_path("worker"), &report).await;
    cluster
        .eventually(async || agent(&cluster).await["reason"] == "Running")
        .await;
    // An edit is reverted. After that, nothing is written for hours.
    let edited = json!({"data": {name::RECLAIM_CONFIG_KEY: "match_commands = []"}});
    cluster.patch(&config_path(&cluster), &edited).await;
    let is_restored = async || {
        let config = cluster.get(&config_path(&cluster)).await.unwrap();
        config["data"][name::RECLAIM_CONFIG_KEY] == text
    };
    cluster.eventually(is_restored).await;
    cluster.settle().await;
    let before = cluster.operator_writes().len();
    cluster.advance_to("2026-03-06T20:00:00Z").await;
    assert_eq!(cluster.operator_writes().len(), before);

    let none = json!({"spec": {"killIfCommands": null}});
    cluster.patch(&machine_path("worker"), &none).await;
    cluster
        .eventually(async || cluster.get(&config_path(&cluster)).await.is_none())
        .await;
    cluster.settle().await;
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(
        node["metadata"]["labels"].get(name::RECLAIM_AGENT_KEY),
        None
    );
    assert_eq!(agent(&cluster).await, Value::Null);
}

async fn the_configuration_is_deleted_with_its_node() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    namespace(&cluster).await;
    cluster.bring_up(&watched()).await;
    cluster.settle().await;
    assert!(cluster.get(&config_path(&cluster)).await.is_some());
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("worker"), &kill).await;
    cluster
        .wait_for_phase("worker", "Terminated", instant(LIMIT))
        .await;
    cluster
        .wait_until_gone(&config_path(&cluster), instant(LIMIT))
        .await;
}

/// Allows the operator to use ConfigMaps in all namespaces, like the administrator in Cluster API's
/// own kubeconfigs. The shipped rights would be deleted with the namespace that they are in.
async fn let_administrate(cluster: &Cluster) {
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "administrator"});
    cluster
        .apply(&json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["configmaps"],
                       "verbs": ["get", "list", "watch", "create", "patch", "delete"]}],
        }))
        .await;
    cluster
        .apply(&json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "administrator"},
            "subjects": [{"kind": "ServiceAccount", "name": name::CONTROLLER,
                          "namespace": name::SYSTEM_NAMESPACE}],
        }))
        .await;
}

async fn without_the_agents_namespace_the_machine_serves_and_the_status_reports_it() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let_administrate(&cluster).await;
    let path = format!("/api/v1/namespaces/{}", name::SYSTEM_NAMESPACE);
    cluster.delete(&path).await;
    cluster.wait_until_gone(&path, instant(LIMIT)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&watched()).await;
    cluster.settle().await;
    let reported = agent(&cluster).await;
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("False"), &json!("NotInstalled"))
    );
    assert!(
        reported["message"]
            .as_str()
            .unwrap()
            .contains("5spot-system"),
        "{reported}"
    );
    assert_eq!(cluster.status("worker").await["phase"], "Active");
    namespace(&cluster).await;
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    assert!(cluster.get(&config_path(&cluster)).await.is_some());
}

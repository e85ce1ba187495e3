//! Values of other objects follow a schedule.

use fivespot_api::condition::Actor;
use fivespot_api::name::{CAPACITY_CONTROLLER, CAPACITY_LEASE, service_account_user};
use fivespot_api::verdict::capacity::verdict_of;
use fivespot_api::verdict::{self, State};
use fivespot_install::role::{NamespaceScope, Rights};
use fivespot_testkit::{
    AuditEvent, BEFORE_CLOSING, CLOSING, Cluster, Coordination, Lease, LeaseTiming, User,
    condition, instant, path_of, scheduled_machine,
};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_deployment_is_scaled_through_its_subresource),
    promise!(an_autoscaler_a_quota_and_a_cron_job_follow_the_schedule),
    promise!(a_node_pool_of_cluster_scope_gets_its_limit)
        .on_embedded_alone("installs a kind of cluster scope"),
    promise!(an_edge_is_one_write_of_the_target_and_one_status),
    promise!(idle_capacities_cause_no_requests),
    promise!(an_hour_after_an_edge_of_a_thousand_capacities_has_no_request)
        .on_embedded_alone("creates two thousand objects"),
    promise!(a_value_that_another_client_changes_is_written_again_until_it_is_contested),
    promise!(
        a_client_that_leaves_the_field_out_and_the_operator_change_nothing_of_each_other
    )
    .on_embedded_alone("advances the clock by an hour, second by second"),
    promise!(an_object_of_a_template_is_created_and_owned),
    promise!(a_hold_keeps_the_value_until_it_ends),
    promise!(without_the_schedule_that_is_followed_nothing_is_written),
    promise!(the_kill_switch_writes_the_inactive_value),
    promise!(on_the_node_of_a_machine_the_inactive_value_is_written),
    promise!(a_kind_that_the_operator_may_not_read_is_reported),
    promise!(who_may_not_patch_a_target_cannot_make_it_follow_a_schedule)
        .on_embedded_alone("refuses the ScheduledCapacities of all other promises"),
    promise!(
        before_a_kind_or_a_namespace_is_the_operators_no_capacity_about_it_is_stored
    )
    .on_embedded_alone("refuses the ScheduledCapacities of all other promises"),
    promise!(a_capacity_of_no_kind_that_may_be_changed_can_be_switched_off_and_deleted)
        .on_embedded_alone("refuses the ScheduledCapacities of all other promises"),
    promise!(a_missing_target_is_blocked_with_what_to_do_until_it_exists),
    promise!(the_controller_of_capacities_has_rights_of_its_own)
        .on_embedded_alone("runs it under its own account"),
    promise!(a_closing_waits_until_the_target_is_drained)
        .on_embedded_alone("plays the controller of the target"),
];

/// In New York, where [`CLOSING`] is 18:00 on Friday.
pub(crate) fn capacity(name: &str, target: Value, fields: Value) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": {
                "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"],
                "timezone": "America/New_York",
            },
            "target": target,
            "fields": fields,
        },
    })
}

fn scaled(name: &str, kind: &str) -> Value {
    let target = json!({
        "apiVersion": "apps/v1", "kind": kind, "name": name, "subresource": "scale",
    });
    let field = json!([{"field": "replicas", "activeValue": 3, "inactiveValue": 0}]);
    capacity(name, target, field)
}

fn workload(name: &str, kind: &str) -> Value {
    let labels = json!({"app": name});
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
            },
        },
    });
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = json!(name);
    }
    object
}

fn deployment(name: &str) -> Value {
    workload(name, "Deployment")
}

fn quota(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "1"}},
    })
}

fn quota_target(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "name": name})
}

fn cpu() -> Value {
    json!([{"field": "hard[\"requests.cpu\"]", "activeValue": "4000m", "inactiveValue": "0"}])
}

fn capacity_path(name: &str) -> String {
    path_of(&scaled(name, "Deployment"))
}

pub(crate) async fn wait_for_phase(cluster: &Cluster, name: &str, phase: &str) -> Value {
    let is_in = |object: &Value| object["status"]["phase"] == phase;
    cluster.wait_briefly(&capacity_path(name), is_in).await
}

async fn a_deployment_is_scaled_through_its_subresource() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.create(&deployment("web")).await.unwrap();
    cluster.apply(&scaled("web", "Deployment")).await;
    let active = wait_for_phase(&cluster, "web", "Active").await;
    let status = &active["status"];
    assert_eq!(status["writtenValue"], 3);
    assert_eq!(status["nextTransition"], CLOSING);
    assert_eq!(status["targetRef"]["name"], "web");
    assert_eq!(condition(status, "Ready")["status"], "True");
    let path = path_of(&deployment("web"));
    assert_eq!(cluster.get(&path).await.unwrap()["spec"]["replicas"], 3);
    cluster.advance_to(CLOSING).await;
    let inactive = wait_for_phase(&cluster, "web", "Inactive").await;
    assert_eq!(cluster.get(&path).await.unwrap()["spec"]["replicas"], 0);
    // Monday at 09:00 in New York, after the change of the clocks.
    assert_eq!(inactive["status"]["nextTransition"], "2026-03-09T13:00:00Z");
    let written = cluster.operator_writes_to("deployments/scale");
    assert_eq!(written.len(), 2, "{written:?}");
    assert_eq!(cluster.operator_writes_to("deployments"), [""; 0]);
}

async fn an_autoscaler_a_quota_and_a_cron_job_follow_the_schedule() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2, "maxReplicas": 10,
        },
    });
    let template = workload("web", "Deployment")["spec"]["template"].clone();
    let mut pod = template["spec"].clone();
    pod["restartPolicy"] = json!("Never");
    let report = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report", "namespace": "default"},
        "spec": {
            "schedule": "*/5 * * * *",
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    });
    for object in [&autoscaler, &quota("team"), &report] {
        cluster.create(object).await.unwrap();
    }
    let of = |object: &Value| {
        json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "name": object["metadata"]["name"],
        })
    };
    let bounds = json!([
        {"field": "minReplicas", "activeValue": 5, "inactiveValue": 1},
        {"field": "maxReplicas", "activeValue": 20, "inactiveValue": 1},
    ]);
    let suspend =
        json!([{"field": "suspend", "activeValue": false, "inactiveValue": true}]);
    cluster
        .apply(&capacity("autoscaler", of(&autoscaler), bounds))
        .await;
    cluster
        .apply(&capacity("quota", quota_target("team"), cpu()))
        .await;
    cluster
        .apply(&capacity("cron-job", of(&report), suspend))
        .await;
    let names = ["autoscaler", "quota", "cron-job"];
    for name in names {
        wait_for_phase(&cluster, name, "Active").await;
    }
    let spec = async |object: &Value| {
        let found = cluster.get(&path_of(object)).await.unwrap();
        found["spec"].clone()
    };
    let bounds = spec(&autoscaler).await;
    assert_eq!(
        (&bounds["minReplicas"], &bounds["maxReplicas"]),
        (&json!(5), &json!(20))
    );
    // A server stores quantities in its own form.
    assert_eq!(spec(&quota("team")).await["hard"]["requests.cpu"], "4");
    assert_eq!(spec(&report).await["suspend"], false);
    cluster.advance_to(CLOSING).await;
    for name in names {
        wait_for_phase(&cluster, name, "Inactive").await;
    }
    let bounds = spec(&autoscaler).await;
    assert_eq!(
        (&bounds["minReplicas"], &bounds["maxReplicas"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(spec(&quota("team")).await["hard"]["requests.cpu"], "0");
    assert_eq!(spec(&report).await["suspend"], true);
    for resource in ["horizontalpodautoscalers", "cronjobs", "resourcequotas"] {
        let written = cluster.operator_writes_to(resource);
        assert!((1..=2).contains(&written.len()), "{resource}: {written:?}");
    }
}

async fn a_node_pool_of_cluster_scope_gets_its_limit() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let limits = json!({"type": "object", "additionalProperties": {
        "x-kubernetes-int-or-string": true,
    }});
    let spec = json!({"type": "object", "properties": {"limits": limits}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodepools.karpenter.sh"},
        "spec": {
            "group": "karpenter.sh",
            "names": {"kind": "NodePool", "plural": "nodepools"},
            "scope": "Cluster",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let target =
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "batch"});
    let field =
        json!([{"field": "limits[\"cpu\"]", "activeValue": "200", "inactiveValue": "0"}]);
    cluster.apply(&capacity("batch", target, field)).await;
    let pending = wait_for_phase(&cluster, "batch", "Pending").await;
    let resolved = condition(&pending["status"], "TargetResolved");
    assert_eq!(resolved["reason"], "KindNotServed");
    // The kind and its object come later.
    cluster.apply(&definition).await;
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "batch"}, "spec": {"limits": {"memory": "1Ti"}},
    });
    let is_served =
        |object: &Value| condition(&object["status"], "Established")["status"] == "True";
    cluster.wait_briefly(&path_of(&definition), is_served).await;
    cluster.advance_to("2026-03-06T22:52:00Z").await;
    cluster.create(&pool).await.unwrap();
    wait_for_phase(&cluster, "batch", "Active").await;
    let path = path_of(&pool);
    let limits = cluster.get(&path).await.unwrap()["spec"]["limits"].clone();
    assert_eq!(limits, json!({"memory": "1Ti", "cpu": "200"}));
    cluster.advance_to(CLOSING).await;
    wait_for_phase(&cluster, "batch", "Inactive").await;
    let limits = cluster.get(&path).await.unwrap()["spec"]["limits"].clone();
    assert_eq!(limits, json!({"memory": "1Ti", "cpu": "0"}));
}

async fn an_edge_is_one_write_of_the_target_and_one_status() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.create(&quota("team")).await.unwrap();
    cluster
        .apply(&capacity("quota", quota_target("team"), cpu()))
        .await;
    wait_for_phase(&cluster, "quota", "Active").await;
    cluster.settle().await;
    let before = cluster.operator_requests().len();
    cluster.advance_to(CLOSING).await;
    wait_for_phase(&cluster, "quota", "Inactive").await;
    cluster.settle().await;
    let requests = cluster.operator_requests();
    let sent: Vec<_> = requests[before..]
        .iter()
        .filter(|event| event.is_write())
        .map(|event| event.resource.clone())
        .collect();
    assert_eq!(sent, ["resourcequotas", "scheduledcapacities"]);
}

async fn idle_capacities_cause_no_requests() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    for number in 0..20 {
        let name = format!("web-{number}");
        cluster.create(&deployment(&name)).await.unwrap();
        cluster.apply(&scaled(&name, "Deployment")).await;
    }
    for number in 0..20 {
        wait_for_phase(&cluster, &format!("web-{number}"), "Active").await;
    }
    cluster.advance_to("2026-03-06T15:05:00Z").await;
    let before = cluster.operator_requests().len();
    // A change of a target that is no change of its value.
    let path = path_of(&deployment("web-0"));
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    cluster.patch(&path, &labels).await;
    cluster.advance_to("2026-03-06T22:59:59Z").await;
    let requests = cluster.operator_requests();
    assert_eq!(requests[before..], []);
}

async fn an_hour_after_an_edge_of_a_thousand_capacities_has_no_request() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    for number in 0..1_000 {
        let name = format!("web-{number}");
        cluster.create(&deployment(&name)).await.unwrap();
        cluster.create(&scaled(&name, "Deployment")).await.unwrap();
    }
    cluster.settle().await;
    let before = cluster.operator_requests().len();
    cluster.advance_to(CLOSING).await;
    cluster.settle().await;
    let requests = cluster.operator_requests();
    let written = |resource: &str, subresource: &str| {
        let is_it = |event: &&AuditEvent| {
            (event.resource.as_str(), event.subresource.as_str())
                == (resource, subresource)
        };
        requests[before..].iter().filter(is_it).count()
    };
    assert_eq!(written("deployments", "scale"), 1_000);
    assert_eq!(written("scheduledcapacities", "status"), 1_000);
    assert_eq!(requests.len() - before, 2_000);
    cluster
        .advance_until(instant(CLOSING) + SignedDuration::from_hours(1))
        .await;
    assert_eq!(cluster.operator_requests()[requests.len()..], []);
}

/// A client that applies the same manifest every second, as a GitOps controller does, without the
/// field that follows the schedule.
async fn a_client_that_leaves_the_field_out_and_the_operator_change_nothing_of_each_other()
 {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut manifest = deployment("web");
    manifest["spec"].as_object_mut().unwrap().remove("replicas");
    cluster.apply(&manifest).await;
    cluster.apply(&scaled("web", "Deployment")).await;
    wait_for_phase(&cluster, "web", "Active").await;
    let applied = async || {
        let found = cluster.try_apply(&manifest).await.unwrap();
        let entries = found["metadata"]["managedFields"].as_array().unwrap();
        let fields = |it: &Value| {
            // The time of an entry is that of its last change of fields.
            let of = [
                &it["manager"],
                &it["subresource"],
                &it["fieldsV1"],
                &it["time"],
            ];
            json!(of)
        };
        let entries: Vec<Value> = entries.iter().map(fields).collect();
        (entries, found["spec"]["replicas"].clone())
    };
    let (owners, replicas) = applied().await;
    assert_eq!(replicas, 3);
    let owns =
        |it: &Value| it[1].is_null() && it[2]["f:spec"].get("f:replicas").is_some();
    assert!(!owners.iter().any(owns), "{owners:?}");
    let [begin, closing] = [BEFORE_CLOSING, CLOSING].map(instant);
    let mut closed = None;
    for second in 1..=3_600 {
        let now = begin + SignedDuration::from_secs(second);
        cluster.advance_until(now).await;
        let (found, replicas) = applied().await;
        if now < closing {
            assert_eq!((found, replicas), (owners.clone(), json!(3)), "at {now}");
        } else {
            let closed = closed.get_or_insert_with(|| found.clone());
            assert_eq!((found, replicas), (closed.clone(), json!(0)), "at {now}");
        }
    }
    let written = cluster.operator_writes_to("deployments/scale");
    assert_eq!(written.len(), 2, "{written:?}");
}

async fn a_value_that_another_client_changes_is_written_again_until_it_is_contested() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.create(&quota("team")).await.unwrap();
    cluster
        .apply(&capacity("quota", quota_target("team"), cpu()))
        .await;
    wait_for_phase(&cluster, "quota", "Active").await;
    let path = path_of(&quota("team"));
    let other = json!({"spec": {"hard": {"requests.cpu": "9"}}});
    let is_ours = |object: &Value| object["spec"]["hard"]["requests.cpu"] == "4";
    for _ in 0..2 {
        cluster.patch(&path, &other).await;
        cluster.wait_briefly(&path, is_ours).await;
    }
    cluster.patch(&path, &other).await;
    let is_contested = |object: &Value| {
        condition(&object["status"], "FieldContested")["status"] == "True"
    };
    let contested = cluster
        .wait_briefly(&capacity_path("quota"), is_contested)
        .await;
    let by = contested["status"]["contestedBy"].as_str().unwrap();
    assert!(!by.is_empty() && by != "5spot", "{by}");
    cluster.advance_to("2026-03-06T17:00:00Z").await;
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["spec"]["hard"]["requests.cpu"], "9");
    // At the edge it is written, once.
    cluster.advance_to(CLOSING).await;
    wait_for_phase(&cluster, "quota", "Inactive").await;
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["spec"]["hard"]["requests.cpu"], "0");
}

async fn an_object_of_a_template_is_created_and_owned() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let target = json!({"apiVersion": "v1", "kind": "ResourceQuota"});
    let mut templated = capacity("team", target, cpu());
    templated["spec"]["template"] = json!({"hard": {"pods": "10"}});
    cluster.apply(&templated).await;
    wait_for_phase(&cluster, "team", "Active").await;
    let path = path_of(&quota("team"));
    let created = cluster.get(&path).await.unwrap();
    let hard = json!({"pods": "10", "requests.cpu": "4"});
    assert_eq!(created["spec"]["hard"], hard);
    let owner = &created["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("ScheduledCapacity"), &json!(true),)
    );
    // An edit of the template reaches the object.
    let edit = json!({"spec": {"template": {"hard": {"pods": "20"}}}});
    cluster.patch(&capacity_path("team"), &edit).await;
    let is_edited = |object: &Value| object["spec"]["hard"]["pods"] == "20";
    cluster.wait_briefly(&path, is_edited).await;
    cluster.advance_to(CLOSING).await;
    wait_for_phase(&cluster, "team", "Inactive").await;
    let found = cluster.get(&path).await.unwrap();
    let hard = json!({"pods": "20", "requests.cpu": "0"});
    assert_eq!(found["spec"]["hard"], hard);
    // One of another owner is left alone.
    cluster.create(&quota("other")).await.unwrap();
    let mut other = templated.clone();
    other["metadata"]["name"] = json!("other");
    cluster.apply(&other).await;
    let error = wait_for_phase(&cluster, "other", "Error").await;
    let resolved = condition(&error["status"], "TargetResolved");
    assert_eq!(resolved["reason"], "TargetNotOwned");
    let found = cluster.get(&path_of(&quota("other"))).await.unwrap();
    assert_eq!(found["spec"]["hard"], json!({"requests.cpu": "1"}));
}

async fn a_hold_keeps_the_value_until_it_ends() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.create(&quota("team")).await.unwrap();
    cluster
        .apply(&capacity("quota", quota_target("team"), cpu()))
        .await;
    wait_for_phase(&cluster, "quota", "Active").await;
    let hold = json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleOverride",
        "metadata": {"name": "freeze", "namespace": "default"},
        "spec": {
            "targetRef": {"kind": "ScheduledCapacity", "name": "quota"},
            "mode": "Hold",
            "endTime": "2026-03-06T23:30:00Z",
        },
    });
    cluster.apply(&hold).await;
    let is_held =
        |object: &Value| condition(&object["status"], "Ready")["reason"] == "Held";
    cluster.wait_briefly(&capacity_path("quota"), is_held).await;
    let is_found =
        |object: &Value| condition(&object["status"], "TargetFound")["status"] == "True";
    cluster.wait_briefly(&path_of(&hold), is_found).await;
    cluster.advance_to("2026-03-06T23:29:59Z").await;
    let path = path_of(&quota("team"));
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["spec"]["hard"]["requests.cpu"], "4");
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    wait_for_phase(&cluster, "quota", "Inactive").await;
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["spec"]["hard"]["requests.cpu"], "0");
}

async fn without_the_schedule_that_is_followed_nothing_is_written() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.create(&quota("team")).await.unwrap();
    let mut follower = capacity("quota", quota_target("team"), cpu());
    let group = "spotschedules.5spot.finos.org/v1alpha1";
    follower["spec"]["schedule"] =
        json!({"apiVersion": group, "kind": "TimeBasedSpotSchedule", "name": "office"});
    cluster.apply(&follower).await;
    let pending = wait_for_phase(&cluster, "quota", "Pending").await;
    let resolved = condition(&pending["status"], "SpotScheduleResolved");
    assert_eq!(resolved["reason"], "ProviderNotFound");
    let path = path_of(&quota("team"));
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["spec"]["hard"]["requests.cpu"], "1");
    let office = json!({
        "apiVersion": group,
        "kind": "TimeBasedSpotSchedule",
        "metadata": {"name": "office", "namespace": "default"},
        "spec": {
            "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"],
            "timezone": "America/New_York",
        },
    });
    cluster.apply(&office).await;
    let active = wait_for_phase(&cluster, "quota", "Active").await;
    assert_eq!(active["status"]["spotSchedule"]["active"], true);
    cluster.delete(&path_of(&office)).await;
    let is_missing = |object: &Value| {
        condition(&object["status"], "SpotScheduleResolved")["status"] == "False"
    };
    cluster
        .wait_briefly(&capacity_path("quota"), is_missing)
        .await;
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["spec"]["hard"]["requests.cpu"], "4");
}

async fn the_kill_switch_writes_the_inactive_value() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.create(&deployment("web")).await.unwrap();
    cluster.apply(&scaled("web", "Deployment")).await;
    wait_for_phase(&cluster, "web", "Active").await;
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&capacity_path("web"), &kill).await;
    wait_for_phase(&cluster, "web", "Terminated").await;
    let path = path_of(&deployment("web"));
    assert_eq!(cluster.get(&path).await.unwrap()["spec"]["replicas"], 0);
    let back = json!({"spec": {"killSwitch": false}});
    cluster.patch(&capacity_path("web"), &back).await;
    wait_for_phase(&cluster, "web", "Active").await;
    assert_eq!(cluster.get(&path).await.unwrap()["spec"]["replicas"], 3);
}

async fn on_the_node_of_a_machine_the_inactive_value_is_written() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.create(&quota("team")).await.unwrap();
    let hosted = capacity("quota", quota_target("team"), cpu());
    cluster.apply(&hosted).await;
    wait_for_phase(&cluster, "quota", "Active").await;
    // The value was written before its Node was that of a machine.
    let machine = cluster.bring_up(&scheduled_machine("worker")).await;
    let node = &machine["status"]["nodeRef"]["name"];
    let on_node = json!({"spec": {"nodeName": node}});
    cluster.patch(&capacity_path("quota"), &on_node).await;
    let is_governed = |object: &Value| {
        condition(&object["status"], "HostGovernanceConflict")["status"] == "True"
    };
    let governed = cluster
        .wait_briefly(&capacity_path("quota"), is_governed)
        .await;
    assert_eq!(governed["status"]["governedNode"], *node);
    let found = cluster.get(&path_of(&quota("team"))).await.unwrap();
    assert_eq!(found["spec"]["hard"]["requests.cpu"], "0");
}

async fn a_kind_that_the_operator_may_not_read_is_reported() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let target = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent"});
    let field =
        json!([{"field": "minReadySeconds", "activeValue": 1, "inactiveValue": 0}]);
    cluster.apply(&capacity("agent", target, field)).await;
    let pending = wait_for_phase(&cluster, "agent", "Pending").await;
    let resolved = condition(&pending["status"], "TargetResolved");
    assert_eq!(resolved["reason"], "Forbidden");
    let message = resolved["message"].as_str().unwrap();
    assert!(message.contains("--capacity-target"), "{message}");
}

async fn a_closing_waits_until_the_target_is_drained() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let database = workload("db", "StatefulSet");
    cluster.create(&database).await.unwrap();
    let path = path_of(&database);
    let running = async |replicas: i64| {
        let status = json!({"status": {"replicas": replicas}});
        cluster.patch(&format!("{path}/status"), &status).await;
    };
    running(3).await;
    let mut awaiting = scaled("db", "StatefulSet");
    awaiting["spec"]["handback"] = json!({"drainedPath": "status.replicas"});
    cluster.apply(&awaiting).await;
    wait_for_phase(&cluster, "db", "Active").await;
    cluster.advance_to(CLOSING).await;
    let leaving = wait_for_phase(&cluster, "db", "HandingBack").await;
    assert_eq!(
        leaving["status"]["handbackDeadline"],
        "2026-03-06T23:10:00Z"
    );
    assert_eq!(leaving["status"]["observedDrainedValue"], 3);
    assert_eq!(cluster.get(&path).await.unwrap()["spec"]["replicas"], 0);
    cluster.advance_to("2026-03-06T23:10:00Z").await;
    let late = wait_for_phase(&cluster, "db", "HandbackTimedOut").await;
    let complete = condition(&late["status"], "HandbackComplete");
    assert_eq!(complete["reason"], "HandbackTimedOut");
    running(0).await;
    wait_for_phase(&cluster, "db", "Inactive").await;
}

/// What `5spot status` and `5spot explain` show follows from the status alone.
async fn a_missing_target_is_blocked_with_what_to_do_until_it_exists() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let judged =
        |object: &Value| verdict_of(object, &verdict::Lease::Held, cluster.clock().now());
    cluster
        .apply(&capacity("quota", quota_target("team"), cpu()))
        .await;
    let blocked = judged(&wait_for_phase(&cluster, "quota", "Pending").await);
    assert_eq!(
        (blocked.state, blocked.actor),
        (State::Blocked, Actor::Owner),
        "{blocked:?}"
    );
    assert!(blocked.cause.contains("create it"), "{blocked:?}");
    assert!(blocked.remedy.unwrap().starts_with("Create it. "));
    cluster.create(&quota("team")).await.unwrap();
    let written = judged(&wait_for_phase(&cluster, "quota", "Active").await);
    assert_eq!((written.state, written.remedy), (State::Serving, None));
}

/// Its requests, none of which is refused, are about no machine, and the operator of machines may
/// not change what it may.
async fn the_controller_of_capacities_has_rights_of_its_own() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let rights = rights_of_targets(&["resourcequotas"]);
    for object in rights.limits().into_iter().chain(rights.management()) {
        cluster.apply(&object).await;
    }
    let own = service_account_user(&rights.namespace, CAPACITY_CONTROLLER);
    let client = |user: &str| {
        let groups = ["system:serviceaccounts", "system:authenticated"];
        let user = User::new(user, &groups);
        Client::new(cluster.server().in_process_as(user), "default")
    };
    let _controller = cluster.operator_with(|options| {
        options.controllers.machines = false;
        options.client = client(&own);
        options.coordination = Coordination::Leader(Lease {
            namespace: rights.namespace.clone(),
            name: CAPACITY_LEASE.to_owned(),
            timing: LeaseTiming::default(),
        });
    });
    cluster.create(&quota("team")).await.unwrap();
    cluster.create(&scheduled_machine("worker")).await.unwrap();
    cluster
        .apply(&capacity("quota", quota_target("team"), cpu()))
        .await;
    wait_for_phase(&cluster, "quota", "Active").await;
    cluster.advance_until(instant(CLOSING)).await;
    wait_for_phase(&cluster, "quota", "Inactive").await;
    let requests = cluster.requests();
    let requests: Vec<_> = requests.iter().filter(|it| it.user == own).collect();
    for request in &requests {
        let resource = request.resource.as_str();
        let is_foreign = ["scheduledmachines", "machines", "secrets"].contains(&resource);
        assert!(!is_foreign && request.code < 400, "{request:?}");
    }
    assert!(requests.iter().any(|it| it.resource == "resourcequotas"));
    let operator = client("system:serviceaccount:5spot-system:5spot-controller");
    let quotas: Api<ResourceQuota> = Api::default_namespaced(operator);
    let refused = quotas.get("team").await.unwrap_err().to_string();
    assert!(refused.contains("cannot get resource"), "{refused}");
}

/// The permissions of an installation whose capacities may change these kinds.
fn rights_of_targets(kinds: &[&str]) -> Rights {
    Rights {
        capacity_targets: kinds.iter().map(|it| it.parse().unwrap()).collect(),
        ..Rights::default()
    }
}

/// The policy of an installation whose capacities may change these kinds.
pub(crate) fn policy_about_targets() -> Vec<Value> {
    let kinds = [
        "deployments.apps/scale",
        "nodepools.karpenter.sh",
        "resourcequotas/template",
        "statefulsets.apps/scale",
    ];
    rights_of_targets(&kinds).capacity_policy()
}

/// What jane may do herself.
pub(crate) fn rights_of_jane() -> [Value; 2] {
    let rules = json!([
        {"apiGroups": ["5spot.finos.org"], "resources": ["scheduledcapacities"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["patch"]},
        // Without effect on objects of cluster scope.
        {"apiGroups": ["karpenter.sh"], "resources": ["nodepools"], "verbs": ["*"]},
    ]);
    let metadata = json!({"name": "jane", "namespace": "default"});
    let group = "rbac.authorization.k8s.io";
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": metadata, "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "jane"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
        }),
    ]
}

/// Creates an object as jane; `Err` is the message of the refusal.
pub(crate) async fn create_as_jane(
    cluster: &Cluster,
    object: &Value,
) -> Result<(), String> {
    let request = http::Request::post(
        "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledcapacities",
    )
    .header("Impersonate-User", "jane")
    .header("Content-Type", "application/json")
    .body(object.to_string().into_bytes())
    .unwrap();
    let created = cluster.client().request::<Value>(request).await;
    created.map(drop).map_err(|error| error.to_string())
}

async fn who_may_not_patch_a_target_cannot_make_it_follow_a_schedule() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    for object in policy_about_targets() {
        cluster.apply(&object).await;
    }
    for object in rights_of_jane() {
        cluster.create(&object).await.unwrap();
    }
    cluster.settle().await;
    jane_writes_no_other_target_than_she_may(&cluster).await;
}

/// A capacity whose target jane may write.
pub(crate) fn capacity_of_jane() -> Value {
    let mut object = scaled("mine", "Deployment");
    object["spec"]["target"]["name"] = json!("web");
    object
}

/// With [`rights_of_jane`] and the kinds of [`policy_about_targets`].
pub(crate) async fn jane_writes_no_other_target_than_she_may(cluster: &Cluster) {
    let of = |api_version: &str, kind: &str, subresource: Option<&str>| {
        let mut target = json!({"apiVersion": api_version, "kind": kind, "name": "web"});
        if let Some(subresource) = subresource {
            target["subresource"] = json!(subresource);
        }
        let field = json!([{"field": "replicas", "activeValue": 3, "inactiveValue": 0}]);
        capacity("mine", target, field)
    };
    let mut templated = of("v1", "ResourceQuota", None);
    templated["spec"]["target"] = json!({"apiVersion": "v1", "kind": "ResourceQuota"});
    templated["spec"]["template"] = json!({"hard": {}});
    let attempts = [
        (
            of("apps/v1", "Deployment", None),
            "you may not patch deployments yourself",
        ),
        (
            of("apps/v1", "StatefulSet", Some("scale")),
            "you may not patch statefulsets yourself",
        ),
        (
            of("example.com/v1", "Deployment", Some("scale")),
            "Deployment.example.com is none of the kinds",
        ),
        (of("v1", "Secret", None), "Secret is none of the kinds"),
        (
            of("karpenter.sh/v1", "NodePool", None),
            "you may not patch nodepools yourself",
        ),
        (templated, "you may not create resourcequotas yourself"),
    ];
    for (object, words) in attempts {
        let refused = create_as_jane(cluster, &object).await.unwrap_err();
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(create_as_jane(cluster, &capacity_of_jane()).await, Ok(()));
}

async fn before_a_kind_or_a_namespace_is_the_operators_no_capacity_about_it_is_stored() {
    let confined = Rights {
        namespaces: NamespaceScope::Only(["elsewhere".to_owned()].into()),
        ..rights_of_targets(&["nodepools.karpenter.sh"])
    };
    for rights in [Rights::default(), confined] {
        let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
        for object in rights.capacity_policy() {
            cluster.apply(&object).await;
        }
        for object in rights_of_jane() {
            cluster.create(&object).await.unwrap();
        }
        cluster.settle().await;
        let refused = create_as_jane(&cluster, &capacity_of_jane())
            .await
            .unwrap_err();
        let words = "Deployment.apps is none of the kinds that the operator may change";
        assert!(refused.contains(words), "{refused}");
    }
}

async fn a_capacity_of_no_kind_that_may_be_changed_can_be_switched_off_and_deleted() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let mut stored = scaled("web", "Deployment");
    stored["metadata"]["finalizers"] = json!(["example.com/kept"]);
    cluster.create(&stored).await.unwrap();
    cluster
        .create(&scaled("other", "Deployment"))
        .await
        .unwrap();
    for object in Rights::default().capacity_policy() {
        cluster.apply(&object).await;
    }
    cluster.settle().await;
    let refused = async |name: &str, change: Value| {
        let answer = cluster.try_patch(&capacity_path(name), &change).await;
        let message = answer.unwrap_err().to_string();
        assert!(message.contains("is none of the kinds"), "{message}");
    };
    refused("other", json!({"spec": {"leadTime": "5m"}})).await;
    let more = json!({"spec": {"killSwitch": true, "leadTime": "5m"}});
    refused("other", more).await;
    let path = capacity_path("web");
    for admitted in [
        json!({"metadata": {"labels": {"team": "a"}}}),
        json!({"spec": {"killSwitch": true}}),
        json!({"spec": {"enabled": false}}),
    ] {
        cluster.patch(&path, &admitted).await;
    }
    refused("web", json!({"spec": {"killSwitch": false}})).await;
    cluster.delete(&path).await;
    let released = json!({"metadata": {"finalizers": null}});
    cluster.patch(&path, &released).await;
    assert_eq!(cluster.get(&path).await, None);
}

//! A number of machines that are alike: a set is scaled as Kubernetes scales its own kinds.

use std::collections::BTreeSet;

use fivespot_api::name;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, condition, instant, machine_path, path_of,
    scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::classes;
use crate::promise::{Promise, promise};
use crate::scales_on_schedule::capacity;
use crate::shares_hosts_of_a_class::hosts_of;

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_set_is_scaled_by_its_subresource),
    promise!(the_template_of_a_set_reaches_its_machines),
    promise!(the_machines_of_a_deleted_set_are_shut_down),
    promise!(a_set_that_is_deleted_in_the_foreground_waits_for_its_machines),
    promise!(a_schedule_scales_a_set),
    promise!(a_machine_of_somebody_else_is_not_adopted),
    promise!(a_set_is_replaced_under_its_name),
    promise!(what_the_server_refuses_of_a_set_is_reported)
        .on_embedded_alone("needs a quota that counts a new kind at once"),
    promise!(who_may_not_use_a_class_cannot_name_it_in_a_set),
    promise!(five_of_eight_hosts_serve_on_when_one_fails_and_one_is_reclaimed),
    promise!(a_crash_after_any_write_makes_no_machine_too_many)
        .on_embedded_alone("starts a cluster for each write"),
];

/// The hosts of the class.
const HOSTS: [&str; 8] = [
    "host-1", "host-2", "host-3", "host-4", "host-5", "host-6", "host-7", "host-8",
];

const MACHINES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";

/// The set `desks` of machines of the class of the test.
fn set(cluster: &Cluster, replicas: u32) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachineSet",
        "metadata": {"name": "desks", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": {"team": "a"}},
                "spec": {
                    "schedule": scheduled_machine("worker")["spec"]["schedule"],
                    "classRef": {"name": classes::name(cluster)},
                },
            },
        },
    })
}

fn path() -> String {
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachinesets/desks"
        .to_owned()
}

/// A cluster with the class and a Cluster that is ready.
async fn start(now: &str) -> Cluster {
    let cluster = Cluster::start(instant(now)).await;
    cluster.add_cluster().await;
    let mut class = classes::class(&cluster);
    class["spec"]["hosts"] = hosts_of(&HOSTS);
    cluster.apply(&class).await;
    cluster
}

/// Waits until so many machines exist and are Active, and none is leaving; returns their names.
async fn rest_at(cluster: &Cluster, count: usize) -> Vec<String> {
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    let is_scaled = |set: &Value| {
        let status = &set["status"];
        status["replicas"] == count
            && status["activeReplicas"] == count
            && status["observedGeneration"] == set["metadata"]["generation"]
            && condition(status, "Ready")["message"]
                == format!("{count} of {count} ScheduledMachines exist")
    };
    cluster.wait_for(&path(), limit, is_scaled).await;
    let has_as_many =
        |list: &Value| list["items"].as_array().is_some_and(|it| it.len() == count);
    let list = cluster.wait_for(MACHINES, limit, has_as_many).await;
    let mut names = names_of(&list);
    names.sort();
    names
}

fn names_of(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    let names = items.filter_map(|it| it["metadata"]["name"].as_str());
    names.map(str::to_owned).collect()
}

fn machines(count: u32) -> Vec<String> {
    (0..count).map(|index| format!("desks-{index}")).collect()
}

async fn scale(cluster: &Cluster, replicas: u32) {
    let patch = json!({"spec": {"replicas": replicas}});
    let scaled = cluster.patch(&format!("{}/scale", path()), &patch).await;
    assert_eq!(scaled["kind"], "Scale", "{scaled}");
}

async fn a_set_is_scaled_by_its_subresource() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    cluster.apply(&set(&cluster, 5)).await;
    assert_eq!(rest_at(&cluster, 5).await, machines(5));
    for replicas in [8, 2, 0, 1] {
        scale(&cluster, replicas).await;
        let left = rest_at(&cluster, replicas as usize).await;
        assert_eq!(left, machines(replicas));
    }
    let scale = cluster.get(&format!("{}/scale", path())).await.unwrap();
    assert_eq!(scale["status"]["replicas"], 1);
    assert_eq!(
        scale["status"]["selector"],
        "5spot.finos.org/scheduled-machine-set=desks"
    );
    // Nothing of those that have left remains.
    let [_, _, machine] = cluster.owned_paths("desks-1");
    assert!(cluster.get(&machine).await.is_none());
}

async fn the_template_of_a_set_reaches_its_machines() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    cluster.apply(&set(&cluster, 2)).await;
    rest_at(&cluster, 2).await;
    let before = cluster.get(&machine_path("desks-1")).await.unwrap();
    // One has a priority of its own, which the edit does not touch.
    let own = json!({"spec": {"priority": 90}});
    cluster.patch(&machine_path("desks-0"), &own).await;
    let edit = json!({"spec": {"template": {
        "metadata": {"labels": {"team": "b"}},
        "spec": {"schedule": {"hoursOfDay": ["9-20"]}},
    }}});
    cluster.patch(&path(), &edit).await;
    for name in ["desks-0", "desks-1"] {
        let has_changed = |object: &Value| {
            object["spec"]["schedule"]["hoursOfDay"] == json!(["9-20"])
                && object["metadata"]["labels"]["team"] == "b"
        };
        cluster.wait_briefly(&machine_path(name), has_changed).await;
    }
    rest_at(&cluster, 2).await;
    let of = async |name| cluster.get(&machine_path(name)).await.unwrap();
    assert_eq!(of("desks-0").await["spec"]["priority"], 90);
    let after = of("desks-1").await;
    for pointer in ["/metadata/uid", "/status/machineRef/uid"] {
        assert_eq!(after.pointer(pointer), before.pointer(pointer), "{pointer}");
    }
}

/// The machines are gone, and so are their Machines.
async fn gone(cluster: &Cluster) {
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    let is_empty = |list: &Value| list["items"].as_array().is_some_and(Vec::is_empty);
    cluster.wait_for(MACHINES, limit, is_empty).await;
    for name in machines(2) {
        let [_, _, machine] = cluster.owned_paths(&name);
        cluster.wait_until_gone(&machine, limit).await;
    }
}

async fn the_machines_of_a_deleted_set_are_shut_down() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    cluster.apply(&set(&cluster, 2)).await;
    rest_at(&cluster, 2).await;
    let held = machine_path("desks-0");
    cluster.hold(&held).await;
    cluster.delete(&path()).await;
    // The finalizer of the operator is there until the Machine is gone.
    let is_shut_down = |object: &Value| {
        let finalizers = object["metadata"]["finalizers"].as_array();
        finalizers.is_some_and(|all| all.len() == 1)
    };
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    cluster.wait_for(&held, limit, is_shut_down).await;
    let [_, _, machine] = cluster.owned_paths("desks-0");
    assert!(cluster.get(&machine).await.is_none());
    cluster.release(&held).await;
    gone(&cluster).await;
}

async fn a_set_that_is_deleted_in_the_foreground_waits_for_its_machines() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    cluster.apply(&set(&cluster, 2)).await;
    rest_at(&cluster, 2).await;
    let held = machine_path("desks-1");
    cluster.hold(&held).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    cluster.delete_with(&path(), &foreground).await;
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    cluster
        .wait_until_gone(&machine_path("desks-0"), limit)
        .await;
    cluster.settle().await;
    // None is made anew meanwhile, and the set is there until the last one is gone.
    let list = cluster.get(MACHINES).await.unwrap();
    assert_eq!(names_of(&list), ["desks-1"]);
    assert!(cluster.get(&path()).await.is_some());
    cluster.release(&held).await;
    gone(&cluster).await;
    cluster.wait_until_gone(&path(), limit).await;
}

async fn a_schedule_scales_a_set() {
    let cluster = start(BEFORE_CLOSING).await;
    let _operator = cluster.operator();
    cluster.apply(&set(&cluster, 1)).await;
    let target = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineSet",
        "name": "desks", "subresource": "scale",
    });
    let field = json!([{"field": "replicas", "activeValue": 3, "inactiveValue": 1}]);
    cluster.apply(&capacity("desks", target, field)).await;
    let has = |replicas: u32| move |set: &Value| set["status"]["replicas"] == replicas;
    cluster.wait_briefly(&path(), has(3)).await;
    cluster.advance_to(CLOSING).await;
    cluster.wait_briefly(&path(), has(1)).await;
    let written = cluster.operator_writes_to("scheduledmachinesets/scale");
    // One may be refused, because the status of the set has just been written.
    let done = written.iter().filter(|it| it.ends_with(" 200")).count();
    assert_eq!(done, 2, "{written:?}");
}

async fn a_machine_of_somebody_else_is_not_adopted() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    let mut other = scheduled_machine("desks-1");
    other["spec"]["schedule"]["enabled"] = json!(false);
    cluster.apply(&other).await;
    cluster.settle().await;
    cluster.apply(&set(&cluster, 2)).await;
    let says_so = |set: &Value| {
        let ready = condition(&set["status"], "Ready");
        ready["status"] == "True"
            && ready["message"]
                .as_str()
                .is_some_and(|it| it.contains("desks-1 is not of this set"))
    };
    cluster.wait_briefly(&path(), says_so).await;
    let mut names = names_of(&cluster.get(MACHINES).await.unwrap());
    names.sort();
    assert_eq!(names, ["desks-0", "desks-1", "desks-2"]);
    let kept = cluster.get(&machine_path("desks-1")).await.unwrap();
    assert_eq!(kept["metadata"]["ownerReferences"], Value::Null);
    scale(&cluster, 0).await;
    let has_none = |set: &Value| set["status"]["replicas"] == 0;
    cluster.wait_briefly(&path(), has_none).await;
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    cluster
        .wait_until_gone(&machine_path("desks-2"), limit)
        .await;
    assert!(cluster.get(&machine_path("desks-1")).await.is_some());
}

/// Another set of the same name: its machines are those of the first one to nobody.
async fn a_set_is_replaced_under_its_name() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    cluster.apply(&set(&cluster, 2)).await;
    rest_at(&cluster, 2).await;
    cluster.hold(&machine_path("desks-0")).await;
    cluster.delete(&path()).await;
    cluster.apply(&set(&cluster, 1)).await;
    let is_scaled = |set: &Value| set["status"]["activeReplicas"] == 1;
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    cluster.wait_for(&path(), limit, is_scaled).await;
    let of_the_second = cluster.get(&path()).await.unwrap()["metadata"]["uid"].clone();
    let list = cluster.get(MACHINES).await.unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let own =
        items.filter(|it| it["metadata"]["ownerReferences"][0]["uid"] == of_the_second);
    assert_eq!(own.count(), 1);
    cluster.release(&machine_path("desks-0")).await;
}

async fn what_the_server_refuses_of_a_set_is_reported() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "machines", "namespace": "default"},
        "spec": {"hard": {"count/scheduledmachines.5spot.finos.org": "1"}},
    });
    cluster.apply(&quota).await;
    let is_counted = |quota: &Value| quota["status"]["hard"] == quota["spec"]["hard"];
    cluster.wait_briefly(&path_of(&quota), is_counted).await;
    cluster.apply(&set(&cluster, 2)).await;
    let is_refused = |set: &Value| {
        let ready = condition(&set["status"], "Ready");
        ready["reason"] == "WriteRejected"
            && ready["message"].as_str().is_some_and(|it| {
                it.starts_with("1 of 2 ScheduledMachines exist: ")
                    && it.contains("exceeded quota: machines")
            })
    };
    cluster.wait_briefly(&path(), is_refused).await;
    let more =
        json!({"spec": {"hard": {"count/scheduledmachines.5spot.finos.org": "5"}}});
    cluster.patch(&path_of(&quota), &more).await;
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    let is_scaled = |set: &Value| set["status"]["replicas"] == 2;
    cluster.wait_for(&path(), limit, is_scaled).await;
}

async fn who_may_not_use_a_class_cannot_name_it_in_a_set() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    for object in classes::rights_of_joe() {
        cluster.apply(&object).await;
    }
    cluster.settle().await;
    let mut of_desks = set(&cluster, 0);
    let class = |set: &mut Value, name: &str| {
        set["spec"]["template"]["spec"]["classRef"]["name"] = json!(name);
    };
    class(&mut of_desks, "desks");
    let mut other = of_desks.clone();
    class(&mut other, "servers");
    let refused = classes::create_as(&cluster, &other, Some("joe")).await;
    let refused = refused.unwrap_err();
    let words = "spec.template.spec.classRef.name: you may not use this class";
    assert!(refused.contains(words), "{refused}");
    classes::create_as(&cluster, &of_desks, Some("joe"))
        .await
        .unwrap();
}

/// Waits until the set has so many machines and so many of them serve.
async fn counts(cluster: &Cluster, replicas: usize, active: usize) {
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    let has = |set: &Value| {
        set["status"]["replicas"] == replicas && set["status"]["activeReplicas"] == active
    };
    cluster.wait_for(&path(), limit, has).await;
}

/// The hosts that machines have, each once.
async fn hosts(cluster: &Cluster) -> BTreeSet<String> {
    let list = cluster.get(MACHINES).await.unwrap();
    let mut hosts = BTreeSet::new();
    for machine in list["items"].as_array().unwrap() {
        if let Some(host) = machine["status"]["host"].as_str() {
            assert!(hosts.insert(host.to_owned()), "{host} has two machines");
        }
    }
    hosts
}

async fn five_of_eight_hosts_serve_on_when_one_fails_and_one_is_reclaimed() {
    let cluster = start("2026-03-06T15:00:00Z").await;
    let _operator = cluster.operator();
    cluster.apply(&set(&cluster, 5)).await;
    rest_at(&cluster, 5).await;
    let limit = cluster.clock().now() + SignedDuration::from_mins(20);
    let [_, _, failed] = cluster.owned_paths("desks-1");
    let uid = cluster.get(&failed).await.unwrap()["metadata"]["uid"].clone();
    cluster.delete(&failed).await;
    let is_replaced = |machine: &Value| {
        let of_status = &machine["status"]["machineRef"]["uid"];
        machine["status"]["phase"] == "Active" && *of_status != uid
    };
    cluster
        .wait_for(&machine_path("desks-1"), limit, is_replaced)
        .await;
    let [_, _, reclaimed] = cluster.owned_paths("desks-2");
    let reason = json!({name::RECLAIM_ANNOTATION: "process-match: steam"});
    let request = json!({"metadata": {"annotations": reason}});
    cluster.patch(&reclaimed, &request).await;
    counts(&cluster, 5, 4).await;
    let is_off = |machine: &Value| machine["status"]["phase"] == "Disabled";
    cluster
        .wait_for(&machine_path("desks-2"), limit, is_off)
        .await;
    assert_eq!(hosts(&cluster).await.len(), 4);
    scale(&cluster, 8).await;
    counts(&cluster, 8, 7).await;
    assert_eq!(hosts(&cluster).await.len(), 7);
    scale(&cluster, 0).await;
    rest_at(&cluster, 0).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";
    let of_this_class = format!(".{}", classes::name(&cluster));
    let has_none = |list: &Value| {
        let names = names_of(list);
        !names.iter().any(|name| name.ends_with(&of_this_class))
    };
    cluster.wait_briefly(leases, has_none).await;
}

async fn a_crash_after_any_write_makes_no_machine_too_many() {
    for limit in (1..).step_by(3) {
        let cluster = start("2026-03-06T15:00:00Z").await;
        let mut is_whole = true;
        cluster.apply(&set(&cluster, 2)).await;
        for replicas in [2, 0] {
            scale(&cluster, replicas).await;
            let crashing = cluster.operator_crashing_after(limit);
            let minute = cluster.clock().now() + SignedDuration::from_mins(1);
            // A crashed operator stops the clock.
            tokio::select! {
                () = crashing.crash_switch().crashed() => {}
                () = cluster.advance_until(minute) => {}
            }
            is_whole &= !crashing.crash_switch().is_crashed();
            let _operator = cluster.operator();
            drop(crashing);
            let left = rest_at(&cluster, replicas as usize).await;
            assert_eq!(left, machines(replicas), "after {limit} writes");
            assert_eq!(hosts(&cluster).await.len(), left.len());
        }
        if is_whole {
            return;
        }
    }
}

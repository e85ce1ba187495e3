//! What admission alone cannot refuse: edits of a running machine, and objects of other owners that
//! look like its own.

use std::fmt::Write as _;

use fivespot_testkit::{
    AuditEvent, Cluster, Operator, condition, instant, machine_path, node_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use super::{IN_WINDOW, POLICY, loosened};

const UNCHECKED: &str = "not evaluated";

/// A cluster with a running worker.
async fn running() -> (Cluster, Operator) {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.settle().await;
    (cluster, operator)
}

fn edits() -> [(&'static str, Value); 6] {
    let bootstrap = |api_version: &str, kind: &str| json!({"bootstrapSpec": {"apiVersion": api_version, "kind": kind}});
    let infrastructure = |kind: &str| json!({"infrastructureSpec": {"kind": kind}});
    [
        (
            "another cluster, edited while the machine runs",
            json!({"clusterName": "other"}),
        ),
        (
            "another kind of host, edited while the machine runs",
            infrastructure("AWSMachine"),
        ),
        (
            "a cluster kind as host, edited while the machine runs",
            infrastructure("AWSCluster"),
        ),
        (
            "a Secret as bootstrap object, edited while the machine runs",
            bootstrap("v1", "Secret"),
        ),
        (
            "a host in another namespace, edited while the machine runs",
            json!({"infrastructureSpec": {"namespace": "kube-system"}}),
        ),
        (
            "the label of another machine, edited while the machine runs",
            json!({"machineTemplate": {"labels": {
                "5spot.finos.org/scheduled-machine": "victim",
            }}}),
        ),
    ]
}

/// The server's response to an edit of the worker.
async fn answer(cluster: &Cluster, edit: &Value) -> String {
    let path = format!("{}?dryRun=All", machine_path("worker"));
    match cluster.try_patch(&path, &json!({"spec": edit})).await {
        Ok(_) => "admitted".to_owned(),
        Err(kube::Error::Api(status)) => {
            let reported = status.message.split_once(": ");
            reported.map_or(status.message.clone(), |(_, rest)| rest.to_owned())
        }
        Err(error) => panic!("{error}"),
    }
}

fn row(table: &mut String, what: &str, [schema, policy, operator]: [&str; 3]) {
    let _ = writeln!(
        table,
        "{what}\n  schema:   {schema}\n  policy:   {policy}\n  operator: {operator}"
    );
}

/// The Ready condition of the worker.
async fn ready(cluster: &Cluster) -> String {
    let ready = condition(&cluster.status("worker").await, "Ready");
    let reported = [&ready["reason"], &ready["message"]];
    reported
        .map(|text| text.as_str().unwrap_or_default())
        .join(": ")
}

/// The rows of edits while it runs. None of them changes the existing objects.
pub(super) async fn edited() -> String {
    let (full, _one) = running().await;
    let (policy_alone, _two) = running().await;
    loosened(&policy_alone).await;
    let (bare, _three) = running().await;
    loosened(&bare).await;
    bare.delete(POLICY).await;
    let before = bare.get(&machine_path("worker")).await.unwrap();
    let mut table = String::new();
    for (what, edit) in edits() {
        let by_all = answer(&full, &edit).await;
        let by_policy = answer(&policy_alone, &edit).await;
        bare.patch(&machine_path("worker"), &json!({"spec": edit}))
            .await;
        bare.settle().await;
        let by_operator = ready(&bare).await;
        let status = bare.status("worker").await;
        assert_eq!(
            status["machineRef"], before["status"]["machineRef"],
            "{what}"
        );
        for path in bare.owned_paths("worker") {
            let object = bare.get(&path).await.unwrap_or_default();
            let going = object["metadata"].get("deletionTimestamp");
            assert!(!object.is_null() && going.is_none(), "{what}: {object:#}");
        }
        row(&mut table, what, [&by_all, &by_policy, &by_operator]);
        let mut back = json!({"spec": before["spec"]});
        back["spec"]["infrastructureSpec"]["namespace"] = Value::Null;
        back["spec"]["machineTemplate"]["labels"] = Value::Null;
        bare.patch(&machine_path("worker"), &back).await;
        bare.settle().await;
    }
    assert_eq!(
        bare.operator_writes_to("machines").len(),
        1,
        "one was created"
    );
    table
}

/// A worker whose operator crashed after the infrastructure object was created and before the
/// Machine.
async fn crashed_before_machine() -> Cluster {
    for writes in 1..12 {
        let cluster = Cluster::start(instant(IN_WINDOW)).await;
        cluster.add_cluster().await;
        cluster.apply(&scheduled_machine("worker")).await;
        let crashing = cluster.operator_crashing_after(writes);
        tokio::select! {
            () = cluster.advance_to("2026-03-06T15:05:00Z") => {}
            () = crashing.crash_switch().crashed() => {}
        }
        drop(crashing);
        cluster.settle().await;
        let [_, infrastructure, _] = cluster.owned_paths("worker");
        if cluster.get(&infrastructure).await.is_some() {
            return cluster;
        }
    }
    panic!("no host is created");
}

/// The row of an edit during deletion: no policy is evaluated then, and the operator creates
/// nothing from it.
pub(super) async fn edited_while_deleted() -> String {
    let cluster = crashed_before_machine().await;
    let [_, infrastructure, machine] = cluster.owned_paths("worker");
    assert_eq!(cluster.get(&machine).await, None);
    cluster.delete(&machine_path("worker")).await;
    let edit = json!({"machineTemplate": {
        "labels": {"cluster.x-k8s.io/control-plane": ""},
        "annotations": {"cluster.x-k8s.io/paused": ""},
    }});
    let by_all = answer(&cluster, &edit).await;
    cluster
        .patch(&machine_path("worker"), &json!({"spec": edit}))
        .await;
    let _heir = cluster.operator();
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    assert_eq!(cluster.operator_writes_to("machines"), [""; 0]);
    let host = cluster.get(&infrastructure).await;
    assert!(host.is_none_or(|host| host["metadata"]["deletionTimestamp"].is_string()));
    let mut table = String::new();
    let what = "a control plane by label, edited during the deletion";
    row(
        &mut table,
        what,
        [&by_all, &by_all, "no Machine is created from it"],
    );
    table
}

/// A Machine that was created by hand.
fn machine(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "clusterName": "production-cluster",
            "bootstrap": {"dataSecretName": "by-hand"},
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "RemoteMachine", "name": "elsewhere",
            },
        },
    })
}

fn provider(part: &str, labels: &Value) -> Value {
    let of = &scheduled_machine("worker")["spec"][part];
    json!({
        "apiVersion": of["apiVersion"],
        "kind": of["kind"],
        "metadata": {"name": "worker", "namespace": "default", "labels": labels},
        "spec": of["spec"],
    })
}

fn node(provider_id: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "worker", "annotations": {
            "5spot.finos.org/reclaim-requested": "true",
        }},
        "spec": {"providerID": provider_id},
    })
}

/// Objects that exist before the worker is created, and their paths.
fn decoys(cluster: &Cluster) -> Vec<(&'static str, Value, String)> {
    let [bootstrap, infrastructure, machines] = cluster.owned_paths("worker");
    let none = json!({});
    let claims = json!({
        "5spot.finos.org/scheduled-machine": "worker",
        "5spot.finos.org/scheduled-machine-uid": "somebody-else",
    });
    let named = json!({"5spot.finos.org/scheduled-machine": "worker"});
    let beside = format!("{machines}-machine");
    vec![
        (
            "a foreign bootstrap object of the same name",
            provider("bootstrapSpec", &none),
            bootstrap.clone(),
        ),
        (
            "a foreign host of the same name",
            provider("infrastructureSpec", &none),
            infrastructure.clone(),
        ),
        (
            "a foreign Machine of the same name",
            machine("worker", &none),
            machines.clone(),
        ),
        (
            "a foreign bootstrap object with its labels",
            provider("bootstrapSpec", &claims),
            bootstrap,
        ),
        (
            "a foreign host with its name label",
            provider("infrastructureSpec", &named),
            infrastructure,
        ),
        (
            "a foreign Machine with its labels",
            machine("worker", &claims),
            machines,
        ),
        (
            "a foreign Machine of another name with its name label",
            machine("worker-machine", &named),
            beside,
        ),
        (
            "a Node of the same name on another host",
            node("remote-machine://elsewhere.example:22"),
            node_path("worker"),
        ),
        (
            "a Node of the same name without a host",
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}),
            node_path("worker"),
        ),
    ]
}

/// The rows of objects of other owners. None of them is changed while the machine is created,
/// serves, leaves or is killed.
pub(super) async fn made_by_others() -> String {
    let mut table = String::new();
    let count = decoys(&Cluster::start(instant(IN_WINDOW)).await).len();
    for place in 0..count {
        let cluster = Cluster::start(instant(IN_WINDOW)).await;
        let (what, object, path) = decoys(&cluster).swap_remove(place);
        let _operator = cluster.operator();
        cluster.add_cluster().await;
        cluster.apply(&object).await;
        cluster.settle().await;
        let uid = |object: Option<Value>| object.map(|it| it["metadata"]["uid"].clone());
        let before = uid(cluster.get(&path).await);
        cluster.apply(&scheduled_machine("worker")).await;
        cluster.advance_to("2026-03-06T15:01:00Z").await;
        let by_operator = ready(&cluster).await;
        let kill = json!({"spec": {"killSwitch": true}});
        cluster.patch(&machine_path("worker"), &kill).await;
        cluster.advance_to("2026-03-06T15:10:00Z").await;
        cluster.delete(&machine_path("worker")).await;
        let limit = instant("2026-03-06T15:20:00Z");
        cluster
            .wait_until_gone(&machine_path("worker"), limit)
            .await;
        let is_touched = |event: &AuditEvent| event.path == path && event.code < 300;
        let writes = cluster.operator_writes();
        let touched: Vec<_> = writes.iter().filter(|event| is_touched(event)).collect();
        assert!(touched.is_empty(), "{what}: {touched:?}");
        assert_eq!(uid(cluster.get(&path).await), before, "{what}");
        row(&mut table, what, [UNCHECKED, UNCHECKED, &by_operator]);
    }
    table
}

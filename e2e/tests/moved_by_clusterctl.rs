//! The real `clusterctl move` moves a Cluster with its ScheduledMachines to another management
//! cluster. Nothing is left behind, and the operator finds the machine there. It reads only CRDs
//! with the label that it adds to those that it installs, which an imitation of it does not show.

use std::path::{Path, PathBuf};

use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Contract, ListeningServer, instant, machine_path,
    scheduled_machine,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::folder::Folder;
use crate::program;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_machine_in_service_stays_and_is_found_again)
        .with_programs(&["clusterctl"])
        .with_contract(Contract::V1Beta2)
        .with_stand_ins_alone(MOVES_TO_STAND_INS)
        .disruptive(),
    promise!(a_shutdown_begins_anew_with_all_its_time)
        .with_programs(&["clusterctl"])
        .with_contract(Contract::V1Beta2)
        .with_stand_ins_alone(MOVES_TO_STAND_INS)
        .disruptive(),
];

const MOVES_TO_STAND_INS: &str =
    "moves to the embedded server, which simulates only k0smotron";

/// The path of the CRDs. clusterctl finds the kinds to move by the labels of those that it
/// installs.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A management cluster that clusterctl can reach.
struct ManagementCluster<'c> {
    cluster: &'c Cluster,
    _listening: ListeningServer,
    kubeconfig: PathBuf,
}

impl<'c> ManagementCluster<'c> {
    async fn of(cluster: &'c Cluster, folder: &Path, name: &str) -> Self {
        for definition in cluster.list(DEFINITIONS).await {
            let group = definition["spec"]["group"].as_str().unwrap_or_default();
            if !group.ends_with("cluster.x-k8s.io") {
                continue;
            }
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            let labels = json!({"clusterctl.cluster.x-k8s.io": ""});
            let path = format!("{DEFINITIONS}/{name}");
            cluster
                .patch(&path, &json!({"metadata": {"labels": labels}}))
                .await;
        }
        let listening = cluster.listen().await;
        let kubeconfig = folder.join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, listening.kubeconfig()).unwrap();
        Self {
            cluster,
            _listening: listening,
            kubeconfig,
        }
    }
}

/// Installs the providers' CRDs of a management cluster in another one without them. A move
/// requires the same providers on both sides.
async fn install_providers(from: &Cluster, to: &Cluster) {
    for definition in from.list(DEFINITIONS).await {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let name = &definition["metadata"]["name"];
        let path = format!("{DEFINITIONS}/{}", name.as_str().unwrap());
        if !group.ends_with("cluster.x-k8s.io") || to.get(&path).await.is_some() {
            continue;
        }
        let labels = &definition["metadata"]["labels"];
        to.apply(&json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "labels": labels},
            "spec": definition["spec"],
        }))
        .await;
        let is_served = |definition: &Value| {
            let conditions = definition["status"]["conditions"].as_array();
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|it| it["type"] == "Established" && it["status"] == "True")
            })
        };
        to.wait_briefly(&path, is_served).await;
    }
}

/// Moves all objects in the namespace of the test.
async fn move_all(
    from: &ManagementCluster<'_>,
    to: &ManagementCluster<'_>,
    folder: &Folder,
) {
    let mut clusterctl = Command::new(program::path("clusterctl").unwrap());
    clusterctl
        .args(["move", "-v", "5", "--kubeconfig"])
        .arg(&from.kubeconfig)
        .arg("--to-kubeconfig")
        .arg(&to.kubeconfig)
        .args(["--namespace", &from.cluster.namespace("default")])
        // It stores a configuration, and checks GitHub for a newer version.
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.path())
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true");
    program::output(&mut clusterctl).await;
}

/// The path of an object after the move. The namespace has the same name in both clusters.
fn there(from: &Cluster, path: &str) -> String {
    let namespace = from.namespace("default");
    path.replace("/namespaces/default/", &format!("/namespaces/{namespace}/"))
}

async fn a_machine_in_service_stays_and_is_found_again() {
    let folder = Folder::new("clusterctl");
    let from = Cluster::start(instant(BEFORE_CLOSING)).await;
    let to = from.another().await;
    let _operators = (from.operator(), to.operator());
    let before = from.bring_up(&scheduled_machine("worker")).await;
    let calendar = json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleCalendar",
        "metadata": {"name": "holidays", "namespace": "default"},
        "spec": {"dates": [{"name": "new-year", "date": "01-01"}]},
    });
    from.apply(&calendar).await;
    install_providers(&from, &to).await;
    let ends = (
        ManagementCluster::of(&from, folder.path(), "from").await,
        ManagementCluster::of(&to, folder.path(), "to").await,
    );
    move_all(&ends.0, &ends.1, &folder).await;

    let calendar =
        "/apis/5spot.finos.org/v1alpha1/namespaces/default/schedulecalendars/holidays";
    let worker = machine_path("worker");
    let [.., machine] = from.owned_paths("worker");
    for path in from.owned_paths("worker").iter().chain([&worker]) {
        assert_eq!(from.get(path).await, None, "{path} is left behind");
        assert!(to.get(&there(&from, path)).await.is_some(), "{path}");
    }
    assert_eq!(from.get(calendar).await, None);
    assert!(to.get(&there(&from, calendar)).await.is_some());
    let is_active = |worker: &Value| worker["status"]["phase"] == "Active";
    let after = to.wait_briefly(&there(&from, &worker), is_active).await;
    let moved = to.get(&there(&from, &machine)).await.unwrap();
    assert_eq!(
        after["status"]["machineRef"]["uid"], moved["metadata"]["uid"],
        "the machine that was moved, and no other"
    );
    assert_eq!(
        after["status"]["providerID"], before["status"]["providerID"],
        "the same host"
    );
    assert_eq!(moved["metadata"].get("deletionTimestamp"), None);
    let node = after["status"]["nodeRef"]["name"].as_str().unwrap();
    let node = from.get(&format!("/api/v1/nodes/{node}")).await;
    if let Some(node) = node {
        assert_eq!(node["spec"].get("unschedulable"), None, "it is not drained");
    }
}

async fn a_shutdown_begins_anew_with_all_its_time() {
    let folder = Folder::new("clusterctl");
    let from = Cluster::start(instant(BEFORE_CLOSING)).await;
    let to = from.another().await;
    let _operators = (from.operator(), to.operator());
    from.bring_up(&scheduled_machine("worker")).await;
    from.run_pod("only", "worker").await;
    from.hold_last_pod().await;
    from.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:02:00Z");
    let leaving = from.wait_for_phase("worker", "ShuttingDown", limit).await;
    from.advance_until(instant("2026-03-06T23:03:00Z")).await;
    install_providers(&from, &to).await;
    let ends = (
        ManagementCluster::of(&from, folder.path(), "from").await,
        ManagementCluster::of(&to, folder.path(), "to").await,
    );
    move_all(&ends.0, &ends.1, &folder).await;

    let worker = machine_path("worker");
    assert_eq!(from.get(&worker).await, None, "it is left behind");
    let is_leaving = |worker: &Value| worker["status"]["phase"] == "ShuttingDown";
    let after = to.wait_briefly(&there(&from, &worker), is_leaving).await;
    let [.., machine] = from.owned_paths("worker");
    let moved = to.get(&there(&from, &machine)).await.unwrap();
    let time = |of: &Value| {
        let at = |field: &str| instant(of[field].as_str().unwrap());
        at("deadline").duration_since(at("startedAt"))
    };
    let (before, after) = (&leaving["status"]["shutdown"], &after["status"]["shutdown"]);
    assert_eq!(after["machineUID"], moved["metadata"]["uid"]);
    assert_eq!(after["reason"], before["reason"]);
    assert_eq!(time(after), time(before));
    assert!(after["startedAt"].as_str() > before["startedAt"].as_str());
    let limit = instant("2026-03-06T23:30:00Z");
    let is_inactive = |worker: &Value| worker["status"]["phase"] == "Inactive";
    to.wait_for(&there(&from, &worker), limit, is_inactive)
        .await;
}

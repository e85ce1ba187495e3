use std::time::Duration;

use fivespot_install::controller::Settings;
use fivespot_testkit::{
    Cluster, Coordination, Lease, LeaseTiming, Operator, instant, machine_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use super::inventory::Inventory;
use super::{RemovalOptions, run::Removal};
use crate::Outcome;
use crate::reader::Reader;

const WITHIN: &str = "2026-03-06T15:00:00Z";

/// Enables leader election with the Lease that `uninstall` reads.
fn elected(options: &mut fivespot_controller::Options) {
    options.coordination = Coordination::Leader(Lease {
        namespace: "5spot-system".to_owned(),
        name: "5spot-leader".to_owned(),
        timing: LeaseTiming::default(),
    });
}
const NIGHT: &str = "2026-03-07T03:00:00Z";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scheduledmachines.5spot.finos.org";

/// A cluster with everything of `install.yaml`, an operator that holds its Lease, and a worker.
async fn installed(now: &str) -> (Cluster, Operator) {
    let cluster = Cluster::start(instant(now)).await;
    for document in Settings::default().workload() {
        cluster.apply(&document).await;
    }
    let replica = cluster.operator_with(elected);
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let soon = instant(now) + jiff::SignedDuration::from_mins(1);
    cluster.advance_until(soon).await;
    (cluster, replica)
}

async fn inventory(cluster: &Cluster) -> (Reader, Inventory) {
    let reader = Reader::of(cluster.client(), "the test").await.unwrap();
    let inventory = Inventory::read(&reader, "5spot-system").await.unwrap();
    (reader, inventory)
}

/// Uninstalls, and returns the outcome.
async fn uninstall(cluster: &Cluster, options: RemovalOptions) -> Outcome {
    let (reader, inventory) = inventory(cluster).await;
    let removal = Removal {
        reader: &reader,
        inventory: &inventory,
        options,
        timeout: Duration::from_secs(20),
    };
    removal.run(&mut Vec::new()).await.unwrap()
}

fn is_labelled(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/name"] == "5spot"
}

#[tokio::test]
async fn a_dry_run_prints_the_order_and_changes_nothing() {
    let (cluster, _replica) = installed(WITHIN).await;
    let (_, inventory) = inventory(&cluster).await;
    let text = |options: RemovalOptions| {
        let mut out = Vec::new();
        inventory.describe(options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    insta::assert_snapshot!(
        "all",
        text(RemovalOptions {
            keeps_machines: false,
            deletes_crds: true,
        })
    );
    insta::assert_snapshot!(
        "machines_kept",
        text(RemovalOptions {
            keeps_machines: true,
            deletes_crds: false,
        })
    );
    assert!(cluster.get(&machine_path("worker")).await.is_some());
}

#[tokio::test]
async fn machines_are_removed_first_and_the_crd_is_kept() {
    let (cluster, _replica) = installed(NIGHT).await;
    let options = RemovalOptions {
        keeps_machines: false,
        deletes_crds: false,
    };
    assert_eq!(uninstall(&cluster, options).await, Outcome::Yes);
    assert_eq!(cluster.get(&machine_path("worker")).await, None);
    assert!(cluster.get(CRD).await.is_some());
    let (_, left) = inventory(&cluster).await;
    assert_eq!((left.running.len(), left.rest.len()), (0, 0), "{left:?}");
}

#[tokio::test]
async fn kept_machines_are_unchanged() {
    let (cluster, replica) = installed(WITHIN).await;
    drop(replica);
    let before = cluster.get(&machine_path("worker")).await.unwrap();
    let options = RemovalOptions {
        keeps_machines: true,
        deletes_crds: false,
    };
    assert_eq!(uninstall(&cluster, options).await, Outcome::Yes);
    let after = cluster.get(&machine_path("worker")).await.unwrap();
    assert_eq!(after["spec"], before["spec"]);
    for object in cluster.owned_paths("worker") {
        assert!(cluster.get(&object).await.is_some(), "{object}");
    }
}

#[tokio::test]
async fn kept_machines_still_exist_after_their_crd_is_deleted() {
    let (cluster, replica) = installed(WITHIN).await;
    drop(replica);
    let options = RemovalOptions {
        keeps_machines: true,
        deletes_crds: true,
    };
    assert_eq!(uninstall(&cluster, options).await, Outcome::Yes);
    cluster.settle().await;
    assert_eq!(cluster.get(CRD).await, None);
    for object in cluster.owned_paths("worker") {
        let object = cluster.get(&object).await.unwrap();
        let owners = object["metadata"]["ownerReferences"].as_array();
        let is_ours = |it: &Value| it["kind"] == "ScheduledMachine";
        assert!(!owners.into_iter().flatten().any(is_ours), "{object:#}");
        assert_eq!(object["metadata"].get("deletionTimestamp"), None);
    }
}

#[tokio::test]
async fn objects_installed_by_helm_are_left_to_helm() {
    let (cluster, _replica) = installed(NIGHT).await;
    let path = "/apis/apps/v1/namespaces/5spot-system/deployments/5spot-controller";
    let owned = json!({"metadata": {"annotations": {
        "meta.helm.sh/release-name": "spot",
        "meta.helm.sh/release-namespace": "5spot-system",
    }}});
    cluster.patch(path, &owned).await;
    let (_, found) = inventory(&cluster).await;
    assert_eq!(
        found.releases[0].command(),
        "helm uninstall spot -n 5spot-system"
    );
    let options = RemovalOptions {
        keeps_machines: false,
        deletes_crds: false,
    };
    assert_eq!(uninstall(&cluster, options).await, Outcome::Yes);
    assert!(is_labelled(&cluster.get(path).await.unwrap()));
}

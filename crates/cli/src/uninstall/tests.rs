use std::time::Duration;

use fivespot_install::controller::{Settings, system_namespace};
use fivespot_testkit::{
    Cluster, Coordination, Lease, LeaseTiming, Operator, instant, machine_path, path_of,
    scheduled_machine,
};
use serde_json::{Value, json};

use super::inventory::Inventory;
use super::{RemovalOptions, confirmed, run::Removal};
use crate::Outcome;
use crate::reader::Reader;

const WITHIN: &str = "2026-03-06T15:00:00Z";

/// Enables leader election with the Lease that `uninstall` reads by default.
fn elected(options: &mut fivespot_controller::Options) {
    elected_by("5spot-leader", options);
}

fn elected_by(lease: &str, options: &mut fivespot_controller::Options) {
    options.coordination = Coordination::Leader(Lease {
        namespace: "5spot-system".to_owned(),
        name: lease.to_owned(),
        timing: LeaseTiming::default(),
    });
}

/// Where `uninstall` expects the operator.
fn operator(lease: &str) -> crate::check::Operator {
    crate::check::Operator {
        namespace: "5spot-system".to_owned(),
        account: "5spot-controller".to_owned(),
        lease: lease.to_owned(),
    }
}
const NIGHT: &str = "2026-03-07T03:00:00Z";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scheduledmachines.5spot.finos.org";

/// A cluster with everything of `install.yaml`, an operator that holds its Lease, and a worker.
async fn installed(now: &str) -> (Cluster, Operator) {
    let cluster = Cluster::start(instant(now)).await;
    cluster.apply(&system_namespace()).await;
    let settings = Settings::default();
    let policy = settings.rights.capacity_policy();
    for document in settings.workload().into_iter().chain(policy) {
        cluster.apply(&document).await;
    }
    let replica = cluster.operator_with(elected);
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let soon = instant(now) + jiff::SignedDuration::from_mins(1);
    cluster.advance_until(soon).await;
    (cluster, replica)
}

const REMOVE_MACHINES: RemovalOptions = RemovalOptions {
    keeps_machines: false,
    deletes_crds: false,
};
const KEEP_MACHINES: RemovalOptions = RemovalOptions {
    keeps_machines: true,
    deletes_crds: false,
};
const RELEASE_MACHINES: RemovalOptions = RemovalOptions {
    keeps_machines: true,
    deletes_crds: true,
};

async fn inventory(cluster: &Cluster, options: RemovalOptions) -> (Reader, Inventory) {
    let reader = Reader::of(cluster.client(), "the test").await.unwrap();
    let inventory = Inventory::read(&reader, &operator("5spot-leader"), options)
        .await
        .unwrap();
    (reader, inventory)
}

/// What a dry run prints.
async fn dry_run(cluster: &Cluster, options: RemovalOptions) -> String {
    let (_, inventory) = inventory(cluster, options).await;
    let mut out = Vec::new();
    inventory.describe(options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Uninstalls, and returns the outcome.
async fn uninstall(cluster: &Cluster, options: RemovalOptions) -> Outcome {
    uninstall_within(cluster, options, Duration::from_secs(20)).await
}

async fn uninstall_within(
    cluster: &Cluster,
    options: RemovalOptions,
    timeout: Duration,
) -> Outcome {
    let (reader, inventory) = inventory(cluster, options).await;
    let removal = Removal {
        reader: &reader,
        inventory: &inventory,
        options,
        timeout,
    };
    removal.run(&mut Vec::new()).await.unwrap()
}

fn is_labelled(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/name"] == "5spot"
}

#[tokio::test]
async fn a_dry_run_prints_the_order_and_changes_nothing() {
    let (cluster, _replica) = installed(WITHIN).await;
    let everything = RemovalOptions {
        keeps_machines: false,
        deletes_crds: true,
    };
    insta::assert_snapshot!("all", dry_run(&cluster, everything).await);
    insta::assert_snapshot!("machines_kept", dry_run(&cluster, KEEP_MACHINES).await);
    assert!(cluster.get(&machine_path("worker")).await.is_some());
}

#[tokio::test]
async fn machines_are_removed_first_and_the_crd_is_kept() {
    let (cluster, _replica) = installed(NIGHT).await;
    assert_eq!(uninstall(&cluster, REMOVE_MACHINES).await, Outcome::Yes);
    assert_eq!(cluster.get(&machine_path("worker")).await, None);
    assert!(cluster.get(CRD).await.is_some());
    let (_, left) = inventory(&cluster, REMOVE_MACHINES).await;
    assert_eq!((left.running.len(), left.rest.len()), (0, 0), "{left:?}");
}

#[tokio::test]
async fn kept_machines_are_unchanged() {
    let (cluster, replica) = installed(WITHIN).await;
    drop(replica);
    let before = cluster.get(&machine_path("worker")).await.unwrap();
    assert_eq!(uninstall(&cluster, KEEP_MACHINES).await, Outcome::Yes);
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
    assert_eq!(uninstall(&cluster, RELEASE_MACHINES).await, Outcome::Yes);
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
    let (_, found) = inventory(&cluster, REMOVE_MACHINES).await;
    assert_eq!(
        found.releases[0].command(),
        "helm uninstall spot -n 5spot-system"
    );
    assert_eq!(uninstall(&cluster, REMOVE_MACHINES).await, Outcome::Yes);
    assert!(is_labelled(&cluster.get(path).await.unwrap()));
}

/// A Namespace with the label of the installed objects.
fn namespace(name: &str) -> Value {
    let mut namespace = system_namespace();
    namespace["metadata"]["name"] = name.into();
    namespace
}

/// A ConfigMap of another team.
fn foreign(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "namespace": namespace},
    })
}

#[tokio::test]
async fn the_namespace_of_the_manifests_is_deleted_with_everything_of_theirs_in_it() {
    let (cluster, _replica) = installed(NIGHT).await;
    cluster.apply(&namespace("5spot-admission")).await;
    let parameters = fivespot_api::vap::params::allowlist();
    cluster.apply(&parameters).await;
    assert_eq!(uninstall(&cluster, REMOVE_MACHINES).await, Outcome::Yes);
    cluster.settle().await;
    for name in ["5spot-system", "5spot-admission"] {
        let path = format!("/api/v1/namespaces/{name}");
        assert_eq!(cluster.get(&path).await, None, "{name}");
    }
}

#[tokio::test]
async fn a_shared_namespace_is_kept_whatever_its_labels_are() {
    let (cluster, _replica) = installed(NIGHT).await;
    cluster.apply(&namespace("platform")).await;
    cluster.apply(&foreign("platform")).await;
    assert_eq!(uninstall(&cluster, REMOVE_MACHINES).await, Outcome::Yes);
    cluster.settle().await;
    let path = "/api/v1/namespaces/platform/configmaps/web";
    assert!(cluster.get(path).await.is_some());
    let namespace = cluster.get("/api/v1/namespaces/platform").await.unwrap();
    assert_eq!(namespace["metadata"].get("deletionTimestamp"), None);
}

#[tokio::test]
async fn the_namespace_of_the_operator_is_kept_while_it_holds_foreign_objects() {
    let (cluster, _replica) = installed(NIGHT).await;
    cluster.apply(&foreign("5spot-system")).await;
    let kept = "Kept: Namespace 5spot-system (it contains ConfigMap web)\n";
    let described = dry_run(&cluster, REMOVE_MACHINES).await;
    assert!(described.contains(kept), "{described}");
    assert_eq!(uninstall(&cluster, REMOVE_MACHINES).await, Outcome::Yes);
    cluster.settle().await;
    let path = "/api/v1/namespaces/5spot-system/configmaps/web";
    assert!(cluster.get(path).await.is_some());
    let path = "/apis/apps/v1/namespaces/5spot-system/deployments/5spot-controller";
    assert_eq!(cluster.get(path).await, None);
}

#[tokio::test]
async fn kept_machines_in_the_namespace_of_the_operator_keep_the_namespace() {
    let (cluster, replica) = installed(NIGHT).await;
    drop(replica);
    let mut machine = scheduled_machine("inside");
    machine["metadata"]["namespace"] = "5spot-system".into();
    cluster.apply(&machine).await;
    // Of a kind that is not served in the version of the group that the server prefers.
    let calendar = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleCalendar",
        "metadata": {"name": "holidays", "namespace": "5spot-system"},
        "spec": {"dates": [{"name": "christmas", "date": "12-25"}]},
    });
    cluster.apply(&calendar).await;
    let described = dry_run(&cluster, KEEP_MACHINES).await;
    let kept = "(it contains ScheduleCalendar holidays, ScheduledMachine inside)";
    assert!(described.contains(kept), "{described}");
    assert_eq!(uninstall(&cluster, KEEP_MACHINES).await, Outcome::Yes);
    cluster.settle().await;
    let path =
        "/apis/5spot.finos.org/v1alpha1/namespaces/5spot-system/scheduledmachines/inside";
    let kept = cluster.get(path).await.unwrap();
    assert_eq!(kept["metadata"].get("deletionTimestamp"), None);
}

#[tokio::test]
async fn an_operator_is_recognized_by_the_lease_that_is_named() {
    let cluster = Cluster::start(instant(WITHIN)).await;
    let _replica = cluster.operator_with(|options| elected_by("5spot-fleet", options));
    let soon = instant(WITHIN) + jiff::SignedDuration::from_mins(1);
    cluster.advance_until(soon).await;
    let reader = Reader::of(cluster.client(), "the test").await.unwrap();
    for (lease, is_running) in [("5spot-fleet", true), ("5spot-leader", false)] {
        let found = Inventory::read(&reader, &operator(lease), REMOVE_MACHINES).await;
        assert_eq!(found.unwrap().has_running_operator, is_running, "{lease}");
    }
}

#[tokio::test]
async fn objects_of_other_kinds_are_not_counted_as_machines() {
    let (cluster, _replica) = installed(NIGHT).await;
    cluster
        .apply(&json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
            "metadata": {"name": "late", "namespace": "default"},
            "spec": {
                "targetRef": {"name": "worker"}, "mode": "Stop",
                "endTime": "2026-03-08T02:00:00Z",
            },
        }))
        .await;
    cluster
        .apply(&json!({
            "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
            "kind": "TimeBasedSpotSchedule",
            "metadata": {"name": "office", "namespace": "default"},
            "spec": {"cron": "* 9-17 * * 1-5", "timezone": "UTC"},
        }))
        .await;
    let (_, inventory) = inventory(&cluster, REMOVE_MACHINES).await;
    let kinds = [
        "ScheduledMachine",
        "ScheduleOverride",
        "TimeBasedSpotSchedule",
    ];
    assert_eq!(kinds.map(|kind| inventory.count(kind)), [1, 1, 1]);
}

/// A class, a machine of it, and a calendar.
fn of_a_class() -> [Value; 3] {
    let mut machine = scheduled_machine("desk");
    let whole = machine["spec"].take();
    machine["spec"] = json!({
        "schedule": whole["schedule"], "classRef": {"name": "desks"},
    });
    let class = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineClass",
        "metadata": {"name": "desks"},
        "spec": {
            "clusterNames": [whole["clusterName"]],
            "bootstrapSpec": whole["bootstrapSpec"],
            "infrastructureSpec": whole["infrastructureSpec"],
        },
    });
    let calendar = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleCalendar",
        "metadata": {"name": "holidays", "namespace": "default"},
        "spec": {"dates": [{"name": "christmas", "date": "12-25"}]},
    });
    [class, machine, calendar]
}

#[tokio::test]
async fn a_class_is_kept_while_a_machine_of_it_shuts_down() {
    let (cluster, replica) = installed(WITHIN).await;
    let all = of_a_class();
    for object in &all {
        cluster.apply(object).await;
    }
    let minute = jiff::SignedDuration::from_mins(1);
    cluster.advance_until(instant(WITHIN) + minute * 2).await;
    // Its finalizer keeps the machine, as a shutdown does.
    drop(replica);
    let moment = Duration::from_millis(200);
    let outcome = uninstall_within(&cluster, REMOVE_MACHINES, moment).await;
    assert_eq!(outcome, Outcome::No);
    let [class, machine, calendar] = all.each_ref().map(path_of);
    let machine = cluster.get(&machine).await.unwrap();
    assert!(machine["metadata"].get("deletionTimestamp").is_some());
    for path in [class, calendar] {
        let kept = cluster.get(&path).await.unwrap();
        assert_eq!(kept["metadata"].get("deletionTimestamp"), None, "{path}");
    }
}

#[tokio::test]
async fn what_machines_are_made_from_is_deleted_after_them() {
    let (cluster, _replica) = installed(NIGHT).await;
    let all = of_a_class();
    for object in &all {
        cluster.apply(object).await;
    }
    cluster.settle().await;
    assert_eq!(uninstall(&cluster, REMOVE_MACHINES).await, Outcome::Yes);
    for path in all.each_ref().map(path_of) {
        assert_eq!(cluster.get(&path).await, None, "{path}");
    }
}

#[tokio::test]
async fn nothing_that_people_have_written_is_deleted_without_a_confirmation() {
    let cluster = Cluster::start(instant(NIGHT)).await;
    let (_, empty) = inventory(&cluster, REMOVE_MACHINES).await;
    assert!(confirmed(&empty, REMOVE_MACHINES, false).is_ok());
    let [class, machine, calendar] = of_a_class();
    cluster.apply(&class).await;
    cluster.apply(&calendar).await;
    let asked = async || {
        let (_, found) = inventory(&cluster, REMOVE_MACHINES).await;
        assert!(confirmed(&found, REMOVE_MACHINES, true).is_ok());
        assert!(confirmed(&found, KEEP_MACHINES, false).is_ok());
        confirmed(&found, REMOVE_MACHINES, false)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        asked().await,
        "uninstalling: this deletes 1 schedulecalendar, 1 scheduledmachineclass; confirm it with \
         --yes, or keep them with --keep-machines"
    );
    cluster.apply(&machine).await;
    let (_, found) = inventory(&cluster, RELEASE_MACHINES).await;
    assert!(confirmed(&found, RELEASE_MACHINES, true).is_ok());
    let refused = confirmed(&found, RELEASE_MACHINES, false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "uninstalling: this deletes 1 scheduledmachine, 1 schedulecalendar, 1 \
         scheduledmachineclass; confirm it with --yes, or leave --delete-crds out"
    );
    assert_eq!(
        asked().await,
        "uninstalling: this deletes 1 scheduledmachine with its machine, 1 schedulecalendar, 1 \
         scheduledmachineclass; confirm it with --yes, or keep them with --keep-machines"
    );
}

use fivespot_testkit::{Cluster, instant};
use kube::Client;
use kubemu_apiserver::User;
use serde_json::{Value, json};

use super::*;
use crate::check::Operator;

const NOON: &str = "2026-03-06T12:00:00Z";

fn capacity_of(name: &str, deployment: &str) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": {
                "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC",
            },
            "target": {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment,
                "subresource": "scale",
            },
            "capacity": {"field": "replicas", "activeValue": 3},
        },
    })
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
            },
        },
    })
}

/// A cluster with an operator, a capacity that is written, and one without its target.
async fn cluster_with_two() -> (Cluster, fivespot_testkit::Operator) {
    let cluster = Cluster::start(instant(NOON)).await;
    let operator = cluster.operator();
    cluster.create(&deployment("web")).await.unwrap();
    for (name, target) in [("api", "api"), ("web", "web")] {
        let object = capacity_of(name, target);
        cluster.apply(&object).await;
        let has_phase = |found: &Value| found["status"]["phase"].is_string();
        cluster
            .wait_briefly(&fivespot_testkit::path_of(&object), has_phase)
            .await;
    }
    cluster.settle().await;
    (cluster, operator)
}

async fn found(client: &Client) -> Capacities {
    let operator = Operator {
        namespace: "5spot-system".to_owned(),
        account: "5spot-controller".to_owned(),
        lease: "5spot-leader".to_owned(),
    };
    let mut judge = Judge::read(client, &operator).await;
    judge.capacity_lease = fivespot_api::verdict::Lease::Held;
    let selection = Selection::All;
    let found = source::listed::<ScheduledCapacity>(client, selection).await;
    Capacities::listed(client, selection, &judge, &Zones::default(), found).await
}

fn printed(found: &Capacities) -> String {
    let mut out = Vec::new();
    let instants = Instants::Local(instant(NOON));
    found.print(&mut out, &instants, false).unwrap();
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn the_cause_of_a_capacity_without_its_target_is_shown_first() {
    let (cluster, _operator) = cluster_with_two().await;
    let found = found(&cluster.client()).await;
    insta::assert_snapshot!(printed(&found), @r"
    NAMESPACE  CAPACITY  STATE    TARGET          VALUE       WANTED      NEXT                            MESSAGE
    default    api       Blocked  Deployment api  -           replicas=3  in 6h, 2026-03-06 18:00 +00:00  there is no Deployment api: create it, or correct spec.target
    default    web       Serving  Deployment web  replicas=3  replicas=3  in 6h, 2026-03-06 18:00 +00:00  Deployment web has the active values until 2026-03-06T18:00:00Z
    ");
    let json = serde_json::to_value(&found.rows).unwrap();
    assert_eq!(json[0]["verdict"]["reason"], "TargetNotFound");
    assert_eq!(json[0]["verdict"]["actor"], "Owner");
    assert_eq!(json[0]["target"]["subresource"], "scale");
    assert_eq!(json[1]["value"], "replicas=3");
}

#[tokio::test]
async fn capacities_that_a_user_may_not_read_are_no_error() {
    let (cluster, _operator) = cluster_with_two().await;
    let user = User::new("developer", &["system:authenticated"]);
    let developer = Client::new(cluster.server().in_process_as(user), "default");
    assert_eq!(
        printed(&found(&developer).await),
        "scheduledcapacities: not readable; a role with list of \
         scheduledcapacities.5spot.finos.org allows it\n"
    );
}

#[tokio::test]
async fn without_the_kind_nothing_is_printed() {
    let cluster = Cluster::start(instant(NOON)).await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/\
                      scheduledcapacities.5spot.finos.org";
    cluster.delete(definition).await;
    cluster
        .wait_until_gone(definition, instant("2026-03-06T12:10:00Z"))
        .await;
    assert_eq!(printed(&found(&cluster.client()).await), "");
}

/// The inputs of the schedule decide what is wanted while nothing is written.
#[tokio::test]
async fn what_a_blocked_capacity_wants_follows_from_its_overrides() {
    let (cluster, _operator) = cluster_with_two().await;
    cluster
        .apply(&json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
            "metadata": {"name": "closed", "namespace": "default"},
            "spec": {
                "targetRef": {"kind": "ScheduledCapacity", "name": "api"},
                "mode": "Stop", "endTime": "2026-03-06T16:00:00Z",
            },
        }))
        .await;
    let found = found(&cluster.client()).await;
    assert_eq!(found.rows[0].wanted, "replicas=0");
}

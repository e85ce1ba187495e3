use fivespot_api::verdict::{Lease, State};
use fivespot_testkit::{Cluster, instant, path_of};
use kubemu_apiserver::User;
use serde_json::json;

use super::*;

const NOON: &str = "2026-03-06T12:00:00Z";

fn quota(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "1"}},
    })
}

/// Raises the quota of that name in office hours.
fn capacity_of(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": {
                "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC",
            },
            "leadTime": "30m",
            "target": {"apiVersion": "v1", "kind": kind, "name": name},
            "capacity": {
                "field": "hard[\"requests.cpu\"]", "activeValue": "4", "inactiveValue": "0",
            },
        },
    })
}

/// The capacity once the operator has reported on it.
async fn reported(cluster: &Cluster, object: &Value) -> DynamicObject {
    cluster.apply(object).await;
    let has_phase = |found: &Value| found["status"]["phase"].is_string();
    let found = cluster.wait_briefly(&path_of(object), has_phase).await;
    serde_json::from_value(found).unwrap()
}

async fn explained(client: &Client, found: DynamicObject) -> Report {
    let judge = Judge {
        lease: Lease::Held,
        capacity_lease: Lease::Held,
        now: instant(NOON),
    };
    let inspected = inspect(client, found, &judge).await.unwrap();
    report(&inspected, judge.now)
}

fn printed(report: &Report) -> String {
    let mut out = Vec::new();
    text(&mut out, report).unwrap();
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn the_cause_of_a_capacity_is_explained_with_its_values_and_next_changes() {
    let cluster = Cluster::start(instant(NOON)).await;
    let _operator = cluster.operator();
    let found = reported(&cluster, &capacity_of("ResourceQuota", "team")).await;
    let missing = explained(&cluster.client(), found).await;
    assert_eq!(missing.verdict.state, State::Blocked);
    insta::assert_snapshot!(printed(&missing), @r#"
    default/team: Blocked since 2026-03-06T12:00:00Z (phase Pending, TargetNotFound)
    there is no ResourceQuota team: create it, or correct spec.target
    do: Create it. To name another object, delete the ScheduledCapacity and create it again: `spec.target` cannot be changed. (who: the owner)
        5spot explain reason TargetNotFound

    At 2026-03-06T12:00:00Z:
      schedule  mon-fri 9-17 in UTC; the active values apply
      target    ResourceQuota team, not found

    FIELD                 NOW  WRITTEN  WANTED
    hard["requests.cpu"]  -    -        4

    Next changes:
      2026-03-06T18:00:00Z  hard["requests.cpu"]=0
      2026-03-09T08:30:00Z  hard["requests.cpu"]=4
      2026-03-09T18:00:00Z  hard["requests.cpu"]=0
    "#);
    cluster.create(&quota("other")).await.unwrap();
    let found = reported(&cluster, &capacity_of("ResourceQuota", "other")).await;
    let written = explained(&cluster.client(), found).await;
    assert_eq!(written.verdict.state, State::Serving);
    insta::assert_snapshot!(printed(&written), @r#"
    default/other: Serving since 2026-03-06T12:00:00Z (phase Active, Active)
    ResourceQuota other has the active values until 2026-03-06T18:00:00Z

    At 2026-03-06T12:00:00Z:
      schedule  mon-fri 9-17 in UTC; the active values apply
      target    ResourceQuota other, found

    FIELD                 NOW  WRITTEN  WANTED
    hard["requests.cpu"]  4    4        4

    Next changes:
      2026-03-06T18:00:00Z  hard["requests.cpu"]=0
      2026-03-09T08:30:00Z  hard["requests.cpu"]=4
      2026-03-09T18:00:00Z  hard["requests.cpu"]=0
    "#);
}

#[tokio::test]
async fn a_target_that_the_operator_may_not_read_names_who_can_act() {
    let cluster = Cluster::start(instant(NOON)).await;
    let _operator = cluster.operator();
    // The roles of the test name no ReplicationControllers.
    let mut object = capacity_of("ReplicationController", "team");
    object["spec"]["capacity"] = json!({"field": "replicas", "activeValue": 3});
    let found = reported(&cluster, &object).await;
    let report = explained(&cluster.client(), found).await;
    assert_eq!(report.verdict.state, State::Blocked);
    let text = printed(&report);
    for words in ["Forbidden", "--capacity-target", "(who: the platform team)"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[tokio::test]
async fn what_the_user_may_not_read_is_named_with_the_role() {
    let cluster = Cluster::start(instant(NOON)).await;
    let _operator = cluster.operator();
    cluster.create(&quota("team")).await.unwrap();
    let found = reported(&cluster, &capacity_of("ResourceQuota", "team")).await;
    let user = User::new("developer", &["system:authenticated"]);
    let developer = Client::new(cluster.server().in_process_as(user), "default");
    let report = explained(&developer, found).await;
    assert_eq!(report.verdict.state, State::Serving);
    insta::assert_snapshot!(printed(&report), @r#"
    default/team: Serving since 2026-03-06T12:00:00Z (phase Active, Active)
    ResourceQuota team has the active values until 2026-03-06T18:00:00Z

    At 2026-03-06T12:00:00Z:
      schedule  mon-fri 9-17 in UTC; the active values apply
      target    ResourceQuota team, not readable
      the schedule: not readable; a role with list of scheduleoverrides.5spot.finos.org allows it
      ResourceQuota team: not readable; a role with get of resourcequotas allows it

    FIELD                 NOW  WRITTEN  WANTED
    hard["requests.cpu"]  -    4        4

    Next changes:
      2026-03-06T18:00:00Z  hard["requests.cpu"]=0
    "#);
}

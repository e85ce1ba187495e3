use fivespot_api::verdict::{Lease, State};
use fivespot_testkit::{Cluster, instant, path_of, scheduled_machine};
use kubemu_apiserver::User;
use serde_json::{Value, json};

use super::*;
use crate::named::{EXPLAINED, Named};

const NOON: &str = "2026-03-06T12:00:00Z";

fn office(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "TimeBasedSpotSchedule",
        "metadata": {"name": "office", "namespace": "default"},
        "spec": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
    });
    change(&mut object);
    object
}

/// A machine that follows the schedule of that name.
fn follower(name: &str, schedule: &str) -> Value {
    let mut machine = scheduled_machine(name);
    machine["spec"]["schedule"] = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "TimeBasedSpotSchedule", "name": schedule,
    });
    machine
}

async fn read(client: &Client, name: &str) -> Result<Inspected, Failure> {
    let judge = Judge {
        lease: Lease::Held,
        capacity_lease: Lease::Held,
        now: instant(NOON),
    };
    let named = Named::of(name, EXPLAINED).unwrap();
    inspect(client, "the cluster", named, judge).await
}

async fn explained(client: &Client, name: &str) -> Report {
    let inspected = read(client, name).await;
    report(
        &inspected.unwrap_or_else(|failure| panic!("{failure}")),
        instant(NOON),
    )
}

fn printed(report: &Report) -> String {
    let mut out = Vec::new();
    text(&mut out, report).unwrap();
    String::from_utf8(out).unwrap()
}

async fn published(cluster: &Cluster, object: &Value) {
    cluster.apply(object).await;
    let is_published = |found: &Value| found["status"]["conditions"].is_array();
    cluster.wait_briefly(&path_of(object), is_published).await;
}

#[tokio::test]
async fn a_schedule_is_explained_with_its_followers_and_next_changes() {
    let cluster = Cluster::start(instant(NOON)).await;
    let _operator = cluster.operator();
    published(&cluster, &office(|_| {})).await;
    for name in ["worker-b", "worker-a"] {
        cluster.create(&follower(name, "office")).await.unwrap();
    }
    cluster.create(&follower("other", "shop")).await.unwrap();
    let capacity = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledCapacity",
        "metadata": {"name": "quota", "namespace": "default"},
        "spec": {
            "schedule": follower("x", "office")["spec"]["schedule"],
            "target": {"apiVersion": "v1", "kind": "ResourceQuota", "name": "quota"},
            "capacity": {"field": "hard.pods", "activeValue": "4", "inactiveValue": "0"},
        },
    });
    cluster.create(&capacity).await.unwrap();
    let report = explained(&cluster.client(), "tbss/office").await;
    assert_eq!(report.verdict.state, State::Serving);
    insta::assert_snapshot!(printed(&report), @r"
    TimeBasedSpotSchedule default/office: open since 2026-03-06T12:00:00Z
    open until 2026-03-06T18:00:00Z

    At 2026-03-06T12:00:00Z:
      schedule   mon-fri 9-17 in UTC; open
      followers  2 ScheduledMachines (worker-a, worker-b), 1 ScheduledCapacity (quota)

    Next changes:
      2026-03-06T18:00:00Z  closes
      2026-03-09T09:00:00Z  opens
      2026-03-09T18:00:00Z  closes
    ");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["open"], true);
    assert_eq!(
        json["followers"]["machines"],
        json!(["worker-a", "worker-b"])
    );
    assert_eq!(
        json["changes"][1],
        json!({"time": "2026-03-09T09:00:00Z", "open": true})
    );
}

#[tokio::test]
async fn one_that_does_not_exist_names_what_follows_it() {
    let cluster = Cluster::start(instant(NOON)).await;
    cluster
        .create(&follower("worker", "offices"))
        .await
        .unwrap();
    let client = cluster.client();
    let failure = read(&client, "tbss/offices")
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        failure.contains("TimeBasedSpotSchedule default/offices: not found")
            && failure.contains("follows it: 1 ScheduledMachine (worker)"),
        "{failure}"
    );
    let failure = read(&client, "tbss/shop").await.err().unwrap().to_string();
    assert!(failure.contains("5spot status -A"), "{failure}");
}

#[tokio::test]
async fn a_missing_calendar_and_a_switched_off_schedule_are_notes() {
    let cluster = Cluster::start(instant(NOON)).await;
    let _operator = cluster.operator();
    let with_calendar = office(|it| {
        it["spec"]["exceptions"] = json!([
            {"name": "holidays", "action": "Stop", "calendarRef": {"name": "hollidays"}},
        ]);
    });
    published(&cluster, &with_calendar).await;
    let report = explained(&cluster.client(), "tbss/office").await;
    assert_eq!(
        report.notes,
        ["ScheduleCalendar hollidays was not found; its exceptions are left out."]
    );
    let off = office(|it| {
        it["metadata"]["name"] = json!("off");
        it["spec"]["enabled"] = json!(false);
    });
    published(&cluster, &off).await;
    let report = explained(&cluster.client(), "tbss/off").await;
    assert_eq!(report.verdict.state, State::Off);
    assert_eq!(report.notes, ["spec.enabled is false: it is never open"]);
    assert!(printed(&report).contains("Next changes:\n  none is known"));
}

#[tokio::test]
async fn one_that_cannot_be_evaluated_is_blocked_with_the_field() {
    let cluster = Cluster::start(instant(NOON)).await;
    let mut object = office(|_| {});
    object["status"] = json!({
        "active": true, "observedGeneration": 1,
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "InvalidSchedule",
            "message": "the schedule cannot be evaluated: spec.timezone", "lastTransitionTime": NOON,
        }],
    });
    let status: SpotScheduleStatus =
        serde_json::from_value(object["status"].clone()).unwrap();
    cluster.apply(&office(|_| {})).await;
    let mut inspected = read(&cluster.client(), "tbss/office").await.ok().unwrap();
    inspected.meta.generation = Some(1);
    inspected.status = status;
    let report = report(&inspected, instant(NOON));
    assert_eq!(report.verdict.state, State::Blocked);
    let text = printed(&report);
    for words in [
        "TimeBasedSpotSchedule default/office: Blocked since 2026-03-06T12:00:00Z\n",
        "spec.timezone\ndo: Correct the field that the message names.",
        "(who: the owner)\n    5spot explain reason InvalidSchedule",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[tokio::test]
async fn what_the_user_may_not_list_is_named_with_the_role() {
    let cluster = Cluster::start(instant(NOON)).await;
    let _operator = cluster.operator();
    published(&cluster, &office(|_| {})).await;
    let rights = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "schedules"},
        "rules": [{
            "apiGroups": ["spotschedules.5spot.finos.org"], "resources": ["*"],
            "verbs": ["get", "list"],
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "schedules"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "schedules",
        },
        "subjects": [{"kind": "User", "name": "developer"}],
    });
    cluster.create(&rights).await.unwrap();
    cluster.create(&binding).await.unwrap();
    let user = User::new("developer", &["system:authenticated"]);
    let developer = Client::new(cluster.server().in_process_as(user), "default");
    let text = printed(&explained(&developer, "tbss/office").await);
    for words in [
        "open until 2026-03-06T18:00:00Z",
        "a role with list of scheduledmachines.5spot.finos.org allows it",
        "a role with list of scheduledcapacities.5spot.finos.org allows it",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

use fivespot_testkit::{Cluster, instant, path_of, scheduled_machine};
use serde_json::json;

use super::*;

const NOON: &str = "2026-03-06T12:00:00Z";

fn shared(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

#[tokio::test]
async fn a_shared_schedule_shows_who_follows_it_and_when_it_changes() {
    let cluster = Cluster::start(instant(NOON)).await;
    let _operator = cluster.operator();
    let hours =
        json!({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"});
    let office = shared("TimeBasedSpotSchedule", "office", &hours);
    cluster.apply(&office).await;
    let is_published = |found: &Value| found["status"]["active"] == true;
    cluster.wait_briefly(&path_of(&office), is_published).await;
    let mut follower = scheduled_machine("worker");
    follower["spec"]["schedule"] = json!({
        "apiVersion": office["apiVersion"], "kind": office["kind"], "name": "office",
    });
    let mut followers = Followers::default();
    followers.add(&follower);
    followers.add(&follower);
    followers.add(&scheduled_machine("inline"));
    let client = cluster.client();
    let found = Schedules::list(&client, Selection::All, &followers).await;
    let mut out = Vec::new();
    found.print(&mut out, &Instants::Utc).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    NAMESPACE  SCHEDULE                      OPEN  FOLLOWERS  NEXT                  MESSAGE
    default    TimeBasedSpotSchedule office  yes   2          2026-03-06T18:00:00Z  open until 2026-03-06T18:00:00Z
    ");
    let json = serde_json::to_value(&found.rows).unwrap();
    assert_eq!(json[0]["followers"], 2);
    assert_eq!(json[0]["reason"], "WindowOpen");
}

#[test]
fn one_that_cannot_be_evaluated_comes_first_with_the_cause() {
    let reported = |name: &str, status: &str, message: &str| {
        let mut object = shared("CapitalMarketsSchedule", name, &json!({}));
        object["status"] = json!({"active": false, "conditions": [
            {"type": "Ready", "status": status, "reason": "InvalidSchedule", "message": message},
        ]});
        let document = Document {
            origin: String::new(),
            object,
            location: None,
        };
        Row::of(&document, &Followers::default())
    };
    let mut rows = [
        reported("a", "True", "open"),
        reported("b", "False", "no zone"),
    ];
    rows.sort();
    assert_eq!(
        (rows[0].name.as_str(), rows[0].message.as_str()),
        ("b", "no zone")
    );
}

use fivespot_testkit::{
    Cluster, Coordination, Lease, LeaseTiming, instant, path_of, scheduled_machine,
};
use kubemu_apiserver::User;

use super::*;
use crate::check::Operator;

async fn warning(client: &Client, namespace: &str) -> Option<String> {
    let operator = Operator {
        namespace: namespace.to_owned(),
        account: "5spot-controller".to_owned(),
        lease: "5spot-leader".to_owned(),
    };
    Judge::read(client, &operator).await.warning(&operator)
}

#[tokio::test]
async fn a_warning_is_printed_while_no_operator_renews_its_lease() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let replica = cluster.operator_with(|options| {
        options.coordination = Coordination::Leader(Lease {
            namespace: "5spot-system".to_owned(),
            name: "5spot-leader".to_owned(),
            timing: LeaseTiming::default(),
        });
    });
    cluster.advance_until(instant("2026-03-06T15:01:00Z")).await;
    let client = cluster.client();
    assert_eq!(warning(&client, "5spot-system").await, None);
    let elsewhere = warning(&client, "platform").await.unwrap();
    assert!(elsewhere.contains("--operator-namespace"), "{elsewhere}");

    drop(replica);
    cluster.advance_until(instant("2026-03-06T15:20:00Z")).await;
    let stale = warning(&client, "5spot-system").await.unwrap();
    assert!(
        stale.starts_with("no operator runs: 5spot-controller"),
        "{stale}"
    );

    // A user who may not read Leases gets no error.
    let user = User::new("developer", &["system:authenticated"]);
    let developer = Client::new(cluster.server().in_process_as(user), "default");
    assert_eq!(warning(&developer, "5spot-system").await, None);
}

#[tokio::test]
async fn the_next_change_of_what_follows_a_shared_schedule_is_in_its_time_zone() {
    let now = instant("2026-03-06T15:00:00Z");
    let cluster = Cluster::start(now).await;
    let _operator = cluster.operator();
    let hours = json!({
        "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "Asia/Tokyo",
    });
    let office = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule",
        "metadata": {"name": "office", "namespace": "default"}, "spec": hours,
    });
    cluster.apply(&office).await;
    let mut follower = scheduled_machine("worker");
    let reference = json!({
        "apiVersion": office["apiVersion"], "kind": office["kind"], "name": "office",
    });
    follower["spec"]["schedule"] = reference;
    cluster.apply(&follower).await;
    let is_planned = |found: &Value| found["status"]["nextTransition"].is_string();
    let stored = cluster.wait_briefly(&path_of(&follower), is_planned).await;
    let next = "2026-03-09 09:00 +09:00";
    let client = cluster.client();
    let judge = Judge {
        now,
        ..crate::set::tests::judge()
    };
    let machines = [stored.clone()];
    let found = everything(&client, Selection::All, &judge, &machines).await;
    let mut out = Vec::new();
    print(Form::Text, &found, None, &Instants::Local(now), &mut out).unwrap();
    let listed = String::from_utf8(out).unwrap();
    let line = listed.lines().find(|it| it.contains(" worker "));
    assert!(line.unwrap().contains(next), "{listed}");

    let zone_of = async |client: &Client, object: &Value| {
        let mut zones = Zones::default();
        zones.read(client, object).await;
        zones.of(object)
    };
    assert_eq!(zone_of(&client, &stored).await, "Asia/Tokyo");
    let mut excepted = stored.clone();
    excepted["spec"]["schedule"]["timezone"] = json!("Europe/Zurich");
    excepted["spec"]["schedule"]["exceptions"] =
        json!([{"name": "off", "action": "Stop", "startDate": "2026-12-24"}]);
    assert_eq!(zone_of(&client, &excepted).await, "Europe/Zurich");
    let user = User::new("developer", &["system:authenticated"]);
    let developer = Client::new(cluster.server().in_process_as(user), "default");
    assert_eq!(
        zone_of(&developer, &stored).await,
        stored["spec"]["schedule"]["timezone"]
            .as_str()
            .unwrap_or_default()
    );
}

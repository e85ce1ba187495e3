//! A machine outside its window causes no requests: the operator sleeps until the next edge.

use fivespot_testkit::{Cluster, instant, scheduled_machine};
use serde_json::json;

use crate::promise::{Promise, promise};
use crate::writes_nothing_when_settled::with_override_and_calendar;

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_day_of_a_thousand_machines_causes_requests_at_the_edges_alone)
        .on_embedded_alone(
            "runs a whole day of a thousand machines and dates every request",
        ),
    promise!(a_machine_in_service_causes_no_request_until_its_window_closes),
    promise!(overrides_and_calendars_cause_no_request_until_one_begins_or_ends),
];

const IDLE: usize = 999;

async fn a_day_of_a_thousand_machines_causes_requests_at_the_edges_alone() {
    let cluster = Cluster::start(instant("2026-03-06T23:10:00Z")).await;
    cluster.add_cluster().await;
    for number in 0..IDLE {
        let idle = scheduled_machine(&format!("idle-{number}"));
        cluster.create(&idle).await.unwrap();
    }
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"]["daysOfWeek"] = json!(["sat"]);
    cluster.create(&worker).await.unwrap();
    let _operator = cluster.operator();
    cluster.advance_to("2026-03-06T23:11:00Z").await;
    for name in ["idle-0", "idle-998", "worker"] {
        assert_eq!(cluster.status(name).await["phase"], "Inactive", "{name}");
    }

    let before = cluster.operator_requests().len();
    cluster.advance_to("2026-03-07T23:11:00Z").await;
    let requests = cluster.operator_requests();
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let of_others: Vec<_> = requests[before..]
        .iter()
        .filter(|event| event.path.contains("idle"))
        .collect();
    assert_eq!(of_others, [] as [&fivespot_testkit::AuditEvent; 0]);
    // Two minutes after each edge, everything is done and no requests are sent.
    let edges = ["2026-03-07T14:00:00Z", "2026-03-07T23:00:00Z"].map(instant);
    for event in &requests[before..] {
        let is_at_an_edge = edges.iter().any(|edge| {
            let since = event.at.duration_since(*edge).as_secs();
            (0..120).contains(&since)
        });
        assert!(is_at_an_edge, "{event:?}");
    }
    let writes = requests[before..]
        .iter()
        .filter(|event| event.is_write() && event.resource != "events")
        .count();
    assert!((9..30).contains(&writes), "{writes} writes");
}

async fn a_machine_in_service_causes_no_request_until_its_window_closes() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.advance_to("2026-03-06T15:05:00Z").await;
    let before = cluster.operator_requests().len();
    cluster.advance_to("2026-03-06T22:59:59Z").await;
    let requests = cluster.operator_requests();
    assert_eq!(requests[before..], []);
}

async fn overrides_and_calendars_cause_no_request_until_one_begins_or_ends() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let worker = with_override_and_calendar(&cluster).await;
    cluster.bring_up(&worker).await;
    cluster.advance_to("2026-03-06T15:05:00Z").await;
    assert_eq!(cluster.status("worker").await["override"]["name"], "today");
    let before = cluster.operator_requests().len();
    cluster.advance_to("2026-03-06T22:29:59Z").await;
    assert_eq!(cluster.operator_requests()[before..], []);
}

//! A machine's day costs the API server few requests: what is merely told comes from watches,
//! and everything is read anew only before something begins or ends.

use fivespot_testkit::{AuditEvent, Cluster, instant, scheduled_machine};
use jiff::SignedDuration;
use serde_json::Value;

use crate::promise::{Promise, promise};

/// What is promised here.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(everything_is_read_anew_five_times_a_day)
        .on_embedded_alone("counts every read of a whole day"),
    promise!(a_day_costs_at_most_thirteen_writes_beside_what_cluster_api_reports)
        .on_embedded_alone("counts every write of a whole day"),
];

async fn everything_is_read_anew_five_times_a_day() {
    let cluster = Cluster::start(instant("2026-03-06T12:00:00Z")).await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let _operator = cluster.operator();
    cluster.pass_to("2026-03-06T13:00:00Z").await;
    let before = cluster.operator_requests().len();
    cluster.pass_to("2026-03-07T12:00:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let requests = cluster.operator_requests().split_off(before);
    let reads: Vec<&AuditEvent> = requests
        .iter()
        .filter(|event| event.verb == "get" && !event.name.is_empty())
        .collect();
    let looks = reads.iter().filter(|event| event.resource == "machines");
    // Before the creation, the commitment, the cordon and the deletion, and at the end.
    assert_eq!(looks.count(), 5, "{reads:#?}");
    // The ScheduledMachine, its Cluster, the three objects, and the Node; the first two once more
    // when the window opens.
    assert!(reads.len() <= 5 * 6 + 2, "{reads:#?}");
}

/// A status without what only repeats Cluster API's word about the Machine.
fn own_words(mut status: Value) -> Value {
    if let Some(all) = status["conditions"].as_array_mut() {
        all.retain(|condition| condition["type"] != "MachineReady");
    }
    status
}

async fn a_day_costs_at_most_thirteen_writes_beside_what_cluster_api_reports() {
    let cluster = Cluster::start(instant("2026-03-06T12:00:00Z")).await;
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let _operator = cluster.operator();
    // What is written ahead of the opening counts as well.
    cluster.pass_to("2026-03-06T13:58:59Z").await;
    let before = cluster.operator_writes().len();
    cluster.pass_to("2026-03-06T13:59:59Z").await;
    // The minute of the opening, second by second: no second brings two reports.
    let (mut reports, mut last) = (0, cluster.status("worker").await);
    for _ in 0..60 {
        let next = cluster.within(SignedDuration::from_secs(1));
        cluster.pass_until(next).await;
        let status = cluster.status("worker").await;
        let is_report = status != last && own_words(status.clone()) == own_words(last);
        reports += usize::from(is_report);
        last = status;
    }
    assert_eq!(last["phase"], "Active");
    cluster.pass_to("2026-03-07T12:00:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let writes = cluster.operator_writes().split_off(before);
    let of = |resource: &str| {
        let those = writes.iter().filter(|event| event.resource == resource);
        those.count()
    };
    let (events, on_node) = (of("events"), of("nodes"));
    assert!(events <= 5, "{writes:#?}");
    assert!(on_node <= 3, "{writes:#?}");
    let others = writes.len() - events - on_node;
    assert!(others <= 13 + reports, "{reports}: {writes:#?}");
}

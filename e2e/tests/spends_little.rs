//! A machine's day costs the API server few requests: what is merely told comes from watches,
//! and everything is read anew only before something begins or ends.

use fivespot_testkit::{AuditEvent, Cluster, instant, scheduled_machine};

use crate::promise::{Promise, promise};

/// What is promised here.
pub(crate) const PROMISES: &[Promise] =
    &[promise!(everything_is_read_anew_five_times_a_day)
        .on_embedded_alone("counts every read of a whole day")];

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
    let looks = reads
        .iter()
        .filter(|event| event.resource == "scheduledmachines");
    // Before the creation, the commitment, the cordon and the deletion, and at the end.
    assert_eq!(looks.count(), 5, "{reads:#?}");
    // The ScheduledMachine, its Cluster, the three objects, and the Node.
    assert!(reads.len() <= 5 * 6, "{reads:#?}");
}

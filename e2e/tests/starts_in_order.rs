//! If starts are limited, the machine with the highest priority starts first and leaves last.

use std::num::NonZeroU32;

use fivespot_testkit::{Cluster, instant, machine_path, scheduled_machine};
use serde_json::json;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] =
    &[promise!(high_priorities_start_first_and_stop_last)
        .on_embedded_alone("dates every request of a limited operator")];

/// Names and priorities.
const MACHINES: [(&str, u8); 5] =
    [("a", 10), ("b", 200), ("c", 50), ("d", 255), ("e", 0)];

async fn high_priorities_start_first_and_stop_last() {
    let cluster = Cluster::start(instant("2026-03-06T13:50:00Z")).await;
    cluster.add_cluster().await;
    for (name, priority) in MACHINES {
        let mut machine = scheduled_machine(name);
        machine["spec"]["priority"] = json!(priority);
        cluster.apply(&machine).await;
    }
    let _operator = cluster.limited("operator", NonZeroU32::new(2).unwrap());
    cluster.advance_to("2026-03-06T14:01:30Z").await;
    let last = cluster.get(&machine_path("e")).await.unwrap();
    let status = &last["status"];
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["inSchedule"], true);
    assert_eq!(
        status["message"],
        "waiting for its turn: at most 2 machines start in a minute"
    );
    cluster.advance_to("2026-03-06T14:10:00Z").await;
    let mut started = Vec::new();
    for (name, _) in MACHINES {
        let machine = cluster.get(&machine_path(name)).await.unwrap();
        assert_eq!(machine["status"]["phase"], "Active", "{name}");
        let at = machine["status"]["lastScheduledTime"].as_str().unwrap();
        started.push((at[11..19].to_owned(), name));
    }
    started.sort();
    let expected = [
        ("14:00:01", "b"),
        ("14:00:01", "d"),
        ("14:01:01", "a"),
        ("14:01:01", "c"),
        ("14:02:01", "e"),
    ];
    assert_eq!(started, expected.map(|(at, name)| (at.to_owned(), name)));

    // All windows close at once, and no machine waits for another.
    let before = cluster.writes_of(&["operator"]).len();
    cluster.advance_to("2026-03-06T23:00:00Z").await;
    let writes = cluster.writes_of(&["operator"]).split_off(before);
    let commitments = writes.iter().filter(|write| write.subresource == "status");
    let mut order: Vec<&str> = Vec::new();
    for write in commitments {
        if !order.contains(&write.name.as_str()) {
            order.push(&write.name);
        }
    }
    assert_eq!(order, ["e", "a", "c", "b", "d"]);
}

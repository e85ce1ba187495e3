//! A machine joins when its window opens, to the second, and is Active once its Node is
//! ready.

use fivespot_testkit::{Cluster, Contract, instant, machine_path};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_window_that_is_open_makes_a_machine_that_becomes_active)
        .with_contract(Contract::V1Beta2),
    promise!(a_window_opens_on_the_second_across_a_change_to_daylight_saving)
        .with_contract(Contract::V1Beta2),
];

const BUSINESS_HOURS: &str = include_str!("../../examples/business-hours.yaml");
const NAME: &str = "business-hours-worker";

async fn a_window_that_is_open_makes_a_machine_that_becomes_active() {
    let cluster = Cluster::start(instant("2026-03-06T21:30:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply_yaml(BUSINESS_HOURS).await;
    let machine = cluster
        .wait_for_phase(NAME, "Active", instant("2026-03-06T21:32:00Z"))
        .await;
    let status = &machine["status"];
    assert_eq!(status["inSchedule"], true);
    assert_eq!(status["nodeRef"]["name"], cluster.node_name(NAME));
    assert_eq!(status["machineRef"]["name"], NAME);
    assert_eq!(status["nextTransition"], "2026-03-06T23:00:00Z");
}

async fn a_window_opens_on_the_second_across_a_change_to_daylight_saving() {
    let cluster = Cluster::start(instant("2026-03-08T12:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply_yaml(BUSINESS_HOURS).await;
    let closed = cluster
        .wait_for_phase(NAME, "Inactive", instant("2026-03-08T12:00:01Z"))
        .await;
    assert_eq!(closed["status"]["nextActivation"], "2026-03-09T13:00:00Z");
    let limit = instant("2026-03-09T13:00:00Z");
    let opened = cluster
        .wait_for(&machine_path(NAME), limit, |object| {
            !object["status"]["lastScheduledTime"].is_null()
        })
        .await;
    let status = &opened["status"];
    assert_eq!(status["lastScheduledTime"], "2026-03-09T13:00:00Z");
    assert!(["Pending", "Active"].contains(&status["phase"].as_str().unwrap()));
    assert_eq!(cluster.clock().now(), limit);
}

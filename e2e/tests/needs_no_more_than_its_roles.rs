//! The operator works with exactly the shipped roles: on both backends it has no others. No request
//! is refused, and no request is outside the table of permissions.

use fivespot_install::permission::{PERMISSIONS, PROVIDER, Permission, Scope};
use fivespot_testkit::{
    AuditEvent, BEFORE_CLOSING, CLOSING, Cluster, instant, machine_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[promise!(in_a_whole_life)];

/// The resources that [`PROVIDER`] represents here.
const PROVIDED: [(&str, &str); 2] = [
    ("bootstrap.cluster.x-k8s.io", "k0sworkerconfigs"),
    ("infrastructure.cluster.x-k8s.io", "remotemachines"),
];

/// Whether a row of the table allows a request.
fn allows(row: &Permission, event: &AuditEvent) -> bool {
    let resource = match event.subresource.as_str() {
        "" => event.resource.clone(),
        subresource => format!("{}/{subresource}", event.resource),
    };
    let is_of_row = if row.resource == PROVIDER {
        PROVIDED.contains(&(event.group.as_str(), resource.as_str()))
    } else {
        (&row.group, &row.resource) == (&event.group, &resource)
    };
    let is_of_workload = matches!(row.scope, Scope::Workload | Scope::WorkloadSystem);
    let asks_workload = ["nodes", "pods"].contains(&event.resource.as_str());
    is_of_row && is_of_workload == asks_workload && row.verbs.contains(&event.verb)
}

/// Opens, taints, drains, closes, opens again, sets the kill switch, and deletes.
async fn in_a_whole_life() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut machine = scheduled_machine("worker");
    machine["spec"]["nodeTaints"] =
        json!([{"key": "workload", "value": "batch", "effect": "NoSchedule"}]);
    let worker = machine_path("worker");
    cluster.bring_up(&machine).await;
    cluster.run_pod("only", "worker").await;
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-20"]}}});
    cluster.patch(&worker, &longer).await;
    let limit = instant("2026-03-06T23:15:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&worker, &kill).await;
    let limit = instant("2026-03-06T23:20:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
    cluster.delete(&worker).await;
    let limit = instant("2026-03-06T23:25:00Z");
    cluster.wait_until_gone(&worker, limit).await;

    let requests = cluster.operator_requests();
    assert!(requests.len() > 50, "{} requests", requests.len());
    for event in &requests {
        assert_ne!(event.code, 403, "{event:?}");
        let is_about_resources = !event.resource.is_empty();
        let is_allowed = PERMISSIONS.iter().any(|row| allows(row, event));
        assert!(is_allowed || !is_about_resources, "{event:?}");
    }
    let forbidden = |event: &&Value| {
        event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    };
    let on_record = cluster.audit().await;
    let refused: Vec<&Value> = on_record.iter().filter(forbidden).collect();
    assert_eq!(refused, [&Value::Null; 0]);
}

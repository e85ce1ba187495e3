//! The promises themselves.

use std::pin::Pin;

use fivespot_testkit::{CLOSING, instant, pod, scheduled_machine};
use serde_json::{Value, json};

use crate::real::Real;

/// A promise by its name.
type Promise = (&'static str, fn(Real) -> Pin<Box<dyn Future<Output = ()>>>);

/// All of them.
pub(crate) const ALL: &[Promise] = &[
    (
        "a_machine_is_active_until_its_window_closes_and_leaves_nothing",
        |real| Box::pin(closes(real)),
    ),
    ("pods_are_evicted_as_their_budget_allows", |real| {
        Box::pin(drains(real))
    }),
    ("the_kill_switch_waits_for_no_budget", |real| {
        Box::pin(kill_switch(real))
    }),
    ("deletion_in_the_background_leaves_nothing", |real| {
        Box::pin(deleted(real, "Background"))
    }),
    ("deletion_in_the_foreground_leaves_nothing", |real| {
        Box::pin(deleted(real, "Foreground"))
    }),
    ("deletion_that_orphans_leaves_nothing", |real| {
        Box::pin(deleted(real, "Orphan"))
    }),
];

async fn bring_up(real: &Real) -> Value {
    real.create(&scheduled_machine(real.name())).await;
    let active = real.wait_for_phase("Active").await;
    for path in real.children() {
        assert_ne!(real.get(&path).await, Value::Null, "{path}");
    }
    active
}

async fn nothing_is_left(real: &Real) {
    for path in real.children() {
        assert_eq!(real.get(&path).await, Value::Null, "{path}");
    }
}

async fn closes(real: Real) {
    let active = bring_up(&real).await;
    let status = &active["status"];
    assert_eq!(status["nodeRef"]["name"], real.name());
    assert_eq!(status["nextTransition"], CLOSING);
    let machine = real.get(&real.children()[2]).await;
    assert_eq!(machine["status"]["phase"], "Running");
    assert_eq!(machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 300);

    real.pass_to(instant(CLOSING)).await;
    let inactive = real.wait_for_phase("Inactive").await;
    assert_eq!(inactive["status"].get("machineRef"), None);
    nothing_is_left(&real).await;
}

/// Two pods of which one may be away at a time, on the machine.
async fn run_shop(real: &Real) {
    real.create(&json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "shop"}}},
    }))
    .await;
    for name in ["shop-0", "shop-1"] {
        real.create(&pod(name, "shop", real.name())).await;
    }
    let budget = real.path("policy/v1", "PodDisruptionBudget", "shop");
    real.wait_for(&budget, |budget| {
        budget["status"]["disruptionsAllowed"] == 1
    })
    .await;
}

/// The first pod goes; the second is held back by its budget until the grace has passed.
async fn drains(real: Real) {
    bring_up(&real).await;
    run_shop(&real).await;
    real.pass_to(instant(CLOSING)).await;
    let budget = real.path("policy/v1", "PodDisruptionBudget", "shop");
    real.wait_for(&budget, |budget| budget["status"]["currentHealthy"] == 1)
        .await;
    let leaving = real.get(&real.machine_path()).await;
    assert_eq!(leaving["status"]["phase"], "ShuttingDown");
    let node = real.get(&real.children()[3]).await;
    assert_eq!(node["spec"]["unschedulable"], true);
    let machine = real.get(&real.children()[2]).await;
    assert_eq!(machine["metadata"].get("deletionTimestamp"), None);

    real.pass_to(instant("2026-03-06T23:05:00Z")).await;
    real.wait_for_phase("Inactive").await;
    nothing_is_left(&real).await;
}

async fn kill_switch(real: Real) {
    bring_up(&real).await;
    run_shop(&real).await;
    let on = json!({"spec": {"killSwitch": true}});
    real.patch(&real.machine_path(), &on).await;
    real.wait_for(&real.machine_path(), |object| {
        object["status"]["phase"] == "Terminated"
            && object["status"].get("machineRef").is_none()
    })
    .await;
    nothing_is_left(&real).await;
}

async fn deleted(real: Real, propagation: &str) {
    bring_up(&real).await;
    let options = json!({"propagationPolicy": propagation});
    real.delete(&real.machine_path(), &options).await;
    real.wait_until_gone(&real.machine_path()).await;
    nothing_is_left(&real).await;
}

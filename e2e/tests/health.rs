//! GitOps tools report the right health for a ScheduledMachine in each of its states: Argo CD with
//! the shipped Lua script, Flux with the expressions.

use fivespot_install::gitops;
use fivespot_testkit::{Cluster, instant, machine_path, scheduled_machine};
use insta::assert_snapshot;
use kubemu_cel::{Budget, Dialect, Env, Program, Type, Value as Cel, Variables};
use serde_json::{Value, json};

use crate::program;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[promise!(every_state_is_judged_rightly)
    .with_programs(&["lua5.4"])
    .on_embedded_alone("stops at every phase, which needs an exact clock")];

/// A value in Lua syntax.
fn lua(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        // JSON's escapes are the same in Lua, except unicode escapes, which these texts do not
        // contain.
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(lua).collect();
            format!("{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, it)| format!("[{key:?}] = {}", lua(it)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// The health in Argo CD.
async fn argo_cd(object: &Value) -> String {
    let mut seen = object.clone();
    // The script does not use it, and its keys contain quotes.
    seen["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    let script = format!(
        "obj = {}\nlocal health = (function()\n{}\nend)()\nprint(health.status)",
        lua(&seen),
        gitops::ARGO_CD
    );
    let done = tokio::process::Command::new(program::path("lua5.4").unwrap())
        .arg("-e")
        .arg(script)
        .output()
        .await
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn holds(expression: &str, object: &Value) -> bool {
    let names = ["metadata", "spec", "status"];
    let env = names
        .iter()
        .fold(Env::new(Dialect::of_minor(36)), |env, name| {
            env.variable(*name, Type::Dyn)
        });
    let program = Program::compile(expression, &env).unwrap();
    let empty = json!({});
    let variables = names.iter().fold(Variables::new(), |variables, name| {
        variables.json(*name, object.get(name).unwrap_or(&empty))
    });
    let value = program.run(&variables, &mut Budget::default()).unwrap();
    matches!(value, Cel::Bool(true))
}

/// The health in Flux.
fn flux(object: &Value) -> &'static str {
    let expressions = gitops::flux();
    match (
        holds(&expressions.current, object),
        holds(&expressions.failed, object),
    ) {
        (true, false) => "Current",
        (false, true) => "Failed",
        (false, false) => "InProgress",
        (true, true) => "both",
    }
}

/// One line: the state, and the health in both tools.
async fn judged(object: &Value) -> String {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|it| it["type"] == "Ready");
    let ready = ready.cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    format!(
        "{:<15} Ready={:<7} {:<20} {:<11} {}\n",
        text(&status["phase"]),
        text(&ready["status"]),
        text(&ready["reason"]),
        argo_cd(object).await,
        flux(object)
    )
}

async fn every_state_is_judged_rightly() {
    let cluster = Cluster::start(instant("2026-03-06T13:55:00Z")).await;
    let worker = machine_path("worker");
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let seen = async |phase: &str, limit: &str| {
        let object = cluster
            .wait_for_phase("worker", phase, instant(limit))
            .await;
        judged(&object).await
    };
    let patch = async |change: Value| cluster.patch(&worker, &change).await;
    let mut table = judged(&cluster.get(&worker).await.unwrap()).await;
    let _operator = cluster.operator();
    table += &seen("Inactive", "2026-03-06T13:56:00Z").await;
    table += &seen("Pending", "2026-03-06T14:00:05Z").await;
    table += &seen("Active", "2026-03-06T14:05:00Z").await;
    table += &judged(&patch(json!({"spec": {"priority": 60}})).await).await;
    cluster.run_pod("only", "worker").await;
    patch(json!({"spec": {"schedule": {"enabled": false}}})).await;
    table += &seen("Disabled", "2026-03-06T14:10:00Z").await;
    patch(json!({"spec": {"schedule": {"enabled": true}}})).await;
    table += &seen("Active", "2026-03-06T14:11:00Z").await;
    patch(json!({"spec": {"schedule": {"hoursOfDay": ["20"]}}})).await;
    table += &seen("ShuttingDown", "2026-03-06T14:12:00Z").await;
    table += &seen("Inactive", "2026-03-06T14:30:00Z").await;
    patch(json!({"spec": {"killSwitch": true}})).await;
    table += &seen("Terminated", "2026-03-06T14:31:00Z").await;
    patch(
        json!({"spec": {"killSwitch": false, "schedule": {"timezone": "Europe/Zurch"}}}),
    )
    .await;
    let mut broken = cluster
        .wait_for_phase("worker", "Error", instant("2026-03-06T14:32:00Z"))
        .await;
    table += &judged(&broken).await;
    let stalled = json!({"type": "Stalled", "status": "True", "reason": "ClusterNotFound", "message": "there is no Cluster prodd"});
    broken["status"]["phase"] = json!("Pending");
    broken["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(stalled);
    table += &judged(&broken).await;
    assert_snapshot!(table);
}

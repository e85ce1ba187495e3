//! Whether the reclaim agent is there where it is needed.

use serde_json::Value;

use super::finding::Finding;
use super::machine::identity;

const CHECK: &str = "agent";

/// What the operator says of the agent of each ScheduledMachine with `killIfCommands`: the agent
/// reports whether it runs, and whether the policy is in force that keeps it to its Node.
pub(super) fn check(machines: &Result<Vec<Value>, String>) -> Vec<Finding> {
    let machines = machines.as_deref().unwrap_or_default();
    let has_commands = |it: &&Value| {
        it["spec"]["killIfCommands"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    };
    let concerned: Vec<&Value> = machines.iter().filter(has_commands).collect();
    let wrong: Vec<Finding> = concerned.iter().filter_map(|it| wrong(it)).collect();
    if wrong.is_empty() && !concerned.is_empty() {
        let message = format!(
            "AgentReady is False nowhere; ScheduledMachines with killIfCommands: {}",
            concerned.len()
        );
        return vec![Finding::ok(CHECK, message)];
    }
    wrong
}

/// None where the agent runs, or where there is no node yet that it could run on.
fn wrong(machine: &Value) -> Option<Finding> {
    let conditions = machine["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|it| it["type"] == "AgentReady")?;
    if condition["status"] != "False" {
        return None;
    }
    let message = condition["message"].as_str().unwrap_or_default();
    let finding = Finding::error(CHECK, format!("{}: {message}", identity(machine)));
    match condition["reason"].as_str()? {
        "NotInstalled" => Some(finding.remedy(
            "apply `5spot generate agent --image ...` in the workload cluster",
        )),
        "ConfigRejected" => Some(finding.remedy(
            "correct spec.killIfCommands, or apply `5spot generate agent` again for its policy",
        )),
        _ => None,
    }
}

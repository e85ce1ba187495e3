//! Checks whether the reclaim agent is installed where it is needed.

use serde_json::Value;

use super::finding::Finding;
use super::machine::identity;

const CHECK: &str = "agent";

/// The findings from the AgentReady condition of each ScheduledMachine with `killIfCommands`. The
/// condition reports whether the agent runs, and whether the policy that limits it to its Node is
/// in force.
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
            "ScheduledMachines with killIfCommands: {}; none has AgentReady=False",
            concerned.len()
        );
        return vec![Finding::ok(CHECK, message)];
    }
    wrong
}

/// The finding for a missing agent or a rejected configuration. `None` otherwise.
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

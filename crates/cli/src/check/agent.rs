//! Checks whether the reclaim agent is installed where it is needed.

use serde_json::Value;

use super::finding::Finding;
use super::machine::identity;

const CHECK: &str = "agent";

/// The findings from the AgentReady condition of each ScheduledMachine with commands to reclaim. The
/// condition reports whether the agent runs, and whether the policy that limits it to its Node is
/// in force.
pub(super) fn check(machines: &Result<Vec<Value>, String>) -> Vec<Finding> {
    let machines = machines.as_deref().unwrap_or_default();
    let has_commands = |it: &&Value| {
        let spec = &it["spec"];
        [&spec["killIfCommands"], &spec["reclaim"]["commands"]]
            .iter()
            .any(|commands| commands.as_array().is_some_and(|all| !all.is_empty()))
    };
    let with_commands: Vec<&Value> = machines.iter().filter(has_commands).collect();
    let problems: Vec<Finding> =
        with_commands.iter().filter_map(|it| problem(it)).collect();
    if problems.is_empty() && !with_commands.is_empty() {
        let message = format!(
            "ScheduledMachines with commands to reclaim: {}; none has AgentReady=False",
            with_commands.len()
        );
        return vec![Finding::ok(CHECK, message)];
    }
    problems
}

/// The finding for a missing agent or a rejected configuration. `None` otherwise.
fn problem(machine: &Value) -> Option<Finding> {
    let conditions = machine["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|it| it["type"] == "AgentReady")?;
    if condition["status"] != "False" {
        return None;
    }
    let message = condition["message"].as_str().unwrap_or_default();
    let finding = Finding::error(CHECK, format!("{}: {message}", identity(machine)));
    match condition["reason"].as_str()? {
        "NotInstalled" => {
            Some(finding.remedy(
                "apply `5spot generate agent --image ...` in the workload cluster",
            ))
        }
        "ConfigRejected" => Some(finding.remedy(
            "correct the commands, or apply `5spot generate agent` again for its policy",
        )),
        _ => None,
    }
}

//! The agent on the Node: its label, its configuration, and what it reports.
//!
//! The label is added first and removed last, so that it shows where a configuration may exist. A
//! configuration is garbage-collected with its Node.

use fivespot_api::condition::{ConditionStatus, ConditionType, ConditionUpdate, Reason};
use fivespot_api::name;
use fivespot_api::reclaim::{Report, agent_config, config_hash};
use fivespot_capi::Machine;
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::act::write;
use crate::decide::case::Case;
use crate::decide::machine;
use crate::status::ConditionChange;
use crate::{Action, AgentConfig, Fact, Node, Step};

/// How long an agent may take to report a configuration.
const AGENT_REPORT_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);

/// The steps that configure the agent.
const STEPS: [Step; 4] = [
    Step::LabelNode,
    Step::CreateAgentConfig,
    Step::UpdateAgentConfig,
    Step::DeleteAgentConfig,
];

/// The actions for the agent on the Node of our Machine. The first may be a write to the Node
/// itself.
pub(crate) fn actions(case: &Case<'_>, machine: &Machine) -> Vec<Action> {
    let Some(node) = machine::node(case, machine) else {
        return Vec::new();
    };
    let Ok(commands) = &case.desired.commands else {
        return Vec::new();
    };
    let is_labelled = node.agent_label.as_deref() == Some(name::RECLAIM_AGENT_ENABLED);
    let config = match &case.observed.workload.agent_config {
        Fact::Known(config) => config.as_ref(),
        Fact::Unknown(_) => return Vec::new(),
    };
    if commands.is_empty() {
        let leftover = config.filter(|config| config.is_ours);
        return match leftover {
            _ if !is_labelled => Vec::new(),
            Some(config) => vec![write::delete_agent_config(node, config)],
            None => vec![write::label_node(node, false)],
        };
    }
    let label = (!is_labelled).then(|| write::label_node(node, true));
    let text = agent_config(commands);
    let project = match config {
        None => Some(write::create_agent_config(node, &text)),
        Some(config) if config.is_ours && !is_projected(config, node, &text) => {
            Some(write::update_agent_config(node, config, &text))
        }
        Some(_) => None,
    };
    label.into_iter().chain(project).collect()
}

fn is_projected(config: &AgentConfig, node: &Node, text: &str) -> bool {
    config.text.as_deref() == Some(text) && config.node_uid.as_ref() == Some(&node.uid)
}

/// The change of the condition `AgentReady`.
pub(crate) fn condition(case: &Case<'_>) -> ConditionChange {
    let commands = match &case.desired.commands {
        Ok(commands) if commands.is_empty() => return ConditionChange::Remove,
        Ok(commands) => commands,
        Err(fault) => {
            let message = format!("{fault}; no agent is configured");
            return set(ConditionStatus::False, Reason::InvalidSpec, message);
        }
    };
    let machine = case.owned.our_machine();
    let Some((machine, link)) = machine.and_then(|of| Some((of, of.node.as_ref()?)))
    else {
        return ConditionChange::Remove;
    };
    let Some(node) = machine::node(case, machine) else {
        let message = format!("Node {} cannot be read", link.name);
        return set(ConditionStatus::Unknown, Reason::NotInstalled, message);
    };
    let failure = STEPS.iter().find_map(|step| case.memory.failure(*step));
    if let Some(failure) = failure {
        let message = format!(
            "cannot configure the agent on Node {}: {}",
            node.name, failure.message
        );
        return set(ConditionStatus::False, Reason::NotInstalled, message);
    }
    if let Fact::Known(Some(config)) = &case.observed.workload.agent_config
        && !config.is_ours
    {
        let message = format!(
            "the ConfigMap {} in {} was not created by 5-Spot; remove it",
            name::reclaim_config_map(&node.name),
            name::SYSTEM_NAMESPACE,
        );
        return set(ConditionStatus::False, Reason::NotInstalled, message);
    }
    reported(case, node, &config_hash(&agent_config(commands)))
}

/// What the agent itself reports about the configuration with the hash `wanted`.
fn reported(case: &Case<'_>, node: &Node, wanted: &str) -> ConditionChange {
    let report = node.agent_report.as_deref().and_then(Report::parse);
    let report = report.filter(|report| report.config == wanted);
    let name = &node.name;
    if let (None, Some(why)) = (&report, unreadable(case)) {
        let message = format!(
            "the ConfigMap {} in {} cannot be read, so the agent is not configured: {why}",
            name::reclaim_config_map(name),
            name::SYSTEM_NAMESPACE,
        );
        return set(ConditionStatus::Unknown, Reason::NotInstalled, message);
    }
    match report {
        Some(Report {
            rejection: None, ..
        }) => {
            let message = format!("the agent on Node {name} watches for the commands");
            set(ConditionStatus::True, Reason::Running, message)
        }
        Some(Report {
            rejection: Some(why),
            ..
        }) => {
            let message =
                format!("the agent on Node {name} rejects its configuration: {why}");
            set(ConditionStatus::False, Reason::ConfigRejected, message)
        }
        None if due(case).is_some_and(|due| due > case.now) && !was_absent(case) => {
            let message = format!("waiting for the agent on Node {name} to report");
            set(ConditionStatus::Unknown, Reason::NotInstalled, message)
        }
        None if case.memory.projected_since().is_none() => ConditionChange::Keep,
        None => {
            let message = format!(
                "no agent on Node {name} reports the configuration; install the agent's \
                 DaemonSet in the workload cluster"
            );
            set(ConditionStatus::False, Reason::NotInstalled, message)
        }
    }
}

/// Why the ConfigMap cannot be read; `None` if it was read or not requested.
fn unreadable<'a>(case: &Case<'a>) -> Option<&'a str> {
    match &case.observed.workload.agent_config {
        Fact::Known(_) => None,
        Fact::Unknown(unknown) => unknown.message(),
    }
}

/// Until when the agent may take to report its configuration.
pub(crate) fn due(case: &Case<'_>) -> Option<Timestamp> {
    let since = case.memory.projected_since()?;
    Some(after(since, AGENT_REPORT_TIMEOUT))
}

/// Whether the status reports the agent as absent. Only the message depends on it: an agent that
/// was absent before a restart of the operator is not waited for again.
fn was_absent(case: &Case<'_>) -> bool {
    let said = case.subject.reported(ConditionType::AgentReady);
    said.is_some_and(|said| {
        said.status == ConditionStatus::False.as_str()
            && said.reason == Reason::NotInstalled.as_str()
    })
}

fn set(status: ConditionStatus, reason: Reason, message: String) -> ConditionChange {
    let kind = ConditionType::AgentReady;
    ConditionChange::Set(ConditionUpdate::new(kind, status, reason, message))
}

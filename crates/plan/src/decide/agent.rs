//! The agent on the Node: its label, its configuration, and what it reports.
//!
//! The label comes first and goes last, so that it says where a configuration is to be looked
//! for. A configuration that outlives its Node is collected with it.

use fivespot_api::condition::{self, ConditionStatus, ConditionType, Finding, Reason};
use fivespot_api::name;
use fivespot_api::reclaim::{Report, agent_config, config_hash};
use fivespot_capi::Machine;
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::act::write;
use crate::decide::case::Case;
use crate::decide::machine;
use crate::{Action, AgentConfig, Fact, Node, Step};

/// How long an agent may take to report a configuration.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// The steps that serve the agent.
const STEPS: [Step; 4] = [
    Step::LabelNode,
    Step::CreateAgentConfig,
    Step::UpdateAgentConfig,
    Step::DeleteAgentConfig,
];

/// What is to be done for the agent on the Node of our Machine. The first may be a write to the
/// Node itself.
pub(crate) fn actions(case: &Case<'_>, machine: &Machine) -> Vec<Action> {
    let Some(node) = machine::node(case, machine) else {
        return Vec::new();
    };
    let Ok(commands) = &case.want.commands else {
        return Vec::new();
    };
    let is_labelled = node.agent_label.as_deref() == Some(name::RECLAIM_AGENT_ENABLED);
    let config = match &case.seen.workload.agent_config {
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

/// What the status tells of the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// There is nothing to tell.
    Nothing,
    /// What was told before stays.
    AsBefore,
    /// This.
    Finding(Finding),
}

/// What is told of the agent.
pub(crate) fn told(case: &Case<'_>) -> Told {
    let commands = match &case.want.commands {
        Ok(commands) if commands.is_empty() => return Told::Nothing,
        Ok(commands) => commands,
        Err(fault) => {
            let told = format!("{fault}; no agent is configured");
            return say(ConditionStatus::False, Reason::InvalidSpec, told);
        }
    };
    let machine = case.triple.our_machine();
    let Some((machine, link)) = machine.and_then(|of| Some((of, of.node.as_ref()?)))
    else {
        return Told::Nothing;
    };
    let Some(node) = machine::node(case, machine) else {
        let told = format!("Node {} cannot be read", link.name);
        return say(ConditionStatus::Unknown, Reason::NotInstalled, told);
    };
    let failure = STEPS.iter().find_map(|step| case.memory.failure(*step));
    if let Some(failure) = failure {
        let told = format!(
            "cannot bring the agent's configuration to Node {}: {}",
            node.name, failure.message
        );
        return say(ConditionStatus::False, Reason::NotInstalled, told);
    }
    if let Fact::Known(Some(config)) = &case.seen.workload.agent_config
        && !config.is_ours
    {
        let told = format!(
            "the ConfigMap {} in {} belongs to somebody else; remove it",
            name::reclaim_config_map(&node.name),
            name::SYSTEM_NAMESPACE,
        );
        return say(ConditionStatus::False, Reason::NotInstalled, told);
    }
    reported(case, node, &config_hash(&agent_config(commands)))
}

/// What the agent itself says about the configuration of that hash.
fn reported(case: &Case<'_>, node: &Node, wanted: &str) -> Told {
    let report = node.agent_report.as_deref().and_then(Report::parse);
    let report = report.filter(|report| report.config == wanted);
    let name = &node.name;
    if let (None, Some(why)) = (&report, unreadable(case)) {
        let told = format!(
            "the ConfigMap {} in {} cannot be read, so that no configuration is brought to the \
             agent: {why}",
            name::reclaim_config_map(name),
            name::SYSTEM_NAMESPACE,
        );
        return say(ConditionStatus::Unknown, Reason::NotInstalled, told);
    }
    match report {
        Some(Report {
            rejection: None, ..
        }) => {
            let told = format!("the agent on Node {name} watches for the commands");
            say(ConditionStatus::True, Reason::Running, told)
        }
        Some(Report {
            rejection: Some(why),
            ..
        }) => {
            let told =
                format!("the agent on Node {name} refuses its configuration: {why}");
            say(ConditionStatus::False, Reason::ConfigRejected, told)
        }
        None if due(case).is_some_and(|due| due > case.now) && !was_absent(case) => {
            let told = format!("waiting for the agent on Node {name} to report");
            say(ConditionStatus::Unknown, Reason::NotInstalled, told)
        }
        None if case.memory.projected_since().is_none() => Told::AsBefore,
        None => {
            let told = format!(
                "no agent on Node {name} reports the configuration; install the agent's \
                 DaemonSet in the workload cluster"
            );
            say(ConditionStatus::False, Reason::NotInstalled, told)
        }
    }
}

/// Why the ConfigMap cannot be read, where it was tried.
fn unreadable<'a>(case: &Case<'a>) -> Option<&'a str> {
    match &case.seen.workload.agent_config {
        Fact::Known(_) => None,
        Fact::Unknown(unknown) => unknown.message(),
    }
}

/// Until when the agent may take to report.
pub(crate) fn due(case: &Case<'_>) -> Option<Timestamp> {
    let since = case.memory.projected_since()?;
    Some(after(since, PATIENCE))
}

/// Whether the agent was said to be absent. Only the wording depends on it: who was absent
/// before a restart of the operator is not awaited anew.
fn was_absent(case: &Case<'_>) -> bool {
    let conditions = &case.subject.status.conditions;
    condition::find(conditions, ConditionType::AgentReady).is_some_and(|said| {
        said.status == ConditionStatus::False.as_str()
            && said.reason == Reason::NotInstalled.as_str()
    })
}

fn say(status: ConditionStatus, reason: Reason, message: String) -> Told {
    let kind = ConditionType::AgentReady;
    Told::Finding(Finding::new(kind, status, reason, message))
}

//! The ladder of decisions about one machine, printed.

use std::io::{self, Write};

use fivespot_api::condition::{self, ConditionType};
use fivespot_controller::Look;
use fivespot_plan::{
    Access, Action, Call, Fact, Memory, Plan, Seen, Sighting, Unknown, explain,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use crate::plain;

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    namespace: String,
    name: String,
    at: Timestamp,
    /// The facts are those of another instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_at: Option<Timestamp>,
    phase: String,
    message: String,
    rungs: Vec<Rung>,
    seen: Vec<Line>,
    /// The operator has told otherwise of the workload cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    told_otherwise: Option<String>,
    actions: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct Rung {
    number: u8,
    name: &'static str,
    decides: bool,
    saw: String,
}

#[derive(Debug, Serialize)]
struct Line {
    what: String,
    state: String,
}

#[derive(Debug, Serialize)]
struct Step {
    step: String,
    request: String,
}

/// What is decided from `found` at `at`.
pub(super) fn report(found: &Look, at: Timestamp) -> Report {
    let mut memory = Memory::default();
    memory.observe(found.object.metadata.generation, &found.seen, at);
    let told = explain(&found.object, &found.seen, &memory, at);
    let meta = &found.object.metadata;
    Report {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        at: whole_seconds(at),
        seen_at: (at != found.now).then_some(whole_seconds(found.now)),
        phase: told
            .phase()
            .map_or("none yet".to_owned(), |it| it.to_string()),
        message: told.status.message.clone().unwrap_or_default(),
        rungs: told
            .rungs
            .iter()
            .map(|rung| Rung {
                number: rung.number,
                name: rung.name,
                decides: rung.decides,
                saw: rung.saw.clone(),
            })
            .collect(),
        seen: seen(&found.seen),
        told_otherwise: told_otherwise(found),
        actions: steps(&told.plan, meta.name.as_deref().unwrap_or_default()),
        next: told.plan.wake.map(whole_seconds),
    }
}

/// What the operator has said of the workload cluster, where that is not what is seen here.
fn told_otherwise(found: &Look) -> Option<String> {
    let (reason, here) = found.seen.workload.access.told()?;
    let conditions = &found.object.status.as_ref()?.conditions;
    let told = condition::find(conditions, ConditionType::NodeAccess)?;
    let Condition {
        status,
        reason: why,
        message,
        ..
    } = told;
    let since = whole_seconds(told.last_transition_time.0);
    (why.as_str() != reason.as_str()).then(|| {
        format!(
            "The operator has told otherwise: NodeAccess is {status} since {since}, {why} \
             ({message}); here: {reason} ({here}). It may do otherwise than is told here: it \
             has rights and a --node-access of its own."
        )
    })
}

/// An instant as people tell it, cut to the second.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// What is sent, and the status after all of it has succeeded.
fn steps(plan: &Plan, name: &str) -> Vec<Step> {
    let status = plan.status.as_ref().map(|_| Step {
        step: "WriteStatus".to_owned(),
        request: format!("patch ScheduledMachine/{name}, status"),
    });
    plan.actions.iter().map(step).chain(status).collect()
}

fn step(action: &Action) -> Step {
    let object = &action.request.target.object;
    let verb = match &action.request.call {
        Call::Create(_) => "create",
        Call::Patch(_) => "patch",
        Call::Delete { .. } | Call::DeletePod { .. } => "delete",
        Call::Evict { .. } => "evict",
    };
    Step {
        step: format!("{:?}", action.step),
        request: format!("{verb} {}/{}", object.kind, object.name),
    }
}

fn seen(seen: &Seen) -> Vec<Line> {
    let mut lines = vec![
        line(
            "Cluster",
            state(&seen.cluster, |it| {
                let state =
                    match (it.is_infrastructure_ready, it.is_control_plane_initialized) {
                        _ if it.meta.is_deleting => "is being deleted",
                        (true, true) => "takes machines",
                        (true, false) => "has no control plane yet",
                        (false, _) => "has no infrastructure yet",
                    };
                format!("{} {state}", it.meta.name)
            }),
        ),
        line(
            "Machine",
            state(&seen.machine, |it| {
                let phase = it.phase.as_deref().unwrap_or("no phase yet");
                let leaving = if it.meta.is_deleting {
                    ", being deleted"
                } else {
                    ""
                };
                format!("{} {phase}{leaving}", it.meta.name)
            }),
        ),
    ];
    lines.extend(seen.bootstrap.iter().map(sighting));
    lines.extend(seen.infrastructure.iter().map(sighting));
    lines.extend(workload(seen));
    lines
}

fn sighting(sighting: &Sighting) -> Line {
    let found = state(&sighting.found, |it| {
        let ready = if it.is_ready { "ready" } else { "not ready" };
        let leaving = if it.meta.is_deleting {
            ", being deleted"
        } else {
            ""
        };
        // One that is ready may report a failure that is over.
        let is_waited_for = !it.is_ready || it.meta.is_deleting;
        let trouble = it.trouble.as_ref().filter(|_| is_waited_for);
        let trouble = trouble.map_or_else(String::new, |text| format!(": {text}"));
        format!("{} {ready}{leaving}{trouble}", it.meta.name)
    });
    line(&sighting.place.kind, found)
}

fn workload(seen: &Seen) -> Vec<Line> {
    let link = match &seen.workload.access {
        Access::NotAsked => return Vec::new(),
        Access::Connected => {
            let node = state(&seen.workload.node, |it| {
                let ready = if it.is_ready { "Ready" } else { "not Ready" };
                let cordoned = if it.is_unschedulable {
                    ", cordoned"
                } else {
                    ""
                };
                format!("{} {ready}{cordoned}", it.name)
            });
            let mut lines = vec![line("Node", node)];
            if let Fact::Known(pods) = &seen.workload.pods {
                lines.push(line("pods", pods.len().to_string()));
            }
            return lines;
        }
        Access::KubeconfigMissing { message }
        | Access::KubeconfigRefused { message }
        | Access::Unreachable { message }
        | Access::TooLarge { message }
        | Access::Unauthorized { message } => message,
    };
    vec![line("Node", format!("cannot be told: {link}"))]
}

fn state<T>(fact: &Fact<Option<T>>, told: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Known(Some(found)) => told(found),
        Fact::Known(None) => "there is none".to_owned(),
        Fact::Unknown(Unknown::NotAsked) => "not asked for".to_owned(),
        Fact::Unknown(Unknown::NotServed { message }) => {
            format!("there is none: {message} is not served")
        }
        Fact::Unknown(Unknown::Forbidden { message } | Unknown::Failed { message }) => {
            format!("cannot be told: {message}")
        }
    }
}

fn line(what: &str, state: impl Into<String>) -> Line {
    Line {
        what: what.to_owned(),
        state: state.into(),
    }
}

/// For people.
pub(super) fn text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let Report {
        namespace,
        name,
        at,
        phase,
        message,
        ..
    } = report;
    let (namespace, name) = (plain::line(namespace), plain::line(name));
    writeln!(out, "{namespace}/{name} at {at}: {phase}")?;
    if !message.is_empty() {
        writeln!(out, "{}", plain::line(message))?;
    }
    if let Some(seen_at) = report.seen_at {
        writeln!(out, "(with what was seen at {seen_at})")?;
    }
    rungs(out, &report.rungs)?;
    observed(out, &report.seen)?;
    if let Some(otherwise) = &report.told_otherwise {
        writeln!(out, "\n{}", plain::line(otherwise))?;
    }
    writeln!(out, "\nTo be done now:")?;
    if report.actions.is_empty() {
        writeln!(out, "  nothing")?;
    }
    for step in &report.actions {
        writeln!(out, "  {:<20} {}", step.step, plain::line(&step.request))?;
    }
    match report.next {
        Some(next) => writeln!(
            out,
            "\nLooked at again at {next}, or when something changes."
        ),
        None => writeln!(out, "\nLooked at again when something changes."),
    }
}

fn rungs(out: &mut dyn Write, rungs: &[Rung]) -> io::Result<()> {
    writeln!(out, "\nThe first of these that applies decides:")?;
    let mut is_above = true;
    for rung in rungs {
        let mark = match (rung.decides, is_above) {
            (true, _) => "=>",
            (false, true) => "no",
            (false, false) => " .",
        };
        writeln!(
            out,
            "  {mark}  {} {:<12} {}",
            rung.number,
            rung.name,
            plain::line(&rung.saw)
        )?;
        is_above &= !rung.decides;
    }
    Ok(())
}

fn observed(out: &mut dyn Write, seen: &[Line]) -> io::Result<()> {
    writeln!(out, "\nSeen:")?;
    let width = seen.iter().map(|it| it.what.len()).max().unwrap_or(0);
    for line in seen {
        let (what, state) = (plain::line(&line.what), plain::line(&line.state));
        writeln!(out, "  {what:<width$}  {state}")?;
    }
    Ok(())
}

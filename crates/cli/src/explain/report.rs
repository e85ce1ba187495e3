//! The plan for one machine, and the checks that decided it, as a report.

use std::io::{self, Write};

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::time::whole_seconds;
use fivespot_api::verdict::{Lease, Verdict, verdict};
use fivespot_api::{ClassProblem, ResolvedClass, ScheduledMachine, name};
use fivespot_controller::Inspection;
use fivespot_plan::{
    Access, Action, Call, Fact, Lookup, Memory, Observed, Plan, Unknown, explain,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use super::unreadable::{self, Unreadable};
use crate::{output, plain};

/// The printed report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    namespace: String,
    name: String,
    at: Timestamp,
    /// When the objects were read, if that is another time.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_at: Option<Timestamp>,
    /// What the operator has written, judged as every command does.
    verdict: Verdict,
    /// The phase of the status.
    phase: String,
    /// What the user of the command may not read. Without it there are no checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_readable: Vec<Unreadable>,
    /// What the checks result in, with the objects that the user may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned: Option<Planned>,
    checks: Vec<Check>,
    observed: Vec<Line>,
    /// Set if the operator reports another state of the workload cluster.
    #[serde(rename = "operatorReport", skip_serializing_if = "Option::is_none")]
    reported: Option<String>,
    actions: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Planned {
    phase: String,
    message: String,
}

#[derive(Debug, Serialize)]
struct Check {
    number: u8,
    name: &'static str,
    reason: &'static str,
    decides: bool,
    observed: String,
}

#[derive(Debug, Serialize)]
struct Line {
    kind: String,
    state: String,
}

#[derive(Debug, Serialize)]
struct Step {
    step: String,
    request: String,
}

/// The verdict from the status, and the decision at `at` from the state in `inspection`.
pub(super) fn report(inspection: &Inspection, lease: &Lease, at: Timestamp) -> Report {
    let object = &inspection.object;
    let meta = &object.metadata;
    let stored = object.status.as_ref();
    let phase = stored.and_then(|status| status.phase);
    let report = Report {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        at: whole_seconds(at),
        observed_at: (at != inspection.now).then_some(whole_seconds(inspection.now)),
        verdict: verdict(object, lease, inspection.now),
        phase: phase.map_or("none yet".to_owned(), |it| it.to_string()),
        not_readable: unreadable::of(&inspection.observed),
        planned: None,
        checks: Vec::new(),
        observed: class(&inspection.object)
            .into_iter()
            .chain(observed(&inspection.observed))
            .collect(),
        reported: reported(inspection),
        actions: Vec::new(),
        next: None,
    };
    if report.not_readable.is_empty() {
        planned(report, inspection, at)
    } else {
        report
    }
}

/// Adds what the planning function decides with the objects that were read.
fn planned(report: Report, inspection: &Inspection, at: Timestamp) -> Report {
    let mut memory = Memory::default();
    let meta = &inspection.object.metadata;
    memory.observe(meta.generation, &inspection.observed, at);
    let explanation = explain(&inspection.object, &inspection.observed, &memory, at);
    let planned = Planned {
        phase: explanation
            .phase()
            .map_or("none yet".to_owned(), |it| it.to_string()),
        message: explanation.status.message.clone().unwrap_or_default(),
    };
    Report {
        planned: Some(planned),
        checks: explanation
            .precedence
            .iter()
            .map(|entry| Check {
                number: entry.number,
                name: entry.name,
                reason: entry.reason,
                decides: entry.decides,
                observed: entry.observed.clone(),
            })
            .collect(),
        actions: steps(&explanation.plan, meta.name.as_deref().unwrap_or_default()),
        next: explanation.plan.requeue_at.map(whole_seconds),
        ..report
    }
}

/// A note on the NodeAccess condition of the operator, if its reason differs from what was found
/// here.
fn reported(inspection: &Inspection) -> Option<String> {
    let (reason, here) = inspection.observed.workload.access.condition()?;
    let conditions = &inspection.object.status.as_ref()?.conditions;
    let reported = condition::find(conditions, ConditionType::NodeAccess)?;
    let Condition {
        status,
        reason: why,
        message,
        ..
    } = reported;
    let since = whole_seconds(reported.last_transition_time.0);
    (why.as_str() != reason.as_str()).then(|| {
        format!(
            "The operator reports another state: NodeAccess is {status} since {since}, {why} \
             ({message}); this command found: {reason} ({here}). The operator may act \
             differently, because it has its own permissions and --node-access."
        )
    })
}

/// The requests of the plan, and the status patch after all of them have succeeded.
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

/// The class that the machine is made from.
fn class(object: &ScheduledMachine) -> Option<Line> {
    let spec = &object.spec;
    let host = object.status.as_ref().and_then(|of| of.host.as_ref());
    let state = match (&spec.class, &spec.class_ref) {
        (Some(ResolvedClass { name, problem, .. }), _) => match problem {
            None => match host {
                Some(host) => format!("{name} is used, host {host}"),
                None => format!("{name} is used"),
            },
            Some(ClassProblem::NotFound) => format!("{name} not found"),
            Some(ClassProblem::NamespaceNotSelected) => {
                format!("{name} does not select the namespace")
            }
            Some(ClassProblem::ClusterNotAllowed(_)) => {
                format!("{name} does not allow the Cluster")
            }
            Some(ClassProblem::HostNotFound(host)) => {
                format!("{name} has no host {host}")
            }
        },
        (None, Some(named)) => format!("{} not readable", named.name),
        (None, None) => return None,
    };
    Some(line(name::CLASS_KIND, state))
}

fn observed(observed: &Observed) -> Vec<Line> {
    let mut lines = vec![
        line(
            "Cluster",
            state(&observed.cluster, |it| {
                let state =
                    match (it.is_infrastructure_ready, it.is_control_plane_initialized) {
                        _ if it.meta.is_deleting => "is being deleted",
                        (true, true) => "is ready",
                        (true, false) => "control plane is not initialized",
                        (false, _) => "infrastructure is not ready",
                    };
                format!("{} {state}", it.meta.name)
            }),
        ),
        line(
            "Machine",
            state(&observed.machine, |it| {
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
    lines.extend(observed.bootstrap.iter().map(lookup));
    lines.extend(observed.infrastructure.iter().map(lookup));
    lines.extend(workload(observed));
    lines
}

fn lookup(lookup: &Lookup) -> Line {
    let found = state(&lookup.found, |it| {
        let ready = if it.is_ready { "ready" } else { "not ready" };
        let leaving = if it.meta.is_deleting {
            ", being deleted"
        } else {
            ""
        };
        // A ready object may still report an earlier failure.
        let is_waited_for = !it.is_ready || it.meta.is_deleting;
        let problem = it.problem.as_ref().filter(|_| is_waited_for);
        let problem = problem.map_or_else(String::new, |text| format!(": {text}"));
        format!("{} {ready}{leaving}{problem}", it.meta.name)
    });
    line(&lookup.reference.kind, found)
}

fn workload(observed: &Observed) -> Vec<Line> {
    let link = match &observed.workload.access {
        Access::NotRequested => return Vec::new(),
        Access::Connected => {
            let node = state(&observed.workload.node, |it| {
                let ready = if it.is_ready { "Ready" } else { "not Ready" };
                let cordoned = if it.is_unschedulable {
                    ", cordoned"
                } else {
                    ""
                };
                format!("{} {ready}{cordoned}", it.name)
            });
            let mut lines = vec![line("Node", node)];
            if let Fact::Known(pods) = &observed.workload.pods {
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
    vec![line("Node", format!("unknown: {link}"))]
}

fn state<T>(fact: &Fact<Option<T>>, describe: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Known(Some(found)) => describe(found),
        Fact::Known(None) => "not found".to_owned(),
        Fact::Unknown(Unknown::NotRequested) => "not read".to_owned(),
        Fact::Unknown(Unknown::NotServed { message }) => {
            format!("not found: {message} is not served")
        }
        Fact::Unknown(Unknown::Forbidden { .. }) => "not readable".to_owned(),
        Fact::Unknown(Unknown::Failed { message }) => format!("unknown: {message}"),
    }
}

fn line(kind: &str, state: impl Into<String>) -> Line {
    Line {
        kind: kind.to_owned(),
        state: state.into(),
    }
}

impl Report {
    /// What the operator has written, judged.
    pub(super) fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

/// Prints the report as text.
pub(super) fn text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let Report {
        namespace,
        name,
        phase,
        verdict,
        ..
    } = report;
    judgement(out, [namespace, name, phase], verdict)?;
    if report.not_readable.is_empty() {
        decision(out, report)?;
    } else {
        writeln!(
            out,
            "\nYou may not read these objects, so the checks of the operator are left out:"
        )?;
        for unreadable in &report.not_readable {
            writeln!(out, "  {}", plain::line(&unreadable.text()))?;
        }
    }
    // Where nothing is readable, the lines above have said it of each.
    if report.observed.len() > report.not_readable.len() {
        objects(out, &report.observed)?;
    }
    if let Some(reported) = &report.reported {
        writeln!(out, "\n{}", plain::line(reported))?;
    }
    if !report.not_readable.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNext requests:")?;
    if report.actions.is_empty() {
        writeln!(out, "  none")?;
    }
    for step in &report.actions {
        writeln!(out, "  {:<20} {}", step.step, plain::line(&step.request))?;
    }
    match report.next {
        Some(next) => writeln!(
            out,
            "\nNext reconcile at {next}, or when an object changes."
        ),
        None => writeln!(out, "\nNext reconcile when an object changes."),
    }
}

/// Prints the verdict about the object with that namespace, name and phase.
pub(super) fn judgement(
    out: &mut dyn Write,
    object: [&str; 3],
    verdict: &Verdict,
) -> io::Result<()> {
    let [namespace, name, phase] = object.map(plain::line);
    let since = verdict.since.map(whole_seconds);
    let since = since.map_or_else(String::new, |since| format!(" since {since}"));
    let reason = match verdict.reason.as_str() {
        "" => String::new(),
        reason => format!(", {}", plain::line(reason)),
    };
    let state = verdict.state;
    writeln!(
        out,
        "{namespace}/{name}: {state}{since} (phase {phase}{reason})"
    )?;
    if !verdict.cause.is_empty() {
        writeln!(out, "{}", plain::line(&verdict.cause))?;
    }
    output::remedy(out, verdict)
}

/// Prints what the planning function decides, and by which check.
fn decision(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    if let Some(observed_at) = report.observed_at {
        writeln!(
            out,
            "\nAt {}, with the objects read at {observed_at}:",
            report.at
        )?;
    }
    if let Some(Planned { phase, message }) = &report.planned
        && (report.observed_at.is_some() || *phase != report.phase)
    {
        let message = plain::line(message);
        writeln!(out, "The checks result in {phase}: {message}")?;
    }
    checks(out, &report.checks)
}

fn checks(out: &mut dyn Write, checks: &[Check]) -> io::Result<()> {
    writeln!(
        out,
        "\nChecked in this order; the first that applies decides:"
    )?;
    let mut is_above = true;
    for check in checks {
        let mark = match (check.decides, is_above) {
            (true, _) => "=>",
            (false, true) => "no",
            (false, false) => " .",
        };
        writeln!(
            out,
            "  {mark}  {} {:<12} {}",
            check.number,
            check.name,
            plain::line(&check.observed)
        )?;
        is_above &= !check.decides;
    }
    Ok(())
}

fn objects(out: &mut dyn Write, observed: &[Line]) -> io::Result<()> {
    writeln!(out, "\nObserved objects:")?;
    let width = observed.iter().map(|it| it.kind.len()).max().unwrap_or(0);
    for line in observed {
        let (kind, state) = (plain::line(&line.kind), plain::line(&line.state));
        writeln!(out, "  {kind:<width$}  {state}")?;
    }
    Ok(())
}

//! The lines that `5spot dev` prints for transitions and steps.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use fivespot_api::CapacityPhase;
use fivespot_controller::{Key, Listener, StepTaken, Transition};
use fivespot_plan::Step;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{output, plain};

/// Prints each transition as one line on standard output.
pub(crate) struct Printer {
    out: Mutex<Box<dyn Write + Send>>,
    closed: Notify,
}

impl Printer {
    pub(crate) fn on_stdout() -> Self {
        Self {
            out: Mutex::new(Box::new(io::stdout())),
            closed: Notify::new(),
        }
    }

    /// Waits until the output is closed, as by `| head`: also while there is nothing to print.
    pub(crate) async fn closed(&self) {
        tokio::select! {
            () = self.closed.notified() => {}
            () = output::closed() => {}
        }
    }

    pub(crate) fn print(&self, line: &str) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = writeln!(out, "{}", plain::line(line)).and_then(|()| out.flush());
        if printed.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.closed.notify_one();
        }
    }
}

impl Listener for Printer {
    fn transition(&self, transition: &Transition) {
        let key = transition.key.to_string();
        self.print(&transition_line(&key, transition));
    }

    fn capacity(&self, transition: &Transition<CapacityPhase>) {
        let (namespace, name) = (&transition.key.namespace, &transition.key.name);
        let key = format!("{namespace}/scap/{name}");
        self.print(&transition_line(&key, transition));
    }

    fn set(&self, at: Timestamp, key: &Key, note: &str) {
        let (at, namespace, name) = (instant(at), &key.namespace, &key.name);
        self.print(&format!("{at}  {namespace}/smset/{name}  {note}"));
    }

    fn step(&self, step: &StepTaken) {
        self.print(&step_line(step));
    }
}

fn transition_line<P: fmt::Display>(key: &str, transition: &Transition<P>) -> String {
    let mut line = format!("{}  {key}  ", instant(transition.at));
    if let Some(from) = &transition.from {
        let _ = write!(line, "{from} ");
    }
    let _ = write!(line, "-> {}", transition.to);
    if !transition.message.is_empty() {
        let _ = write!(line, "  {}", transition.message);
    }
    line
}

fn step_line(taken: &StepTaken) -> String {
    let StepTaken {
        at,
        key,
        step,
        object,
        refusal,
    } = taken;
    let (done, doing) = match step {
        Step::AddFinalizer => ("added the finalizer to", "adding the finalizer to"),
        Step::ClaimHost => ("claimed a host with", "claiming a host with"),
        Step::ReleaseHost => ("gave a host back with", "giving a host back with"),
        Step::CreateBootstrap
        | Step::CreateInfrastructure
        | Step::CreateMachine
        | Step::CreateOverride
        | Step::CreateAgentConfig => ("created", "creating"),
        Step::RelabelMachine | Step::UpdateMachine | Step::UpdateAgentConfig => {
            ("updated", "updating")
        }
        Step::ExcludeDrain => (
            "annotated exclude-node-draining on",
            "annotating exclude-node-draining on",
        ),
        Step::CordonNode => ("cordoned", "cordoning"),
        Step::TaintNode => ("tainted", "tainting"),
        Step::LabelNode => ("labelled", "labelling"),
        Step::RecordReclaim => ("recorded the reclaim on", "recording the reclaim on"),
        Step::DisableSchedule => {
            ("disabled the schedule of", "disabling the schedule of")
        }
        Step::RecordDisabled => (
            "annotated reclaim-disabled on",
            "annotating reclaim-disabled on",
        ),
        Step::ClearRequest => (
            "cleared the reclaim request on",
            "clearing the reclaim request on",
        ),
        Step::EvictPod => ("evicted", "evicting"),
        Step::UncordonNode => ("uncordoned", "uncordoning"),
        Step::EndOverride
        | Step::DeletePod
        | Step::DeleteAgentConfig
        | Step::DeleteMachine
        | Step::DeleteBootstrap
        | Step::DeleteInfrastructure => ("deleted", "deleting"),
        Step::RemoveFinalizer => {
            ("removed the finalizer of", "removing the finalizer of")
        }
    };
    let at = instant(*at);
    match refusal {
        None => format!("{at}  {key}    {done} {object}"),
        Some(why) => format!("{at}  {key}    {doing} {object} was refused: {why}"),
    }
}

/// An instant in UTC, in whole seconds: `2026-03-06T23:00:00Z`.
pub(crate) fn instant(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use fivespot_api::Phase;
    use fivespot_controller::Key;

    use super::*;

    #[test]
    fn a_refused_step_is_printed_with_the_reason() {
        let mut taken = StepTaken {
            at: "2026-03-06T23:00:00Z".parse().unwrap(),
            key: Key::new("default", "worker"),
            step: Step::EvictPod,
            object: "Pod/shop-1".to_owned(),
            refusal: None,
        };
        assert_eq!(
            step_line(&taken),
            "2026-03-06T23:00:00Z  default/worker    evicted Pod/shop-1"
        );
        taken.refusal = Some("the budget allows none".to_owned());
        assert_eq!(
            step_line(&taken),
            "2026-03-06T23:00:00Z  default/worker    evicting Pod/shop-1 was refused: \
             the budget allows none"
        );
    }

    #[test]
    fn a_transition_is_printed_on_one_line() {
        let mut transition = Transition {
            at: "2026-03-06T23:00:00.25Z".parse().unwrap(),
            key: Key::new("default", "worker"),
            from: Some(Phase::Active),
            to: Phase::ShuttingDown,
            message: "the window has closed".to_owned(),
        };
        assert_eq!(
            transition_line("default/worker", &transition),
            "2026-03-06T23:00:00Z  default/worker  Active -> ShuttingDown  the window has closed"
        );
        transition.from = None;
        transition.message.clear();
        assert_eq!(
            transition_line("default/worker", &transition),
            "2026-03-06T23:00:00Z  default/worker  -> ShuttingDown"
        );
    }
}

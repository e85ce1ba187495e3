//! Callbacks for what happens, as it happens.

use fivespot_api::Phase;
use fivespot_plan::Step;
use jiff::Timestamp;

use fivespot_runtime::Key;

/// A ScheduledMachine's phase changed, and the API server has accepted the status that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The instant of the reconcile that saw it.
    pub at: Timestamp,
    /// Whose phase it is.
    pub key: Key,
    /// The phase before; absent for a ScheduledMachine that had no status.
    pub from: Option<Phase>,
    /// The phase after.
    pub to: Phase,
    /// The status' sentence for people; may be empty.
    pub message: String,
}

/// A step of a plan was sent, and the API server has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTaken {
    /// The instant of the reconcile that took it.
    pub at: Timestamp,
    /// For which ScheduledMachine.
    pub key: Key,
    /// What it was for.
    pub step: Step,
    /// The object that it was about, as `Kind/name`.
    pub object: String,
    /// The server's message, if it refused.
    pub refusal: Option<String>,
}

/// Is called with each transition, in order, on the task that runs the controller.
///
/// Its methods must return quickly: the reconcile that reports waits for them.
pub trait Listener: Send + Sync {
    /// The phase changed.
    fn transition(&self, transition: &Transition);

    /// A step was taken, or refused. Does nothing unless overridden.
    fn step(&self, step: &StepTaken) {
        let _ = step;
    }

    /// A Kubernetes Event was sent about `key`. Does nothing unless overridden.
    fn event(&self, at: Timestamp, key: &Key, reason: &str, note: &str) {
        let _ = (at, key, reason, note);
    }
}

/// Ignores every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl Listener for NoListener {
    fn transition(&self, _: &Transition) {}
}

//! Callbacks for transitions, steps and events.

use fivespot_api::{CapacityPhase, Phase};
use fivespot_plan::Step;
use jiff::Timestamp;

use fivespot_runtime::Key;

/// The phase of a ScheduledMachine, or of a ScheduledCapacity, changed, and the API server has
/// accepted the new status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition<P = Phase> {
    /// The instant of the reconcile that observed it.
    pub at: Timestamp,
    /// The object.
    pub key: Key,
    /// The phase before; absent for an object that had no status.
    pub from: Option<P>,
    /// The phase after.
    pub to: P,
    /// The message of the status; may be empty.
    pub message: String,
}

/// A step of a plan was sent, and the API server has responded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTaken {
    /// The instant of the reconcile that sent it.
    pub at: Timestamp,
    /// The ScheduledMachine.
    pub key: Key,
    /// The step.
    pub step: Step,
    /// The object of the request, as `Kind/name`.
    pub object: String,
    /// The server's message, if it rejected the request.
    pub refusal: Option<String>,
}

/// Callbacks, called in order on the task that runs the controller.
///
/// The methods must return quickly: the reconcile waits for them.
pub trait Listener: Send + Sync {
    /// The phase changed.
    fn transition(&self, transition: &Transition);

    /// The phase of a ScheduledCapacity changed. Does nothing unless overridden.
    fn capacity(&self, transition: &Transition<CapacityPhase>) {
        let _ = transition;
    }

    /// The machines of a ScheduledMachineSet were created, changed or deleted, or could not be:
    /// `note` says so in a sentence. Does nothing unless overridden.
    fn set(&self, at: Timestamp, key: &Key, note: &str) {
        let _ = (at, key, note);
    }

    /// A step was sent, or rejected. Does nothing unless overridden.
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

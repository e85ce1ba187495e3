//! The outcome of one decision, before it becomes actions, a status and events.

use fivespot_api::Shutdown;
use fivespot_api::condition::Reason;
use jiff::Timestamp;

use crate::{Action, Event};

/// The outcome of one decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// What to send.
    pub(crate) actions: Vec<Action>,
    /// What becomes of the commitment to shut down.
    pub(crate) shutdown: Commitment,
    /// Instants at which to ask again.
    pub(crate) wakes: Vec<Timestamp>,
    /// Until when requests to the workload cluster may take.
    pub(crate) until: Option<Timestamp>,
    /// What the status reports.
    pub(crate) state: State,
    /// What is published besides the transitions.
    pub(crate) events: Vec<Event>,
    /// That the Machine is deleted now before its drain was finished, and why.
    pub(crate) undrained: Option<String>,
}

/// What becomes of the commitment to shut down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Commitment {
    /// It stays as it is stored.
    Keep,
    /// It ends.
    Clear,
    /// It is made, or made stricter.
    Make(Shutdown),
}

/// The state of the machine, for the status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// Nothing is touched, because this kind of object is paused.
    Paused(&'static str),
    /// What exists could not be read.
    NotObservable { reason: Reason, message: String },
    /// Nothing is there and nothing is to be done.
    Idle,
    /// Something is there and is left as it is.
    Unmanaged,
    /// Something prevents the machine from being made.
    Blocked { reason: Reason, message: String },
    /// On the way into service.
    Provisioning(String),
    /// In service.
    InService {
        node: String,
        has_pending_changes: bool,
    },
    /// There, but its Node is not ready.
    NodeNotReady { node: String },
    /// There, but an object that the Machine was made from is gone.
    InfrastructureMissing(String),
    /// On the way out.
    Terminating(String),
    /// On the way out, and nothing has moved for ten minutes.
    Stalled(String),
}

impl Outcome {
    /// Nothing to do but to report the state.
    pub(crate) fn of(state: State) -> Self {
        Self {
            actions: Vec::new(),
            shutdown: Commitment::Keep,
            wakes: Vec::new(),
            until: None,
            state,
            events: Vec::new(),
            undrained: None,
        }
    }

    /// The same with these actions.
    pub(crate) fn with(mut self, actions: Vec<Action>) -> Self {
        self.actions = actions;
        self
    }

    /// The same, giving up requests to the workload cluster at an instant, and asking again then.
    pub(crate) fn until(mut self, end: Timestamp) -> Self {
        self.until = Some(end);
        self.wake(end)
    }

    /// The same, asking again at an instant.
    pub(crate) fn wake(mut self, due: Timestamp) -> Self {
        self.wakes.push(due);
        self
    }
}

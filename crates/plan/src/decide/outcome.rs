//! The outcome of one decision, before it becomes actions, a status and events.

use fivespot_api::Shutdown;
use jiff::Timestamp;

use crate::why::Why;
use crate::{Action, Event};

/// The outcome of one decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// What to send.
    pub(crate) actions: Vec<Action>,
    /// The change of the shutdown record.
    pub(crate) shutdown: ShutdownChange,
    /// Instants at which to requeue.
    pub(crate) requeues: Vec<Timestamp>,
    /// The deadline of requests to the workload cluster.
    pub(crate) until: Option<Timestamp>,
    /// What the status reports.
    pub(crate) state: State,
    /// The host that the machine uses, which is recorded. Without one, a recorded host is given back
    /// once the objects are gone.
    pub(crate) host: Option<String>,
    /// Whether the machine needs a host, and none is offered.
    pub(crate) seeks_host: bool,
    /// Events to publish in addition to the transitions.
    pub(crate) events: Vec<Event>,
    /// Why the drain was not finished, if the Machine is deleted now without that.
    pub(crate) undrained: Option<String>,
}

/// A change of the shutdown record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShutdownChange {
    /// The record stays as it is stored.
    Keep,
    /// The record is removed.
    Clear,
    /// The record is written, or its deadline is shortened.
    Write(Shutdown),
}

/// The state of the machine, for the status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// Nothing is touched, because this kind of object is paused.
    Paused(&'static str),
    /// The existing objects could not be read.
    NotObservable(Why),
    /// No object exists and there is nothing to do.
    Idle,
    /// An object exists and is left as it is.
    Unmanaged,
    /// Something prevents the creation of the machine.
    Blocked(Why),
    /// Being provisioned.
    Provisioning(String),
    /// In service.
    InService {
        node: String,
        has_pending_changes: bool,
    },
    /// The Machine exists, but its Node is not ready.
    NodeNotReady { node: String },
    /// The Machine exists, but an object that it was created from is gone.
    InfrastructureMissing(String),
    /// Being shut down.
    Terminating(String),
    /// Being shut down, without progress for ten minutes.
    Stalled(String),
    /// Something would be done if the machine was not in audit mode.
    Audited(Omitted),
}

/// What is not done in audit mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omitted {
    /// The machine is not created.
    Creation,
    /// The objects that exist are not completed, or not replaced.
    Completion,
    /// The objects that exist are not removed.
    Removal,
}

impl State {
    /// Whether the objects are known and not paused, so that they may be changed.
    pub(crate) fn is_observed(&self) -> bool {
        !matches!(self, Self::Paused(_) | Self::NotObservable(_))
    }
}

impl Outcome {
    /// Only reports the state.
    pub(crate) fn of(state: State) -> Self {
        Self {
            actions: Vec::new(),
            shutdown: ShutdownChange::Keep,
            requeues: Vec::new(),
            until: None,
            state,
            host: None,
            seeks_host: false,
            events: Vec::new(),
            undrained: None,
        }
    }

    /// The same with these actions.
    pub(crate) fn with(mut self, actions: Vec<Action>) -> Self {
        self.actions = actions;
        self
    }

    /// The same, with this deadline for requests to the workload cluster, and a requeue at it.
    pub(crate) fn until(mut self, end: Timestamp) -> Self {
        self.until = Some(end);
        self.requeue_at(end)
    }

    /// The same, with a requeue at an instant.
    pub(crate) fn requeue_at(mut self, due: Timestamp) -> Self {
        self.requeues.push(due);
        self
    }
}

//! The in-memory state of one ScheduledMachine. All of it may be lost.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, ScheduledMachineStatus, Shutdown, ShutdownReason};
use fivespot_plan::Memory;
use jiff::Timestamp;

use crate::report::unpublished::Unpublished;
use fivespot_runtime::cache::Expectations;

/// The state kept between two reconciles.
#[derive(Debug, Default)]
pub(crate) struct ObjectState {
    /// The planner's own state.
    pub(crate) memory: Memory,
    /// The shutdown record, if the server drops it because its CustomResourceDefinition lacks the
    /// field: it counts as stored.
    pub(crate) dropped_shutdown: Option<Shutdown>,
    /// Our writes that the caches may not have seen.
    pub(crate) expectations: Expectations,
    /// Since when a reconcile has been deferred because something has not arrived.
    pub(crate) waiting_since: Option<Timestamp>,
    /// Whether the last live observation found a name taken by a provider object without our
    /// label, which no cache shows.
    pub(crate) has_name_conflict: bool,
    /// Whether the last reconcile created a machine that is not reported yet.
    pub(crate) has_created: bool,
    /// Events to publish with that report.
    pub(crate) unpublished: Vec<Unpublished>,
    /// Why the machine is terminated, if it is, according to the last plan.
    pub(crate) removal: Option<ShutdownReason>,
    /// The uid of the ScheduledMachine; empty before a cache has shown it.
    pub(crate) uid: String,
    /// What the last reconcile reported.
    pub(crate) reported: Option<ReportedState>,
}

/// The reported state of a ScheduledMachine, as far as metrics count it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportedState {
    pub(crate) phase: Phase,
    /// Why it is not ready, and since when. `None` if it is ready.
    pub(crate) unready: Option<Unready>,
}

/// The condition `Ready` if it is not True.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unready {
    pub(crate) reason: Box<str>,
    pub(crate) since: Timestamp,
}

impl ObjectState {
    /// Records a shutdown record that the server has dropped, or that it has not. Returns whether
    /// another one was dropped than before.
    pub(crate) fn note_dropped(&mut self, dropped: Option<Shutdown>) -> bool {
        let is_new = dropped.is_some() && self.dropped_shutdown != dropped;
        self.dropped_shutdown = dropped;
        is_new
    }
}

impl ReportedState {
    /// The state in a status. `None` if it has no phase.
    pub(crate) fn of(status: &ScheduledMachineStatus) -> Option<Self> {
        let ready = condition::find(&status.conditions, ConditionType::Ready);
        let unready = ready.filter(|it| it.status != "True").map(|it| Unready {
            reason: it.reason.as_str().into(),
            since: it.last_transition_time.0,
        });
        Some(Self {
            phase: status.phase?,
            unready,
        })
    }
}

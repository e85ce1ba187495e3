//! What one process remembers about one ScheduledMachine. All of it may be lost.

use fivespot_api::{Phase, ShutdownReason};
use fivespot_plan::Memory;
use jiff::Timestamp;

use crate::report::Unpublished;
use fivespot_runtime::cache::Expectations;

/// What is remembered between two reconciles.
#[derive(Debug, Default)]
pub(crate) struct ObjectState {
    /// The planner's own notes.
    pub(crate) memory: Memory,
    /// Our writes that the caches may not have seen.
    pub(crate) expectations: Expectations,
    /// Since when a reconcile has been put off because something has not arrived.
    pub(crate) waiting_since: Option<Timestamp>,
    /// Whether the last live look found one of the names taken by others, whose objects no cache
    /// shows; none before the first.
    pub(crate) has_name_conflict: Option<bool>,
    /// Whether the last reconcile created a machine, of which nothing is reported yet.
    pub(crate) has_created: bool,
    /// Events to be published with that report.
    pub(crate) unpublished: Vec<Unpublished>,
    /// Why the machine leaves, if it does, by the last plan.
    pub(crate) removal: Option<ShutdownReason>,
    /// The uid of the ScheduledMachine; empty before a cache has shown it.
    pub(crate) uid: String,
    /// The phase in which the last reconcile left it.
    pub(crate) phase: Option<Phase>,
}

//! Events that are published later than they happen.

use fivespot_plan::Event;
use jiff::Timestamp;

/// An event to publish.
#[derive(Clone, Debug)]
pub(crate) struct Unpublished {
    /// When it happened.
    pub(super) at: Timestamp,
    /// The uid of the ScheduledMachine that it regards.
    pub(super) uid: String,
    /// Its position among the events of the same instant.
    pub(super) place: i128,
    pub(super) event: Event,
}

impl Unpublished {
    /// The events of a plan about the ScheduledMachine of that uid, which was made at an instant.
    pub(crate) fn of(
        uid: String,
        at: Timestamp,
        events: Vec<Event>,
    ) -> impl Iterator<Item = Self> {
        (0..).zip(events).map(move |(place, event)| Self {
            at,
            uid: uid.clone(),
            place,
            event,
        })
    }
}

//! How many machines of a class begin and leave in a minute, and how many stay.

use super::ScheduledMachineClassSpec;
use crate::scheduled_machine::EndPolicy;

/// The highest rate, of beginnings and of shutdowns.
pub(super) const MAX_RATE: u32 = 10_000;

/// How many machines stay at most.
pub(super) const MAX_ACTIVE: u32 = 100_000;

/// The rates of a class, as they are applied: to all its machines, in all namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RatesOfClass {
    /// How many machines may begin within a minute.
    pub starts: Option<u32>,
    /// How many shutdowns by schedule may begin within a minute.
    pub stops: Option<u32>,
    /// How many machines shutdowns by schedule leave active.
    pub minimum_active: u32,
}

impl RatesOfClass {
    /// Under [`EndPolicy::CompleteByWindowEnd`] no shutdown is held: a machine that must be gone by the
    /// end of its window is.
    pub fn of(class: &ScheduledMachineClassSpec) -> Self {
        let holds_stops = class.shutdown.end_policy != EndPolicy::CompleteByWindowEnd;
        Self {
            starts: class.starts_per_minute,
            stops: class.stops_per_minute.filter(|_| holds_stops),
            minimum_active: class.minimum_active.filter(|_| holds_stops).unwrap_or(0),
        }
    }

    /// Whether a shutdown by schedule may have to wait.
    pub fn holds_stops(&self) -> bool {
        self.stops.is_some() || self.minimum_active > 0
    }

    /// Whether a machine may have to wait, so that the machines of the class have to know of each
    /// other.
    pub fn holds_anything(&self) -> bool {
        self.starts.is_some() || self.holds_stops()
    }
}

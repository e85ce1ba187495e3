//! When a machine is wanted and needed. The hours of the spec are evaluated by the schedule
//! crate; an override, a lead time and an early end are evaluated here independently.

use fivespot_api::{EndPolicy, ScheduledMachine};
use fivespot_plan::{ReclaimStop, ScheduleInputs};
use fivespot_schedule as schedule;
use jiff::{SignedDuration, Timestamp};

use super::server::minutes;
use super::state::instant;

/// How finely a span of time is inspected.
const STEP: SignedDuration = SignedDuration::from_mins(15);

/// The mode of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    Run,
    Stop,
    Hold,
}

/// The override, of which there is at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Override {
    pub(crate) mode: Mode,
    /// The instant at which it ends.
    pub(crate) end: u8,
    /// The instant at which the reclaim began that has created it; `None` if a user has.
    pub(crate) reclaimed: Option<u8>,
}

impl Override {
    /// Its uid: each reclaim has one of its own.
    pub(crate) fn uid(self) -> String {
        format!("override-{}", self.reclaimed.unwrap_or_default())
    }

    /// The inputs for the planner.
    pub(crate) fn inputs(overriding: Option<Self>) -> ScheduleInputs {
        let overrides = overriding.iter().map(|of| schedule::Override {
            name: "extra".to_owned(),
            mode: match of.mode {
                Mode::Run => schedule::OverrideMode::Run,
                Mode::Stop => schedule::OverrideMode::Stop,
                Mode::Hold => schedule::OverrideMode::Hold,
            },
            start: None,
            end: instant(of.end),
            created: None,
        });
        let stops = overriding.iter().filter_map(|of| {
            Some(ReclaimStop {
                name: "extra".to_owned(),
                uid: of.uid(),
                begun: instant(of.reclaimed?),
            })
        });
        ScheduleInputs {
            overrides: overrides.collect(),
            reclaim_stops: stops.collect(),
            ..ScheduleInputs::default()
        }
    }
}

/// A schedule at an instant.
#[derive(Clone, Copy)]
pub(crate) struct ScheduleAt<'a> {
    pub(crate) sm: &'a ScheduledMachine,
    pub(crate) overriding: Option<Override>,
    pub(crate) now: Timestamp,
}

impl ScheduleAt<'_> {
    /// The mode of the override, while it is in force.
    pub(crate) fn mode(self) -> Option<Mode> {
        let in_force = self.overriding.filter(|of| self.now < instant(of.end));
        in_force.map(|of| of.mode)
    }

    /// Whether the override holds the machine, and nothing of higher precedence decides.
    pub(crate) fn is_held(self) -> bool {
        self.mode() == Some(Mode::Hold)
            && self.sm.spec.schedule.enabled
            && self.hours().is_some()
            && !self.sm.spec.kill_switch
            && self.sm.metadata.deletion_timestamp.is_none()
    }

    /// Whether the machine is wanted.
    pub(crate) fn is_open(self) -> bool {
        let Some(hours) = self.hours() else {
            return false;
        };
        match self.mode() {
            Some(Mode::Run) => true,
            Some(Mode::Stop) => false,
            Some(Mode::Hold) | None => hours.at(self.now).is_open(),
        }
    }

    /// Whether the machine is needed: from its lead time before a window until the shutdown time
    /// before its end. A window that is not longer than the shutdown time needs none.
    pub(crate) fn is_needed(self) -> bool {
        if self.is_open() {
            return !self.closes_within(self.early_end());
        }
        let lead = minutes(&self.sm.spec.provisioning.lead_time);
        let mut passed = SignedDuration::ZERO;
        while passed < lead {
            let was_open = self.later(passed).is_open();
            passed = (passed + STEP).min(lead);
            let opening = self.later(passed);
            if !was_open && opening.is_open() && !opening.closes_within(self.early_end())
            {
                return true;
            }
        }
        false
    }

    /// Whether the end policy is CompleteByWindowEnd.
    pub(crate) fn completes_by_window_end(self) -> bool {
        self.sm.spec.shutdown.end_policy == EndPolicy::CompleteByWindowEnd
    }

    /// When the window that is open by the hours of the spec ends; `None` under an override.
    pub(crate) fn window_end(self) -> Option<Timestamp> {
        let hours = self.hours().filter(|_| self.mode().is_none())?;
        let window = hours.at(self.now);
        window.is_open().then(|| window.until()).flatten()
    }

    fn early_end(self) -> SignedDuration {
        if self.completes_by_window_end() {
            minutes(&self.sm.spec.graceful_shutdown_timeout)
        } else {
            SignedDuration::ZERO
        }
    }

    /// Whether the window closes within this time: it may be open again at the end of it.
    fn closes_within(self, time: SignedDuration) -> bool {
        let mut passed = STEP.min(time);
        while self.later(passed).is_open() {
            if passed == time {
                return false;
            }
            passed = (passed + STEP).min(time);
        }
        true
    }

    fn later(self, by: SignedDuration) -> Self {
        let now = self.now.checked_add(by).unwrap_or(Timestamp::MAX);
        Self { now, ..self }
    }

    fn hours(self) -> Option<schedule::Schedule> {
        self.sm.spec.schedule.schedule().ok()
    }
}

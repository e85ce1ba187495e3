//! When a machine is needed, as far as a forecast reads its schedule.

use fivespot_api::{EndPolicy, Enforcement};
use fivespot_plan::limits::Limit;
use fivespot_plan::{Delayed, delay_of};
use fivespot_schedule::{Duration, OverrideMode, Schedule};
use jiff::{SignedDuration, Timestamp};

use crate::{FleetMachine, ForecastSpan, TooManyOpenings};

/// A time in which a machine is needed, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// When its window opens: the lead time after the start.
    pub(super) opens: i64,
    /// When it is created, as far as the limits of its class allow it.
    pub(super) start: i64,
    /// When it is needed no longer; the greatest number if it always is.
    pub(super) needed_until: i64,
    /// When it starts to leave: then, or at the end of a Hold.
    pub(super) end: i64,
    /// The limit of its class that has moved the start.
    pub(super) limit: Option<Limit>,
    /// Whether it began before the forecast, or later than its window because of a Hold, so that
    /// it is not known when it opened.
    is_cut: bool,
}

/// When a machine is needed, and what matters about it.
#[derive(Debug)]
pub(super) struct Needs<'m> {
    /// In order, and apart.
    pub(super) openings: Vec<Opening>,
    /// The time before a window opens in which it is created.
    pub(super) lead_time: i64,
    /// How long the last provisioning took, if that was measured.
    pub(super) took: Option<i64>,
    /// How long after it starts to leave its host is free.
    pub(super) leaves_within: i64,
    /// It is not created for less than this.
    minimum_run: i64,
    /// The host that it has at the beginning.
    pub(super) host: Option<&'m str>,
    /// Whether its Machine exists at the beginning.
    pub(super) exists: bool,
    /// When it last began, in seconds.
    pub(super) started: Option<i64>,
}

impl Opening {
    /// Whether the limits of the class never allow it.
    pub(super) fn is_refused(&self) -> bool {
        self.start >= self.needed_until
    }

    /// Whether it is reported.
    pub(super) fn is_within(&self, span: ForecastSpan) -> bool {
        let (from, to) = (span.from.as_second(), span.to.as_second());
        !self.is_cut && from <= self.opens && self.opens < to
    }
}

impl<'m> Needs<'m> {
    /// Reads what a machine needs. `left` is how many openings there may still be.
    pub(super) fn of(
        machine: &FleetMachine<'m>,
        span: ForecastSpan,
        left: &mut usize,
    ) -> Result<Self, TooManyOpenings> {
        let object = machine.object;
        let spec = &object.spec;
        let status = object.status.as_ref();
        let is_audited = spec.enforcement == Enforcement::Audit;
        let measured = status.and_then(|status| {
            let last = status.last_provisioning.as_ref()?;
            let took = last.ready_time?.duration_since(last.start_time);
            Some(took.as_secs())
        });
        let mut needs = Self {
            openings: Vec::new(),
            lead_time: seconds(&spec.provisioning.lead_time),
            took: measured,
            leaves_within: seconds(&spec.graceful_shutdown_timeout),
            minimum_run: seconds(&spec.provisioning.minimum_run),
            host: status
                .and_then(|status| status.host.as_deref())
                .filter(|_| !is_audited),
            exists: status.is_some_and(|status| status.machine_ref.is_some()),
            started: status
                .and_then(|status| status.last_scheduled_time)
                .map(Timestamp::as_second),
        };
        let is_leaving = object.metadata.deletion_timestamp.is_some();
        let schedule = machine.schedule.filter(|_| !is_audited && !is_leaving);
        if let Some(schedule) = schedule {
            let delayed = Delayed {
                schedule,
                delay: delay_of(object).unwrap_or(SignedDuration::ZERO),
                keeps_end: spec.shutdown.end_policy == EndPolicy::CompleteByWindowEnd,
                exists: needs.exists || needs.host.is_some(),
            };
            needs.read(&delayed, span, left)?;
        }
        Ok(needs)
    }

    /// The first instant at which it is too late to create the machine.
    pub(super) fn too_late(&self, opening: &Opening) -> i64 {
        // What is left is enough up to the second before.
        let enough = (self.minimum_run - 1).max(0);
        opening.needed_until.saturating_sub(enough)
    }

    fn read(
        &mut self,
        delayed: &Delayed<'_>,
        span: ForecastSpan,
        left: &mut usize,
    ) -> Result<(), TooManyOpenings> {
        let schedule = delayed.schedule;
        let since = span.since.as_second();
        // One whose window opens within the time was created before.
        let begin = since.saturating_sub(self.lead_time).saturating_sub(1);
        let begin = Timestamp::from_second(begin).unwrap_or(Timestamp::MIN);
        for needed in delayed.needed_spans(begin, span.to) {
            *left = left.checked_sub(1).ok_or(TooManyOpenings)?;
            let start = needed.start.as_second();
            let created = after_hold(schedule, start);
            let needed_until = needed.end.map_or(i64::MAX, Timestamp::as_second);
            let end = after_hold(schedule, needed_until);
            let opening = Opening {
                opens: start.saturating_add(self.lead_time),
                start: created.max(since),
                needed_until,
                end,
                limit: None,
                is_cut: needed.start == begin || created > start,
            };
            let left = needed_until.saturating_sub(opening.start);
            match self.openings.last_mut() {
                // A Hold was longer than the time between them.
                Some(last) if last.end >= opening.start => {
                    last.needed_until = needed_until;
                    last.end = last.end.max(end);
                }
                _ if left > 0 && left >= self.minimum_run => self.openings.push(opening),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The first instant from `at` on at which no Hold is in force.
fn after_hold(schedule: &Schedule, mut at: i64) -> i64 {
    loop {
        let Ok(instant) = Timestamp::from_second(at) else {
            return at;
        };
        let hold = schedule.override_at(instant);
        let hold = hold.filter(|it| it.mode == OverrideMode::Hold);
        let Some(end) = hold.map(|it| it.end) else {
            return at;
        };
        // It is in force, so its end is later.
        at = end.as_second().max(at.saturating_add(1));
    }
}

/// A length of time as the spec has it; none if it cannot be parsed.
fn seconds(text: &str) -> i64 {
    let length: Duration = text.parse().unwrap_or(Duration::ZERO);
    length.as_secs()
}

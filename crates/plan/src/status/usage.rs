//! The account in `status.usage`: seconds per month by what the machine was used for.
//!
//! A change of the machine's state or of the schedule's result adds the span since the last one,
//! with the state of that span, split at the ends of months in UTC. The state follows from the
//! objects and the Node, whatever the phase is. No decision depends on the account. An idle machine
//! costs no write: readers add the open span with [`usage_until`]. Whether the machine was wanted
//! follows from what is recorded at the beginning of the span, because an override may be deleted,
//! and the schedule edited, long before the next write.
//!
//! Other clients may write any account into the status: sums stay within the range of their type,
//! and the time before the oldest month that is kept is not evaluated.

use std::ops::Range;

use fivespot_api::condition::{self, ConditionType, Reason};
use fivespot_api::status::MAX_MONTHS;
use fivespot_api::time::whole_seconds;
use fivespot_api::{
    AccountedState, OverrideMode, ScheduledMachineStatus, ShutdownReason, Usage,
    UsageMonth,
};
use fivespot_capi::Machine;
use fivespot_schedule::{Override, Schedule, Steps};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::decide::case::Case;
use crate::decide::machine;

/// Brings the account up to now, if the state or the schedule's result has changed.
pub(crate) fn account(case: &Case<'_>, after: &mut ScheduledMachineStatus) {
    let before = &case.subject.status;
    let usage = before.usage.clone().unwrap_or_default();
    let state = state_of(case, usage.accounted_state);
    let is_reclaim = begins_reclaim(before, after);
    let is_same = usage.accounted_time.is_some()
        && !is_reclaim
        && usage.accounted_state == Some(state)
        && before.in_schedule == after.in_schedule
        && before.in_force == after.in_force
        && before.observed_generation == after.observed_generation;
    if is_same {
        return;
    }
    let now = whole_seconds(case.now);
    let schedule = case.desired.schedule.as_ref().ok();
    let schedule = schedule.filter(|_| case.desired.is_enabled);
    case.steps.keep(0);
    let mut usage = usage_within(before, schedule, now, case.steps);
    if is_reclaim {
        let reclaims = &mut month_of(&mut usage, now).reclaims;
        *reclaims = reclaims.saturating_add(1);
    }
    usage.start_time = usage.start_time.or(Some(now));
    usage.accounted_state = Some(state);
    let surplus = usage.months.len().saturating_sub(MAX_MONTHS);
    usage.months.drain(..surplus);
    after.usage = Some(usage);
}

/// Whether `after` is the first status with the record of a reclaim. The phase does not show that:
/// it also changes when a step fails or the machine is paused.
pub(crate) fn begins_reclaim(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> bool {
    let reclaimed = |status: &ScheduledMachineStatus| {
        let shutdown = status.shutdown.as_ref();
        shutdown
            .filter(|of| of.reason == ShutdownReason::Reclaim)
            .map(|of| of.machine_uid.clone())
    };
    let is_of = reclaimed(after);
    is_of.is_some() && is_of != reclaimed(before)
}

/// The account of a status, with the time from its `accountedTime` to `until` added to the state
/// that the machine was in.
///
/// Whether the machine was wanted follows `inSchedule` up to the first change of the schedule's
/// result, and the schedule's result after that, with the override in the status. Changes since
/// then, such as an override that was deleted or created, have no effect on the time before. The
/// time of the kill switch and of a disabled schedule is not wanted, nor is that in which an override
/// of mode Hold keeps a machine from being created. `schedule` is `None` if it is disabled or invalid.
pub fn usage_until(
    status: &ScheduledMachineStatus,
    schedule: Option<&Schedule>,
    until: Timestamp,
) -> Usage {
    usage_within(status, schedule, until, &Steps::unlimited())
}

/// As [`usage_until`]. Time that the steps do not suffice for counts as not wanted: after an
/// outage of weeks, of a schedule of minutes.
fn usage_within(
    status: &ScheduledMachineStatus,
    schedule: Option<&Schedule>,
    until: Timestamp,
    steps: &Steps,
) -> Usage {
    let mut usage = status.usage.clone().unwrap_or_default();
    let since = usage
        .accounted_time
        .map(|since| since.max(oldest_kept(until)))
        .filter(|since| *since < until);
    if let (Some(since), Some(spent_as)) = (since, usage.accounted_state) {
        for (since, until, wanted) in wanted_spans(status, schedule, since..until, steps)
        {
            let span = Span {
                spent_as,
                wanted,
                since,
                until,
            };
            span.add_to(&mut usage);
        }
    }
    // A clock that was ahead has already accounted for this time.
    usage.accounted_time = usage.accounted_time.max(Some(until));
    usage
}

/// The spans in which the machine was wanted or not, from the time of the status on.
fn wanted_spans(
    status: &ScheduledMachineStatus,
    schedule: Option<&Schedule>,
    time: Range<Timestamp>,
    steps: &Steps,
) -> Vec<(Timestamp, Timestamp, bool)> {
    let in_force = status.in_force.as_ref().map(|it| Override {
        name: it.name.clone(),
        mode: it.mode.into(),
        start: None,
        end: it.end_time,
        created: None,
    });
    let schedule = schedule.cloned().map(Schedule::looking_back);
    let schedule = schedule.map(|schedule| match in_force {
        Some(in_force) => schedule.and_override(in_force),
        None => schedule,
    });
    let parts = schedule
        .iter()
        .flat_map(|schedule| schedule.parts_within(time.start, time.end, steps));
    let mut spans: Vec<(Timestamp, Timestamp, bool)> = Vec::new();
    for part in parts {
        match spans.last_mut() {
            Some((_, until, wanted)) if *wanted == part.wanted => *until = part.until,
            _ => spans.push((part.since, part.until, part.wanted)),
        }
    }
    let known_until = spans.last().map_or(time.start, |(_, until, _)| *until);
    if known_until < time.end {
        spans.push((known_until, time.end, false));
    }
    if let Some((_, _, wanted)) = spans.first_mut() {
        *wanted = status.in_schedule;
    }
    let unwanted_until = unwanted_until(status);
    spans
        .into_iter()
        .flat_map(|(since, until, wanted)| {
            let split = unwanted_until.clamp(since, until);
            [(since, split, false), (split, until, wanted)]
        })
        .collect()
}

/// Until when the machine is not wanted, whatever the schedule's result is.
fn unwanted_until(status: &ScheduledMachineStatus) -> Timestamp {
    let scheduled = condition::find(&status.conditions, ConditionType::Scheduled);
    // The schedule may have been enabled, or edited, since.
    let never_wanted = [
        Reason::KillSwitchActivated,
        Reason::ScheduleDisabled,
        Reason::EmergencyReclaimDisabledSchedule,
    ];
    let is = |reason: &Reason| scheduled.is_some_and(|of| of.reason == reason.as_str());
    if never_wanted.iter().any(is) {
        return Timestamp::MAX;
    }
    let state = status.usage.as_ref().and_then(|of| of.accounted_state);
    let is_none = state == Some(AccountedState::None);
    let hold = status.in_force.as_ref().filter(|of| {
        let is_hold = of.mode == OverrideMode::Hold;
        is_hold && is_none
    });
    hold.map_or(Timestamp::MIN, |of| of.end_time)
}

/// The state of the machine. As long as it cannot be observed, it counts as before.
fn state_of(case: &Case<'_>, before: Option<AccountedState>) -> AccountedState {
    let machine = case.owned.our_machine();
    let unknown = case.unobserved().or_else(|| case.owned.unknown());
    let is_active = |machine: &Machine| {
        // A Machine that is being deleted may report a Node as ready that is gone.
        let is_only_reported =
            machine.meta.is_deleting && machine::node(case, machine).is_none();
        machine::is_node_ready(case, machine) == Some(true)
            && !(is_only_reported && before == Some(AccountedState::Provisioning))
    };
    match machine {
        Some(machine) if is_active(machine) => AccountedState::Active,
        None if unknown.is_some() => before.unwrap_or(AccountedState::None),
        None if case.owned.providers().is_empty() => {
            if case.desired.is_audited {
                AccountedState::Audited
            } else {
                AccountedState::None
            }
        }
        Some(_) | None => AccountedState::Provisioning,
    }
}

/// A span of time in one state.
#[derive(Clone, Copy)]
struct Span {
    spent_as: AccountedState,
    wanted: bool,
    since: Timestamp,
    until: Timestamp,
}

impl Span {
    fn add_to(self, usage: &mut Usage) {
        let mut since = self.since;
        while since < self.until {
            let until = end_of_month(since).min(self.until);
            let seconds = until.duration_since(since).as_secs();
            self.add_to_month(month_of(usage, since), seconds);
            since = until;
        }
    }

    fn add_to_month(self, month: &mut UsageMonth, seconds: i64) {
        let wanted = if self.wanted { seconds } else { 0 };
        let add = |sum: &mut i64, seconds| *sum = sum.saturating_add(seconds);
        add(&mut month.wanted_seconds, wanted);
        match self.spent_as {
            AccountedState::Active => add(&mut month.active_seconds, seconds),
            AccountedState::Provisioning => {
                add(&mut month.provisioning_seconds, seconds);
                add(&mut month.late_seconds, wanted);
            }
            AccountedState::None => add(&mut month.late_seconds, wanted),
            AccountedState::Audited => add(&mut month.audited_seconds, wanted),
        }
    }
}

/// The entry of the month of an instant; created if it is missing.
fn month_of(usage: &mut Usage, at: Timestamp) -> &mut UsageMonth {
    let date = at.to_zoned(TimeZone::UTC).date();
    let name = format!("{:04}-{:02}", date.year(), date.month());
    let place = usage.months.partition_point(|month| month.month < name);
    if usage
        .months
        .get(place)
        .is_none_or(|month| month.month != name)
    {
        let month = UsageMonth {
            month: name,
            ..UsageMonth::default()
        };
        usage.months.insert(place, month);
    }
    &mut usage.months[place]
}

/// The first instant of the oldest month that an account up to `until` contains.
fn oldest_kept(until: Timestamp) -> Timestamp {
    let first = until.to_zoned(TimeZone::UTC).date().first_of_month();
    let before = i64::try_from(MAX_MONTHS).map_or(0, |months| months - 1);
    let oldest = first.checked_sub(before.months()).ok();
    let oldest = oldest.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    oldest.map_or(Timestamp::MIN, |oldest| oldest.timestamp())
}

/// The first instant of the next month, in UTC.
fn end_of_month(at: Timestamp) -> Timestamp {
    let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
    let next = first.checked_add(1.month()).ok();
    let next = next.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    next.map_or(Timestamp::MAX, |next| next.timestamp())
}

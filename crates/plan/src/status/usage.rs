//! The account in `status.usage`: seconds by month of what the machine was used for.
//!
//! A status write that changes the phase adds the span since the last one, in the state of that
//! span, split at the ends of months in UTC. Nothing is decided from it.

use fivespot_api::status::MOST_MONTHS;
use fivespot_api::{AccountedState, Phase, ScheduledMachineStatus, Usage, UsageMonth};
use fivespot_schedule::Schedule;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::decide::case::Case;
use crate::status::whole_seconds;

/// How many parts of a schedule are looked at in one month: more than any schedule has.
const MAX_PARTS: usize = 100_000;

/// Brings the account up to now, if the phase changes with `after`.
pub(crate) fn account(case: &Case<'_>, after: &mut ScheduledMachineStatus) {
    let before = &case.subject.status;
    let now = whole_seconds(case.now);
    let state = after.phase.map_or(AccountedState::None, state_of);
    let mut usage = before.usage.clone().unwrap_or_default();
    if usage.accounted_time.is_some() && before.phase == after.phase {
        return;
    }
    let since = usage.accounted_time.filter(|since| *since < now);
    if let (Some(since), Some(spent_as)) = (since, usage.accounted_state) {
        let schedule = case.desired.schedule.as_ref().ok();
        let schedule = schedule.filter(|_| case.desired.is_enabled);
        let span = Span {
            schedule,
            spent_as,
            since,
            until: now,
        };
        span.add_to(&mut usage);
    }
    let is_reclaim = after.phase == Some(Phase::EmergencyRemove);
    if is_reclaim && before.phase != after.phase {
        month_of(&mut usage, now).reclaims += 1;
    }
    // A clock that was ahead has accounted for this time already.
    usage.accounted_time = usage.accounted_time.max(Some(now));
    usage.accounted_state = Some(state);
    let surplus = usage.months.len().saturating_sub(MOST_MONTHS);
    usage.months.drain(..surplus);
    after.usage = Some(usage);
}

/// What a phase is accounted as.
fn state_of(phase: Phase) -> AccountedState {
    match phase {
        Phase::Active => AccountedState::Active,
        Phase::Pending => AccountedState::Provisioning,
        Phase::ShuttingDown
        | Phase::Inactive
        | Phase::Disabled
        | Phase::Terminated
        | Phase::EmergencyRemove
        | Phase::Error => AccountedState::None,
    }
}

/// A span of time in one state.
#[derive(Clone, Copy)]
struct Span<'a> {
    /// What was wanted in it; none if nothing was.
    schedule: Option<&'a Schedule>,
    spent_as: AccountedState,
    since: Timestamp,
    until: Timestamp,
}

impl Span<'_> {
    fn add_to(self, usage: &mut Usage) {
        let mut since = self.since;
        while since < self.until {
            let until = end_of_month(since).min(self.until);
            let part = Self {
                since,
                until,
                ..self
            };
            part.add_to_month(month_of(usage, since));
            since = until;
        }
    }

    fn add_to_month(self, month: &mut UsageMonth) {
        let seconds = self.until.duration_since(self.since).as_secs();
        let wanted = self.wanted_seconds();
        month.wanted_seconds += wanted;
        match self.spent_as {
            AccountedState::Active => month.active_seconds += seconds,
            AccountedState::Provisioning => {
                month.provisioning_seconds += seconds;
                month.late_seconds += wanted;
            }
            AccountedState::None => month.late_seconds += wanted,
        }
    }

    fn wanted_seconds(self) -> i64 {
        let Some(schedule) = self.schedule else {
            return 0;
        };
        let parts = schedule.parts(self.since, self.until).take(MAX_PARTS);
        let wanted = parts.filter(|part| part.wanted);
        wanted
            .map(|part| part.until.duration_since(part.since).as_secs())
            .sum()
    }
}

/// The entry of the month that an instant is in; made if it is not there.
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

/// The first instant of the next month, in UTC.
fn end_of_month(at: Timestamp) -> Timestamp {
    let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
    let next = first.checked_add(1.month()).ok();
    let next = next.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    next.map_or(Timestamp::MAX, |next| next.timestamp())
}

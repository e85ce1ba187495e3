//! Warnings about windows, exceptions and calendars.

use fivespot_schedule::{Duration, Schedule, Steps};
use jiff::{SignedDuration, Timestamp};

use super::{
    A_YEAR, CALENDAR_OVER, EMPTY_SPAN, EXCEPTION_OVER, LintWarning, REDUNDANT_WINDOW,
    SHORT_FOR_PROVISIONING, warning,
};
use crate::{EndPolicy, ScheduleCalendar, ScheduleSpec, ScheduledMachine};

pub(super) fn redundant_windows(
    spec: &ScheduleSpec,
    now: Timestamp,
    steps: &Steps,
) -> Vec<LintWarning> {
    let windows = spec.windows.as_deref().unwrap_or_default();
    let without = |place: usize| {
        let mut fewer = windows.to_vec();
        fewer.remove(place);
        let spec = ScheduleSpec {
            windows: Some(fewer),
            ..spec.clone()
        };
        spec.schedule().ok()
    };
    let Ok(all) = spec.schedule() else {
        return Vec::new();
    };
    let places =
        (0..windows.len()).take_while(|_| windows.len() > 1 && !steps.are_spent());
    let redundant = places.filter(|place| {
        without(*place).is_some_and(|fewer| is_same(&all, &fewer, now, steps))
    });
    redundant
        .filter_map(|place| {
            let field = format!("spec.schedule.windows[{place}]");
            let name = &windows.get(place)?.name;
            let message = format!("window '{name}' lies within the other windows");
            Some(warning(REDUNDANT_WINDOW, field, message))
        })
        .collect()
}

/// Whether two schedules have the same transitions for a year. If the steps do not suffice, they
/// count as different.
fn is_same(one: &Schedule, other: &Schedule, now: Timestamp, steps: &Steps) -> bool {
    let Ok(end) = now.checked_add(A_YEAR) else {
        return false;
    };
    let [one, other] = [one, other].map(|it| {
        let parts = it.parts_within(now, end, steps);
        parts.map(|part| (part.wanted, part.until))
    });
    one.eq(other) && !steps.are_spent()
}

pub(super) fn past_exceptions(
    spec: &ScheduleSpec,
    schedule: &Schedule,
    now: Timestamp,
) -> Vec<LintWarning> {
    let today = schedule.time_zone().to_datetime(now).date().to_string();
    let exceptions = spec.exceptions.iter().flatten().enumerate();
    exceptions
        .filter_map(|(place, exception)| {
            let last = exception.end_date.as_ref()?;
            (*last < today).then(|| {
                let field = format!("spec.schedule.exceptions[{place}]");
                let message = format!("exception '{}' ended on {last}", exception.name);
                warning(EXCEPTION_OVER, field, message)
            })
        })
        .collect()
}

/// The warnings about the shortest window, with its edges.
pub(super) fn short_window(
    object: &ScheduledMachine,
    shortest: Option<(Timestamp, Timestamp)>,
) -> Option<LintWarning> {
    let spec = &object.spec;
    let length = |text: &str| text.parse::<Duration>().ok().map(SignedDuration::from);
    let grace = length(&spec.graceful_shutdown_timeout)?;
    let lead_time = length(&spec.provisioning.lead_time)?;
    let (opens, closes) = shortest?;
    let window = closes.duration_since(opens);
    let completes = spec.shutdown.end_policy == EndPolicy::CompleteByWindowEnd;
    if completes && window <= grace {
        let message = format!(
            "the window from {opens} to {closes} is not longer than gracefulShutdownTimeout ({}): \
             no machine is created for it",
            spec.graceful_shutdown_timeout
        );
        return Some(warning(EMPTY_SPAN, "spec.shutdown.endPolicy", message));
    }
    let leaving = grace.min(length(&spec.node_drain_timeout)?);
    let is_short = lead_time > SignedDuration::ZERO && window < lead_time + leaving;
    (is_short && window >= leaving).then(|| {
        let message = format!(
            "the window from {opens} to {closes} is shorter than provisioning (leadTime {}) and \
             shutdown together",
            spec.provisioning.lead_time
        );
        warning(SHORT_FOR_PROVISIONING, "spec.provisioning.leadTime", message)
    })
}

/// The warnings about a calendar, as of `now`: SL013. A local date is over only when it is over
/// in every time zone.
pub fn of_calendar(calendar: &ScheduleCalendar, now: Timestamp) -> Vec<LintWarning> {
    let yesterday = now
        .checked_sub(SignedDuration::from_hours(24))
        .unwrap_or(now);
    let today = jiff::tz::Offset::UTC.to_datetime(yesterday).date();
    let dates = calendar.spec.dates();
    let is_over = dates.first_from(today).is_none();
    let message = "no date of the calendar is in the future";
    let over = warning(CALENDAR_OVER, "spec.dates", message.to_owned());
    is_over.then_some(over).into_iter().collect()
}

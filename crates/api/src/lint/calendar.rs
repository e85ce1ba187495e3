//! The effect of the next year's clock changes on a schedule.

use fivespot_schedule::{Schedule, Steps};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::A_YEAR;
use crate::ScheduleSpec;

/// How far ahead windows are measured: longer than a month, so that each day of a month is
/// covered.
const SIX_WEEKS: SignedDuration = SignedDuration::from_hours(42 * 24);

/// The clock changes within a year that coincide with an edge of a window, as texts.
pub(super) fn clock_changes(
    spec: &ScheduleSpec,
    schedule: &Schedule,
    now: Timestamp,
    steps: &Steps,
) -> Vec<String> {
    let zone = schedule.time_zone();
    // The same spec in a zone without clock changes has the edges that the wall clock would
    // have.
    let steady = ScheduleSpec {
        timezone: "UTC".to_owned(),
        ..spec.clone()
    };
    let (Ok(steady), Ok(end)) = (steady.schedule(), now.checked_add(A_YEAR)) else {
        return Vec::new();
    };
    let changes = zone.following(now).map(|change| change.timestamp());
    changes
        .take_while(|at| *at < end)
        .filter_map(|at| change_text(spec, (zone, &steady), at, steps))
        .collect()
}

fn change_text(
    spec: &ScheduleSpec,
    (zone, steady): (&TimeZone, &Schedule),
    at: Timestamp,
    steps: &Steps,
) -> Option<String> {
    let second = SignedDuration::from_secs(1);
    let before = zone.to_offset(at.checked_sub(second).ok()?);
    let after = zone.to_offset(at);
    let wall = |offset: jiff::tz::Offset| {
        at.checked_add(SignedDuration::from_secs(offset.seconds().into()))
            .ok()
    };
    let (from, to) = (wall(before.min(after))?, wall(before.max(after))?);
    // A window that opens in the skipped or repeated time counts; one that closes at its start
    // does not.
    let before_it = from.checked_sub(second).ok()?;
    let mut edges = steady.transitions_within(before_it, to, steps);
    edges.find(|(edge, opens)| *opens || *edge > from)?;
    let (date, from, to) = (
        from.strftime("%Y-%m-%d"),
        from.strftime("%H:%M"),
        to.strftime("%H:%M"),
    );
    let name = zone.iana_name().unwrap_or("UTC");
    let form = (spec.cron.is_some(), spec.windows.is_some());
    let (does, comes) = match (before < after, form.0) {
        (true, _) if form.1 => (
            "skip",
            "windows that start or end in the skipped time do so at its end",
        ),
        (false, _) if form.1 => (
            "repeat",
            "windows start the first time and end the second time",
        ),
        (true, false) => ("skip", "skipped hours are never active"),
        (true, true) => (
            "skip",
            "cron expressions that match in the skipped time fire at its end",
        ),
        (false, false) => ("repeat", "repeated hours are active twice"),
        (false, true) => (
            "repeat",
            "cron expressions that match in the repeated time fire twice",
        ),
    };
    Some(format!(
        "on {date} the clocks in {name} {does} {from} to {to}, at the start or end of a window: \
         {comes}"
    ))
}

/// The shortest window that opens within the next six weeks, as far as the steps suffice, with its
/// edges.
pub(super) fn shortest_window(
    schedule: &Schedule,
    now: Timestamp,
    steps: &Steps,
) -> Option<(Timestamp, Timestamp)> {
    let end = now.checked_add(SIX_WEEKS).ok()?;
    let mut opened = None;
    let mut shortest: Option<(Timestamp, Timestamp)> = None;
    for (at, is_wanted) in schedule.transitions_within(now, end, steps) {
        match (is_wanted, opened.take()) {
            (true, _) => opened = Some(at),
            (false, Some(since)) => {
                let is_shorter = shortest.is_none_or(|(from, to)| {
                    at.duration_since(since) < to.duration_since(from)
                });
                if is_shorter {
                    shortest = Some((since, at));
                }
            }
            (false, None) => {}
        }
    }
    shortest
}

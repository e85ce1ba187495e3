//! Conversion of lists of days and hours to windows.

use fivespot_schedule::{Days, Hours, Schedule};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Change, is_scheduled_machine};
use crate::{ScheduleSpec, ScheduleWindow};

/// For how long both forms must have the same transitions.
const TEN_YEARS: SignedDuration = SignedDuration::from_hours(3_653 * 24);

/// The windows that open and close at the same instants as the lists of `spec`, from `now` on
/// for ten years.
///
/// # Errors
/// The schedule has another form or cannot be parsed. Or a window ends in a time that the
/// clocks repeat, where lists and windows differ.
pub fn to_windows(
    spec: &ScheduleSpec,
    now: Timestamp,
) -> Result<Vec<ScheduleWindow>, String> {
    if spec.cron.is_some() || spec.windows.is_some() {
        return Err(
            "the schedule does not consist of daysOfWeek and hoursOfDay".to_owned()
        );
    }
    let lists = spec.schedule().map_err(|error| error.to_string())?;
    let (days, hours) = union(spec).ok_or("the lists cannot be read")?;
    let windows = windows(days, hours);
    let rewritten = ScheduleSpec {
        days_of_week: Vec::new(),
        hours_of_day: Vec::new(),
        windows: Some(windows.clone()),
        ..spec.clone()
    };
    let rewritten = rewritten.schedule().map_err(|error| error.to_string())?;
    match first_difference(&lists, &rewritten, now) {
        None => Ok(windows),
        Some(at) => Err(format!(
            "a window would end at another time where the clocks repeat an hour, first at {at}"
        )),
    }
}

/// Rewrites the lists of a ScheduledMachine as windows and returns the changes. Other objects,
/// and a ScheduledMachine without lists, stay unchanged.
///
/// # Errors
/// As [`to_windows`]; the object stays unchanged.
pub fn lists_to_windows(
    object: &mut Value,
    now: Timestamp,
) -> Result<Vec<Change>, String> {
    if !is_scheduled_machine(object) {
        return Ok(Vec::new());
    }
    let Some(Value::Object(schedule)) = object.pointer_mut("/spec/schedule") else {
        return Ok(Vec::new());
    };
    let spec: ScheduleSpec = serde_json::from_value(Value::Object(schedule.clone()))
        .map_err(|error| error.to_string())?;
    if spec.days_of_week.is_empty() && spec.hours_of_day.is_empty() {
        return Ok(Vec::new());
    }
    let windows = to_windows(&spec, now)?;
    let windows = serde_json::to_value(windows).map_err(|error| error.to_string())?;
    let mut changes = Vec::new();
    for list in ["daysOfWeek", "hoursOfDay"] {
        if let Some(from) = schedule.remove(list) {
            changes.push(Change {
                field: format!("spec.schedule.{list}"),
                from,
                to: None,
                renamed: None,
            });
        }
    }
    schedule.insert("windows".to_owned(), windows.clone());
    changes.push(Change {
        field: "spec.schedule.windows".to_owned(),
        from: Value::Null,
        to: Some(windows),
        renamed: None,
    });
    Ok(changes)
}

fn union(spec: &ScheduleSpec) -> Option<(Days, Hours)> {
    let days = spec.days_of_week.iter().map(|days| days.parse::<Days>());
    let hours = spec.hours_of_day.iter().map(|hours| hours.parse::<Hours>());
    let days: Vec<Days> = days.collect::<Result<_, _>>().ok()?;
    let hours: Vec<Hours> = hours.collect::<Result<_, _>>().ok()?;
    let days = days.into_iter().reduce(|one, other| one | other)?;
    Some((days, hours.into_iter().reduce(|one, other| one | other)?))
}

/// A window for each run of hours within a day.
fn windows(days: Days, hours: Hours) -> Vec<ScheduleWindow> {
    let days = if days.is_every_day() {
        Vec::new()
    } else {
        vec![days.to_string()]
    };
    let mut windows = Vec::new();
    let mut start = None;
    for hour in 0..=24_u8 {
        match (hours.contains(hour), start) {
            (true, None) => start = Some(hour),
            (false, Some(first)) => {
                windows.push(ScheduleWindow {
                    name: format!("from-{first:02}-to-{:02}", hour % 24),
                    days: days.clone(),
                    start: format!("{first:02}:00"),
                    end: Some(format!("{:02}:00", hour % 24)),
                    duration: None,
                });
                start = None;
            }
            _ => {}
        }
    }
    windows
}

fn first_difference(
    one: &Schedule,
    other: &Schedule,
    now: Timestamp,
) -> Option<Timestamp> {
    if one.at(now).is_open() != other.at(now).is_open() {
        return Some(now);
    }
    let end = now.checked_add(TEN_YEARS).unwrap_or(Timestamp::MAX);
    let (mut ours, mut theirs) = (one.transitions(now, end), other.transitions(now, end));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return None,
            (ours, theirs) if ours == theirs => {}
            (Some((ours, _)), Some((theirs, _))) => return Some(ours.min(theirs)),
            (Some((only, _)), None) | (None, Some((only, _))) => return Some(only),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(days: &str, hours: &str, zone: &str) -> ScheduleSpec {
        ScheduleSpec {
            days_of_week: vec![days.to_owned()],
            hours_of_day: vec![hours.to_owned()],
            timezone: zone.to_owned(),
            ..ScheduleSpec::default()
        }
    }

    fn now() -> Timestamp {
        "2026-03-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn hours_over_midnight_are_two_windows_of_the_same_day() {
        let windows = to_windows(&spec("fri", "22-6", "Europe/Zurich"), now()).unwrap();
        let times: Vec<_> = windows
            .iter()
            .map(|it| (it.start.as_str(), it.end.as_deref().unwrap()))
            .collect();
        assert_eq!(times, [("00:00", "07:00"), ("22:00", "00:00")]);
        assert!(windows.iter().all(|window| window.days == ["fri"]));
    }

    #[test]
    fn a_list_that_ends_where_an_hour_is_repeated_stays_a_list() {
        let spec = spec("sun", "0", "America/New_York");
        let why = to_windows(&spec, now()).unwrap_err();
        assert!(why.ends_with("first at 2026-11-01T05:00:00Z"), "{why}");
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 60,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn windows_open_and_close_at_the_same_instants_as_the_lists(
            days in (0..7_usize, 0..7_usize),
            hours in (0..24_u8, 0..24_u8),
            zone in prop::sample::select(vec![
                "UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe",
                "Africa/Cairo", "Asia/Kathmandu",
            ]),
        ) {
            const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
            let days = format!("{}-{}", DAYS[days.0], DAYS[days.1]);
            let lists = spec(&days, &format!("{}-{}", hours.0, hours.1), zone);
            if let Ok(windows) = to_windows(&lists, now()) {
                let rewritten = ScheduleSpec {
                    windows: Some(windows),
                    days_of_week: Vec::new(),
                    hours_of_day: Vec::new(),
                    ..lists.clone()
                };
                let end = "2028-03-01T00:00:00Z".parse().unwrap();
                let changes = |spec: &ScheduleSpec| {
                    let schedule = spec.schedule().unwrap();
                    schedule.transitions(now(), end).collect::<Vec<_>>()
                };
                prop_assert_eq!(changes(&lists), changes(&rewritten));
            } else {
                prop_assert_ne!(zone, "UTC");
            }
        }
    }
}

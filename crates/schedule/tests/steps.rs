//! What a result costs, in steps, for the schedules that cost most.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use fivespot_schedule::{
    DateEntry, Dates, Duration, Exception, ExceptionAction, Override, OverrideMode,
    Schedule, Steps, WindowText,
};
use jiff::civil::Weekday;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

/// What one plan may take. One evaluation may take half of it, and two thirds if the schedule is
/// shared and both have exceptions: less than 2 ms at the 25 to 50 ns of a step in a release.
const MAX_STEPS: u64 = 60_000;

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

const NOW: &str = "2026-11-26T09:00:30Z";

/// Dates of every year: `step` days apart, before today.
fn dates(count: usize, step: i64) -> Dates {
    let today = instant(NOW).to_zoned(jiff::tz::TimeZone::UTC).date();
    let days = (1..=count).map(|n| today - (i64::try_from(n).unwrap() * step).days());
    let entry = |date: jiff::civil::Date| DateEntry::EveryYear {
        month: date.month(),
        day: date.day(),
    };
    days.map(entry).collect()
}

fn exceptions(
    action: impl Fn(usize) -> ExceptionAction,
    dates: &Dates,
) -> Vec<Exception> {
    let exception = |n| Exception {
        name: format!("e{n}"),
        action: action(n),
        dates: dates.clone(),
    };
    (0..16).map(exception).collect()
}

fn overrides() -> Vec<Override> {
    let start = |n: i64| instant(NOW) + SignedDuration::from_secs(n * 97);
    let modes = [OverrideMode::Run, OverrideMode::Stop, OverrideMode::Hold];
    let made = (0..256_i64).zip(modes.into_iter().cycle());
    made.map(|(n, mode)| Override {
        name: format!("o{n}"),
        mode,
        start: Some(start(n)),
        end: start(n) + SignedDuration::from_secs(61),
        created: None,
    })
    .collect()
}

/// Sixteen windows a day, of a minute each or of a week each.
fn windows(duration: &str, zone: &str) -> Schedule {
    let names: Vec<_> = (0..16)
        .map(|n| (format!("w{n}"), format!("{:02}:00", n + 4)))
        .collect();
    let texts: Vec<_> = names
        .iter()
        .map(|(name, start)| WindowText {
            name,
            days: &["mon-sun"],
            start,
            end: None,
            duration: Some(duration),
        })
        .collect();
    Schedule::windows(&texts, zone).unwrap()
}

fn bases() -> Vec<(&'static str, Schedule)> {
    let cron = |text, lasts, zone| Schedule::cron(text, Some(lasts), zone).unwrap();
    vec![
        (
            "every two minutes by day",
            cron("*/2 0-20 * * *", "1m", "UTC"),
        ),
        (
            "every two minutes",
            cron("*/2 * * * *", "1m", "Africa/Casablanca"),
        ),
        (
            "every two minutes but in December",
            cron("*/2 * * 1-11 *", "1m", "America/New_York"),
        ),
        (
            "most days",
            cron("*/2 * 1-30 * 1-6", "1m", "Australia/Lord_Howe"),
        ),
        (
            "two in three minutes",
            cron("0-58/3,1-58/3 * * * *", "1m", "Africa/Casablanca"),
        ),
        ("never", cron("0 0 30 2 *", "1m", "America/New_York")),
        (
            "a leap day on a Sunday",
            cron("0 0 29 2 */7", "1m", "America/New_York"),
        ),
        (
            "each Monday for a week",
            cron("0 0 * * 1", "168h", "America/New_York"),
        ),
        ("sixteen minutes a day", windows("1m", "Africa/Casablanca")),
        ("sixteen weeks a day", windows("168h", "America/New_York")),
        (
            "every other hour",
            Schedule::weekly(
                &["mon-sun"],
                &["0,2,4,6,8,10,12,14,16,18,20,22"],
                "Africa/Casablanca",
            )
            .unwrap(),
        ),
    ]
}

fn with_rules(base: &Schedule) -> Vec<(&'static str, Schedule)> {
    use ExceptionAction::{Run, Stop};
    let stops = exceptions(|_| Stop, &dates(328, 1));
    let alternating = exceptions(|n| if n % 2 == 0 { Stop } else { Run }, &dates(182, 2));
    vec![
        ("nothing else", base.clone()),
        (
            "Stop before today",
            base.clone().with_exceptions(stops.clone()),
        ),
        (
            "every other day",
            base.clone().with_exceptions(alternating.clone()),
        ),
        ("overrides", base.clone().with_overrides(overrides())),
        (
            "all",
            base.clone()
                .with_exceptions(alternating)
                .with_overrides(overrides()),
        ),
    ]
}

/// Lead time, early end.
const LENGTHS: [(u32, u32); 5] = [(0, 0), (120, 0), (0, 1_440), (120, 5), (120, 1_440)];

fn all() -> Vec<(String, Schedule)> {
    let mut all = Vec::new();
    for (base_name, base) in bases() {
        for (name, schedule) in with_rules(&base) {
            for (lead, early) in LENGTHS {
                let schedule = schedule
                    .clone()
                    .with_lead_time(Duration::minutes(lead))
                    .with_early_end(Duration::minutes(early));
                all.push((format!("{base_name}, {name}, {lead} and {early}"), schedule));
            }
        }
    }
    all
}

#[test]
fn the_state_of_the_most_expensive_schedules_is_exact_within_the_steps() {
    for (name, schedule) in all() {
        let steps = Steps::at_most(0);
        schedule.at_within(instant(NOW), &steps);
        assert!(steps.taken() <= MAX_STEPS / 2, "{name}: {}", steps.taken());
    }
}

#[test]
fn the_need_of_the_most_expensive_schedules_is_known_for_two_days_within_the_steps() {
    for (name, schedule) in all() {
        let steps = Steps::at_most(MAX_STEPS / 2);
        let need = schedule.needed(instant(NOW), &steps);
        let one_search = 2_000;
        let most = MAX_STEPS / 2 + one_search;
        assert!(steps.taken() <= most, "{name}: {}", steps.taken());
        let two_days = instant(NOW) + SignedDuration::from_hours(48);
        let is_far = |it: Option<Timestamp>| it.is_none_or(|it| it >= two_days);
        assert!(is_far(need.known_until()), "{name}: {need:?}");
    }
}

#[test]
fn since_when_a_machine_is_wanted_is_found_within_the_steps_or_not_at_all() {
    let two_weeks_ago = instant(NOW) - SignedDuration::from_hours(14 * 24);
    let bases = bases();
    let all = bases.iter().flat_map(|(_, base)| with_rules(base));
    for (name, schedule) in all {
        let steps = Steps::at_most(MAX_STEPS);
        let since = schedule.wanted_since(two_weeks_ago, instant(NOW), &steps);
        let one_search = 2_000;
        let most = MAX_STEPS + one_search;
        assert!(steps.taken() <= most, "{name}: {}", steps.taken());
        let exact =
            schedule.wanted_since(two_weeks_ago, instant(NOW), &Steps::unlimited());
        assert!(
            since == exact || since.is_none() && steps.are_spent(),
            "{name}"
        );
    }
}

#[test]
fn a_machine_is_wanted_since_the_window_opened_that_is_not_closed_yet() {
    let office = Schedule::weekly(&["mon-fri"], &["7-17"], "UTC").unwrap();
    let since = |earliest, now| {
        office.wanted_since(instant(earliest), instant(now), &Steps::at_most(1_000))
    };
    let opened = instant("2026-11-26T07:00:00Z");
    assert_eq!(since("2026-11-20T00:00:00Z", NOW), Some(opened));
    let late = "2026-11-26T08:30:00Z";
    assert_eq!(since(late, NOW), Some(instant(late)));
    assert_eq!(since("2026-11-20T00:00:00Z", "2026-11-26T19:00:00Z"), None);
    let steps = Steps::at_most(10);
    let unknown =
        office.wanted_since(instant("2026-11-01T00:00:00Z"), instant(NOW), &steps);
    assert_eq!(unknown, None);
}

#[test]
fn a_cron_that_fires_on_each_day_costs_as_much_however_it_says_so() {
    let taken = |expression: &str| {
        let always = Schedule::cron(expression, Some("1h"), "UTC").unwrap();
        let steps = Steps::unlimited();
        let found = always.at_within(instant(NOW), &steps);
        assert_eq!(found.until(), None);
        steps.taken()
    };
    let starred = taken("0 * * * *");
    for listed in ["0 * 1-31 * 1-5", "0 * 1-5 * 0-6", "0 * 1-31 1-12 *"] {
        assert_eq!(taken(listed), starred, "{listed}");
    }
}

/// Sixteen windows: one that opens at midnight on these days, the others a minute of it.
fn windows_on(
    days: &'static [&'static str],
    lasts: &'static str,
    zone: &str,
) -> Schedule {
    let names: Vec<_> = (0..16).map(|n| format!("w{n}")).collect();
    let texts: Vec<_> = names
        .iter()
        .map(|name| WindowText {
            name,
            days: if *name == "w0" { days } else { &["mon-sun"] },
            start: "00:00",
            end: None,
            duration: Some(if *name == "w0" { lasts } else { "1m" }),
        })
        .collect();
    Schedule::windows(&texts, zone).unwrap()
}

/// Open without an end: the base schedule opens on some days of the week, and on the dates between
/// them one of sixteen exceptions applies, for ten years.
fn with_the_other_days(base: &Schedule, is_open: impl Fn(Weekday) -> bool) -> Schedule {
    let today = instant(NOW).to_zoned(jiff::tz::TimeZone::UTC).date();
    let dates = (0..3_660_i64).map(|day| today + day.days());
    let others: Vec<_> = dates.filter(|date| !is_open(date.weekday())).collect();
    let exception = |n: usize| Exception {
        name: format!("e{n}"),
        action: ExceptionAction::Run,
        dates: others
            .iter()
            .skip(n)
            .step_by(16)
            .map(|date| DateEntry::Range {
                first: *date,
                last: *date,
            })
            .collect(),
    };
    base.clone()
        .with_exceptions((0..16).map(exception).collect())
}

#[test]
fn a_base_and_listed_dates_that_continue_each_other_are_searched_within_the_steps() {
    let weekend = |day: Weekday| matches!(day, Weekday::Saturday | Weekday::Sunday);
    let odd = |day: Weekday| day.to_monday_zero_offset() % 2 == 0;
    let hours = ["0-23"];
    let mut bases = Vec::new();
    for zone in ["UTC", "America/New_York", "Africa/Casablanca"] {
        let cron = |text| Schedule::cron(text, Some("24h"), zone).unwrap();
        let windows = |days, lasts| windows_on(days, lasts, zone);
        let odd_days: &[&str] = &["mon", "wed", "fri", "sun"];
        let lists = Schedule::weekly(odd_days, &hours, zone).unwrap();
        bases.extend([
            (
                "weekends",
                with_the_other_days(&windows(&["sat"], "48h"), weekend),
            ),
            (
                "windows",
                with_the_other_days(&windows(odd_days, "24h"), odd),
            ),
            ("cron", with_the_other_days(&cron("0 0 * * 0,1,3,5"), odd)),
            (
                "minutes",
                with_the_other_days(&cron("* * * * 0,1,3,5"), odd),
            ),
            ("lists", with_the_other_days(&lists, odd)),
        ]);
    }
    for (name, schedule) in bases {
        let zone = schedule.zone_name();
        let steps = Steps::at_most(0);
        let window = schedule.at_within(instant(NOW), &steps);
        assert!(window.is_open(), "{name} in {zone}");
        assert!(
            steps.taken() <= MAX_STEPS / 2,
            "{name} in {zone}: {}",
            steps.taken()
        );
        let shared = Schedule::following(schedule.clone(), zone).unwrap();
        let shared = with_the_other_days(&shared, odd);
        let steps = Steps::at_most(0);
        shared.at_within(instant(NOW), &steps);
        let most = MAX_STEPS / 3 * 2;
        assert!(steps.taken() <= most, "{name} in {zone}: {}", steps.taken());
        let steps = Steps::at_most(MAX_STEPS / 2);
        let need = schedule.needed(instant(NOW), &steps);
        assert!(need.is_needed(), "{name} in {zone}: {need:?}");
        let most = MAX_STEPS / 2 + 2_000;
        assert!(steps.taken() <= most, "{name} in {zone}: {}", steps.taken());
    }
}

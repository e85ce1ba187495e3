//! Windows, exceptions, overrides and needed spans by example.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use fivespot_schedule::{
    DateEntry, Dates, DecidedBy, Duration, Exception, ExceptionAction, Need, Override,
    OverrideMode, Schedule, Steps, Window, WindowText,
};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn window<'t>(
    name: &'t str,
    days: &'t [&'t str],
    start: &'t str,
    end: &'t str,
) -> WindowText<'t, &'t str> {
    WindowText {
        name,
        days,
        start,
        end: Some(end),
        duration: None,
    }
}

/// Nights of weekdays and the weekend, in Zurich.
fn nights_and_weekends() -> Schedule {
    let weekend = WindowText {
        end: None,
        duration: Some("48h"),
        ..window("weekend", &["sat"], "07:30", "")
    };
    let night = window("night", &["mon-fri"], "19:00", "07:30");
    Schedule::windows(&[night, weekend], "Europe/Zurich").unwrap()
}

/// What the operator asks for, with as many steps as one of its plans may take.
fn needed(schedule: &Schedule, now: Timestamp) -> Need {
    schedule.needed(now, &Steps::at_most(60_000))
}

fn changes(schedule: &Schedule, from: &str, to: &str) -> Vec<String> {
    let changes = schedule.transitions(instant(from), instant(to));
    changes
        .map(|(at, wanted)| {
            format!(
                "{at} {} {:?}",
                if wanted { "on" } else { "off" },
                schedule.cause(at)
            )
        })
        .collect()
}

fn stop(name: &str, entry: &str) -> Exception {
    Exception {
        name: name.to_owned(),
        action: ExceptionAction::Stop,
        dates: [DateEntry::parse(entry).unwrap()].into_iter().collect(),
    }
}

fn overriding(name: &str, mode: OverrideMode, span: (&str, &str)) -> Override {
    Override {
        name: name.to_owned(),
        mode,
        start: Some(instant(span.0)),
        end: instant(span.1),
        created: None,
    }
}

#[test]
fn a_window_belongs_to_its_starting_day_and_adjacent_windows_are_merged() {
    let found = changes(
        &nights_and_weekends(),
        "2026-03-06T00:00:00Z",
        "2026-03-10T00:00:00Z",
    );
    assert_eq!(
        found,
        [
            "2026-03-06T06:30:00Z off Window(\"night\")",
            "2026-03-06T18:00:00Z on Window(\"night\")",
            "2026-03-09T06:30:00Z off Window(\"weekend\")",
            "2026-03-09T18:00:00Z on Window(\"night\")",
        ]
    );
}

#[test]
fn a_start_in_skipped_time_is_at_the_first_instant_after_it_and_so_is_an_end() {
    // On 2026-03-29 Zurich goes from 02:00 to 03:00, at 01:00 UTC.
    let starts =
        Schedule::windows(&[window("w", &[], "02:30", "04:00")], "Europe/Zurich");
    let ends = Schedule::windows(&[window("w", &[], "01:30", "02:30")], "Europe/Zurich");
    let (from, to) = ("2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z");
    assert_eq!(
        changes(&starts.unwrap(), from, to),
        [
            "2026-03-29T01:00:00Z on Window(\"w\")",
            "2026-03-29T02:00:00Z off Window(\"w\")",
        ]
    );
    assert_eq!(
        changes(&ends.unwrap(), from, to),
        [
            "2026-03-29T00:30:00Z on Window(\"w\")",
            "2026-03-29T01:00:00Z off Window(\"w\")",
        ]
    );
}

#[test]
fn a_window_within_skipped_time_does_not_open() {
    let skipped =
        Schedule::windows(&[window("w", &[], "02:15", "02:45")], "Europe/Zurich");
    let (from, to) = ("2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z");
    assert_eq!(changes(&skipped.unwrap(), from, to), [""; 0]);
}

#[test]
fn in_repeated_time_a_window_starts_the_first_time_and_ends_the_second() {
    // On 2026-10-25 Zurich goes from 03:00 back to 02:00, at 01:00 UTC.
    let repeated =
        Schedule::windows(&[window("w", &[], "02:15", "02:45")], "Europe/Zurich");
    assert_eq!(
        changes(
            &repeated.unwrap(),
            "2026-10-25T00:00:00Z",
            "2026-10-25T12:00:00Z"
        ),
        [
            "2026-10-25T00:15:00Z on Window(\"w\")",
            "2026-10-25T01:45:00Z off Window(\"w\")",
        ]
    );
}

#[test]
fn equal_start_and_end_last_a_day_and_every_day_never_ends() {
    let one =
        Schedule::windows(&[window("w", &["mon"], "08:00", "08:00")], "UTC").unwrap();
    let noon = instant("2026-03-02T12:00:00Z");
    let end = instant("2026-03-03T08:00:00Z");
    assert_eq!(one.at(noon), Window::Open { until: Some(end) });
    let all = Schedule::windows(&[window("w", &[], "08:00", "08:00")], "Europe/Zurich");
    assert_eq!(all.unwrap().at(noon), Window::Open { until: None });
}

#[test]
fn windows_of_whole_days_never_end_and_cost_no_search() {
    let days = window("day", &[], "00:00", "00:00");
    let always = Schedule::windows(&[days], "America/New_York").unwrap();
    let steps = Steps::unlimited();
    let found = always.at_within(instant("2026-01-05T12:00:00Z"), &steps);
    assert_eq!(found, Window::Open { until: None });
    assert!(steps.taken() < 100, "{}", steps.taken());
}

#[test]
fn windows_of_24_hours_are_adjacent_until_the_clocks_go_back() {
    // On Easter Island that is at 22:00, which is the next day in UTC.
    for (zone, until) in [
        ("Pacific/Easter", "2026-04-05T05:00:00Z"),
        ("Pacific/Auckland", "2026-04-05T11:00:00Z"),
        ("America/New_York", "2026-11-02T04:00:00Z"),
    ] {
        let days = WindowText {
            end: None,
            duration: Some("24h"),
            ..window("day", &[], "00:00", "")
        };
        let daily = Schedule::windows(&[days], zone).unwrap();
        let until = Some(instant(until));
        for day in 0..14 {
            let now =
                instant("2026-01-05T12:00:00Z") + SignedDuration::from_hours(day * 24);
            assert_eq!(daily.at(now), Window::Open { until }, "{zone} {now}");
        }
    }
}

#[test]
fn a_stop_exception_cuts_windows_at_both_midnights() {
    let schedule =
        nights_and_weekends().with_exceptions(vec![stop("christmas", "12-25")]);
    assert_eq!(
        // 2026-12-24 is a Thursday.
        changes(&schedule, "2026-12-24T12:00:00Z", "2026-12-28T12:00:00Z"),
        [
            "2026-12-24T18:00:00Z on Window(\"night\")",
            "2026-12-24T23:00:00Z off Exception(\"christmas\")",
            "2026-12-25T23:00:00Z on Exception(\"christmas\")",
            "2026-12-28T06:30:00Z off Window(\"weekend\")",
        ]
    );
}

#[test]
fn the_first_exception_that_has_the_date_decides() {
    let run = Exception {
        action: ExceptionAction::Run,
        ..stop("run", "2026-12-25")
    };
    let both = vec![run, stop("christmas", "12-25")];
    let schedule = nights_and_weekends().with_exceptions(both);
    let noon = instant("2026-12-25T12:00:00Z");
    assert!(schedule.at(noon).is_open());
    let DecidedBy::Exception(exception) = schedule.decided_by(noon) else {
        panic!("{:?}", schedule.decided_by(noon));
    };
    assert_eq!(exception.name, "run");
    assert!(!schedule.at(instant("2027-12-25T12:00:00Z")).is_open());
}

#[test]
fn of_several_overrides_the_strongest_mode_counts_then_the_latest_end_then_the_first_name()
 {
    let (six, seven, eight) = (
        "2026-03-04T06:00:00Z",
        "2026-03-04T07:00:00Z",
        "2026-03-04T08:00:00Z",
    );
    let overrides = vec![
        overriding("run", OverrideMode::Run, (six, eight)),
        overriding("hold-b", OverrideMode::Hold, (six, seven)),
        overriding("hold-a", OverrideMode::Hold, (six, seven)),
        overriding("stop", OverrideMode::Stop, (six, "2026-03-04T06:10:00Z")),
    ];
    let schedule = nights_and_weekends().with_overrides(overrides.clone());
    let named = |at: &str| {
        let found = schedule.override_at(instant(at));
        assert_eq!(found, Override::strongest(&overrides, instant(at)), "{at}");
        found.map(|it| it.name.as_str())
    };
    assert_eq!(named("2026-03-04T06:09:59Z"), Some("stop"));
    assert_eq!(named("2026-03-04T06:10:00Z"), Some("hold-a"));
    assert_eq!(named(seven), Some("run"));
    assert_eq!(named(eight), None);
    assert_eq!(
        changes(&schedule, "2026-03-04T05:00:00Z", "2026-03-04T12:00:00Z"),
        [
            "2026-03-04T06:00:00Z off Override(\"stop\")",
            "2026-03-04T06:10:00Z on Override(\"stop\")",
            "2026-03-04T06:30:00Z off Window(\"night\")",
            "2026-03-04T07:00:00Z on Override(\"run\")",
            "2026-03-04T08:00:00Z off Override(\"run\")",
        ]
    );
}

#[test]
fn a_machine_is_needed_from_the_lead_time_before_a_window_to_its_early_end() {
    let schedule = nights_and_weekends()
        .with_lead_time(Duration::minutes(10))
        .with_early_end(Duration::minutes(5));
    let need = needed(&schedule, instant("2026-03-06T18:00:00Z"));
    let window_end = instant("2026-03-09T06:30:00Z");
    let until = window_end - SignedDuration::from_mins(5);
    assert_eq!(
        need,
        Need::Needed {
            until: Some(until),
            window_end: Some(window_end),
            known_until: None,
        }
    );
    let next = instant("2026-03-09T17:50:00Z");
    assert_eq!(
        needed(&schedule, until),
        Need::NotNeeded {
            until: Some(next),
            known_until: None,
        }
    );
}

#[test]
fn adjacent_spans_are_merged_and_windows_shorter_than_the_early_end_skipped() {
    let hourly = Schedule::cron("0 9-11 * * *", Some("50m"), "UTC").unwrap();
    let joined = hourly.clone().with_lead_time(Duration::minutes(10));
    let need = needed(&joined, instant("2026-03-06T08:50:00Z"));
    assert_eq!(need.until(), Some(instant("2026-03-06T11:50:00Z")));
    let (first, second) = (
        window("a", &[], "09:00", "09:50"),
        window("b", &[], "10:00", "11:50"),
    );
    let windows = Schedule::windows(&[first, second], "UTC").unwrap();
    let joined = windows.with_lead_time(Duration::minutes(10));
    let need = needed(&joined, instant("2026-03-06T08:50:00Z"));
    assert_eq!(need.until(), Some(instant("2026-03-06T11:50:00Z")));
    let nothing = hourly.with_early_end(Duration::minutes(50));
    let need = needed(&nothing, instant("2026-03-06T09:00:00Z"));
    assert!(!need.is_needed());
}

#[test]
fn a_window_that_is_not_longer_than_the_early_end_needs_nothing_whatever_the_lead_time() {
    let short = Schedule::windows(&[window("w", &[], "09:00", "09:03")], "UTC").unwrap();
    let short = short.with_early_end(Duration::minutes(5));
    let early = short.clone().with_lead_time(Duration::minutes(10));
    for at in ["2026-03-06T08:52:00Z", "2026-03-06T09:01:00Z"] {
        let never = Need::NotNeeded {
            until: None,
            known_until: None,
        };
        assert_eq!(needed(&early, instant(at)), never, "{at}");
        assert_eq!(needed(&short, instant(at)), never, "{at}");
    }
}

#[test]
fn weeks_of_windows_that_are_too_short_are_searched_for_ten_years() {
    let hours: Vec<String> = (0..24).step_by(2).map(|hour| hour.to_string()).collect();
    let short = Schedule::weekly(&["mon-sun"], &hours, "UTC").unwrap();
    let short = short.with_early_end(Duration::hours(1));
    let never = Need::NotNeeded {
        until: None,
        known_until: None,
    };
    assert_eq!(needed(&short, instant("2026-03-06T09:00:00Z")), never);
}

#[test]
fn windows_that_a_skipped_hour_makes_adjacent_are_needed_together() {
    // New York goes from 02:00 to 03:00: the first window ends when the second one begins.
    let short = Schedule::cron("0 1,3 * * *", Some("1h"), "America/New_York").unwrap();
    let short = short.with_early_end(Duration::hours(1));
    let opens = instant("2026-03-08T06:00:00Z");
    for before in ["2026-03-07T12:00:00Z", "2026-03-05T12:00:00Z"] {
        let need = needed(&short, instant(before));
        assert_eq!(need.until(), Some(opens), "{before}");
    }
    let need = needed(&short, opens);
    let until = instant("2026-03-08T07:00:00Z");
    assert_eq!(need.until(), Some(until));
    // The window at 05:00 is too short to be needed, however close it is.
    let three = Schedule::cron("0 1,3,5 * * *", Some("1h"), "America/New_York").unwrap();
    let three = three
        .with_early_end(Duration::hours(1))
        .with_lead_time(Duration::hours(2));
    let need = needed(&three, opens - SignedDuration::from_hours(2));
    assert_eq!(need.until(), Some(until));
}

#[test]
fn the_next_need_of_a_length_is_the_first_that_is_long_enough() {
    let (first, second) = (
        window("short", &["mon"], "09:00", "10:00"),
        window("long", &["tue"], "09:00", "12:00"),
    );
    let schedule = Schedule::windows(&[first, second], "UTC").unwrap();
    let monday = instant("2026-03-09T00:00:00Z");
    let next = |hours, from| {
        let length = SignedDuration::from_hours(hours);
        schedule.next_need_of(length, from, &Steps::at_most(1_000))
    };
    let (short, long) = (
        instant("2026-03-09T09:00:00Z"),
        instant("2026-03-10T09:00:00Z"),
    );
    assert_eq!(next(1, monday), Some(short));
    assert_eq!(next(2, monday), Some(long));
    assert_eq!(next(3, monday), Some(long));
    assert_eq!(next(4, monday), None);
    let week = SignedDuration::from_hours(7 * 24);
    assert_eq!(next(1, short), Some(long), "not one that has begun");
    assert_eq!(next(2, long), Some(long + week));
}

#[test]
fn a_decision_has_the_name_of_its_window_exception_or_override() {
    let until = "2026-03-11T18:00:00Z";
    let schedule = nights_and_weekends()
        .with_exceptions(vec![stop("holiday", "2026-03-10")])
        .with_overrides(vec![overriding(
            "maintenance",
            OverrideMode::Stop,
            ("2026-03-11T12:00:00Z", until),
        )]);
    let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC").unwrap();
    let (morning, evening) = (
        window("morning", &[], "09:00", "12:00"),
        window("evening", &[], "18:00", "20:00"),
    );
    let daily = Schedule::windows(&[morning, evening], "UTC").unwrap();
    for (schedule, at, cause, name) in [
        (&daily, "2026-03-09T09:00:00Z", "Window", Some("morning")),
        (&daily, "2026-03-09T18:00:00Z", "Window", Some("evening")),
        (&daily, "2026-03-09T20:00:00Z", "Window", Some("evening")),
        (&schedule, "2026-03-09T18:00:00Z", "Window", Some("night")),
        (
            &schedule,
            "2026-03-09T23:00:00Z",
            "Exception",
            Some("holiday"),
        ),
        (&office, "2026-03-09T09:00:00Z", "Lists", None),
    ] {
        let found = schedule.cause(instant(at));
        assert_eq!((found.as_str(), found.name()), (cause, name), "{at}");
    }
    let steps = Steps::at_most(10_000);
    let decisions: Vec<_> = std::iter::successors(
        schedule.next_decision(instant("2026-03-09T12:00:00Z"), &steps),
        |at| schedule.next_decision(*at, &steps),
    )
    .collect();
    assert_eq!(
        decisions,
        [
            instant("2026-03-09T23:00:00Z"),
            instant("2026-03-10T23:00:00Z"),
            instant("2026-03-11T12:00:00Z"),
            instant(until),
        ]
    );
}

#[test]
fn the_first_date_of_a_set_is_listed_or_of_every_year_whichever_is_earlier() {
    let dates = |entries: &[&str]| -> Dates {
        let parsed = entries.iter().map(|text| DateEntry::parse(text).unwrap());
        parsed.collect()
    };
    let set = dates(&["12-25", "2026-12-20", "2026-12-30"]);
    for (from, first) in [
        ("2026-12-01", "2026-12-20"),
        ("2026-12-21", "2026-12-25"),
        ("2026-12-26", "2026-12-30"),
        ("2026-12-31", "2027-12-25"),
    ] {
        let first: Date = first.parse().unwrap();
        assert_eq!(set.first_from(from.parse().unwrap()), Some(first), "{from}");
    }
    assert_eq!(
        dates(&["2026-12-25", "2026-12-24", "2026-12-24"]),
        [DateEntry::range("2026-12-24", "2026-12-25").unwrap()]
            .into_iter()
            .collect(),
    );
}

#[test]
fn windows_that_a_lead_time_joins_for_ten_years_have_no_end() {
    let often = Schedule::cron("*/2 * * * *", Some("1m"), "Africa/Casablanca").unwrap();
    let joined = often.with_lead_time(Duration::minutes(1));
    let need = needed(&joined, instant("2026-03-06T09:00:00Z"));
    assert!(need.is_needed());
    assert_eq!((need.until(), need.known_until()), (None, None));
}

#[test]
fn a_query_at_the_end_of_the_calendar_returns() {
    let schedule = nights_and_weekends()
        .with_exceptions(vec![stop("christmas", "12-25")])
        .with_lead_time(Duration::hours(2));
    for end in [Timestamp::MIN, Timestamp::MAX] {
        let until = schedule.at(end).until();
        assert!(until.is_none_or(|until| until > end));
        let until = needed(&schedule, end).until();
        assert!(until.is_none_or(|until| until > end));
    }
    let eve = Timestamp::MAX - SignedDuration::from_hours(24 * 30);
    assert!(schedule.transitions(eve, Timestamp::MAX).count() < 100);
    assert!(schedule.needed_spans(eve, Timestamp::MAX).count() < 100);
}

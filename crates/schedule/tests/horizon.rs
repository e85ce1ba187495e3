//! Distant results: windows that never end, firings that never come, the ends of the calendar.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use fivespot_schedule::{Schedule, Steps, Window};
use jiff::{SignedDuration, Timestamp};

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(expr: &str, duration: &str) -> Schedule {
    Schedule::cron(expr, Some(duration), "America/New_York").unwrap()
}

#[test]
fn a_week_that_is_always_on_never_ends() {
    let always = Schedule::weekly(&["mon-sun"], &["0-23"], "America/New_York").unwrap();
    let now = instant("2026-01-01T00:00:00Z");
    assert_eq!(always.at(now), Window::Open { until: None });
    assert_eq!(Schedule::always("America/New_York").unwrap(), always);
}

#[test]
fn a_cron_that_never_fires_has_no_next_change() {
    let never = cron("0 0 30 2 *", "1h");
    assert_eq!(
        never.at(instant("2026-01-01T00:00:00Z")),
        Window::Closed { until: None }
    );
}

#[test]
fn a_change_more_than_ten_years_away_is_not_the_next_change_but_still_listed() {
    // February 29 is a Sunday in 2032 and then in 2060.
    let rare = Schedule::cron("0 0 29 2 */7", Some("1h"), "UTC").unwrap();
    let now = instant("2033-01-01T00:00:00Z");
    assert_eq!(rare.at(now), Window::Closed { until: None });
    let opens: Vec<Timestamp> = rare
        .transitions(now, instant("2061-01-01T00:00:00Z"))
        .filter(|(_, wanted)| *wanted)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(opens, [instant("2060-02-29T00:00:00Z")]);
}

#[test]
fn ten_years_are_searched_to_the_last_second() {
    let leap = Schedule::cron("0 0 29 2 *", Some("1h"), "UTC").unwrap();
    let due = instant("2104-02-29T00:00:00Z");
    // 2100 is not a leap year, so the previous firing was in 2096.
    let ten_years = SignedDuration::from_hours(24 * 3_653);
    let last = leap.at(instant("2096-03-01T00:00:00Z"));
    assert_eq!(last.until(), Some(due));
    let rare = Schedule::cron("0 0 29 2 */7", Some("1h"), "UTC").unwrap();
    let due = instant("2060-02-29T00:00:00Z");
    assert_eq!(rare.at(due - ten_years).until(), Some(due));
    let second = SignedDuration::from_secs(1);
    assert_eq!(rare.at(due - ten_years - second).until(), None);
}

#[test]
fn a_closing_is_searched_for_to_the_last_second_of_ten_years() {
    // Pyongyang went back from 24:00 to 23:30: the first gap between hourly windows for decades.
    let hourly = Schedule::cron("0 * * * *", Some("1h"), "Asia/Pyongyang").unwrap();
    let closes = instant("2015-08-14T15:00:00Z");
    let ten_years = SignedDuration::from_hours(24 * 3_653);
    let second = SignedDuration::from_secs(1);
    for (now, until) in [
        (closes - ten_years, Some(closes)),
        (closes - ten_years - second, None),
    ] {
        assert_eq!(hourly.at(now).until(), until, "{now}");
        let need = hourly.needed(now, &Steps::unlimited());
        assert_eq!(need.until(), until, "{now}");
    }
}

#[test]
fn adjacent_windows_are_merged_until_a_day_without_them() {
    let now = instant("2026-06-01T12:00:00Z");
    assert_eq!(
        cron("* * * * *", "1m").at(now),
        Window::Open { until: None }
    );
    let most_of_the_year = cron("* * * 1-11 *", "1m").at(now);
    let december = instant("2026-12-01T05:00:00Z");
    assert_eq!(
        most_of_the_year,
        Window::Open {
            until: Some(december)
        }
    );
    let but_one_minute = cron("0-29,31-59 * * * *", "1m").at(now);
    let half_past = instant("2026-06-01T12:30:00Z");
    assert_eq!(
        but_one_minute,
        Window::Open {
            until: Some(half_past)
        }
    );
}

#[test]
fn a_clock_set_back_half_an_hour_leaves_a_gap_between_hourly_windows() {
    // Lord Howe goes back from 02:00 to 01:30: after the firing at 01:00 the clock shows a full
    // hour again only 90 minutes later.
    let hourly = Schedule::cron("0 * * * *", Some("1h"), "Australia/Lord_Howe").unwrap();
    let changes: Vec<(Timestamp, bool)> = hourly
        .transitions(
            instant("2026-04-04T00:00:00Z"),
            instant("2026-04-06T00:00:00Z"),
        )
        .collect();
    let (closes, opens) = (
        instant("2026-04-04T15:00:00Z"),
        instant("2026-04-04T15:30:00Z"),
    );
    assert_eq!(changes, [(closes, false), (opens, true)]);
}

#[test]
fn office_hours_are_the_same_in_both_notations() {
    let hours = Schedule::weekly(&["mon-fri"], &["9-17"], "America/New_York").unwrap();
    let firings = Schedule::cron("0 9-17 * * 1-5", None, "America/New_York").unwrap();
    let (from, to) = (
        instant("2026-01-01T00:00:00Z"),
        instant("2028-01-01T00:00:00Z"),
    );
    assert!(
        hours
            .transitions(from, to)
            .eq(firings.transitions(from, to))
    );
    assert_eq!(hours.transitions(from, to).count(), 2 * 522);
}

#[test]
fn a_window_that_opened_long_ago_is_still_open() {
    let week = Schedule::cron("0 0 1 1 *", Some("168h"), "UTC").unwrap();
    let (last, after) = (
        instant("2026-01-07T23:59:59.999999999Z"),
        instant("2026-01-08T00:00:00Z"),
    );
    assert_eq!(week.at(last), Window::Open { until: Some(after) });
    assert!(!week.at(after).is_open());
}

#[test]
fn instants_before_1970_are_rounded_down_to_the_second() {
    let hour = Schedule::weekly(&["mon-sun"], &["12"], "UTC").unwrap();
    let opens = instant("1969-07-20T12:00:00Z");
    let just_before = opens - SignedDuration::from_nanos(1);
    assert_eq!(hour.at(just_before), Window::Closed { until: Some(opens) });
}

#[test]
fn queries_at_the_ends_of_the_calendar_return() {
    for zone in [
        "UTC",
        "America/New_York",
        "Pacific/Kiritimati",
        "Antarctica/Troll",
    ] {
        let hours = Schedule::weekly(&["mon", "thu-fri"], &["12"], zone).unwrap();
        let firings = Schedule::cron("* * * * *", Some("168h"), zone).unwrap();
        let monthly = Schedule::cron("0 0 13 * *", Some("1m"), zone).unwrap();
        for schedule in [hours, firings, monthly] {
            for end in [Timestamp::MIN, Timestamp::MAX] {
                let until = schedule.at(end).until();
                assert!(until.is_none_or(|until| until > end), "{schedule:?}");
            }
            let eve = Timestamp::MAX - SignedDuration::from_hours(24 * 30);
            assert!(schedule.transitions(eve, Timestamp::MAX).count() < 100);
        }
    }
}

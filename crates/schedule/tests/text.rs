//! The accepted texts, the errors for others, and that printed values parse back.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use fivespot_schedule::{
    Cron, DateEntry, Days, Duration, Error, Hours, ParseError, Schedule,
};
use fivespot_schedule::{embedded_release, zone, zone_data, zone_names};
use proptest::prelude::*;

fn error<T: std::str::FromStr<Err = ParseError> + std::fmt::Debug>(text: &str) -> String {
    text.parse::<T>().unwrap_err().to_string()
}

/// The position in an error, which does not say where the beginning is.
fn at(place: usize) -> String {
    match place {
        0 => String::new(),
        place => format!(" at byte {place}"),
    }
}

#[test]
fn an_invalid_day_is_reported_with_its_position() {
    let days = "a day (mon, tue, wed, thu, fri, sat or sun)";
    for (text, place, found) in [
        ("", 0, "nothing"),
        ("Mon", 0, "'Mon'"),
        ("mon,", 4, "nothing"),
        ("mon, tue", 4, "' tue'"),
        ("mon-", 4, "nothing"),
        ("mon-wed-fri", 4, "'wed-fri'"),
        ("sat,monday", 4, "'monday'"),
    ] {
        let expected = format!("expected {days}{}, found {found}", at(place));
        assert_eq!(error::<Days>(text), expected, "{text:?}");
    }
}

#[test]
fn an_invalid_hour_is_reported_with_its_position() {
    for (text, place, found) in [
        ("24", 0, "'24'"),
        ("9-25", 2, "'25'"),
        ("009", 0, "'009'"),
        ("9-17,-3", 5, "nothing"),
        ("9–17", 0, "'9–17'"),
        ("+9", 0, "'+9'"),
    ] {
        let expected =
            format!("expected an hour from 0 to 23{}, found {found}", at(place));
        assert_eq!(error::<Hours>(text), expected, "{text:?}");
    }
}

#[test]
fn the_error_of_an_invalid_cron_has_the_position_and_what_was_expected() {
    for (text, expected) in [
        (
            "",
            "five fields: minute, hour, day of month, month, day of week, found nothing",
        ),
        (
            "0 9 * *",
            "five fields: minute, hour, day of month, month, day of week at byte 7, found nothing",
        ),
        (
            "0 0 9 * * 1",
            "the end after five fields at byte 10, found '1'",
        ),
        ("@daily", "a minute from 0 to 59, found '@daily'"),
        ("60 * * * *", "a minute from 0 to 59, found '60'"),
        (
            "0 9 L * *",
            "a day of the month from 1 to 31 at byte 4, found 'L'",
        ),
        (
            "0 9 0 * *",
            "a day of the month from 1 to 31 at byte 4, found '0'",
        ),
        (
            "0 9 ? * 1",
            "a day of the month from 1 to 31 at byte 4, found '?'",
        ),
        (
            "0 9 * 13 *",
            "a month from 1 to 12 or jan to dec at byte 6, found '13'",
        ),
        (
            "0 9 * * 5#2",
            "a day of the week from 0 to 7 or sun to sat at byte 8, found '5#2'",
        ),
        (
            "0 9 * * 1,8",
            "a day of the week from 0 to 7 or sun to sat at byte 10, found '8'",
        ),
        (
            "0 17-9 * * *",
            "a range that goes up at byte 2, found '17-9'",
        ),
        ("5/15 * * * *", "'*' or a range before '/', found '5'"),
        ("*/0 * * * *", "a step of 1 or more at byte 2, found '0'"),
        ("*-5 * * * *", "a minute from 0 to 59, found '*'"),
    ] {
        assert_eq!(
            error::<Cron>(text),
            format!("expected {expected}"),
            "{text:?}"
        );
    }
}

#[test]
fn the_text_found_is_escaped_and_truncated() {
    let long = format!("mon,\n{}", "x".repeat(1_000));
    let error = long.parse::<Days>().unwrap_err();
    assert_eq!(error.found(), format!("'\\n{}'…", "x".repeat(31)));
}

#[test]
fn different_spellings_of_a_cron_parse_to_the_same_value() {
    for (one, other) in [
        ("0 9 * * 1-5", "0 9 * * mon-fri"),
        ("0 9 * * 1-5", " 00  09\t* * MON-Fri\n"),
        ("0 9 * * 0", "0 9 * * 7"),
        ("0 9 * * 0,6", "0 9 * * sat-sun"),
        ("0 9 * * 0-6", "0 9 * * mon-sun"),
        ("0 9 * 1-3 *", "0 9 * jan-Mar *"),
        ("*/15 * * * *", "*/15,30 * * * *"),
        ("0-10/5 * * * *", "0,5,10 * * * *"),
    ] {
        assert_eq!(
            one.parse::<Cron>(),
            other.parse::<Cron>(),
            "{one} and {other}"
        );
    }
}

#[test]
fn days_and_hours_print_in_their_shortest_form() {
    for (text, printed) in [
        ("sun,sat,fri,mon", "fri-mon"),
        ("mon,tue,thu", "mon-tue,thu"),
        ("tue-mon", "mon-sun"),
        ("wed", "wed"),
    ] {
        assert_eq!(text.parse::<Days>().unwrap().to_string(), printed);
    }
    for (text, printed) in [("22,23,0,1", "22-1"), ("07,8", "7-8"), ("9-8", "0-23")] {
        assert_eq!(text.parse::<Hours>().unwrap().to_string(), printed);
    }
}

#[test]
fn a_duration_is_digits_and_one_unit() {
    for text in [
        "", "5", "5 m", "m5", "5m30s", "-5m", "5M", "１m", "1.5h", "m",
    ] {
        let expected = "expected digits and a unit of s, m or h, such as '5m'";
        assert!(error::<Duration>(text).starts_with(expected), "{text:?}");
    }
    for text in ["9223372036854775807h", "99999999999999999999s"] {
        assert!(
            error::<Duration>(text).contains("fewer than 2^63 seconds"),
            "{text:?}"
        );
    }
    assert_eq!("0h".parse(), Ok(Duration::ZERO));
    assert_eq!("0090m".parse(), Ok(Duration::seconds(5_400)));
}

#[test]
fn bounds_of_a_duration_are_inclusive() {
    let (least, most) = (Duration::minutes(1), Duration::hours(168));
    for (seconds, fits) in [(59, false), (60, true), (604_800, true), (604_801, false)] {
        let given = Duration::seconds(seconds);
        assert_eq!(given.within(least, most).is_ok(), fits, "{given}");
    }
}

#[test]
fn the_error_of_an_invalid_schedule_names_the_invalid_part() {
    let none: [&str; 0] = [];
    let weekly = |days: &[&str], hours: &[&str], zone: &str| {
        Schedule::weekly(days, hours, zone).unwrap_err()
    };
    assert!(matches!(
        weekly(&["mon", "fry"], &["9"], "UTC"),
        Error::Days { entry: 1, .. }
    ));
    assert!(matches!(
        weekly(&["mon"], &["25"], "UTC"),
        Error::Hours { entry: 0, .. }
    ));
    assert_eq!(
        weekly(&none, &none, "UTC").to_string(),
        "days and hours: both must be given, and days and hours are missing",
    );
    assert_eq!(
        weekly(&["mon"], &none, "UTC").to_string(),
        "days and hours: both must be given, and hours are missing",
    );
    for name in [
        "",
        "Mars/Olympus",
        "+01:00",
        "EST5EDT,M3.2.0,M11.1.0",
        "Etc/Unknown",
    ] {
        let error = weekly(&["mon"], &["9"], name);
        assert_eq!(
            error,
            Error::UnknownTimeZone {
                name: name.to_owned()
            }
        );
    }
    let cron = |expr, duration| Schedule::cron(expr, duration, "UTC");
    assert!(matches!(cron("x", None), Err(Error::Cron { .. })));
    assert!(matches!(
        cron("0 9 * * *", Some("1d")),
        Err(Error::Duration { .. })
    ));
    for duration in ["0s", "59s", "169h"] {
        let refused = cron("0 9 * * *", Some(duration));
        assert!(
            matches!(refused, Err(Error::DurationOutOfBounds { .. })),
            "{duration}"
        );
    }
}

#[test]
fn only_the_whole_week_is_every_day_and_only_the_whole_day_every_hour() {
    let days = |text: &str| text.parse::<Days>().unwrap().is_every_day();
    assert!(days("mon-sun") && days("wed-tue") && !days("mon-sat"));
    let hours = |text: &str| text.parse::<Hours>().unwrap();
    assert!(hours("0-23").is_every_hour() && !hours("0-22").is_every_hour());
    assert!(hours("22-6").is_over_midnight());
    assert!(!hours("0-23").is_over_midnight() && !hours("0-22").is_over_midnight());
}

#[test]
fn a_date_has_exactly_the_digits_of_its_form() {
    for text in [
        "02026-12-24",
        "+026-12-24",
        "2026-12-024",
        "2026-+1-24",
        "2026-12-24-1",
    ] {
        assert!(DateEntry::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_schedule_with_another_form_has_no_cron_expression() {
    let nightly = Schedule::cron("0 22 * * *", Some("9h"), "UTC").unwrap();
    let (cron, duration) = nightly.cron_expression().unwrap();
    assert_eq!(cron.to_string(), "0 22 * * *");
    assert_eq!(duration, "9h".parse().unwrap());
    let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC").unwrap();
    assert_eq!(office.cron_expression(), None);
}

#[test]
fn a_cron_without_a_matching_day_in_any_year_cannot_fire() {
    for (text, can) in [
        ("0 0 30 2 *", false),
        ("0 0 31 2,4,6,9,11 *", false),
        ("0 0 29 2 *", true),
        ("0 0 31 2,3 *", true),
        ("0 0 30 2 mon", true),
        ("0 0 30 2 */2", false),
    ] {
        assert_eq!(text.parse::<Cron>().unwrap().can_fire(), can, "{text}");
    }
}

#[test]
fn zones_have_the_names_of_the_embedded_database_in_its_spelling() {
    let release = embedded_release();
    assert_eq!(zone_data().release(), release);
    let (year, letter) = release.split_at(4);
    assert!(
        year.parse::<u16>().is_ok_and(|year| year >= 2025),
        "{release}"
    );
    assert!(
        letter.bytes().all(|byte| byte.is_ascii_lowercase()),
        "{release}"
    );
    for name in zone_names() {
        let found = zone(&name.to_ascii_uppercase());
        assert_eq!(found.as_ref().and_then(|zone| zone.iana_name()), Some(name));
    }
}

proptest! {
    #[test]
    fn printed_days_and_hours_parse_back(bits in 1_u32..1 << 24) {
        let listed = |size: u32| {
            let some = (0..size).filter(move |n| bits >> n & 1 == 1);
            some.chain((bits.trailing_zeros() >= size).then_some(0))
        };
        let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let days: Vec<&str> = listed(7).map(|day| names[day as usize]).collect();
        let days: Days = days.join(",").parse().unwrap();
        prop_assert_eq!(days.to_string().parse(), Ok(days));
        let hours: Vec<String> = listed(24).map(|hour| hour.to_string()).collect();
        let hours: Hours = hours.join(",").parse().unwrap();
        prop_assert_eq!(hours.to_string().parse(), Ok(hours));
    }

    #[test]
    fn a_printed_cron_parses_back(
        fields in [
            "(\\*|\\*/[1-9]|[1-5]?[0-9]|[0-9]-5[0-9]/[1-9])(,[1-5]?[0-9]){0,4}",
            "(\\*|\\*/[1-9]|1?[0-9]|[0-9]-2[0-3])(,1?[0-9]){0,4}",
            "(\\*|\\*/[1-9]|\\*/40|[12]?[1-9]|[1-9]-31)(,[12]?[1-9]){0,4}",
            "(\\*|\\*/[1-9]|1[0-2]|[1-9]-1[0-2]|jan-DEC)(,[1-9]){0,2}",
            "(\\*|\\*/[1-9]|[0-7]|[0-3]-[3-7]|mon-sun)(,[0-7]){0,2}",
        ],
    ) {
        let cron: Cron = fields.join(" ").parse().unwrap();
        prop_assert_eq!(cron.to_string().parse(), Ok(cron), "{}", cron);
    }

    #[test]
    fn printed_durations_parse_back(seconds in any::<u32>()) {
        let duration = Duration::seconds(seconds);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,40}") {
        let offsets = [
            text.parse::<Days>().err(),
            text.parse::<Hours>().err(),
            text.parse::<Cron>().err(),
            text.parse::<Duration>().err(),
        ];
        for error in offsets.into_iter().flatten() {
            prop_assert!(text.is_char_boundary(error.offset()));
        }
    }
}

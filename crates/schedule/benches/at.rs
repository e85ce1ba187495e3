//! The duration of a query: ten thousand schedules at one instant, and the slowest searches.

#![allow(missing_docs, reason = "criterion's macros write public functions")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fivespot_schedule::{
    DateEntry, Exception, ExceptionAction, Schedule, Steps, WindowText, zone_names,
};
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};

/// Schedules of every kind in every zone.
fn many() -> Vec<Schedule> {
    let zones: Vec<&str> = zone_names().collect();
    let made = (0..10_000_usize)
        .zip(zones.into_iter().cycle())
        .map(|(n, zone)| {
            let (first, last) = (n % 24, (n / 24) % 24);
            if n % 3 == 0 {
                let cron = format!("{} {} * * 1-5", n % 60, first);
                Schedule::cron(&cron, Some("8h"), zone)
            } else {
                Schedule::weekly(&["mon-fri"], &[format!("{first}-{last}")], zone)
            }
        });
    made.collect::<Result<_, _>>()
        .expect("they are well formed")
}

fn at(bench: &mut Criterion) {
    let schedules = many();
    let now: Timestamp = "2026-03-07T12:34:56Z".parse().expect("it is an instant");
    bench.bench_function("at: 10,000 schedules, one instant", |bench| {
        bench.iter(|| {
            schedules
                .iter()
                .filter(|it| it.at(black_box(now)).is_open())
                .count()
        });
    });
}

fn until(bench: &mut Criterion) {
    let now: Timestamp = "2026-03-07T12:34:56Z".parse().expect("it is an instant");
    for (expr, duration) in [
        ("0 0 30 2 *", "1h"),
        ("0 0 29 2 */7", "1h"),
        ("* * * * *", "1m"),
        ("* * * 1,3-12 *", "1m"),
        ("* * 1-30 * 1-6", "1m"),
        ("0-29,31-59 * * * *", "1m"),
        ("* 0-11,13-23 * * *", "1m"),
    ] {
        let schedule = Schedule::cron(expr, Some(duration), "Australia/Lord_Howe")
            .expect("it is well formed");
        bench.bench_function(&format!("until: {expr} for {duration}"), |bench| {
            bench.iter(|| schedule.at(black_box(now)));
        });
    }
}

/// Open without an end by the bounds of admission: sixteen exceptions list the dates on which the
/// schedule does not open, for ten years.
fn without_an_end(base: &Schedule, now: Timestamp) -> Schedule {
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let dates = (0..3_660_i64).map(|day| today + day.days());
    let even = |date: &Date| date.weekday().to_monday_zero_offset() % 2 != 0;
    let others: Vec<_> = dates.filter(even).collect();
    let listed = |n: usize| others.iter().skip(n).step_by(16);
    let exception = |n: usize| Exception {
        name: format!("e{n}"),
        action: ExceptionAction::Run,
        dates: listed(n)
            .map(|date| DateEntry::Range {
                first: *date,
                last: *date,
            })
            .collect(),
    };
    base.clone()
        .with_exceptions((0..16).map(exception).collect())
}

fn bounds(bench: &mut Criterion) {
    let now: Timestamp = "2026-11-26T09:00:30Z".parse().expect("it is an instant");
    let (days, zone) = (["mon", "wed", "fri", "sun"], "Africa/Casablanca");
    let window = |name| WindowText {
        name,
        days: &days,
        start: "00:00",
        end: None,
        duration: Some("24h"),
    };
    let bases = [
        ("lists", Schedule::weekly(&days, &["0-23"], zone)),
        ("cron", Schedule::cron("* * * * 0,1,3,5", Some("1m"), zone)),
        ("windows", Schedule::windows(&[window("w"); 16], zone)),
    ];
    for (name, base) in bases {
        let schedule = without_an_end(&base.expect("it is well formed"), now);
        let shared = Schedule::following(schedule.clone(), zone).expect("a zone");
        let shared = without_an_end(&shared, now);
        for (name, schedule) in [(name, schedule), ("the same, shared", shared)] {
            let steps = Steps::unlimited();
            assert_eq!(schedule.at_within(now, &steps).until(), None, "{name}");
            let name = format!("bounds: {name}, {} steps", steps.taken());
            bench.bench_function(&name, |bench| {
                bench.iter(|| schedule.at(black_box(now)));
            });
        }
    }
}

criterion_group!(benches, at, until, bounds);
criterion_main!(benches);

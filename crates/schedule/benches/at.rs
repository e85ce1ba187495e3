//! The duration of a query: ten thousand schedules at one instant, and the slowest searches.

#![allow(missing_docs, reason = "criterion's macros write public functions")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fivespot_schedule::{Schedule, zone_names};
use jiff::Timestamp;

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

criterion_group!(benches, at, until);
criterion_main!(benches);

//! Two hundred machines over fourteen days in every output format.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fivespot_drawing::terminal::TerminalOptions;
use fivespot_drawing::{Fleet, Row, html, planned, svg, terminal};
use fivespot_schedule::Schedule;
use jiff::Timestamp;

fn fleet() -> Option<Fleet> {
    let from: Timestamp = "2026-03-02T00:00:00Z".parse().ok()?;
    let to = "2026-03-16T00:00:00Z".parse().ok()?;
    let schedule = Schedule::weekly(&["mon-fri"], &["9-17"], "America/New_York").ok()?;
    let row = |machine| Row {
        name: format!("team-a/desk-{machine:03}"),
        note: "mon-fri 9-17 in America/New_York".to_owned(),
        zone: schedule.time_zone().clone(),
        link: None,
        planned: planned::spans(&schedule, from, to),
        observed: Vec::new(),
        is_heading: false,
    };
    Some(Fleet {
        title: "ScheduledMachines of team-a".to_owned(),
        from,
        to,
        zone: schedule.time_zone().clone(),
        now: Some(from),
        wanted: None,
        width: None,
        rows: (0..200).map(row).collect(),
    })
}

fn draw(criterion: &mut Criterion) {
    let Some(drawn) = fleet() else { return };
    let options = TerminalOptions {
        width: 120,
        colored: true,
    };
    criterion.bench_function("spans", |bencher| bencher.iter(fleet));
    criterion.bench_function("svg", |bencher| {
        bencher.iter(|| svg::document(black_box(&drawn)));
    });
    criterion.bench_function("html", |bencher| {
        bencher.iter(|| html::document(black_box(&drawn)));
    });
    criterion.bench_function("terminal", |bencher| {
        bencher.iter(|| terminal::text(black_box(&drawn), options));
    });
}

criterion_group!(benches, draw);
criterion_main!(benches);

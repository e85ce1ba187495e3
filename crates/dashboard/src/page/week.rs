//! The week of the fleet: planned spans, observed spans, and the number of wanted machines.

use std::sync::Arc;

use fivespot_drawing::{Fleet, Row, html as drawing, most_frequent_zone};
use fivespot_schedule::Schedule;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use maud::{Markup, PreEscaped, html};

use crate::filter::Filter;
use crate::machine::{ColumnRange, Machine, link};
use crate::page::{self, Body, Judged};
use crate::state::Snapshot;

/// The page of the week.
pub(crate) fn body(snapshot: &Snapshot, filter: &Filter, now: Timestamp) -> Body {
    let all = page::judged(snapshot, now);
    let machines = page::matching(&all, filter);
    let shown = page::page_of(&machines, filter);
    let fleet = fleet(snapshot, filter, &machines, now);
    Body {
        fixed: html! {
            h1 { "Week" }
            (page::form::of_machines("./", filter, snapshot))
        },
        live: html! {
            (page::notices(snapshot, &fleet.zone))
            (page::machine_counts("./", filter, &all))
            (page::capacities::summary(snapshot, filter, now))
            (range_links(filter, &fleet))
            @if machines.is_empty() {
                @if snapshot.is_listed { p.empty { "No ScheduledMachine matches the filter." } }
            } @else {
                (PreEscaped(drawing::figure(&fleet)))
                (page::pages("./", filter, machines.len()))
                p.soft {
                    @if shown.len() < machines.len() {
                        (shown.len()) " of " (page::machines(machines.len()))
                        " have a row; the curve counts all of them, each"
                    } @else {
                        "The curve counts each machine"
                    }
                    " in every hour in which it is wanted at some time. "
                    (page::whose_times(&fleet.zone))
                }
                details #words {
                    summary { "As a table" }
                    (PreEscaped(drawing::table(&fleet)))
                }
            }
        },
    }
}

/// Links to other time ranges.
fn range_links(filter: &Filter, fleet: &Fleet) -> Markup {
    let date = fleet.zone.to_datetime(fleet.from).date();
    let link =
        |change: &dyn Fn(&mut Filter)| format!("./{}", filter.with(change).query());
    let day = |days: i64| {
        let from = date.checked_add(days.days()).unwrap_or(date);
        link(&|it| it.from = from.to_string())
    };
    let length = |days: &str| link(&|it| days.clone_into(&mut it.days));
    let is_current = |days: i64| (filter.days() == days).then_some("true");
    html! {
            nav.pages aria-label="Time" {
                a href=(day(-filter.days())) { "Earlier" }
                a href=(link(&|it| it.from.clear())) { "Today" }
                a href=(day(filter.days())) { "Later" }
                a href=(length("1")) aria-current=[is_current(1)] { "Day" }
                a href=(length("")) aria-current=[is_current(7)] { "Week" }
                a href=(length("14")) aria-current=[is_current(14)] { "14 days" }
            }
    }
}

/// The picture of the machines on the current page, with a curve that counts all of `machines`.
fn fleet(
    snapshot: &Snapshot,
    filter: &Filter,
    machines: &[Judged<Machine>],
    now: Timestamp,
) -> Fleet {
    let schedules = machines.iter().filter_map(|it| it.object.schedule.as_ref());
    let zone = filter.zone_or(most_frequent_zone(schedules.map(Schedule::zone_name)));
    let (from, to) = range(filter, &zone, now);
    let length = Fleet::column_length(from, to);
    let columns = Fleet::columns(from, to);
    let range = ColumnRange {
        from,
        length,
        columns,
    };
    let mut wanted = vec![0; columns];
    for judged in machines {
        judged.object.count(range, &mut wanted);
    }
    let shown = page::page_of(machines, filter);
    let rows = shown.iter().map(|judged| {
        let row = row(snapshot, judged, (from, to), now);
        Row {
            link: row.link.map(|link| link + &filter.only_zone().query()),
            ..row
        }
    });
    let namespaces = shown.iter().map(|it| it.object.name.namespace.as_str());
    Fleet {
        title: "Planned and actual, by machine and hour".to_owned(),
        from,
        to,
        zone,
        now: Some(now),
        rows: grouped(namespaces.zip(rows).collect()),
        wanted: Some(wanted),
        width: filter.width,
    }
}

/// The rows of each namespace below its name, if there are several. The namespace of what to look at
/// first is the first one.
fn grouped(rows: Vec<(&str, Row)>) -> Vec<Row> {
    let mut namespaces: Vec<(&str, Vec<Row>)> = Vec::new();
    for (namespace, row) in rows {
        match namespaces.iter_mut().find(|(name, _)| *name == namespace) {
            Some((_, rows)) => rows.push(row),
            None => namespaces.push((namespace, vec![row])),
        }
    }
    let has_headings = namespaces.len() > 1;
    let mut all = Vec::new();
    for (namespace, rows) in namespaces {
        if has_headings {
            all.push(Row::heading(namespace.to_owned()));
        }
        all.extend(rows);
    }
    all
}

/// The picture of one machine.
pub(crate) fn machine_fleet(
    snapshot: &Snapshot,
    judged: &Judged<Machine>,
    filter: &Filter,
    now: Timestamp,
) -> Fleet {
    let machine = &judged.object;
    let zone = filter.zone_or(machine.zone());
    let (from, to) = range(&Filter::default(), &zone, now);
    Fleet {
        title: format!("The week of {}", machine.name.name),
        from,
        to,
        zone,
        now: Some(now),
        rows: vec![Row {
            link: None,
            ..row(snapshot, judged, (from, to), now)
        }],
        wanted: None,
        width: filter.width,
    }
}

fn row(
    snapshot: &Snapshot,
    judged: &Judged<Machine>,
    (from, to): (Timestamp, Timestamp),
    now: Timestamp,
) -> Row {
    let Judged {
        object: machine,
        verdict,
        ..
    } = judged;
    let phases = snapshot.phases.get(&machine.name);
    Row {
        name: machine.name.name.clone(),
        note: format!(
            "{}; {}; {}",
            verdict.state,
            machine.name.namespace,
            machine.rule()
        ),
        zone: machine.zone(),
        link: Some(link(&machine.name)),
        planned: machine.planned(from, to),
        observed: machine.observed(phases.map(Arc::as_ref), verdict, now),
        is_heading: false,
    }
}

/// The time range of a filter. By default it begins yesterday, or today if only one day is shown.
fn range(filter: &Filter, zone: &TimeZone, now: Timestamp) -> (Timestamp, Timestamp) {
    let today = zone.to_datetime(now).date();
    let back = i64::from(filter.days() > 1);
    let first = filter
        .first_day()
        .or_else(|| today.checked_sub(back.days()).ok())
        .unwrap_or(today);
    let midnight = |date: jiff::civil::Date| {
        let begins = date.to_zoned(zone.clone());
        begins.map_or(now, |at| at.timestamp())
    };
    let last = first.checked_add(filter.days().days()).unwrap_or(first);
    (midnight(first), midnight(last))
}

//! All machines in one picture.

use fivespot_drawing::{Fleet, Row, most_frequent_zone, planned};
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::plain;
use crate::preview::capacity::CapacityForecast;
use crate::preview::forecast::{Forecast, Unevaluated};
use crate::preview::{Preview, text};

/// The picture of forecasts over the same time range. Empty if there are no forecasts. Machines that
/// cannot be evaluated come first, each with an empty row that says so.
pub(super) fn of(preview: &Preview, now: Timestamp) -> Fleet {
    let Preview {
        items: forecasts,
        capacities,
        not_evaluated,
        ..
    } = preview;
    let wrong = not_evaluated.iter().map(|it| it.namespace.as_str());
    let mut namespaces: Vec<&str> = forecasts
        .iter()
        .map(|it| it.planned.namespace.as_str())
        .chain(capacities.iter().map(|it| it.planned.namespace.as_str()))
        .chain(wrong)
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let kinds = match (forecasts.as_slice(), capacities.as_slice()) {
        ([], [_, ..]) => "ScheduledCapacities",
        (_, []) => "ScheduledMachines",
        ([_, ..], [_, ..]) => "ScheduledMachines and ScheduledCapacities",
    };
    let title = match (forecasts.as_slice(), namespaces.as_slice()) {
        ([one], _) if capacities.is_empty() => {
            format!(
                "ScheduledMachine {}/{}",
                one.planned.namespace, one.planned.name
            )
        }
        (_, [namespace]) => format!("{kinds} of {namespace}"),
        (_, several) => format!("{kinds} of {} namespaces", several.len()),
    };
    let is_one_namespace = namespaces.len() == 1;
    let spans = forecasts.iter().map(|forecast| forecast.span);
    let span = spans.chain(capacities.iter().map(|it| it.span)).next();
    let zones = forecasts.iter().map(|it| &it.planned.schedule);
    let zones = zones.chain(capacities.iter().map(|it| &it.planned.schedule));
    let mut fleet = Fleet {
        title: plain::line(&title).into_owned(),
        from: span.map_or(now, |span| span.from),
        to: span.map_or(now, |span| span.to),
        zone: most_frequent_zone(zones.map(Schedule::zone_name)),
        now: Some(now),
        wanted: None,
        width: None,
        rows: not_evaluated
            .iter()
            .map(|wrong| empty_row(wrong, is_one_namespace))
            .chain(forecasts.iter().map(|it| row(it, is_one_namespace)))
            .collect(),
    };
    if !capacities.is_empty() {
        // A value that is active is no machine that is wanted.
        let columns = Fleet::columns(fleet.from, fleet.to);
        fleet.wanted = Some(fleet.wanted_per_column(columns));
        let rows = capacities.iter();
        fleet
            .rows
            .extend(rows.map(|it| capacity_row(it, is_one_namespace)));
    }
    fleet
}

/// The row of a ScheduledCapacity: when its active values apply.
fn capacity_row(forecast: &CapacityForecast, is_one_namespace: bool) -> Row {
    let (of, span) = (&forecast.planned, forecast.span);
    let name = format!("scap/{}", of.name);
    let name = row_name(&of.namespace, &name, is_one_namespace);
    let schedule = &of.schedule;
    let state = forecast.verdict.as_ref().map(|it| it.state.to_string());
    let off = of.off.map(|off| off.as_str().to_owned());
    let parts = state.into_iter().chain(off).chain([forecast.rule()]);
    let note = parts
        .chain(of.calendar_notes())
        .collect::<Vec<_>>()
        .join("; ");
    let planned = match of.off {
        None => planned::spans(schedule, span.from, span.to),
        Some(_) => Vec::new(),
    };
    Row {
        name: plain::line(&name).into_owned(),
        note: plain::line(&note).into_owned(),
        zone: schedule.time_zone().clone(),
        link: None,
        planned,
        observed: Vec::new(),
        is_heading: false,
    }
}

/// The row of a machine that cannot be evaluated.
fn empty_row(wrong: &Unevaluated, is_one_namespace: bool) -> Row {
    let name = row_name(&wrong.namespace, &wrong.name, is_one_namespace);
    Row {
        name: plain::line(&name).into_owned(),
        note: plain::line(&format!("cannot be evaluated: {}", wrong.error)).into_owned(),
        zone: TimeZone::UTC,
        link: None,
        planned: Vec::new(),
        observed: Vec::new(),
        is_heading: false,
    }
}

fn row_name(namespace: &str, name: &str, is_one_namespace: bool) -> String {
    if is_one_namespace {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

fn row(forecast: &Forecast, is_one_namespace: bool) -> Row {
    let of = &forecast.planned;
    let name = row_name(&of.namespace, &of.name, is_one_namespace);
    let (note, planned) = if let Some(off) = of.off {
        (
            format!("{}; {}", off.as_str(), text::rule(forecast)),
            Vec::new(),
        )
    } else {
        let span = forecast.span;
        let planned = planned::spans(&of.schedule, span.from, span.to);
        let audit = if forecast.is_audited { "audit; " } else { "" };
        (format!("{audit}{}", text::rule(forecast)), planned)
    };
    let state = forecast.verdict.as_ref().map(|it| it.state.to_string());
    let note: Vec<String> = state
        .into_iter()
        .chain([note])
        .chain(forecast.notes())
        .collect();
    let note = note.join("; ");
    Row {
        name: plain::line(&name).into_owned(),
        note: plain::line(&note).into_owned(),
        zone: of.schedule.time_zone().clone(),
        link: None,
        planned,
        observed: Vec::new(),
        is_heading: false,
    }
}

//! All machines in one picture.

use std::collections::BTreeMap;

use fivespot_drawing::{Fleet, Row, planned};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::plain;
use crate::preview::forecast::Forecast;
use crate::preview::text;

/// The picture of forecasts over the same time range. Empty if there are no forecasts.
pub(super) fn of(forecasts: &[Forecast], now: Timestamp) -> Fleet {
    let mut namespaces: Vec<&str> =
        forecasts.iter().map(|it| it.namespace.as_str()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let title = match (forecasts, namespaces.as_slice()) {
        ([one], _) => format!("ScheduledMachine {}/{}", one.namespace, one.name),
        (_, [namespace]) => format!("ScheduledMachines of {namespace}"),
        (_, several) => format!("ScheduledMachines of {} namespaces", several.len()),
    };
    let span = forecasts.first().map(|forecast| forecast.span);
    Fleet {
        title: plain::line(&title).into_owned(),
        from: span.map_or(now, |span| span.from),
        to: span.map_or(now, |span| span.to),
        zone: zone(forecasts),
        now: Some(now),
        wanted: None,
        rows: forecasts
            .iter()
            .map(|forecast| row(forecast, namespaces.len() == 1))
            .collect(),
    }
}

/// The most frequent time zone of the schedules; of equally frequent ones, the first by name.
pub(super) fn zone(forecasts: &[Forecast]) -> TimeZone {
    let mut count: BTreeMap<&str, (usize, &TimeZone)> = BTreeMap::new();
    for forecast in forecasts {
        let zone = forecast.schedule.time_zone();
        count.entry(&forecast.timezone).or_insert((0, zone)).0 += 1;
    }
    let most = count.into_values().rev().max_by_key(|(count, _)| *count);
    most.map_or(TimeZone::UTC, |(_, zone)| zone.clone())
}

fn row(forecast: &Forecast, is_one_namespace: bool) -> Row {
    let name = if is_one_namespace {
        forecast.name.clone()
    } else {
        format!("{}/{}", forecast.namespace, forecast.name)
    };
    let (note, planned) = if forecast.rule.enabled {
        let span = forecast.span;
        let planned = planned::spans(&forecast.schedule, span.from, span.to);
        (text::rule(forecast), planned)
    } else {
        let note = format!("disabled; {}", text::rule(forecast));
        (note, Vec::new())
    };
    Row {
        name: plain::line(&name).into_owned(),
        note: plain::line(&note).into_owned(),
        zone: forecast.schedule.time_zone().clone(),
        link: None,
        planned,
        observed: Vec::new(),
    }
}

//! All machines in one picture.

use fivespot_drawing::{Fleet, Row, most_frequent_zone, planned};
use jiff::Timestamp;

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
        zone: most_frequent_zone(forecasts.iter().map(|it| &it.schedule)),
        now: Some(now),
        wanted: None,
        rows: forecasts
            .iter()
            .map(|forecast| row(forecast, namespaces.len() == 1))
            .collect(),
    }
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
    let note: Vec<String> = std::iter::once(note).chain(forecast.notes()).collect();
    let note = note.join("; ");
    Row {
        name: plain::line(&name).into_owned(),
        note: plain::line(&note).into_owned(),
        zone: forecast.schedule.time_zone().clone(),
        link: None,
        planned,
        observed: Vec::new(),
    }
}

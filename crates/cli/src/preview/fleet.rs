//! All machines in one picture.

use fivespot_drawing::{Fleet, Row, most_frequent_zone, planned};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::plain;
use crate::preview::forecast::{Forecast, Unevaluated};
use crate::preview::{Preview, text};

/// The picture of forecasts over the same time range. Empty if there are no forecasts. Machines that
/// cannot be evaluated come first, each with an empty row that says so.
pub(super) fn of(preview: &Preview, now: Timestamp) -> Fleet {
    let Preview {
        items: forecasts,
        not_evaluated,
        ..
    } = preview;
    let wrong = not_evaluated.iter().map(|it| it.namespace.as_str());
    let mut namespaces: Vec<&str> = forecasts
        .iter()
        .map(|it| it.namespace.as_str())
        .chain(wrong)
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let title = match (forecasts.as_slice(), namespaces.as_slice()) {
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
        width: None,
        rows: not_evaluated
            .iter()
            .map(|wrong| empty_row(wrong, namespaces.len() == 1))
            .chain(
                forecasts
                    .iter()
                    .map(|forecast| row(forecast, namespaces.len() == 1)),
            )
            .collect(),
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
    let name = row_name(&forecast.namespace, &forecast.name, is_one_namespace);
    let (note, planned) = if let Some(off) = forecast.off {
        (
            format!("{}; {}", off.as_str(), text::rule(forecast)),
            Vec::new(),
        )
    } else {
        let span = forecast.span;
        let planned = planned::spans(&forecast.schedule, span.from, span.to);
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
        zone: forecast.schedule.time_zone().clone(),
        link: None,
        planned,
        observed: Vec::new(),
        is_heading: false,
    }
}

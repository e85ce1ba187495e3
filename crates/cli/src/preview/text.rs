//! The preview as text: the schedule, a week as a grid, and every change.

use std::io::{self, Write};

use crate::plain;
use crate::preview::forecast::Forecast;
use crate::preview::grid::Grid;
use crate::preview::human::{self, ClockChange};

/// Prints one machine after the other, an empty line between them.
pub(super) fn print(out: &mut dyn Write, forecasts: &[Forecast]) -> io::Result<()> {
    for (forecast, place) in forecasts.iter().zip(0..) {
        if place > 0 {
            writeln!(out)?;
        }
        one(out, forecast)?;
    }
    Ok(())
}

fn one(out: &mut dyn Write, forecast: &Forecast) -> io::Result<()> {
    writeln!(
        out,
        "{}/{}: {}",
        plain::line(&forecast.namespace),
        plain::line(&forecast.name),
        plain::line(&rule(forecast))
    )?;
    if !forecast.rule.enabled {
        return writeln!(
            out,
            "Never wanted: the schedule is disabled (spec.schedule.enabled is false)."
        );
    }
    if let Some(grid) = Grid::of(&forecast.schedule, forecast.span.from) {
        writeln!(out, "\n{grid}")?;
    }
    changes(out, forecast)?;
    let span = forecast.span.to.as_second() - forecast.span.from.as_second();
    writeln!(
        out,
        "Wanted for {} of {}.",
        human::length(forecast.wanted_seconds),
        human::length(span)
    )
}

/// The schedule as it is written, in one line.
fn rule(forecast: &Forecast) -> String {
    let rule = &forecast.rule;
    let when = match (&rule.cron, forecast.schedule.cron_expression()) {
        (Some(cron), Some((_, duration))) => format!("cron '{cron}' for {duration}"),
        _ => format!(
            "{} {}",
            rule.days_of_week.join(","),
            rule.hours_of_day.join(",")
        ),
    };
    format!("{when} in {}", forecast.timezone)
}

fn changes(out: &mut dyn Write, forecast: &Forecast) -> io::Result<()> {
    let span = forecast.span;
    let state = if forecast.wanted_at_from {
        "wanted"
    } else {
        "not wanted"
    };
    writeln!(out, "From {} ({state}) to {}:", span.from, span.to)?;
    let zone = forecast.schedule.time_zone();
    let clocks = ClockChange::all(zone, span.from, span.to);
    let clocks = clocks
        .iter()
        .map(|change| (change.at, format!("-- {} --", change.text())));
    let flips = forecast.transitions.iter().map(|change| {
        let text = if change.wanted { "opens" } else { "closes" };
        (change.time, text.to_owned())
    });
    let mut lines: Vec<_> = clocks.chain(flips).collect();
    lines.sort_by_key(|(at, _)| *at);
    for (at, text) in &lines {
        let local = human::local(&at.to_zoned(zone.clone()));
        writeln!(out, "  {local}  {at}  {text}")?;
    }
    if forecast.transitions.is_empty() {
        writeln!(out, "  {state} all the time")?;
    }
    Ok(())
}

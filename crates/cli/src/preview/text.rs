//! The preview as text: one machine with its days and changes, or several with a line each.

use std::io::{self, Write};

use fivespot_chart::terminal;
use fivespot_dashboard::words;

use crate::plain;
use crate::preview::forecast::Forecast;
use crate::preview::grid::Grid;
use crate::preview::{View, fleet, human, list};

/// The most days of a grid unless all are asked for.
const DAYS: usize = 50;

/// Prints one machine at length. Of several it prints a line each, and at length only where
/// nothing is to be left out.
pub(super) fn print(
    out: &mut dyn Write,
    forecasts: &[Forecast],
    view: View,
) -> io::Result<()> {
    if let [forecast] = forecasts {
        return one(out, forecast, view);
    }
    let fleet = fleet::of(forecasts, view.now);
    write!(out, "{}", terminal::text(&fleet, view.screen))?;
    let shown = if view.is_complete { forecasts } else { &[] };
    for forecast in shown {
        writeln!(out)?;
        one(out, forecast, view)?;
    }
    Ok(())
}

fn one(out: &mut dyn Write, forecast: &Forecast, view: View) -> io::Result<()> {
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
    let most = if view.is_complete { usize::MAX } else { DAYS };
    if let Some(grid) = Grid::of(&forecast.schedule, forecast.span, most) {
        let now = forecast.schedule.time_zone().to_datetime(view.now);
        writeln!(out, "\n{}", grid.text(view.screen.width, now))?;
    }
    list::print(out, forecast, view)?;
    let span = forecast.span.to.as_second() - forecast.span.from.as_second();
    writeln!(
        out,
        "Wanted for {} of {}.",
        human::length(forecast.wanted_seconds),
        human::length(span)
    )
}

/// The schedule as it is written, in one line.
pub(super) fn rule(forecast: &Forecast) -> String {
    words::schedule(&forecast.rule)
}

//! The preview as text: one object with its days and changes, or a line for each of several.

use std::io::{self, Write};

use fivespot_dashboard::schedule_text;
use fivespot_drawing::terminal;
use fivespot_schedule::Duration;

use crate::plain;
use crate::preview::forecast::Forecast;
use crate::preview::grid::Grid;
use crate::preview::{Preview, ViewOptions, fleet, human, list};

/// The largest number of days of a grid without --all.
const DAYS: usize = 50;

/// Prints one machine and one capacity in detail. For several it prints a line for each, and the
/// details only with --all.
pub(super) fn print(
    out: &mut dyn Write,
    preview: &Preview,
    view: ViewOptions,
) -> io::Result<()> {
    print_objects(out, preview, view)?;
    if let Some(savings) = &preview.savings {
        write!(out, "\n{}", plain::lines(&savings.text()))?;
    }
    Ok(())
}

fn print_objects(
    out: &mut dyn Write,
    preview: &Preview,
    view: ViewOptions,
) -> io::Result<()> {
    let Preview {
        items: machines,
        capacities,
        not_evaluated,
        ..
    } = preview;
    let is_short =
        machines.len() <= 1 && capacities.len() <= 1 && not_evaluated.is_empty();
    if !is_short {
        let mut fleet = fleet::of(preview, view.now);
        // Each picture counts its rows: a value that is active is no machine that is wanted.
        let machines = fleet.rows.len().saturating_sub(capacities.len());
        let of_capacities = fleet.rows.split_off(machines);
        if machines > 0 {
            write!(out, "{}", terminal::text(&fleet, view.terminal))?;
        }
        if !of_capacities.is_empty() {
            if machines > 0 {
                writeln!(out)?;
            }
            fleet.rows = of_capacities;
            write!(out, "{}", terminal::text(&fleet, view.terminal))?;
        }
        for wrong in not_evaluated {
            writeln!(out, "{}", plain::line(&wrong.text()))?;
        }
        if !view.is_complete {
            for note in super::warnings(preview) {
                writeln!(out, "{}", plain::line(&note))?;
            }
            return Ok(());
        }
    }
    let mut is_first = is_short;
    for machine in machines {
        out.write_all(if is_first { b"" } else { b"\n" })?;
        is_first = false;
        print_machine(out, machine, view)?;
    }
    for capacity in capacities {
        out.write_all(if is_first { b"" } else { b"\n" })?;
        is_first = false;
        capacity.print(out, view.is_complete)?;
    }
    Ok(())
}

fn print_machine(
    out: &mut dyn Write,
    forecast: &Forecast,
    view: ViewOptions,
) -> io::Result<()> {
    writeln!(
        out,
        "{}/{}: {}",
        plain::line(&forecast.planned.namespace),
        plain::line(&forecast.planned.name),
        plain::line(&rule(forecast))
    )?;
    if let Some(off) = forecast.planned.off {
        return writeln!(out, "{}", off.sentence());
    }
    if forecast.is_audited {
        writeln!(
            out,
            "In audit mode (spec.enforcement is Audit): no machine is created for these windows."
        )?;
    }
    if let Some(sentence) = forecast.reclaimed() {
        writeln!(out, "{}", plain::line(sentence))?;
    }
    let most = if view.is_complete { usize::MAX } else { DAYS };
    let schedule = &forecast.planned.schedule;
    if let Some(grid) = Grid::of(schedule, forecast.span, most) {
        let now = schedule.time_zone().to_datetime(view.now);
        writeln!(out, "\n{}", grid.text(view.terminal.width, now))?;
    }
    list::print(out, forecast, view)?;
    for note in forecast.notes() {
        writeln!(out, "{}", plain::line(&note))?;
    }
    needed(out, forecast)?;
    let span = forecast.span.to.as_second() - forecast.span.from.as_second();
    writeln!(
        out,
        "Wanted for {} of {}.",
        human::length(forecast.wanted_seconds),
        human::length(span)
    )
}

/// Prints how much earlier machines are created and shut down, if so.
fn needed(out: &mut dyn Write, forecast: &Forecast) -> io::Result<()> {
    let schedule = &forecast.planned.schedule;
    let (lead_time, early_end) = (schedule.lead_time(), schedule.early_end());
    if lead_time > Duration::ZERO {
        writeln!(
            out,
            "Machines are created {lead_time} before they are wanted."
        )?;
    }
    if early_end > Duration::ZERO {
        writeln!(
            out,
            "Machines are shut down {early_end} before they are no longer wanted."
        )?;
    }
    Ok(())
}

/// A one-line description of the schedule as written.
pub(super) fn rule(forecast: &Forecast) -> String {
    schedule_text::schedule(&forecast.planned.object.spec.schedule)
}

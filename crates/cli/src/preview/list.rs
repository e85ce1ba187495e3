//! The changes of a machine as a list. Repetitions are combined and long lists are cut off.

use std::io::{self, Write};

use fivespot_drawing::ClockChange;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::plain;
use crate::preview::ViewOptions;
use crate::preview::forecast::{Forecast, Transition};
use crate::preview::human;
use crate::preview::span::Span;

/// The largest number of lines without --all.
const LINES: usize = 50;

/// The smallest number of equal windows that are combined: those after the first are one line.
const REPETITIONS: usize = 4;

/// The upper limit of the period of repetitions; longer periods are the days of a week.
const MAX_PERIOD: i64 = 86_400;

/// A line of the list.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) at: Timestamp,
    pub(super) text: String,
}

/// Prints the changes within the span.
pub(super) fn print(
    out: &mut dyn Write,
    forecast: &Forecast,
    view: ViewOptions,
) -> io::Result<()> {
    let span = forecast.span;
    let state = if forecast.wanted_at_from {
        "wanted"
    } else {
        "not wanted"
    };
    writeln!(out, "From {} ({state}) to {}:", span.from, span.to)?;
    let changes: Vec<Line> = if view.is_complete {
        forecast.transitions.iter().map(line).collect()
    } else {
        collapsed(&forecast.transitions)
    };
    let zone = forecast.planned.schedule.time_zone();
    print_lines(out, changes, zone, span, view.is_complete)?;
    if forecast.transitions.is_empty() {
        writeln!(out, "  {state} all the time")?;
    }
    Ok(())
}

/// Prints changes, and those of the clocks within the span, in their order.
pub(super) fn print_lines(
    out: &mut dyn Write,
    changes: impl IntoIterator<Item = Line>,
    zone: &TimeZone,
    span: Span,
    is_complete: bool,
) -> io::Result<()> {
    let clocks = ClockChange::all(zone, span.from, span.to).into_iter();
    let clocks = clocks.map(|change| Line {
        at: change.at,
        text: change.short_text(),
    });
    let mut lines: Vec<Line> = clocks.chain(changes).collect();
    lines.sort_by_key(|line| line.at);
    let shown = if is_complete { usize::MAX } else { LINES };
    for Line { at, text } in lines.iter().take(shown) {
        let local = human::local(&at.to_zoned(zone.clone()));
        writeln!(out, "  {local}  {at}  {}", plain::line(text))?;
    }
    if lines.len() > shown {
        let more = human::count(lines.len() - shown);
        writeln!(out, "  … {more} more; --all prints them")?;
    }
    Ok(())
}

fn line(change: &Transition) -> Line {
    let text = if change.wanted { "opens" } else { "closes" };
    let text = match &change.name {
        Some(name) => {
            let cause = change.cause.to_lowercase();
            format!("{text:6}  {cause} {}", plain::line(name))
        }
        None => text.to_owned(),
    };
    Line {
        at: change.time,
        text,
    }
}

/// The changes. Of windows that repeat within a day, the first is shown, and one line for the
/// others.
fn collapsed(changes: &[Transition]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = changes;
    while let Some(first) = rest.first() {
        let windows = repetitions(rest);
        let [opens, closes, again, ..] = rest else {
            lines.extend(rest.iter().map(line));
            break;
        };
        if windows < REPETITIONS {
            lines.push(line(first));
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let seconds = |one: &Transition, other: &Transition| {
            other.time.as_second() - one.time.as_second()
        };
        lines.extend([line(opens), line(closes)]);
        lines.push(Line {
            at: again.time,
            text: format!(
                "every {} for {}, {} times",
                human::length(seconds(opens, again)),
                human::length(seconds(opens, closes)),
                human::count(windows - 1)
            ),
        });
        rest = rest.get(2 * windows..).unwrap_or_default();
    }
    lines
}

/// The number of windows of equal length and period from the first change on. 0 if the first change
/// closes a window.
fn repetitions(changes: &[Transition]) -> usize {
    let [opens, closes, again, ..] = changes else {
        return 0;
    };
    let second = |change: &Transition| change.time.as_second();
    let period = second(again) - second(opens);
    if !opens.wanted || period >= MAX_PERIOD {
        return 0;
    }
    let is_next = |(number, pair): &(i64, &[Transition])| {
        let later = number * period;
        let [start, end] = pair else { return false };
        second(start) == second(opens) + later && second(end) == second(closes) + later
    };
    (0_i64..)
        .zip(changes.chunks_exact(2))
        .take_while(is_next)
        .count()
}

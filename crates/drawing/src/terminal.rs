//! The fleet as text for a terminal: one line for each machine, and a curve.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::fleet::{Fleet, Row, zone_name};
use crate::markup::shortened;
use crate::{ClockChange, Kind};

/// The width and the colours of a terminal.
#[derive(Clone, Copy, Debug)]
pub struct TerminalOptions {
    /// Its columns. Lines are not longer.
    pub width: usize,
    /// Whether it supports colours (the sequences of ECMA-48).
    pub colored: bool,
}

/// The most columns of a name.
const MAX_NAME_WIDTH: usize = 32;

/// The fewest columns of the bars, independent of the length of the names.
const MIN_BAR_WIDTH: usize = 24;

/// The character of a column in which nothing is planned.
const EMPTY: char = '·';

/// The character of a column that windows fill only in part.
const PARTIAL: char = '▄';

const CURVE_STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The picture as lines of text, each with a line feed.
///
/// Names must be free of control characters.
pub fn text(fleet: &Fleet, options: TerminalOptions) -> String {
    let layout = Layout::of(fleet, options);
    let mut out = String::new();
    let _ = writeln!(out, "{}", layout.title(fleet));
    let _ = writeln!(out, "{}", layout.days(fleet));
    for line in [layout.clock_changes(fleet), layout.now(fleet)]
        .into_iter()
        .flatten()
    {
        let _ = writeln!(out, "{line}");
    }
    for row in &fleet.rows {
        let name = shortened(&row.name, layout.names);
        let pad = layout.names - name.chars().count();
        let _ = writeln!(out, "{name}{:pad$}  {}", "", layout.bar(fleet, row));
    }
    let counts = fleet.wanted_per_column(layout.columns);
    let most = counts.iter().copied().max().unwrap_or(0);
    let label = shortened(&format!("wanted, max {most}"), layout.names);
    let pad = layout.names - label.chars().count();
    let curve: String = counts.iter().map(|count| step(*count, most)).collect();
    let curve = layout.paint(curve.trim_end(), AnsiColor::Cyan.on_default());
    let _ = writeln!(out, "{label}{:pad$}  {curve}", "");
    let _ = writeln!(out, "{}", layout.legend(fleet));
    out
}

/// The block character of height `count` of `most`. A count above zero is always visible.
fn step(count: u32, most: u32) -> char {
    let eighths = (u64::from(count) * 8).div_ceil(u64::from(most.max(1)));
    let index = usize::try_from(eighths).unwrap_or(8);
    CURVE_STEPS.get(index).copied().unwrap_or('█')
}

/// The style of the current time and of its column.
const NOW: Style = AnsiColor::Red.on_default().bold();

/// The style of a kind; grey if nothing is planned.
fn style(kind: Option<Kind>) -> Style {
    let color = match kind {
        None => AnsiColor::BrightBlack,
        Some(Kind::Window) => AnsiColor::Blue,
        Some(Kind::ExceptionRun) => AnsiColor::Green,
        Some(Kind::ExceptionStop) => AnsiColor::Yellow,
        Some(Kind::OverrideRun) => AnsiColor::Magenta,
        Some(_) => AnsiColor::Red,
    };
    color.on_default()
}

/// The arrangement of the columns on the screen.
struct Layout {
    names: usize,
    columns: usize,
    /// The length of a column in seconds.
    column: i64,
    from: i64,
    colored: bool,
}

impl Layout {
    fn of(fleet: &Fleet, options: TerminalOptions) -> Self {
        let longest = fleet.rows.iter().map(|row| row.name.chars().count());
        let label = "wanted, max 999".len();
        let most = MAX_NAME_WIDTH
            .min(options.width.saturating_sub(MIN_BAR_WIDTH + 2))
            .max(label);
        let names = longest.max().unwrap_or(0).clamp(label, most);
        let room = options.width.saturating_sub(names + 2).max(MIN_BAR_WIDTH);
        let from = fleet.from.as_second();
        let length = (fleet.to.as_second() - from).max(1);
        let room = i64::try_from(room).unwrap_or(i64::MAX);
        // Prefers a number of hours that divides a day, so that days begin at a column.
        let steps = [1, 2, 3, 4, 6, 8, 12, 24].map(|hours| hours * 3600);
        let fits = |step: &i64| (length + step - 1) / step <= room;
        let column = steps.into_iter().find(fits);
        let column = column.unwrap_or_else(|| (length / room / 86_400 + 1) * 86_400);
        let columns = usize::try_from((length + column - 1) / column).unwrap_or(0);
        Self {
            names,
            columns,
            column,
            from,
            colored: options.colored,
        }
    }

    fn paint(&self, text: &str, style: Style) -> String {
        if self.colored {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    fn title(&self, fleet: &Fleet) -> String {
        let hours = self.column / 3600;
        let (zone, form) = (&fleet.zone, "%a %F %H:%M");
        format!(
            "{} to {}, {}, {} a column",
            zone.to_datetime(fleet.from).strftime(form),
            zone.to_datetime(fleet.to).strftime(form),
            zone_name(zone),
            match hours {
                days if days % 24 == 0 => format!("{}d", days / 24),
                hours => format!("{hours}h"),
            },
        )
    }

    /// The column that contains an instant.
    fn column_of(&self, at: i64) -> usize {
        usize::try_from((at - self.from) / self.column).unwrap_or(0)
    }

    /// A line with texts at given columns. A text that would overlap the previous one is left out.
    fn labels(&self, texts: impl IntoIterator<Item = (usize, String)>) -> String {
        let mut line = " ".repeat(self.names + 2);
        let start = line.chars().count();
        for (column, text) in texts {
            let length = line.chars().count();
            let wanted = start + column;
            let is_free = length == start || length < wanted;
            if is_free && column + text.chars().count() <= self.columns {
                line.push_str(&" ".repeat(wanted.saturating_sub(length)));
                line.push_str(&text);
            }
        }
        line.trim_end().to_owned()
    }

    fn days(&self, fleet: &Fleet) -> String {
        let axis = crate::axis::Axis::of(fleet.from, fleet.to);
        let texts = axis.days(&fleet.zone).into_iter().map(|day| {
            let room = (86_400 / self.column).max(1);
            let form = if room >= 7 { "%a %-d" } else { "%-d" };
            let form = if room < 2 { "%-d %b" } else { form };
            (
                self.column_of(day.since),
                day.date.strftime(form).to_string(),
            )
        });
        let texts: Vec<(usize, String)> = texts.collect();
        // The label of a partial first day is left out if it would hide that of the next day.
        let is_short = match texts.as_slice() {
            [(start, first), (next, _), ..] => start + first.chars().count() >= *next,
            _ => false,
        };
        self.labels(texts.into_iter().skip(usize::from(is_short)))
    }

    fn clock_changes(&self, fleet: &Fleet) -> Option<String> {
        let changes = ClockChange::all(&fleet.zone, fleet.from, fleet.to);
        // More than two clock changes are not shown.
        (1..=2).contains(&changes.len()).then(|| {
            self.labels(changes.iter().map(|change| {
                let column = self.column_of(change.at.as_second());
                let text = format!("◆ {}", change.short_text());
                let last = self.columns.saturating_sub(text.chars().count());
                (column.min(last), text)
            }))
        })
    }

    fn now(&self, fleet: &Fleet) -> Option<String> {
        let now = self.column_of_now(fleet)?;
        let text = "▼ now";
        let marked = if now + text.chars().count() <= self.columns {
            (now, text.to_owned())
        } else {
            (now.saturating_sub(4), "now ▼".to_owned())
        };
        Some(self.paint(&self.labels([marked]), NOW))
    }

    fn column_of_now(&self, fleet: &Fleet) -> Option<usize> {
        let now = fleet
            .now
            .filter(|now| (fleet.from..fleet.to).contains(now))?;
        Some(self.column_of(now.as_second()))
    }

    /// The bar of a machine: the symbol of the kind that [`Self::cells`] returns for each column.
    fn bar(&self, fleet: &Fleet, row: &Row) -> String {
        let cells = self.cells(fleet, row);
        let now = self.column_of_now(fleet);
        let cells = cells
            .into_iter()
            .enumerate()
            .map(|(column, (kind, is_part))| {
                let is_now = now == Some(column);
                let symbol = match kind.and_then(Kind::symbol) {
                    Some('█') if is_part => PARTIAL,
                    Some(symbol) => symbol,
                    None if is_now => '│',
                    None => EMPTY,
                };
                (symbol, if is_now { NOW } else { style(kind) })
            });
        let mut bar = String::new();
        let (mut run, mut style) = (String::new(), Style::new());
        for (symbol, next) in cells {
            if next != style && !run.is_empty() {
                bar.push_str(&self.paint(&std::mem::take(&mut run), style));
            }
            style = next;
            run.push(symbol);
        }
        bar.push_str(&self.paint(&run, style));
        bar
    }

    /// For each column, the last kind in the order of [`Kind`] that occurs in it, so that an
    /// override hides the window that it changes, and whether it fills only part of the column.
    fn cells(&self, fleet: &Fleet, row: &Row) -> Vec<(Option<Kind>, bool)> {
        let mut seconds: Vec<(Option<Kind>, i64)> = vec![(None, 0); self.columns];
        for span in &row.planned {
            let part = span.clamped(self.from, fleet.to.as_second());
            let mut at = part.start;
            while at < part.end {
                let column = (at - self.from) / self.column;
                let next = (self.from + (column + 1) * self.column).min(part.end);
                if let Some(cell) = seconds.get_mut(self.column_of(at)) {
                    if cell.0 < Some(span.kind) {
                        *cell = (Some(span.kind), 0);
                    }
                    if cell.0 == Some(span.kind) {
                        cell.1 += next - at;
                    }
                }
                at = next;
            }
        }
        let whole = |seconds: i64| seconds >= self.column;
        seconds
            .into_iter()
            .map(|(kind, seconds)| (kind, !whole(seconds)))
            .collect()
    }

    fn legend(&self, fleet: &Fleet) -> String {
        let mut parts = vec![format!("{EMPTY} not wanted")];
        for kind in fleet.kinds() {
            if let Some(symbol) = kind.symbol() {
                parts.push(format!("{symbol} {}", kind.label()));
            }
            if kind == Kind::Window {
                parts.push(format!("{PARTIAL} part of the time"));
            }
        }
        let indent = " ".repeat(self.names + 2);
        let room = self.names + 2 + self.columns.max(MIN_BAR_WIDTH);
        let mut lines = indent.clone();
        let mut length = indent.len();
        for part in parts {
            let width = part.chars().count() + 2;
            if length > indent.len() && length + width - 2 > room {
                lines.truncate(lines.trim_end().len());
                lines.push('\n');
                lines.push_str(&indent);
                length = indent.len();
            }
            lines.push_str(&part);
            lines.push_str("  ");
            length += width;
        }
        lines.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::svg::tests::fleet;

    const PLAIN: TerminalOptions = TerminalOptions {
        width: 80,
        colored: false,
    };

    #[test]
    fn a_machine_is_one_line_and_nothing_is_wider_than_the_screen() {
        let mut fleet = fleet(3, 7);
        fleet.rows[1].planned[2].kind = Kind::ExceptionStop;
        fleet.rows[2].planned[3].kind = Kind::OverrideRun;
        fleet.rows[0].planned.truncate(3);
        let drawn = text(&fleet, PLAIN);
        assert!(
            drawn.lines().all(|line| line.chars().count() <= 80),
            "{drawn}"
        );
        insta::assert_snapshot!(drawn);
    }

    #[test]
    fn a_partial_first_day_does_not_hide_the_next_day() {
        let week = fleet(1, 7);
        let from = |hours: i64| Fleet {
            from: week.from + SignedDuration::from_hours(hours),
            ..week.clone()
        };
        let days = |hours: i64| {
            let drawn = text(&from(hours), PLAIN);
            drawn.lines().nth(1).unwrap().trim().to_owned()
        };
        assert!(days(0).starts_with("Fri 6 "), "{}", days(0));
        assert!(days(18).starts_with("Sat 7 "), "{}", days(18));
    }

    #[test]
    fn colours_do_not_change_the_text() {
        let plain = text(&fleet(2, 3), PLAIN);
        let options = TerminalOptions {
            colored: true,
            ..PLAIN
        };
        let mut shown = String::new();
        for (index, part) in text(&fleet(2, 3), options).split('\u{1b}').enumerate() {
            let skipped = if index == 0 {
                0
            } else {
                part.find('m').unwrap() + 1
            };
            shown.push_str(&part[skipped..]);
        }
        assert_eq!(shown, plain);
    }

    #[test]
    fn any_width_and_any_length_of_time_are_drawn() {
        for width in [0, 20, 60, 200] {
            for days in [1, 30, 3650] {
                let options = TerminalOptions { width, ..PLAIN };
                let drawn = text(&fleet(1, days), options);
                let longest =
                    drawn.lines().skip(1).map(|line| line.chars().count()).max();
                assert!(longest <= Some(width.max(48)), "{width}, {days}:\n{drawn}");
            }
        }
    }
}

//! The fleet as SVG: a self-contained file, or the parts of a page.

pub(crate) mod legend;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

use crate::axis::{Axis, Day};
use crate::fleet::{Fleet, Row, Span, zone_name};
use crate::markup::{escape, px, shortened};
use crate::{ClockChange, Kind, style};

/// The height of a row, and of a line in the list of names next to it.
pub const ROW: u32 = 22;

/// The height above the first row: days, hours, current time.
pub const HEAD: u32 = 46;

/// The height below the last row: the curve of wanted machines.
pub const FOOT: u32 = 92;

/// The position of observed spans in a row.
const OBSERVED: Strip = Strip {
    y: 16.5,
    height: 4.0,
};

/// The width to the right of the plot in a page.
const MARGIN: f64 = 8.0;

/// The prefix of all ids.
const PREFIX: &str = "fleet-";

/// The most characters of a name.
const MAX_NAME_CHARS: usize = 34;

/// The whole picture as a self-contained file: names, bars, curve and legend.
///
/// All rows have the same height. Changes that are closer together than a column are drawn as the
/// share of the column, so that the size of the file is bounded by rows and columns.
pub fn document(fleet: &Fleet) -> String {
    let axis = Axis::of(fleet.from, fleet.to);
    let names = names_width(fleet);
    let width = (names + axis.width() + 24.0).max(480.0);
    let counts = fleet.counts();
    let (legend, legend_height) = legend::lines(fleet, width - 24.0);
    let top = 40;
    let height = top + plot_height(fleet) + legend_height + 12;
    let mut out = String::new();
    let _ = write!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="fivespot" width="{w}" height="{height}" viewBox="0 0 {w} {height}" role="img" aria-labelledby="{PREFIX}title {PREFIX}desc"><title id="{PREFIX}title">{}</title><desc id="{PREFIX}desc">{}</desc><style>{}</style>"#,
        escape(&fleet.title),
        escape(&fleet.description()),
        style::sheet(),
        w = px(width),
    );
    let _ = write!(
        out,
        r#"<rect class="bg" width="100%" height="100%"/><text class="ink title" x="12" y="26">{}<tspan class="soft small" dx="12">{}</tspan></text>"#,
        escape(&fleet.title),
        escape(zone_name(&fleet.zone)),
    );
    let _ = write!(out, r#"<g transform="translate(12,{top})">"#);
    name_texts(&mut out, fleet, &counts);
    let _ = write!(
        out,
        r#"</g><g transform="translate({},{top})">"#,
        px(names + 12.0)
    );
    plot(&mut out, fleet, axis, &counts);
    out.push_str("</g>");
    let _ = write!(
        out,
        r#"<g transform="translate(12,{})">{legend}</g></svg>"#,
        top + plot_height(fleet) + 6
    );
    out.push('\n');
    out
}

/// The bars without names and legend, for a page that has [`style::sheet`] and lists the names at
/// the left, each [`ROW`] high, beginning [`HEAD`] below the top. `counts` are those of the fleet.
pub(crate) fn bars(fleet: &Fleet, counts: &[u32]) -> String {
    let available = fleet.width.map_or(0.0, |width| f64::from(width) - MARGIN);
    let axis = Axis::of(fleet.from, fleet.to).at_least(available);
    let (width, height) = (px(axis.width() + MARGIN), plot_height(fleet));
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="fivespot" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{PREFIX}title {PREFIX}desc"><title id="{PREFIX}title">{}</title><desc id="{PREFIX}desc">{}</desc>"#,
        escape(&fleet.title),
        escape(&fleet.description()),
    );
    plot(&mut out, fleet, axis, counts);
    out.push_str("</svg>");
    out
}

/// The vertical position within a row, in pixels from its top.
#[derive(Clone, Copy, Debug)]
struct Strip {
    y: f64,
    height: f64,
}

fn rows_height(fleet: &Fleet) -> u32 {
    u32::try_from(fleet.rows.len())
        .unwrap_or(u32::MAX / ROW)
        .saturating_mul(ROW)
}

fn plot_height(fleet: &Fleet) -> u32 {
    HEAD + rows_height(fleet) + FOOT
}

#[expect(clippy::cast_precision_loss, reason = "at most 34 characters")]
fn names_width(fleet: &Fleet) -> f64 {
    let longest = fleet
        .rows
        .iter()
        .map(|row| row.name.chars().count().min(MAX_NAME_CHARS));
    (longest.max().unwrap_or(0) as f64 * 7.0 + 14.0).max(128.0)
}

fn name_texts(out: &mut String, fleet: &Fleet, counts: &[u32]) {
    for (row, y) in fleet.rows.iter().zip((HEAD + 15..).step_by(ROW as usize)) {
        let name = escape(&shortened(&row.name, MAX_NAME_CHARS));
        let _ = write!(out, r#"<text class="ink" x="0" y="{y}">{name}</text>"#);
    }
    let y = HEAD + rows_height(fleet) + 34;
    let _ = write!(
        out,
        r#"<text class="ink strong" x="0" y="{y}">machines wanted</text><text class="ink small" x="0" y="{}">at most {}</text>"#,
        y + 16,
        max_count(counts)
    );
}

/// The plot, to the right of the names.
fn plot(out: &mut String, fleet: &Fleet, axis: Axis, counts: &[u32]) {
    out.push_str(&style::patterns(PREFIX, &fleet.kinds()));
    let days = axis.days(&fleet.zone);
    let bottom = HEAD + rows_height(fleet) + FOOT - 14;
    background(out, axis, &days, bottom);
    day_labels(out, fleet, axis, &days);
    let is_observed = fleet.is_observed();
    for (row, y) in fleet.rows.iter().zip((HEAD..).step_by(ROW as usize)) {
        let _ = write!(
            out,
            r#"<g transform="translate(0,{y})"><title>{}: {}</title>"#,
            escape(&row.name),
            escape(&row.note)
        );
        let height = if is_observed { 11.0 } else { 14.0 };
        bars_of(out, axis, &row.planned, Strip { y: 4.0, height });
        bars_of(out, axis, &row.observed, OBSERVED);
        if row.zone != fleet.zone {
            clock_marks(out, axis, row);
        }
        out.push_str("</g>");
    }
    clock_lines(out, fleet, axis, bottom);
    curve(out, fleet, axis, counts);
    now_line(out, fleet, axis, bottom);
}

fn background(out: &mut String, axis: Axis, days: &[Day], bottom: u32) {
    let height = bottom - HEAD;
    for day in days.iter().filter(|day| day.is_weekend()) {
        let (x, width) = (axis.x(day.since), axis.length(day.until - day.since));
        let _ = write!(
            out,
            r#"<rect class="weekend" x="{}" y="{HEAD}" width="{}" height="{height}"/>"#,
            px(x),
            px(width)
        );
    }
    let mut hours = String::new();
    // Hour lines that are closer together than this would be a grey area.
    let step = match axis.hour {
        wide if wide >= 6.0 => 1,
        middle if middle >= 2.0 => 6,
        _ => 0,
    };
    for day in days.iter().filter(|_| step > 0) {
        let mut at = day.since + step * 3600;
        while at < day.until {
            let _ = write!(hours, "M{} {HEAD}V{bottom}", px(axis.x(at)));
            at += step * 3600;
        }
    }
    let mut starts = String::new();
    for day in days {
        let _ = write!(starts, "M{} {}V{bottom}", px(axis.x(day.since)), HEAD - 8);
    }
    let _ = write!(
        out,
        r#"<path class="line-hour" d="{hours}"/><path class="line-day" d="{starts}"/>"#
    );
}

/// Dates along the top if there is room, and hours below them.
fn day_labels(out: &mut String, fleet: &Fleet, axis: Axis, days: &[Day]) {
    let day = axis.length(86_400);
    let mut free_from = f64::MIN;
    for it in days {
        let date = it.date;
        let text = match day {
            wide if wide >= 90.0 => date.strftime("%a %-d %b").to_string(),
            _ if date.day() == 1 || free_from < 0.0 => {
                date.strftime("%-d %b %Y").to_string()
            }
            _ => date.strftime("%-d %b").to_string(),
        };
        let x = axis.x(it.since);
        let width = axis.length(it.until - it.since);
        let needed = if day >= 40.0 { 0.0 } else { 74.0 };
        if x < free_from || (day >= 40.0 && width < 40.0) || axis.width() - x < 40.0 {
            continue;
        }
        free_from = x + needed;
        let _ = write!(
            out,
            r#"<text class="ink small" x="{}" y="26">{text}</text>"#,
            px(x + 3.0)
        );
        if axis.hour >= 5.0 {
            hour_labels(out, fleet, axis, it);
        }
    }
}

/// The hours of the day in local time.
fn hour_labels(out: &mut String, fleet: &Fleet, axis: Axis, day: &Day) {
    let step: i8 = if axis.hour >= 16.0 { 1 } else { 6 };
    for hour in (1..24).filter(|hour| hour % step == 0) {
        let Ok(at) = day.date.at(hour, 0, 0, 0).to_zoned(fleet.zone.clone()) else {
            continue;
        };
        let second = at.timestamp().as_second();
        if at.hour() != hour || second <= day.since || second >= day.until {
            continue;
        }
        let _ = write!(
            out,
            r#"<text class="soft small" x="{}" y="40" text-anchor="middle">{hour:02}</text>"#,
            px(axis.x(second))
        );
    }
}

/// Draws the spans of a row: one path for each kind and name.
fn bars_of(out: &mut String, axis: Axis, spans: &[Span], strip: Strip) {
    let mut paths: BTreeMap<(Kind, &str), Vec<&Span>> = BTreeMap::new();
    for span in spans {
        if !span.clamped(axis.from, axis.to).is_empty() {
            paths
                .entry((span.kind, span.name.as_str()))
                .or_default()
                .push(span);
        }
    }
    for ((kind, name), spans) in paths {
        let mut line = String::new();
        if spans.len() > axis.columns() {
            shares(&mut line, axis, &spans, strip);
        } else {
            for span in &spans {
                let part = span.clamped(axis.from, axis.to);
                let width = axis.length(part.end - part.start);
                bar(&mut line, axis.x(part.start), width, strip);
            }
        }
        let attributes = style::fill(PREFIX, kind);
        if name.is_empty() {
            let _ = write!(out, r#"<path{attributes} d="{line}"/>"#);
        } else {
            let title = escape(&format!("{} ({name})", kind.label()));
            let _ = write!(
                out,
                r#"<path{attributes} d="{line}"><title>{title}</title></path>"#
            );
        }
    }
}

/// Draws a rectangle, with a minimum width so that it stays visible.
fn bar(line: &mut String, x: f64, width: f64, strip: Strip) {
    let width = width.max(0.7);
    let _ = write!(
        line,
        "M{} {}h{w}v{}h-{w}z",
        px(x),
        px(strip.y),
        px(strip.height),
        w = px(width)
    );
}

/// If there are more spans than columns, draws for each column a bar as high as its share.
#[expect(clippy::cast_precision_loss, reason = "seconds of a column")]
fn shares(line: &mut String, axis: Axis, spans: &[&Span], strip: Strip) {
    let mut seconds = vec![0; axis.columns()];
    for span in spans {
        let part = span.clamped(axis.from, axis.to);
        let mut at = part.start;
        while at < part.end {
            let column = (at - axis.from) / axis.column();
            let next = (axis.from + (column + 1) * axis.column()).min(part.end);
            let index = usize::try_from(column).unwrap_or(usize::MAX);
            if let Some(seconds) = seconds.get_mut(index) {
                *seconds += next - at;
            }
            at = next;
        }
    }
    let width = axis.length(axis.column());
    let mut x = 0.0;
    let (mut start, mut before) = (0.0, 0.0);
    for seconds in seconds.into_iter().chain([0]) {
        // Differences of less than a tenth are not visible.
        let share = (seconds as f64 / axis.column() as f64 * 10.0).ceil() / 10.0;
        if (share - before).abs() > f64::EPSILON || x + width > axis.width() {
            let height = strip.height * before;
            if height > 0.0 {
                let y = strip.y + strip.height - height;
                bar(line, start, x - start, Strip { y, height });
            }
            (start, before) = (x, share);
        }
        x += width;
    }
}

/// Marks the clock changes of a row with another zone than the picture.
fn clock_marks(out: &mut String, axis: Axis, row: &Row) {
    for change in clock_changes(axis, &row.zone) {
        let x = px(axis.x(change.at.as_second()) - 3.5);
        let _ = write!(
            out,
            r#"<path class="clock-mark" d="M{x} 11l3.5 -4l3.5 4l-3.5 4z"><title>{}</title></path>"#,
            escape(&change.text())
        );
    }
}

fn clock_lines(out: &mut String, fleet: &Fleet, axis: Axis, bottom: u32) {
    for change in clock_changes(axis, &fleet.zone) {
        let x = axis.x(change.at.as_second());
        let anchor = if x > axis.width() - 70.0 {
            "end"
        } else {
            "start"
        };
        let _ = write!(
            out,
            r#"<path class="clock" d="M{x} {top}V{bottom}"/><path class="clock-mark" d="M{left} 10l4 -4.5l4 4.5l-4 4.5z"><title>{long}</title></path><text class="ink small" x="{text}" y="13" text-anchor="{anchor}">{short}</text>"#,
            x = px(x),
            // Below the dates and the hours, so that the line does not cross them.
            top = HEAD - 3,
            left = px(x - 4.0),
            text = px(if anchor == "end" { x - 7.0 } else { x + 7.0 }),
            long = escape(&change.text()),
            short = change.short_text(),
        );
    }
}

/// The clock changes of a zone within the picture. Empty if the columns are too narrow to
/// distinguish them.
fn clock_changes(axis: Axis, zone: &jiff::tz::TimeZone) -> Vec<ClockChange> {
    let at = |second| Timestamp::from_second(second).unwrap_or_default();
    if axis.hour < 0.5 {
        return Vec::new();
    }
    ClockChange::all(zone, at(axis.from), at(axis.to))
}

/// The maximum of the curve.
pub(crate) fn max_count(counts: &[u32]) -> u32 {
    counts.iter().copied().max().unwrap_or(0)
}

/// Draws the number of wanted machines as steps above a base line.
fn curve(out: &mut String, fleet: &Fleet, axis: Axis, counts: &[u32]) {
    let most = max_count(counts);
    let top = f64::from(HEAD + rows_height(fleet) + 24);
    let height = f64::from(FOOT - 24 - 14);
    let base = top + height;
    let level = |count: u32| base - height * f64::from(count) / f64::from(most.max(1));
    let mut line = format!("M0 {}", px(level(counts.first().copied().unwrap_or(0))));
    let mut before = counts.first().copied().unwrap_or(0);
    for (count, column) in counts.iter().zip(0_i64..).skip(1) {
        if *count != before {
            let x = axis.x(axis.from + column * axis.column());
            let _ = write!(line, "H{}V{}", px(x), px(level(*count)));
            before = *count;
        }
    }
    let _ = write!(line, "H{}", px(axis.width()));
    let _ = write!(
        out,
        r#"<path class="line-hour" d="M0 {t}H{w}"/><path class="curve" d="{line}V{b}H0z"/><path class="curve-line" d="{line}"/><path class="line-day" d="M0 {b}H{w}"/>"#,
        t = px(top),
        b = px(base),
        w = px(axis.width()),
    );
}

fn is_shown(axis: Axis, at: Timestamp) -> bool {
    (axis.from..axis.to).contains(&at.as_second())
}

fn now_line(out: &mut String, fleet: &Fleet, axis: Axis, bottom: u32) {
    let Some(now) = fleet.now.filter(|now| is_shown(axis, *now)) else {
        return;
    };
    let x = axis.x(now.as_second());
    let anchor = if x > axis.width() - 70.0 {
        "end"
    } else {
        "start"
    };
    let text = fleet.zone.to_datetime(now).strftime("%H:%M");
    let _ = write!(
        out,
        r#"<path class="line-now" d="M{x} {top}V{bottom}"/><path class="now" d="M{left} {up}h8l-4 6z"/><text class="now small strong" x="{label}" y="{y}" text-anchor="{anchor}">now {text}</text>"#,
        x = px(x),
        top = HEAD - 4,
        left = px(x - 4.0),
        up = HEAD - 5,
        label = px(if anchor == "end" { x - 4.0 } else { x + 4.0 }),
        y = bottom + 12,
    );
}

#[cfg(test)]
pub(crate) mod tests;

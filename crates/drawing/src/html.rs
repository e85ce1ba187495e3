//! The fleet as HTML: a self-contained file, or the parts of a page.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::fleet::{Fleet, Row, zone_name};
use crate::markup::escape;
use crate::{style, svg};

/// The largest number of spans of a machine that the table lists.
const MAX_SPANS: usize = 7;

/// The style sheet of [`figure`] and [`table`], in addition to [`style::sheet`].
pub const SHEET: &str = include_str!("html.css");

/// The whole picture as a self-contained file: bars, curve, legend, and a table.
pub fn document(fleet: &Fleet) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{SHEET}{}</style></head><body><main><h1>{title}</h1>\
         <p>{}</p>{}<h2>As a table</h2>{}</main></body></html>\n",
        style::sheet(),
        escape(&fleet.description()),
        figure(fleet),
        table(fleet),
        title = escape(&fleet.title),
    )
}

/// The picture with its names and its legend, for a page that has [`SHEET`] and [`style::sheet`]. A
/// name is a link if its row has one.
pub fn figure(fleet: &Fleet) -> String {
    let counts = fleet.counts();
    let mut out = String::from(r#"<figure><div class="fleet"><ol class="names">"#);
    for row in &fleet.rows {
        let (name, note) = (escape(&row.name), escape(&row.note));
        let _ = match &row.link {
            _ if row.is_heading => write!(out, r#"<li class="group">{name}</li>"#),
            Some(link) => write!(
                out,
                r#"<li><a href="{}" title="{note}">{name}</a></li>"#,
                escape(link)
            ),
            None => write!(out, r#"<li title="{note}">{name}</li>"#),
        };
    }
    let _ = write!(
        out,
        r#"<li class="wanted">machines wanted<span>at most {}</span></li></ol><div class="scroll" id="week" role="region" aria-label="{}" tabindex="0">{}</div></div><figcaption><ul class="legend">"#,
        svg::max_count(&counts),
        escape(&fleet.title),
        svg::bars(fleet, &counts),
    );
    for (mark, label) in svg::legend::marks(fleet) {
        let _ = write!(
            out,
            r#"<li><svg class="fivespot" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">{mark}</svg>{label}</li>"#
        );
    }
    out.push_str("</ul></figcaption></figure>");
    out
}

/// The schedules as a table: a line for each machine with its first spans.
pub fn table(fleet: &Fleet) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" role=\"region\" aria-label=\"The schedules as a table\" tabindex=\"0\">\
         <table><thead><tr><th scope=\"col\">Machine</th><th scope=\"col\">Schedule</th>\
         <th scope=\"col\" class=\"number\">Hours wanted</th><th scope=\"col\">When</th></tr>\
         </thead><tbody>",
    );
    for row in &fleet.rows {
        if row.is_heading {
            let name = escape(&row.name);
            let _ = write!(
                out,
                r#"<tr><th scope="rowgroup" colspan="4">{name}</th></tr>"#
            );
            continue;
        }
        let seconds = row.wanted_seconds(fleet.from, fleet.to);
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>",
            escape(&row.name),
            escape(&row.note),
            hours(seconds),
            escape(&span_list(fleet, row)),
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

/// Seconds as hours with at most one decimal: `9`, `37.5`.
fn hours(seconds: i64) -> String {
    let tenths = (seconds + 180) / 360;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// The first spans of a row, in the local time of the picture.
fn span_list(fleet: &Fleet, row: &Row) -> String {
    let (from, to) = (fleet.from.as_second(), fleet.to.as_second());
    let mut shown: Vec<_> = row
        .planned
        .iter()
        .filter(|span| !span.clamped(from, to).is_empty())
        .collect();
    shown.sort_by_key(|span| span.since);
    if shown.is_empty() {
        return "not wanted".to_owned();
    }
    let mut out = String::new();
    for span in shown.iter().take(MAX_SPANS) {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&time_range(span.since, span.until, &fleet.zone));
        if span.kind != crate::Kind::Window {
            let _ = write!(out, " {}", span.kind.label());
        }
        if !span.name.is_empty() {
            let _ = write!(out, " ({})", span.name);
        }
    }
    if shown.len() > MAX_SPANS {
        let _ = write!(out, " and {} more", shown.len() - MAX_SPANS);
    }
    let _ = write!(out, "; {}", zone_name(&fleet.zone));
    out
}

/// `Mon 9 Mar 09:00 to 18:00`, with the end date if it differs.
fn time_range(since: Timestamp, until: Timestamp, zone: &TimeZone) -> String {
    let (since, until) = (zone.to_datetime(since), zone.to_datetime(until));
    let form = if since.date() == until.date() {
        "%H:%M"
    } else {
        "%a %-d %b %H:%M"
    };
    format!(
        "{} to {}",
        since.strftime("%a %-d %b %H:%M"),
        until.strftime(form)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::tests::fleet;

    #[test]
    fn the_file_is_self_contained() {
        let page = document(&fleet(2, 7));
        for asset in ["http:", "https:", "<script", "<link", "@import", "src="] {
            let page = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!page.contains(asset), "{asset}");
        }
    }

    #[test]
    fn the_same_is_said_in_words() {
        let table = table(&fleet(1, 9));
        insta::assert_snapshot!(table.replace("><", ">\n<"));
    }
}

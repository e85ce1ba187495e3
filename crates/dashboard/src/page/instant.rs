//! Instants and lengths of time as the pages show them.

use fivespot_drawing::distance;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

/// `Mon 9 Mar 09:00 EDT`, in the local time of a zone.
pub(crate) fn local(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone())
        .strftime("%a %-d %b %H:%M %Z")
        .to_string()
}

/// How far away an instant is, and when it is in a zone.
pub(crate) fn instant_and_distance(
    at: Timestamp,
    zone: &TimeZone,
    now: Timestamp,
) -> Markup {
    html! {
        span.nowrap { (relative(now, at)) }
        " " span.soft.nowrap { "(" (local(at, zone)) ")" }
    }
}

/// The sentence about the zone of a page.
pub(crate) fn whose_times(zone: &TimeZone) -> String {
    format!("Times are those of {}.", zone.iana_name().unwrap_or("UTC"))
}

/// A text in which the instants of UTC, as the operator writes them, are in the local time of a zone.
pub(crate) fn in_zone(text: &str, zone: &TimeZone) -> Markup {
    html! {
        @for part in parts(text) {
            @match part {
                Part::Instant(written, at) => {
                    time datetime=(written) title=(written) { (local(at, zone)) }
                }
                Part::Other(text) => (text),
            }
        }
    }
}

/// The same without markup.
pub(crate) fn text_in_zone(text: &str, zone: &TimeZone) -> String {
    let parts = parts(text).into_iter().map(|part| match part {
        Part::Instant(_, at) => local(at, zone),
        Part::Other(text) => text.to_owned(),
    });
    parts.collect()
}

/// A part of a message.
enum Part<'t> {
    /// An instant, as it is written.
    Instant(&'t str, Timestamp),
    Other(&'t str),
}

/// The parts of a message, in order.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = 0;
    for (last, _) in text.match_indices('Z') {
        let first = (last + 1).saturating_sub(INSTANT.len());
        let found = text.get(first..=last).filter(|_| first >= rest);
        let Some((found, at)) = found.and_then(|it| Some((it, instant(it)?))) else {
            continue;
        };
        parts.push(Part::Other(text.get(rest..first).unwrap_or_default()));
        parts.push(Part::Instant(found, at));
        rest = last + 1;
    }
    parts.push(Part::Other(text.get(rest..).unwrap_or_default()));
    parts
}

/// The form of instants in the operator's messages.
const INSTANT: &str = "2026-03-06T23:00:00Z";

/// An instant in that form.
fn instant(text: &str) -> Option<Timestamp> {
    let is_in_form = text.len() == INSTANT.len()
        && text
            .bytes()
            .zip(INSTANT.bytes())
            .all(|(one, form)| one.is_ascii_digit() == form.is_ascii_digit());
    text.parse().ok().filter(|_| is_in_form)
}

/// How far away an instant is.
pub(crate) fn relative(now: Timestamp, at: Timestamp) -> String {
    distance(at.duration_since(now))
}

//! The preview as an iCalendar file (RFC 5545): an event for each window.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::Offset;

use crate::preview::Preview;
use crate::preview::forecast::Window;

/// The largest number of bytes of a line before it must be folded.
const MAX_LINE_BYTES: usize = 75;

/// Prints one calendar for all objects. Times are in UTC, so that no time zone definition is
/// needed. A window that crosses an end of the span is cut off there.
pub(super) fn print(
    out: &mut dyn Write,
    preview: &Preview,
    now: Timestamp,
) -> io::Result<()> {
    line(out, "BEGIN:VCALENDAR")?;
    line(out, "VERSION:2.0")?;
    line(out, "PRODID:-//finos//5-spot//EN")?;
    for machine in &preview.items {
        let title = format!("{}/{}", machine.planned.namespace, machine.planned.name);
        let summary = format!("{title} in service");
        events(out, [&title, &summary], &machine.windows(), now)?;
    }
    for capacity in &preview.capacities {
        let title = format!(
            "{}/scap/{}",
            capacity.planned.namespace, capacity.planned.name
        );
        let summary = format!("{title} {}", capacity.values(true));
        events(out, [&title, &summary], &capacity.windows(), now)?;
    }
    line(out, "END:VCALENDAR")
}

/// Prints an event for each window of the object with that title.
fn events(
    out: &mut dyn Write,
    [title, summary]: [&str; 2],
    windows: &[Window],
    now: Timestamp,
) -> io::Result<()> {
    for window in windows {
        let since = basic(window.since);
        line(out, "BEGIN:VEVENT")?;
        line(
            out,
            &format!("UID:{since}.{}@5spot.finos.org", escape(title)),
        )?;
        line(out, &format!("DTSTAMP:{}", basic(now)))?;
        line(out, &format!("DTSTART:{since}"))?;
        line(out, &format!("DTEND:{}", basic(window.until)))?;
        line(out, &format!("SUMMARY:{}", escape(summary)))?;
        line(out, "TRANSP:TRANSPARENT")?;
        line(out, "END:VEVENT")?;
    }
    Ok(())
}

/// `20260309T130000Z`: an instant in the basic format.
fn basic(at: Timestamp) -> String {
    Offset::UTC
        .to_datetime(at)
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string()
}

/// Escapes a text value: backslash, semicolon, comma and line breaks are special characters.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | ';' | ',' => escaped.extend(['\\', letter]),
            '\n' => escaped.push_str("\\n"),
            control if control.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// Prints a content line. A line that is too long is folded: its continuation begins with a space.
fn line(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let mut length = 0;
    for letter in text.chars() {
        if length + letter.len_utf8() > MAX_LINE_BYTES {
            write!(out, "\r\n ")?;
            length = 1;
        }
        write!(out, "{letter}")?;
        length += letter.len_utf8();
    }
    write!(out, "\r\n")
}

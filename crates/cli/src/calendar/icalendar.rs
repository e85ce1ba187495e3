//! The part of RFC 5545 that holidays need: events with dates, each once or yearly.

use std::collections::BTreeSet;

use fivespot_api::CalendarDate;
use jiff::civil::Date;

/// The longest name of an entry: a DNS label.
const MAX_NAME_CHARS: usize = 63;

/// The properties of an event that were read so far.
#[derive(Debug, Default)]
struct Event {
    summary: String,
    start: Option<Date>,
    /// The first date after the event: DTEND, or the day after it if DTEND has a time after
    /// midnight.
    end: Option<Date>,
    is_yearly: bool,
}

/// Returns an entry for each event, in their order.
///
/// # Errors
/// The reason why the text is not valid, with the line.
pub(super) fn dates(text: &str) -> Result<Vec<CalendarDate>, String> {
    let lines = unfolded(text);
    let mut names = BTreeSet::new();
    let mut dates = Vec::new();
    let mut event: Option<Event> = None;
    for (number, line) in &lines {
        let Some((property, value)) = line.split_once(':') else {
            continue;
        };
        let property = property.split(';').next().unwrap_or_default();
        match (property.to_ascii_uppercase().as_str(), value, &mut event) {
            ("BEGIN", "VEVENT", _) => event = Some(Event::default()),
            ("END", "VEVENT", found) => {
                if let Some(event) = found.take() {
                    let entry = event.entry(&mut names);
                    let unread =
                        |why| format!("the event that ends in line {number} {why}");
                    dates.push(entry.map_err(unread)?);
                }
            }
            (property, value, Some(event)) => event
                .set(property, value)
                .map_err(|why| format!("line {number}: {why}"))?,
            _ => {}
        }
    }
    if !lines
        .iter()
        .any(|(_, line)| line.eq_ignore_ascii_case("BEGIN:VCALENDAR"))
    {
        return Err("it is not an iCalendar file: BEGIN:VCALENDAR is missing".to_owned());
    }
    Ok(dates)
}

/// The content lines with the number of the line on which each begins. A line that begins with
/// white space continues the previous one.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some((_, last))) => last.push_str(rest),
            _ => lines.push((number, line.trim_end().to_owned())),
        }
    }
    lines
}

impl Event {
    fn set(&mut self, property: &str, value: &str) -> Result<(), String> {
        match property {
            "SUMMARY" => value.clone_into(&mut self.summary),
            "DTSTART" => self.start = Some(date(value)?.0),
            "DTEND" => {
                let (date, is_within) = date(value)?;
                let after = date.tomorrow().map_err(|error| error.to_string())?;
                self.end = Some(if is_within { after } else { date });
            }
            "RRULE" => {
                let is_plain = |part: &str| {
                    part == "FREQ=YEARLY"
                        || part == "INTERVAL=1"
                        || part.starts_with("WKST=")
                        || part.starts_with("BYMONTH=")
                        || part.starts_with("BYMONTHDAY=")
                };
                if !value.split(';').all(is_plain) || !value.contains("FREQ=YEARLY") {
                    return Err(format!("'{value}' is not a yearly date"));
                }
                self.is_yearly = true;
            }
            "RDATE" | "EXDATE" | "EXRULE" => {
                return Err(format!("{property} is not supported"));
            }
            _ => {}
        }
        Ok(())
    }

    fn entry(self, names: &mut BTreeSet<String>) -> Result<CalendarDate, String> {
        let start = self.start.ok_or("has no DTSTART")?;
        let last = match self.end {
            Some(end) if end > start => end.yesterday().map_err(|it| it.to_string())?,
            _ => start,
        };
        if self.is_yearly && last != start {
            return Err("repeats and has several dates; give it one date".to_owned());
        }
        let mut entry = CalendarDate {
            name: unique(&label(&self.summary), names),
            ..CalendarDate::default()
        };
        if self.is_yearly {
            entry.date = Some(start.strftime("%m-%d").to_string());
        } else if last == start {
            entry.date = Some(start.to_string());
        } else {
            entry.start_date = Some(start.to_string());
            entry.end_date = Some(last.to_string());
        }
        Ok(entry)
    }
}

/// The date of `20261225` or `20261225T120000Z`, and whether there is a time after midnight.
fn date(value: &str) -> Result<(Date, bool), String> {
    let (day, time) = value.split_once('T').unwrap_or((value, ""));
    let fault = || format!("'{value}' is not a date such as 20261225");
    let is_date = day.len() == 8 && day.bytes().all(|it| it.is_ascii_digit());
    let date = is_date
        .then(|| Date::strptime("%Y%m%d", day).ok())
        .flatten();
    let is_within = time.bytes().any(|it| matches!(it, b'1'..=b'9'));
    Ok((date.ok_or_else(fault)?, is_within))
}

/// A DNS label of a text: lower-case letters and digits, everything else as one `-`.
fn label(text: &str) -> String {
    let mut label = String::new();
    for letter in text.chars() {
        let letter = letter.to_ascii_lowercase();
        if letter.is_ascii_lowercase() || letter.is_ascii_digit() {
            label.push(letter);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    // Room for a number behind it.
    label.truncate(MAX_NAME_CHARS - 4);
    let label = label.trim_end_matches('-');
    if label.is_empty() { "date" } else { label }.to_owned()
}

fn unique(label: &str, names: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number: u32| format!("{label}-{number}"));
    let mut candidates = std::iter::once(label.to_owned()).chain(numbered);
    let name = candidates.find(|name| !names.contains(name));
    let name = name.unwrap_or_else(|| label.to_owned());
    names.insert(name.clone());
    name
}

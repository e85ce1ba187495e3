//! The part of RFC 5545 that holidays need: events with dates, each once or yearly.

use std::collections::BTreeSet;

use fivespot_api::CalendarDate;
use fivespot_api::schedule_calendar::MAX_DATES;
use jiff::Span;
use jiff::civil::{Date, DateTime, Time};

/// The longest name of an entry: a DNS label.
const MAX_NAME_CHARS: usize = 63;

/// The events of a file.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// An entry for each event, in their order.
    pub(super) dates: Vec<CalendarDate>,
    /// The summaries of the events that are cancelled. They have no entry.
    pub(super) cancelled: Vec<String>,
}

/// A property of an event.
#[derive(Debug)]
struct Property {
    line: usize,
    /// In upper case, without parameters.
    name: String,
    value: String,
}

/// Reads the events of a file.
///
/// # Errors
/// The reason why the text is not valid, with the line.
pub(super) fn events(text: &str) -> Result<Events, String> {
    let mut names = BTreeSet::new();
    let mut events = Events::default();
    // The components that have begun, the outermost first. Each has the line of its beginning.
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut event = Event::default();
    let mut is_calendar = false;
    for property in unfolded(text).into_iter().filter_map(property) {
        let component = property.value.to_ascii_uppercase();
        match property.name.as_str() {
            "BEGIN" => {
                is_calendar |= component == "VCALENDAR";
                if component == "VEVENT" {
                    event = Event::default();
                }
                open.push((property.line, component));
            }
            "END" => {
                if open.pop().is_none_or(|(_, begun)| begun != component) {
                    return Err(format!("line {}: nothing ends here", property.line));
                }
                if component == "VEVENT" {
                    let ended = std::mem::take(&mut event);
                    if ended.is_cancelled() {
                        events.cancelled.push(ended.summary().to_owned());
                    } else if events.dates.len() == MAX_DATES {
                        return Err(format!(
                            "line {}: there are more than {MAX_DATES} events",
                            property.line
                        ));
                    } else {
                        events.dates.push(ended.entry(property.line, &mut names)?);
                    }
                }
            }
            // The properties of alarms and of time zones are not those of an event.
            _ if open
                .last()
                .is_some_and(|(_, component)| component == "VEVENT") =>
            {
                event.add(property)?;
            }
            _ => {}
        }
    }
    if !is_calendar {
        return Err("it is not an iCalendar file: BEGIN:VCALENDAR is missing".to_owned());
    }
    match open.last() {
        Some((line, component)) => {
            Err(format!("line {line}: the {component} does not end"))
        }
        None => Ok(events),
    }
}

/// The content lines with the number of the line on which each begins. A line that begins with
/// white space continues the previous one.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some((_, last))) => last.push_str(rest),
            _ => lines.push((number, line.trim_end().to_owned())),
        }
    }
    lines
}

/// The property of a content line: a name, parameters, and after the first colon that is not within
/// quotes the value.
fn property((line, text): (usize, String)) -> Option<Property> {
    let mut is_quoted = false;
    let (name, value) = text.split_once(|letter: char| {
        is_quoted ^= letter == '"';
        letter == ':' && !is_quoted
    })?;
    let name = name.split(';').next().unwrap_or_default();
    Some(Property {
        line,
        name: name.to_ascii_uppercase(),
        value: value.to_owned(),
    })
}

/// The properties of an event, in their order.
#[derive(Debug, Default)]
struct Event(Vec<Property>);

impl Event {
    /// Adds a property.
    ///
    /// # Errors
    /// The property changes the dates of events in a way that entries cannot represent.
    fn add(&mut self, property: Property) -> Result<(), String> {
        let Property { line, name, .. } = &property;
        match name.as_str() {
            "RDATE" | "EXDATE" | "EXRULE" | "RECURRENCE-ID" => {
                return Err(format!("line {line}: {name} is not supported"));
            }
            "DTSTART" | "DTEND" | "DURATION" | "RRULE" if self.find(name).is_some() => {
                return Err(format!("line {line}: the event has another {name}"));
            }
            _ => self.0.push(property),
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Property> {
        self.0.iter().find(|property| property.name == name)
    }

    fn summary(&self) -> &str {
        self.find("SUMMARY").map_or("", |it| it.value.as_str())
    }

    fn is_cancelled(&self) -> bool {
        let status = self.find("STATUS");
        status.is_some_and(|status| status.value.eq_ignore_ascii_case("CANCELLED"))
    }

    /// The entry of the event, which ends in this line.
    fn entry(
        &self,
        line: usize,
        names: &mut BTreeSet<String>,
    ) -> Result<CalendarDate, String> {
        let unread = |why: &str| format!("the event that ends in line {line} {why}");
        let start = self
            .find("DTSTART")
            .ok_or_else(|| unread("has no DTSTART"))?;
        let start = start.read(date_time)?;
        let end = self.end(start)?.unwrap_or(start);
        if end < start {
            return Err(unread("ends before it starts"));
        }
        // The end is exclusive.
        let last = if end > start && end.time() == Time::midnight() {
            end.yesterday().map_err(|error| error.to_string())?
        } else {
            end
        };
        let (start, last) = (start.date(), last.date());
        let is_yearly = self.is_yearly(start)?;
        if is_yearly && last != start {
            return Err(unread("repeats and has several dates; give it one date"));
        }
        let mut entry = CalendarDate {
            name: unique(&label(self.summary()), names),
            ..CalendarDate::default()
        };
        if is_yearly {
            entry.date = Some(start.strftime("%m-%d").to_string());
        } else if last == start {
            entry.date = Some(start.to_string());
        } else {
            entry.start_date = Some(start.to_string());
            entry.end_date = Some(last.to_string());
        }
        Ok(entry)
    }

    /// The end of an event that starts at `start`, if it states one.
    fn end(&self, start: DateTime) -> Result<Option<DateTime>, String> {
        match (self.find("DTEND"), self.find("DURATION")) {
            (Some(_), Some(duration)) => Err(format!(
                "line {}: the event has DTEND and DURATION",
                duration.line
            )),
            (Some(end), None) => end.read(date_time).map(Some),
            (None, Some(length)) => {
                let end = |value: &str| {
                    let span = duration(value)?;
                    start.checked_add(span).map_err(|error| error.to_string())
                };
                length.read(end).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// Whether the event repeats every year on the date of its start.
    fn is_yearly(&self, start: Date) -> Result<bool, String> {
        let Some(rule) = self.find("RRULE") else {
            return Ok(false);
        };
        let upper = rule.value.to_ascii_uppercase();
        let parts: Vec<&str> = upper.split(';').collect();
        let (month, day) = (start.month().to_string(), start.day().to_string());
        let has_month = parts.iter().any(|part| part.starts_with("BYMONTH="));
        let is_date_of_start = |part: &&str| match part.split_once('=') {
            Some(("FREQ", frequency)) => frequency == "YEARLY",
            Some(("INTERVAL", interval)) => interval == "1",
            Some(("WKST", _)) => true,
            Some(("BYMONTH", value)) => value.trim_start_matches('0') == month,
            // Without a month, it is this day of each month.
            Some(("BYMONTHDAY", value)) => {
                has_month && value.trim_start_matches('0') == day
            }
            _ => false,
        };
        let has_frequency = parts.contains(&"FREQ=YEARLY");
        if has_frequency && parts.iter().all(is_date_of_start) {
            return Ok(true);
        }
        Err(format!(
            "line {}: '{}' is not yearly on the date of DTSTART",
            rule.line, rule.value
        ))
    }
}

impl Property {
    /// Reads the value. An error gets the line.
    fn read<T>(&self, read: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
        read(&self.value).map_err(|why| format!("line {}: {why}", self.line))
    }
}

/// The instant of `20261225` or `20261225T120000Z` on the calendar of its time zone.
fn date_time(value: &str) -> Result<DateTime, String> {
    let (day, time) = value.split_once('T').unwrap_or((value, "000000"));
    let time = time.strip_suffix('Z').unwrap_or(time);
    let has_digits = |text: &str, number: usize| {
        text.len() == number && text.bytes().all(|it| it.is_ascii_digit())
    };
    let is_date = has_digits(day, 8) && has_digits(time, 6);
    let read = || DateTime::strptime("%Y%m%d%H%M%S", format!("{day}{time}")).ok();
    let found = is_date.then(read).flatten();
    found.ok_or_else(|| format!("'{value}' is not a date such as 20261225"))
}

/// The length of `P3D`, `P1W` or `PT12H`.
fn duration(value: &str) -> Result<Span, String> {
    let is_duration = value.trim_start_matches(['+', '-']).starts_with('P');
    let read = || value.parse::<Span>().ok();
    let found = is_duration.then(read).flatten();
    found.ok_or_else(|| format!("'{value}' is not a duration such as P3D"))
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

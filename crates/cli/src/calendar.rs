//! `5spot calendar import`: converts an iCalendar file into a ScheduleCalendar.

mod icalendar;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;

use fivespot_api::{name, rules, schedule_calendar::MAX_DATES};
use serde_json::json;

use crate::{Failure, Outcome, input, output, plain};
use icalendar::Events;

const EXAMPLES: &str = "\
Examples:
  5spot calendar import holidays.ics --name zurich | kubectl apply -f -
  curl -s https://example.com/holidays.ics | 5spot calendar import - --name zurich";

/// Arguments of `5spot calendar`.
#[derive(Debug, clap::Args)]
#[command(about = "Import other calendars as ScheduleCalendars", after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Import(ImportArgs),
}

/// Arguments of `5spot calendar import`.
#[derive(Debug, clap::Args)]
#[command(
    about = "Print the ScheduleCalendar of an iCalendar file",
    long_about = "Print the ScheduleCalendar of an iCalendar file (RFC 5545)\n\nEach event is \
                  an entry with its local dates; an event that repeats every year is a date of \
                  every year. An event that repeats in another way is refused, a cancelled one is \
                  left out with a note.",
    after_help = EXAMPLES
)]
struct ImportArgs {
    /// The iCalendar file, - for standard input
    #[arg(value_name = "FILE.ics|-")]
    file: PathBuf,
    /// Name of the ScheduleCalendar
    #[arg(
        long,
        value_name = "NAME",
        default_value = "calendar",
        value_parser = object_name
    )]
    name: String,
    /// Namespace of the ScheduleCalendar [default: none; kubectl then uses that of its context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
}

/// Returns the text if an API server accepts it as the name of an object.
fn object_name(text: &str) -> Result<String, String> {
    let wrong = kubemu_admission::name::dns_subdomain(text);
    wrong.into_iter().next().map_or(Ok(text.to_owned()), Err)
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let Command::Import(args) = &args.command;
    let (origin, text) = input::read(&args.file)?;
    let Events { dates, cancelled } = import(&origin, &text)?;
    let mut object = json!({
        "apiVersion": name::API_VERSION,
        "kind": name::CALENDAR_KIND,
        "metadata": {"name": args.name},
        "spec": {"dates": dates},
    });
    if let Some(namespace) = &args.namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    output::yaml(out, &object)?;
    let notes: Vec<String> = cancelled
        .iter()
        .map(|summary| format!("'{}' is cancelled and left out", plain::line(summary)))
        .collect();
    output::notes("note", &notes);
    Ok(Outcome::Yes)
}

/// Reads the events of an iCalendar file.
///
/// # Errors
/// The text is not an iCalendar file, has no event or too many, or has an event whose recurrence a
/// ScheduleCalendar does not support.
fn import(origin: &str, text: &str) -> Result<Events, Failure> {
    let events = icalendar::events(text).map_err(|why| {
        Failure::new(origin, why).remedy("correct the file, or write the dates by hand")
    })?;
    let dates = &events.dates;
    if dates.is_empty() {
        return Err(Failure::new(origin, "it has no events")
            .remedy(format!("give a file with 1 to {MAX_DATES} events")));
    }
    let calendar: Result<fivespot_api::ScheduleCalendar, _> =
        serde_json::from_value(json!({"metadata": {}, "spec": {"dates": dates}}));
    let broken = calendar.map(|calendar| rules::check_calendar(&calendar));
    match broken {
        Ok(broken) => match broken.first() {
            None => Ok(events),
            Some(violation) => Err(Failure::new(origin, violation)),
        },
        Err(error) => Err(Failure::new(origin, error)),
    }
}

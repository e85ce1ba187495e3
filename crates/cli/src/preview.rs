//! `5spot preview`: when machines will be wanted, from the engine that decides it.

mod forecast;
mod grid;
mod human;
mod ics;
mod source;
mod span;
#[cfg(test)]
mod tests;
mod text;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use fivespot_clock::Clock;
use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::Access;
use crate::{Failure, Outcome, document, output};
use forecast::Forecast;
use span::Span;

pub(crate) use span::Moment;

const EXAMPLES: &str = "\
Examples:
  5spot preview -f examples/business-hours.yaml
  5spot preview -f machines/ --from 2026-03-06 --to 2026-03-13 -o json
  5spot preview business-hours-worker -n default -o ics > worker.ics";

/// Arguments of `5spot preview`.
#[derive(Debug, clap::Args)]
#[command(about = "Show when machines will run", after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct Args {
    /// Files or directories with ScheduledMachines, - for standard input (repeatable)
    #[arg(short, long, value_name = "FILE|DIR|-", group = "which")]
    file: Vec<PathBuf>,
    /// Name of a ScheduledMachine in the cluster
    #[arg(value_name = "NAME", group = "which")]
    name: Option<String>,
    /// All ScheduledMachines in the cluster
    #[arg(short = 'A', long, group = "which")]
    all_namespaces: bool,
    /// Start: RFC 3339, or a date (midnight UTC) [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// End (exclusive), at most ten years after the start [default: 7 days after the start]
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    access: Access,
}

/// The forms in which a preview is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A week as a grid, and all changes
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// An iCalendar file with one event per window
    Ics,
}

/// What is printed as JSON and YAML.
#[derive(Debug, Serialize)]
struct Preview<'f> {
    items: &'f [Forecast],
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let (documents, now) = if args.file.is_empty() {
        source::from_cluster(&args.access, args.name.as_deref())?
    } else {
        let documents = source::machines(document::read(&args.file)?);
        (documents, Clock::system().now())
    };
    let span = Span::new(args.from, args.to, now)?;
    if documents.is_empty() {
        let why = "the input contains no ScheduledMachine";
        return Err(Failure::new("preview", why).remedy(
            "give a file that contains one with -f, or the name of one in the cluster",
        ));
    }
    let namespace = args.access.namespace.as_deref();
    let forecasts = documents
        .iter()
        .map(|document| Forecast::of(document, namespace, span))
        .collect::<Result<Vec<_>, _>>()?;
    print(out, args.output, &forecasts, now)?;
    Ok(Outcome::Yes)
}

fn print(
    out: &mut dyn Write,
    form: Form,
    forecasts: &[Forecast],
    now: Timestamp,
) -> Result<(), Failure> {
    match form {
        Form::Text => Ok(text::print(out, forecasts)?),
        Form::Json => output::json(out, &Preview { items: forecasts }),
        Form::Yaml => output::yaml(out, &Preview { items: forecasts }),
        Form::Ics => Ok(ics::print(out, forecasts, now)?),
    }
}

//! `5spot convert`: converts manifests with older API groups and field formats to the current ones.

mod text;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use fivespot_api::older::{self, Change};
use jiff::Timestamp;
use kubemu_clock::Clock;
use serde_json::Value;

use crate::{Failure, Outcome, input, output};

const EXAMPLES: &str = "\
Examples:
  5spot convert -f machine.yaml > current.yaml
  5spot convert --windows -f machine.yaml > windows.yaml
  kustomize build . | 5spot convert -f - | kubectl apply -f -";

/// Convert manifests with older API groups and field formats to the current ones
///
/// Everything else is unchanged, including other objects. Comments and layout are kept where the
/// text can be edited in place; the result is parsed again to check this. A document that cannot be
/// edited in place is reformatted, and a note says so.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// File with objects, - for standard input
    #[arg(short, long, value_name = "FILE|-")]
    file: PathBuf,
    /// Also rewrite daysOfWeek and hoursOfDay as windows that start and end at the same instants
    #[arg(long)]
    windows: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The forms in which manifests are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// YAML, as it was written
    #[default]
    Yaml,
    /// One JSON document: the object, or a list of several
    Json,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let (origin, source) = input::read(&args.file)?;
    let windows = args.windows.then(|| Clock::system().now());
    let converted = text::convert(&origin, &source, windows)?;
    match args.output {
        Form::Yaml => out.write_all(converted.text.as_bytes())?,
        Form::Json => match converted.objects.as_slice() {
            [only] => output::json(out, only)?,
            several => {
                let list = serde_json::json!({
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": several,
                });
                output::json(out, &list)?;
            }
        },
    }
    let mut notes = io::stderr().lock();
    for note in &converted.notes {
        writeln!(notes, "{note}")?;
    }
    Ok(Outcome::Yes)
}

/// Converts an object, or the items of a list. With `windows` it also converts lists of days and
/// hours, and checks that the windows are equivalent from that instant on. `notes` receives what
/// could not be converted.
fn object(
    value: &mut Value,
    windows: Option<Timestamp>,
    notes: &mut Vec<String>,
) -> Vec<Change> {
    let is_list = value["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    let mut convert = |value: &mut Value| {
        let mut changes = older::convert(value);
        if let Some(now) = windows {
            match older::lists_to_windows(value, now) {
                Ok(more) => changes.extend(more),
                Err(why) => notes.push(format!("spec.schedule is left as it is: {why}")),
            }
        }
        changes
    };
    match value.get_mut("items") {
        Some(Value::Array(items)) if is_list => {
            items.iter_mut().flat_map(convert).collect()
        }
        _ => convert(value),
    }
}

//! `5spot preview`: when machines will be wanted and values change, according to the schedule
//! engine.

mod capacity;
mod context;
mod fleet;
mod forecast;
mod grid;
pub(crate) mod human;
mod ics;
mod list;
mod planned;
mod savings;
pub(crate) mod source;
pub(crate) mod span;
#[cfg(test)]
mod tests;
mod text;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use fivespot_api::name;
use fivespot_drawing::terminal::TerminalOptions;
use fivespot_drawing::{html, most_frequent_zone, svg};
use jiff::Timestamp;
use kubemu_clock::Clock;
use serde::Serialize;

use crate::check::{Judge, LeaseFlags};
use crate::cluster::Access;
use crate::document::Document;
use crate::time::InstantOrDate;
use crate::{Failure, Outcome, completion, document, output, report};
use capacity::CapacityForecast;
use forecast::Forecast;
pub(crate) use forecast::Unevaluated;
use savings::Savings;
use source::Selection;
use span::Range;

pub(crate) use context::Context;
pub(crate) use planned::{
    PlannedCapacity, PlannedMachine, calendar_not_found, class_not_known, namespace_of,
    unknown_class,
};

const EXAMPLES: &str = "\
Examples:
  5spot preview -f examples/business-hours.yaml
  5spot preview -f machines/ --from 2026-03-06 --to 2026-03-13 -o json
  5spot preview -f machines/ --rates rates.yaml
  5spot preview -f examples/capacity/autoscaler.yaml
  5spot preview -A -o html > week.html
  5spot preview business-hours-worker -n default -o ics > worker.ics";

/// Arguments of `5spot preview`.
#[derive(Debug, clap::Args)]
#[command(about = "Show when machines will run and values change", after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct Args {
    /// Files or directories with ScheduledMachines and ScheduledCapacities, - for standard input
    /// (repeatable)
    #[arg(short, long, value_name = "FILE|DIR|-", group = "which")]
    file: Vec<PathBuf>,
    /// Name of a ScheduledMachine in the cluster, or scap/NAME of a ScheduledCapacity
    #[arg(
        value_name = "NAME",
        group = "which",
        add = ArgValueCompleter::new(completion::followers)
    )]
    name: Option<String>,
    /// All ScheduledMachines and ScheduledCapacities in the cluster
    #[arg(short = 'A', long, group = "which")]
    all_namespaces: bool,
    /// Start: RFC 3339, or a date in the schedule's time zone [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<InstantOrDate>,
    /// End (exclusive), at most ten years after the start [default: 7 days after the start]
    #[arg(long, value_name = "TIME")]
    to: Option<InstantOrDate>,
    /// A file of rates; also prints what the machines would cost in the range, compared with
    /// always-on machines. `5spot report --help` shows one
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Print every day and every change, also of several machines
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    lease: LeaseFlags,
    #[command(flatten)]
    access: Access,
}

/// The forms in which a preview is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Days as a grid and changes as a list; of several machines a line each
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// An iCalendar file with one event per window
    Ics,
    /// A picture of all machines in one file
    Svg,
    /// A page with the picture and a table, in one file
    Html,
}

impl Form {
    /// Whether the form shows what the machines would cost.
    fn has_savings(self) -> bool {
        matches!(self, Self::Text | Self::Json | Self::Yaml)
    }

    /// The warnings that are printed to standard error. The other forms contain them.
    fn warnings(self, preview: &Preview) -> Vec<String> {
        match self {
            Self::Text | Self::Json | Self::Yaml => Vec::new(),
            Self::Ics | Self::Svg | Self::Html => {
                let wrong = preview.not_evaluated.iter().map(Unevaluated::text);
                wrong.chain(warnings(preview)).collect()
            }
        }
    }
}

/// The JSON and YAML output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Preview {
    items: Vec<Forecast>,
    /// The ScheduledCapacities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    capacities: Vec<CapacityForecast>,
    /// The objects that cannot be evaluated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_evaluated: Vec<Unevaluated>,
    /// Absent without rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    savings: Option<Savings>,
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let rates = args.rates.as_deref().map(report::read_rates).transpose()?;
    if rates.is_some() && !args.output.has_savings() {
        let why = "this format has no savings";
        return Err(Failure::new("--rates", why)
            .remedy("use it with -o text, json or yaml, or use `5spot report -f`"));
    }
    let (documents, now, judge) = if args.file.is_empty() {
        let selection = args
            .name
            .as_deref()
            .map_or(Selection::All, Selection::Named);
        let operator = args.lease.operator();
        let found = source::from_cluster(&args.access, selection, &operator)
            .map_err(|failure| failure.or("give files with -f"))?;
        output::notes("warning", &found.unreadable.map(|it| it.text()));
        (found.documents, found.judge.now, Some(found.judge))
    } else {
        (document::read(&args.file)?, Clock::system().now(), None)
    };
    let namespace = args.access.namespace.as_deref();
    let context = Context::of(&documents, namespace);
    let documents = source::previewed(documents);
    if documents.is_empty() {
        let why = "the input contains no ScheduledMachine and no ScheduledCapacity";
        return Err(Failure::new("preview", why).remedy(
            "give a file that contains one with -f, or the name of one in the cluster",
        ));
    }
    let range = Range {
        from: args.from,
        to: args.to,
        now,
        zone: None,
    };
    let scope = PreviewScope {
        namespace,
        context: &context,
        judge: judge.as_ref(),
    };
    let view = ViewOptions {
        form: args.output,
        is_complete: args.all,
        terminal: output::terminal_options(),
        now,
    };
    let mut preview = preview(&documents, scope, range, view)?;
    preview.savings = rates.map(|rates| Savings::of(&preview.items, rates));
    print(out, view, &preview)?;
    output::notes("warning", context.warnings());
    output::notes("warning", &args.output.warnings(&preview));
    Ok(Outcome::Yes)
}

/// What the preview of each object lacks, with the name of the object.
fn warnings(preview: &Preview) -> Vec<String> {
    let of_machines = preview.items.iter();
    let of_machines =
        of_machines.flat_map(|of| of.notes().map(|note| of.planned.about(&note)));
    let of_capacities = preview.capacities.iter().map(|of| &of.planned);
    let of_capacities =
        of_capacities.flat_map(|of| of.calendar_notes().map(|note| of.about(&note)));
    of_machines.chain(of_capacities).collect()
}

/// The namespace and the objects that schedules depend on.
#[derive(Clone, Copy, Debug)]
struct PreviewScope<'c> {
    /// The namespace of objects without one.
    namespace: Option<&'c str>,
    context: &'c Context,
    /// What verdicts depend on; `None` for files.
    judge: Option<&'c Judge>,
}

/// How the preview is shown.
#[derive(Clone, Copy, Debug)]
struct ViewOptions {
    form: Form,
    /// Whether all days and changes are shown.
    is_complete: bool,
    terminal: TerminalOptions,
    now: Timestamp,
}

impl ViewOptions {
    /// Whether several machines are shown together, over the same time range.
    fn is_picture(self, machines: usize) -> bool {
        match self.form {
            Form::Svg | Form::Html => true,
            Form::Text => machines > 1,
            Form::Json | Form::Yaml | Form::Ics => false,
        }
    }
}

/// The forecasts of all schedules. In a picture, dates are in the zone that most schedules have.
///
/// # Errors
/// The range is empty or too long, or no object can be evaluated; the first failure.
fn preview(
    documents: &[Document],
    scope: PreviewScope<'_>,
    mut range: Range,
    view: ViewOptions,
) -> Result<Preview, Failure> {
    let evaluated = forecasts(documents, scope, &range)?;
    let mut spans = evaluated.items.iter().map(|forecast| forecast.span);
    let first = spans.next();
    if !view.is_picture(documents.len()) || spans.all(|span| Some(span) == first) {
        return Ok(evaluated);
    }
    let zones = evaluated
        .items
        .iter()
        .map(|it| it.planned.schedule.zone_name());
    range.zone = Some(most_frequent_zone(zones));
    forecasts(documents, scope, &range)
}

fn forecasts(
    documents: &[Document],
    scope: PreviewScope<'_>,
    range: &Range,
) -> Result<Preview, Failure> {
    let mut preview = Preview {
        items: Vec::new(),
        capacities: Vec::new(),
        not_evaluated: Vec::new(),
        savings: None,
    };
    let mut first_failure = None;
    for document in documents {
        let evaluated = if document.text("/kind") == name::CAPACITY_KIND {
            let capacity = CapacityForecast::of(document, scope, range);
            capacity.map(|it| preview.capacities.push(it))
        } else {
            Forecast::of(document, scope, range).map(|it| preview.items.push(it))
        };
        if let Err(failure) = evaluated {
            let wrong = Unevaluated::of(document, scope.namespace, &failure);
            preview.not_evaluated.push(wrong);
            first_failure.get_or_insert(failure);
        }
    }
    let is_empty = preview.items.is_empty() && preview.capacities.is_empty();
    match first_failure {
        Some(failure) if is_empty => Err(failure),
        _ => Ok(preview),
    }
}

fn print(
    out: &mut dyn Write,
    view: ViewOptions,
    preview: &Preview,
) -> Result<(), Failure> {
    match view.form {
        Form::Text => Ok(text::print(out, preview, view)?),
        Form::Json => output::json(out, preview),
        Form::Yaml => output::yaml(out, preview),
        Form::Ics => Ok(ics::print(out, preview, view.now)?),
        Form::Svg => {
            let picture = svg::document(&fleet::of(preview, view.now));
            Ok(out.write_all(picture.as_bytes())?)
        }
        Form::Html => {
            let page = html::document(&fleet::of(preview, view.now));
            Ok(out.write_all(page.as_bytes())?)
        }
    }
}

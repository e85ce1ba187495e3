//! `5spot report`: the usage of the machines in a month, and the savings.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fivespot_api::ScheduledMachine;
use fivespot_api::manifest::GeneratedFile;
use fivespot_api::time::whole_seconds;
use fivespot_api::verdict::{self, Lease, verdict};
use fivespot_usage::{
    Capacity, Machine, Month, Query, Rates, Report, csv, html, schema, text,
};
use jiff::Timestamp;
use kubemu_clock::Clock;

use crate::check::{Judge, LeaseFlags};
use crate::cluster::Access;
use crate::document::Document;
use crate::preview::source::{self, Selection};
use crate::preview::{
    Context, PlannedCapacity, PlannedMachine, class_not_known, namespace_of,
    unknown_class,
};
use crate::{Failure, Outcome, document, output, plain, undecodable};

/// The largest size of a file of rates, in bytes.
const MAX_RATES_BYTES: u64 = 1024 * 1024;

/// Report the usage of machines in a month, and the savings compared with always-on machines
///
/// Adds up status.usage, which the operator records for each ScheduledMachine for 14 months, and the
/// time since it was written. Months are those of UTC. Deleted machines are not included: run the
/// command before you delete them, or at the end of each month.
///
/// With -f, forecasts the whole month from files instead, without a cluster: as if each machine had
/// a Ready Node whenever its schedule wants it, and was provisioned in its lead time.
///
/// A ScheduledCapacity has the hours at each of its values, as its schedule of today plans them: no
/// account is kept of capacities. They are not in the CSV file, and have no rates.
///
/// With --rates also in money, energy and CO2. The file of rates is YAML or JSON; each machine has
/// the first rate that matches the kind of its infrastructure object and its labels.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  5spot report
  5spot report -A --month 2026-10 --rates rates.yaml --by team
  5spot report -A --month 2026-10 -o csv > october.csv
  5spot report -A --month 2026-10 --rates rates.yaml -o html > october.html
  5spot report -f machines/ --month 2026-10 --rates rates.yaml

A file of rates:
  currency: CHF
  pricePerKilowattHour: 0.27       # optional
  co2GramsPerKilowattHour: 112     # optional
  rates:
  - name: desks
    infrastructureKind: RemoteMachine
    label: tier=desk               # or only the key
    pricePerHour: 0.05
    watts: 180
  - name: others
    pricePerHour: 0.40
    watts: 350"
)]
pub(crate) struct Args {
    /// Files or directories with ScheduledMachines and ScheduledCapacities for a forecast, - for standard input (repeatable)
    #[arg(
        short,
        long,
        value_name = "FILE|DIR|-",
        conflicts_with_all = ["all_namespaces", "operator_namespace", "lease_name", "kubeconfig", "context"]
    )]
    file: Vec<PathBuf>,
    /// The month, as 2026-10 [default: the current one, up to now; with -f all of it]
    #[arg(long, value_name = "MONTH")]
    month: Option<Month>,
    /// A file of rates
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Key of a label; also adds up the figures for each value of it
    #[arg(long, value_name = "LABEL")]
    by: Option<String>,
    /// All ScheduledMachines in the cluster
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    lease: LeaseFlags,
    #[command(flatten)]
    access: Access,
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables
    #[default]
    Text,
    /// One JSON document; docs/reference/report.schema.json describes it
    Json,
    /// One YAML document
    Yaml,
    /// A line for each machine, for a spreadsheet
    Csv,
    /// A page with pictures and tables, in one file
    Html,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let rates = args.rates.as_deref().map(read_rates).transpose()?;
    if !args.file.is_empty() {
        return forecast(args, rates.as_ref(), out);
    }
    let selection = if args.all_namespaces {
        Selection::All
    } else {
        Selection::Namespace
    };
    let operator = args.lease.operator();
    let found = source::from_cluster(&args.access, selection, &operator)?;
    let now = whole_seconds(found.judge.now);
    let query = Query {
        month: args.month.unwrap_or_else(|| Month::at(now)),
        now,
        label: args.by.as_deref(),
        rates: rates.as_ref(),
    };
    let (report, mut notes) = report(found.documents, &query, &found.judge)?;
    notes.extend(found.unreadable.map(|it| it.text()));
    print(out, args.output, &report)?;
    output::notes("warning", &notes);
    output::notes("warning", &found.judge.warning(&operator));
    Ok(Outcome::Yes)
}

/// Prints what the schedules in the files plan.
fn forecast(
    args: &Args,
    rates: Option<&Rates>,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let documents = document::read(&args.file)?;
    let month = args
        .month
        .unwrap_or_else(|| Month::at(Clock::system().now()));
    let query = Query {
        month,
        now: month.end(),
        label: args.by.as_deref(),
        rates,
    };
    let namespace = args.access.namespace.as_deref();
    let (report, notes) = planned_report(documents, &query, namespace)?;
    print(out, args.output, &report)?;
    output::notes("warning", &notes);
    Ok(Outcome::Yes)
}

/// Creates the forecast of the ScheduledMachines among `documents`, with a note about each one that
/// cannot be evaluated. Those are listed without an account. `namespace` is that of objects without
/// one.
fn planned_report(
    documents: Vec<Document>,
    query: &Query<'_>,
    namespace: Option<&str>,
) -> Result<(Report, Vec<String>), Failure> {
    let context = Context::of(&documents, namespace);
    let (machines, capacities) = source::machines_and_capacities(documents);
    if machines.is_empty() && capacities.is_empty() {
        let why = "the input contains no ScheduledMachine and no ScheduledCapacity";
        return Err(
            Failure::new("report", why).remedy("give a file that contains one with -f")
        );
    }
    let mut notes = context.warnings().to_vec();
    let machines = accounts(&machines, namespace, &mut notes, |document| {
        let machine = PlannedMachine::of(document, &context, namespace)?;
        let notes = machine.notes().map(|note| machine.about(&note)).collect();
        Ok((planned(machine, query.month), notes))
    });
    let capacities = counted(&capacities, &context, (namespace, None), query, &mut notes);
    let report = Report {
        is_forecast: true,
        ..Report::of(machines, query).with_capacities(capacities)
    };
    Ok((report, notes))
}

/// The machine with the account that its schedule plans.
fn planned(machine: PlannedMachine, month: Month) -> Machine {
    Machine {
        usage: Machine::planned_account(machine.active_schedule(), month),
        namespace: machine.namespace,
        name: machine.name,
        labels: machine.object.metadata.labels.unwrap_or_default(),
        infrastructure_kind: machine.object.spec.infrastructure_spec.kind,
        created: None,
        verdict: None,
    }
}

/// The machines with their accounts, and the notes about each. One that `read` fails to read is
/// listed without an account, with a note. `namespace` is that of objects without one.
fn accounts(
    documents: &[Document],
    namespace: Option<&str>,
    notes: &mut Vec<String>,
    read: impl Fn(&Document) -> Result<(Machine, Vec<String>), Failure>,
) -> Vec<Machine> {
    let mut machines = Vec::new();
    for document in documents {
        machines.push(match read(document) {
            Ok((machine, about)) => {
                notes.extend(about);
                machine
            }
            Err(failure) => {
                notes.push(failure.to_string());
                Machine {
                    namespace: namespace_of(document, namespace).to_owned(),
                    name: document.text("/metadata/name").to_owned(),
                    ..Machine::default()
                }
            }
        });
    }
    machines
}

/// Creates the report about the ScheduledMachines among `documents`, with a note about each one that
/// cannot be read. Those are listed without an account.
fn report(
    documents: Vec<Document>,
    query: &Query<'_>,
    judge: &Judge,
) -> Result<(Report, Vec<String>), Failure> {
    let (month, now) = (query.month, query.now);
    if month.start() > now {
        let why = format!("it begins at {}, and now is {now}", month.start());
        return Err(Failure::new(format!("--month {month}"), why)
            .remedy("give a month that has begun"));
    }
    let context = Context::of(&documents, None);
    let (machines, capacities) = source::machines_and_capacities(documents);
    let mut notes = context.warnings().to_vec();
    let machines = accounts(&machines, None, &mut notes, |document| {
        machine(document, &context, &judge.lease, now)
    });
    let judged = (None, Some(judge));
    let capacities = counted(&capacities, &context, judged, query, &mut notes);
    Ok((
        Report::of(machines, query).with_capacities(capacities),
        notes,
    ))
}

/// The hours of the ScheduledCapacities, each with its verdict where it is in a cluster, and a note
/// about each one that cannot be evaluated.
fn counted(
    documents: &[Document],
    context: &Context,
    (namespace, judge): (Option<&str>, Option<&Judge>),
    query: &Query<'_>,
    notes: &mut Vec<String>,
) -> Vec<Capacity> {
    let mut all = Vec::new();
    for document in documents {
        match PlannedCapacity::of(document, context, namespace) {
            Ok(of) => {
                let schedule = of.active_schedule();
                let counted =
                    Capacity::planned(&of.object, schedule, query.month, query.now);
                let verdict = judge.map(|it| {
                    verdict::capacity::verdict(&of.object, &it.capacity_lease, it.now)
                });
                all.push(Capacity {
                    namespace: of.namespace.clone(),
                    verdict,
                    ..counted
                });
            }
            Err(failure) => notes.push(failure.to_string()),
        }
    }
    all
}

/// The usage of one ScheduledMachine, up to `now`; with a note if its class is not known.
fn machine(
    document: &Document,
    context: &Context,
    lease: &Lease,
    now: Timestamp,
) -> Result<(Machine, Vec<String>), Failure> {
    let mut object: ScheduledMachine = serde_json::from_value(document.object.clone())
        .map_err(|error| undecodable(&document.origin, error))?;
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    // Without a schedule that can be evaluated, the machine counts as not wanted.
    let schedule = context.inputs.schedule(&mut object, &namespace).ok();
    let schedule = schedule.filter(|_| object.spec.is_enabled());
    let metadata = &object.metadata;
    let status = object.status.clone().unwrap_or_default();
    let machine = Machine {
        usage: Machine::account(&status, schedule.as_ref(), now),
        name: metadata.name.clone().unwrap_or_default(),
        labels: metadata.labels.clone().unwrap_or_default(),
        infrastructure_kind: object.spec.infrastructure_spec.kind.clone(),
        created: metadata.creation_timestamp.as_ref().map(|at| at.0),
        verdict: Some(verdict(&object, lease, now)),
        namespace,
    };
    let unknown = unknown_class(&object.spec).map(|class| {
        let (namespace, name) = (&machine.namespace, &machine.name);
        format!("{namespace}/{name}: {}", class_not_known(class))
    });
    Ok((machine, unknown.into_iter().collect()))
}

/// Reads a file of rates.
///
/// # Errors
/// The file cannot be read, or is not a file of rates. The failure names the field and what to do.
pub(crate) fn read_rates(path: &Path) -> Result<Rates, Failure> {
    let place = path.display();
    let failed = |error: std::io::Error| {
        Failure::new(format!("reading the rates {place}"), error)
            .remedy("give a file that can be read with --rates")
    };
    if fs::metadata(path).map_err(failed)?.len() > MAX_RATES_BYTES {
        let why = format!("it is larger than {MAX_RATES_BYTES} bytes");
        return Err(Failure::new(format!("reading the rates {place}"), why)
            .remedy("give a file of rates"));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    Rates::parse(&text).map_err(|error| {
        Failure::new(format!("the rates in {place}"), error)
            .remedy("correct the file; `5spot report --help` shows one")
    })
}

fn print(out: &mut dyn Write, form: Form, report: &Report) -> Result<(), Failure> {
    let text = match form {
        Form::Text => plain::lines(&text::document(report)).into_owned(),
        Form::Json => return output::json(out, report),
        Form::Yaml => return output::yaml(out, report),
        Form::Csv => csv::document(report),
        Form::Html => html::document(report),
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// The JSON schema of the output, as a file of the reference.
pub(crate) fn schema() -> Result<GeneratedFile, Failure> {
    let text = serde_json::to_string_pretty(&schema::json())
        .map_err(|error| Failure::new("printing JSON", error))?;
    Ok(GeneratedFile {
        path: schema::FILE.to_owned(),
        text: text + "\n",
    })
}

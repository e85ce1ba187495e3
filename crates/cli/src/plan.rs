//! `5spot plan`: which openings of the next weeks cannot be kept, and why.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use fivespot_api::name;
use fivespot_drawing::most_frequent_zone;
use fivespot_forecast::{
    BrokenOpening, FleetForecast, FleetMachine, ForecastSpan, forecast,
};
use fivespot_plan::delay_of;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kubemu::parallel;
use kubemu_clock::Clock;
use serde::{Serialize, Serializer};

use crate::cluster::Access;
use crate::columns::table;
use crate::document::Document;
use crate::preview::human;
use crate::preview::span::{Range, Span};
use crate::preview::{
    Context, PlannedMachine, Unevaluated, calendar_not_found, class_not_known, source,
};
use crate::time::InstantOrDate;
use crate::{Failure, Format, Outcome, document, output, plain};

const EXAMPLES: &str = "\
Examples:
  5spot plan -f examples/class-hosts.yaml
  5spot plan -f machines/ --from 2026-03-09 --to 2026-03-23
  5spot plan -A
  5spot plan -A --to 2026-04-01 -o json";

/// The largest number of lines without --all.
const LINES: usize = 50;

/// Show which openings of the next weeks cannot be kept, and why
///
/// An opening cannot be kept if no host of the class is free, if the host that the machine names is
/// in use, if a limit or startsPerMinute of the class is reached, if the class does not allow what the
/// machine names, or if the lead time is shorter than the last provisioning took
/// (status.lastProvisioning). Calendars, overrides, shared schedules and classes count if they are
/// among the files or in the cluster, and so does whether a class selects a Namespace. A
/// ScheduledMachineSet counts as its machines.
///
/// Hosts are given out as by the operator: the highest priority first, then the first name. A machine
/// that leaves is counted on its host until its gracefulShutdownTimeout is over. What stopsPerMinute
/// and minimumActive of a class keep longer is not counted.
///
/// Exit codes: 0 every opening can be kept, 1 one cannot or an object cannot be evaluated, 2 error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct Args {
    /// Files or directories with ScheduledMachines, ScheduledMachineSets and their classes, - for
    /// standard input (repeatable)
    #[arg(short, long, value_name = "FILE|DIR|-", group = "which")]
    file: Vec<PathBuf>,
    /// All ScheduledMachines in the cluster
    #[arg(short = 'A', long, group = "which")]
    all_namespaces: bool,
    /// Start: RFC 3339, or a date in the time zone that most schedules have [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<InstantOrDate>,
    /// End (exclusive), at most ten years after the start [default: 7 days after the start]
    #[arg(long, value_name = "TIME")]
    to: Option<InstantOrDate>,
    /// Print every opening that cannot be kept
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

/// The machines whose openings are forecast, and what was found wrong on the way.
#[derive(Debug, Default)]
struct Fleet {
    machines: Vec<PlannedMachine>,
    not_evaluated: Vec<Unevaluated>,
    warnings: Vec<String>,
}

/// What was found. The openings that cannot be kept are described where they are printed: there may be
/// a hundred thousand of them, of which a text shows a few.
#[derive(Debug)]
struct Report {
    machines: Vec<PlannedMachine>,
    from: Timestamp,
    to: Timestamp,
    openings: usize,
    broken: Vec<BrokenOpening>,
    not_evaluated: Vec<Unevaluated>,
    notes: Vec<String>,
}

/// The JSON and YAML output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'r> {
    from: Timestamp,
    to: Timestamp,
    /// How many openings there are.
    openings: usize,
    /// Those that cannot be kept.
    broken: Rows<'r>,
    /// The objects that cannot be evaluated.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_evaluated: &'r [Unevaluated],
    /// What else to know.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'r [String],
}

/// The openings of a report that cannot be kept.
#[derive(Debug)]
struct Rows<'r> {
    report: &'r Report,
    members: Vec<FleetMachine<'r>>,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// An opening that cannot be kept.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'r> {
    time: Timestamp,
    namespace: &'r str,
    name: &'r str,
    reason: &'static str,
    /// How long after the opening the machine is there; absent if it is not before the window ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    late_seconds: Option<i64>,
    message: String,
    remedy: String,
    /// The zone of the schedule.
    #[serde(skip)]
    zone: &'r TimeZone,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let (documents, now) = if args.file.is_empty() {
        source::machines_of_cluster(&args.access)
            .map_err(|failure| failure.or("give files with -f"))?
    } else {
        (document::read(&args.file)?, Clock::system().now())
    };
    let fleet = Fleet::of(documents, args.access.namespace.as_deref())?;
    let range = Range {
        from: args.from,
        to: args.to,
        now,
        zone: None,
    };
    // What a status says is true now.
    let known_since = args.file.is_empty().then_some(now);
    let report = report(fleet, &range, known_since)?;
    let lines = if args.all { usize::MAX } else { LINES };
    output::print(out, args.output, &report.printed(), |out| {
        text(out, &report, lines)
    })?;
    Ok(report.outcome())
}

impl Fleet {
    /// The machines among `documents`, those of sets included. `namespace` is that of objects
    /// without one. Of two with one name, the later one counts.
    ///
    /// # Errors
    /// There is none, or none can be evaluated.
    fn of(documents: Vec<Document>, namespace: Option<&str>) -> Result<Self, Failure> {
        let context = Context::of(&documents, namespace);
        let mut fleet = Self {
            warnings: context.warnings().to_vec(),
            ..Self::default()
        };
        let mut machines = BTreeMap::new();
        let mut first_failure = None;
        let mut documents = source::previewed(documents);
        documents.retain(|document| document.text("/kind") != name::CAPACITY_KIND);
        let planned = parallel::map(documents, |document| {
            PlannedMachine::of(&document, &context, namespace).map_err(|failure| {
                let wrong = Unevaluated::of(&document, namespace, &failure);
                Box::new((wrong, failure))
            })
        });
        for planned in planned {
            match planned {
                Ok(planned) => {
                    let key = (planned.namespace.clone(), planned.name.clone());
                    machines.insert(key, planned);
                }
                Err(failed) => {
                    let (wrong, failure) = *failed;
                    fleet.not_evaluated.push(wrong);
                    first_failure.get_or_insert(failure);
                }
            }
        }
        fleet.machines = machines.into_values().collect();
        if !fleet.machines.is_empty() {
            fleet.warn();
            return Ok(fleet);
        }
        let none = || {
            Failure::new(
                "plan",
                "the input contains no ScheduledMachine and no set of them",
            )
            .remedy("give a file that contains one with -f")
        };
        Err(first_failure.unwrap_or_else(none))
    }

    /// Adds a warning for each calendar and class that is not known.
    fn warn(&mut self) {
        let mut unknown = BTreeSet::new();
        for machine in &self.machines {
            unknown.extend(machine.missing_calendars.iter().map(|calendar| {
                format!("{}: {}", machine.namespace, calendar_not_found(calendar))
            }));
            unknown.extend(machine.unknown_class().map(class_not_known));
        }
        self.warnings.extend(unknown);
    }
}

/// The forecast of a fleet. `known_since` is when the machines have what their status says, at the
/// start of the range if absent.
///
/// # Errors
/// The range is empty or too long, or the machines open too often.
fn report(
    fleet: Fleet,
    range: &Range,
    known_since: Option<Timestamp>,
) -> Result<Report, Failure> {
    let Fleet {
        machines,
        not_evaluated,
        warnings,
    } = fleet;
    let zones = machines.iter().map(|it| it.schedule.zone_name());
    let Span { from, to } = range.span(&most_frequent_zone(zones))?;
    let members = members(&machines);
    let span = ForecastSpan {
        since: known_since.map_or(from, |since| since.min(from)),
        from,
        to,
    };
    let found = forecast(&members, span).map_err(|error| {
        Failure::new("--to", format!("{error} until {to}"))
            .remedy("give an earlier time, or fewer machines")
    })?;
    let notes = warnings.into_iter().chain(no_lead_time(&found));
    Ok(Report {
        from,
        to,
        openings: found.openings,
        notes: notes.chain(unknown_jitter(&machines)).collect(),
        broken: found.broken,
        not_evaluated,
        machines,
    })
}

/// The machines as they are forecast.
fn members(machines: &[PlannedMachine]) -> Vec<FleetMachine<'_>> {
    let members = machines.iter().map(|planned| FleetMachine {
        namespace: &planned.namespace,
        object: &planned.object,
        schedule: planned.active_schedule(),
    });
    members.collect()
}

/// A sentence about machines whose part of the jitter of their class follows from a uid that they do
/// not have yet.
fn unknown_jitter(machines: &[PlannedMachine]) -> Option<String> {
    let is_unknown = |planned: &&PlannedMachine| delay_of(&planned.object).is_none();
    let machines = match machines.iter().filter(is_unknown).count() {
        0 => return None,
        1 => "1 machine has".to_owned(),
        several => format!("{} machines have", human::count(several)),
    };
    Some(format!(
        "{machines} a class with jitter and no uid yet, from which its part follows: the windows are \
         taken to open without it."
    ))
}

/// A sentence about machines that nobody expects to be ready when their windows open.
fn no_lead_time(found: &FleetForecast) -> Option<String> {
    let longest = found.longest_provisioning;
    let machines = match found.without_lead_time {
        0 => return None,
        1 => "1 machine has".to_owned(),
        several => format!("{} machines have", human::count(several)),
    };
    Some(format!(
        "{machines} no spec.provisioning.leadTime, so that no Node is ready when a window opens: the \
         last time, it took up to {longest:#}."
    ))
}

impl Report {
    fn printed(&self) -> Printed<'_> {
        Printed {
            from: self.from,
            to: self.to,
            openings: self.openings,
            broken: self.rows(),
            not_evaluated: &self.not_evaluated,
            notes: &self.notes,
        }
    }

    fn rows(&self) -> Rows<'_> {
        Rows {
            report: self,
            members: members(&self.machines),
        }
    }

    fn outcome(&self) -> Outcome {
        if self.broken.is_empty() && self.not_evaluated.is_empty() {
            Outcome::Yes
        } else {
            Outcome::No
        }
    }

    /// How many openings can be kept, in words.
    fn summary(&self) -> String {
        let Self { from, to, .. } = self;
        let all = human::count(self.openings);
        let broken = human::count(self.broken.len());
        match (self.openings, self.broken.len()) {
            (0, _) => format!("No machine opens from {from} to {to}."),
            (_, 0) => format!("All {all} openings from {from} to {to} can be kept."),
            _ => {
                format!("{broken} of {all} openings from {from} to {to} cannot be kept.")
            }
        }
    }
}

impl<'r> Rows<'r> {
    fn iter(&self) -> impl Iterator<Item = Row<'r>> {
        let report = self.report;
        report.broken.iter().filter_map(|broken| {
            let machine = report.machines.get(broken.machine)?;
            Some(Row {
                time: broken.opens,
                namespace: &machine.namespace,
                name: &machine.name,
                reason: broken.cause.as_str(),
                late_seconds: broken.late.map(|late| late.as_secs()),
                message: broken.message(&self.members),
                remedy: broken.remedy(&self.members),
                zone: machine.schedule.time_zone(),
            })
        })
    }
}

impl Row<'_> {
    fn cells(&self) -> [String; 5] {
        let late = self.late_seconds.map(SignedDuration::from_secs);
        [
            human::local(&self.time.to_zoned(self.zone.clone())),
            format!("{}/{}", self.namespace, self.name),
            late.map_or_else(|| "whole window".to_owned(), |late| format!("{late:#}")),
            self.reason.to_owned(),
            format!("{}; {}", self.message, self.remedy),
        ]
    }
}

/// Prints at most `shown` openings, and how many can be kept.
fn text(out: &mut dyn Write, report: &Report, shown: usize) -> Result<(), Failure> {
    if !report.broken.is_empty() {
        let rows = report.rows();
        let rows = rows.iter().take(shown);
        let rows: Vec<_> = rows.map(|row| row.cells()).collect();
        table(
            out,
            ["OPENS", "MACHINE", "LATE", "REASON", "MESSAGE"],
            &rows,
        )?;
        if report.broken.len() > shown {
            let more = human::count(report.broken.len() - shown);
            writeln!(out, "… {more} more; --all prints them")?;
        }
        writeln!(out)?;
    }
    for wrong in &report.not_evaluated {
        writeln!(out, "{}", plain::line(&wrong.text()))?;
    }
    for note in &report.notes {
        writeln!(out, "{}", plain::line(note))?;
    }
    Ok(writeln!(out, "{}", report.summary())?)
}

//! `5spot explain`: explains the state of a machine with the planning function, the state of a
//! ScheduledCapacity, or a rule.

mod capacity;
mod reason;
mod report;
mod rule;
mod schedule;
mod set;
#[cfg(test)]
mod tests;
mod timeline;
pub(crate) mod unreadable;

use std::collections::BTreeSet;
use std::io::Write;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use fivespot_api::resource::SCHEDULED_MACHINE;
use fivespot_api::verdict::{Lease, State, Verdict};
use fivespot_controller::kubeconfig::is_local_host;
use fivespot_controller::{Inspection, Key, Namespaces, NodeAccess, Options, inspect};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use kube::{Client, Config};
use kubemu_clock::Clock;

use crate::check::{Judge, LeaseFlags};
use crate::cluster::{self, Access};
use crate::named::{self, Named};
use crate::output::Format;
use crate::time::InstantOrDate;
use crate::{Failure, Outcome, completion, output};

const EXAMPLES: &str = "\
Examples:
  5spot explain business-hours-worker
  5spot explain business-hours-worker -n team-a --at 2026-03-06T23:00:00Z
  5spot explain business-hours-worker --node-access management
  5spot explain business-hours-worker --timeline -o svg > shutdown.svg
  5spot explain scap/web
  5spot explain smset/desks
  5spot explain tbss/office-hours
  5spot explain rule SM002
  5spot explain reason KindNotServed";

/// How many changes are shown of a shared schedule and of what follows one.
const CHANGES: usize = 3;

/// How far they are searched: ten years, as by the operator.
const HORIZON: SignedDuration = SignedDuration::from_hours(24 * 3_652);

/// Explain the state of a machine, what to do and what happens next; or explain a rule or a reason
///
/// Begins with what the operator has written: the state, its cause and what to do. Then reads the
/// objects that the operator reads, with your permissions, and shows which check of the operator
/// decides. Objects that you may not read are named with the role that allows it. Nothing is changed.
///
/// Of a ScheduledCapacity, scap/NAME, it shows the values that its target has, that were written and
/// that the schedule wants, and the next changes. Of a set, smset/NAME, it shows how many machines it
/// has and what keeps the others from service. Of a schedule that objects share, tbss/NAME or
/// cms/NAME, it shows whether it is open, who follows it, the next changes, and what is wrong with it.
///
/// Exit codes: 0 explained, 1 the object is Blocked, 2 error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the ScheduledMachine, or scap/NAME of a ScheduledCapacity, smset/NAME of a
    /// ScheduledMachineSet, tbss/NAME or cms/NAME of a shared schedule; or `rule` or `reason` (with --namespace, a machine of that name)
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(completion::explained))]
    name: String,
    /// After `rule`, the id of a rule or of a lint warning; after `reason`, a reason of a condition
    /// [default: lists all]; after a kind such as `scap`, a name
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::rules))]
    rule: Option<String>,
    /// Time to plan for, with the current objects: RFC 3339, or a date in the schedule's
    /// time zone [default: now]
    #[arg(long, value_name = "TIME", conflicts_with = "rule")]
    at: Option<InstantOrDate>,
    /// Show the course of the last shutdown instead, from the status and the Events
    #[arg(long, conflicts_with_all = ["rule", "at"])]
    timeline: bool,
    /// How to reach the nodes of a cluster; use the operator's setting
    #[arg(long, value_enum, default_value_t, conflicts_with = "rule")]
    node_access: NodeAccess,
    #[command(flatten)]
    lease: LeaseFlags,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    access: Access,
}

/// The forms of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Plain text
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// With --timeline: a picture in one file
    Svg,
}

impl Form {
    /// The equivalent output format of an explanation without a picture.
    fn text_format(self) -> Result<Format, Failure> {
        match self {
            Self::Text => Ok(Format::Text),
            Self::Json => Ok(Format::Json),
            Self::Yaml => Ok(Format::Yaml),
            Self::Svg => Err(Failure::new("-o svg", "only a timeline can be drawn")
                .remedy("add --timeline, or choose another format")),
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    match (args.name.as_str(), &args.rule) {
        ("rule", Some(id)) => rule::explain(id, args.output.text_format()?, out),
        ("reason", Some(name)) => reason::explain(name, args.output.text_format()?, out),
        // With a namespace, `rule` is the name of a machine.
        ("rule", None) if args.access.namespace.is_none() => {
            rule::list(args.output.text_format()?, out)
        }
        ("reason", None) if args.access.namespace.is_none() => {
            reason::list(args.output.text_format()?, out)
        }
        (kind, Some(name)) => match named::kind_of(kind, named::EXPLAINED) {
            Some(resource) => object(args, Named { resource, name }, out),
            None => Err(Failure::new(
                format!("explain {kind} {name}"),
                "too many arguments",
            )
            .remedy(
                "give one ScheduledMachine, scap/NAME, smset/NAME, tbss/NAME or cms/NAME, `rule` \
                 and a rule's id, or `reason` and a reason",
            )),
        },
        (name, None) => object(args, Named::of(name, named::EXPLAINED)?, out),
    }
}

/// Explains an object of the cluster.
fn object(
    args: &Args,
    named: Named<'_>,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    if args.timeline && named.resource.kind != SCHEDULED_MACHINE.kind {
        return Err(Failure::new("--timeline", "only machines have a shutdown")
            .remedy("leave the flag out"));
    }
    if args.timeline {
        return timeline::run(args, named.name, out);
    }
    let format = args.output.text_format()?;
    if named.is_capacity() {
        let operator = args.lease.operator();
        let found = cluster::block_on(capacity::read(&args.access, named, &operator))?;
        let at = found.instant(args.at);
        let report = capacity::report(&found, at);
        output::print(out, format, &report, |out| capacity::text(out, &report))?;
        return Ok(outcome(&report.verdict));
    }
    if named.is_set() {
        if args.at.is_some() {
            return Err(Failure::new("--at", "a set is shown as it is now").remedy(
                "leave the flag out; `5spot preview` shows when its machines run",
            ));
        }
        let operator = args.lease.operator();
        let report = cluster::block_on(set::read(&args.access, named, &operator))?;
        output::print(out, format, &report, |out| set::text(out, &report))?;
        return Ok(report.outcome());
    }
    if named.is_schedule() {
        let operator = args.lease.operator();
        let found = cluster::block_on(schedule::read(&args.access, named, &operator))?;
        let at = found.instant(args.at);
        let report = schedule::report(&found, at);
        output::print(out, format, &report, |out| schedule::text(out, &report))?;
        return Ok(outcome(&report.verdict));
    }
    let (inspection, lease) = cluster::block_on(read(args, named.name))?;
    let at = args
        .at
        .map_or(inspection.now, |at| at.instant_in(&zone(&inspection)));
    let report = report::report(&inspection, &lease, at);
    output::print(out, format, &report, |out| report::text(out, &report))?;
    Ok(outcome(report.verdict()))
}

/// The time zone of the schedule. UTC if it is invalid.
fn zone(inspection: &Inspection) -> TimeZone {
    let schedule = inspection.object.spec.schedule.schedule();
    schedule.map_or(TimeZone::UTC, |schedule| schedule.time_zone().clone())
}

async fn read(args: &Args, name: &str) -> Result<(Inspection, Lease), Failure> {
    let config: Config = args.access.config().await?;
    let namespace = config.default_namespace.clone();
    let address = args.access.address(&config);
    let mut options = options(config, args.node_access)?;
    let client = options.client.clone();
    cluster::require_reachable(&client, &address).await?;
    options.namespaces = Namespaces::Only(BTreeSet::from([namespace.clone()]));
    let key = Key::new(namespace.clone(), name);
    let what = format!("reading ScheduledMachine {namespace}/{name}");
    cluster::named(&client, &address, Named::machine(name)).await?;
    match inspect(options, &key).await {
        Ok(Some(mut inspection)) => {
            // Uses the current time of the cluster, which may have a virtual clock.
            let judge = Judge::read(&client, &args.lease.operator()).await;
            inspection.now = judge.now;
            Ok((inspection, judge.lease))
        }
        Ok(None) => Err(cluster::no_such_machine(&namespace, name)),
        Err(error) => {
            Err(Failure::new(what, error).remedy("check your access to the cluster"))
        }
    }
}

/// The options to inspect the cluster of `config`.
///
/// # Errors
/// No client can be created from the configuration.
pub(crate) fn options(
    config: Config,
    node_access: NodeAccess,
) -> Result<Options, Failure> {
    let is_local = config.cluster_url.host().is_some_and(is_local_host);
    let client = Client::try_from(config).map_err(cluster::no_client)?;
    let mut options = Options::new(client, Clock::system());
    options.node_access = node_access;
    // If the management cluster runs on this host, its workload clusters may run there as well.
    options.workload_servers.local = is_local;
    Ok(options)
}

/// The outcome of a command that was asked about the object.
fn outcome(verdict: &Verdict) -> Outcome {
    if verdict.state == State::Blocked {
        Outcome::No
    } else {
        Outcome::Yes
    }
}

//! `5spot status`: the state of each machine and of each value that follows a schedule.

mod capacity;
mod listed;
mod schedule;
mod set;
mod table;
#[cfg(test)]
mod tests;
mod watch;
mod zone;

use std::io::Write;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use fivespot_api::verdict::{State, Verdict};
use fivespot_api::{ScheduledCapacity, ScheduledMachine};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::check::{Judge, LeaseFlags};
use crate::cluster::{self, Access, Connection};
use crate::named::{self, Named};
use crate::preview::source::{self, Selection};
use crate::{Failure, Outcome, completion, output};
use capacity::Capacities;
use schedule::{Followers, Schedules};
use set::Sets;
use table::{Instants, Row};
use zone::Zones;

const EXAMPLES: &str = "\
Examples:
  5spot status
  5spot status business-hours-worker
  5spot status scap/web
  5spot status smset/desks --watch
  5spot status -A --watch
  5spot status -o wide
  5spot status -n team-a -o json";

/// Show the state of each machine, and why
///
/// Machines that are Blocked come first, then Unknown and Late ones. The state follows from what the
/// operator has written, not from your permissions. The next change is shown relative to now and in
/// the time zone of the schedule; with -o wide, json and yaml in UTC. If no operator renews its Lease,
/// the state of all machines is Unknown. Without permission to read the Lease, it is not checked.
///
/// ScheduledCapacities follow in a table of their own: the value that was last written, and the one
/// that the schedule wants now. Below them are ScheduledMachineSets, with how many machines they want,
/// how many are Active and Ready, and why that is less; and the schedules that objects share.
///
/// Exit codes: 0 printed, 1 the object that NAME names is Blocked, 2 error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of a ScheduledMachine, scap/NAME of a ScheduledCapacity, or smset/NAME of a
    /// ScheduledMachineSet, shown with its machines [default: lists all]
    #[arg(
        value_name = "NAME",
        conflicts_with = "all_namespaces",
        add = ArgValueCompleter::new(completion::shown)
    )]
    name: Option<String>,
    /// List all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Print a line for each change of a machine or a ScheduledCapacity, which is called scap/NAME,
    /// until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// Output format; with --watch, one document for each change
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    lease: LeaseFlags,
    #[command(flatten)]
    access: Access,
}

/// The forms in which the state is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Plain text
    #[default]
    Text,
    /// Plain text, with instants in UTC
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// The row of a machine.
fn row(judge: &Judge, zones: &Zones, object: &Value) -> Row {
    Row::of(object, judge.machine(object), zones)
}

impl Form {
    /// Whether it is read by a person.
    fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Wide)
    }

    /// How instants are shown in a table.
    fn instants(self, judge: &Judge) -> Instants {
        match self {
            Self::Text => Instants::Local(judge.now),
            Self::Wide | Self::Json | Self::Yaml => Instants::Utc,
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    cluster::block_on(show(args, out))
}

async fn show(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let named = args.name.as_deref();
    let named = named.map(|it| Named::of(it, named::SHOWN)).transpose()?;
    let Connection {
        client, address, ..
    } = args.access.connect().await?;
    let operator = args.lease.operator();
    if args.watch {
        return watch::watch(args, named, client, out).await;
    }
    let objects = if let Some(named) = named {
        vec![cluster::named(&client, &address, named).await?]
    } else {
        let api = api_of::<ScheduledMachine>(&client, args.all_namespaces);
        listed(&api, &ListParams::default(), &address).await?
    };
    let judge = Judge::read(&client, &operator).await;
    let selection = match named {
        Some(named) => Selection::Named(named.name),
        None if args.all_namespaces => Selection::All,
        None => Selection::Namespace,
    };
    let found = match named {
        Some(named) => about(&client, &address, named, objects, &judge).await?,
        None => everything(&client, selection, &judge, &values(&objects)).await,
    };
    let instants = args.output.instants(&judge);
    let none_found = none_found(selection, client.default_namespace());
    print(args.output, &found, none_found.as_deref(), &instants, out)?;
    // The state of the machines is outdated then.
    output::notes("warning", &judge.warning(&operator));
    let verdict = found.only().filter(|_| named.is_some());
    if let Some(verdict) = verdict.filter(|_| args.output.is_text()) {
        output::remedy(out, verdict)?;
    }
    let is_blocked = verdict.is_some_and(|it| it.state == State::Blocked);
    Ok(if is_blocked {
        Outcome::No
    } else {
        Outcome::Yes
    })
}

/// What there is to say of the object that was asked for by its name.
async fn about(
    client: &Client,
    address: &str,
    named: Named<'_>,
    objects: Vec<DynamicObject>,
    judge: &Judge,
) -> Result<Found, Failure> {
    let mut zones = Zones::default();
    for object in &objects {
        zones.read(client, &json!(object)).await;
    }
    if named.is_capacity() {
        let documents = objects.into_iter().map(source::capacity);
        let documents = documents.collect::<Result<Vec<_>, _>>()?;
        let selection = Selection::Named(named.name);
        return Ok(Found {
            capacities: Capacities::of(client, selection, judge, &zones, &documents)
                .await,
            ..Found::default()
        });
    }
    let Some(selector) = named.machine_selector() else {
        return Ok(Found {
            machines: rows(judge, &zones, &values(&objects)),
            ..Found::default()
        });
    };
    let params = ListParams::default().labels(&selector);
    let machines = api_of::<ScheduledMachine>(client, false);
    let of_set = listed(&machines, &params, address).await?;
    let of_set = values(&set::owned(&objects, of_set));
    for machine in &of_set {
        zones.read(client, machine).await;
    }
    Ok(Found {
        sets: Sets::of(&objects, &of_set, judge),
        machines: rows(judge, &zones, &of_set),
        ..Found::default()
    })
}

/// What was found.
#[derive(Debug, Default)]
struct Found {
    machines: Vec<Row>,
    capacities: Capacities,
    sets: Sets,
    schedules: Schedules,
}

impl Found {
    /// The verdict about the object that was asked for by its name. A set has none.
    fn only(&self) -> Option<&Verdict> {
        if !self.sets.is_empty() {
            return None;
        }
        match (self.machines.as_slice(), self.capacities.rows.as_slice()) {
            ([machine], []) => Some(machine.verdict()),
            ([], [capacity]) => Some(capacity.verdict()),
            _ => None,
        }
    }
}

/// The machines that were listed, and all else.
async fn everything(
    client: &Client,
    selection: Selection<'_>,
    judge: &Judge,
    machines: &[Value],
) -> Found {
    let capacities = source::listed::<ScheduledCapacity>(client, selection).await;
    let mut followers = Followers::default();
    let of_capacities = capacities.iter().flatten().map(|it| it.object.clone());
    let of_capacities: Vec<Value> = of_capacities.collect();
    let all = machines.iter().chain(&of_capacities);
    all.for_each(|it| followers.add(it));
    let schedules = Schedules::list(client, selection, &followers).await;
    let zones = Zones::listed(&schedules);
    Found {
        sets: Sets::list(client, selection, judge, machines).await,
        machines: rows(judge, &zones, machines),
        capacities: Capacities::listed(client, selection, judge, &zones, capacities)
            .await,
        schedules,
    }
}

/// Objects as they are read.
fn values(objects: &[DynamicObject]) -> Vec<Value> {
    objects.iter().map(|it| json!(it)).collect()
}

/// The objects of a kind, of the selected namespace or of all.
fn api_of<K: kube::Resource<DynamicType = ()>>(
    client: &Client,
    is_all: bool,
) -> Api<DynamicObject> {
    cluster::objects(client, &ApiResource::erase::<K>(&()), is_all)
}

/// Reads machines.
async fn listed(
    api: &Api<DynamicObject>,
    params: &ListParams,
    address: &str,
) -> Result<Vec<DynamicObject>, Failure> {
    let listed = api.list(params).await;
    let failed =
        |error| cluster::failed_request("reading ScheduledMachines", address, error);
    Ok(listed.map_err(failed)?.items)
}

/// The rows of machines, what to look at first at the beginning.
fn rows(judge: &Judge, zones: &Zones, objects: &[Value]) -> Vec<Row> {
    let rows = objects.iter().map(|object| row(judge, zones, object));
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(Row::order);
    rows
}

/// What a list without machines says. `None` if an object was named.
fn none_found(selection: Selection<'_>, namespace: &str) -> Option<String> {
    let none = "No ScheduledMachines found";
    match selection {
        Selection::Named(_) => None,
        Selection::All => Some(format!("{none}.")),
        Selection::Namespace => Some(format!(
            "{none} in namespace {namespace}; -A lists all namespaces."
        )),
    }
}

/// Prints what was found. `none_found` is printed for a list without machines.
fn print(
    form: Form,
    found: &Found,
    none_found: Option<&str>,
    instants: &Instants,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Found {
        machines,
        capacities,
        sets,
        schedules,
    } = found;
    match form {
        Form::Text | Form::Wide => {
            if !machines.is_empty() {
                table::text(out, machines, instants)?;
            } else if let Some(none_found) = none_found {
                writeln!(out, "{none_found}")?;
            }
            if none_found.is_some() && !capacities.is_empty() {
                writeln!(out)?;
            }
            let is_colored = output::is_colored(&std::io::stdout());
            capacities.print(out, instants, is_colored)?;
            if !sets.is_empty() {
                if none_found.is_some() || !machines.is_empty() {
                    writeln!(out)?;
                }
                sets.print(out)?;
            }
            if !schedules.is_empty() {
                writeln!(out)?;
            }
            Ok(schedules.print(out, instants)?)
        }
        Form::Json => output::json(out, &document(found)),
        Form::Yaml => output::yaml(out, &document(found)),
    }
}

/// The JSON and YAML output.
fn document(found: &Found) -> Value {
    let mut document = json!({"items": found.machines});
    if !found.capacities.rows.is_empty() {
        document["capacities"] = json!(found.capacities.rows);
    }
    if !found.sets.rows.is_empty() {
        document["sets"] = json!(found.sets.rows);
    }
    if !found.schedules.rows.is_empty() {
        document["schedules"] = json!(found.schedules.rows);
    }
    let unreadable = found.capacities.unreadable.iter();
    let unreadable = unreadable.chain(&found.sets.unreadable);
    let unreadable: Vec<_> = unreadable.chain(&found.schedules.unreadable).collect();
    if !unreadable.is_empty() {
        document["notReadable"] = json!(unreadable);
    }
    document
}

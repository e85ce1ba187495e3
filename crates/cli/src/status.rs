//! `5spot status`: the state of each machine.

mod table;
#[cfg(test)]
mod tests;

use std::io::Write;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use fivespot_api::ScheduledMachine;
use futures::TryStreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;

use crate::check::{Judge, LeaseFlags, Operator};
use crate::cluster::{self, Access};
use crate::reader::Reader;
use crate::signals::Signals;
use crate::{Failure, Outcome, check, completion, output};
use table::{Instants, Row};

const EXAMPLES: &str = "\
Examples:
  5spot status
  5spot status business-hours-worker
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
/// Exit codes: 0 printed, 1 the machine that NAME names is Blocked, 2 error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of a ScheduledMachine [default: lists all]
    #[arg(
        value_name = "NAME",
        conflicts_with = "all_namespaces",
        add = ArgValueCompleter::new(completion::machines)
    )]
    name: Option<String>,
    /// List all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Print a line for each change, until Ctrl-C
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
fn row(judge: &Judge, object: &DynamicObject) -> Result<Row, Failure> {
    let object = serde_json::to_value(object)
        .map_err(|error| Failure::new("reading ScheduledMachines", error))?;
    let verdict = cluster::verdict(&object, &judge.lease, judge.now);
    Ok(Row::of(&object, verdict))
}

impl Form {
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
    let config = args.access.config().await?;
    let address = args.access.address(&config);
    let client = Client::try_from(config).map_err(cluster::no_client)?;
    let operator = args.lease.operator();
    let resource = ApiResource::erase::<ScheduledMachine>(&());
    let api: Api<DynamicObject> = if args.all_namespaces {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::default_namespaced_with(client.clone(), &resource)
    };
    if args.watch {
        cluster::require_reachable(&client, &address).await?;
        warn(&client, &address, &operator).await;
        let cluster = WatchedCluster {
            client,
            address,
            operator,
        };
        return follow(args, &cluster, api, out).await;
    }
    let found = if let Some(name) = &args.name {
        let namespace = client.default_namespace();
        vec![cluster::machine(&client, &address, namespace, name).await?]
    } else {
        let listed = api.list(&ListParams::default()).await;
        let failed =
            |error| cluster::failed_request("reading ScheduledMachines", &address, error);
        listed.map_err(failed)?.items
    };
    let judge = Judge::read(&client, &address, &operator).await;
    let mut rows = found
        .iter()
        .map(|object| row(&judge, object))
        .collect::<Result<Vec<_>, _>>()?;
    rows.sort_by(Row::order);
    print(args.output, &rows, &args.output.instants(&judge), out)?;
    warn(&client, &address, &operator).await;
    match (args.name.is_some(), rows.as_slice()) {
        (true, [row]) => {
            if args.output == Form::Text || args.output == Form::Wide {
                table::remedy(out, row)?;
            }
            Ok(row.outcome())
        }
        _ => Ok(Outcome::Yes),
    }
}

/// Prints a warning if no operator holds its Lease. The state of the machines is then outdated.
async fn warn(client: &Client, address: &str, operator: &Operator) {
    output::notes("warning", &lease_error(client, address, operator).await);
}

/// Why no operator runs. `None` if one runs, or its Lease cannot be read.
async fn lease_error(
    client: &Client,
    address: &str,
    operator: &Operator,
) -> Option<String> {
    let reader = Reader::of(client.clone(), address).await.ok()?;
    check::lease_error(&reader, operator).await
}

fn print(
    form: Form,
    rows: &[Row],
    instants: &Instants,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match form {
        Form::Text | Form::Wide if rows.is_empty() => {
            writeln!(out, "No ScheduledMachines found.")?;
            Ok(())
        }
        Form::Text | Form::Wide => Ok(table::text(out, rows, instants)?),
        Form::Json => output::json(out, &json!({"items": rows})),
        Form::Yaml => output::yaml(out, &json!({"items": rows})),
    }
}

/// The cluster that is watched.
struct WatchedCluster {
    client: Client,
    address: String,
    operator: Operator,
}

impl WatchedCluster {
    async fn judge(&self) -> Judge {
        Judge::read(&self.client, &self.address, &self.operator).await
    }
}

async fn follow(
    args: &Args,
    cluster: &WatchedCluster,
    api: Api<DynamicObject>,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let config = match &args.name {
        None => watcher::Config::default(),
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
    };
    let mut events = std::pin::pin!(watcher(api, config));
    let mut closed = std::pin::pin!(output::closed());
    let mut printed = table::PrintedRows::default();
    // The initial list is printed at once, so that its columns fit all rows.
    let mut listed: Vec<DynamicObject> = Vec::new();
    loop {
        let event = tokio::select! {
            () = signals.received() => return Ok(Outcome::Yes),
            () = &mut closed => return Ok(Outcome::Yes),
            event = events.try_next() => event,
        };
        let event = event.map_err(|error| {
            Failure::new("watching ScheduledMachines", error)
                .remedy("check the cluster and your access to it")
        })?;
        let (objects, is_deleted) = match event {
            Some(Event::InitApply(object)) => {
                listed.push(object);
                continue;
            }
            Some(Event::Apply(object)) => (vec![object], false),
            Some(Event::Delete(object)) => (vec![object], true),
            Some(Event::InitDone) => (std::mem::take(&mut listed), false),
            Some(Event::Init) => {
                listed.clear();
                continue;
            }
            None => return Ok(Outcome::Yes),
        };
        if objects.is_empty() {
            continue;
        }
        let judge = cluster.judge().await;
        let mut rows = Vec::new();
        for object in &objects {
            let mut row = row(&judge, object)?;
            if is_deleted {
                row = row.deleted();
            }
            if printed.is_changed(&row, is_deleted) {
                rows.push(row);
            }
        }
        rows.sort_by(Row::order);
        if !rows.is_empty() {
            printed.set_instants(args.output.instants(&judge));
            print_changed(args.output, &mut printed, &rows, out)?;
        }
    }
}

/// Prints rows that have changed.
fn print_changed(
    form: Form,
    printed: &mut table::PrintedRows,
    rows: &[Row],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match form {
        Form::Text | Form::Wide => printed.lines(out, rows)?,
        Form::Json => {
            for row in rows {
                writeln!(out, "{}", json!(row))?;
            }
        }
        Form::Yaml => {
            for row in rows {
                writeln!(out, "---")?;
                output::yaml(out, row)?;
            }
        }
    }
    Ok(out.flush()?)
}

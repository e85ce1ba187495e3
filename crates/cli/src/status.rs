//! `5spot status`: the state of each machine.

mod table;
#[cfg(test)]
mod tests;

use std::io::Write;

use clap::ValueEnum;
use fivespot_api::{ScheduledMachine, name};
use futures::TryStreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};

use crate::cluster::{self, Access};
use crate::reader::Reader;
use crate::signals::Signals;
use crate::{Failure, Outcome, check, output};
use table::{Instants, Row};

const EXAMPLES: &str = "\
Examples:
  5spot status
  5spot status -A --watch
  5spot status -o wide
  5spot status -n team-a -o json";

/// Show phase, node, next change and message of each machine
///
/// The next change is shown relative to now and in the time zone of the schedule; with -o wide,
/// json and yaml in UTC. A warning is printed if no operator renews its Lease, because then no
/// machine changes. Without permission to read the Lease, it is not checked.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// List all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Print a line for each change, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// Output format; with --watch, one document for each change
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    /// Namespace of the operator
    #[arg(long, value_name = "NAME", default_value = name::SYSTEM_NAMESPACE)]
    operator_namespace: String,
    /// Name of the operator's Lease
    #[arg(long, value_name = "NAME", default_value = name::LEADER_LEASE)]
    lease_name: String,
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

impl Form {
    /// How instants are shown in a table. Reads the time of the cluster only where it is shown.
    async fn instants(self, client: &Client) -> Instants {
        match self {
            Self::Text => Instants::Local(cluster::now(client).await),
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
    let resource = ApiResource::erase::<ScheduledMachine>(&());
    let api: Api<DynamicObject> = if args.all_namespaces {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::default_namespaced_with(client.clone(), &resource)
    };
    if args.watch {
        cluster::require_reachable(&client, &address).await?;
        warn(args, &client, &address).await;
        follow(args, &client, api, out).await
    } else {
        let found = api.list(&ListParams::default()).await.map_err(|error| {
            cluster::failed_request("reading ScheduledMachines", &address, error)
        })?;
        let objects = found
            .items
            .iter()
            .map(value)
            .collect::<Result<Vec<_>, _>>()?;
        print(
            args.output,
            &objects,
            &args.output.instants(&client).await,
            out,
        )?;
        warn(args, &client, &address).await;
        Ok(Outcome::Yes)
    }
}

/// Prints a warning if no operator holds its Lease. The state of the machines is then outdated.
async fn warn(args: &Args, client: &Client, address: &str) {
    let operator = check::Operator {
        namespace: args.operator_namespace.clone(),
        account: name::CONTROLLER.to_owned(),
        lease: args.lease_name.clone(),
    };
    output::notes("warning", &lease_error(client, address, &operator).await);
}

/// Why no operator runs. `None` if one runs, or its Lease cannot be read.
async fn lease_error(
    client: &Client,
    address: &str,
    operator: &check::Operator,
) -> Option<String> {
    let reader = Reader::of(client.clone(), address).await.ok()?;
    check::lease_error(&reader, operator).await
}

fn value(object: &DynamicObject) -> Result<Value, Failure> {
    serde_json::to_value(object)
        .map_err(|error| Failure::new("reading ScheduledMachines", error))
}

fn print(
    form: Form,
    objects: &[Value],
    instants: &Instants,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let rows: Vec<Row> = objects.iter().map(Row::of).collect();
    match form {
        Form::Text | Form::Wide if rows.is_empty() => {
            writeln!(out, "No ScheduledMachines found.")?;
            Ok(())
        }
        Form::Text | Form::Wide => Ok(table::text(out, &rows, instants)?),
        Form::Json => output::json(out, &json!({"items": rows})),
        Form::Yaml => output::yaml(out, &json!({"items": rows})),
    }
}

async fn follow(
    args: &Args,
    client: &Client,
    api: Api<DynamicObject>,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    let mut printed = table::PrintedRows::default();
    // The initial list is printed at once, so that its columns fit all rows.
    let mut listed: Vec<Row> = Vec::new();
    loop {
        let event = tokio::select! {
            () = signals.received() => return Ok(Outcome::Yes),
            event = events.try_next() => event,
        };
        let event = event.map_err(|error| {
            Failure::new("watching ScheduledMachines", error)
                .remedy("check the cluster and your access to it")
        })?;
        let (mut rows, is_deleted) = match event {
            Some(Event::InitApply(object)) => {
                listed.push(Row::of(&value(&object)?));
                continue;
            }
            Some(Event::Apply(object)) => (vec![Row::of(&value(&object)?)], false),
            Some(Event::Delete(object)) => {
                (vec![Row::of(&value(&object)?).deleted()], true)
            }
            Some(Event::InitDone) => (std::mem::take(&mut listed), false),
            Some(Event::Init) => {
                listed.clear();
                continue;
            }
            None => return Ok(Outcome::Yes),
        };
        rows.retain(|row| printed.is_changed(row, is_deleted));
        if !rows.is_empty() {
            printed.set_instants(args.output.instants(client).await);
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

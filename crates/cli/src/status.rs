//! `5spot status`: the state of each machine.

mod table;

use std::io::Write;

use fivespot_api::ScheduledMachine;
use futures::TryStreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};

use crate::cluster::{self, Access};
use crate::output::Format;
use crate::signals::Signals;
use crate::{Failure, Outcome, output};
use table::Row;

const EXAMPLES: &str = "\
Examples:
  5spot status
  5spot status -A --watch
  5spot status -n team-a -o json";

/// Show phase, node, next change and message of each machine
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
    output: Format,
    #[command(flatten)]
    access: Access,
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
        Api::all_with(client, &resource)
    } else {
        Api::default_namespaced_with(client, &resource)
    };
    if args.watch {
        follow(args, api, out).await
    } else {
        let found = api.list(&ListParams::default()).await.map_err(|error| {
            cluster::failed_request("reading ScheduledMachines", &address, error)
        })?;
        let objects = found
            .items
            .iter()
            .map(value)
            .collect::<Result<Vec<_>, _>>()?;
        print(args.output, &objects, out)?;
        Ok(Outcome::Yes)
    }
}

fn value(object: &DynamicObject) -> Result<Value, Failure> {
    serde_json::to_value(object)
        .map_err(|error| Failure::new("reading ScheduledMachines", error))
}

fn print(format: Format, objects: &[Value], out: &mut dyn Write) -> Result<(), Failure> {
    let rows: Vec<Row> = objects.iter().map(Row::of).collect();
    match format {
        Format::Text if rows.is_empty() => {
            writeln!(out, "No ScheduledMachines found.")?;
            Ok(())
        }
        Format::Text => Ok(table::text(out, &rows)?),
        Format::Json => output::json(out, &json!({"items": rows})),
        Format::Yaml => output::yaml(out, &json!({"items": rows})),
    }
}

async fn follow(
    args: &Args,
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
        print_changed(args.output, &mut printed, &rows, out)?;
    }
}

/// Prints rows that have changed.
fn print_changed(
    format: Format,
    printed: &mut table::PrintedRows,
    rows: &[Row],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match format {
        Format::Text if rows.is_empty() => {}
        Format::Text => printed.lines(out, rows)?,
        Format::Json => {
            for row in rows {
                writeln!(out, "{}", json!(row))?;
            }
        }
        Format::Yaml => {
            for row in rows {
                writeln!(out, "---")?;
                output::yaml(out, row)?;
            }
        }
    }
    Ok(out.flush()?)
}

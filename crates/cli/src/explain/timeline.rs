//! `5spot explain NAME --timeline`: the course of the last shutdown.

use std::io::Write;

use fivespot_api::ScheduledMachine;
use fivespot_dashboard::{Reader, shutdown};
use fivespot_drawing::timeline::{self, Timeline};
use kube::Api;
use serde_json::{Value, json};

use super::{Args, Form};
use crate::cluster::{self, block_on};
use crate::{Failure, Outcome, output, plain};

pub(super) fn run(
    args: &Args,
    name: &str,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let Some(found) = block_on(read(args, name))? else {
        // Standard output is for the picture alone, which may be redirected into a file.
        let none = format!(
            "no shutdown of {name} is recorded: its status has none, and most clusters keep \
             Events for an hour"
        );
        output::notes("note", [&none]);
        return Ok(Outcome::No);
    };
    match args.output {
        Form::Text => write!(out, "{}", plain::lines(&timeline::text(&found)))?,
        Form::Svg => write!(out, "{}", timeline::svg(&found))?,
        Form::Json => output::json(out, &value(&found))?,
        Form::Yaml => output::yaml(out, &value(&found))?,
    }
    Ok(Outcome::Yes)
}

async fn read(args: &Args, name: &str) -> Result<Option<Timeline>, Failure> {
    let config = args.access.config().await?;
    let namespace = config.default_namespace.clone();
    let what = format!("reading ScheduledMachine {namespace}/{name}");
    let failed = |why: String| {
        Failure::new(&what, why).remedy("check the name and your access to the cluster")
    };
    let address = args.access.address(&config);
    let options = super::options(config, args.node_access)?;
    let client = options.client.clone();
    let now = cluster::require_reachable(&client, &address).await?;
    let machines: Api<ScheduledMachine> = Api::namespaced(client.clone(), &namespace);
    let object = machines
        .get(name)
        .await
        .map_err(|error| failed(cluster::error_message(error)))?;
    let reader = Reader::new(options, Some(namespace.clone()));
    let events = reader.events_of(&namespace, name).await.map_err(failed)?;
    Ok(shutdown::timeline(&object, &events, now))
}

fn value(timeline: &Timeline) -> Value {
    let entries = timeline.entries.iter().map(
        |entry| json!({"time": entry.at, "kind": entry.mark.word(), "text": entry.text}),
    );
    json!({"entries": entries.collect::<Vec<_>>()})
}

//! `5spot explain NAME --timeline`: the course of the last shutdown.

use std::io::Write;

use fivespot_api::ScheduledMachine;
use fivespot_dashboard::{Reader, shutdown};
use fivespot_drawing::timeline::{self, Timeline};
use kube::Client;
use serde_json::{Value, json};

use super::{Args, Form};
use crate::cluster::{self, block_on};
use crate::preview::source;
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
    let object = machine(&client, &address, name).await?;
    let reader = Reader::new(options, Some(namespace.clone()));
    let events = reader.events_of(&namespace, name).await.map_err(failed)?;
    Ok(shutdown::timeline(&object, &events, now))
}

/// Reads the machine, and the schedule that it follows, whose time zone the timeline has.
async fn machine(
    client: &Client,
    address: &str,
    name: &str,
) -> Result<ScheduledMachine, Failure> {
    let (mut object, context) = source::machine(client, address, name).await?;
    if let Ok(context) = context {
        // Without a schedule that can be evaluated, the times are those of UTC.
        let namespace = client.default_namespace();
        let _ = context.inputs.schedule(&mut object, namespace);
    }
    Ok(object)
}

fn value(timeline: &Timeline) -> Value {
    let entries = timeline.entries.iter().map(
        |entry| json!({"time": entry.at, "kind": entry.mark.word(), "text": entry.text}),
    );
    json!({"entries": entries.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use fivespot_api::name;
    use fivespot_testkit::{Cluster, instant, scheduled_machine};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_times_are_those_of_the_schedule_that_the_machine_follows() {
        let now = instant("2026-03-06T15:00:00Z");
        let cluster = Cluster::start(now).await;
        cluster
            .apply(&json!({
                "apiVersion": name::SPOT_API_VERSION, "kind": name::TIME_BASED_KIND,
                "metadata": {"name": "office", "namespace": "default"},
                "spec": {
                    "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "Asia/Tokyo",
                },
            }))
            .await;
        let mut follower = scheduled_machine("worker");
        follower["spec"]["schedule"] = json!({
            "apiVersion": name::SPOT_API_VERSION, "kind": name::TIME_BASED_KIND, "name": "office",
        });
        cluster.apply(&follower).await;
        let client = cluster.client();
        let mut object = machine(&client, "the test", "worker").await.unwrap();
        let status = json!({"shutdown": {
            "machineUID": "m-1", "reason": "Schedule", "startedAt": now, "deadline": now,
        }});
        object.status = Some(serde_json::from_value(status).unwrap());
        let found = shutdown::timeline(&object, &[], now).unwrap();
        assert_eq!(found.zone.iana_name(), Some("Asia/Tokyo"));
    }
}

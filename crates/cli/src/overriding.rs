//! `5spot run`, `stop`, `hold`, `skip` and `overrides`: temporary changes of schedules.
//!
//! They write ScheduleOverrides and do not change a ScheduledMachine, so that GitOps tools see no
//! difference.

mod effect;
mod read;
mod table;
mod target;
#[cfg(test)]
mod tests;

use std::io::Write;

use clap_complete::engine::ArgValueCompleter;
use fivespot_api::schedule_override::MAX_OVERRIDE_DURATION;
use fivespot_api::time::whole_seconds;
use fivespot_api::{OverrideMode, ScheduleOverride, name, rules};
use fivespot_schedule::{Duration, Schedule};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::cluster::{self, Access};
use crate::time::{self, InstantOrDate};
use crate::{Failure, Format, Outcome, completion, output, plain};
use read::list;
use target::Target;

pub(crate) const RUN: &str = "\
Examples:
  5spot run desk-042 --for 2h --reason INC-4711
  5spot run desk-042 --until 2026-11-23T22:00:00Z";
pub(crate) const STOP: &str = "\
Examples:
  5spot stop desk-042 --for 8h
  5spot stop desk-042 -n team-a --until 2026-11-24";
pub(crate) const HOLD: &str = "\
Example:
  5spot hold desk-042 --for 1h --reason 'moving racks'";
const SKIP: &str = "\
Example:
  5spot skip desk-042 --reason 'no batch tonight'";
const LIST: &str = "\
Examples:
  5spot overrides -A
  5spot overrides --end desk-042-run-x7k2p";

/// Who has written an override, in its managed fields.
const FIELD_MANAGER: &str = "5spot";

/// Arguments of `5spot run`, `stop` and `hold`: which machine, until when, and why.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which-end").required(true))]
pub(crate) struct SpanArgs {
    /// Name of the ScheduledMachine
    #[arg(add = ArgValueCompleter::new(completion::machines))]
    name: String,
    /// How long, from now on: digits and one of s, m, h; at most 14 days
    #[arg(
        long = "for",
        value_name = "DURATION",
        group = "which-end",
        value_parser = time::duration,
        allow_hyphen_values = true
    )]
    length: Option<Duration>,
    /// Until when: RFC 3339, or a date in the schedule's time zone
    #[arg(long, value_name = "TIME", group = "which-end")]
    until: Option<InstantOrDate>,
    #[command(flatten)]
    create: CreateArgs,
}

/// Arguments of `5spot skip`.
#[derive(Debug, clap::Args)]
#[command(about = "Skip the next window of a machine", after_help = SKIP)]
pub(crate) struct SkipArgs {
    /// Name of the ScheduledMachine
    #[arg(add = ArgValueCompleter::new(completion::machines))]
    name: String,
    #[command(flatten)]
    create: CreateArgs,
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// Free-text reason
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

/// Arguments of `5spot overrides`.
#[derive(Debug, clap::Args)]
#[command(about = "List the overrides of schedules, or end one", after_help = LIST)]
pub(crate) struct ListArgs {
    /// End the override of this name: it is deleted
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::overrides))]
    end: Option<String>,
    /// The overrides of all namespaces
    #[arg(short = 'A', long, conflicts_with = "end")]
    all_namespaces: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

/// Creates an override of that mode, which begins now.
pub(crate) fn override_now(
    mode: OverrideMode,
    args: &SpanArgs,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    cluster::block_on(async {
        let cluster = args.create.access.connect().await?;
        let now = cluster.now;
        let target = Target::read(&cluster, &args.name).await?;
        let end = end_of(args, mode, &target, now)?;
        let requested = RequestedOverride {
            mode,
            start: None,
            end,
            reason: args.create.reason.as_deref(),
        };
        let created = create(&cluster.client, &args.name, &requested).await?;
        args.create.print(out, &created, &args.name, &requested)?;
        if matches!(args.create.output, Format::Text) {
            let created = serde_json::to_value(created).and_then(serde_json::from_value);
            let note = created.map(|created| effect::note(target, created, now));
            if let Ok(Some(note)) = note {
                writeln!(out, "note: {}", plain::line(&note))?;
            }
        }
        Ok(Outcome::Yes)
    })
}

/// The end of an override that is created now.
fn end_of(
    args: &SpanArgs,
    mode: OverrideMode,
    target: &Target,
    now: Timestamp,
) -> Result<Timestamp, Failure> {
    let (flag, end) = match (args.length, args.until) {
        (Some(length), _) => ("--for", now.checked_add(SignedDuration::from(length))),
        (None, Some(InstantOrDate::Instant(until))) => ("--until", Ok(until)),
        (None, Some(date)) => ("--until", Ok(date.instant_in(&target.zone()?))),
        (None, None) => ("--until", Ok(now)),
    };
    let end =
        end.map_err(|error| Failure::new(flag, error).remedy("give a shorter time"))?;
    if whole_seconds(end) <= now {
        let why = format!(
            "{} is not later than now, {}",
            whole_seconds(end),
            whole_seconds(now)
        );
        return Err(Failure::new(flag, why).remedy("give a later end"));
    }
    check_limit(flag, end, now)?;
    if let Some((class, most)) = target.forbidding_class(mode.into(), now, end) {
        let why = format!(
            "{} is more than {most:#} from now, the longest that ScheduledMachineClass {class} \
             allows",
            whole_seconds(end)
        );
        return Err(Failure::new(flag, why).remedy("give an earlier end"));
    }
    Ok(end)
}

/// Refuses an end at which the operator has ended the override already. A server refuses it only if the
/// policy is installed.
fn check_limit(what: &str, end: Timestamp, now: Timestamp) -> Result<(), Failure> {
    if whole_seconds(end).duration_since(now) <= MAX_OVERRIDE_DURATION {
        return Ok(());
    }
    let days = MAX_OVERRIDE_DURATION.as_hours() / 24;
    let why = format!("{} is more than {days} days from now", whole_seconds(end));
    Err(Failure::new(what, why).remedy("give an earlier end, and another override later"))
}

/// Creates an override that stops the machine during the next window of its schedule.
pub(crate) fn skip(args: &SkipArgs, out: &mut dyn Write) -> Result<Outcome, Failure> {
    cluster::block_on(async {
        let cluster = args.create.access.connect().await?;
        let now = cluster.now;
        let target = Target::read(&cluster, &args.name).await?;
        let schedule = target.schedule?;
        let (start, end) =
            next_window(&schedule, now).ok_or_else(|| nothing_to_skip(&args.name))?;
        check_limit("the end of the next window", end, now)?;
        let requested = RequestedOverride {
            mode: OverrideMode::Stop,
            start: Some(start),
            end,
            reason: args.create.reason.as_deref(),
        };
        let created = create(&cluster.client, &args.name, &requested).await?;
        args.create.print(out, &created, &args.name, &requested)?;
        Ok(Outcome::Yes)
    })
}

fn nothing_to_skip(name: &str) -> Failure {
    let why = "no window of its schedule starts and ends within ten years";
    Failure::new(format!("ScheduledMachine {name}"), why)
        .remedy("use `5spot stop` with an end")
}

/// The first window that starts after `now`, with its end.
fn next_window(schedule: &Schedule, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let window = schedule.at(now);
    let start = if window.is_open() {
        schedule.at(window.until()?).until()?
    } else {
        window.until()?
    };
    Some((start, schedule.at(start).until()?))
}

/// The override to create.
struct RequestedOverride<'r> {
    mode: OverrideMode,
    start: Option<Timestamp>,
    end: Timestamp,
    reason: Option<&'r str>,
}

impl RequestedOverride<'_> {
    fn manifest(&self, machine: &str) -> Value {
        let mode = self.mode.as_str();
        // Leaves room for the suffix that the server appends to the name.
        let stem: String = machine.chars().take(50).collect();
        let mut object = json!({
            "apiVersion": name::API_VERSION,
            "kind": name::OVERRIDE_KIND,
            "metadata": {"generateName": format!("{stem}-{}-", mode.to_lowercase())},
            "spec": {
                "targetRef": {"name": machine},
                "mode": mode,
                "endTime": whole_seconds(self.end).to_string(),
            },
        });
        if let Some(start) = self.start {
            object["spec"]["startTime"] = json!(whole_seconds(start).to_string());
        }
        if let Some(reason) = self.reason {
            object["spec"]["reason"] = json!(reason);
        }
        object
    }
}

async fn create(
    client: &Client,
    machine: &str,
    requested: &RequestedOverride<'_>,
) -> Result<DynamicObject, Failure> {
    let manifest = requested.manifest(machine);
    let unreadable = |error| Failure::new("the ScheduleOverride", error);
    let object: ScheduleOverride =
        serde_json::from_value(manifest.clone()).map_err(unreadable)?;
    if let Some(violation) = rules::check_override(&object).first() {
        return Err(Failure::new("the ScheduleOverride", violation)
            .remedy("give another machine or time"));
    }
    let resource = ApiResource::erase::<ScheduleOverride>(&());
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let object = serde_json::from_value(manifest).map_err(unreadable)?;
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let mut created = api.create(&params, &object).await.map_err(|error| {
        let message = cluster::error_message(error);
        let remedy = remedy(&message);
        Failure::new("creating the ScheduleOverride", message).remedy(remedy)
    })?;
    // kubectl does not print them either.
    created.metadata.managed_fields = None;
    Ok(created)
}

/// What to do about a ScheduleOverride that the API server has refused with that message.
fn remedy(message: &str) -> String {
    if message.contains("cannot create resource") {
        return format!(
            "ask who binds roles in this namespace for the ClusterRole {}",
            name::OVERRIDE_EDITOR
        );
    }
    format!(
        "end it at most {} days from now",
        MAX_OVERRIDE_DURATION.as_hours() / 24
    )
}

impl CreateArgs {
    /// Prints the created override.
    fn print(
        &self,
        out: &mut dyn Write,
        created: &DynamicObject,
        machine: &str,
        requested: &RequestedOverride<'_>,
    ) -> Result<(), Failure> {
        output::print(out, self.output, created, |out| {
            let named = created.metadata.name.as_deref().unwrap_or_default();
            let flags = self.access.flags();
            let message =
                created_message(&plain::line(named), &flags, machine, requested);
            writeln!(out, "{message}")
        })
    }
}

/// A one-line description of the created override. `flags` select its cluster and namespace.
fn created_message(
    named: &str,
    flags: &str,
    machine: &str,
    requested: &RequestedOverride<'_>,
) -> String {
    let what = match requested.mode {
        OverrideMode::Run => "runs",
        OverrideMode::Stop => "is stopped",
        OverrideMode::Hold => "is held as it is",
    };
    let from = requested.start.map_or(String::new(), |start| {
        format!(" from {}", whole_seconds(start))
    });
    let end = whole_seconds(requested.end);
    format!(
        "{machine} {what}{from} until {end} (ScheduleOverride {named}; `5spot overrides --end \
         {named}{flags}` ends it)"
    )
}

/// Lists overrides, or ends one.
pub(crate) fn overrides(
    args: &ListArgs,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    cluster::block_on(async {
        let cluster = args.access.connect().await?;
        if let Some(named) = &args.end {
            let resource = ApiResource::erase::<ScheduleOverride>(&());
            let client = cluster.client;
            let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
            let deleted = api.delete(named, &DeleteParams::default()).await;
            deleted.map_err(|error| {
                Failure::new(
                    format!("deleting ScheduleOverride {named}"),
                    cluster::error_message(error),
                )
                .remedy("`5spot overrides` lists them")
            })?;
            writeln!(out, "ScheduleOverride {} has ended", plain::line(named))?;
            return Ok(Outcome::Yes);
        }
        let found = list(&cluster, args.all_namespaces).await?;
        output::print(out, args.output, &json!({"items": found}), |out| {
            table::print(out, &found, cluster.now)
        })?;
        Ok(Outcome::Yes)
    })
}

//! What the operator has published about a schedule that objects share, who follows it, when it
//! changes, and what is wrong with it.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use fivespot_api::time::whole_seconds;
use fivespot_api::verdict::{self, State, Verdict};
use fivespot_api::{
    ScheduleCalendar, ScheduledCapacity, ScheduledMachine, SharedSchedule, SharedSpec,
    SpotScheduleStatus, lint,
};
use fivespot_dashboard::schedule_text;
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::{Deserialize as _, Serialize};

use super::unreadable::Unreadable;
use super::{CHANGES, HORIZON};
use crate::check::{Judge, Operator};
use crate::cluster::{self, Access, Connection};
use crate::document::Document;
use crate::named::Named;
use crate::preview::source::{self, Selection};
use crate::preview::{Context, calendar_not_found};
use crate::time::InstantOrDate;
use crate::{Failure, output, plain};

/// How many followers of a kind are named as text.
const NAMED: usize = 10;

/// A schedule as far as the user may read it, and what depends on it.
pub(super) struct Inspected {
    kind: &'static str,
    meta: ObjectMeta,
    status: SpotScheduleStatus,
    /// The spec, or why it cannot be decoded.
    shared: Result<SharedSchedule, String>,
    /// What it is compiled to. `None` if it is invalid, or its calendars may not be read.
    schedule: Option<Schedule>,
    missing_calendars: Vec<String>,
    machines: Vec<String>,
    capacities: Vec<String>,
    not_readable: Vec<Unreadable>,
    judge: Judge,
}

/// The printed report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    kind: &'static str,
    namespace: String,
    name: String,
    at: Timestamp,
    /// What the operator has published, judged as every command does.
    pub(super) verdict: Verdict,
    /// Whether it is open at that time; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<bool>,
    schedule: String,
    followers: Followers,
    /// What is wrong or rarely intended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// What the user of the command may not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_readable: Vec<Unreadable>,
    /// The next times at which it opens or closes.
    changes: Vec<Change>,
}

/// The names of the objects that follow the schedule.
#[derive(Debug, Serialize)]
struct Followers {
    machines: Vec<String>,
    capacities: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Change {
    time: Timestamp,
    open: bool,
}

/// Reads a schedule, its calendars and its followers.
///
/// # Errors
/// The schedule cannot be read. If objects follow one of that name, the failure names them.
pub(super) async fn read(
    access: &Access,
    named: Named<'_>,
    operator: &Operator,
) -> Result<Inspected, Failure> {
    let Connection {
        client, address, ..
    } = access.connect().await?;
    let judge = Judge::read(&client, operator).await;
    inspect(&client, &address, named, judge).await
}

pub(super) async fn inspect(
    client: &Client,
    address: &str,
    named: Named<'_>,
    judge: Judge,
) -> Result<Inspected, Failure> {
    let mut not_readable = Vec::new();
    let [machines, capacities] = all_followers(client, named, &mut not_readable).await;
    let found = cluster::named(client, address, named).await;
    let found = found.map_err(|failure| match [&machines, &capacities] {
        [machines, capacities] if machines.is_empty() && capacities.is_empty() => failure,
        _ => failure.remedy(format!(
            "create it, or correct spec.schedule of what follows it: {}",
            named_followers(&machines, &capacities)
        )),
    })?;
    let kind = named.resource.kind;
    let shared = SharedSchedule::of_spec(kind, &found.data["spec"]);
    let shared = shared.map_err(|error| error.to_string());
    let status = SpotScheduleStatus::deserialize(&found.data["status"]);
    let needed = shared.iter().flat_map(SharedSchedule::calendars);
    let needed: Vec<String> = needed.map(ToOwned::to_owned).collect();
    let calendars = if needed.is_empty() {
        Ok(Vec::new())
    } else {
        source::listed::<ScheduleCalendar>(client, Selection::Namespace).await
    };
    let calendars = match calendars {
        Ok(documents) => {
            let namespace = client.default_namespace();
            Some(
                Context::of(&documents, Some(namespace))
                    .inputs
                    .calendars(namespace)
                    .clone(),
            )
        }
        Err(unreadable) => {
            not_readable.push(unreadable);
            None
        }
    };
    let compiled = |shared: &SharedSchedule| {
        let calendars = calendars.as_ref().filter(|_| shared.fault().is_none())?;
        shared.schedule(calendars).ok()
    };
    let is_missing =
        |it: &String| calendars.as_ref().is_some_and(|all| !all.contains_key(it));
    Ok(Inspected {
        kind,
        meta: found.metadata,
        status: status.unwrap_or_default(),
        schedule: shared.as_ref().ok().and_then(compiled),
        shared,
        missing_calendars: needed.into_iter().filter(is_missing).collect(),
        machines,
        capacities,
        not_readable,
        judge,
    })
}

/// The names of the machines and of the capacities that follow the schedule.
async fn all_followers(
    client: &Client,
    named: Named<'_>,
    not_readable: &mut Vec<Unreadable>,
) -> [Vec<String>; 2] {
    let here = Selection::Namespace;
    let found = [
        source::listed::<ScheduledMachine>(client, here).await,
        source::listed::<ScheduledCapacity>(client, here).await,
    ];
    found.map(|found| match found {
        Ok(documents) => followers(&documents, named),
        Err(unreadable) => {
            not_readable.push(unreadable);
            Vec::new()
        }
    })
}

/// The names of those among `documents` that follow the schedule, in their order.
fn followers(documents: &[Document], named: Named<'_>) -> Vec<String> {
    let is_follower = |it: &&Document| {
        it.text("/spec/schedule/kind") == named.resource.kind
            && it.text("/spec/schedule/name") == named.name
    };
    let names = documents.iter().filter(is_follower);
    let mut names: Vec<_> = names
        .map(|it| it.text("/metadata/name").to_owned())
        .collect();
    names.sort_unstable();
    names
}

impl Inspected {
    /// The instant that a flag means, in the time zone of the schedule. The current time if absent.
    pub(super) fn instant(&self, at: Option<InstantOrDate>) -> Timestamp {
        let zone = self.schedule.as_ref().map(|it| it.time_zone().clone());
        let zone = zone.unwrap_or(TimeZone::UTC);
        at.map_or(self.judge.now, |at| at.instant_in(&zone))
    }

    /// What is wrong with the spec, or rarely intended.
    fn notes(&self) -> Vec<String> {
        let shared = match &self.shared {
            Ok(shared) => shared,
            Err(why) => return vec![format!("the spec cannot be read: {why}")],
        };
        let disabled = match shared.spec() {
            SharedSpec::TimeBased(spec) if !spec.enabled => {
                Some("spec.enabled is false: it is never open".to_owned())
            }
            SharedSpec::TimeBased(_) | SharedSpec::CapitalMarkets(_) => None,
        };
        let warnings = lint::of_shared(shared.spec(), self.judge.now).into_iter();
        let warnings = warnings.filter(|_| disabled.is_none()).map(|it| {
            format!(
                "{}: {}; {} ({})",
                it.field, it.message, it.lint.remedy, it.lint.code
            )
        });
        let missing = self.missing_calendars.iter();
        let missing = missing.map(|it| calendar_not_found(it));
        let mut notes: Vec<String> = missing.chain(warnings).collect();
        notes.extend(disabled);
        notes
    }
}

/// The report at an instant.
pub(super) fn report(inspected: &Inspected, at: Timestamp) -> Report {
    let Inspected {
        meta,
        status,
        judge,
        ..
    } = inspected;
    let schedule = inspected.schedule.as_ref();
    let verdict = verdict::schedule::verdict(meta, status, &judge.lease, judge.now);
    let published = status
        .active
        .filter(|_| at == judge.now && !verdict.is_stale);
    let end = at.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
    let changes = schedule.map(|it| it.transitions(at, end).take(CHANGES));
    Report {
        kind: inspected.kind,
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        at: whole_seconds(at),
        open: schedule.map(|it| it.at(at).is_open()).or(published),
        schedule: match &inspected.shared {
            Ok(shared) => schedule_text::shared(shared.spec()),
            Err(_) => "not known".to_owned(),
        },
        followers: Followers {
            machines: inspected.machines.clone(),
            capacities: inspected.capacities.clone(),
        },
        notes: inspected.notes(),
        not_readable: inspected.not_readable.clone(),
        changes: changes
            .into_iter()
            .flatten()
            .map(|(time, open)| Change { time, open })
            .collect(),
        verdict,
    }
}

/// Prints the report as text.
pub(super) fn text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let Report {
        kind,
        namespace,
        name,
        verdict,
        ..
    } = report;
    let state = match verdict.state {
        State::Serving => "open",
        State::Off => "closed",
        other => other.as_str(),
    };
    let since = verdict.since.map(whole_seconds);
    let since = since.map_or_else(String::new, |since| format!(" since {since}"));
    let head = format!("{kind} {namespace}/{name}: {state}{since}");
    writeln!(out, "{}", plain::line(&head))?;
    if !verdict.cause.is_empty() {
        writeln!(out, "{}", plain::line(&verdict.cause))?;
    }
    output::remedy(out, verdict)?;
    let open = match report.open {
        Some(true) => "open",
        Some(false) => "closed",
        None => "not known",
    };
    writeln!(out, "\nAt {}:", report.at)?;
    writeln!(
        out,
        "  schedule   {}; {open}",
        plain::line(&report.schedule)
    )?;
    let Followers {
        machines,
        capacities,
    } = &report.followers;
    let followers = named_followers(machines, capacities);
    writeln!(out, "  followers  {}", plain::line(&followers))?;
    for note in &report.notes {
        writeln!(out, "  {}", plain::line(note))?;
    }
    for unreadable in &report.not_readable {
        writeln!(out, "  {}", plain::line(&unreadable.text()))?;
    }
    writeln!(out, "\nNext changes:")?;
    if report.changes.is_empty() {
        writeln!(out, "  none is known")?;
    }
    for Change { time, open } in &report.changes {
        writeln!(out, "  {time}  {}", if *open { "opens" } else { "closes" })?;
    }
    Ok(())
}

/// `2 ScheduledMachines (a, b), 1 ScheduledCapacity (web)`
fn named_followers(machines: &[String], capacities: &[String]) -> String {
    let kinds = [
        (machines, "ScheduledMachine", "ScheduledMachines"),
        (capacities, "ScheduledCapacity", "ScheduledCapacities"),
    ];
    let named = kinds.into_iter().filter(|(names, ..)| !names.is_empty());
    let named = named.map(|(names, one, several)| {
        let kind = if names.len() == 1 { one } else { several };
        let shown = names.iter().take(NAMED).map(String::as_str);
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{} {kind} ({shown}{more})", names.len())
    });
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        return "none".to_owned();
    }
    named.join(", ")
}

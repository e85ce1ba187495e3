//! What the operator has written about one ScheduledCapacity, and what the user of the command may
//! see of its target and of its schedule.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use fivespot_api::ScheduledCapacity;
use fivespot_api::scheduled_capacity::{FieldPath, WrittenValue};
use fivespot_api::time::whole_seconds;
use fivespot_api::verdict::{self, Verdict};
use fivespot_dashboard::schedule_text;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::GroupVersion;
use kube::discovery::{Scope, pinned_kind};
use serde::Serialize;
use serde_json::Value;

use super::report::judgement;
use super::unreadable::Unreadable;
use super::{CHANGES, HORIZON};
use crate::check::{Judge, Operator};
use crate::cluster::{self, Access, Connection};
use crate::columns::table;
use crate::document::Document;
use crate::named::Named;
use crate::preview::source::{self, Selection};
use crate::preview::{Context, PlannedCapacity};
use crate::time::InstantOrDate;
use crate::{Failure, plain, undecodable};

/// The printed report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    namespace: String,
    name: String,
    at: Timestamp,
    /// What the operator has written, judged as every command does.
    pub(super) verdict: Verdict,
    /// The phase of the status.
    phase: String,
    /// What the user of the command may not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_readable: Vec<Unreadable>,
    schedule: String,
    /// Why the active values do or do not apply.
    wanted: String,
    target: String,
    values: Vec<FieldValue>,
    /// The next changes of the values.
    changes: Vec<Change>,
}

/// A field that follows the schedule.
#[derive(Debug, Serialize)]
struct FieldValue {
    field: String,
    /// What the target has; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Value>,
    /// What was last written; absent if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Value>,
    /// What the schedule wants; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<Value>,
}

/// A change of the values.
#[derive(Debug, Serialize)]
struct Change {
    time: Timestamp,
    values: String,
}

/// The target, as far as the user may read it.
#[derive(Debug)]
pub(super) enum Target {
    /// The object.
    Found(Value),
    /// There is none of that name.
    NotFound,
    /// Its kind is not served.
    NotServed,
    /// The user may not read it.
    NotReadable(Unreadable),
}

/// What a report is about.
pub(super) struct Inspected {
    pub(super) object: ScheduledCapacity,
    pub(super) verdict: Verdict,
    pub(super) target: Target,
    /// The schedule, or why it cannot be evaluated.
    pub(super) planned: Result<PlannedCapacity, Unplanned>,
    pub(super) now: Timestamp,
}

/// Why the schedule cannot be evaluated here.
pub(super) enum Unplanned {
    /// The user may not read what it depends on.
    NotReadable(Failure),
    /// It is wrong, or what it follows is missing.
    Invalid(Failure),
}

/// Reads a ScheduledCapacity, its target and the inputs of its schedule.
///
/// # Errors
/// The ScheduledCapacity cannot be read.
pub(super) async fn read(
    access: &Access,
    named: Named<'_>,
    operator: &Operator,
) -> Result<Inspected, Failure> {
    let Connection {
        client, address, ..
    } = access.connect().await?;
    let found = cluster::named(&client, &address, named).await?;
    let judge = Judge::read(&client, operator).await;
    inspect(&client, found, &judge).await
}

/// Reads the target and the inputs of the schedule of `found`.
pub(super) async fn inspect(
    client: &Client,
    found: DynamicObject,
    judge: &Judge,
) -> Result<Inspected, Failure> {
    let document = source::capacity(found)?;
    let object: ScheduledCapacity = serde_json::from_value(document.object.clone())
        .map_err(|error| undecodable(&document.origin, error))?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let context = source::context(
        client,
        Selection::Named(&name),
        Some(&document.object["spec"]),
    )
    .await;
    Ok(Inspected {
        verdict: verdict::capacity::verdict(&object, &judge.capacity_lease, judge.now),
        target: target(client, &object).await,
        planned: planned(&document, context),
        object,
        now: judge.now,
    })
}

fn planned(
    document: &Document,
    context: Result<Context, Failure>,
) -> Result<PlannedCapacity, Unplanned> {
    let context = context.map_err(Unplanned::NotReadable)?;
    PlannedCapacity::of(document, &context, None).map_err(Unplanned::Invalid)
}

/// Reads the target with the permissions of the user.
async fn target(client: &Client, object: &ScheduledCapacity) -> Target {
    let target = &object.spec.target;
    let not_readable = |error: kube::Error| {
        let why = cluster::error_message(error);
        Target::NotReadable(Unreadable::of(&object.target_text(), &why))
    };
    let Ok(version) = target.api_version.parse::<GroupVersion>() else {
        return Target::NotServed;
    };
    let served = match pinned_kind(client, &version.with_kind(&target.kind)).await {
        Ok(served) => served,
        Err(kube::Error::Api(status)) if status.code != 404 => {
            return not_readable(kube::Error::Api(status));
        }
        Err(kube::Error::Api(_) | kube::Error::Discovery(_)) => return Target::NotServed,
        Err(error) => return not_readable(error),
    };
    let (resource, capabilities) = served;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let own = object.metadata.name.as_deref().unwrap_or_default();
    match api.get_opt(target.name.as_deref().unwrap_or(own)).await {
        Ok(Some(found)) => Target::Found(found.data),
        Ok(None) => Target::NotFound,
        Err(error) => not_readable(error),
    }
}

impl Inspected {
    /// Whether the operator has reported that the active values apply. `None` while it does not
    /// write what applies.
    fn reported(&self) -> Option<bool> {
        let status = self.object.status.as_ref();
        let active = status.and_then(|it| it.active);
        active.filter(|_| verdict::capacity::has_what_it_wants(self.verdict.state))
    }

    /// The instant that a flag means, in the time zone of the schedule. The current time if absent.
    pub(super) fn instant(&self, at: Option<InstantOrDate>) -> Timestamp {
        let zone = self
            .planned
            .as_ref()
            .map(|it| it.schedule.time_zone().clone());
        let zone = zone.unwrap_or(jiff::tz::TimeZone::UTC);
        at.map_or(self.now, |at| at.instant_in(&zone))
    }
}

/// The report at an instant.
pub(super) fn report(inspected: &Inspected, at: Timestamp) -> Report {
    let Inspected { object, target, .. } = inspected;
    let phase = object.status.as_ref().and_then(|status| status.phase);
    let is_active = match &inspected.planned {
        Ok(planned) => Some(planned.is_active_at(at)),
        Err(Unplanned::NotReadable(_)) => {
            inspected.reported().filter(|_| at == inspected.now)
        }
        Err(Unplanned::Invalid(_)) => None,
    };
    Report {
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
        at: whole_seconds(at),
        verdict: inspected.verdict.clone(),
        phase: phase.map_or("none yet", |it| it.as_str()).to_owned(),
        not_readable: not_readable(inspected),
        schedule: schedule_text::schedule(&object.spec.schedule),
        wanted: wanted(inspected, is_active),
        target: target_text(object, target),
        values: values(inspected, is_active),
        changes: changes(inspected, is_active, at),
    }
}

/// The values of the fields: of the target, as they were written, and as they are wanted.
fn values(inspected: &Inspected, is_active: Option<bool>) -> Vec<FieldValue> {
    let Inspected { object, target, .. } = inspected;
    let written: &[WrittenValue] =
        object.status.as_ref().map_or(&[], |status| &status.written);
    let fields = object.spec.all_fields().into_iter().map(|it| {
        let path = it.field.parse::<FieldPath>().ok();
        let now = match target {
            Target::Found(found) => {
                path.and_then(|path| path.get(&found["spec"]).cloned())
            }
            Target::NotFound | Target::NotServed | Target::NotReadable(_) => None,
        };
        let written = written.iter().find(|of| of.field == it.field);
        FieldValue {
            now,
            written: written.map(|of| of.stored.as_ref().unwrap_or(&of.value).clone()),
            wanted: is_active.map(|is_active| {
                if is_active {
                    it.active_value
                } else {
                    it.inactive_value
                }
            }),
            field: it.field,
        }
    });
    fields.collect()
}

/// The next changes; where the schedule is not readable, the one that the operator has published.
fn changes(inspected: &Inspected, is_active: Option<bool>, at: Timestamp) -> Vec<Change> {
    let object = &inspected.object;
    let change = |(time, is_active): (Timestamp, bool)| Change {
        time,
        values: object.values_text(is_active.into()),
    };
    if let Ok(planned) = &inspected.planned {
        let end = at.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
        return planned.changes(at, end).take(CHANGES).map(change).collect();
    }
    let published = object.status.as_ref().and_then(|it| it.next_transition);
    let published = published.zip(is_active.map(|is_active| !is_active));
    published.into_iter().map(change).collect()
}

fn not_readable(inspected: &Inspected) -> Vec<Unreadable> {
    let mut all = Vec::new();
    if let Err(Unplanned::NotReadable(failure)) = &inspected.planned {
        all.push(Unreadable::of("the schedule", &failure.to_string()));
    }
    if let Target::NotReadable(unreadable) = &inspected.target {
        all.push(unreadable.clone());
    }
    all
}

/// Which values apply, and why.
fn wanted(inspected: &Inspected, is_active: Option<bool>) -> String {
    let values = match is_active {
        Some(true) => "the active values apply",
        Some(false) => "the inactive values apply",
        None => "not readable",
    };
    match &inspected.planned {
        Ok(planned) => match planned.off {
            Some(off) => format!("{values}: {}", off.cause()),
            None => values.to_owned(),
        },
        Err(Unplanned::NotReadable(_)) => values.to_owned(),
        Err(Unplanned::Invalid(failure)) => format!("cannot be evaluated: {failure}"),
    }
}

fn target_text(object: &ScheduledCapacity, target: &Target) -> String {
    let state = match target {
        Target::Found(_) => "found",
        Target::NotFound => "not found",
        Target::NotServed => "its kind is not served",
        Target::NotReadable(_) => "not readable",
    };
    format!("{}, {state}", object.target_text())
}

/// Prints the report as text.
pub(super) fn text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    judgement(
        out,
        [&report.namespace, &report.name, &report.phase],
        &report.verdict,
    )?;
    writeln!(out, "\nAt {}:", report.at)?;
    let (schedule, wanted) = (plain::line(&report.schedule), plain::line(&report.wanted));
    writeln!(out, "  schedule  {schedule}; {wanted}")?;
    writeln!(out, "  target    {}", plain::line(&report.target))?;
    for unreadable in &report.not_readable {
        writeln!(out, "  {}", plain::line(&unreadable.text()))?;
    }
    writeln!(out)?;
    let rows: Vec<_> = report.values.iter().map(FieldValue::cells).collect();
    table(out, ["FIELD", "NOW", "WRITTEN", "WANTED"], &rows)?;
    writeln!(out, "\nNext changes:")?;
    if report.changes.is_empty() {
        writeln!(out, "  none is known")?;
    }
    for change in &report.changes {
        writeln!(out, "  {}  {}", change.time, plain::line(&change.values))?;
    }
    Ok(())
}

impl FieldValue {
    fn cells(&self) -> [String; 4] {
        let cell = |value: &Option<Value>| match value {
            None => "-".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        [
            self.field.clone(),
            cell(&self.now),
            cell(&self.written),
            cell(&self.wanted),
        ]
    }
}

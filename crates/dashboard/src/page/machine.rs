//! One machine: the reason for its phase, its next changes, and its history.

use std::collections::BTreeSet;
use std::time::Duration;

use fivespot_api::ScheduledMachine;
use fivespot_api::condition::Reason;
use fivespot_api::verdict::State;
use fivespot_controller::{Inspection, Key, Namespaces, inspect};
use fivespot_drawing::html as drawing;
use fivespot_drawing::timeline::{self, Timeline};
use fivespot_plan::{Memory, explain};
use fivespot_usage::{Query, Rates, Report, html as figures};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use maud::{Markup, PreEscaped, html};

use crate::filter::Filter;
use crate::machine::Machine;
use crate::page::{self, Body, Judged, list, week};
use crate::reader::EventRecord;
use crate::serve::Shared;
use crate::{schedule_text, shutdown};

/// How long a page waits for the management and workload clusters of the machine.
const INSPECTION_TIMEOUT: Duration = Duration::from_secs(3);

/// How many changes of the schedule are listed.
const MAX_TRANSITIONS: usize = 7;

/// How far ahead changes of the schedule are searched.
const TRANSITION_HORIZON: SignedDuration = SignedDuration::from_hours(366 * 24);

/// How many Events are listed.
const MAX_EVENTS: usize = 50;

/// The page of a machine. `None` if there is no such machine.
pub(crate) async fn body(
    shared: &Shared,
    name: &Key,
    filter: &Filter,
    now: Timestamp,
) -> Option<Body> {
    let snapshot = shared.state.snapshot();
    let machine = snapshot.machines.all.get(name)?;
    let judged = Judged {
        name: name.clone(),
        object: machine.clone(),
        verdict: snapshot.verdict(machine, now),
    };
    let (inspection, events) = futures::join!(
        inspect_machine(shared, name),
        shared.reader.events_of(&name.namespace, &name.name)
    );
    let recorded = events.as_deref().unwrap_or_default();
    let timeline = inspection
        .as_ref()
        .ok()
        .and_then(|inspection| shutdown::timeline(&inspection.object, recorded, now));
    let zone = filter.zone_or(machine.zone());
    let timeline = timeline.map(|timeline| in_zone(timeline, &zone));
    let live = html! {
        h1 { span.soft { (name.namespace) "/" } (name.name) }
        (page::notices(&snapshot, &zone))
        (judgement(&judged, &zone, now))
        (facts(machine, &zone, now))
        (PreEscaped(drawing::figure(&week::machine_fleet(&snapshot, &judged, filter, now))))
        (transitions(machine, &zone, now))
        h2 { "Why" }
        @match &inspection {
            Ok(inspection) => (checks_table(inspection, &zone, now)),
            Err(error) => p.notice { "The objects of this machine could not be read: " (error) },
        }
        h2 { "Last shutdown" }
        @match &timeline {
            Some(timeline) => div.scroll #timeline role="region" tabindex="0" aria-label="Timeline of the last shutdown" {
                (PreEscaped(timeline::svg_part(timeline)))
            },
            None => p.empty { "No shutdown is recorded. Events are kept for an hour by most clusters." },
        }
        @if let Ok(inspection) = &inspection { (conditions(inspection, &zone, now)) }
        (usage(machine, shared.rates.as_ref(), now))
        (events_table(&events, &zone, now))
        @if let Ok(inspection) = &inspection { (manifest(&inspection.object)) }
        p.soft { (page::whose_times(&zone)) }
    };
    Some(Body {
        fixed: page::form::of_zone(&name.name, filter),
        live,
    })
}

/// A timeline with all its times in a zone.
fn in_zone(mut timeline: Timeline, zone: &TimeZone) -> Timeline {
    for entry in &mut timeline.entries {
        entry.text = page::text_in_zone(&entry.text, zone);
    }
    Timeline {
        zone: zone.clone(),
        ..timeline
    }
}

/// Inspects the machine as the operator does. Fails after [`INSPECTION_TIMEOUT`].
async fn inspect_machine(shared: &Shared, name: &Key) -> Result<Inspection, String> {
    let inspecting = async {
        let _permit = shared
            .inspections
            .acquire()
            .await
            .map_err(|error| error.to_string())?;
        let mut options = shared.reader.options();
        options.namespaces = Namespaces::Only(BTreeSet::from([name.namespace.clone()]));
        let inspection = inspect(options, name).await?;
        inspection.ok_or_else(|| "it has been deleted".to_owned())
    };
    match tokio::time::timeout(INSPECTION_TIMEOUT, inspecting).await {
        Ok(inspection) => inspection,
        Err(_) => Err("its clusters did not respond within 3 seconds".to_owned()),
    }
}

/// The state, its cause, and what to do about it.
fn judgement(judged: &Judged<Machine>, zone: &TimeZone, now: Timestamp) -> Markup {
    let Judged {
        object: machine,
        verdict,
        ..
    } = judged;
    let is_urgent = verdict.state.rank() < State::Off.rank();
    html! {
        div.verdict.notice[is_urgent] {
            p {
                (page::state(verdict.state))
                @if let Some(since) = verdict.since { " since " span.nowrap { (page::relative(now, since)) } }
                span.soft {
                    " (phase " (page::phase_name(machine.phase()))
                    @if !verdict.reason.is_empty() { ", " (verdict.reason) }
                    ")"
                }
            }
            @if !verdict.cause.is_empty() { p { (page::in_zone(&verdict.cause, zone)) } }
            @if let Some(remedy) = &verdict.remedy {
                p { strong { "What to do: " } (remedy) " Who can: " (verdict.actor.as_str()) "." }
            }
            @if Reason::row(&verdict.reason).is_some() {
                (command(&format!("5spot explain reason {}", verdict.reason)))
            }
            (commands(&machine.name))
        }
    }
}

/// The commands that explain and override it.
fn commands(machine: &Key) -> Markup {
    let (namespace, name) = (&machine.namespace, &machine.name);
    html! {
        @for words in [
            format!("5spot explain {name} -n {namespace}"),
            format!("5spot run {name} -n {namespace} --for 2h"),
            format!("5spot stop {name} -n {namespace} --for 2h"),
        ] {
            (command(&words))
        }
    }
}

/// A command with a button that copies it. Without the script there is no button.
fn command(words: &str) -> Markup {
    html! {
        p.command {
            code { (words) } " "
            button.copy type="button" data-copy=(words) aria-label=(format!("Copy: {words}")) { "Copy" }
        }
    }
}

/// The object as YAML, without its status and what the API server keeps of its changes.
fn manifest(object: &ScheduledMachine) -> Markup {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    object.status = None;
    let text = serde_json::to_value(&object)
        .ok()
        .and_then(|object| serde_saphyr::to_string(&object).ok());
    html! {
        @if let Some(text) = text {
            details #manifest {
                summary { "Manifest" }
                p { button.copy type="button" data-copy-from="yaml" { "Copy the YAML" } }
                pre #yaml role="region" tabindex="0" aria-label="The manifest as YAML" { (text) }
            }
        }
    }
}

/// The schedule of a machine and where it runs.
pub(crate) fn facts(machine: &Machine, zone: &TimeZone, now: Timestamp) -> Markup {
    html! {
        dl.facts {
            dt { "Schedule" } dd { (machine.rule()) }
            dt { "Next change" } dd { (list::next(machine, zone, now)) }
            dt { "Cluster" } dd { (machine.cluster()) }
            @if let Some(class) = machine.class() {
                dt { "Class" }
                dd { (class) @if let Some(host) = machine.host() { ", host " (host) } }
            }
            @if !machine.node().is_empty() { dt { "Node" } dd { (machine.node()) } }
            @if !machine.labels.is_empty() {
                dt { "Labels" }
                dd {
                    @for (key, value) in &machine.labels {
                        code { (key) "=" (value) } " "
                    }
                }
            }
        }
    }
}

fn transitions(machine: &Machine, zone: &TimeZone, now: Timestamp) -> Markup {
    let to = now
        .checked_add(TRANSITION_HORIZON)
        .unwrap_or(Timestamp::MAX);
    let schedule = machine.active_schedule();
    let upcoming: Vec<_> = schedule
        .into_iter()
        .flat_map(|schedule| schedule.transitions(now, to).take(MAX_TRANSITIONS))
        .collect();
    html! {
        h2 { "Next changes of the schedule" }
        @if let Some(schedule) = schedule.filter(|_| !upcoming.is_empty()) {
            table.stack {
                (page::heads(&["When", "In", "What", "Cause"]))
                tbody {
                    @for (at, opens) in &upcoming {
                        tr {
                            th.nowrap scope="row" { (page::local(*at, zone)) }
                            td.nowrap { (page::relative(now, *at)) }
                            td { @if *opens { "opens" } @else { "closes" } }
                            td data-label="Cause" { (schedule_text::cause(schedule.cause(*at))) }
                        }
                    }
                }
            }
        } @else {
            p.empty { "None within a year." }
        }
    }
}

/// The table of the checks in order of precedence, from the function that the operator uses.
fn checks_table(inspection: &Inspection, zone: &TimeZone, now: Timestamp) -> Markup {
    let mut memory = Memory::default();
    memory.observe(
        inspection.object.metadata.generation,
        &inspection.observed,
        now,
    );
    let explanation = explain(&inspection.object, &inspection.observed, &memory, now);
    let deciding = explanation.precedence.iter().position(|it| it.decides);
    html! {
        table.stack {
            caption.soft { "Checked in this order; the first that applies decides" }
            (page::heads(&["Check", "Applies", "Observed"]))
            tbody {
                @for (index, check) in explanation.precedence.iter().enumerate() {
                    @let is_below = deciding.is_some_and(|deciding| index > deciding);
                    tr.decides[check.decides].passed[is_below] {
                        th scope="row" title=(check.reason) { (check.number) ". " (check.name) }
                        td data-label="Applies" {
                            @if check.decides { "decides" } @else if is_below { "not evaluated" } @else { "no" }
                        }
                        td data-label="Observed" { (page::in_zone(&check.observed, zone)) }
                    }
                }
            }
        }
    }
}

fn conditions(inspection: &Inspection, zone: &TimeZone, now: Timestamp) -> Markup {
    let status = inspection.object.status.as_ref();
    let conditions: &[Condition] = status.map_or(&[], |status| &status.conditions);
    html! {
        h2 { "Conditions" }
        @if conditions.is_empty() { p.empty { "None." } } @else {
            table.stack {
                (page::heads(&["Condition", "Status", "Since", "Reason", "Message"]))
                tbody {
                    @for condition in conditions {
                        tr {
                            th scope="row" { (condition.type_) }
                            td data-label="Status" { (condition.status) }
                            td.nowrap data-label="Since" { (page::relative(now, condition.last_transition_time.0)) }
                            td data-label="Reason" { (condition.reason) }
                            td data-label="Message" { (page::in_zone(&condition.message, zone)) }
                        }
                    }
                }
            }
        }
    }
}

/// The usage of the machine in each recorded month, the latest first.
pub(crate) fn usage(machine: &Machine, rates: Option<&Rates>, now: Timestamp) -> Markup {
    let used = machine.usage(now);
    let months = used.usage.months.iter().rev();
    let months = months.filter_map(|of| of.month.parse().ok());
    let reports: Vec<Report> = months
        .map(|month| {
            let query = Query {
                month,
                now,
                label: None,
                rates,
            };
            Report::of([used.clone()], &query)
        })
        .collect();
    html! {
        h2 { "Usage" }
        @if reports.is_empty() {
            p.empty { "The operator has not recorded any use yet." }
        } @else {
            (figures::by_month(&reports))
            p.soft { "Hours of each month, of UTC, up to now." }
        }
    }
}

fn events_table(
    events: &Result<Vec<EventRecord>, String>,
    zone: &TimeZone,
    now: Timestamp,
) -> Markup {
    html! {
        h2 { "Events" }
        @match events {
            Err(error) => p.notice { "The Events could not be read: " (error) },
            Ok(events) if events.is_empty() => p.empty { "None." },
            Ok(events) => table.stack {
                (page::heads(&["When", "Type", "Reason", "What happened"]))
                tbody {
                    @for event in events.iter().rev().take(MAX_EVENTS) {
                        tr {
                            th.nowrap scope="row" title=(page::local(event.at, zone)) { (page::relative(now, event.at)) }
                            td data-label="Type" { @if event.is_warning { "Warning" } @else { "Normal" } }
                            td data-label="Reason" { (event.reason) }
                            td data-label="What happened" { (page::in_zone(&event.note, zone)) }
                        }
                    }
                }
            },
        }
    }
}

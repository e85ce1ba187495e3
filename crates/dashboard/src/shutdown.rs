//! The course of the last shutdown of a machine, from its status, its conditions and its Events.

use std::ops::RangeInclusive;

use fivespot_api::{Phase, ScheduledMachine, Shutdown, ShutdownReason};
use fivespot_drawing::timeline::{Entry, Mark, Timeline};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::reader::EventRecord;

/// The last recorded shutdown. `None` if neither the status nor an Event contains one.
///
/// It begins with the shutdown in the status, or with the Event that reports its phase, and ends
/// with the first Event that reports another phase than ShuttingDown and EmergencyRemove. `events`
/// are ordered by time, the oldest first.
pub fn timeline(
    object: &ScheduledMachine,
    events: &[EventRecord],
    now: Timestamp,
) -> Option<Timeline> {
    let status = object.status.as_ref();
    let shutdown = status.and_then(|status| status.shutdown.as_ref());
    let recorded = last_shutdown(events, shutdown);
    let mut entries = Vec::new();
    if let Some(shutdown) = shutdown {
        entries.push(Entry {
            at: shutdown.started_at,
            text: format!("shutdown begins: {}", reason_text(shutdown.reason)),
            mark: Mark::Begin,
        });
    }
    let end = recorded.iter().position(|event| {
        event
            .phase()
            .is_some_and(|phase| !is_shutting_down(phase) && phase != Phase::Error)
    });
    entries.extend(event_entries(recorded, end, shutdown.is_none()));
    let is_over = end.is_some() && shutdown.is_none();
    if let Some(shutdown) = shutdown.filter(|_| !is_over) {
        entries.push(Entry {
            at: shutdown.deadline,
            text: "deadline: the Machine is deleted at the latest".to_owned(),
            mark: Mark::Planned,
        });
    }
    let begun = entries.iter().map(|entry| entry.at).min()?;
    let over = end.and_then(|end| recorded.get(end)).filter(|_| is_over);
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let until = over.map_or(now, |event| event.at);
    entries.extend(condition_entries(
        conditions,
        one_second_before(begun)..=until,
    ));
    if !is_over {
        entries.push(Entry {
            at: now,
            text: current_state(conditions),
            mark: Mark::Now,
        });
    }
    entries.sort_by_key(|entry| entry.at);
    let schedule = object.spec.schedule.schedule();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    Some(Timeline {
        title: format!("Last shutdown of {namespace}/{name}"),
        zone: schedule.map_or(TimeZone::UTC, |schedule| schedule.time_zone().clone()),
        entries,
    })
}

/// The entries of the Events up to the one that ends the shutdown. The first Event begins the
/// shutdown if `first_begins`.
fn event_entries(
    recorded: &[EventRecord],
    end: Option<usize>,
    first_begins: bool,
) -> impl Iterator<Item = Entry> {
    let shown = end.map_or(recorded.len(), |end| end + 1);
    let events = recorded.iter().take(shown).enumerate();
    events.map(move |(index, event)| Entry {
        at: event.at,
        text: event.note.clone(),
        mark: match index {
            _ if Some(index) == end => Mark::End,
            0 if first_begins => Mark::Begin,
            _ if event.is_warning => Mark::Failure,
            _ => Mark::Step,
        },
    })
}

/// The entries of the conditions that changed within a time range. `Ready` and `Scheduled` are left
/// out, because the Events report the same.
fn condition_entries(
    conditions: &[Condition],
    range: RangeInclusive<Timestamp>,
) -> impl Iterator<Item = Entry> {
    let changed = conditions.iter().filter(move |condition| {
        let is_other = !["Ready", "Scheduled"].contains(&condition.type_.as_str());
        is_other && range.contains(&condition.last_transition_time.0)
    });
    changed.map(|condition| {
        let is_stalled = condition.type_ == "Stalled" && condition.status == "True";
        let detail = if condition.message.is_empty() {
            &condition.reason
        } else {
            &condition.message
        };
        Entry {
            at: condition.last_transition_time.0,
            text: format!("{} is {}: {detail}", condition.type_, condition.status),
            mark: if is_stalled {
                Mark::Failure
            } else {
                Mark::Step
            },
        }
    })
}

/// The text of the current state: the message of the `Ready` condition.
fn current_state(conditions: &[Condition]) -> String {
    let ready = conditions
        .iter()
        .find(|condition| condition.type_ == "Ready");
    match ready.filter(|ready| !ready.message.is_empty()) {
        Some(ready) => format!("now: {}", ready.message),
        None => "now".to_owned(),
    }
}

/// The Events since the beginning of the last shutdown. Empty if they are older than the shutdown
/// in the status, because they belong to an earlier shutdown.
fn last_shutdown<'e>(
    events: &'e [EventRecord],
    shutdown: Option<&Shutdown>,
) -> &'e [EventRecord] {
    let begins = |event: &EventRecord| event.phase().is_some_and(is_shutting_down);
    let index = (0..events.len()).rev().find(|index| {
        let before = index.checked_sub(1).and_then(|before| events.get(before));
        let was_shutting_down = before.is_some_and(begins);
        events.get(*index).is_some_and(begins) && !was_shutting_down
    });
    index
        .and_then(|index| events.get(index..))
        .filter(|events| {
            let first = events.first().map(|event| event.at);
            shutdown.is_none_or(|it| first >= Some(one_second_before(it.started_at)))
        })
        .unwrap_or_default()
}

/// One second before `at`. An Event can have a time before that of the status that it reports,
/// because either may be truncated to seconds.
fn one_second_before(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second() - 1).unwrap_or(at)
}

fn is_shutting_down(phase: Phase) -> bool {
    matches!(phase, Phase::ShuttingDown | Phase::EmergencyRemove)
}

fn reason_text(reason: ShutdownReason) -> &'static str {
    match reason {
        ShutdownReason::ScheduleEnded => "the schedule has closed",
        ShutdownReason::Deleted => "the ScheduledMachine is being deleted",
        ShutdownReason::Remediation => {
            "Cluster API's health check requests a replacement"
        }
        ShutdownReason::KillSwitch => "the kill switch is set",
        ShutdownReason::Reclaim => "the owner of the host reclaims it",
    }
}

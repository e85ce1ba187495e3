//! The status and the events of a set.

use std::fmt::Write as _;

use fivespot_api::{ScheduledMachineSet, ScheduledMachineSetStatus, name};
use fivespot_capi::one_line_within;
use jiff::Timestamp;

use super::{SetAction, SetFacts, SetPlan};
use crate::act::memory::Cause;
use crate::condition::Found;
use crate::status::event::Event;

/// The longest message of the condition, in characters.
const MAX_MESSAGE: usize = 1_024;

const READY: &str = "Ready";

/// Why an action failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetFailure {
    /// The kind of failure.
    pub cause: Cause,
    /// The message of the server, or of the client.
    pub message: String,
}

impl SetFailure {
    /// Whether the server has refused the request, so that the same one is refused again.
    pub fn is_refusal(&self) -> bool {
        match self.cause {
            Cause::Forbidden | Cause::Rejected | Cause::NamespaceTerminating => true,
            Cause::Unavailable | Cause::NotServed => false,
        }
    }

    fn reason(&self) -> &'static str {
        match self.cause {
            Cause::Forbidden => "WriteForbidden",
            Cause::Rejected | Cause::NamespaceTerminating => "WriteRejected",
            Cause::Unavailable | Cause::NotServed => "WriteFailed",
        }
    }
}

impl SetPlan {
    /// The status after these actions have succeeded, and another one has failed if there is a
    /// `failure`. `None` if the set is being deleted.
    pub fn status_after(
        &self,
        facts: &SetFacts<'_>,
        done: &[&SetAction],
        failure: Option<&SetFailure>,
        now: Timestamp,
    ) -> Option<ScheduledMachineSetStatus> {
        let set = facts.set;
        if set.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let is_deleted = |uid: &str| {
            let mut sent = done.iter();
            sent.any(
                |it| matches!(it, SetAction::Delete { uid: deleted, .. } if deleted == uid),
            )
        };
        let mut staying = facts.staying();
        staying.retain(|it| !is_deleted(&it.uid));
        let created = done.iter();
        let created = created.filter(|it| matches!(it, SetAction::Create { .. }));
        let exist = staying.len() + created.count();
        let count = |number: usize| i32::try_from(number).ok();
        let before = set.status.clone().unwrap_or_default();
        let found = ready(self, facts, exist, failure);
        let name = set.metadata.name.as_deref().unwrap_or_default();
        Some(ScheduledMachineSetStatus {
            observed_generation: set.metadata.generation,
            replicas: count(exist),
            active_replicas: count(staying.iter().filter(|it| it.is_active).count()),
            ready_replicas: count(staying.iter().filter(|it| it.is_ready).count()),
            selector: Some(format!("{}={name}", name::SET_LABEL)),
            conditions: vec![found.after(
                &before.conditions,
                set.metadata.generation,
                now,
            )],
        })
    }
}

fn ready(
    plan: &SetPlan,
    facts: &SetFacts<'_>,
    exist: usize,
    failure: Option<&SetFailure>,
) -> Found {
    if let Some(why) = &plan.violation {
        let message = format!("{why}; its machines stay as they are");
        return Found::new(READY, false, "InvalidSpec", message);
    }
    let wanted = facts.wanted();
    let mut message = format!("{exist} of {wanted} ScheduledMachines exist");
    if let Some(failure) = failure {
        let why = &failure.message;
        let message = one_line_within(&format!("{message}: {why}"), MAX_MESSAGE);
        return Found::new(READY, false, failure.reason(), message);
    }
    let leaving = facts.machines.len() - facts.staying().len();
    if leaving > 0 {
        let _ = write!(message, "; {leaving} more are being deleted");
    }
    let set = facts.set.metadata.name.as_deref().unwrap_or_default();
    let last = facts.machines.iter().map(|it| it.index).max();
    // Names beyond the last machine are in nobody's way.
    let in_between = facts
        .taken
        .iter()
        .find(|it| last.is_some_and(|last| **it < last));
    if let Some(taken) = in_between {
        let _ = write!(
            message,
            "; {} is not of this set, so that another index is used",
            ScheduledMachineSet::machine_name(set, *taken)
        );
    }
    let reason = if exist == wanted { "Scaled" } else { "Scaling" };
    Found::new(READY, exist == wanted, reason, message)
}

/// One event about the actions of each kind, which have succeeded.
pub fn events(facts: &SetFacts<'_>, sent: &[&SetAction]) -> Vec<Event> {
    let set = facts.set.metadata.name.as_deref().unwrap_or_default();
    let of_kind = |is: fn(&SetAction) -> bool| {
        let sent = sent.iter().filter(move |it| is(it));
        sent.map(|it| it.index())
    };
    let deleted = of_kind(|it| matches!(it, SetAction::Delete { .. }));
    let created = of_kind(|it| matches!(it, SetAction::Create { .. }));
    let updated = of_kind(|it| matches!(it, SetAction::Update { .. }));
    let events = [
        event(set, "ScaledDown", "Delete", "deleted", deleted),
        event(set, "ScaledUp", "Create", "created", created),
        event(
            set,
            "TemplateApplied",
            "Update",
            "applied the template to",
            updated,
        ),
    ];
    events.into_iter().flatten().collect()
}

fn event(
    set: &str,
    reason: &str,
    action: &str,
    did: &str,
    mut indexes: impl Iterator<Item = u32>,
) -> Option<Event> {
    let first = ScheduledMachineSet::machine_name(set, indexes.next()?);
    let note = match indexes.count() {
        0 => format!("{did} ScheduledMachine {first}"),
        more => format!("{did} ScheduledMachine {first} and {more} more"),
    };
    Some(Event::normal(reason, action, &note))
}

/// The Warning about a new reason for which the set is not Ready, other than that it is being
/// scaled.
pub fn warning(
    before: &ScheduledMachineSetStatus,
    after: &ScheduledMachineSetStatus,
) -> Option<Event> {
    let problem = |status: &ScheduledMachineSetStatus| {
        let ready = status.conditions.iter().find(|of| of.type_ == READY)?;
        let is_problem = ready.status != "True" && ready.reason != "Scaling";
        is_problem.then(|| (ready.reason.clone(), ready.message.clone()))
    };
    let (reason, message) = problem(after)?;
    let is_new = problem(before).is_none_or(|(was, _)| was != reason);
    is_new.then(|| Event::warning(&reason, "Scale", &message))
}

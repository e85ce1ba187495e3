//! What to do next about one ScheduledCapacity: pure, total, no clock and no client.
//!
//! [`plan_capacity`] is one function from what was observed to one write of the target, the status
//! after it, and when to look again. `wanted` decides which values apply, `write` how the target
//! gets them, `report` what the status says.

mod report;
mod wanted;
mod write;

use fivespot_api::scheduled_capacity::{ScheduledCapacity, ScheduledCapacityStatus};
use fivespot_api::time::whole_seconds;
use fivespot_schedule::Duration;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::act::memory::after;
use crate::{Fact, ScheduleInputs, Unknown};
use report::Problem;
pub use report::{event as capacity_event, write_failed as capacity_write_failed};
use wanted::Wanted;
pub use write::{CapacityWrite, manager_of};

/// In how much time our writes are counted before a field counts as contested.
const CONTEST: SignedDuration = SignedDuration::from_mins(10);

/// The annotation of a target that no controller changes.
const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";

/// Everything that a plan depends on, besides the object and the instant.
#[derive(Clone, Debug, Default)]
pub struct CapacityFacts {
    /// The inputs of the schedule. What a reference resolves to is in the object.
    pub schedule: ScheduleInputs,
    /// The target; `None` if there is none.
    pub target: Fact<Option<Value>>,
    /// The ScheduledMachine whose Node is `spec.nodeName`.
    pub governor: Option<String>,
    /// Why it is not known whose Node `spec.nodeName` is: nothing becomes active then.
    pub governor_unknown: Option<Unknown>,
    /// Who manages a contested field, [read from the server](manager_of); empty if that cannot be
    /// found out. `None` if it has not been read.
    pub rival: Option<String>,
}

/// What to do next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapacityPlan {
    /// The write of the target.
    pub write: Option<CapacityWrite>,
    /// The status once the write, if any, has [succeeded](CapacityPlan::status_after).
    status: ScheduledCapacityStatus,
    /// Whether [`CapacityFacts::rival`] must be read, and a plan made again.
    pub asks_for_rival: bool,
    /// Whether to look again at once after the write.
    pub repeats: bool,
    /// When to look again, if nothing changes before.
    pub requeue_at: Option<Timestamp>,
}

/// Decides what to do about `object`.
///
/// # Guarantees
/// Total and deterministic. Nothing is written while the schedule cannot be evaluated, an override
/// of mode Hold is in force, or the target is paused or unknown. The inactive values are written
/// before anything is awaited, and within one state of one spec never two different values. A
/// field that another client has changed again after three writes in ten minutes is written when
/// the state changes, and at no other time.
pub fn plan_capacity(
    object: &ScheduledCapacity,
    facts: &CapacityFacts,
    now: Timestamp,
) -> CapacityPlan {
    let before = object.status.clone().unwrap_or_default();
    let mut case = Case {
        object,
        facts,
        now,
        status: before,
        plan: CapacityPlan::default(),
    };
    let problem = case.decide();
    report::report(&mut case, problem.err());
    case.plan.status = case.status;
    case.plan
}

impl CapacityPlan {
    /// The status after the write was answered with `response`; `None` without a write.
    pub fn status_after(&self, response: Option<&Value>) -> ScheduledCapacityStatus {
        let mut status = self.status.clone();
        if let Some(response) = response {
            write::note_stored(&mut status.written, &response["spec"]);
        }
        status
    }
}

/// One decision: the input, and the status and plan as they become.
struct Case<'a> {
    object: &'a ScheduledCapacity,
    facts: &'a CapacityFacts,
    now: Timestamp,
    status: ScheduledCapacityStatus,
    plan: CapacityPlan,
}

impl Case<'_> {
    /// Decides on the write, and everything of the status but phase, message and conditions.
    fn decide(&mut self) -> Result<(), Problem> {
        let status = &mut self.status;
        // A status without it is of an older version, or of an older CRD, and about what was observed.
        let observed = status
            .observed_generation
            .filter(|_| status.active.is_some());
        status.applied_generation = status.applied_generation.or(observed);
        let wanted = self.wanted();
        let fields = write::fields(&self.object.spec)?;
        let target = write::target(self.object, &self.facts.target);
        if let Ok(Some(found)) = &target {
            self.status.target_ref = Some(write::reference(self.object, found));
        }
        let wanted = wanted?;
        let target = target?;
        let creates = target.is_none();
        if creates && wanted.is_governed {
            // Nothing is created on a host that is a machine's.
            return Ok(());
        }
        let is_edge = self.status.active != Some(wanted.is_active);
        let is_edit = self.status.applied_generation != self.object.metadata.generation;
        let spec = target.as_ref().map(|found| &found["spec"]);
        let differs = fields.iter().any(|field| {
            let found = spec.and_then(|spec| field.path.get(spec));
            !field.is_written(found, wanted.is_active, &self.status.written)
        });
        if is_edit {
            self.status.contested_by = None;
        }
        let is_due = creates || differs || is_edit && self.object.spec.template.is_some();
        if is_due && self.may_write(is_edge || is_edit || creates) {
            let write = CapacityWrite::of(
                self.object,
                &fields,
                wanted.is_active,
                target.as_ref(),
            )?;
            self.plan.write = Some(write);
            self.note_write(is_edge || is_edit);
        } else if is_due {
            return Err(Problem::contested(self.status.contested_by.as_deref()));
        }
        if self.plan.write.is_some() || is_edge {
            self.status.written = fields
                .iter()
                .map(|field| field.written(wanted.is_active))
                .collect();
        }
        let first = fields.first();
        self.status.written_value = first.map(|it| it.value(wanted.is_active).clone());
        let was_active = self.status.active == Some(true);
        self.status.active = Some(wanted.is_active);
        self.hand_back(&wanted, was_active);
        if self.plan.write.is_none() {
            self.note_drained(target.as_ref());
            self.end_contest();
        } else {
            // What is awaited may be there already.
            self.plan.repeats = self.status.handback_deadline.is_some();
        }
        self.status.applied_generation = self.object.metadata.generation;
        Ok(())
    }

    /// The values that apply, which the status announces.
    fn wanted(&mut self) -> Result<Wanted, Problem> {
        let wanted = Wanted::of(self.object, self.facts, self.now);
        let governed = self.object.spec.node_name.clone();
        let governed = governed.filter(|_| self.facts.governor.is_some());
        self.status.governed_node = governed;
        if let Ok(wanted) = &wanted {
            self.status.next_transition = wanted.until;
            self.plan.requeue_at = wanted.look_again;
            wanted.record(&self.object.spec, &mut self.status);
        } else {
            self.status.next_transition = None;
            self.plan.requeue_at = wanted::next_override(self.facts, self.now);
        }
        wanted
    }

    /// Whether a field that differs may be written. `is_new` if that is because of a change of the
    /// schedule or of the spec.
    fn may_write(&mut self, is_new: bool) -> bool {
        if is_new {
            return true;
        }
        if self.status.contested_by.is_some() {
            return false;
        }
        let is_recent = |at: &Timestamp| after(*at, CONTEST) > self.now;
        let recent = self.status.recent_writes.iter().filter(|at| is_recent(at));
        if recent.count() < fivespot_api::scheduled_capacity::MAX_RECENT_WRITES {
            return true;
        }
        match &self.facts.rival {
            Some(rival) if rival.is_empty() => {
                self.status.contested_by = Some("another client".to_owned());
            }
            Some(rival) => self.status.contested_by = Some(rival.clone()),
            None => self.plan.asks_for_rival = true,
        }
        false
    }

    fn note_write(&mut self, is_new: bool) {
        let writes = &mut self.status.recent_writes;
        if is_new {
            writes.clear();
        }
        if writes.len() >= fivespot_api::scheduled_capacity::MAX_RECENT_WRITES {
            writes.remove(0);
        }
        writes.push(whole_seconds(self.now));
    }

    /// A field is no longer contested once it has kept its value for a while.
    fn end_contest(&mut self) {
        if self.status.contested_by.is_none() {
            return;
        }
        let last = self.status.recent_writes.last().copied();
        let end = last.map_or(self.now, |last| after(last, CONTEST));
        if end <= self.now {
            self.status.contested_by = None;
        } else {
            self.look_again(end);
        }
    }

    /// Begins to wait after a closing, and ends waiting after an opening.
    fn hand_back(&mut self, wanted: &Wanted, was_active: bool) {
        let handback = self.object.spec.handback.as_ref();
        let Some(handback) = handback.filter(|_| !wanted.is_active && wanted.awaits)
        else {
            self.status.handback_deadline = None;
            self.status.observed_drained_value = None;
            return;
        };
        if was_active {
            let timeout = handback.timeout.parse::<Duration>();
            let timeout = timeout
                .unwrap_or(fivespot_api::scheduled_capacity::DEFAULT_HANDBACK_TIMEOUT);
            let begun = whole_seconds(self.now);
            self.status.handback_deadline = Some(after(begun, timeout.into()));
        }
    }

    /// Reads what is awaited, of a target that has the inactive values.
    fn note_drained(&mut self, target: Option<&Value>) {
        let Some(deadline) = self.status.handback_deadline else {
            return;
        };
        let path = self.object.spec.handback.as_ref();
        let path = path.and_then(|it| it.path_below_status().parse().ok());
        let path: Option<fivespot_api::scheduled_capacity::FieldPath> = path;
        let found = path
            .zip(target)
            .and_then(|(path, target)| path.get(&target["status"])?.as_i64());
        self.status.observed_drained_value = found;
        if found == Some(0) {
            self.status.handback_deadline = None;
        } else if deadline > self.now {
            self.look_again(deadline);
        }
    }

    fn look_again(&mut self, at: Timestamp) {
        let due = self.plan.requeue_at.map_or(at, |due| due.min(at));
        self.plan.requeue_at = Some(due);
    }
}

#[cfg(test)]
mod tests;

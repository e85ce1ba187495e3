//! The input of one decision.

use fivespot_api::{ScheduledMachine, Shutdown};
use fivespot_capi::{Cluster, Machine, Reference};
use fivespot_schedule::{DecidedBy, Need, Override, OverrideMode, Steps, Window};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::jitter::Delayed;
use crate::decide::resolve::{Desired, Followed};
use crate::observed::subject::Subject;
use crate::observed::{owned::OwnedObjects, owned::ProviderObjects};
use crate::{Fact, KEPT_FOR_STATUS, Locations, Memory, Observed, Step, Unknown};

/// The minimum age of a Machine before a health check replaces it.
const REMEDIATION_PAUSE: SignedDuration = SignedDuration::from_mins(10);
/// How far back the end of a window is searched: first where many windows may be.
const LOOKBACKS: [SignedDuration; 3] = [
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(24),
    SignedDuration::from_hours(14 * 24),
];
/// How long a removal may make no progress before it is reported as stalled.
const STALL: SignedDuration = SignedDuration::from_mins(10);

/// What is derived from the ScheduledMachine and the observed state. Every [`Case`] is made from
/// it, for the planner and for `explain`.
#[derive(Debug)]
pub(crate) struct CaseInputs<'a> {
    subject: Subject,
    desired: Desired,
    observed: &'a Observed,
    owned: OwnedObjects<'a>,
}

impl<'a> CaseInputs<'a> {
    /// Reads `object` and classifies the observed objects.
    pub(crate) fn of(object: &ScheduledMachine, observed: &'a Observed) -> Self {
        let (subject, desired) = (Subject::of(object), desired(object, observed));
        let machine = observed.machine.known().and_then(Option::as_ref);
        let owned = OwnedObjects::of(&subject, &desired, observed, machine);
        Self {
            subject,
            desired,
            observed,
            owned,
        }
    }

    /// The case at an instant. All evaluations of its schedule share the steps.
    pub(crate) fn case<'b>(
        &'b self,
        memory: &'b Memory,
        now: Timestamp,
        steps: &'b Steps,
    ) -> Case<'b> {
        let schedule = self.desired.schedule.as_ref().ok();
        steps.keep(KEPT_FOR_STATUS);
        Case {
            subject: &self.subject,
            desired: &self.desired,
            observed: self.observed,
            memory,
            owned: &self.owned,
            // First, because the state is exact whatever it costs: without steps nothing is needed.
            need: delayed(&self.desired, &self.owned).map(|it| it.needed(now, steps)),
            window: schedule.map(|schedule| schedule.at_within(now, steps)),
            steps,
            now,
        }
    }
}

/// The schedule with the delay of the machine; `None` if it is invalid.
fn delayed<'a>(desired: &'a Desired, owned: &OwnedObjects<'_>) -> Option<Delayed<'a>> {
    Some(Delayed {
        schedule: desired.schedule.as_ref().ok()?,
        delay: desired.turn.delay,
        keeps_end: desired.completes_by_window_end,
        exists: !owned.is_gone(),
    })
}

/// The desired state. Objects that exist without their Machine are completed for the Cluster on
/// their own label.
fn desired(object: &ScheduledMachine, observed: &Observed) -> Desired {
    let mut desired =
        Desired::of(object, &observed.specs, &observed.schedule, &observed.hosts);
    let machine = observed.machine.known().and_then(Option::as_ref);
    let found = observed.infrastructure.iter().chain(&observed.bootstrap);
    if let Some(cluster) = Locations::cluster_on_label(object, machine, found) {
        desired.is_cluster_named = desired.cluster == cluster;
        cluster.clone_into(&mut desired.cluster);
    }
    desired
}

/// The input of one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) desired: &'a Desired,
    pub(crate) observed: &'a Observed,
    pub(crate) memory: &'a Memory,
    pub(crate) owned: &'a OwnedObjects<'a>,
    /// Whether the effective schedule is open; `None` if it is invalid.
    pub(crate) window: Option<Window>,
    /// Whether a machine is needed for the schedule; `None` if it is invalid.
    pub(crate) need: Option<Need>,
    /// What may still be computed about the schedule.
    pub(crate) steps: &'a Steps,
    pub(crate) now: Timestamp,
}

impl<'a> Case<'a> {
    /// The schedule with the delay of the machine; `None` if it is invalid.
    pub(crate) fn delayed(&self) -> Option<Delayed<'a>> {
        delayed(self.desired, self.owned)
    }

    /// Whether the schedule is in force and open.
    pub(crate) fn in_schedule(&self) -> bool {
        self.desired.is_enabled && self.window.is_some_and(Window::is_open)
    }

    /// Whether the schedule is in force and a machine is needed: from the lead time before a
    /// window until its end, or until the shutdown time before its end.
    pub(crate) fn is_wanted(&self) -> bool {
        self.desired.is_enabled && self.need.is_some_and(Need::is_needed)
    }

    /// How long the schedule stays as it is in this window, as the end of a sentence.
    pub(crate) fn how_long(&self, window: Window) -> String {
        let followed = self.desired.followed.as_ref();
        match (window.until(), followed.filter(|of| of.schedule.is_err())) {
            (Some(until), _) => format!("until {until}"),
            (None, Some(Followed { reference, .. })) => format!(
                "until {} {} can be evaluated again",
                reference.kind, reference.name
            ),
            (None, None) => "for the next ten years".to_owned(),
        }
    }

    /// When [`is_wanted`](Self::is_wanted) changes next, if the schedule is in force.
    pub(crate) fn next_need_change(&self) -> Option<Timestamp> {
        self.need
            .filter(|_| self.desired.is_enabled)
            .and_then(Need::until)
    }

    /// When the schedule must be evaluated again because it is not known further ahead. Early
    /// enough for a last call and for the time that a machine must be needed at least.
    fn need_known_until(&self) -> Option<Timestamp> {
        let known_until = self.need?.known_until()?;
        let ahead = self.desired.last_call.max(self.desired.minimum_run);
        Some(known_until.checked_sub(ahead).unwrap_or(Timestamp::MIN))
    }

    /// The override in force, while the schedule is enabled and valid.
    pub(crate) fn override_in_force(&self) -> Option<&'a Override> {
        let schedule = self.desired.schedule.as_ref().ok()?;
        let in_force = schedule.override_at(self.now);
        in_force.filter(|_| self.desired.is_enabled)
    }

    /// The override in force if its mode is Hold: nothing is started or shut down.
    pub(crate) fn hold(&self) -> Option<&'a Override> {
        let in_force = self.override_in_force();
        in_force.filter(|of| of.mode == OverrideMode::Hold)
    }

    /// What decides whether the schedule is open; `None` if it is invalid.
    pub(crate) fn decided_by(&self) -> Option<DecidedBy<'a>> {
        let schedule = self.desired.schedule.as_ref().ok()?;
        Some(schedule.decided_by(self.now))
    }

    /// The instants at which the deciding rule or the result of the schedule changes.
    pub(crate) fn next_changes(&self) -> Vec<Timestamp> {
        let Ok(schedule) = &self.desired.schedule else {
            return Vec::new();
        };
        if !self.desired.is_enabled {
            return Vec::new();
        }
        let overrides = self.observed.schedule.overrides.iter();
        let edges = overrides.flat_map(|of| of.start.into_iter().chain([of.end]));
        let window = self.window.and_then(Window::until);
        let mut all: Vec<_> = self.next_need_change().into_iter().chain(window).collect();
        let last_call = self.end_of_need().map(|end| self.last_call_before(end));
        all.extend(last_call.filter(|due| *due > self.now));
        all.extend(edges.filter(|edge| *edge > self.now));
        all.extend(self.need_known_until());
        all.extend(schedule.next_decision(self.now, self.steps));
        all
    }

    /// When the machine is no longer needed, from the last call on. `None` before the last call,
    /// and if the spec has no last call.
    pub(crate) fn leaves_at(&self) -> Option<Timestamp> {
        self.end_of_need()
            .filter(|end| self.last_call_before(*end) <= self.now)
    }

    /// The next end of the need for a machine. `None` if the spec has no last call before it, or
    /// if something other than the schedule decides.
    fn end_of_need(&self) -> Option<Timestamp> {
        let is_served =
            self.is_wanted() && !self.desired.is_killed && self.hold().is_none();
        let is_announced = is_served && !self.desired.last_call.is_zero();
        self.next_need_change().filter(|_| is_announced)
    }

    fn last_call_before(&self, end: Timestamp) -> Timestamp {
        let before = end.checked_sub(self.desired.last_call);
        before.unwrap_or(Timestamp::MIN)
    }

    /// The instant by which the Machine must be deleted, whatever the shutdown timeout: the end
    /// of the open window, if the spec requests that.
    pub(crate) fn window_end(&self) -> Option<Timestamp> {
        match self.window? {
            Window::Open { until } if self.desired.completes_by_window_end => until,
            Window::Open { .. } | Window::Closed { .. } => None,
        }
    }

    /// When the last window ended that our Machine was in, if the spec requests that the Machine
    /// is gone by then and no window is open. `None` if that is more than two weeks ago.
    pub(crate) fn ended_window(&self) -> Option<Timestamp> {
        let is_closed = matches!(self.window?, Window::Closed { .. });
        let schedule = self.desired.schedule.as_ref().ok()?;
        if !is_closed || !self.desired.completes_by_window_end {
            return None;
        }
        let schedule = schedule.clone().looking_back();
        let last_end = |span: &SignedDuration| {
            let from = self.now.checked_sub(*span).unwrap_or(Timestamp::MIN);
            let parts = schedule.parts_within(from, self.now, self.steps);
            parts.filter(|part| part.wanted).last().map(|of| of.until)
        };
        let end = LOOKBACKS.iter().find_map(last_end)?;
        let created = self.subject.status.last_scheduled_time;
        (created? < end).then_some(end)
    }

    /// Whether the remaining time in which a machine is needed is too short to create one.
    pub(crate) fn is_too_short(&self) -> bool {
        let left = self
            .next_need_change()
            .map(|until| until.duration_since(self.now));
        self.is_wanted() && left.is_some_and(|left| left < self.desired.minimum_run)
    }

    /// The Cluster, if it exists. A kind that is not served has no objects.
    pub(crate) fn cluster(&self) -> Option<&'a Cluster> {
        self.observed.cluster.known().and_then(Option::as_ref)
    }

    /// Why the Cluster or the Machine is unknown; `None` if both are known.
    pub(crate) fn unobserved(&self) -> Option<&'a Unknown> {
        let cluster = unknown(&self.observed.cluster);
        cluster.or_else(|| unknown(&self.observed.machine))
    }

    /// Why the overrides or calendars are unknown, and with them the result of the schedule;
    /// `None` if they are known. A disabled schedule does not need them.
    pub(crate) fn unknown_schedule(&self) -> Option<&'a Unknown> {
        let unknown = self.observed.schedule.unknown.as_ref();
        unknown.filter(|_| self.desired.is_enabled)
    }

    /// Why the class could not be read, and with it how a machine is shut down; `None` if it was, or
    /// if the machine has none.
    pub(crate) fn unread_class(&self) -> Option<&'a Unknown> {
        let is_unread = self.desired.class_fault.as_ref()?.is_unread;
        let unknown = self.observed.schedule.unknown.as_ref();
        unknown.filter(|_| is_unread)
    }

    /// The shutdown record, if it is for this Machine.
    pub(crate) fn shutdown_record(&self, machine: &Machine) -> Option<&'a Shutdown> {
        let stored = self.subject.status.shutdown.as_ref();
        stored.filter(|shutdown| shutdown.machine_uid == machine.meta.uid)
    }

    /// The deadline in force. An edit of the spec may shorten the stored deadline, never extend
    /// it. While the class is unknown, so is its timeout.
    pub(crate) fn deadline(&self, shutdown: &Shutdown) -> Timestamp {
        let class_fault = self.desired.class_fault.as_ref();
        if shutdown.reason.is_at_once() {
            shutdown.started_at
        } else if class_fault.is_some_and(|fault| fault.is_unknown) {
            shutdown.deadline
        } else {
            let due = after(shutdown.started_at, self.desired.shutdown_timeout);
            shutdown.deadline.min(due)
        }
    }

    /// The cause of this step's last failure, if the step is still in backoff.
    pub(crate) fn failed_at(&self, step: Step) -> Option<crate::Cause> {
        let failure = self.memory.failure(step)?;
        (failure.retry_at > self.now).then_some(failure.cause)
    }

    /// Whether our Machine must be replaced: a health check requests it, or an object that the
    /// Machine refers to is gone and cannot be created again.
    pub(crate) fn wants_replacement(&self, machine: &Machine) -> bool {
        let (owned, desired) = (self.owned, self.desired);
        let is_lost = |part: &ProviderObjects<'_>,
                       place: &Reference,
                       had: bool,
                       home: &Reference| {
            part.is_absent_from(place) && (had || !place.is_same_object(home))
        };
        let bootstrap = machine.bootstrap.as_ref().is_some_and(|place| {
            let home = &desired.bootstrap.reference;
            is_lost(&owned.bootstrap, place, machine.had_bootstrap, home)
        });
        let infrastructure = machine.infrastructure.as_ref().is_some_and(|place| {
            let home = &desired.infrastructure.reference;
            is_lost(
                &owned.infrastructure,
                place,
                machine.had_infrastructure,
                home,
            )
        });
        !machine.meta.is_deleting
            && (machine.wants_remediation() || bootstrap || infrastructure)
    }

    /// The instant from which our Machine may be replaced; `None` before its creation is
    /// recorded.
    pub(crate) fn replaceable_from(&self, machine: &Machine) -> Option<Timestamp> {
        let created = self.subject.status.last_scheduled_time;
        let created = created.filter(|_| self.subject.records(machine));
        created.map(|created| after(created, REMEDIATION_PAUSE))
    }

    /// When a removal without progress is reported as stalled.
    pub(crate) fn stalls_at(&self) -> Timestamp {
        after(self.memory.changed_at.unwrap_or(self.now), STALL)
    }
}

/// Why a fact is unknown; a kind that is not served has no objects, so that its absence is known.
fn unknown<T>(fact: &Fact<T>) -> Option<&Unknown> {
    match fact {
        Fact::Known(_) | Fact::Unknown(Unknown::NotServed { .. }) => None,
        Fact::Unknown(unknown) => Some(unknown),
    }
}

//! All that one decision looks at.

use fivespot_api::{ScheduledMachine, Shutdown, ShutdownReason};
use fivespot_capi::{Cluster, Machine, Reference};
use fivespot_schedule::Window;
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::resolve::Desired;
use crate::observed::subject::Subject;
use crate::observed::{owned::OwnedObjects, owned::ProviderObjects};
use crate::{Fact, Locations, Memory, Observed, Step, Unknown};

/// How old a Machine has to be before a health check gets it replaced.
const REMEDIATION_PAUSE: SignedDuration = SignedDuration::from_mins(10);
/// How long a removal may stand still before that is said.
const STALL: SignedDuration = SignedDuration::from_mins(10);

/// What follows from the ScheduledMachine and from what was seen with it: the one thing that every
/// [`Case`] is made from, for the planner and for whoever explains it.
#[derive(Debug)]
pub(crate) struct Basis<'a> {
    subject: Subject,
    desired: Desired,
    observed: &'a Observed,
    owned: OwnedObjects<'a>,
}

impl<'a> Basis<'a> {
    /// Reads `object` and sorts what was seen.
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

    /// The case at an instant.
    pub(crate) fn case<'b>(&'b self, memory: &'b Memory, now: Timestamp) -> Case<'b> {
        let schedule = self.desired.schedule.as_ref().ok();
        Case {
            subject: &self.subject,
            desired: &self.desired,
            observed: self.observed,
            memory,
            owned: &self.owned,
            window: schedule.map(|schedule| schedule.at(now)),
            now,
        }
    }
}

/// What is asked for. What exists without its Machine is completed for the Cluster on its own label.
fn desired(object: &ScheduledMachine, observed: &Observed) -> Desired {
    let mut desired = Desired::of(object, &observed.specs);
    let machine = observed.machine.known().and_then(Option::as_ref);
    let found = observed.infrastructure.iter().chain(&observed.bootstrap);
    if let Some(cluster) = Locations::cluster_on_label(object, machine, found) {
        desired.is_cluster_named = desired.cluster == cluster;
        cluster.clone_into(&mut desired.cluster);
    }
    desired
}

/// All that one decision looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) desired: &'a Desired,
    pub(crate) observed: &'a Observed,
    pub(crate) memory: &'a Memory,
    pub(crate) owned: &'a OwnedObjects<'a>,
    /// What the schedule says; none if it is invalid.
    pub(crate) window: Option<Window>,
    pub(crate) now: Timestamp,
}

impl<'a> Case<'a> {
    /// Whether the schedule is in force and open.
    pub(crate) fn is_wanted(&self) -> bool {
        self.desired.is_enabled && self.window.is_some_and(Window::is_open)
    }

    /// When the schedule flips next, if it is in force.
    pub(crate) fn next_flip(&self) -> Option<Timestamp> {
        self.window
            .filter(|_| self.desired.is_enabled)
            .and_then(Window::until)
    }

    /// The Cluster, if there is one. A kind that is not served has no objects.
    pub(crate) fn cluster(&self) -> Option<&'a Cluster> {
        self.observed.cluster.known().and_then(Option::as_ref)
    }

    /// Why the Cluster or the Machine is not known, if one is not.
    pub(crate) fn unobserved(&self) -> Option<&'a Unknown> {
        let cluster = unknown(&self.observed.cluster);
        cluster.or_else(|| unknown(&self.observed.machine))
    }

    /// The commitment to leave, if one counts for this Machine.
    pub(crate) fn commitment(&self, machine: &Machine) -> Option<&'a Shutdown> {
        let stored = self.subject.status.shutdown.as_ref();
        stored.filter(|shutdown| shutdown.machine_uid == machine.meta.uid)
    }

    /// The deadline in force. An edited spec may shorten what was stored, never lengthen it.
    pub(crate) fn deadline(&self, shutdown: &Shutdown) -> Timestamp {
        match shutdown.reason {
            ShutdownReason::KillSwitch | ShutdownReason::Reclaim => shutdown.started_at,
            ShutdownReason::ScheduleEnded
            | ShutdownReason::Deleted
            | ShutdownReason::Remediation => shutdown
                .deadline
                .min(after(shutdown.started_at, self.desired.shutdown_timeout)),
        }
    }

    /// How this step failed, if it did and is not due again yet.
    pub(crate) fn failed_at(&self, step: Step) -> Option<crate::Cause> {
        let failure = self.memory.failure(step)?;
        (failure.retry_at > self.now).then_some(failure.cause)
    }

    /// Whether our Machine is to be replaced: a health check asks for it, or an object that it
    /// refers to is gone and cannot come back.
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

    /// From when on our Machine may be replaced; none before its creation is on record.
    pub(crate) fn replaceable_from(&self, machine: &Machine) -> Option<Timestamp> {
        let status = &self.subject.status;
        let recorded = status.machine_ref.as_ref().and_then(|of| of.uid.as_ref());
        let created = status
            .last_scheduled_time
            .filter(|_| recorded == Some(&machine.meta.uid));
        created.map(|created| after(created, REMEDIATION_PAUSE))
    }

    /// When a removal that does not move is to be called stalled.
    pub(crate) fn stalls_at(&self) -> Timestamp {
        after(self.memory.unchanged_since().unwrap_or(self.now), STALL)
    }
}

/// Why a fact is not known; a kind that is not served counts as known to have no objects.
fn unknown<T>(fact: &Fact<T>) -> Option<&Unknown> {
    match fact {
        Fact::Known(_) | Fact::Unknown(Unknown::NotServed { .. }) => None,
        Fact::Unknown(unknown) => Some(unknown),
    }
}

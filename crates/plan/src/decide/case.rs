//! All that one decision looks at.

use fivespot_api::{ScheduledMachine, Shutdown, ShutdownReason};
use fivespot_capi::{Cluster, Machine, Reference};
use fivespot_schedule::Window;
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::resolve::Wanted;
use crate::observed::subject::Subject;
use crate::observed::{triple::Part, triple::Triple};
use crate::{Fact, Memory, Places, Seen, Step, Unknown};

/// How old a Machine has to be before a health check gets it replaced.
const REMEDIATION_PAUSE: SignedDuration = SignedDuration::from_mins(10);
/// How long a removal may stand still before that is said.
const STALL: SignedDuration = SignedDuration::from_mins(10);

/// What follows from the ScheduledMachine and from what was seen with it: the one thing that every
/// [`Case`] is made from, for the planner and for whoever explains it.
#[derive(Debug)]
pub(crate) struct Basis<'a> {
    subject: Subject,
    want: Wanted,
    seen: &'a Seen,
    triple: Triple<'a>,
}

impl<'a> Basis<'a> {
    /// Reads `object` and sorts what was seen.
    pub(crate) fn of(object: &ScheduledMachine, seen: &'a Seen) -> Self {
        let (subject, want) = (Subject::of(object), wanted(object, seen));
        let machine = seen.machine.known().and_then(Option::as_ref);
        let triple = Triple::of(&subject, &want, seen, machine);
        Self {
            subject,
            want,
            seen,
            triple,
        }
    }

    /// The case at an instant.
    pub(crate) fn case<'b>(&'b self, memory: &'b Memory, now: Timestamp) -> Case<'b> {
        let schedule = self.want.schedule.as_ref().ok();
        Case {
            subject: &self.subject,
            want: &self.want,
            seen: self.seen,
            memory,
            triple: &self.triple,
            window: schedule.map(|schedule| schedule.at(now)),
            now,
        }
    }
}

/// What is asked for. What exists without its Machine is completed for the Cluster on its own label.
fn wanted(object: &ScheduledMachine, seen: &Seen) -> Wanted {
    let mut want = Wanted::of(object, &seen.specs);
    let machine = seen.machine.known().and_then(Option::as_ref);
    let found = seen.infrastructure.iter().chain(&seen.bootstrap);
    if let Some(cluster) = Places::cluster_on_label(object, machine, found) {
        want.is_cluster_named = want.cluster == cluster;
        cluster.clone_into(&mut want.cluster);
    }
    want
}

/// All that one decision looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) want: &'a Wanted,
    pub(crate) seen: &'a Seen,
    pub(crate) memory: &'a Memory,
    pub(crate) triple: &'a Triple<'a>,
    /// What the schedule says; none if it is invalid.
    pub(crate) window: Option<Window>,
    pub(crate) now: Timestamp,
}

impl<'a> Case<'a> {
    /// Whether the schedule is in force and open.
    pub(crate) fn is_wanted(&self) -> bool {
        self.want.is_enabled && self.window.is_some_and(Window::is_open)
    }

    /// When the schedule flips next, if it is in force.
    pub(crate) fn next_flip(&self) -> Option<Timestamp> {
        self.window
            .filter(|_| self.want.is_enabled)
            .and_then(Window::until)
    }

    /// The Cluster, if there is one. A kind that is not served has no objects.
    pub(crate) fn cluster(&self) -> Option<&'a Cluster> {
        self.seen.cluster.known().and_then(Option::as_ref)
    }

    /// Why the Cluster or the Machine is not known, if one is not.
    pub(crate) fn blind_spot(&self) -> Option<&'a Unknown> {
        let cluster = unknown(&self.seen.cluster);
        cluster.or_else(|| unknown(&self.seen.machine))
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
                .min(after(shutdown.started_at, self.want.leave)),
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
        let (triple, want) = (self.triple, self.want);
        let is_lost =
            |part: &Part<'_>, place: &Reference, had: bool, home: &Reference| {
                part.is_absent_from(place) && (had || !place.is_same_object(home))
            };
        let bootstrap = machine.bootstrap.as_ref().is_some_and(|place| {
            let home = &want.bootstrap.reference;
            is_lost(&triple.bootstrap, place, machine.had_bootstrap, home)
        });
        let infrastructure = machine.infrastructure.as_ref().is_some_and(|place| {
            let home = &want.infrastructure.reference;
            is_lost(
                &triple.infrastructure,
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

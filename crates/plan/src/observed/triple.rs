//! The three objects: whose they are, and what is left where one is missing.

use fivespot_api::name;
use fivespot_capi::{Machine, Meta, Provider, Reference};

use crate::decide::resolve::Wanted;
use crate::observed::subject::Subject;
use crate::{Fact, Seen, Sighting, Unknown};

/// The Machine, the bootstrap object and the infrastructure object of one ScheduledMachine.
#[derive(Clone, Debug)]
pub(crate) struct Triple<'a> {
    pub(crate) machine: Slot<'a>,
    pub(crate) bootstrap: Part<'a>,
    pub(crate) infrastructure: Part<'a>,
}

/// What stands under the Machine's name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot<'a> {
    Absent,
    Ours(&'a Machine),
    /// Somebody else's: never adopted, changed or deleted.
    Foreign(&'a Machine),
}

/// What was found of the bootstrap or of the infrastructure object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part<'a> {
    /// Ours, in the order of the places; usually one.
    pub(crate) ours: Vec<&'a Provider>,
    /// Where there is nothing.
    pub(crate) empty: Vec<&'a Reference>,
    /// Somebody else's object that stands where ours would be created.
    pub(crate) taker: Option<&'a Meta>,
    /// Why ours cannot be created: its kind is not served.
    pub(crate) not_served: Option<&'a str>,
    /// A place that could not be looked at.
    pub(crate) unknown: Option<&'a Unknown>,
}

/// Which of the two provider objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Bootstrap,
    Infrastructure,
}

impl<'a> Triple<'a> {
    /// Sorts what was found. `machine` is the Machine under our name, if there is one.
    pub(crate) fn of(
        subject: &Subject,
        want: &Wanted,
        seen: &'a Seen,
        machine: Option<&'a Machine>,
    ) -> Self {
        let slot = match machine {
            None => Slot::Absent,
            Some(found) if is_ours(&found.meta, subject) => Slot::Ours(found),
            Some(found) => Slot::Foreign(found),
        };
        let judge = Judge { subject, slot };
        Self {
            machine: slot,
            bootstrap: judge.part(&seen.bootstrap, &want.bootstrap.reference),
            infrastructure: judge
                .part(&seen.infrastructure, &want.infrastructure.reference),
        }
    }

    /// Our Machine, if there is one.
    pub(crate) fn our_machine(&self) -> Option<&'a Machine> {
        match self.machine {
            Slot::Ours(machine) => Some(machine),
            Slot::Absent | Slot::Foreign(_) => None,
        }
    }

    /// Whether nothing of ours is left, and that is sure.
    pub(crate) fn is_gone(&self) -> bool {
        self.our_machine().is_none()
            && self.unknown().is_none()
            && self.providers().is_empty()
    }

    /// Why it is not sure what exists, if it is not.
    pub(crate) fn unknown(&self) -> Option<&'a Unknown> {
        self.bootstrap.unknown.or(self.infrastructure.unknown)
    }

    /// Our bootstrap and infrastructure objects.
    pub(crate) fn providers(&self) -> Vec<(Role, &'a Provider)> {
        let bootstrap = self
            .bootstrap
            .ours
            .iter()
            .map(|found| (Role::Bootstrap, *found));
        let infrastructure = self
            .infrastructure
            .ours
            .iter()
            .map(|found| (Role::Infrastructure, *found));
        bootstrap.chain(infrastructure).collect()
    }

    /// Our objects that outlived a Machine: they are deleted and waited for, never used again.
    ///
    /// `had_machine` says that an earlier pass recorded a Machine over them: foreground deletion
    /// can strip the owner references that would otherwise tell.
    pub(crate) fn leftovers(&self, had_machine: bool) -> Vec<(Role, &'a Provider)> {
        let of = |role, part: &Part<'a>| {
            let spare = part.ours.iter().enumerate();
            spare
                .filter(|(place, found)| {
                    // One object of a kind of ours is enough; more are remains of an edit.
                    *place > 0
                        || had_machine
                        || found.meta.is_deleting
                        || found
                            .meta
                            .owners
                            .iter()
                            .any(fivespot_capi::Owner::is_machine)
                })
                .map(|(_, found)| (role, *found))
                .collect::<Vec<_>>()
        };
        let mut all = of(Role::Bootstrap, &self.bootstrap);
        all.extend(of(Role::Infrastructure, &self.infrastructure));
        all
    }
}

impl<'a> Part<'a> {
    /// Our object, if there is one.
    pub(crate) fn first(&self) -> Option<&'a Provider> {
        self.ours.first().copied()
    }

    /// Whether nothing of ours is left, and that is sure.
    pub(crate) fn is_gone(&self) -> bool {
        self.ours.is_empty() && self.unknown.is_none() && self.not_served.is_none()
    }

    /// Whether it is sure that nothing stands where a Machine refers to. That the kind is not
    /// served says nothing about it: it may be again in a moment.
    pub(crate) fn is_absent_from(&self, place: &Reference) -> bool {
        self.empty.iter().any(|empty| empty.is_same_object(place))
    }
}

/// Tells ours from others'.
struct Judge<'s, 'a> {
    subject: &'s Subject,
    slot: Slot<'a>,
}

impl<'a> Judge<'_, 'a> {
    fn part(&self, sightings: &'a [Sighting], home: &Reference) -> Part<'a> {
        static NOT_ASKED: Unknown = Unknown::NotAsked;
        let mut part = Part::default();
        if sightings.is_empty() {
            part.unknown = Some(&NOT_ASKED);
        }
        for sighting in sightings {
            let is_home = sighting.place.is_same_object(home);
            match &sighting.found {
                Fact::Known(None) => part.empty.push(&sighting.place),
                Fact::Known(Some(found)) if self.is_ours(found) => part.ours.push(found),
                Fact::Known(Some(found)) if is_home => part.taker = Some(&found.meta),
                Fact::Known(Some(_)) => {}
                Fact::Unknown(Unknown::NotServed { message }) => {
                    if is_home {
                        part.not_served = Some(message);
                    }
                }
                Fact::Unknown(unknown) => part.unknown = Some(unknown),
            }
        }
        part
    }

    /// Our name label, and a tie to us or to a Machine of ours.
    fn is_ours(&self, found: &Provider) -> bool {
        let meta = &found.meta;
        match self.slot {
            Slot::Ours(machine) => {
                is_ours(meta, self.subject)
                    || has_our_name(meta, self.subject)
                        && (meta
                            .controller()
                            .is_some_and(|owner| owner.uid == machine.meta.uid)
                            || is_named_by(machine, &found.reference()))
            }
            // What somebody else's live Machine controls is deleted with that Machine, not by us.
            Slot::Foreign(machine) => {
                is_ours(meta, self.subject)
                    && meta
                        .controller()
                        .is_none_or(|owner| owner.uid != machine.meta.uid)
            }
            Slot::Absent => is_ours(meta, self.subject),
        }
    }
}

/// Our name label, and our uid in a label or an owner reference.
fn is_ours(meta: &Meta, subject: &Subject) -> bool {
    is_made_by(meta, &subject.name, &subject.uid)
}

/// The same, where no more than name and uid are known of the ScheduledMachine.
pub(crate) fn is_made_by(meta: &Meta, maker: &str, uid: &str) -> bool {
    name::owner_name(&meta.labels) == Some(maker)
        && !uid.is_empty()
        && (meta.is_owned_by(uid) || name::owner_uid(&meta.labels) == Some(uid))
}

fn has_our_name(meta: &Meta, subject: &Subject) -> bool {
    name::owner_name(&meta.labels) == Some(subject.name.as_str())
}

fn is_named_by(machine: &Machine, place: &Reference) -> bool {
    [&machine.bootstrap, &machine.infrastructure]
        .into_iter()
        .flatten()
        .any(|named| named.is_same_object(place))
}

//! The three objects: who owns them, and what is left if one is missing.

use fivespot_api::name;
use fivespot_capi::{Machine, Meta, Provider, Reference};

use crate::decide::resolve::Desired;
use crate::observed::subject::Subject;
use crate::{Fact, Lookup, Observed, Unknown};

/// The Machine, the bootstrap object and the infrastructure object of one ScheduledMachine.
#[derive(Clone, Debug)]
pub(crate) struct OwnedObjects<'a> {
    pub(crate) machine: NamedMachine<'a>,
    pub(crate) bootstrap: ProviderObjects<'a>,
    pub(crate) infrastructure: ProviderObjects<'a>,
}

/// The object with the Machine's name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NamedMachine<'a> {
    Absent,
    Ours(&'a Machine),
    /// A Machine of another owner: never adopted, changed or deleted.
    Foreign(&'a Machine),
}

/// What was found of the bootstrap or infrastructure object.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProviderObjects<'a> {
    /// Ours, in the order of the locations; usually one.
    pub(crate) ours: Vec<&'a Provider>,
    /// The locations without an object.
    pub(crate) empty: Vec<&'a Reference>,
    /// An object of another owner where ours would be created.
    pub(crate) occupant: Option<&'a Meta>,
    /// The kind that is not served, so that ours cannot be created.
    pub(crate) not_served: Option<&'a str>,
    /// Why a location could not be read.
    pub(crate) unknown: Option<&'a Unknown>,
}

/// One of the two provider objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderRole {
    Bootstrap,
    Infrastructure,
}

impl<'a> OwnedObjects<'a> {
    /// Classifies the observed objects. `machine` is the Machine with our name, if there is one.
    pub(crate) fn of(
        subject: &Subject,
        desired: &Desired,
        observed: &'a Observed,
        machine: Option<&'a Machine>,
    ) -> Self {
        let slot = match machine {
            None => NamedMachine::Absent,
            Some(found) if is_ours(&found.meta, subject) => NamedMachine::Ours(found),
            Some(found) => NamedMachine::Foreign(found),
        };
        let ownership = Ownership { subject, slot };
        Self {
            machine: slot,
            bootstrap: ownership.part(&observed.bootstrap, &desired.bootstrap.reference),
            infrastructure: ownership
                .part(&observed.infrastructure, &desired.infrastructure.reference),
        }
    }

    /// Our Machine, if there is one.
    pub(crate) fn our_machine(&self) -> Option<&'a Machine> {
        match self.machine {
            NamedMachine::Ours(machine) => Some(machine),
            NamedMachine::Absent | NamedMachine::Foreign(_) => None,
        }
    }

    /// Whether it is certain that no object of ours is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.our_machine().is_none()
            && self.unknown().is_none()
            && self.providers().is_empty()
    }

    /// Why it is uncertain which objects exist; `None` if it is certain.
    pub(crate) fn unknown(&self) -> Option<&'a Unknown> {
        self.bootstrap.unknown.or(self.infrastructure.unknown)
    }

    /// Our bootstrap and infrastructure objects.
    pub(crate) fn providers(&self) -> Vec<(ProviderRole, &'a Provider)> {
        let bootstrap = self
            .bootstrap
            .ours
            .iter()
            .map(|found| (ProviderRole::Bootstrap, *found));
        let infrastructure = self
            .infrastructure
            .ours
            .iter()
            .map(|found| (ProviderRole::Infrastructure, *found));
        bootstrap.chain(infrastructure).collect()
    }

    /// Our objects that are left of an earlier Machine: they are deleted and waited for, never
    /// used again.
    ///
    /// `had_machine` is whether an earlier reconcile recorded a Machine with them: a foreground
    /// deletion can strip the owner references that would otherwise show it.
    pub(crate) fn leftovers(
        &self,
        had_machine: bool,
    ) -> Vec<(ProviderRole, &'a Provider)> {
        let of = |role, part: &ProviderObjects<'a>| {
            let spare = part.ours.iter().enumerate();
            spare
                .filter(|(place, found)| {
                    // One object of each role is enough; further ones are left from an edit of
                    // the spec.
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
        let mut all = of(ProviderRole::Bootstrap, &self.bootstrap);
        all.extend(of(ProviderRole::Infrastructure, &self.infrastructure));
        all
    }
}

impl<'a> ProviderObjects<'a> {
    /// Our object, if there is one.
    pub(crate) fn first(&self) -> Option<&'a Provider> {
        self.ours.first().copied()
    }

    /// Whether it is certain that no object of ours is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.ours.is_empty() && self.unknown.is_none() && self.not_served.is_none()
    }

    /// Whether it is certain that no object exists where a Machine refers to. A kind that is not
    /// served proves nothing: it may be served again in a moment.
    pub(crate) fn is_absent_from(&self, place: &Reference) -> bool {
        self.empty.iter().any(|empty| empty.is_same_object(place))
    }
}

/// Separates our objects from those of other owners.
struct Ownership<'s, 'a> {
    subject: &'s Subject,
    slot: NamedMachine<'a>,
}

impl<'a> Ownership<'_, 'a> {
    fn part(&self, lookups: &'a [Lookup], home: &Reference) -> ProviderObjects<'a> {
        static NOT_REQUESTED: Unknown = Unknown::NotRequested;
        let mut part = ProviderObjects::default();
        if lookups.is_empty() {
            part.unknown = Some(&NOT_REQUESTED);
        }
        for lookup in lookups {
            let is_home = lookup.reference.is_same_object(home);
            match &lookup.found {
                Fact::Known(None) => part.empty.push(&lookup.reference),
                Fact::Known(Some(found)) if self.is_ours(found) => part.ours.push(found),
                Fact::Known(Some(found)) if is_home => part.occupant = Some(&found.meta),
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

    /// Has our name label, and belongs to us or to a Machine of ours.
    fn is_ours(&self, found: &Provider) -> bool {
        let meta = &found.meta;
        match self.slot {
            NamedMachine::Ours(machine) => {
                is_ours(meta, self.subject)
                    || has_our_name(meta, self.subject)
                        && (meta
                            .controller()
                            .is_some_and(|owner| owner.uid == machine.meta.uid)
                            || is_named_by(machine, &found.reference()))
            }
            // An object that a live foreign Machine controls is deleted with that Machine, not by
            // us.
            NamedMachine::Foreign(machine) => {
                is_ours(meta, self.subject)
                    && meta
                        .controller()
                        .is_none_or(|owner| owner.uid != machine.meta.uid)
            }
            NamedMachine::Absent => is_ours(meta, self.subject),
        }
    }
}

/// Has our name label, and our uid in a label or an owner reference.
fn is_ours(meta: &Meta, subject: &Subject) -> bool {
    is_made_by(meta, &subject.name, &subject.uid)
}

/// The same, given only the name and uid of the ScheduledMachine.
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

//! The record in the status: where the objects of a machine are or will be, and which spec they
//! are created from.
//!
//! It is in the status whenever the spec is valid, so that a machine can be created without
//! preparation, and every created object is found after a crash. It is rewritten only while none
//! of the three objects exists; until then an edit of the spec waits.
//! See `internals/decisions/0050-one-path-for-every-opening.md`.

use fivespot_api::{ObjectRef, ScheduledMachine, ScheduledMachineStatus, name};
use fivespot_capi::Provider;

use crate::decide::case::Case;
use crate::decide::resolve::ProviderDraft;
use crate::observed::location::reference;
use crate::observed::owned::ProviderObjects;
use crate::observed::subject::Subject;

/// What the status records of a machine. A reference without a uid is to an object that is not
/// created yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) bootstrap: Option<ObjectRef>,
    pub(crate) infrastructure: Option<ObjectRef>,
    /// The hash of what the objects are created from.
    pub(crate) hash: Option<String>,
}

impl Record {
    /// The record in a status.
    pub(crate) fn stored(status: &ScheduledMachineStatus) -> Self {
        Self {
            bootstrap: status.bootstrap_ref.clone(),
            infrastructure: status.infrastructure_ref.clone(),
            hash: status.spec_hash.clone(),
        }
    }

    /// The record that the status should have.
    pub(crate) fn due(case: &Case<'_>) -> Self {
        let planned = Self::planned(case);
        if case.owned.is_gone() {
            return planned;
        }
        let stored = Self::stored(&case.subject.status);
        let (bootstrap, infrastructure) =
            (&case.owned.bootstrap, &case.owned.infrastructure);
        let hash = || {
            let made = infrastructure.first().or(bootstrap.first());
            made.and_then(hash_of).cloned().or(planned.hash)
        };
        Self {
            bootstrap: existing(bootstrap, stored.bootstrap).or(planned.bootstrap),
            infrastructure: existing(infrastructure, stored.infrastructure)
                .or(planned.infrastructure),
            hash: stored.hash.or_else(hash),
        }
    }

    /// The objects that would be created now; empty while the spec is not valid.
    fn planned(case: &Case<'_>) -> Self {
        let desired = case.desired;
        if desired.fault.is_some() || desired.schedule.is_err() {
            return Self::default();
        }
        let place = |draft: &ProviderDraft| ObjectRef {
            api_version: draft.api_version.clone(),
            kind: draft.reference.kind.clone(),
            name: draft.reference.name.clone(),
            namespace: Some(case.subject.namespace.clone()),
            uid: None,
        };
        Self {
            bootstrap: Some(place(&desired.bootstrap)),
            infrastructure: Some(place(&desired.infrastructure)),
            hash: Some(desired.hash.clone()),
        }
    }

    /// Writes the record into a status.
    pub(crate) fn store(self, status: &mut ScheduledMachineStatus) {
        status.bootstrap_ref = self.bootstrap;
        status.infrastructure_ref = self.infrastructure;
        status.spec_hash = self.hash;
    }

    /// Whether nothing is recorded.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this record differs from `earlier` only in uids of objects that were created
    /// since.
    pub(crate) fn continues(&self, earlier: &Self) -> bool {
        let same = |now: &Option<ObjectRef>, then: &Option<ObjectRef>| match (now, then) {
            (Some(now), Some(then)) => {
                is_same_place(now, then) && (then.uid.is_none() || now.uid == then.uid)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same(&self.bootstrap, &earlier.bootstrap)
            && same(&self.infrastructure, &earlier.infrastructure)
            && self.hash == earlier.hash
    }

    /// Whether no object is recorded to exist.
    pub(crate) fn has_no_uid(&self) -> bool {
        let mut locations = self.bootstrap.iter().chain(&self.infrastructure);
        locations.all(|place| place.uid.is_none())
    }
}

/// Whether all missing objects may be created: their places are recorded, and nothing of an
/// earlier Machine is.
pub(crate) fn allows_creation(case: &Case<'_>) -> bool {
    let status = &case.subject.status;
    let stored = Record::stored(status);
    let desired = case.desired;
    let is_as_wanted = stored.hash.as_ref() == Some(&desired.hash);
    fits(&stored, case) && (is_as_wanted || !case.owned.is_gone()) && is_clear(status)
}

/// Whether a status records nothing of an earlier Machine.
fn is_clear(status: &ScheduledMachineStatus) -> bool {
    status.machine_ref.is_none() && status.shutdown.is_none()
}

/// Whether each missing object would be created where `record` has it.
pub(crate) fn fits(record: &Record, case: &Case<'_>) -> bool {
    let is_at =
        |part: &ProviderObjects<'_>, place: &Option<ObjectRef>, draft: &ProviderDraft| {
            part.first().is_some()
                || place.as_ref().is_some_and(|place| {
                    place.api_version == draft.api_version
                        && place.kind == draft.reference.kind
                        && place.name == draft.reference.name
                })
        };
    let (owned, desired) = (case.owned, case.desired);
    is_at(&owned.bootstrap, &record.bootstrap, &desired.bootstrap)
        && is_at(
            &owned.infrastructure,
            &record.infrastructure,
            &desired.infrastructure,
        )
}

/// The hash of what an object was created from, in its annotation.
pub(crate) fn hash_of(provider: &Provider) -> Option<&String> {
    provider.meta.annotations.get(name::SPEC_HASH_ANNOTATION)
}

/// The place of an existing object, else the recorded one.
fn existing(part: &ProviderObjects<'_>, stored: Option<ObjectRef>) -> Option<ObjectRef> {
    match part.first() {
        Some(found) => Some(object_ref(found, stored.as_ref())),
        None => stored,
    }
}

/// The reference to a provider object in the status. A recorded version is kept: in which of
/// several served versions the object was read depends on the client, and differs from run to
/// run.
fn object_ref(found: &Provider, stored: Option<&ObjectRef>) -> ObjectRef {
    let place = found.reference();
    let recorded = stored.filter(|of| reference(of).is_same_object(&place));
    ObjectRef {
        api_version: recorded
            .map_or(&found.api_version, |of| &of.api_version)
            .clone(),
        kind: found.kind.clone(),
        name: found.meta.name.clone(),
        namespace: Some(found.meta.namespace.clone()),
        uid: Some(found.meta.uid.clone()),
    }
}

fn is_same_place(one: &ObjectRef, other: &ObjectRef) -> bool {
    (&one.api_version, &one.kind, &one.name)
        == (&other.api_version, &other.kind, &other.name)
}

/// What the ScheduledMachine must match in a quorum read right before objects are created by a
/// plan made from caches. Names are deterministic, so that nothing else has to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    uid: String,
    generation: Option<i64>,
    record: Record,
    host: Option<String>,
}

impl Precondition {
    /// Requires the ScheduledMachine that the plan was made from.
    pub(crate) fn of(subject: &Subject) -> Self {
        Self {
            uid: subject.uid.clone(),
            generation: subject.generation,
            record: Record::stored(&subject.status),
            host: subject.status.host.clone(),
        }
    }

    /// The host that is recorded, whose claim must be stored, too.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether it holds for the ScheduledMachine as it is stored now: the same uid and
    /// generation, neither paused nor being deleted, the same record in its status, and nothing
    /// of an earlier Machine.
    pub fn holds(&self, stored: &ScheduledMachine) -> bool {
        let now = Subject::of(stored);
        now.uid == self.uid
            && now.generation == self.generation
            && !now.is_deleting
            && !now.is_paused
            && Record::stored(&now.status) == self.record
            && now.status.host == self.host
            && is_clear(&now.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reference_keeps_the_version_in_which_it_was_recorded() {
        let read = |version: &str| {
            let object = json!({
                "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"),
                "kind": "RemoteMachine",
                "metadata": {"name": "worker", "uid": "r-1"},
            });
            Provider::read(&object).unwrap()
        };
        let stored = object_ref(&read("v1beta1"), None);
        assert_eq!(object_ref(&read("v1beta2"), Some(&stored)), stored);
        let other = ObjectRef {
            kind: "Metal3Machine".to_owned(),
            ..stored
        };
        let version = object_ref(&read("v1beta2"), Some(&other)).api_version;
        assert_eq!(version, "infrastructure.cluster.x-k8s.io/v1beta2");
    }
}

//! Reads a set and its machines, from caches or from the server.

use std::collections::BTreeSet;

use fivespot_api::scheduled_machine_set::INDEXES;
use fivespot_api::{ScheduledMachineSet, name};
use fivespot_plan::set::owner_of;
use fivespot_plan::{SetFacts, SetMachine, Unanswered};
use fivespot_runtime::Key;
use fivespot_runtime::http::Address;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use super::Reconcile;
use crate::kind::scheduled_machine;
use crate::observe::projection::{CachedKind, set_term};
use crate::own_object::OwnObject;

/// How many machines one request lists, and how many such requests there are at most: a set has no
/// more machines, unless others have its label.
const PAGE: &str = "500";
const MAX_PAGES: usize = 10;

/// A set and its machines, as they were read.
pub(super) struct Observed {
    pub(super) set: ScheduledMachineSet,
    machines: Vec<SetMachine>,
    taken: BTreeSet<u32>,
    unanswered: Unanswered,
    now: Timestamp,
}

impl Observed {
    pub(super) fn facts(&self) -> SetFacts<'_> {
        SetFacts {
            set: &self.set,
            machines: &self.machines,
            taken: &self.taken,
            unanswered: &self.unanswered,
            now: self.now,
        }
    }
}

impl Reconcile<'_> {
    /// The set and its machines according to the caches.
    pub(super) async fn cached(&self, set: ScheduledMachineSet) -> Observed {
        let store = &self.0.context.scheduled_machines.store;
        let keys = store.found_by(&set_term(&self.0.found.uid));
        let own = keys
            .iter()
            .filter(|key| key.namespace == self.0.key.namespace);
        let mut machines = Vec::new();
        for (number, object) in own.filter_map(|key| store.get(key)).enumerate() {
            // A large set does not block other tasks.
            if number % 64 == 63 {
                tokio::task::yield_now().await;
            }
            machines.extend(SetMachine::of(&object.value(), &set));
        }
        self.observed(set, machines)
    }

    /// The set and its machines as the server has them. `None` if the set is gone.
    pub(super) async fn live(&self) -> kube::Result<Option<Observed>> {
        let (context, key, found) = (self.0.context, self.0.key, self.0.found);
        let api = &context.api;
        let stored = api.get(&self.0.address()).await?;
        let set = stored.and_then(|it| ScheduledMachineSet::deserialize(&it).ok());
        let is_same = |set: &ScheduledMachineSet| {
            set.metadata.uid.as_deref() == Some(found.uid.as_str())
        };
        let Some(set) = set.filter(is_same) else {
            return Ok(None);
        };
        let at = Address {
            resource: &scheduled_machine(),
            namespace: Some(&key.namespace),
            name: "",
            projection: Some(&CachedKind::ScheduledMachine),
        };
        let selector = format!("{}={}", name::SET_LABEL, key.name);
        let (mut machines, mut next) = (Vec::new(), String::new());
        for _ in 0..MAX_PAGES {
            let mut query = vec![("labelSelector", selector.as_str()), ("limit", PAGE)];
            if !next.is_empty() {
                query.push(("continue", next.as_str()));
            }
            let page = api.page(&at, &query, |object| {
                machines.extend(SetMachine::of(&object, &set));
                Ok(())
            });
            next = page.await?.next;
            if next.is_empty() {
                return Ok(Some(self.observed(set, machines)));
            }
        }
        let message = format!("too many ScheduledMachines have the label {selector}");
        Err(kube::Error::Service(message.into()))
    }

    fn observed(&self, set: ScheduledMachineSet, machines: Vec<SetMachine>) -> Observed {
        let OwnObject { context, key, .. } = self.0;
        let unanswered = context.sets.unanswered(key, |unanswered| {
            let is_there = |index: &u32| machines.iter().any(|it| it.index == *index);
            unanswered.creations.retain(|index| !is_there(index));
            let is_staying =
                |uid: &String| machines.iter().any(|it| it.uid == *uid && !it.is_leaving);
            unanswered.deletions.retain(is_staying);
            let generation = set.metadata.generation;
            unanswered
                .refused
                .retain(|uid, of| of.generation == generation && is_staying(uid));
            unanswered.clone()
        });
        let taken = self.taken(&set, &machines);
        Observed {
            set,
            machines,
            taken,
            unanswered,
            now: self.0.of_kind.queue.now(),
        }
    }

    /// The indexes whose names ScheduledMachines have that the set does not own, as far as the set
    /// may need them.
    fn taken(&self, set: &ScheduledMachineSet, machines: &[SetMachine]) -> BTreeSet<u32> {
        let (context, key, found) = (self.0.context, self.0.key, self.0.found);
        let store = &context.scheduled_machines.store;
        let mut needed = machines.len() + set.spec.replicas as usize;
        let mut taken = BTreeSet::new();
        for index in 0..INDEXES {
            if needed == 0 {
                break;
            }
            let name = ScheduledMachineSet::machine_name(&key.name, index);
            let machine = store.get(&Key::new(key.namespace.clone(), name));
            let is_of_others = |it: &Value| owner_of(it) != Some(found.uid.as_str());
            if machine.is_some_and(|it| is_of_others(&it.value())) {
                taken.insert(index);
            } else {
                needed -= 1;
            }
        }
        taken
    }
}

//! What the server has to do after a write: collect, finalize, count, register.
//!
//! In a real cluster these are controllers of their own. Here each write notes what it
//! makes necessary; the notes are worked off one at a time between requests, and hold a
//! virtual clock until they are done.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use fivespot_admission::crd::Crd;
use fivespot_admission::policy::Policy;
use fivespot_clock::{Busy, Clock};
use indexmap::IndexSet;
use serde_json::{Value, json};

use crate::authorization;
use crate::budget;
use crate::collect;
use crate::definition;
use crate::endowment;
use crate::expiry;
use crate::identity::secret;
use crate::meta;
use crate::namespace;
use crate::openapi;
use crate::start;
use crate::state::State;
use crate::store::{Change, Key, Shelf};

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Chore {
    /// Look whether an object has lost its owners, or waits for its dependents.
    Collect(Shelf, Key),
    /// Look at everything that names this uid among its owners.
    Dependents(String),
    /// Move a namespace that is being deleted towards its end.
    Namespace(String),
    /// Count a disruption budget's pods.
    Budget(Key),
    /// Say what there is to be said about the types of a policy.
    Policy(Key),
    /// Give a namespace what every one has.
    Endow(String),
    /// Fill a secret with the token of its service account.
    Token(Key),
    /// Make a namespace again that every cluster has.
    SystemNamespace(String),
    /// Put the aggregated roles together.
    Aggregate,
    /// Remove the events that are old enough.
    Expire,
    /// Remove the objects of a definition that is being deleted.
    Definition(Key),
}

/// What is to be done, in the order it was noted, each thing once.
#[derive(Debug)]
pub(crate) struct Chores {
    clock: Clock,
    queue: VecDeque<Chore>,
    noted: HashSet<Chore>,
    /// What admission has refused.
    refused: IndexSet<Chore>,
    busy: Option<Busy>,
    /// Whether somebody is working them off.
    pub(crate) attended: bool,
}

impl Chores {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            queue: VecDeque::new(),
            noted: HashSet::new(),
            refused: IndexSet::new(),
            busy: None,
            attended: false,
        }
    }

    /// Notes something to be done, unless it is noted already.
    pub(crate) fn note(&mut self, chore: Chore) {
        if self.noted.insert(chore.clone()) {
            self.queue.push_back(chore);
            if self.busy.is_none() {
                self.busy = Some(self.clock.busy());
            }
        }
    }

    /// Keeps something that admission has refused until it is worth another try.
    pub(crate) fn set_aside(&mut self, chore: Chore) {
        self.refused.insert(chore);
    }

    /// Notes again all that has been refused.
    fn retry(&mut self) {
        for chore in std::mem::take(&mut self.refused) {
            self.note(chore);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn take(&mut self) -> Option<Chore> {
        let chore = self.queue.pop_front();
        match &chore {
            Some(chore) => {
                self.noted.remove(chore);
            }
            None => self.busy = None,
        }
        chore
    }
}

/// Does the next thing. Returns whether there was one.
pub(crate) fn work(state: &mut State) -> bool {
    let Some(chore) = state.chores.take() else {
        return false;
    };
    match chore {
        Chore::Collect(shelf, key) => collect::look_at(state, shelf, &key),
        Chore::Dependents(uid) => collect::look_at_dependents(state, &uid),
        Chore::Namespace(name) => namespace::empty(state, &name),
        Chore::Budget(key) => budget::count(state, &key),
        Chore::Policy(key) => look_at_policy(state, &key),
        Chore::Endow(name) => endowment::give(state, &name),
        Chore::Token(key) => secret::look_at(state, &key),
        Chore::SystemNamespace(name) => namespace::ensure(state, &name),
        Chore::Aggregate => authorization::aggregate(state),
        Chore::Expire => expiry::forget(state),
        Chore::Definition(key) => definition::clean_up(state, &key),
    }
    true
}

/// Says of a policy, once for each of its generations, what does not fit the definitions that
/// there are then.
fn look_at_policy(state: &mut State, key: &Key) {
    let shelf = state.shelves.policies;
    let Some(policy) = state.get(shelf, key) else {
        return;
    };
    let generation = meta::generation(policy);
    if policy["status"]["observedGeneration"].as_i64() >= Some(generation) {
        return;
    }
    let mut policy = Value::clone(policy);
    let definitions: Vec<&Crd> = state.definitions.values().map(|it| &**it).collect();
    let all: Vec<_> = state.registry.all().cloned().collect();
    let known: Vec<_> = all
        .iter()
        .filter_map(|it| openapi::known_kind(it))
        .collect();
    let warnings = Policy::type_check(&policy, &definitions, &known, state.kube);
    let warnings = warnings
        .iter()
        .map(|it| json!({"fieldRef": it.field(), "warning": it.warning}));
    let warnings: Vec<Value> = warnings.collect();
    let mut status = json!({"observedGeneration": generation, "typeChecking": {}});
    if !warnings.is_empty() {
        status["typeChecking"]["expressionWarnings"] = warnings.into();
    }
    meta::fields(&mut policy).insert("status".to_owned(), status);
    state.put(shelf, policy);
}

/// Whether admission may answer otherwise after a write, to what it has refused before: the
/// write is one of what decides, or of what is decided about.
fn may_be_admitted(state: &State, change: &Change) -> bool {
    let refused = &state.chores.refused;
    if refused.is_empty() {
        return false;
    }
    let shelves = &state.shelves;
    let deciding = [
        shelves.policies,
        shelves.bindings,
        shelves.definitions,
        shelves.namespaces,
    ];
    let key = &change.key;
    deciding.contains(&change.shelf)
        || shelves.rights.contains(&change.shelf)
        || state.policies.reads_parameters_of(&change.told["kind"])
        || refused.contains(&Chore::Collect(change.shelf, key.clone()))
        || refused.contains(&Chore::Token(key.clone()))
        || refused.contains(&Chore::Namespace(key.namespace.to_string()))
}

/// Notes what a write makes necessary, and takes in at once what later requests rely on.
pub(crate) fn after(state: &mut State, change: &Arc<Change>) {
    collect::note(state, change);
    let shelves = state.shelves;
    if change.shelf == shelves.definitions {
        definition::changed(state, change);
    } else if change.shelf == shelves.policies || change.shelf == shelves.bindings {
        if let Err(errors) = state.policies.update(change, state.kube) {
            start::note_invalid(state, &change.told, &errors);
        }
        if change.shelf == shelves.policies && change.after.is_some() {
            state.chores.note(Chore::Policy(change.key.clone()));
        }
    } else if change.shelf == shelves.pods {
        budget::note_pod(state, change);
    } else if change.shelf == shelves.budgets && change.after.is_some() {
        state.chores.note(Chore::Budget(change.key.clone()));
    }
    if may_be_admitted(state, change) {
        state.chores.retry();
    }
    if let Some(namespace) = endowment::concerned(state, change) {
        state.chores.note(Chore::Endow(namespace));
    }
    secret::note(state, change);
    if shelves.rights.contains(&change.shelf) {
        Arc::make_mut(&mut state.book).take_in(change);
        if change.shelf == shelves.cluster_roles {
            state.chores.note(Chore::Aggregate);
        }
    }
    if change.shelf == shelves.events && change.after.is_some() {
        let now = state.clock.now();
        if state.expiry.renew(change, now) {
            state.chores.note(Chore::Expire);
        }
    }
    if change.after.is_none()
        && let Some(key) = definition::ending(state, change.shelf)
    {
        state.chores.note(Chore::Definition(key));
    }
    if change.shelf == shelves.namespaces {
        let name = &*change.key.name;
        if change.after.is_none() && namespace::INITIAL.contains(&name) {
            state.chores.note(Chore::SystemNamespace(name.to_owned()));
        }
        if change.after.as_deref().is_some_and(meta::is_deleting) {
            state
                .chores
                .note(Chore::Namespace(change.key.name.to_string()));
        }
    } else if change.after.is_none() && namespace::is_ending(state, &change.key.namespace)
    {
        state
            .chores
            .note(Chore::Namespace(change.key.namespace.to_string()));
    }
}

//! Stores the contents of all states once: a state is then a few small numbers. What follows from
//! contents is computed once too.

use std::fmt::{self, Debug, Formatter};
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};

use dashmap::DashMap;
use fivespot_api::ScheduledMachine;
use indexmap::IndexMap;
use serde_json::{Value, json};

/// The number of an item in an [`Interner`]. Also its resourceVersion: two versions of an object with
/// the same content have the same resourceVersion here, which lets more writes through a guard
/// than a real server would, never fewer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(NonZeroU32);

impl Debug for Id {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl Id {
    /// As a resourceVersion.
    pub(crate) fn version(self) -> String {
        self.0.to_string()
    }

    #[expect(clippy::expect_used, reason = "memory ends long before the numbers do")]
    fn at(place: usize) -> Self {
        let number = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than 2^32 things"))
    }
}

/// All items of one type that any state contains; each item once, by a text of its content.
pub(crate) struct Interner<T>(RwLock<IndexMap<String, Arc<T>>>);

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Interner<T> {
    /// The number of the item with this text.
    ///
    /// # Panics
    /// With more than four billion items.
    fn number(&self, text: String, item: impl FnOnce(Id) -> T) -> Id {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = all.get_index_of(&text) {
            return Id::at(place);
        }
        drop(all);
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let entry = all.entry(text);
        let id = Id::at(entry.index());
        entry.or_insert_with(|| Arc::new(item(id)));
        id
    }

    /// The item with this number.
    ///
    /// # Panics
    /// If the number is of another interner.
    pub(crate) fn of(&self, id: Id) -> Arc<T> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&all[id.0.get() as usize - 1])
    }
}

impl<T: Debug> Interner<T> {
    /// The number of an item whose debug text shows all of it.
    pub(crate) fn intern_shown(&self, item: T) -> Id {
        self.number(format!("{item:?}"), |_| item)
    }
}

impl Interner<Value> {
    /// The number of an object, which is its resourceVersion.
    pub(crate) fn intern(&self, mut object: Value) -> Id {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        self.number(object.to_string(), |id| {
            object["metadata"]["resourceVersion"] = json!(id.version());
            object
        })
    }
}

impl Interner<ScheduledMachine> {
    /// The number of a ScheduledMachine, which is its resourceVersion.
    pub(crate) fn intern(&self, mut object: ScheduledMachine) -> Id {
        object.metadata.resource_version = None;
        let text = serde_json::to_string(&object).unwrap_or_default();
        self.number(text, |id| {
            object.metadata.resource_version = Some(id.version());
            object
        })
    }
}

/// Answers that are computed once for each question.
pub(crate) struct Memo<Q, A>(DashMap<Q, A>);

impl<Q: Hash + Eq, A> Default for Memo<Q, A> {
    fn default() -> Self {
        Self(DashMap::default())
    }
}

impl<Q: Hash + Eq, A: Copy> Memo<Q, A> {
    /// The answer to a question. No lock is held while it is computed.
    pub(crate) fn of(&self, question: Q, compute: impl FnOnce() -> A) -> A {
        let known = self.0.get(&question).map(|answer| *answer);
        known.unwrap_or_else(|| {
            let answer = compute();
            self.0.insert(question, answer);
            answer
        })
    }
}

//! Stores the contents of all states once: a state is then a few small numbers.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};

/// The number of an item in an [`Interner`]. Also its resourceVersion: two versions of an object with
/// the same content have the same resourceVersion here, which lets more writes through a guard
/// than a real server would, never fewer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(NonZeroU32);

impl std::fmt::Debug for Id {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl Id {
    /// As a resourceVersion.
    pub(crate) fn version(self) -> String {
        self.0.to_string()
    }
}

/// All items of one type that any state contains; each item once.
pub(crate) struct Interner<K, T> {
    interned: RwLock<Interned<K, T>>,
}

struct Interned<K, T> {
    ids: HashMap<K, Id>,
    items: Vec<Arc<T>>,
}

impl<K, T> Default for Interner<K, T> {
    fn default() -> Self {
        Self {
            interned: RwLock::new(Interned {
                ids: HashMap::new(),
                items: Vec::new(),
            }),
        }
    }
}

impl<K: Hash + Eq, T> Interner<K, T> {
    /// The number of `item`, which is identified by `key`.
    ///
    /// # Panics
    /// With more than four billion items.
    pub(crate) fn intern(&self, key: K, item: impl FnOnce(Id) -> T) -> Id {
        if let Some(id) = self.read().ids.get(&key) {
            return *id;
        }
        let mut interned = self
            .interned
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = interned.ids.get(&key) {
            return *id;
        }
        #[expect(clippy::expect_used, reason = "memory ends long before the numbers do")]
        let id = u32::try_from(interned.items.len() + 1)
            .ok()
            .and_then(NonZeroU32::new)
            .map(Id)
            .expect("fewer than 2^32 things");
        interned.items.push(Arc::new(item(id)));
        interned.ids.insert(key, id);
        id
    }

    /// The item with this number.
    ///
    /// # Panics
    /// If the number is of another interner.
    pub(crate) fn of(&self, id: Id) -> Arc<T> {
        Arc::clone(&self.read().items[id.0.get() as usize - 1])
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Interned<K, T>> {
        self.interned.read().unwrap_or_else(PoisonError::into_inner)
    }
}

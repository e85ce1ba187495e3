//! The queues of the schedules that other objects follow, and what the caches show of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use fivespot_api::name::SPOT_KINDS;
use fivespot_runtime::Key;

use crate::observe::projection::KindInformer;
use crate::own_kind::OwnKind;

/// The schedules of one kind.
#[derive(Debug)]
pub(crate) struct SpotSchedules {
    pub(crate) kind: OwnKind,
    /// The generation of each that the cache shows.
    shown: Mutex<BTreeMap<Key, Shown>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Shown {
    uid: String,
    generation: Option<i64>,
}

/// The schedules of all kinds. `of_kind` returns the queue of the kind of that name.
pub(crate) fn all(of_kind: impl Fn(&'static str) -> OwnKind) -> [SpotSchedules; 2] {
    SPOT_KINDS.map(|name| SpotSchedules {
        kind: of_kind(name),
        shown: Mutex::default(),
    })
}

impl SpotSchedules {
    /// Records what the cache shows of a schedule; returns whether its spec may be another.
    pub(crate) fn show(&self, informer: &KindInformer, key: &Key) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cached) = informer.store.get(key) else {
            shown.remove(key);
            return true;
        };
        let now = Shown {
            uid: cached.uid.clone(),
            generation: cached.value()["metadata"]["generation"].as_i64(),
        };
        let is_other = shown.get(key) != Some(&now);
        shown.insert(key.clone(), now);
        is_other
    }
}

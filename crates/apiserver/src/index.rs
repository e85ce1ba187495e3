//! Indexes for finding objects other than by name, updated with every write.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::meta;
use crate::store::{Bucket, Change, Key};

/// The location of an object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) bucket: Bucket,
    pub(crate) key: Key,
}

impl Place {
    /// Combines bucket and key.
    pub(crate) fn new(bucket: Bucket, key: Key) -> Self {
        Self { bucket, key }
    }
}

/// The current objects by uid, by owner and, for pods, by node.
#[derive(Debug)]
pub(crate) struct Index {
    pods: Bucket,
    by_uid: HashMap<String, Place>,
    dependents: HashMap<String, BTreeSet<Place>>,
    by_node: HashMap<String, BTreeSet<Key>>,
}

impl Index {
    /// An empty index; `pods` is the bucket of pods.
    pub(crate) fn new(pods: Bucket) -> Self {
        Self {
            pods,
            by_uid: HashMap::new(),
            dependents: HashMap::new(),
            by_node: HashMap::new(),
        }
    }

    /// Updates the index with a write.
    pub(crate) fn update(&mut self, change: &Change) {
        let place = Place::new(change.bucket, change.key.clone());
        if let Some(before) = &change.before {
            self.by_uid.remove(meta::uid(before));
            for uid in owner_uids(before) {
                take(&mut self.dependents, uid, &place);
            }
            if change.bucket == self.pods {
                take(&mut self.by_node, node(before), &place.key);
            }
        }
        if let Some(after) = &change.after {
            for uid in owner_uids(after) {
                self.dependents
                    .entry(uid.to_owned())
                    .or_default()
                    .insert(place.clone());
            }
            if change.bucket == self.pods {
                let pods = self.by_node.entry(node(after).to_owned()).or_default();
                pods.insert(place.key.clone());
            }
            self.by_uid.insert(meta::uid(after).to_owned(), place);
        }
    }

    /// The location of the object with this uid.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Place> {
        self.by_uid.get(uid)
    }

    /// The objects with this uid among their owner references, in order.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Place> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// The pods that are bound to a node, in order.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Key> {
        self.by_node.get(node).into_iter().flatten()
    }
}

fn take<T: Ord>(map: &mut HashMap<String, BTreeSet<T>>, key: &str, item: &T) {
    if let Some(set) = map.get_mut(key) {
        set.remove(item);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    meta::owners(object)
        .iter()
        .filter_map(|it| it["uid"].as_str())
}

fn node(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

//! Indexes for finding objects other than by name, updated with every write.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::meta;
use crate::store::{Bucket, Change, Key};

/// The location of an object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) bucket: Bucket,
    pub(crate) key: Key,
}

impl Location {
    /// Combines bucket and key.
    pub(crate) fn new(bucket: Bucket, key: Key) -> Self {
        Self { bucket, key }
    }
}

/// The current objects by uid and by owner; pods by node, and CustomResourceDefinitions by group.
#[derive(Debug)]
pub(crate) struct Index {
    pods: Bucket,
    definitions: Bucket,
    by_uid: HashMap<String, Location>,
    dependents: HashMap<String, BTreeSet<Location>>,
    by_node: HashMap<String, BTreeSet<Key>>,
    by_group: HashMap<String, BTreeSet<Key>>,
}

impl Index {
    /// An empty index, with the buckets of the pods and of the CustomResourceDefinitions.
    pub(crate) fn new(pods: Bucket, definitions: Bucket) -> Self {
        Self {
            pods,
            definitions,
            by_uid: HashMap::new(),
            dependents: HashMap::new(),
            by_node: HashMap::new(),
            by_group: HashMap::new(),
        }
    }

    /// Updates the index with a write.
    pub(crate) fn update(&mut self, change: &Change) {
        let location = Location::new(change.bucket, change.key.clone());
        if let Some(before) = &change.before {
            self.by_uid.remove(meta::uid(before));
            for uid in owner_uids(before) {
                remove_item(&mut self.dependents, uid, &location);
            }
            if change.bucket == self.pods {
                remove_item(&mut self.by_node, node(before), &location.key);
            }
            if change.bucket == self.definitions {
                remove_item(&mut self.by_group, group(before), &location.key);
            }
        }
        if let Some(after) = &change.after {
            for uid in owner_uids(after) {
                self.dependents
                    .entry(uid.to_owned())
                    .or_default()
                    .insert(location.clone());
            }
            if change.bucket == self.pods {
                let pods = self.by_node.entry(node(after).to_owned()).or_default();
                pods.insert(location.key.clone());
            }
            if change.bucket == self.definitions {
                let same = self.by_group.entry(group(after).to_owned()).or_default();
                same.insert(location.key.clone());
            }
            self.by_uid.insert(meta::uid(after).to_owned(), location);
        }
    }

    /// The location of the object with this uid.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Location> {
        self.by_uid.get(uid)
    }

    /// The objects with this uid among their owner references, in order.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Location> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// The pods that are bound to a node, in order.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Key> {
        self.by_node.get(node).into_iter().flatten()
    }

    /// The definitions of a group, in order.
    pub(crate) fn definitions_of(&self, group: &str) -> impl Iterator<Item = &Key> {
        self.by_group.get(group).into_iter().flatten()
    }
}

fn remove_item<T: Ord>(map: &mut HashMap<String, BTreeSet<T>>, key: &str, item: &T) {
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

fn group(definition: &Value) -> &str {
    definition["spec"]["group"].as_str().unwrap_or_default()
}

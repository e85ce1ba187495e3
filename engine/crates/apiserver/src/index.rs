//! Indexes for finding objects other than by name, updated with every write.

use std::sync::Arc;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
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

    /// One that is not greater than any other.
    fn first() -> Self {
        Self::new(Bucket::FIRST, Key::new("", ""))
    }
}

/// The current objects by uid and by owner; pods by node, and CustomResourceDefinitions by group.
///
/// A clone shares everything with the original until one of them is updated.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pods: Bucket,
    definitions: Bucket,
    by_uid: RedBlackTreeMapSync<Arc<str>, Location>,
    dependents: Pairs<Location>,
    by_node: Pairs<Key>,
    by_group: Pairs<Key>,
}

/// What belongs to a text, in order.
#[derive(Clone, Debug)]
struct Pairs<T: Ord>(RedBlackTreeSetSync<(Arc<str>, T)>);

impl<T: Ord + Clone> Pairs<T> {
    fn insert(&mut self, text: &str, item: T) {
        self.0.insert_mut((text.into(), item));
    }

    fn remove(&mut self, text: &str, item: &T) {
        self.0.remove_mut(&(text.into(), item.clone()));
    }

    /// The items of a text. `first` is not greater than any of them.
    fn of(&self, text: &str, first: T) -> impl Iterator<Item = &T> {
        let text: Arc<str> = text.into();
        let range = (text.clone(), first)..;
        let found = self.0.range(range);
        let found = found.take_while(move |(it, _)| *it == text);
        found.map(|(_, item)| item)
    }
}

impl Index {
    /// An empty index, with the buckets of the pods and of the CustomResourceDefinitions.
    pub(crate) fn new(pods: Bucket, definitions: Bucket) -> Self {
        Self {
            pods,
            definitions,
            by_uid: RedBlackTreeMapSync::default(),
            dependents: Pairs(RedBlackTreeSetSync::default()),
            by_node: Pairs(RedBlackTreeSetSync::default()),
            by_group: Pairs(RedBlackTreeSetSync::default()),
        }
    }

    /// Updates the index with a write.
    pub(crate) fn update(&mut self, change: &Change) {
        if self.finds_alike(change) {
            return;
        }
        let location = Location::new(change.bucket, change.key.clone());
        if let Some(before) = &change.before {
            self.by_uid.remove_mut(meta::uid(before));
            for uid in owner_uids(before) {
                self.dependents.remove(uid, &location);
            }
            if change.bucket == self.pods {
                self.by_node.remove(node(before), &location.key);
            }
            if change.bucket == self.definitions {
                self.by_group.remove(group(before), &location.key);
            }
        }
        if let Some(after) = &change.after {
            for uid in owner_uids(after) {
                self.dependents.insert(uid, location.clone());
            }
            if change.bucket == self.pods {
                self.by_node.insert(node(after), location.key.clone());
            }
            if change.bucket == self.definitions {
                self.by_group.insert(group(after), location.key.clone());
            }
            self.by_uid.insert_mut(meta::uid(after).into(), location);
        }
    }

    /// Whether a write changes nothing by which its object is found.
    fn finds_alike(&self, change: &Change) -> bool {
        let (Some(before), Some(after)) = (&change.before, &change.after) else {
            return false;
        };
        meta::uid(before) == meta::uid(after)
            && owner_uids(before).eq(owner_uids(after))
            && (change.bucket != self.pods || node(before) == node(after))
            && (change.bucket != self.definitions || group(before) == group(after))
    }

    /// The location of the object with this uid.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Location> {
        self.by_uid.get(uid)
    }

    /// The objects with this uid among their owner references, in order.
    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Location> {
        self.dependents.of(uid, Location::first())
    }

    /// The pods that are bound to a node, in order.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Key> {
        self.by_node.of(node, Key::new("", ""))
    }

    /// The definitions of a group, in order.
    pub(crate) fn definitions_of(&self, group: &str) -> impl Iterator<Item = &Key> {
        self.by_group.of(group, Key::new("", ""))
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

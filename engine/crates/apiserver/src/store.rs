//! Objects in all their retained versions, with one version counter.
//!
//! The store is pure: it has no clock, no tasks and no code for specific kinds. Every write
//! uses [`Store::put`] or [`Store::remove`], gets the next version and is added to a log of
//! bounded length and size. The versions in the log can be listed and watched; older ones return
//! [`TooOld`].
//!
//! A clone shares everything with the original until one of them is written: the maps are persistent
//! trees, of which a write copies a path.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::iter;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;
use serde_json::Value;

use crate::meta;
use crate::resource::GroupResource;

/// The maximum size of the objects of all retained changes together, in bytes of memory. The last
/// change is retained whatever its size is.
const RETAINED_BYTES: usize = 128 * 1024 * 1024;

/// One object at one version. It is immutable.
pub(crate) type Object = Arc<Value>;

/// The key of an object in its bucket; the order is that of lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    /// `namespace` is empty for cluster-scoped objects.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    fn directory(&self) -> impl Iterator<Item = u8> {
        self.namespace.bytes().chain(iter::once(b'/'))
    }
}

/// Sorted as etcd sorts `namespace/name`: the namespace `team-a` comes before `team`. The keys
/// of one namespace are contiguous.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            return self.name.cmp(&other.name);
        }
        self.directory().cmp(other.directory())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The identifier of the objects of one resource; see [`Store::bucket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Bucket(usize);

impl Bucket {
    /// The bucket that was created first.
    pub(crate) const FIRST: Self = Self(0);
}

/// One write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) bucket: Bucket,
    pub(crate) key: Key,
    /// The object before; `None` for a create.
    pub(crate) before: Option<Object>,
    /// The object after; `None` for a delete.
    pub(crate) after: Option<Object>,
    /// The object of the watch event: `after`, or the last state with the version of the
    /// delete.
    pub(crate) object: Object,
    /// The memory that `object` takes, about, in bytes.
    pub(crate) size: usize,
    json: OnceLock<Bytes>,
}

impl Change {
    /// `object` as JSON, encoded once for the response and all watchers.
    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| meta::json(&self.object))
    }
}

/// The memory that a value takes, about, in bytes.
fn memory_of(value: &Value) -> usize {
    let contents = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory_of).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| size_of::<String>() + name.len() + memory_of(value))
            .sum(),
    };
    size_of::<Value>() + contents
}

/// The requested version is not retained any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest retained version.
    pub(crate) oldest: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    version: u64,
    /// Lists and watches of earlier versions are too old.
    oldest: u64,
    /// The maximum number of retained changes.
    retained: usize,
    names: Arc<HashMap<GroupResource, Bucket>>,
    buckets: Vec<Objects>,
    /// What has changed, by version.
    log: RedBlackTreeMapSync<u64, Logged>,
    /// The size of the changes in the log.
    logged_bytes: usize,
}

#[derive(Clone, Debug)]
struct Logged {
    bucket: Bucket,
    key: Key,
    size: usize,
}

#[derive(Clone, Debug, Default)]
struct Objects {
    /// Each object with its retained versions, the newest last; `None` is a delete.
    versions: RedBlackTreeMapSync<Key, VecDeque<(u64, Option<Object>)>>,
    /// The changes by their version.
    log: RedBlackTreeMapSync<u64, Arc<Change>>,
}

impl Store {
    /// An empty store at version 1 that retains the last `retained` changes, or fewer if they have
    /// more than [`RETAINED_BYTES`].
    pub(crate) fn new(retained: usize) -> Self {
        Self {
            version: 1,
            oldest: 1,
            retained: retained.max(1),
            names: Arc::default(),
            buckets: Vec::new(),
            log: RedBlackTreeMapSync::default(),
            logged_bytes: 0,
        }
    }

    /// The version of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The bucket of `resource`, created if necessary.
    pub(crate) fn bucket(&mut self, resource: &GroupResource) -> Bucket {
        if let Some(bucket) = self.names.get(resource) {
            return *bucket;
        }
        let bucket = Bucket(self.buckets.len());
        self.buckets.push(Objects::default());
        Arc::make_mut(&mut self.names).insert(resource.clone(), bucket);
        bucket
    }

    /// The resource of a bucket.
    pub(crate) fn resource(&self, bucket: Bucket) -> Option<&GroupResource> {
        let found = self.names.iter().find(|(_, it)| **it == bucket);
        found.map(|(resource, _)| resource)
    }

    /// Resumes at `version`, the version of the objects that are loaded next; earlier versions
    /// are too old.
    pub(crate) fn resume_at(&mut self, version: u64) {
        self.version = version;
        self.oldest = version;
    }

    /// Loads a stored object at its own version; this is not a write.
    pub(crate) fn load(
        &mut self,
        bucket: Bucket,
        key: Key,
        object: Value,
    ) -> Arc<Change> {
        let version = meta::version(&object).parse().unwrap_or(self.version);
        let object = Arc::new(object);
        if let Some(objects) = self.buckets.get_mut(bucket.0) {
            let versions = VecDeque::from([(version, Some(object.clone()))]);
            objects.versions.insert_mut(key.clone(), versions);
        }
        Arc::new(Change {
            version,
            bucket,
            key,
            before: None,
            after: Some(object.clone()),
            size: memory_of(&object),
            object,
            json: OnceLock::new(),
        })
    }

    /// The bucket of `resource`, if it exists.
    pub(crate) fn known_bucket(&self, resource: &GroupResource) -> Option<Bucket> {
        self.names.get(resource).copied()
    }

    /// The current state of an object.
    pub(crate) fn get(&self, bucket: Bucket, key: &Key) -> Option<&Object> {
        let (_, newest) = self.buckets.get(bucket.0)?.versions.get(key)?.back()?;
        newest.as_ref()
    }

    /// The last write to a bucket that is retained.
    pub(crate) fn last_change(&self, bucket: Bucket) -> Option<&Arc<Change>> {
        self.buckets.get(bucket.0)?.log.last().map(|it| it.1)
    }

    /// Stores `object` at the next version, which is written into its metadata.
    pub(crate) fn put(
        &mut self,
        bucket: Bucket,
        key: Key,
        mut object: Value,
    ) -> Arc<Change> {
        let version = self.version + 1;
        meta::set(&mut object, "resourceVersion", version.to_string());
        let object = Arc::new(object);
        let before = self.get(bucket, &key).cloned();
        self.commit(Change {
            version,
            bucket,
            key,
            before,
            after: Some(object.clone()),
            size: memory_of(&object),
            object,
            json: OnceLock::new(),
        })
    }

    /// Removes an object; `None` if it does not exist.
    pub(crate) fn remove(&mut self, bucket: Bucket, key: &Key) -> Option<Arc<Change>> {
        let before = self.get(bucket, key)?.clone();
        let version = self.version + 1;
        let mut last = Value::clone(&before);
        meta::set(&mut last, "resourceVersion", version.to_string());
        Some(self.commit(Change {
            version,
            bucket,
            key: key.clone(),
            before: Some(before),
            after: None,
            size: memory_of(&last),
            object: Arc::new(last),
            json: OnceLock::new(),
        }))
    }

    fn commit(&mut self, change: Change) -> Arc<Change> {
        let change = Arc::new(change);
        self.version = change.version;
        let logged = Logged {
            bucket: change.bucket,
            key: change.key.clone(),
            size: change.size,
        };
        self.logged_bytes += change.size;
        self.log.insert_mut(change.version, logged);
        if let Some(objects) = self.buckets.get_mut(change.bucket.0) {
            let version = (change.version, change.after.clone());
            if let Some(versions) = objects.versions.get_mut(&change.key) {
                versions.push_back(version);
            } else {
                let versions = VecDeque::from([version]);
                objects.versions.insert_mut(change.key.clone(), versions);
            }
            objects.log.insert_mut(change.version, change.clone());
        }
        while self.log.size() > self.retained
            || self.logged_bytes > RETAINED_BYTES && self.log.size() > 1
        {
            self.drop_oldest();
        }
        change
    }

    /// Drops the oldest change: the states before it cannot be requested any longer.
    fn drop_oldest(&mut self) {
        let Some((version, logged)) = self.log.first() else {
            return;
        };
        let (version, Logged { bucket, key, size }) = (*version, logged.clone());
        self.log.remove_mut(&version);
        self.logged_bytes -= size;
        self.oldest = version;
        let Some(objects) = self.buckets.get_mut(bucket.0) else {
            return;
        };
        objects.log.remove_mut(&version);
        let Some(versions) = objects.versions.get_mut(&key) else {
            return;
        };
        while versions.front().is_some_and(|(it, _)| *it < version) {
            versions.pop_front();
        }
        if versions.len() == 1 && versions.front().is_some_and(|(_, it)| it.is_none()) {
            objects.versions.remove_mut(&key);
        }
    }

    /// The objects of a bucket sorted by key, at version `at` (current if `None`), of one
    /// namespace or of all, starting after the key `after`.
    pub(crate) fn list<'a>(
        &'a self,
        bucket: Bucket,
        range: &Range<'_>,
        at: Option<u64>,
    ) -> Result<impl Iterator<Item = (&'a Key, &'a Object)> + use<'a>, TooOld> {
        if at.is_some_and(|at| at < self.oldest) {
            return Err(TooOld {
                oldest: self.oldest,
            });
        }
        let namespace = range.namespace.map(str::to_owned);
        let low = match (range.after, range.namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let found = self.buckets.get(bucket.0).into_iter();
        Ok(found
            .flat_map(move |objects| {
                objects.versions.range((low.clone(), Bound::Unbounded))
            })
            .take_while(move |(key, _)| {
                namespace.as_deref().is_none_or(|it| it == &*key.namespace)
            })
            .filter_map(move |(key, versions)| {
                let (_, state) = match at {
                    None => versions.back()?,
                    Some(at) => versions.iter().rev().find(|(it, _)| *it <= at)?,
                };
                state.as_ref().map(|object| (key, object))
            }))
    }

    /// Every write to a bucket after version `since`, oldest first.
    pub(crate) fn changes(
        &self,
        bucket: Bucket,
        since: u64,
    ) -> Result<impl Iterator<Item = &Arc<Change>>, TooOld> {
        if since < self.oldest {
            return Err(TooOld {
                oldest: self.oldest,
            });
        }
        let found = self.buckets.get(bucket.0).into_iter();
        let later = (Bound::Excluded(since), Bound::Unbounded);
        Ok(found
            .flat_map(move |objects| objects.log.range(later).map(|(_, change)| change)))
    }
}

/// The part of a bucket to list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range<'a> {
    /// One namespace; `None` for all.
    pub(crate) namespace: Option<&'a str>,
    /// Only keys after this one.
    pub(crate) after: Option<&'a Key>,
}

#[cfg(test)]
mod model_test;

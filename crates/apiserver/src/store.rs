//! Objects in all their retained versions, under one counter.
//!
//! The store is pure: no clock, no tasks, no knowledge of kinds. Every write goes through
//! [`Store::put`] or [`Store::remove`], gets the next version and is kept in a log of
//! bounded length. What the log still covers can be listed and watched as it was; what it
//! no longer covers is [`TooOld`].

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::iter;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::meta;
use crate::resource::GroupResource;

/// One object as it was at one version. Never changed once stored.
pub(crate) type Object = Arc<Value>;

/// Where an object lies on its bucket; the order is that of lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    /// `namespace` is empty for objects that live in none.
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

/// As etcd sorts `namespace/name`: what is in `team-a` comes before what is in `team`. The
/// keys of one namespace lie together.
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

/// Names the objects of one resource; see [`Store::bucket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Bucket(usize);

/// One write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) bucket: Bucket,
    pub(crate) key: Key,
    /// The object before; `None` for a creation.
    pub(crate) before: Option<Object>,
    /// The object after; `None` for a removal.
    pub(crate) after: Option<Object>,
    /// The object of the watch event: `after`, or the last state at the removal's version.
    pub(crate) object: Object,
    json: OnceLock<Bytes>,
}

impl Change {
    /// `object` as JSON, made once however many watch.
    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| meta::json(&self.object))
    }
}

/// The asked version is no longer retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest version that is.
    pub(crate) oldest: u64,
}

#[derive(Debug)]
pub(crate) struct Store {
    version: u64,
    /// Lists and watches from before this version are too old.
    oldest: u64,
    /// How many changes are retained.
    retained: usize,
    names: HashMap<GroupResource, Bucket>,
    buckets: Vec<Objects>,
    log: VecDeque<(Bucket, Key)>,
}

#[derive(Debug, Default)]
struct Objects {
    /// Each with its retained versions, the newest last; a removal is a `None`.
    versions: BTreeMap<Key, VecDeque<(u64, Option<Object>)>>,
    log: VecDeque<Arc<Change>>,
}

impl Store {
    /// An empty store at version 1 that retains the last `retained` changes.
    pub(crate) fn new(retained: usize) -> Self {
        Self {
            version: 1,
            oldest: 1,
            retained: retained.max(1),
            names: HashMap::new(),
            buckets: Vec::new(),
            log: VecDeque::new(),
        }
    }

    /// The version of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The bucket of `resource`, made if there is none yet.
    pub(crate) fn bucket(&mut self, resource: &GroupResource) -> Bucket {
        if let Some(bucket) = self.names.get(resource) {
            return *bucket;
        }
        let bucket = Bucket(self.buckets.len());
        self.buckets.push(Objects::default());
        self.names.insert(resource.clone(), bucket);
        bucket
    }

    /// The resource of a bucket.
    pub(crate) fn resource(&self, bucket: Bucket) -> Option<&GroupResource> {
        let found = self.names.iter().find(|(_, it)| **it == bucket);
        found.map(|(resource, _)| resource)
    }

    /// Goes on at `version`, as of which objects are loaded; what was before is too old.
    pub(crate) fn resume_at(&mut self, version: u64) {
        self.version = version;
        self.oldest = version;
    }

    /// Puts an object back that was stored before, at its own version; no write.
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
            objects.versions.insert(key.clone(), versions);
        }
        Arc::new(Change {
            version,
            bucket,
            key,
            before: None,
            after: Some(object.clone()),
            object,
            json: OnceLock::new(),
        })
    }

    /// The bucket of `resource`, if there is one.
    pub(crate) fn known_bucket(&self, resource: &GroupResource) -> Option<Bucket> {
        self.names.get(resource).copied()
    }

    /// The newest state of one object.
    pub(crate) fn get(&self, bucket: Bucket, key: &Key) -> Option<&Object> {
        let (_, newest) = self.buckets.get(bucket.0)?.versions.get(key)?.back()?;
        newest.as_ref()
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
            object,
            json: OnceLock::new(),
        })
    }

    /// Removes an object; `None` if there is none.
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
            object: Arc::new(last),
            json: OnceLock::new(),
        }))
    }

    fn commit(&mut self, change: Change) -> Arc<Change> {
        let change = Arc::new(change);
        self.version = change.version;
        self.log.push_back((change.bucket, change.key.clone()));
        if let Some(objects) = self.buckets.get_mut(change.bucket.0) {
            let versions = objects.versions.entry(change.key.clone()).or_default();
            versions.push_back((change.version, change.after.clone()));
            objects.log.push_back(change.clone());
        }
        while self.log.len() > self.retained {
            self.forget_oldest();
        }
        change
    }

    /// Drops the oldest change: nothing before the state that it led to can be asked for.
    fn forget_oldest(&mut self) {
        let Some((bucket, key)) = self.log.pop_front() else {
            return;
        };
        let Some(objects) = self.buckets.get_mut(bucket.0) else {
            return;
        };
        let Some(change) = objects.log.pop_front() else {
            return;
        };
        self.oldest = change.version;
        let Some(versions) = objects.versions.get_mut(&key) else {
            return;
        };
        while versions.front().is_some_and(|(it, _)| *it < change.version) {
            versions.pop_front();
        }
        if versions.len() == 1 && versions.front().is_some_and(|(_, it)| it.is_none()) {
            objects.versions.remove(&key);
        }
    }

    /// The objects of a bucket in the order of their keys, as they were at version `at`
    /// (now, if `None`), of one namespace or of all, from behind `after` on.
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
        Ok(found.flat_map(move |objects| {
            let start = objects.log.partition_point(|it| it.version <= since);
            objects.log.range(start..)
        }))
    }
}

/// Which part of a bucket is listed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range<'a> {
    /// One namespace; `None` for all.
    pub(crate) namespace: Option<&'a str>,
    /// Only keys behind this one.
    pub(crate) after: Option<&'a Key>,
}

#[cfg(test)]
mod model_test;

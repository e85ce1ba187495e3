//! The last state of the objects of one kind that the API server sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::budget::{Budget, Reservation, TooLarge};
use super::expectations::{Expectation, Version};
use super::packed::{Packed, Packer};
use crate::Key;

/// One cached object: its JSON, reduced to the fields that are read here.
///
/// It is kept as text, which is several times smaller than the parsed form, and in a [`Store`]
/// without what it has in common with other objects. It is parsed when a reconcile needs it.
#[derive(Debug)]
pub struct Object<T> {
    /// The uid.
    pub uid: String,
    /// The last resourceVersion.
    pub version: Version,
    /// Everything but the resourceVersion.
    text: Packed,
    /// The targets that are triggered when it changes.
    pub targets: Vec<T>,
    /// The terms by which it can be found, besides its name.
    terms: Box<[Arc<str>]>,
    /// Whether only its name and its version are cached.
    is_name_only: bool,
    /// Its share of the memory budget of its cluster.
    share: Option<Reservation>,
}

impl<T> Object<T> {
    /// Caches `value`, which has already been reduced.
    pub fn new(mut value: Value, targets: Vec<T>, terms: Vec<String>) -> Self {
        let mut version = String::new();
        let mut uid = String::new();
        if let Some(Value::Object(meta)) = value.get_mut("metadata") {
            if let Some(Value::String(found)) = meta.shift_remove("resourceVersion") {
                version = found;
            }
            if let Some(Value::String(found)) = meta.get("uid") {
                uid.clone_from(found);
            }
        }
        Self {
            uid,
            version: Version::new(version),
            text: Packed::plain(value.to_string()),
            targets,
            terms: terms.into_iter().map(Arc::from).collect(),
            is_name_only: false,
            share: None,
        }
    }

    /// Drops everything except that the object exists in this version: nothing reads the rest.
    pub fn keep_name_only(&mut self) {
        self.text = Packed::plain("{}".to_owned());
        self.targets.clear();
        self.terms = Box::default();
        self.is_name_only = true;
    }

    /// Whether only its name and its version are cached. A caller that needs more must read it
    /// live.
    pub fn is_name_only(&self) -> bool {
        self.is_name_only
    }

    /// Counts it, and the key under which it is stored, in the memory budget of its cluster.
    ///
    /// # Errors
    /// The budget is exceeded.
    pub fn count(&mut self, key: &Key, budget: &Arc<Budget>) -> Result<(), TooLarge> {
        let terms: usize = self.terms.iter().map(|term| term.len()).sum();
        let texts = [
            self.text.length(),
            self.uid.len(),
            self.version.as_str().len(),
            key.namespace.len(),
            key.name.len(),
            terms,
        ];
        self.share = Some(budget.add(texts.iter().sum())?);
        Ok(())
    }

    /// The object as the API server sent it, without what was cut away.
    pub fn value(&self) -> Value {
        // The text was printed from a value, so it always parses.
        let text = self.text.text();
        let mut value: Value = serde_json::from_slice(&text).unwrap_or_default();
        if let Some(Value::Object(meta)) = value.get_mut("metadata") {
            let version = self.version.as_str().to_owned();
            meta.insert("resourceVersion".to_owned(), Value::String(version));
        }
        value
    }

    /// Deserializes the object as `V`, without its resourceVersion.
    ///
    /// # Errors
    /// The object lacks something that `V` needs.
    pub fn read<V: DeserializeOwned>(&self) -> serde_json::Result<V> {
        serde_json::from_slice(&self.text.text())
    }

    fn is_same_but_for_its_version(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The objects of one kind, from one watch per namespace (or one for all).
///
/// `T` names the targets that an object affects.
#[derive(Debug)]
pub struct Store<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    objects: BTreeMap<Key, Arc<Object<T>>>,
    /// The keys that can be found by each term: the terms of one machine find one object each.
    index: BTreeSet<(Arc<str>, Key)>,
    parts: BTreeMap<Part, Progress<T>>,
    packer: Packer,
}

/// What one watch covers: a namespace, or all of them.
pub type Part = Option<String>;

#[derive(Debug)]
struct Progress<T> {
    /// How many lists have begun and how many have ended.
    begun: u64,
    ended: u64,
    /// The newest version that has arrived.
    newest: Option<u64>,
    /// The objects of the list that is under way.
    listing: BTreeMap<Key, Arc<Object<T>>>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self(Mutex::new(State::default()))
    }
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            index: BTreeSet::new(),
            parts: BTreeMap::new(),
            packer: Packer::default(),
        }
    }
}

impl<T> Default for Progress<T> {
    fn default() -> Self {
        Self {
            begun: 0,
            ended: 0,
            newest: None,
            listing: BTreeMap::new(),
        }
    }
}

impl<T: Clone + Ord> Store<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list of `part` begins.
    pub fn begin(&self, part: &Part) {
        let mut state = self.state();
        let progress = state.parts.entry(part.clone()).or_default();
        progress.begun += 1;
        progress.listing.clear();
    }

    /// The list contains `object`.
    pub fn list(&self, part: &Part, key: Key, mut object: Object<T>) {
        let mut state = self.state();
        state.packer.pack(&mut object.text);
        let progress = state.parts.entry(part.clone()).or_default();
        progress.listing.insert(key, Arc::new(object));
    }

    /// The list is complete and replaces the previous objects. Returns the targets affected.
    pub fn end(&self, part: &Part) -> BTreeSet<T> {
        let mut state = self.state();
        let progress = state.parts.entry(part.clone()).or_default();
        progress.ended = progress.begun;
        let listed = std::mem::take(&mut progress.listing);
        let gone: Vec<Key> = state
            .objects
            .keys()
            .filter(|key| part.as_ref().is_none_or(|part| *part == key.namespace))
            .filter(|key| !listed.contains_key(key))
            .cloned()
            .collect();
        let mut affected = BTreeSet::new();
        for key in gone {
            affected.extend(state.replace(&key, None));
        }
        for (key, object) in listed {
            state.note(part, &object.version);
            affected.extend(state.replace(&key, Some(object)));
        }
        affected
    }

    /// `object` is new or has changed. Returns the targets affected: none if only its version has
    /// changed.
    pub fn put(&self, part: &Part, key: &Key, mut object: Object<T>) -> BTreeSet<T> {
        let mut state = self.state();
        state.packer.pack(&mut object.text);
        state.note(part, &object.version);
        state.replace(key, Some(Arc::new(object)))
    }

    /// The object is gone; `version` is that of the event. Returns the targets affected.
    pub fn remove(&self, part: &Part, key: &Key, version: &Version) -> BTreeSet<T> {
        let mut state = self.state();
        state.note(part, version);
        state.replace(key, None)
    }

    /// A write to version `base` of the object was answered with `object`, which replaces the cached
    /// one if that still has this version: any later version arrives by the watch. The event of the
    /// write then affects nothing.
    pub fn wrote(&self, key: &Key, base: &Version, mut object: Object<T>) {
        let mut state = self.state();
        let shown = state.objects.get(key);
        if shown.is_some_and(|shown| shown.uid == object.uid && shown.version == *base) {
            state.packer.pack(&mut object.text);
            state.replace(key, Some(Arc::new(object)));
        }
    }

    /// Whether the whole object under `key` is cached in this version, that of an event: the
    /// [response](Self::wrote) to a write comes before its event, which then has nothing new.
    pub fn shows(&self, part: &Part, key: &Key, uid: &str, version: &Version) -> bool {
        let mut state = self.state();
        let is_shown = state.objects.get(key).is_some_and(|shown| {
            !shown.is_name_only && shown.uid == uid && shown.version == *version
        });
        let is_known = is_shown && !version.as_str().is_empty();
        if is_known {
            state.note(part, version);
        }
        is_known
    }

    /// `object` was read live. It replaces one of which only the name is cached, if the version
    /// is the same: any other version arrives by a watch.
    pub fn fill(&self, key: &Key, mut object: Object<T>) {
        let mut state = self.state();
        let shown = state.objects.get(key);
        if shown.is_some_and(|shown| {
            shown.is_name_only
                && shown.uid == object.uid
                && shown.version == object.version
        }) {
            state.packer.pack(&mut object.text);
            // No target is triggered: the reconcile that has read the object is the one affected.
            state.replace(key, Some(Arc::new(object)));
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state().objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.state().objects.is_empty()
    }

    /// Removes everything, as before the first list.
    pub fn clear(&self) {
        *self.state() = State::default();
    }

    /// The object under `key`.
    pub fn get(&self, key: &Key) -> Option<Arc<Object<T>>> {
        self.state().objects.get(key).cloned()
    }

    /// The key of every object, in order.
    pub fn keys(&self) -> Vec<Key> {
        self.state().objects.keys().cloned().collect()
    }

    /// Every object, in the order of their keys.
    pub fn all(&self) -> Vec<(Key, Arc<Object<T>>)> {
        let state = self.state();
        let pairs = state.objects.iter();
        pairs
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    }

    /// The keys of the objects that can be found by `term`.
    pub fn found_by(&self, term: &str) -> Vec<Key> {
        let state = self.state();
        let found = state.index.range((Arc::from(term), Key::new("", ""))..);
        found
            .take_while(|(of, _)| **of == *term)
            .map(|(_, key)| key.clone())
            .collect()
    }

    /// Whether the part that covers `namespace` has been listed at least once.
    pub fn is_synced(&self, namespace: &str) -> bool {
        self.state()
            .progress(namespace)
            .is_some_and(|progress| progress.ended > 0)
    }

    /// How many lists have begun in the part that covers `namespace`.
    pub fn lists_begun(&self, namespace: &str) -> u64 {
        self.state()
            .progress(namespace)
            .map_or(0, |progress| progress.begun)
    }

    /// Whether the store shows the write `written` to the object under `key`, or a later state.
    pub fn has_seen(&self, key: &Key, written: &Expectation) -> bool {
        let state = self.state();
        let Some(progress) = state.progress(&key.namespace) else {
            return false;
        };
        // A list that began after the write contains it.
        if progress.ended > written.lists_begun {
            return true;
        }
        let object = state.objects.get(key);
        match &written.version {
            Some(version) => match (version.number(), progress.newest) {
                (Some(wanted), Some(newest)) => newest >= wanted,
                // Versions that cannot be ordered can still be equal.
                (_, _) => object.is_some_and(|object| object.version == *version),
            },
            None => object.is_none_or(|object| object.uid != written.uid),
        }
    }
}

impl<T: Clone + Ord> State<T> {
    fn progress(&self, namespace: &str) -> Option<&Progress<T>> {
        self.parts
            .get(&None)
            .or_else(|| self.parts.get(&Some(namespace.to_owned())))
    }

    fn note(&mut self, part: &Part, version: &Version) {
        if let Some(number) = version.number() {
            let progress = self.parts.entry(part.clone()).or_default();
            progress.newest = progress.newest.max(Some(number));
        }
    }

    fn replace(&mut self, key: &Key, new: Option<Arc<Object<T>>>) -> BTreeSet<T> {
        let old = match &new {
            Some(object) => self.objects.insert(key.clone(), object.clone()),
            None => self.objects.remove(key),
        };
        for term in old.iter().flat_map(|old| &old.terms) {
            self.index.remove(&(term.clone(), key.clone()));
        }
        for term in new.iter().flat_map(|new| &new.terms) {
            self.index.insert((term.clone(), key.clone()));
        }
        match (&old, &new) {
            (Some(old), Some(new)) if old.is_same_but_for_its_version(new) => {
                BTreeSet::new()
            }
            (old, new) => {
                let sides = old.iter().chain(new);
                sides
                    .flat_map(|side| side.targets.iter().cloned())
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;

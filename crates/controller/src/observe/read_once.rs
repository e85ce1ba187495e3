//! What many machines use is read once for each version of its object.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was read of objects, each in one version. A change of an object [removes](Self::forget)
/// its entry.
#[derive(Debug)]
pub(crate) struct ReadOnce<K, T>(Mutex<BTreeMap<K, Read<T>>>);

#[derive(Debug)]
struct Read<T> {
    version: String,
    value: T,
}

impl<K: Ord + Clone, T: Clone> Default for ReadOnce<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone, T: Clone> ReadOnce<K, T> {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<K, Read<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object in that version, if it has been read.
    pub(crate) fn get(&self, key: &K, version: &str) -> Option<T> {
        let entries = self.entries();
        let found = entries.get(key).filter(|found| found.version == version);
        found.map(|found| found.value.clone())
    }

    /// An object in that version. If it has not been read, `read` returns it.
    pub(crate) fn get_or_read(
        &self,
        key: &K,
        version: &str,
        read: impl FnOnce() -> T,
    ) -> T {
        if let Some(known) = self.get(key, version) {
            return known;
        }
        let value = read();
        let entry = Read {
            version: version.to_owned(),
            value: value.clone(),
        };
        self.entries().insert(key.clone(), entry);
        value
    }

    /// The object has changed or is gone.
    pub(crate) fn forget(&self, key: &K) {
        self.entries().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_an_object_is_read_once() {
        let objects = ReadOnce::default();
        let mut reads = 0;
        for version in ["1", "1", "2", "2"] {
            let value = objects.get_or_read(&"holidays", version, || {
                reads += 1;
                version
            });
            assert_eq!(value, version);
        }
        assert_eq!(reads, 2);
        assert_eq!(objects.get(&"holidays", "1"), None);
        objects.forget(&"holidays");
        assert!(objects.entries().is_empty());
    }
}

//! A map by name that keeps the order of insertion.

use std::slice;

/// Entries with unique names, in the order of insertion. A small number of entries is searched
/// linearly, which is faster than hashing and needs no preparation.
#[derive(Clone, Debug)]
pub(crate) struct Entries<T> {
    all: Vec<(String, T)>,
    /// The indexes of all entries in the order of their names, if there are many.
    sorted: Vec<usize>,
}

/// The maximum number of entries that are searched linearly.
const FEW: usize = 16;

impl<T> Entries<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        let found = if self.all.len() > FEW {
            let name_at = |at: &usize| self.all.get(*at).map(|(name, _)| name.as_str());
            let found = self.sorted.binary_search_by_key(&Some(name), name_at);
            self.all.get(*self.sorted.get(found.ok()?)?)
        } else {
            self.all.iter().find(|(known, _)| is_same(known, name))
        };
        found.map(|(_, entry)| entry)
    }

    /// The entry at this index.
    pub(crate) fn at(&self, place: usize) -> Option<&T> {
        self.all.get(place).map(|(_, entry)| entry)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.into_iter()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.all.iter().map(|(name, _)| name)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|(_, entry)| entry)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.iter_mut().map(|(_, entry)| entry)
    }
}

/// Whether two names are equal. Names of the same length mostly differ in the last byte, which
/// is compared first.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.as_bytes().last() == other.as_bytes().last()
        && one == other
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            sorted: Vec::new(),
        }
    }
}

impl<T> FromIterator<(String, T)> for Entries<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(entries: I) -> Self {
        let all: Vec<(String, T)> = entries.into_iter().collect();
        let mut sorted = Vec::new();
        if all.len() > FEW {
            let mut names: Vec<_> =
                all.iter().map(|(name, _)| name).enumerate().collect();
            names.sort_unstable_by_key(|(_, name)| *name);
            sorted = names.into_iter().map(|(at, _)| at).collect();
        }
        Self { all, sorted }
    }
}

type Pair<'e, T> = fn(&'e (String, T)) -> (&'e String, &'e T);

impl<'e, T> IntoIterator for &'e Entries<T> {
    type Item = (&'e String, &'e T);
    type IntoIter = std::iter::Map<slice::Iter<'e, (String, T)>, Pair<'e, T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter().map(|(name, entry)| (name, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_entries_are_found_by_name_and_keep_their_order() {
        for count in [0, 1, FEW, FEW + 1, 100] {
            let names = (0..count).map(|at| format!("{}-{at}", at * 7 % 10));
            let names: Vec<String> = names.collect();
            let entries: Entries<usize> = names.iter().cloned().zip(0..count).collect();
            assert_eq!(entries.len(), count);
            assert!(entries.keys().eq(&names));
            for (at, name) in names.iter().enumerate() {
                assert_eq!(entries.get(name), Some(&at), "{name} of {count}");
            }
            assert!(!entries.contains_key("absent"));
        }
    }
}

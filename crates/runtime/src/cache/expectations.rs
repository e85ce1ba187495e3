//! Our own last writes, so that no decision is made from a cache that does not show them yet.

use std::collections::BTreeMap;

use crate::Key;

/// A resourceVersion. Equal versions are the same state; those of most servers can also be
/// ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    text: Box<str>,
}

impl Version {
    /// The version as the API server wrote it.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self { text: text.into() }
    }

    /// The version as the API server wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its number in the order of versions; `None` for an opaque version. Kubernetes guarantees
    /// the decimal form from 1.35 on and has always used it.
    pub fn number(&self) -> Option<u64> {
        let digits = self.text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| self.text.parse().ok()).flatten()
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The uid of the object.
    pub uid: String,
    /// The version in the response to the write; `None` if it removed the object.
    pub version: Option<Version>,
    /// How many lists the cache had begun when the response arrived.
    pub lists_begun: u64,
}

/// The writes that a cache may not show yet, by the cache's name and the object's key.
#[derive(Debug, Default)]
pub struct Expectations {
    writes: BTreeMap<(String, Key), Expectation>,
}

impl Expectations {
    /// Records a write. Of two writes to one object, the later counts.
    pub fn expect(&mut self, cache: String, object: Key, expectation: Expectation) {
        self.writes.insert((cache, object), expectation);
    }

    /// Removes every write for which `has_seen` returns true, and returns whether none is left.
    pub fn are_satisfied(
        &mut self,
        has_seen: impl Fn(&str, &Key, &Expectation) -> bool,
    ) -> bool {
        self.writes
            .retain(|(cache, object), expectation| !has_seen(cache, object, expectation));
        let are_satisfied = self.writes.is_empty();
        if are_satisfied {
            // An empty map keeps a node for eleven entries, and there is a map for each machine.
            self.writes = BTreeMap::new();
        }
        are_satisfied
    }

    /// Whether a recorded write has left `object` in that version or a later one.
    pub fn has_written_version(
        &self,
        cache: &str,
        object: &Key,
        version: &Version,
    ) -> bool {
        let expectation = self.writes.get(&(cache.to_owned(), object.clone()));
        let written = expectation.and_then(|expectation| expectation.version.as_ref());
        written.is_some_and(|written| {
            written == version
                || version.number().is_some() && version.number() <= written.number()
        })
    }

    /// Removes everything: a live read has just returned the current state.
    pub fn clear(&mut self) {
        self.writes = BTreeMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_versions_have_an_order_and_others_have_none() {
        assert_eq!(Version::new("105").number(), Some(105));
        for opaque in ["", "a1", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(Version::new(opaque).number(), None, "{opaque}");
        }
    }

    #[test]
    fn a_write_is_recorded_until_its_cache_shows_it() {
        let mut expectations = Expectations::default();
        let expectation = Expectation {
            uid: "u".to_owned(),
            version: Some(Version::new("7")),
            lists_begun: 1,
        };
        expectations.expect("machines".to_owned(), Key::new("a", "b"), expectation);
        assert!(!expectations.are_satisfied(|_, _, _| false));
        assert!(expectations.are_satisfied(|cache, _, _| cache == "machines"));
        assert!(expectations.are_satisfied(|_, _, _| false));
    }
}

//! Which shard an object belongs to: rendezvous hashing.

use sha2::{Digest as _, Sha256};

use fivespot_runtime::Key;

/// The shards among which objects are divided, by their identities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ring {
    shards: Vec<String>,
}

impl Ring {
    /// A ring of these, in any order.
    pub(crate) fn new(shards: impl IntoIterator<Item = String>) -> Self {
        let mut shards: Vec<String> = shards.into_iter().collect();
        shards.sort();
        shards.dedup();
        Self { shards }
    }

    /// The shard to which `key` belongs: of all the one with the greatest weight. None in an
    /// empty ring.
    ///
    /// Weights depend on shard and key alone. A shard that joins therefore takes objects from
    /// all others and moves none between them, and what a shard leaves behind is divided among
    /// all others. Of two shards that know of each other at most one claims an object, whomever
    /// else they know of.
    pub(crate) fn owner(&self, key: &Key) -> Option<&str> {
        // Equal weights: the later name, everywhere.
        let heaviest = self.shards.iter().max_by_key(|shard| weight(shard, key));
        heaviest.map(String::as_str)
    }
}

/// Part of the protocol between releases: not std's hasher, which may change.
fn weight(shard: &str, key: &Key) -> [u8; 32] {
    let mut hash = Sha256::new();
    // No name contains a NUL.
    for part in [shard, &key.namespace, &key.name] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Iterator<Item = Key> {
        (0..200).map(|number| Key::new("default", format!("worker-{number}")))
    }

    proptest! {
        #[test]
        fn each_object_has_exactly_one_owner(shards in btree_set("[a-z]{1,8}", 1..6)) {
            let shards: Vec<String> = shards.into_iter().collect();
            let forth = Ring::new(shards.clone());
            let back = Ring::new(shards.iter().rev().cloned());
            for key in keys() {
                let owner = forth.owner(&key).map(str::to_owned);
                prop_assert!(owner.as_ref().is_some_and(|owner| shards.contains(owner)));
                prop_assert_eq!(owner.as_deref(), back.owner(&key));
            }
        }

        #[test]
        fn a_shard_that_joins_takes_objects_and_moves_no_others(
            shards in btree_set("[a-z]{1,8}", 2..6),
        ) {
            let mut shards: Vec<String> = shards.into_iter().collect();
            let after = Ring::new(shards.clone());
            let newcomer = shards.pop();
            let before = Ring::new(shards);
            for key in keys() {
                let (old, new) = (before.owner(&key), after.owner(&key));
                prop_assert!(old == new || new == newcomer.as_deref());
            }
        }

        #[test]
        fn two_shards_that_know_of_each_other_never_claim_the_same_object(
            own in btree_set("[a-z]{1,8}", 0..4),
            others in btree_set("[a-z]{1,8}", 0..4),
        ) {
            let ring = |some: &std::collections::BTreeSet<String>| {
                let both = ["shard-x".to_owned(), "shard-y".to_owned()];
                Ring::new(some.iter().cloned().chain(both))
            };
            let (one, other) = (ring(&own), ring(&others));
            for key in keys() {
                let is_double = one.owner(&key) == Some("shard-x")
                    && other.owner(&key) == Some("shard-y");
                prop_assert!(!is_double, "{}", key);
            }
        }
    }

    #[test]
    fn an_empty_ring_owns_nothing() {
        assert_eq!(Ring::default().owner(&Key::new("a", "b")), None);
    }

    #[test]
    fn weights_are_the_same_in_every_release() {
        let ring = Ring::new(["a", "b", "c"].map(str::to_owned));
        let owners: String = (0..12)
            .filter_map(|number| {
                let key = Key::new("default", format!("worker-{number}"));
                ring.owner(&key).map(str::to_owned)
            })
            .collect();
        assert_eq!(owners, "accbaaabccba");
    }

    #[test]
    fn objects_are_divided_about_evenly() {
        let shards = ["a", "b", "c"].map(str::to_owned);
        let ring = Ring::new(shards.clone());
        for shard in &shards {
            let share = keys().filter(|key| ring.owner(key) == Some(shard)).count();
            assert!((40..95).contains(&share), "{shard} owns {share} of 200");
        }
    }
}

//! The limit on what is cached of one workload cluster. The cluster is not trusted: a user who
//! can create objects there must not exhaust the memory of the operator.
//! All limits: `internals/decisions/0065-limits-on-a-workload-cluster.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use thiserror::Error;

use super::projection::MAX_VALUES;

/// How many objects of one kind are read from a workload cluster. A page of a list counts as one,
/// so that an endless list ends too.
pub const MAX_OBJECTS: usize = 10_000;

/// How many pages a list may have that is read while a reconcile waits.
pub const MAX_PAGES: usize = 100;

/// How many bytes are cached of all objects of a workload cluster.
const MAX_BYTES: usize = 64 << 20;

/// How long a name or a namespace may be, in bytes: Kubernetes accepts no longer ones.
const MAX_NAME_BYTES: usize = 253;

/// How long a uid or a resourceVersion may be, in bytes. Those of Kubernetes have at most 36.
const MAX_ID_BYTES: usize = 128;

/// What an object costs in addition to its texts, in bytes.
const OVERHEAD: usize = 256;

/// Why no more of a workload cluster is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TooLarge {
    /// There are too many objects.
    #[error("the workload cluster lists more than {MAX_OBJECTS} objects of a kind")]
    Objects,
    /// A list has too many pages.
    #[error("the workload cluster sends a list in more than {MAX_PAGES} pages")]
    Pages,
    /// An object has too many values.
    #[error("an object of the workload cluster has more than {MAX_VALUES} values")]
    Values,
    /// An object has an identifier that no API server accepts or creates.
    #[error(
        "an object of the workload cluster has a name, uid or resourceVersion that is too long"
    )]
    Identifiers,
    /// Their cached form takes too much memory.
    #[error("the cache of the workload cluster is larger than {MAX_BYTES} bytes")]
    Bytes,
}

impl TooLarge {
    /// The reason in an error of [`From`]; `None` for any other error.
    pub fn of(error: &kube::Error) -> Option<Self> {
        match error {
            kube::Error::Service(error) => error.downcast_ref().copied(),
            _ => None,
        }
    }
}

impl From<TooLarge> for kube::Error {
    fn from(why: TooLarge) -> Self {
        Self::Service(Box::new(why))
    }
}

/// Returns an error if an identifier of `object` is longer than those of Kubernetes. They are kept
/// in more places than the rest: in keys, indexes and expectations.
///
/// # Errors
/// [`TooLarge::Identifiers`].
pub fn check_identifiers(object: &Value) -> Result<(), TooLarge> {
    let meta = &object["metadata"];
    let limits = [
        ("name", MAX_NAME_BYTES),
        ("namespace", MAX_NAME_BYTES),
        ("uid", MAX_ID_BYTES),
        ("resourceVersion", MAX_ID_BYTES),
    ];
    let length = |field: &str| meta[field].as_str().map_or(0, str::len);
    limits
        .iter()
        .all(|(field, limit)| length(field) <= *limit)
        .then_some(())
        .ok_or(TooLarge::Identifiers)
}

/// The bytes that are cached of one workload cluster.
#[derive(Debug, Default)]
pub struct Budget(AtomicUsize);

/// Part of a [`Budget`]. It is released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Budget {
    /// Reserves memory for an object whose texts have so many bytes.
    ///
    /// # Errors
    /// The budget is exceeded; nothing is reserved.
    pub fn add(self: &Arc<Self>, text: usize) -> Result<Reservation, TooLarge> {
        let bytes = text.saturating_add(OVERHEAD);
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let share = Reservation {
            budget: self.clone(),
            bytes,
        };
        // If the share is dropped, it is released again.
        (before.saturating_add(bytes) <= MAX_BYTES)
            .then_some(share)
            .ok_or(TooLarge::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_dropped_share_is_released_and_a_rejected_one_takes_nothing() {
        let budget = Arc::new(Budget::default());
        let half = MAX_BYTES / 2 - OVERHEAD;
        let first = budget.add(half).unwrap();
        let second = budget.add(half).unwrap();
        assert_eq!(budget.add(0).unwrap_err(), TooLarge::Bytes);
        drop(first);
        assert!(budget.add(half).is_ok());
        drop(second);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_identifier_is_accepted_up_to_the_length_that_kubernetes_allows() {
        for (field, longest) in [
            ("name", 253),
            ("namespace", 253),
            ("uid", 128),
            ("resourceVersion", 128),
        ] {
            let of = |length| json!({"metadata": {field: "x".repeat(length)}});
            assert_eq!(check_identifiers(&of(longest)), Ok(()), "{field}");
            let too_long = check_identifiers(&of(longest + 1));
            assert_eq!(too_long, Err(TooLarge::Identifiers), "{field}");
        }
    }

    #[test]
    fn the_reason_is_found_in_the_error() {
        let error = kube::Error::from(TooLarge::Objects);
        assert_eq!(TooLarge::of(&error), Some(TooLarge::Objects));
        let other = kube::Error::Service(std::io::Error::other("x").into());
        assert_eq!(TooLarge::of(&other), None);
    }
}

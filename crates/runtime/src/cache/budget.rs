//! The limit on what is cached of one workload cluster. The cluster is not trusted: a user who
//! can create objects there must not exhaust the memory of the operator.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;

use super::projection::MAX_VALUES;

/// How many objects of one kind are read from a workload cluster. A page of a list counts as one,
/// so that an endless list ends too.
pub const MAX_OBJECTS: usize = 10_000;

/// How many pages a list may have that is read while a reconcile waits.
pub const MAX_PAGES: usize = 100;

/// How many bytes are cached of all objects of a workload cluster.
const MAX_BYTES: usize = 64 << 20;

/// What an object costs in addition to its text, in bytes.
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
    /// Reserves memory for an object with a text of so many bytes.
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
    fn the_reason_is_found_in_the_error() {
        let error = kube::Error::from(TooLarge::Objects);
        assert_eq!(TooLarge::of(&error), Some(TooLarge::Objects));
        let other = kube::Error::Service(std::io::Error::other("x").into());
        assert_eq!(TooLarge::of(&other), None);
    }
}

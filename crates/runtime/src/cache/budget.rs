//! How much is kept of one cluster that is not trusted: whoever can create objects there must not
//! cost everybody else the operator.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;

/// How many objects of one kind are read of a workload cluster. A page of a list counts as one, so
/// that a list without end has one.
pub const MOST_OBJECTS: usize = 10_000;

/// How many bytes are kept of all objects of a workload cluster.
const MOST_BYTES: usize = 64 << 20;

/// What an object costs besides its text, in bytes.
const OVERHEAD: usize = 256;

/// Why no more of a workload cluster is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TooLarge {
    /// There are too many objects.
    #[error("the workload cluster lists more than {MOST_OBJECTS} objects of a kind")]
    Objects,
    /// What would be kept of them takes too much memory.
    #[error("what is kept of the workload cluster has more than {MOST_BYTES} bytes")]
    Bytes,
}

impl TooLarge {
    /// The reason in an error of [`From`], if it is one.
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

/// The bytes that are kept of one workload cluster.
#[derive(Debug, Default)]
pub struct Budget(AtomicUsize);

/// Part of a [`Budget`], for as long as it is held.
#[derive(Debug)]
pub struct Reserved {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Budget {
    /// Counts an object whose text has so many bytes.
    ///
    /// # Errors
    /// That is too much; it is not counted.
    pub fn add(self: &Arc<Self>, text: usize) -> Result<Reserved, TooLarge> {
        let bytes = text.saturating_add(OVERHEAD);
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let share = Reserved {
            budget: self.clone(),
            bytes,
        };
        // Dropped, the share is taken off again.
        (before.saturating_add(bytes) <= MOST_BYTES)
            .then_some(share)
            .ok_or(TooLarge::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_leaves_room_and_what_is_refused_takes_none() {
        let budget = Arc::new(Budget::default());
        let half = MOST_BYTES / 2 - OVERHEAD;
        let first = budget.add(half).unwrap();
        let second = budget.add(half).unwrap();
        assert_eq!(budget.add(0).unwrap_err(), TooLarge::Bytes);
        drop(first);
        assert!(budget.add(half).is_ok());
        drop(second);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_error_says_what_there_is_too_much_of() {
        let error = kube::Error::from(TooLarge::Objects);
        assert_eq!(TooLarge::of(&error), Some(TooLarge::Objects));
        let other = kube::Error::Service(std::io::Error::other("x").into());
        assert_eq!(TooLarge::of(&other), None);
    }
}

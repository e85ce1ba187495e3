//! A budget of steps, for results that must not cost more than some time whatever the schedule.

use std::cell::Cell;

/// How much may be computed, by several queries together.
///
/// A step is one small piece of work: one day that is searched, one window, one date. A query
/// that is given a budget stops when it is spent and says how far its result is known; it goes
/// over the budget by one search of the schedule at most, some thousand steps.
///
/// # Example
/// ```
/// use fivespot_schedule::{Schedule, Steps};
///
/// let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC")?;
/// let steps = Steps::at_most(1_000);
/// assert!(office.needed("2026-03-06T09:00:00Z".parse()?, &steps).is_needed());
/// assert!(steps.taken() > 0 && !steps.are_spent());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Steps {
    taken: Cell<u64>,
    kept: Cell<u64>,
    limit: u64,
}

impl Steps {
    /// A budget of that many steps.
    pub const fn at_most(limit: u64) -> Self {
        Self {
            taken: Cell::new(0),
            kept: Cell::new(0),
            limit,
        }
    }

    /// No limit: for programs that a person waits for.
    pub const fn unlimited() -> Self {
        Self::at_most(u64::MAX)
    }

    /// How many steps were taken.
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Keeps that many of the steps for queries after the next call of this.
    pub fn keep(&self, steps: u64) {
        self.kept.set(steps);
    }

    /// Whether nothing is left, except for what is kept.
    pub fn are_spent(&self) -> bool {
        self.taken().saturating_add(self.kept.get()) >= self.limit
    }

    /// Counts steps that were taken, also those of another budget.
    pub fn take(&self, steps: u64) {
        self.taken.set(self.taken().saturating_add(steps));
    }
}

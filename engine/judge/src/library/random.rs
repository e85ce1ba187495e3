//! Pseudo-random numbers from a seed.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    /// The stream of one case of a run.
    pub(super) fn of(seed: u64, case: u64) -> Self {
        let run = SplitMix64::seed_from_u64(seed).next_u64();
        let mut own = SplitMix64::seed_from_u64(run.wrapping_add(case));
        own.next_u64();
        Self(own)
    }

    /// A number below `end`; 0 if that is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        let drawn = self.0.next_u64().checked_rem(end).unwrap_or(0);
        usize::try_from(drawn).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Returns true with a probability of `percent` percent.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several values; there must be at least one.
    pub(super) fn pick<T: Clone>(&mut self, several: &[T]) -> T {
        let at = self.below(several.len());
        several[at].clone()
    }
}

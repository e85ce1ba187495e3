//! Pseudo-random numbers from a seed, for generated requests and questions.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream of one case of a run.
    pub fn of(seed: u64, case: u64) -> Self {
        let run = SplitMix64::seed_from_u64(seed).next_u64();
        let mut own = SplitMix64::seed_from_u64(run.wrapping_add(case));
        own.next_u64();
        Self(own)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        let drawn = self.0.next_u64().checked_rem(end).unwrap_or(0);
        usize::try_from(drawn).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several elements. `None` if there are none.
    pub fn any_of<'a, T>(&mut self, several: &'a [T]) -> Option<&'a T> {
        several.get(self.below(several.len()))
    }

    /// One of several values.
    ///
    /// # Panics
    /// There is none.
    pub fn pick<T: Clone>(&mut self, several: &[T]) -> T {
        let at = self.below(several.len());
        several[at].clone()
    }
}

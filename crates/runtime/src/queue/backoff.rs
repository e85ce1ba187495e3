//! How long to wait before the next attempt.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::SignedDuration;

const FIRST_MILLIS: u64 = 1_000;
const MAX_MILLIS: u64 = 300_000;

/// Waits that double from one second to five minutes. Each is shortened by up to a fifth, so that
/// keys that failed together are not retried together. Equal seeds give equal waits.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    seed: u64,
}

impl Backoff {
    /// A backoff with jitter that is derived from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self { seed }
    }

    /// The wait of `key` after `failures` in a row, the first being 1.
    pub fn wait(self, key: &impl Hash, failures: u32) -> SignedDuration {
        let doublings = failures.saturating_sub(1).min(16);
        let full = (FIRST_MILLIS << doublings).min(MAX_MILLIS);
        // `DefaultHasher::new` has fixed keys: the same on every run.
        let mut hasher = DefaultHasher::new();
        (self.seed, failures).hash(&mut hasher);
        key.hash(&mut hasher);
        let shortened = full - hasher.finish() % (full / 5 + 1);
        SignedDuration::from_millis(i64::try_from(shortened).unwrap_or(i64::MAX))
    }

    /// The wait of `key` if a server asks for at least `span`: longer by up to a fifth, so that keys
    /// that were refused together are not retried together.
    pub fn not_before(self, span: SignedDuration, key: &impl Hash) -> SignedDuration {
        let mut hasher = DefaultHasher::new();
        self.seed.hash(&mut hasher);
        key.hash(&mut hasher);
        let fifth = u64::try_from(span.as_millis() / 5).unwrap_or(0);
        let more = hasher.finish() % (fifth + 1);
        let more = SignedDuration::from_millis(i64::try_from(more).unwrap_or(0));
        span.saturating_add(more)
    }
}

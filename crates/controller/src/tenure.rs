//! What this instance may act on, and the fence that every write passes.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_clock::Clock;
use futures::future::{Either, select};
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::membership::Share;
use fivespot_runtime::Key;

/// What an instance may act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Everything, for ever: there is no other instance.
    Everything,
    /// Nothing: another leads, or it is not known who does.
    Nothing,
    /// Everything, until the instant.
    Until(Timestamp),
    /// Its part.
    Share(Share),
}

impl Claim {
    fn covers(&self, key: &Key, now: Timestamp) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Until(until) => now < *until,
            Self::Share(share) => {
                now < share.until && share.ring.owner(key) == Some(&share.own)
            }
        }
    }

    /// Until when it holds, if it ends by itself.
    fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Everything | Self::Nothing => None,
            Self::Until(until) => Some(*until),
            Self::Share(share) => Some(share.until),
        }
    }

    fn is_in_force(&self, now: Timestamp) -> bool {
        *self != Self::Nothing && self.until().is_none_or(|until| now < until)
    }

    /// Whether both cover the same while both are in force.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Share(one), Self::Share(other)) => one.ring == other.ring,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

/// A write was held back, because the instance may not act on the object any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another instance acts on it")]
pub(crate) struct Fenced;

/// The claim in force, and the passes that are under way because of it.
#[derive(Debug)]
pub(crate) struct Tenure {
    clock: Clock,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    claim: Claim,
    /// Whether the claim has been taken away from a pass since it began.
    passes: BTreeMap<Key, bool>,
}

impl Tenure {
    /// Begins with `claim`.
    pub(crate) fn new(clock: Clock, claim: Claim) -> Self {
        let state = State {
            claim,
            passes: BTreeMap::new(),
        };
        Self {
            clock,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What Leases are reckoned by: nobody sets it.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A pass of `key` begins. Says whether it may act.
    pub(crate) fn begin(&self, key: &Key) -> bool {
        let mut state = self.state();
        let may_act = state.claim.covers(key, self.clock.now());
        if may_act {
            state.passes.insert(key.clone(), false);
        }
        may_act
    }

    /// The pass of `key` has ended.
    pub(crate) fn end(&self, key: &Key) {
        self.state().passes.remove(key);
        self.changed.notify_one();
    }

    /// Until when the pass of `key` may write, if there is an end.
    fn permits(&self, key: &Key) -> Result<Option<Timestamp>, Fenced> {
        let state = self.state();
        let is_begun = state.passes.get(key) == Some(&false);
        if is_begun && state.claim.covers(key, self.clock.now()) {
            return Ok(state.claim.until());
        }
        Err(Fenced)
    }

    /// Sends a write for the sake of `key`, if its pass may write now, and gives it up when it
    /// has not been answered by the time that it may not any more.
    ///
    /// # Errors
    /// The write has not been sent, or it is not known what became of it.
    pub(crate) async fn write<T>(
        &self,
        key: &Key,
        write: impl Future<Output = T>,
    ) -> Result<T, Fenced> {
        let mut until = self.permits(key)?;
        let mut write = std::pin::pin!(write);
        loop {
            let Some(end) = until else {
                return Ok(write.await);
            };
            match select(write, self.clock.sleep_until(end)).await {
                Either::Left((answer, _)) => return Ok(answer),
                Either::Right(((), pending)) => {
                    // By now the end may be further away; a part that was given up meanwhile is
                    // waited for by whoever took it away.
                    until = self.state().claim.until();
                    if until.is_none_or(|until| until <= self.clock.now()) {
                        return Err(Fenced);
                    }
                    write = pending;
                }
            }
        }
    }

    /// Puts `claim` in place of the one before. Says whether there may be objects that it covers
    /// and the one before did not.
    pub(crate) fn replace(&self, claim: Claim) -> bool {
        let now = self.clock.now();
        let mut state = self.state();
        let was_in_force = state.claim.is_in_force(now);
        let is_new = !was_in_force || !state.claim.is_like(&claim);
        for (key, is_revoked) in &mut state.passes {
            *is_revoked |= !was_in_force || !claim.covers(key, now);
        }
        state.claim = claim;
        is_new && state.claim.is_in_force(now)
    }

    /// Whether no pass is under way of which the claim has been taken away.
    pub(crate) fn is_settled(&self) -> bool {
        !self.state().passes.values().any(|is_revoked| *is_revoked)
    }

    /// Waits until a pass ends.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether the instance may act on `key`.
    pub(crate) fn covers(&self, key: &Key) -> bool {
        self.state().claim.covers(key, self.clock.now())
    }

    /// Whether the instance may act on anything at all.
    pub(crate) fn is_in_force(&self) -> bool {
        self.state().claim.is_in_force(self.clock.now())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;

    use super::*;
    use crate::ring::Ring;

    fn start() -> Timestamp {
        "2026-03-06T21:30:00Z".parse().unwrap()
    }

    fn later(seconds: i64) -> Timestamp {
        start() + SignedDuration::from_secs(seconds)
    }

    fn tenure(claim: Claim) -> (Clock, Arc<Tenure>) {
        let clock = Clock::stopped_at(start());
        (clock.clone(), Arc::new(Tenure::new(clock, claim)))
    }

    fn worker() -> Key {
        Key::new("default", "worker")
    }

    #[tokio::test]
    async fn nothing_is_written_at_the_end_of_a_claim_or_later() {
        let (clock, tenure) = tenure(Claim::Until(later(10)));
        assert!(tenure.begin(&worker()));
        assert_eq!(tenure.write(&worker(), async { 1 }).await, Ok(1));
        clock.advance_to(later(10)).await;
        assert_eq!(tenure.write(&worker(), async { 2 }).await, Err(Fenced));
        assert!(!tenure.begin(&worker()));
    }

    #[tokio::test]
    async fn a_write_without_an_answer_is_given_up_when_the_claim_ends() {
        let (clock, tenure) = tenure(Claim::Until(later(10)));
        assert!(tenure.begin(&worker()));
        let own = tenure.clone();
        let write = tokio::spawn(async move {
            own.write(&worker(), std::future::pending::<()>()).await
        });
        clock.advance_to(later(9)).await;
        tenure.replace(Claim::Until(later(20)));
        clock.advance_to(later(19)).await;
        assert!(!write.is_finished());
        clock.advance_to(later(20)).await;
        assert_eq!(write.await.unwrap(), Err(Fenced));
    }

    #[tokio::test]
    async fn a_pass_that_began_before_a_gap_writes_nothing_after_it() {
        let (clock, tenure) = tenure(Claim::Until(later(10)));
        assert!(tenure.begin(&worker()));
        clock.advance_to(later(11)).await;
        assert!(tenure.replace(Claim::Until(later(20))), "it is a new claim");
        assert_eq!(tenure.write(&worker(), async {}).await, Err(Fenced));
        assert!(!tenure.is_settled());
        tenure.end(&worker());
        assert!(tenure.is_settled());
        assert!(tenure.begin(&worker()));
        assert_eq!(tenure.write(&worker(), async {}).await, Ok(()));
    }

    #[tokio::test]
    async fn a_claim_that_goes_on_is_no_gain() {
        let (_, tenure) = tenure(Claim::Nothing);
        assert!(!tenure.replace(Claim::Nothing));
        assert!(tenure.replace(Claim::Until(later(10))));
        assert!(!tenure.replace(Claim::Until(later(12))));
        assert!(!tenure.replace(Claim::Nothing));
    }

    #[tokio::test]
    async fn a_share_covers_what_the_ring_gives_to_it() {
        let share = |shards: &[&str]| {
            Claim::Share(Share {
                ring: Ring::new(shards.iter().map(|shard| (*shard).to_owned())),
                own: "a".to_owned(),
                until: later(10),
            })
        };
        let (_, tenure) = tenure(share(&["a"]));
        let keys = (0..50).map(|number| Key::new("default", format!("worker-{number}")));
        let keys: Vec<Key> = keys.collect();
        assert!(keys.iter().all(|key| tenure.begin(key)));
        assert!(!tenure.replace(share(&["a"])), "nothing has changed");
        assert!(tenure.replace(share(&["a", "b"])));
        assert!(!tenure.is_settled());
        for key in &keys {
            let is_allowed = tenure.write(key, async {}).await.is_ok();
            assert_eq!(is_allowed, tenure.covers(key), "{key}");
        }
        assert!(keys.iter().any(|key| !tenure.covers(key)));
    }
}

//! What this replica may act on, and the fence that every write is checked against.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{Either, select};
use jiff::Timestamp;
use kubemu_clock::Clock;
use tokio::sync::Notify;

use super::shards::shard_of;
use crate::Key;

/// What a replica may act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Everything, forever: there is no other replica.
    Everything,
    /// Nothing: another replica leads, or the leader is not known.
    Nothing,
    /// Everything, until the instant.
    Until(Timestamp),
    /// The objects of some shards.
    Shards {
        /// The number of shards that all objects are divided among.
        count: u32,
        /// The held shards, each until the instant.
        held: BTreeMap<u32, Timestamp>,
    },
}

impl Ownership {
    /// Until when an object with that uid is owned; `None` if forever.
    fn end(&self, uid: &str) -> Result<Option<Timestamp>, Fenced> {
        match self {
            Self::Everything => Ok(None),
            Self::Nothing => Err(Fenced),
            Self::Until(until) => Ok(Some(*until)),
            Self::Shards { count, held } => {
                let shard = shard_of(uid, *count).ok_or(Fenced)?;
                held.get(&shard).copied().map(Some).ok_or(Fenced)
            }
        }
    }

    fn covers(&self, uid: &str, now: Timestamp) -> bool {
        let end = self.end(uid);
        end.is_ok_and(|end| end.is_none_or(|until| now < until))
    }

    fn is_in_force(&self, now: Timestamp) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Until(until) => now < *until,
            Self::Shards { held, .. } => held.values().any(|until| now < *until),
        }
    }

    /// Whether there may be objects that this covers at `now`, and `before` did not.
    fn exceeds(&self, before: &Self, now: Timestamp) -> bool {
        let in_force = |shards: &BTreeMap<u32, Timestamp>, shard: &u32| {
            shards.get(shard).is_some_and(|until| now < *until)
        };
        match (self, before) {
            (
                Self::Shards { count, held },
                Self::Shards {
                    count: count_before,
                    held: held_before,
                },
            ) if count == count_before => held
                .keys()
                .any(|shard| in_force(held, shard) && !in_force(held_before, shard)),
            (Self::Until(_), Self::Until(_)) | (Self::Everything, Self::Everything) => {
                self.is_in_force(now) && !before.is_in_force(now)
            }
            _ => self.is_in_force(now),
        }
    }
}

/// A write was not sent or was given up, because the replica may not act on the object any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another replica owns the object")]
pub struct Fenced;

/// The current ownership, and the reconciles of one kind of objects that are under way because of
/// it. Fences [of other kinds](Self::of_kind) share the ownership.
#[derive(Clone, Debug)]
pub struct Fence {
    kind: &'static str,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    ownership: Ownership,
    /// By the kind and the key of the object.
    reconciles: BTreeMap<(&'static str, Key), Reconcile>,
}

/// A reconcile that is under way.
#[derive(Debug)]
struct Reconcile {
    uid: String,
    /// Whether the object was not owned at some time since it began.
    is_revoked: bool,
}

impl Fence {
    /// Begins with `ownership`. `clock` is the clock for the timing of Leases, which is never
    /// set.
    pub fn new(clock: Clock, ownership: Ownership) -> Self {
        let state = State {
            ownership,
            reconciles: BTreeMap::new(),
        };
        let shared = Shared {
            clock,
            state: Mutex::new(state),
            changed: Notify::new(),
        };
        Self {
            kind: "",
            shared: Arc::new(shared),
        }
    }

    /// The fence for the reconciles of another kind, with the same ownership: its keys are not
    /// those of this fence.
    #[must_use]
    pub fn of_kind(&self, kind: &'static str) -> Self {
        Self {
            kind,
            shared: self.shared.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, key: &Key) -> (&'static str, Key) {
        (self.kind, key.clone())
    }

    /// The clock for the timing of Leases, which is never set.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Begins a reconcile of `key`, which has an object with that uid. Returns whether it may
    /// write.
    pub fn begin(&self, key: &Key, uid: &str) -> bool {
        let mut state = self.state();
        let is_owned = state.ownership.covers(uid, self.clock().now());
        if is_owned {
            let reconcile = Reconcile {
                uid: uid.to_owned(),
                is_revoked: false,
            };
            state.reconciles.insert(self.id(key), reconcile);
        }
        is_owned
    }

    /// Ends the reconcile of `key`.
    pub fn end(&self, key: &Key) {
        self.state().reconciles.remove(&self.id(key));
        self.shared.changed.notify_one();
    }

    /// Until when the reconcile of `key` may write; `None` if forever.
    fn permits(&self, key: &Key) -> Result<Option<Timestamp>, Fenced> {
        let state = self.state();
        let reconcile = state
            .reconciles
            .get(&self.id(key))
            .filter(|it| !it.is_revoked);
        let uid = &reconcile.ok_or(Fenced)?.uid;
        if !state.ownership.covers(uid, self.clock().now()) {
            return Err(Fenced);
        }
        state.ownership.end(uid)
    }

    /// Sends a write for `key`, if its reconcile may write now. Gives it up if no response has
    /// arrived when the reconcile may not write any more.
    ///
    /// # Errors
    /// The write was not sent, or its outcome is not known.
    pub async fn write<T>(
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
            match select(write, self.clock().sleep_until(end)).await {
                Either::Left((answer, _)) => return Ok(answer),
                Either::Right(((), pending)) => {
                    // The end may be later by now.
                    until = self.permits(key)?;
                    write = pending;
                }
            }
        }
    }

    /// Replaces the ownership. Returns whether there may be objects that `ownership` covers and
    /// the previous one did not.
    pub fn replace(&self, ownership: Ownership) -> bool {
        let now = self.clock().now();
        let mut state = self.state();
        let before = std::mem::replace(&mut state.ownership, Ownership::Nothing);
        for reconcile in state.reconciles.values_mut() {
            let is_kept = before.covers(&reconcile.uid, now)
                && ownership.covers(&reconcile.uid, now);
            reconcile.is_revoked |= !is_kept;
        }
        let is_gain = ownership.exceeds(&before, now);
        state.ownership = ownership;
        is_gain
    }

    /// Whether every reconcile that is under way may still write.
    pub fn is_settled(&self) -> bool {
        let state = self.state();
        !state.reconciles.values().any(|it| it.is_revoked)
    }

    /// Waits until a reconcile ends.
    pub async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// Whether the replica may act on an object with that uid.
    pub fn covers(&self, uid: &str) -> bool {
        self.state().ownership.covers(uid, self.clock().now())
    }

    /// Whether the replica may act on any object.
    pub fn is_in_force(&self) -> bool {
        self.state().ownership.is_in_force(self.clock().now())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn start() -> Timestamp {
        "2026-03-06T21:30:00Z".parse().unwrap()
    }

    fn later(seconds: i64) -> Timestamp {
        start() + SignedDuration::from_secs(seconds)
    }

    fn fence(ownership: Ownership) -> (Clock, Arc<Fence>) {
        let clock = Clock::stopped_at(start());
        (clock.clone(), Arc::new(Fence::new(clock, ownership)))
    }

    fn worker() -> Key {
        Key::new("default", "worker")
    }

    #[tokio::test]
    async fn nothing_is_written_from_the_end_of_a_lease_on() {
        let (clock, fence) = fence(Ownership::Until(later(10)));
        assert!(fence.begin(&worker(), "u"));
        assert_eq!(fence.write(&worker(), async { 1 }).await, Ok(1));
        clock.advance_to(later(10)).await;
        assert_eq!(fence.write(&worker(), async { 2 }).await, Err(Fenced));
        assert!(!fence.begin(&worker(), "u"));
    }

    #[tokio::test]
    async fn a_write_without_a_response_is_given_up_when_the_lease_ends() {
        let (clock, fence) = fence(Ownership::Until(later(10)));
        assert!(fence.begin(&worker(), "u"));
        let own = fence.clone();
        let write = tokio::spawn(async move {
            own.write(&worker(), std::future::pending::<()>()).await
        });
        clock.advance_to(later(9)).await;
        fence.replace(Ownership::Until(later(20)));
        clock.advance_to(later(19)).await;
        assert!(!write.is_finished());
        clock.advance_to(later(20)).await;
        assert_eq!(write.await.unwrap(), Err(Fenced));
    }

    #[tokio::test]
    async fn a_reconcile_that_began_before_a_gap_in_ownership_writes_nothing_after_it() {
        let (clock, fence) = fence(Ownership::Until(later(10)));
        assert!(fence.begin(&worker(), "u"));
        clock.advance_to(later(11)).await;
        assert!(fence.replace(Ownership::Until(later(20))), "a new term");
        assert_eq!(fence.write(&worker(), async {}).await, Err(Fenced));
        assert!(!fence.is_settled());
        fence.end(&worker());
        assert!(fence.is_settled());
        assert!(fence.begin(&worker(), "u"));
        assert_eq!(fence.write(&worker(), async {}).await, Ok(()));
    }

    #[tokio::test]
    async fn a_renewal_does_not_report_a_gain() {
        let (_, fence) = fence(Ownership::Nothing);
        assert!(!fence.replace(Ownership::Nothing));
        assert!(fence.replace(Ownership::Until(later(10))));
        assert!(!fence.replace(Ownership::Until(later(12))));
        assert!(!fence.replace(Ownership::Nothing));
    }

    #[tokio::test]
    async fn reconciles_of_two_kinds_with_one_name_have_one_ownership() {
        let (_, fence) = fence(Ownership::Until(later(10)));
        let other = fence.of_kind("Other");
        assert!(fence.begin(&worker(), "u") && other.begin(&worker(), "v"));
        other.end(&worker());
        assert_eq!(fence.write(&worker(), async {}).await, Ok(()));
        assert_eq!(other.write(&worker(), async {}).await, Err(Fenced));
        assert!(other.begin(&worker(), "v"));
        fence.replace(Ownership::Nothing);
        assert_eq!(other.write(&worker(), async {}).await, Err(Fenced));
        fence.end(&worker());
        assert!(!fence.is_settled(), "that of the other kind is under way");
        other.end(&worker());
        assert!(fence.is_settled());
    }

    #[tokio::test]
    async fn a_released_shard_revokes_its_reconciles_and_no_others() {
        let shards = |held: &[u32]| Ownership::Shards {
            count: 3,
            held: held.iter().map(|shard| (*shard, later(10))).collect(),
        };
        let (_, fence) = fence(shards(&[0, 1]));
        let all: Vec<(Key, String)> = (0..60)
            .map(|number| {
                (
                    Key::new("default", format!("worker-{number}")),
                    format!("uid-{number}"),
                )
            })
            .collect();
        for (key, uid) in &all {
            assert_eq!(fence.begin(key, uid), shard_of(uid, 3) != Some(2));
        }
        assert!(!fence.replace(shards(&[0, 1])), "nothing has changed");
        assert!(!fence.replace(shards(&[0])), "the ownership has shrunk");
        assert!(!fence.is_settled());
        for (key, uid) in &all {
            let is_sent = fence.write(key, async {}).await.is_ok();
            assert_eq!(is_sent, shard_of(uid, 3) == Some(0), "{uid}");
        }
        assert!(fence.replace(shards(&[0, 2])), "shard 2 is new");
    }
}

//! A simulated machine with its own reading of a virtual clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::after;

/// A simulated machine in the process. Its clock may be set wrong, and it may be suspended: what
/// sleeps on it then rests until it is resumed. Clones are the same machine.
#[derive(Clone, Debug, Default)]
pub struct Host(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the clock was set, or the machine suspended or resumed.
    changed: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// What the clock shows, minus the virtual time.
    offset: SignedDuration,
    suspended: Option<Timestamp>,
    /// For how long it has been suspended in all, the current suspension not included.
    rested: SignedDuration,
    /// How many changes there have been.
    changes: u64,
}

impl Host {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.changes += 1;
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// Sets the clock: from now on it is wrong by `offset`. As on a real machine, what sleeps
    /// until an instant notices that when it reads the clock again, at most half a minute later.
    pub fn set(&self, offset: SignedDuration) {
        self.change(|state| state.offset = offset);
    }

    /// By how much the clock is wrong now.
    pub fn offset(&self) -> SignedDuration {
        self.state().offset
    }

    /// Suspends the machine at `now`; does nothing if it is suspended. Its clock goes on, and its
    /// timers are stopped.
    pub fn suspend(&self, now: Timestamp) {
        self.change(|state| {
            state.suspended.get_or_insert(now);
        });
    }

    /// Resumes the machine at `now`; does nothing if it is not suspended.
    pub fn resume(&self, now: Timestamp) {
        self.change(|state| {
            if let Some(then) = state.suspended.take() {
                let rested = now.duration_since(then);
                state.rested = state.rested.saturating_add(rested);
            }
        });
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.state().suspended.is_some()
    }

    /// How many changes of the machine there have been.
    pub(crate) fn changes(&self) -> u64 {
        self.state().changes
    }

    /// What a timer of the machine shows at `now`.
    pub(crate) fn timer(&self, now: Timestamp) -> Timestamp {
        let state = self.state();
        after(state.suspended.unwrap_or(now), -state.rested)
    }

    /// Ready at the next change.
    pub(crate) fn changed(&self) -> OwnedNotified {
        self.0.changed.clone().notified_owned()
    }
}

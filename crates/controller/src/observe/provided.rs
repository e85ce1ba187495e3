//! The schedules of other providers, as machines follow them: at once, or once a minute if they
//! change to and fro.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_api::{Provided, Unfollowable};
use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

/// What an object publishes, or why that may not be followed.
pub(crate) type Published = Result<Provided, Unfollowable>;

/// How many kinds of other providers are followed.
pub(crate) const MAX_KINDS: usize = 16;

/// An object that changes more often than this within [`PERIOD`] is followed once a [`TURN`].
const MAX_CHANGES: usize = 6;
const PERIOD: SignedDuration = SignedDuration::from_mins(10);
const TURN: SignedDuration = SignedDuration::from_mins(1);

/// The objects that are followed, by their index term.
#[derive(Debug, Default)]
pub(crate) struct ProvidedSchedules(Mutex<BTreeMap<String, History>>);

#[derive(Debug)]
struct History {
    shown: Published,
    /// The instants of the last changes of it.
    changes: VecDeque<Timestamp>,
    followed: Published,
    followed_at: Timestamp,
    /// Whether the next turn is awaited.
    is_awaited: bool,
}

/// How an object is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Following {
    pub(crate) published: Published,
    /// Whether it has changed too often.
    pub(crate) is_flapping: bool,
    /// When to look again, if it changes too often.
    pub(crate) next: Option<Timestamp>,
}

impl ProvidedSchedules {
    fn histories(&self) -> MutexGuard<'_, BTreeMap<String, History>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How an object is followed that publishes this at `now`.
    pub(crate) fn follow(
        &self,
        term: &str,
        shown: &Published,
        now: Timestamp,
    ) -> Following {
        let mut histories = self.histories();
        let history = histories
            .entry(term.to_owned())
            .or_insert_with(|| History::new(shown, now));
        history.show(shown, now);
        history.following()
    }

    /// Whether the caller is the one that waits for the next turn of an object.
    pub(crate) fn await_turn(&self, term: &str) -> bool {
        let mut histories = self.histories();
        let history = histories.get_mut(term);
        history.is_some_and(|it| !std::mem::replace(&mut it.is_awaited, true))
    }

    /// The next turn of an object has come.
    pub(crate) fn turn(&self, term: &str) {
        if let Some(history) = self.histories().get_mut(term) {
            history.is_awaited = false;
        }
    }

    /// The object is gone.
    pub(crate) fn forget(&self, term: &str) {
        self.histories().remove(term);
    }
}

impl History {
    fn new(shown: &Published, now: Timestamp) -> Self {
        Self {
            shown: shown.clone(),
            changes: VecDeque::new(),
            followed: shown.clone(),
            followed_at: now,
            is_awaited: false,
        }
    }

    fn show(&mut self, shown: &Published, now: Timestamp) {
        if self.shown != *shown {
            self.shown.clone_from(shown);
            self.changes.push_back(now);
        }
        let is_over = |at: &Timestamp| after(*at, PERIOD) <= now;
        while self.changes.len() > MAX_CHANGES + 1
            || self.changes.front().is_some_and(is_over)
        {
            self.changes.pop_front();
        }
        // A clock that was set back ends the turn.
        let is_turn = after(self.followed_at, TURN) <= now || now < self.followed_at;
        if !self.is_flapping() || is_turn {
            self.followed.clone_from(&self.shown);
            self.followed_at = now;
        }
    }

    fn is_flapping(&self) -> bool {
        self.changes.len() > MAX_CHANGES
    }

    fn following(&self) -> Following {
        Following {
            published: self.followed.clone(),
            is_flapping: self.is_flapping(),
            next: self.is_flapping().then(|| after(self.followed_at, TURN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the type that is followed")]
    fn published(active: bool) -> Published {
        Ok(Provided {
            active,
            until: None,
            generation: Some(1),
        })
    }

    fn second(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn six_changes_in_ten_minutes_are_followed_at_once() {
        let all = ProvidedSchedules::default();
        for change in 0..=6 {
            let shown = published(change % 2 == 0);
            let following = all.follow("a", &shown, second(change));
            assert_eq!(following.published, shown, "{change}");
            assert!(!following.is_flapping);
        }
        // Another object is not affected.
        assert!(!all.follow("b", &published(true), second(7)).is_flapping);
    }

    #[test]
    fn what_changes_more_often_is_followed_once_a_minute_until_it_is_quiet() {
        let all = ProvidedSchedules::default();
        for change in 0..=6 {
            all.follow("a", &published(change % 2 == 0), second(change));
        }
        let following = all.follow("a", &published(false), second(7));
        assert_eq!(following.published, published(true));
        assert!(following.is_flapping);
        assert_eq!(following.next, Some(second(66)));
        assert_eq!(all.follow("a", &published(false), second(65)), following);
        let turn = all.follow("a", &published(false), second(66));
        assert_eq!(turn.published, published(false));
        assert_eq!(turn.next, Some(second(126)));
        let quiet = all.follow("a", &published(false), second(66 + 600));
        assert!(!quiet.is_flapping && quiet.next.is_none());
        let changed = all.follow("a", &published(true), second(667));
        assert_eq!(changed.published, published(true));
    }

    #[test]
    fn one_caller_awaits_a_turn() {
        let all = ProvidedSchedules::default();
        assert!(!all.await_turn("a"));
        all.follow("a", &published(true), second(0));
        assert!(all.await_turn("a") && !all.await_turn("a"));
        all.turn("a");
        assert!(all.await_turn("a"));
    }
}

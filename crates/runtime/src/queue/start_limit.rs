//! A rate limit on the objects that start in a minute, and their order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

use crate::Key;

/// The period of the limit.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// How long an object waits at least, so that all objects that are due together are recorded
/// before the first of them starts.
const MIN_WAIT: SignedDuration = SignedDuration::from_secs(1);

/// How long an object keeps others waiting after `retry_at` if it has not tried again.
const MAX_OVERDUE: SignedDuration = SignedDuration::from_secs(10);

/// After how long an object tries again whose turn is more than a minute ahead, unless
/// [`StartLimit::next`] names it before: those ahead of it may not try again.
const FAR: SignedDuration = SignedDuration::from_mins(5);

/// The objects that have started and those that wait.
#[derive(Clone, Debug)]
pub struct StartLimit {
    per_minute: Option<NonZeroU32>,
    /// Which objects have started within the last minute, and when, in order.
    started: VecDeque<(Timestamp, Key)>,
    waiting: BTreeMap<Key, Waiting>,
    /// The places of those that wait.
    order: BTreeSet<Place>,
}

/// By priority, then by how long it has waited, then by name.
type Place = (Reverse<u8>, Timestamp, Key);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    priority: u8,
    since: Timestamp,
    /// The instant at which it should try again.
    retry_at: Timestamp,
}

impl StartLimit {
    /// At most so many in any minute; `None` is no limit.
    pub fn at_most(per_minute: Option<NonZeroU32>) -> Self {
        Self {
            per_minute,
            started: VecDeque::new(),
            waiting: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }

    fn limit(&self) -> usize {
        let limit = self.per_minute.map(NonZeroU32::get);
        limit.map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX))
    }

    /// Tries to start `key`. Either it may start, and that is counted; or it must try again at
    /// the instant that is returned, which is in the future, by five minutes at most.
    ///
    /// Of the objects that wait, the one of the highest priority comes first; of equal priority,
    /// the one that has waited longest. Costs as many steps as may start in two minutes.
    pub fn try_start(
        &mut self,
        key: &Key,
        priority: u8,
        now: Timestamp,
    ) -> Result<(), Timestamp> {
        if self.per_minute.is_none() {
            return Ok(());
        }
        let limit = self.limit();
        self.started
            .retain(|(started_at, _)| after(*started_at, MINUTE) > now);
        let since = self.waiting.get(key).map_or(now, |waiting| waiting.since);
        self.leave(key);
        let place = (Reverse(priority), since, key.clone());
        let free = limit.saturating_sub(self.started.len());
        let ahead = self
            .order
            .range(..&place)
            .filter(|it| !self.is_overdue(it, now));
        let position = ahead.take(free.saturating_add(limit)).count();
        let wait_ends = after(since, MIN_WAIT);
        if position < free && wait_ends <= now {
            self.started.push_back((now, key.clone()));
            return Ok(());
        }
        let retry_at = if position < free {
            wait_ends
        } else {
            let frees = self.started.get(position - free);
            frees.map_or(after(now, FAR), |(started_at, _)| {
                after(*started_at, MINUTE)
            })
        };
        let waiting = Waiting {
            priority,
            since,
            retry_at,
        };
        self.waiting.insert(key.clone(), waiting);
        self.order.insert(place);
        Err(retry_at)
    }

    /// `key` does not wait any more: it is gone, or has nothing to start. Returns whether it has.
    pub fn leave(&mut self, key: &Key) -> bool {
        let Some(left) = self.waiting.remove(key) else {
            return false;
        };
        self.order
            .remove(&(Reverse(left.priority), left.since, key.clone()))
    }

    /// Those whose turn comes within a minute now that one has started or left, and that would try
    /// later: they should try again at once.
    pub fn next(&mut self, now: Timestamp) -> Vec<Key> {
        let first = self.order.iter().filter(|it| !self.is_overdue(it, now));
        let keys = first.take(self.limit()).map(|(_, _, key)| key.clone());
        let keys: Vec<Key> = keys.collect();
        let mut next = Vec::new();
        for key in keys {
            let waiting = self.waiting.get_mut(&key);
            let waiting = waiting.filter(|of| of.retry_at > after(now, MINUTE));
            if let Some(waiting) = waiting {
                waiting.retry_at = now;
                next.push(key);
            }
        }
        next
    }

    /// Takes back a start: `key` was allowed to start and has not, so it does not count.
    pub fn cancel_start(&mut self, key: &Key) {
        let last = self.started.iter().rposition(|(_, other)| other == key);
        if let Some(last) = last {
            self.started.remove(last);
        }
    }

    fn is_overdue(&self, (_, _, key): &Place, now: Timestamp) -> bool {
        let waiting = self.waiting.get(key);
        waiting.is_none_or(|of| after(of.retry_at, MAX_OVERDUE) <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(millis: i64) -> Timestamp {
        let start: Timestamp = "2026-03-06T21:30:00Z".parse().unwrap();
        start + SignedDuration::from_millis(millis)
    }

    fn key(name: &str) -> Key {
        Key::new("default", name)
    }

    #[test]
    fn without_a_limit_all_objects_start_at_once() {
        let mut starts = StartLimit::at_most(None);
        for number in 0..100 {
            assert_eq!(
                starts.try_start(&key(&number.to_string()), 0, later(0)),
                Ok(())
            );
        }
    }

    /// Tries to start all machines until all have started. Returns which started when, in
    /// seconds.
    fn run(per_minute: u32, machines: &[(&str, u8)]) -> Vec<(String, i64)> {
        let mut starts = StartLimit::at_most(NonZeroU32::new(per_minute));
        let mut due: BTreeMap<Timestamp, Vec<(&str, u8)>> =
            BTreeMap::from([(later(0), machines.to_vec())]);
        let mut started = Vec::new();
        while let Some((now, asking)) = due.pop_first() {
            for (name, priority) in asking {
                match starts.try_start(&key(name), priority, now) {
                    Ok(()) => {
                        let second = now.duration_since(later(0)).as_secs();
                        started.push((name.to_owned(), second));
                        let next = starts.next(now);
                        let next = machines
                            .iter()
                            .filter(|(name, _)| next.contains(&key(name)));
                        due.entry(now).or_default().extend(next);
                    }
                    Err(retry_at) => {
                        assert!(retry_at > now, "{name} would try again at once");
                        due.entry(retry_at).or_default().push((name, priority));
                    }
                }
            }
            due.retain(|_, asking| {
                let has_started = |name: &str| started.iter().any(|(it, _)| it == name);
                asking.retain(|(name, _)| !has_started(name));
                !asking.is_empty()
            });
        }
        started.sort_by_key(|(name, second)| (*second, name.clone()));
        started
    }

    #[test]
    fn the_highest_priority_starts_first_within_the_limit_of_a_minute() {
        let machines = [("a", 10), ("b", 50), ("c", 255), ("d", 50), ("e", 0)];
        let started = run(2, &machines);
        let expected = [("b", 1), ("c", 1), ("a", 61), ("d", 61), ("e", 121)]
            .map(|(name, second)| (name.to_owned(), second));
        assert_eq!(started, expected);
    }

    #[test]
    fn no_more_than_the_limit_start_within_a_minute() {
        let names: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
        let machines: Vec<(&str, u8)> =
            names.iter().map(|name| (name.as_str(), 50)).collect();
        let started = run(7, &machines);
        assert_eq!(started.len(), 40);
        for (_, second) in &started {
            let within = started
                .iter()
                .filter(|(_, other)| (*second..second + 60).contains(other));
            assert!(within.count() <= 7);
        }
        assert_eq!(started.last().map(|(_, second)| *second), Some(301));
    }

    #[test]
    fn a_start_that_fails_does_not_count() {
        let mut starts = StartLimit::at_most(NonZeroU32::new(1));
        for (name, priority) in [("broken", 255), ("sound", 1)] {
            assert!(starts.try_start(&key(name), priority, later(0)).is_err());
        }
        assert_eq!(starts.try_start(&key("broken"), 255, later(1_000)), Ok(()));
        starts.cancel_start(&key("broken"));
        assert_eq!(starts.try_start(&key("sound"), 1, later(1_000)), Ok(()));
    }

    /// Those of another tenant, who deletes them again.
    #[test]
    fn objects_that_have_left_delay_nobody() {
        let mut starts = StartLimit::at_most(NonZeroU32::new(10));
        let others: Vec<Key> = (0..1_000).map(|n| key(&format!("gone-{n}"))).collect();
        for other in &others {
            assert!(starts.try_start(other, 50, later(0)).is_err());
        }
        let worker = key("worker");
        let far = starts.try_start(&worker, 50, later(5_000)).unwrap_err();
        assert_eq!(far, later(5_000) + FAR);
        let mut woken = Vec::new();
        for other in &others {
            assert!(starts.leave(other));
            woken.extend(starts.next(later(6_000)));
        }
        assert_eq!(woken.last(), Some(&worker));
        assert_eq!(woken.iter().filter(|it| **it == worker).count(), 1);
        assert_eq!(starts.try_start(&worker, 50, later(6_000)), Ok(()));
    }

    #[test]
    fn objects_that_never_try_again_delay_others_for_ten_minutes_at_most() {
        let mut starts = StartLimit::at_most(NonZeroU32::new(10));
        for number in 0..1_000 {
            let own = key(&format!("stuck-{number}"));
            assert!(starts.try_start(&own, 50, later(0)).is_err());
        }
        let mut now = later(5_000);
        while let Err(retry_at) = starts.try_start(&key("worker"), 50, now) {
            now = retry_at;
        }
        assert!(now <= later(610_000), "{now}");
    }

    #[test]
    fn one_that_tries_again_late_keeps_its_place() {
        let mut starts = StartLimit::at_most(NonZeroU32::new(1));
        assert!(starts.try_start(&key("first"), 50, later(0)).is_err());
        assert!(starts.try_start(&key("second"), 50, later(100)).is_err());
        assert_eq!(
            starts.try_start(&key("other"), 90, later(2_000)),
            Err(later(3_000))
        );
        assert_eq!(starts.try_start(&key("other"), 90, later(3_000)), Ok(()));
        // Both are overdue when the next one may start.
        let late = later(300_000);
        assert_eq!(starts.try_start(&key("first"), 50, late), Ok(()));
        assert!(starts.try_start(&key("second"), 50, late).is_err());
        assert!(starts.try_start(&key("third"), 50, later(300_001)).is_err());
        let late = later(361_000);
        assert!(starts.try_start(&key("third"), 50, late).is_err());
        assert_eq!(starts.try_start(&key("second"), 50, late), Ok(()));
    }

    #[test]
    fn an_object_that_does_not_try_again_delays_others_only_briefly() {
        let mut starts = StartLimit::at_most(NonZeroU32::new(1));
        assert!(starts.try_start(&key("high"), 200, later(0)).is_err());
        assert!(starts.try_start(&key("low"), 1, later(0)).is_err());
        assert_eq!(starts.try_start(&key("low"), 1, later(61_000)), Ok(()));
    }
}

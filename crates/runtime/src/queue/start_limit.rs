//! A rate limit on the objects that start in a minute, and their order.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

use crate::Key;

/// The period of the limit.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// How long an object waits at least, so that all objects that are due together are recorded
/// before the first of them starts.
const MIN_WAIT: SignedDuration = SignedDuration::from_secs(1);

/// How long an object counts after `retry_at` if it has not tried again.
const MAX_OVERDUE: SignedDuration = SignedDuration::from_secs(10);

/// The objects that have started and those that wait.
#[derive(Clone, Debug)]
pub struct StartLimit {
    per_minute: Option<NonZeroU32>,
    /// Which objects have started within the last minute, and when, in order.
    started: VecDeque<(Timestamp, Key)>,
    waiting: BTreeMap<Key, Waiting>,
}

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
        }
    }

    /// Tries to start `key`. Either it may start, and that is counted; or it must try again at
    /// the instant that is returned, which is in the future, by a minute at most.
    ///
    /// Of the objects that wait, the one of the highest priority comes first; of equal priority,
    /// the one that has waited longest.
    pub fn try_start(
        &mut self,
        key: &Key,
        priority: u8,
        now: Timestamp,
    ) -> Result<(), Timestamp> {
        let Some(per_minute) = self.per_minute else {
            return Ok(());
        };
        let limit = usize::try_from(per_minute.get()).unwrap_or(usize::MAX);
        self.started
            .retain(|(started_at, _)| after(*started_at, MINUTE) > now);
        self.waiting.retain(|other, waiting| {
            other == key || after(waiting.retry_at, MAX_OVERDUE) > now
        });
        let since = self.waiting.get(key).map_or(now, |waiting| waiting.since);
        let position = self.position(key, priority, since);
        let free = limit.saturating_sub(self.started.len());
        let wait_ends = after(since, MIN_WAIT);
        if position < free && wait_ends <= now {
            self.waiting.remove(key);
            self.started.push_back((now, key.clone()));
            return Ok(());
        }
        let retry_at = if position < free {
            wait_ends
        } else {
            let later = position - free;
            let minutes = i32::try_from(later / limit).unwrap_or(i32::MAX);
            let frees_at = self
                .started
                .get(later % limit)
                .map_or(now, |(started_at, _)| *started_at);
            let turn = after(after(frees_at, MINUTE), MINUTE.saturating_mul(minutes));
            // Those ahead may wait no longer then.
            turn.min(after(now, MINUTE))
        };
        let waiting = Waiting {
            priority,
            since,
            retry_at,
        };
        self.waiting.insert(key.clone(), waiting);
        Err(retry_at)
    }

    /// Takes back a start: `key` was allowed to start and has not, so it does not count.
    pub fn cancel_start(&mut self, key: &Key) {
        let last = self.started.iter().rposition(|(_, other)| other == key);
        if let Some(last) = last {
            self.started.remove(last);
        }
    }

    /// How many of the objects that wait come before `key`.
    fn position(&self, key: &Key, priority: u8, since: Timestamp) -> usize {
        let order = |priority: u8| u8::MAX - priority;
        let own = (order(priority), since, key);
        let others = self.waiting.iter().filter(|(other, _)| *other != key);
        others
            .filter(|(other, of)| (order(of.priority), of.since, *other) < own)
            .count()
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
                    }
                    Err(retry_at) => {
                        assert!(retry_at > now, "{name} would try again at once");
                        due.entry(retry_at).or_default().push((name, priority));
                    }
                }
            }
        }
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

    /// Those of another tenant, who has deleted them again.
    #[test]
    fn objects_that_wait_no_longer_delay_others_for_two_minutes_at_most() {
        let mut starts = StartLimit::at_most(NonZeroU32::new(10));
        for number in 0..1_000 {
            let own = key(&format!("gone-{number}"));
            assert!(starts.try_start(&own, 50, later(0)).is_err());
        }
        let mut now = later(5_000);
        while let Err(retry_at) = starts.try_start(&key("worker"), 50, now) {
            assert!(retry_at <= now + MINUTE, "{now} {retry_at}");
            now = retry_at;
        }
        assert!(now <= later(125_000), "{now}");
    }

    #[test]
    fn an_object_that_does_not_try_again_delays_others_only_briefly() {
        let mut starts = StartLimit::at_most(NonZeroU32::new(1));
        assert!(starts.try_start(&key("high"), 200, later(0)).is_err());
        assert!(starts.try_start(&key("low"), 1, later(0)).is_err());
        assert_eq!(starts.try_start(&key("low"), 1, later(61_000)), Ok(()));
    }
}

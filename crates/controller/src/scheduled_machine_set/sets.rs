//! The queue of the sets, and what is kept of each between two reconciles.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_plan::Unanswered;
use fivespot_runtime::Key;
use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

use crate::own_kind::OwnKind;

/// How long a set in which nothing was to be done is left alone while only its machines change: at
/// an edge each of them changes several times, and all of them are read each time.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// The queue of the sets, and what is kept of each.
#[derive(Debug)]
pub(crate) struct Sets {
    pub(crate) kind: OwnKind,
    states: Mutex<BTreeMap<Key, SetState>>,
}

/// The state kept between two reconciles. All of it may be lost.
#[derive(Debug, Default)]
struct SetState {
    unanswered: Unanswered,
    /// The generation in which nothing was to be done, and until when it is left alone.
    at_rest: Option<(Option<i64>, Timestamp)>,
}

impl Sets {
    /// No sets.
    pub(crate) fn new(kind: OwnKind) -> Self {
        Self {
            kind,
            states: Mutex::default(),
        }
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<Key, SetState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The set is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.states().remove(key);
    }

    /// Reads or changes what is not answered of a set.
    pub(super) fn unanswered<T>(
        &self,
        key: &Key,
        with: impl FnOnce(&mut Unanswered) -> T,
    ) -> T {
        with(&mut self.states().entry(key.clone()).or_default().unanswered)
    }

    /// Until when a set of that generation is left alone; `None` if it is not.
    pub(super) fn pause(&self, key: &Key, generation: Option<i64>) -> Option<Timestamp> {
        let (at_rest, until) = self.states().get(key)?.at_rest?;
        let is_paused = at_rest == generation && self.kind.queue.now() < until;
        is_paused.then_some(until)
    }

    /// Records whether nothing was to be done about a set.
    pub(super) fn rest(&self, key: &Key, generation: Option<i64>, is_at_rest: bool) {
        let until = after(self.kind.queue.now(), PAUSE);
        let mut states = self.states();
        let state = states.entry(key.clone()).or_default();
        state.at_rest = is_at_rest.then_some((generation, until));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use fivespot_runtime::lease::{Fence, Ownership};
    use fivespot_runtime::queue::Backoff;
    use kubemu_clock::Clock;

    use super::*;

    #[tokio::test]
    async fn a_set_at_rest_is_left_alone_for_a_second_unless_it_is_edited() {
        let start: Timestamp = "2026-03-06T15:00:00Z".parse().unwrap();
        let clock = Clock::stopped_at(start);
        let fence = Fence::new(clock.steady(), Ownership::Everything);
        let backoff = Backoff::seeded(1);
        let sets = Sets::new(OwnKind::new(
            "ScheduledMachineSet",
            &clock,
            backoff,
            &fence,
            NonZeroUsize::MIN,
            true,
        ));
        let key = Key::new("default", "desks");
        assert_eq!(sets.pause(&key, Some(1)), None);
        sets.rest(&key, Some(1), true);
        assert_eq!(sets.pause(&key, Some(1)), Some(after(start, PAUSE)));
        assert_eq!(sets.pause(&key, Some(2)), None);
        clock.advance_to(after(start, PAUSE)).await;
        assert_eq!(sets.pause(&key, Some(1)), None);
        sets.rest(&key, Some(1), false);
        assert_eq!(sets.pause(&key, Some(1)), None);
    }
}

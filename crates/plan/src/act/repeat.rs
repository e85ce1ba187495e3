//! Steps that succeed and are required again and again, because another client undoes them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::{Action, Step};

/// How often a step may succeed before it has to wait.
const FREE: u32 = 5;
/// How long a step must not be required before its count starts again.
const QUIET: SignedDuration = SignedDuration::from_secs(60);
/// The longest that a step has to wait.
const MAX_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// How often each step has recently succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Repeats(BTreeMap<Step, Repeat>);

#[derive(Clone, Debug, PartialEq)]
struct Repeat {
    count: u32,
    last: Timestamp,
}

impl Repeat {
    /// How long the step waits: nothing at first, then 1 s, doubling to five minutes.
    fn pause(&self) -> SignedDuration {
        let Some(beyond) = self.count.checked_sub(FREE) else {
            return SignedDuration::ZERO;
        };
        SignedDuration::from_secs(1 << beyond.min(10)).min(MAX_PAUSE)
    }
}

impl Repeats {
    /// Records that these have succeeded. Evictions and deletions of pods are not counted: each
    /// is for another pod.
    pub(crate) fn note(&mut self, actions: &[Action], now: Timestamp) {
        let about_pods = [Step::EvictPod, Step::DeletePod];
        let steps = actions.iter().map(|action| action.step);
        for step in steps.filter(|step| !about_pods.contains(step)) {
            let repeat = self.0.entry(step).or_insert(Repeat {
                count: 0,
                last: now,
            });
            let is_anew = now > after(repeat.last, repeat.pause() + QUIET);
            repeat.count = if is_anew {
                1
            } else {
                repeat.count.saturating_add(1)
            };
            repeat.last = now;
        }
    }

    /// Drops what was recorded with a clock that was ahead and has been set back since.
    pub(crate) fn drop_after(&mut self, now: Timestamp) {
        self.0.retain(|_, repeat| repeat.last <= now);
    }

    /// Until when the step waits; `None` if it does not.
    pub(crate) fn due(&self, step: Step) -> Option<Timestamp> {
        let repeat = self.0.get(&step)?;
        let pause = repeat.pause();
        (!pause.is_zero()).then(|| after(repeat.last, pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Request, Side, Target};
    use fivespot_capi::Reference;

    fn action(step: Step) -> Action {
        Action {
            step,
            request: Request {
                side: Side::Workload,
                target: Target {
                    object: Reference::new("v1", "Node", "worker"),
                    namespace: None,
                },
                call: Call::Delete { uid: String::new() },
            },
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_step_that_is_undone_again_and_again_waits_longer_each_time() {
        let mut repeats = Repeats::default();
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..16 {
            repeats.note(&[action(Step::TaintNode)], now);
            let due = repeats.due(Step::TaintNode).unwrap_or(now);
            pauses.push(due.duration_since(now).as_secs());
            now = due;
        }
        assert_eq!(
            pauses,
            [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
        );
        assert_eq!(repeats.due(Step::LabelNode), None);
        // It was not undone for a minute beyond its pause.
        now = after(now, SignedDuration::from_secs(361));
        repeats.note(&[action(Step::TaintNode)], now);
        assert_eq!(repeats.due(Step::TaintNode), None);
    }

    #[test]
    fn many_evictions_are_not_a_repetition() {
        let mut repeats = Repeats::default();
        let many = vec![action(Step::EvictPod); 50];
        repeats.note(&many, at(0));
        assert_eq!(repeats.due(Step::EvictPod), None);
    }
}

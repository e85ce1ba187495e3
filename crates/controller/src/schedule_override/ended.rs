//! Which overrides have ended: a clock that is set back revives none of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use fivespot_api::ScheduleOverride;
use jiff::Timestamp;

/// How many are remembered. An override is deleted an hour after its end, unless it is kept.
const MOST: usize = 4_096;

/// The overrides that have ended while this process was looking: their ends, by their uids.
#[derive(Debug, Default)]
pub(crate) struct EndedOverrides(Mutex<BTreeMap<String, Timestamp>>);

impl EndedOverrides {
    /// The end of an override that has ended by `now`, or had at an earlier call though the clock has
    /// been set back since; none if it has not. One whose end was edited is judged anew.
    pub(crate) fn end_of(
        &self,
        object: &ScheduleOverride,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (uid, end) = (object.metadata.uid.as_ref()?, object.end()?);
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if end > now {
            return ended.get(uid).copied().filter(|before| *before == end);
        }
        if ended.len() >= MOST && !ended.contains_key(uid) {
            let first = ended.iter().min_by_key(|(_, end)| **end);
            let first = first.map(|(uid, _)| uid.clone());
            if let Some(uid) = first {
                ended.remove(&uid);
            }
        }
        ended.insert(uid.clone(), end);
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn ending(uid: usize, end: &str) -> ScheduleOverride {
        serde_json::from_value(json!({
            "metadata": {"name": "it", "uid": uid.to_string()},
            "spec": {"targetRef": {"name": "worker"}, "mode": "Run", "endTime": end},
        }))
        .unwrap()
    }

    #[test]
    fn a_clock_that_is_set_back_revives_no_override_until_its_end_is_edited() {
        let ended = EndedOverrides::default();
        let one = ending(1, "2026-03-06T12:00:00Z");
        let (before, after) = (at("2026-03-06T11:00:00Z"), at("2026-03-06T12:00:00Z"));
        assert_eq!(ended.end_of(&one, before), None);
        assert_eq!(ended.end_of(&one, after), Some(after));
        assert_eq!(ended.end_of(&one, before), Some(after));
        let longer = ending(1, "2026-03-06T13:00:00Z");
        assert_eq!(ended.end_of(&longer, before), None);
    }

    #[test]
    fn no_more_than_a_bounded_number_of_ended_overrides_is_remembered() {
        let ended = EndedOverrides::default();
        let now = at("2026-03-06T12:00:00Z");
        for uid in 0..=MOST {
            ended.end_of(&ending(uid, "2026-03-06T11:00:00Z"), now);
        }
        assert_eq!(ended.0.lock().unwrap().len(), MOST);
    }
}

//! The overrides that have ended: setting the clock back does not revive them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use fivespot_api::ScheduleOverride;
use jiff::Timestamp;

/// The maximum number of remembered ends. An override is deleted an hour after its end, unless it
/// is kept.
const MAX_ENTRIES: usize = 4_096;

/// The ends of the overrides that have ended while this process was running, by uid.
#[derive(Debug, Default)]
pub(crate) struct EndedOverrides(Mutex<BTreeMap<String, Timestamp>>);

impl EndedOverrides {
    /// The end of an override that has ended by `now`, or by an earlier call before the clock was
    /// set back. `None` if it has not ended. If its end was edited, it is evaluated again.
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
        if ended.len() >= MAX_ENTRIES && !ended.contains_key(uid) {
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
    fn an_ended_override_stays_ended_when_the_clock_is_set_back() {
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
    fn the_number_of_remembered_ends_is_bounded() {
        let ended = EndedOverrides::default();
        let now = at("2026-03-06T12:00:00Z");
        for uid in 0..=MAX_ENTRIES {
            ended.end_of(&ending(uid, "2026-03-06T11:00:00Z"), now);
        }
        assert_eq!(ended.0.lock().unwrap().len(), MAX_ENTRIES);
    }
}

//! The limit on the number of overrides that are considered.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use fivespot_schedule::OverrideMode::Stop;
use jiff::Timestamp;

use super::ScheduleOverride;

/// How many overrides of a namespace are considered, the [strongest](Rank) first.
pub const MAX_OVERRIDES: usize = 256;

/// Which override of a namespace is considered first: those of mode Stop, then Hold, then Run; of
/// equals the older one, and then the first by name. An override without a creationTimestamp counts
/// as the oldest.
///
/// The mode comes before the age, so that however many old overrides there are, a new Stop or Hold
/// is considered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    mode: Reverse<fivespot_schedule::OverrideMode>,
    created: Option<Timestamp>,
    name: String,
}

impl Rank {
    /// The rank of an override.
    pub fn of(object: &ScheduleOverride) -> Self {
        let metadata = &object.metadata;
        Self {
            mode: Reverse(object.spec.mode.into()),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    /// The name of the override.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The overrides of one namespace that are considered: the first [`MAX_OVERRIDES`] in the order of
/// their [`Rank`].
///
/// The overrides of a machine are obtained only from here, so that no caller forgets the limit.
#[derive(Clone, Debug)]
pub struct ConsideredOverrides<T = ScheduleOverride>(Vec<(Rank, T)>);

impl<T> Default for ConsideredOverrides<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Borrow<ScheduleOverride>> ConsideredOverrides<T> {
    /// Those of `all`, the overrides of one namespace, that are considered.
    pub fn of(all: impl IntoIterator<Item = T>) -> Self {
        let mut considered = Self::default();
        for it in all {
            considered.add(it);
        }
        considered
    }

    /// Adds an override of the namespace. Returns the one that is not considered any more if there
    /// are too many, which may be this one.
    pub fn add(&mut self, more: T) -> Option<T> {
        let rank = Rank::of(more.borrow());
        let at = self.0.partition_point(|(other, _)| *other <= rank);
        self.0.insert(at, (rank, more));
        let is_full = self.0.len() > MAX_OVERRIDES;
        let (_, dropped) = is_full.then(|| self.0.pop()).flatten()?;
        Some(dropped)
    }

    /// Whether one of mode Stop would be considered that is created now.
    pub fn have_room_for_stop(&self) -> bool {
        let is_stop = |(last, _): &(Rank, T)| last.mode.0 == Stop;
        self.0.len() < MAX_OVERRIDES || self.0.last().is_some_and(|it| !is_stop(it))
    }

    /// Removes the override of that name. `None` if it is not considered.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        let at = self.0.iter().position(|(rank, _)| rank.name == name)?;
        Some(self.0.remove(at).1)
    }

    /// Whether an override of this rank would be considered if it was added.
    pub fn admits(&self, rank: &Rank) -> bool {
        self.0.len() < MAX_OVERRIDES || self.0.last().is_some_and(|(last, _)| rank < last)
    }

    /// The considered override of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        let found = self.0.iter().find(|(rank, _)| rank.name == name);
        found.map(|(_, it)| it)
    }

    /// The considered overrides in the order of their ranks.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, it)| it)
    }

    /// The considered overrides that target the ScheduledMachine of the namespace with that name
    /// and these labels, in the order of their ranks.
    pub fn of_machine(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> impl Iterator<Item = &ScheduleOverride> {
        let all = self.iter().map(Borrow::borrow);
        all.filter(move |it: &&ScheduleOverride| it.is_about(name, labels))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::*;

    fn of_mode(name: &str, mode: &str, minutes: Option<i64>) -> Value {
        let begin: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
        let created = minutes.map(|minutes| begin + SignedDuration::from_mins(minutes));
        json!({
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {
                "targetRef": {"name": "worker"}, "mode": mode,
                "endTime": "2026-03-07T12:00:00Z",
            },
        })
    }

    fn read(object: Value) -> ScheduleOverride {
        serde_json::from_value(object).unwrap()
    }

    fn of_age(name: &str, minutes: Option<i64>) -> ScheduleOverride {
        read(of_mode(name, "Stop", minutes))
    }

    fn names(all: &ConsideredOverrides) -> Vec<&str> {
        let all = all
            .of_machine("worker", &BTreeMap::new())
            .collect::<Vec<_>>();
        all.iter()
            .filter_map(|it| it.metadata.name.as_deref())
            .collect()
    }

    #[test]
    fn the_strongest_mode_comes_first_then_age_and_then_name() {
        let mut disguised = of_mode("disguised", "Stop", Some(9));
        disguised["metadata"]["annotations"] = json!({"5spot.finos.org/reclaim": "uid"});
        let all = ConsideredOverrides::of([
            of_age("young", Some(2)),
            read(of_mode("run", "Run", None)),
            read(disguised),
            of_age("b", Some(1)),
            read(of_mode("hold", "Hold", None)),
            of_age("a", Some(1)),
            of_age("unknown", None),
        ]);
        let order = ["unknown", "a", "b", "young", "disguised", "hold", "run"];
        assert_eq!(names(&all), order);
    }

    #[test]
    fn those_beyond_the_limit_are_not_considered_however_they_arrive() {
        let limit = i64::try_from(MAX_OVERRIDES).unwrap();
        let every = || (0..=limit).map(|age| of_age(&format!("o-{age}"), Some(age)));
        let youngest = format!("o-{limit}");
        for all in [
            ConsideredOverrides::of(every()),
            ConsideredOverrides::of(every().rev()),
        ] {
            assert_eq!(names(&all).len(), MAX_OVERRIDES);
            assert!(!names(&all).contains(&youngest.as_str()));
        }
    }

    #[test]
    fn an_override_takes_the_place_of_a_weaker_one_and_gives_it_back() {
        let limit = i64::try_from(MAX_OVERRIDES).unwrap();
        let runs = (1..=limit).map(|age| read(of_mode(&format!("o-{age}"), "Run", None)));
        let mut all = ConsideredOverrides::of(runs);
        let last = all.iter().last().cloned().unwrap();
        assert!(!all.admits(&Rank::of(&read(of_mode("z", "Run", Some(9))))));
        let stop = of_age("stop", Some(9));
        assert!(all.admits(&Rank::of(&stop)));
        assert_eq!(all.add(stop.clone()), Some(last.clone()));
        assert_eq!(all.remove("stop"), Some(stop));
        assert_eq!(all.add(last), None);
    }

    #[test]
    fn there_is_room_for_a_stop_until_only_stops_are_considered() {
        let runs =
            (0..MAX_OVERRIDES).map(|n| read(of_mode(&format!("r-{n}"), "Run", None)));
        let mut all = ConsideredOverrides::of(runs);
        for n in 0..MAX_OVERRIDES {
            assert!(all.have_room_for_stop(), "{n}");
            all.add(of_age(&format!("s-{n}"), Some(1)));
        }
        assert!(!all.have_room_for_stop());
    }
}

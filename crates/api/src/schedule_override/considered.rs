//! The limit on the number of overrides that are considered.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::ScheduleOverride;

/// How many overrides of a namespace are considered, oldest first.
pub const MAX_OVERRIDES: usize = 256;

/// The overrides of one namespace that are considered: the oldest [`MAX_OVERRIDES`], sorted by age
/// and then by name. An override without a creationTimestamp counts as the oldest.
///
/// The overrides of a machine are obtained only from here, so that no caller forgets the limit.
#[derive(Clone, Debug)]
pub struct ConsideredOverrides<T = ScheduleOverride>(Vec<T>);

impl<T> Default for ConsideredOverrides<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Borrow<ScheduleOverride>> ConsideredOverrides<T> {
    /// Those of `all`, the overrides of one namespace, that are considered.
    pub fn of(all: impl IntoIterator<Item = T>) -> Self {
        let mut all: Vec<T> = all.into_iter().collect();
        let by_age = |one: &T, other: &T| by_age(one.borrow(), other.borrow());
        if all.len() > MAX_OVERRIDES {
            all.select_nth_unstable_by(MAX_OVERRIDES, by_age);
            all.truncate(MAX_OVERRIDES);
        }
        all.sort_by(by_age);
        Self(all)
    }

    /// Adds an override of the namespace. It or another one is dropped if there are too many.
    pub fn add(&mut self, more: T) {
        let all = std::mem::take(&mut self.0);
        *self = Self::of(all.into_iter().chain([more]));
    }

    /// The considered overrides, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// The considered overrides that target the ScheduledMachine of the namespace with that name
    /// and these labels, oldest first.
    pub fn of_machine(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> impl Iterator<Item = &ScheduleOverride> {
        let all = self.0.iter().map(Borrow::borrow);
        all.filter(move |it: &&ScheduleOverride| it.is_about(name, labels))
    }
}

fn by_age(one: &ScheduleOverride, other: &ScheduleOverride) -> Ordering {
    let key = |of: &ScheduleOverride| {
        let created = of.metadata.creation_timestamp.as_ref();
        created.map(|time| time.0)
    };
    let ages = key(one).cmp(&key(other));
    ages.then_with(|| one.metadata.name.cmp(&other.metadata.name))
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::*;

    fn of_age(name: &str, minutes: Option<i64>) -> ScheduleOverride {
        let begin: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
        let created = minutes.map(|minutes| begin + SignedDuration::from_mins(minutes));
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {
                "targetRef": {"name": "worker"}, "mode": "Stop",
                "endTime": "2026-03-07T12:00:00Z",
            },
        }))
        .unwrap()
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
    fn overrides_are_sorted_by_age_and_then_by_name() {
        let all = ConsideredOverrides::of([
            of_age("young", Some(2)),
            of_age("b", Some(1)),
            of_age("a", Some(1)),
            of_age("unknown", None),
        ]);
        assert_eq!(names(&all), ["unknown", "a", "b", "young"]);
    }

    #[test]
    fn only_the_oldest_are_considered_however_they_arrive() {
        let limit = i64::try_from(MAX_OVERRIDES).unwrap();
        let every = || (0..=limit).map(|age| of_age(&format!("o-{age}"), Some(age)));
        let youngest = format!("o-{limit}");
        let mut one_by_one = ConsideredOverrides::default();
        for it in every().rev() {
            one_by_one.add(it);
        }
        for all in [ConsideredOverrides::of(every().rev()), one_by_one] {
            assert_eq!(names(&all).len(), MAX_OVERRIDES);
            assert!(!names(&all).contains(&youngest.as_str()));
        }
    }
}

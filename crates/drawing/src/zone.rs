//! The time zone of a picture.

use std::collections::BTreeMap;

use fivespot_schedule::Schedule;
use jiff::tz::TimeZone;

/// The most frequent time zone of the schedules; of equally frequent ones, the first by name. UTC
/// if there are none.
pub fn most_frequent_zone<'s>(
    schedules: impl IntoIterator<Item = &'s Schedule>,
) -> TimeZone {
    let mut count: BTreeMap<&str, (usize, &TimeZone)> = BTreeMap::new();
    for schedule in schedules {
        let entry = count.entry(schedule.zone_name());
        entry.or_insert((0, schedule.time_zone())).0 += 1;
    }
    let most = count.into_values().rev().max_by_key(|(count, _)| *count);
    most.map_or(TimeZone::UTC, |(_, zone)| zone.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equally_frequent_zones_the_first_by_name_is_chosen() {
        let most = |zones: &[&str]| {
            let in_zone = |zone| Schedule::weekly(&["mon-sun"], &["9-17"], zone).unwrap();
            let schedules: Vec<_> = zones.iter().copied().map(in_zone).collect();
            most_frequent_zone(&schedules)
        };
        let name = |zones: &[&str]| most(zones).iana_name().unwrap().to_owned();
        assert_eq!(name(&["Asia/Tokyo", "UTC", "UTC"]), "UTC");
        assert_eq!(name(&["Europe/Zurich", "Asia/Tokyo"]), "Asia/Tokyo");
        assert_eq!(most(&[]), TimeZone::UTC);
    }
}

//! The time zone of a picture.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

/// The most frequent of the time zones with these IANA names; of equally frequent ones, the first by
/// name. UTC if there are none, or it does not exist.
pub fn most_frequent_zone<'n>(names: impl IntoIterator<Item = &'n str>) -> TimeZone {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    let zone = most.and_then(|(name, _)| fivespot_schedule::zone(name));
    zone.unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equally_frequent_zones_the_first_by_name_is_chosen() {
        let most = |zones: &[&str]| most_frequent_zone(zones.iter().copied());
        let name = |zones: &[&str]| most(zones).iana_name().unwrap().to_owned();
        assert_eq!(name(&["Asia/Tokyo", "UTC", "UTC"]), "UTC");
        assert_eq!(name(&["Europe/Zurich", "Asia/Tokyo"]), "Asia/Tokyo");
        assert_eq!(most(&[]), TimeZone::UTC);
    }
}

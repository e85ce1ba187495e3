//! When is a machine wanted: days, hours and cron in a time zone, and the next change after any instant.
//!
//! A [`Schedule`] answers one question, [`Schedule::at`]: is a machine wanted now, and when does
//! that change? Whoever asks can sleep until then. The answer depends on nothing but the
//! schedule, the instant and the tz database of the process ([`zone_data`]: the one that is
//! compiled in unless another was set); there is no clock here.
//!
//! ```
//! use fivespot_schedule::{Schedule, Window};
//!
//! let office = Schedule::weekly(&["mon-fri"], &["9-17"], "America/New_York")?;
//! let friday_evening = "2026-03-06T22:30:00Z".parse()?;
//! let six_o_clock = "2026-03-06T23:00:00Z".parse()?;
//! assert_eq!(office.at(friday_evening), Window::Open { until: Some(six_o_clock) });
//!
//! let nightly = Schedule::cron("30 1 * * *", Some("90m"), "Europe/Zurich")?;
//! assert!(!nightly.at(friday_evening).is_open());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Days and hours
//!
//! A machine is wanted while the local wall clock shows one of the days *and* one of the hours.
//! Both are read off at the same instant: `fri` with `22-6` is Friday before 07:00 and Friday
//! from 22:00, not the night from Friday to Saturday. `9-17` is 09:00:00 to 17:59:59.
//!
//! # Cron
//!
//! Each firing opens a window of the given duration, which is elapsed time. Windows that touch
//! or overlap are one; a window opened before the instant that is asked about counts.
//!
//! # When the clocks change
//!
//! | | days and hours | cron |
//! |---|---|---|
//! | local time is skipped | that time never comes: 02:00 to 03:00 does not open | what would fire in it fires once, at the first instant after it |
//! | local time is repeated | both passes count: one hour is on for two | fires in both passes |
//! | a local day is skipped | that day never comes | its firings are one, at the first instant after it |
//!
//! Offsets may be any number of seconds and may change at any second: half-hour shifts, zones at
//! +05:45 and local mean time before standard time are nothing special.
//!
//! ```
//! # use fivespot_schedule::Schedule;
//! // On 2026-03-08 New York goes from 02:00 EST to 03:00 EDT, at 07:00 UTC.
//! let at_two = Schedule::weekly(&["sun"], &["2"], "America/New_York")?;
//! let from = "2026-03-08T00:00:00Z".parse()?;
//! let to = "2026-03-09T00:00:00Z".parse()?;
//! assert_eq!(at_two.transitions(from, to).count(), 0);
//!
//! let at_half_past = Schedule::cron("30 2 * * *", Some("1h"), "America/New_York")?;
//! let (opens, _) = at_half_past.transitions(from, to).next().ok_or("a firing")?;
//! assert_eq!(opens.to_string(), "2026-03-08T07:00:00Z");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod cron;
mod duration;
mod edge;
mod parse;
mod set;
mod stretch;
mod transition;
mod week;
mod zone;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use crate::cron::Cron;
pub use crate::duration::{Duration, OutOfBounds};
pub use crate::parse::ParseError;
pub use crate::transition::Transitions;
pub use crate::week::{Days, Hours};
pub use crate::zone::{
    ZoneData, ZoneRelease, ZoneSource, embedded_release, use_zone_data, zone, zone_data,
    zone_names,
};

use crate::edge::{Firings, State};
use crate::week::Week;

/// The shortest time that a firing of a cron schedule may keep a machine wanted.
pub const SHORTEST_FIRING: Duration = Duration::minutes(1);

/// The longest time that a firing of a cron schedule may keep a machine wanted: a week.
pub const LONGEST_FIRING: Duration = Duration::hours(168);

/// How long a firing of a cron schedule keeps a machine wanted unless it is said.
pub const USUAL_FIRING: Duration = Duration::hours(1);

/// When a machine is wanted: a rule and the time zone in which it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Weekly(Week),
    Firings(Firings),
}

/// What a schedule says at an instant: the state, and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Wanted.
    Open {
        /// The first later instant at which it is not; none within ten years if absent.
        until: Option<Timestamp>,
    },
    /// Not wanted.
    Closed {
        /// The first later instant at which it is; none within ten years if absent.
        until: Option<Timestamp>,
    },
}

impl Window {
    /// Whether a machine is wanted.
    pub fn is_open(self) -> bool {
        match self {
            Self::Open { .. } => true,
            Self::Closed { .. } => false,
        }
    }

    /// When that changes; none within ten years if absent.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Open { until } | Self::Closed { until } => until,
        }
    }
}

/// Why a schedule cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An entry of the list of days cannot be read.
    #[error("days[{entry}]: {fault}")]
    Days {
        /// The place of the entry in the list, from 0.
        entry: usize,
        /// Where in the entry, and what was expected.
        fault: ParseError,
    },
    /// An entry of the list of hours cannot be read.
    #[error("hours[{entry}]: {fault}")]
    Hours {
        /// The place of the entry in the list, from 0.
        entry: usize,
        /// Where in the entry, and what was expected.
        fault: ParseError,
    },
    /// The cron expression cannot be read.
    #[error("cron: {fault}")]
    Cron {
        /// Where in the expression, and what was expected.
        fault: ParseError,
    },
    /// The duration of a firing cannot be read.
    #[error("duration: {fault}")]
    Duration {
        /// Where in the text, and what was expected.
        fault: ParseError,
    },
    /// The duration of a firing is shorter or longer than is allowed.
    #[error("duration: {fault}")]
    DurationOutOfBounds {
        /// The duration and its bounds.
        fault: OutOfBounds,
    },
    /// There is no such time zone.
    #[error(
        "time zone: '{name}' is not in the tz database; use an IANA name such as 'Europe/Zurich'"
    )]
    UnknownTimeZone {
        /// The name that was given.
        name: String,
    },
    /// There are no days, or no hours, so that nothing would ever be wanted.
    #[error("days and hours: both must be given, and {missing} are missing")]
    Incomplete {
        /// `days`, `hours`, or `days and hours`.
        missing: &'static str,
    },
}

impl Schedule {
    /// A schedule of days and hours, each the union of the entries of its list.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::Schedule;
    ///
    /// let nights = Schedule::weekly(&["fri-mon"], &["22-6", "12"], "Asia/Kathmandu")?;
    /// assert_eq!(nights.zone_name(), "Asia/Kathmandu");
    ///
    /// let error = Schedule::weekly(&["mon"], &["8", "9-25"], "UTC").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "hours[1]: expected an hour from 0 to 23 at byte 2, found '25'",
    /// );
    /// # Ok::<_, fivespot_schedule::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first entry that cannot be read, days first; a list without entries; a zone that is
    /// not in the tz database.
    pub fn weekly(
        days: &[impl AsRef<str>],
        hours: &[impl AsRef<str>],
        zone: &str,
    ) -> Result<Self, Error> {
        let days = union(days, |entry, fault| Error::Days { entry, fault })?;
        let hours = union(hours, |entry, fault| Error::Hours { entry, fault })?;
        let missing = match (days, hours) {
            (Some(days), Some(hours)) => {
                let rule = Rule::Weekly(Week::new(days, hours));
                return Ok(Self {
                    rule,
                    zone: known(zone)?,
                });
            }
            (None, Some(_)) => "days",
            (Some(_), None) => "hours",
            (None, None) => "days and hours",
        };
        Err(Error::Incomplete { missing })
    }

    /// A schedule of firings, each of which keeps a machine wanted for `duration`:
    /// [`USUAL_FIRING`] if that is absent, otherwise from [`SHORTEST_FIRING`] to
    /// [`LONGEST_FIRING`].
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::Schedule;
    ///
    /// let error = Schedule::cron("0 9 * * 1-5", Some("200h"), "UTC").unwrap_err();
    /// assert_eq!(error.to_string(), "duration: must be from 1m to 168h, not 200h");
    /// ```
    ///
    /// # Errors
    /// An expression or a duration that cannot be read, a duration out of bounds, a zone that is
    /// not in the tz database. An expression that can never fire is none: see [`Cron::can_fire`].
    pub fn cron(expr: &str, duration: Option<&str>, zone: &str) -> Result<Self, Error> {
        let cron = expr.parse().map_err(|fault| Error::Cron { fault })?;
        let duration = match duration {
            None => USUAL_FIRING,
            Some(text) => text
                .parse::<Duration>()
                .map_err(|fault| Error::Duration { fault })?
                .within(SHORTEST_FIRING, LONGEST_FIRING)
                .map_err(|fault| Error::DurationOutOfBounds { fault })?,
        };
        let rule = Rule::Firings(Firings::new(cron, duration));
        Ok(Self {
            rule,
            zone: known(zone)?,
        })
    }

    /// Whether a machine is wanted at `now`, and the exact instant at which that changes.
    ///
    /// # Guarantees
    /// Cannot fail. `until` is later than `now`, a whole second, at most ten years away, and the
    /// first instant at which the answer is another; between `now` and `until` it is the same.
    /// Where the calendar ends (years -9999 and 9999) nothing is wanted.
    pub fn at(&self, now: Timestamp) -> Window {
        let second = now.as_second() - i64::from(now.subsec_nanosecond() < 0);
        let state = match &self.rule {
            Rule::Weekly(week) => edge::of_week(*week, &self.zone, second),
            Rule::Firings(firings) => firings.at(&self.zone, second),
        };
        let State { wanted, until } = state.unwrap_or(State::UNKNOWN);
        let until = until.and_then(|until| Timestamp::from_second(until).ok());
        if wanted {
            Window::Open { until }
        } else {
            Window::Closed { until }
        }
    }

    /// Every change after `from` and before `to`, in order.
    ///
    /// # Example
    /// ```
    /// # use fivespot_schedule::Schedule;
    /// let noon = Schedule::weekly(&["mon"], &["12"], "UTC")?;
    /// let changes = noon.transitions("2026-01-05T00:00:00Z".parse()?, "2026-01-06T00:00:00Z".parse()?);
    /// let changes: Vec<String> = changes.map(|(at, wanted)| format!("{at} {wanted}")).collect();
    /// assert_eq!(changes, ["2026-01-05T12:00:00Z true", "2026-01-05T13:00:00Z false"]);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn transitions(&self, from: Timestamp, to: Timestamp) -> Transitions<'_> {
        Transitions::new(self, from, to)
    }

    /// The zone's name in the spelling of the tz database.
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The zone in which days, hours and cron are read.
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The cron expression, if that is what the schedule is made of.
    pub fn cron_expression(&self) -> Option<(&Cron, Duration)> {
        match &self.rule {
            Rule::Weekly(_) => None,
            Rule::Firings(firings) => Some((firings.cron(), firings.duration())),
        }
    }
}

/// The union of all entries; none if there are no entries.
fn union<T>(
    entries: &[impl AsRef<str>],
    error: impl Fn(usize, ParseError) -> Error,
) -> Result<Option<T>, Error>
where
    T: std::str::FromStr<Err = ParseError> + std::ops::BitOr<Output = T>,
{
    let mut all = None;
    for (entry, text) in entries.iter().enumerate() {
        let some: T = text.as_ref().parse().map_err(|fault| error(entry, fault))?;
        all = Some(match all {
            None => some,
            Some(others) => others | some,
        });
    }
    Ok(all)
}

fn known(name: &str) -> Result<TimeZone, Error> {
    zone(name).ok_or_else(|| Error::UnknownTimeZone {
        name: name.to_owned(),
    })
}

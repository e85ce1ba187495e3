//! When a machine is wanted: days, hours and cron in a time zone, and the next change after an
//! instant.
//!
//! The main query is [`Schedule::at`]: whether a machine is wanted now, and when that changes.
//! The caller can sleep until then. The result depends only on the schedule, the instant and
//! the tz database of the process ([`zone_data`]: the embedded one unless another was set). The
//! crate does not read a clock.
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
//! Both are compared at the same instant: `fri` with `22-6` is Friday before 07:00 and Friday
//! from 22:00, not the night from Friday to Saturday. `9-17` is 09:00:00 to 17:59:59.
//!
//! # Cron
//!
//! Each firing opens a window of the given duration, which is elapsed time. Adjacent or
//! overlapping windows are merged. A window that opened before the queried instant counts.
//!
//! # Windows
//!
//! A window has a start and either an end or a duration, to the minute. It belongs to the local
//! day on which it starts: `fri` from `22:00` to `06:00` is the night from Friday to Saturday.
//! An end that is not after the start is on the next day. Adjacent or overlapping windows are
//! merged.
//!
//! # Clock changes
//!
//! | | days and hours | cron | windows |
//! |---|---|---|---|
//! | local time is skipped | that time does not occur: 02:00 to 03:00 does not open | all firings in it are one, at the first instant after it | starts and ends in it are at the first instant after it |
//! | local time is repeated | both times count: one hour is open for two hours | fires both times | starts at the first time, ends at the second |
//! | a local day is skipped | that day does not occur | its firings are one, at the first instant after it | its starts and ends are at the first instant after it |
//!
//! # Exceptions, overrides, lead time
//!
//! The state of a schedule is decided by the first that applies: an [`Override`] in force, an
//! [`Exception`] with the local date, the schedule as described above. [`Schedule::needed`]
//! returns when a machine must exist for that: from a lead time before, and until some time
//! before the end.
//!
//! Offsets may be any number of seconds and may change at any second. Half-hour shifts, zones
//! at +05:45 and local mean time before standard time need no special handling.
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

mod clock;
mod cron;
mod duration;
mod effective;
mod error;
mod exception;
mod need;
mod next_change;
mod offset_period;
mod overriding;
mod parse;
mod part;
mod set;
mod span_search;
mod steps;
mod timeline;
mod transition;
mod week;
mod window;
mod zone;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use crate::cron::Cron;
pub use crate::duration::{Duration, OutOfBounds};
pub use crate::effective::{Cause, DecidedBy};
pub use crate::error::Error;
pub use crate::exception::{DateEntry, Dates, Exception, ExceptionAction};
pub use crate::need::{Need, NeededSpan, NeededSpans};
pub use crate::overriding::{Override, OverrideMode};
pub use crate::parse::ParseError;
pub use crate::part::{Part, Parts};
pub use crate::steps::Steps;
pub use crate::transition::Transitions;
pub use crate::week::{Days, Hours};
pub use crate::window::WindowText;
pub use crate::zone::{
    ZoneData, ZoneRelease, ZoneSource, embedded_release, use_zone_data, zone, zone_data,
    zone_names,
};

use crate::clock::Clock;
use crate::exception::Exceptions;
use crate::next_change::{CronWindows, State};
use crate::overriding::Overrides;
use crate::timeline::Timeline;
use crate::week::Week;
use crate::window::Windows;

/// The shortest duration of a window.
pub const MIN_WINDOW: Duration = Duration::minutes(1);

/// The longest duration of a window: a week.
pub const MAX_WINDOW: Duration = Duration::hours(168);

/// The duration of a window that a cron expression opens, if none is given.
pub const DEFAULT_CRON_DURATION: Duration = Duration::hours(1);

/// When a machine is wanted: a base schedule, its time zone, its exceptions and overrides; and
/// how much earlier a machine is needed and no longer needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    base: Base,
    zone: TimeZone,
    exceptions: Exceptions,
    overrides: Overrides,
    lead_time: Duration,
    early_end: Duration,
}

/// A schedule without exceptions and overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Weekly(Week),
    Cron(CronWindows),
    Windows(Windows),
    /// Another schedule, in a time zone of its own.
    Shared(Box<Schedule>),
}

impl Base {
    fn at(&self, clock: &mut Clock<'_>, now: i64) -> Option<State> {
        match self {
            Self::Weekly(week) => next_change::of_week(*week, clock, now),
            Self::Cron(windows) => windows.at(clock, now),
            Self::Windows(windows) => windows.at(clock, now),
            Self::Shared(shared) => {
                let mut timeline = Timeline::new(shared, None);
                let state = timeline.state(now);
                clock.count(timeline.clock().take_steps());
                state
            }
        }
    }
}

/// The state of a schedule at an instant, and when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// A machine is wanted.
    Open {
        /// The first later instant at which it is not wanted; `None` if there is none within
        /// ten years.
        until: Option<Timestamp>,
    },
    /// No machine is wanted.
    Closed {
        /// The first later instant at which it is wanted; `None` if there is none within ten
        /// years.
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

    /// When that changes; `None` if it does not within ten years.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Open { until } | Self::Closed { until } => until,
        }
    }
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
    /// The first entry that cannot be parsed, days first; a list without entries; a zone that
    /// is not in the tz database.
    pub fn weekly(
        days: &[impl AsRef<str>],
        hours: &[impl AsRef<str>],
        zone: &str,
    ) -> Result<Self, Error> {
        Self::new(Base::Weekly(week(days, hours)?), zone)
    }

    /// A schedule of sessions: a machine is wanted in the hours of each on its days.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::{Schedule, SessionText};
    ///
    /// let morning = SessionText { days: &["mon-fri"], hours: &["9-11"] };
    /// let afternoon = SessionText { days: &["mon-thu"], hours: &["13-16"] };
    /// let schedule = Schedule::sessions(&[morning, afternoon], "UTC")?;
    /// // A Friday.
    /// assert!(schedule.at("2026-03-06T11:59:59Z".parse()?).is_open());
    /// assert!(!schedule.at("2026-03-06T13:00:00Z".parse()?).is_open());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No session; the first session that is invalid, as in [`Schedule::weekly`]; a zone that is
    /// not in the tz database.
    pub fn sessions<T: AsRef<str>>(
        sessions: &[SessionText<'_, T>],
        zone: &str,
    ) -> Result<Self, Error> {
        let mut all = Week::default();
        for (session, text) in sessions.iter().enumerate() {
            let own = week(text.days, text.hours).map_err(|error| Error::Session {
                session,
                error: Box::new(error),
            })?;
            all = all.union(own);
        }
        if sessions.is_empty() {
            return Err(Error::NoSessions);
        }
        Self::new(Base::Weekly(all), zone)
    }

    /// A schedule in which no machine is ever wanted, except by overrides and exceptions.
    ///
    /// # Errors
    /// A zone that is not in the tz database.
    pub fn never(zone: &str) -> Result<Self, Error> {
        Self::new(Base::Weekly(Week::default()), zone)
    }

    /// A schedule of firings, each of which opens a window of `duration`. The default is
    /// [`DEFAULT_CRON_DURATION`], the bounds are [`MIN_WINDOW`] and [`MAX_WINDOW`].
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
    /// An expression or a duration that cannot be parsed, a duration out of bounds, a zone that
    /// is not in the tz database. An expression that never fires is not an error: see
    /// [`Cron::can_fire`].
    pub fn cron(expr: &str, duration: Option<&str>, zone: &str) -> Result<Self, Error> {
        let cron = expr.parse().map_err(|error| Error::Cron { error })?;
        let duration = match duration {
            None => DEFAULT_CRON_DURATION,
            Some(text) => text
                .parse::<Duration>()
                .map_err(|error| Error::Duration { error })?
                .within(MIN_WINDOW, MAX_WINDOW)
                .map_err(|error| Error::DurationOutOfBounds { error })?,
        };
        Self::new(Base::Cron(CronWindows::new(cron, duration)), zone)
    }

    /// A schedule of windows. Adjacent or overlapping windows are merged.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::{Schedule, WindowText};
    ///
    /// let night = WindowText {
    ///     name: "night", days: &["fri"], start: "22:00", end: Some("06:00"), duration: None,
    /// };
    /// let schedule = Schedule::windows(&[night], "Europe/Zurich")?;
    /// // Saturday, 05:59 in Zurich.
    /// assert!(schedule.at("2026-03-07T04:59:00Z".parse()?).is_open());
    ///
    /// let error = Schedule::windows(&[WindowText { start: "24:00", ..night }], "UTC").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "windows[night].start: expected a time of day from 00:00 to 23:59, found '24:00'",
    /// );
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No window; the first window that cannot be parsed, or that does not have exactly one of
    /// end and duration; a zone that is not in the tz database.
    pub fn windows<D: AsRef<str>>(
        windows: &[WindowText<'_, D>],
        zone: &str,
    ) -> Result<Self, Error> {
        Self::new(Base::Windows(Windows::parse(windows)?), zone)
    }

    fn new(base: Base, zone: &str) -> Result<Self, Error> {
        Ok(Self {
            base,
            zone: known(zone)?,
            exceptions: Exceptions::default(),
            overrides: Overrides::default(),
            lead_time: Duration::ZERO,
            early_end: Duration::ZERO,
        })
    }

    /// A schedule in which a machine is wanted whenever it is in `shared`, with exceptions of its
    /// own in its own time zone. Lead time and early end of `shared` are not used.
    ///
    /// # Errors
    /// A zone that is not in the tz database.
    pub fn following(shared: Self, zone: &str) -> Result<Self, Error> {
        Self::new(Base::Shared(Box::new(shared)), zone)
    }

    /// A schedule in which a machine is always wanted, except by overrides and exceptions.
    ///
    /// # Errors
    /// A zone that is not in the tz database.
    pub fn always(zone: &str) -> Result<Self, Error> {
        Self::new(Base::Weekly(Week::always()), zone)
    }

    /// Replaces the exceptions. The first one that contains a date decides about it.
    #[must_use]
    pub fn with_exceptions(self, exceptions: Vec<Exception>) -> Self {
        Self {
            exceptions: Exceptions::of(exceptions),
            ..self
        }
    }

    /// Replaces the overrides.
    #[must_use]
    pub fn with_overrides(self, overrides: Vec<Override>) -> Self {
        Self {
            overrides: Overrides::of(overrides),
            ..self
        }
    }

    /// Adds one override.
    #[must_use]
    pub fn and_override(self, more: Override) -> Self {
        let all = self.overrides.into_all().into_iter().chain([more]);
        Self {
            overrides: Overrides::of(all.collect()),
            ..self
        }
    }

    /// The schedule for queries about the past: an override without a start applies from its
    /// creation on.
    #[must_use]
    pub fn looking_back(self) -> Self {
        let mut all = self.overrides.into_all();
        for of in &mut all {
            of.start = of.start.max(of.created);
        }
        Self {
            overrides: Overrides::of(all),
            ..self
        }
    }

    /// Sets how long before it is wanted a machine is needed; see [`Schedule::needed`].
    #[must_use]
    pub fn with_lead_time(self, lead_time: Duration) -> Self {
        Self { lead_time, ..self }
    }

    /// Sets how long before it is no longer wanted a machine is no longer needed.
    #[must_use]
    pub fn with_early_end(self, early_end: Duration) -> Self {
        Self { early_end, ..self }
    }

    /// Whether a machine is wanted at `now`, and the exact instant at which that changes.
    ///
    /// # Guarantees
    /// Cannot fail. `until` is later than `now`, a whole second, at most ten years away, and
    /// the first instant with another state; between `now` and `until` the state is constant.
    /// Beyond the calendar (years -9999 to 9999) no machine is wanted.
    pub fn at(&self, now: Timestamp) -> Window {
        Timeline::new(self, None).window(now)
    }

    /// As [`Schedule::at`], and takes the steps of it from a budget. It is exact also if they do
    /// not suffice: the work is bounded by the dates of ten years, not by the windows in them.
    pub fn at_within(&self, now: Timestamp, steps: &Steps) -> Window {
        let mut timeline = Timeline::new(self, None);
        let window = timeline.window(now);
        steps.take(timeline.clock().take_steps());
        window
    }

    /// How long before it is wanted a machine is needed.
    pub fn lead_time(&self) -> Duration {
        self.lead_time
    }

    /// How long before it is no longer wanted a machine is no longer needed.
    pub fn early_end(&self) -> Duration {
        self.early_end
    }

    /// The zone's name in the spelling of the tz database.
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The zone of days, hours and cron.
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The cron expression and the duration. `None` if the schedule has another form.
    pub fn cron_expression(&self) -> Option<(&Cron, Duration)> {
        match &self.base {
            Base::Weekly(_) | Base::Windows(_) => None,
            Base::Shared(shared) => shared.cron_expression(),
            Base::Cron(windows) => Some((windows.cron(), windows.duration())),
        }
    }
}

/// The days and hours of a session, as lists of texts like those of [`Schedule::weekly`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionText<'t, T> {
    /// The days.
    pub days: &'t [T],
    /// The hours.
    pub hours: &'t [T],
}

/// The hours of the days.
fn week(days: &[impl AsRef<str>], hours: &[impl AsRef<str>]) -> Result<Week, Error> {
    let days = union(days, |entry, error| Error::Days { entry, error })?;
    let hours = union(hours, |entry, error| Error::Hours { entry, error })?;
    let missing = match (days, hours) {
        (Some(days), Some(hours)) => return Ok(Week::new(days, hours)),
        (None, Some(_)) => "days",
        (Some(_), None) => "hours",
        (None, None) => "days and hours",
    };
    Err(Error::Incomplete { missing })
}

/// The union of all entries; `None` if there are no entries.
fn union<T>(
    entries: &[impl AsRef<str>],
    in_entry: impl Fn(usize, ParseError) -> Error,
) -> Result<Option<T>, Error>
where
    T: std::str::FromStr<Err = ParseError> + std::ops::BitOr<Output = T>,
{
    let mut all = None;
    for (entry, text) in entries.iter().enumerate() {
        let some: T = text
            .as_ref()
            .parse()
            .map_err(|error| in_entry(entry, error))?;
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

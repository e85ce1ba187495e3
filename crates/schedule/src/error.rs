//! The errors of an invalid schedule.

use crate::{OutOfBounds, ParseError};

/// Why a schedule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An entry of the list of days cannot be parsed.
    #[error("days[{entry}]: {error}")]
    Days {
        /// The index of the entry in the list.
        entry: usize,
        /// Where in the entry, and what was expected.
        error: ParseError,
    },
    /// An entry of the list of hours cannot be parsed.
    #[error("hours[{entry}]: {error}")]
    Hours {
        /// The index of the entry in the list.
        entry: usize,
        /// Where in the entry, and what was expected.
        error: ParseError,
    },
    /// The cron expression cannot be parsed.
    #[error("cron: {error}")]
    Cron {
        /// Where in the expression, and what was expected.
        error: ParseError,
    },
    /// The duration of a firing cannot be parsed.
    #[error("duration: {error}")]
    Duration {
        /// Where in the text, and what was expected.
        error: ParseError,
    },
    /// The duration of a firing is out of bounds.
    #[error("duration: {error}")]
    DurationOutOfBounds {
        /// The duration and its bounds.
        error: OutOfBounds,
    },
    /// The time zone does not exist.
    #[error(
        "time zone: '{name}' is not in the tz database; use an IANA name such as 'Europe/Zurich'"
    )]
    UnknownTimeZone {
        /// The given name.
        name: String,
    },
    /// The days or the hours are missing, so that no machine would ever be wanted.
    #[error("days and hours: both must be given, and {missing} are missing")]
    Incomplete {
        /// `days`, `hours`, or `days and hours`.
        missing: &'static str,
    },
    /// The list of sessions is empty.
    #[error("sessions: must not be empty")]
    NoSessions,
    /// A session is invalid.
    #[error("sessions[{session}].{error}")]
    Session {
        /// The index of the session in the list.
        session: usize,
        /// What is invalid in it.
        error: Box<Error>,
    },
    /// The list of windows is empty.
    #[error("windows: must not be empty")]
    NoWindows,
    /// A member of a window cannot be parsed.
    #[error("windows[{window}].{member}: {error}")]
    Window {
        /// The name of the window.
        window: String,
        /// Its member: `days`, `start`, `end` or `duration`.
        member: &'static str,
        /// Where in the text, and what was expected.
        error: ParseError,
    },
    /// The duration of a window is out of bounds.
    #[error("windows[{window}].duration: {error}")]
    WindowOutOfBounds {
        /// The name of the window.
        window: String,
        /// The duration and its bounds.
        error: OutOfBounds,
    },
    /// A window has both an end and a duration, or neither.
    #[error("windows[{window}]: exactly one of end and duration must be set")]
    WindowEnd {
        /// The name of the window.
        window: String,
    },
    /// A date of an exception cannot be parsed.
    #[error("exceptions[{exception}]: {error}")]
    Exception {
        /// The name of the exception.
        exception: String,
        /// Where in the text, and what was expected.
        error: ParseError,
    },
}

//! Why a schedule cannot be understood.

use crate::{OutOfBounds, ParseError};

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
    /// There is no window.
    #[error("windows: must not be empty")]
    NoWindows,
    /// A member of a window cannot be read.
    #[error("windows[{window}].{member}: {fault}")]
    Window {
        /// The name of the window.
        window: String,
        /// Its member: `days`, `start`, `end` or `duration`.
        member: &'static str,
        /// Where in the text, and what was expected.
        fault: ParseError,
    },
    /// The duration of a window is shorter or longer than is allowed.
    #[error("windows[{window}].duration: {fault}")]
    WindowOutOfBounds {
        /// The name of the window.
        window: String,
        /// The duration and its bounds.
        fault: OutOfBounds,
    },
    /// A window has both an end and a duration, or neither.
    #[error("windows[{window}]: exactly one of end and duration must be set")]
    WindowEnd {
        /// The name of the window.
        window: String,
    },
    /// A date of an exception cannot be read.
    #[error("exceptions[{exception}]: {fault}")]
    Exception {
        /// The name of the exception.
        exception: String,
        /// Where in the text, and what was expected.
        fault: ParseError,
    },
}

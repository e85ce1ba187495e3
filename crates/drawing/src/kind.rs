//! The kinds of spans, with their labels and marks.

/// The kind of a span of a row.
///
/// The first six are planned, the others are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Wanted by a window of the schedule.
    Window,
    /// Wanted because of an exception.
    ExceptionRun,
    /// Not wanted because of an exception.
    ExceptionStop,
    /// Wanted because of an override.
    OverrideRun,
    /// Not wanted because of an override.
    OverrideStop,
    /// An override keeps the machine as it is.
    OverrideHold,
    /// A machine is being provisioned.
    Starting,
    /// A machine is in service.
    Running,
    /// A machine is being drained and removed.
    ShuttingDown,
    /// Something failed or needs manual action.
    Failed,
}

impl Kind {
    /// All kinds, in the order of the legend.
    pub const ALL: [Self; 10] = [
        Self::Window,
        Self::ExceptionRun,
        Self::ExceptionStop,
        Self::OverrideRun,
        Self::OverrideStop,
        Self::OverrideHold,
        Self::Starting,
        Self::Running,
        Self::ShuttingDown,
        Self::Failed,
    ];

    /// The label of the kind in legends and tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::ExceptionRun => "exception: run",
            Self::ExceptionStop => "exception: stop",
            Self::OverrideRun => "override: run",
            Self::OverrideStop => "override: stop",
            Self::OverrideHold => "override: hold",
            Self::Starting => "actual: starting",
            Self::Running => "actual: running",
            Self::ShuttingDown => "actual: shutting down",
            Self::Failed => "actual: failed",
        }
    }

    /// Whether the machine is wanted during such a span.
    pub fn is_wanted(self) -> bool {
        matches!(self, Self::Window | Self::ExceptionRun | Self::OverrideRun)
    }

    /// The suffix of its CSS class and of its pattern id.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::ExceptionRun => "xrun",
            Self::ExceptionStop => "xstop",
            Self::OverrideRun => "orun",
            Self::OverrideStop => "ostop",
            Self::OverrideHold => "hold",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::ShuttingDown => "leaving",
            Self::Failed => "failed",
        }
    }

    /// The character of a terminal cell of this kind. `None` for observed kinds.
    pub(crate) fn symbol(self) -> Option<char> {
        match self {
            Self::Window => Some('█'),
            Self::ExceptionRun => Some('E'),
            Self::ExceptionStop => Some('x'),
            Self::OverrideRun => Some('R'),
            Self::OverrideStop => Some('S'),
            Self::OverrideHold => Some('H'),
            Self::Starting | Self::Running | Self::ShuttingDown | Self::Failed => None,
        }
    }
}

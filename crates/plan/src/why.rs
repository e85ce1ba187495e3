//! Why something is as it is.

use fivespot_api::condition::{ConditionStatus, ConditionType, ConditionUpdate, Reason};
use jiff::Timestamp;

/// The reason of a condition, and the message about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl Why {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// The condition with this reason and message.
    pub(crate) fn condition(
        self,
        kind: ConditionType,
        status: impl Into<ConditionStatus>,
    ) -> ConditionUpdate {
        ConditionUpdate::new(kind, status, self.reason, self.message)
    }
}

/// What holds a machine for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) why: Why,
    /// When to ask again, in the future; `None` if something else than the time has to change.
    pub(crate) again: Option<Timestamp>,
}

impl Held {
    /// What a limit of the class holds, at least until `again`, which may have passed.
    pub(crate) fn by_limit(
        message: String,
        again: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        Self {
            why: Why::new(Reason::LimitReached, message),
            again: again.filter(|again| *again > now),
        }
    }
}

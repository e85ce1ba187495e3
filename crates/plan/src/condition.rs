//! A condition of the objects beside ScheduledMachines, as it was found now.

use fivespot_api::time::whole_seconds;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition without the time since when it holds.
pub(crate) struct Found {
    pub(crate) kind: &'static str,
    pub(crate) holds: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Found {
    pub(crate) fn new(
        kind: &'static str,
        holds: bool,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            holds,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// The condition. Its time is that of the stored one unless its status has changed.
    pub(crate) fn after(
        self,
        before: &[Condition],
        generation: Option<i64>,
        now: Timestamp,
    ) -> Condition {
        let status = if self.holds { "True" } else { "False" };
        let mut earlier = before.iter();
        let since = earlier.find(|of| of.type_ == self.kind && of.status == status);
        Condition {
            type_: self.kind.to_owned(),
            status: status.to_owned(),
            reason: self.reason,
            message: self.message,
            last_transition_time: since.map_or_else(
                || Time(whole_seconds(now)),
                |of| of.last_transition_time.clone(),
            ),
            observed_generation: generation,
        }
    }
}

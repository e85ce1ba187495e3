//! A ScheduledCapacity, as its row shows it.

use fivespot_api::ScheduledCapacity;
use fivespot_api::verdict::capacity::verdict;
use fivespot_api::verdict::{Lease, Verdict};
use jiff::Timestamp;

use crate::undecoded::UndecodedCapacity;

/// The last observed state of a ScheduledCapacity.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    /// The object; or why it cannot be decoded.
    object: Result<ScheduledCapacity, String>,
}

impl Capacity {
    /// The name of the kind in notices.
    pub(crate) const KINDS: &str = "ScheduledCapacities";

    /// Reads an object. One that cannot be decoded has the error as its message.
    pub(crate) fn of(undecoded: UndecodedCapacity) -> Self {
        let UndecodedCapacity {
            metadata,
            spec,
            status,
            ..
        } = undecoded;
        let read = || {
            Ok(ScheduledCapacity {
                metadata,
                spec: serde_json::from_value(spec)?,
                status: serde_json::from_value(status)?,
            })
        };
        Self {
            object: read().map_err(|error: serde_json::Error| error.to_string()),
        }
    }

    /// The object, if it can be decoded.
    pub(crate) fn object(&self) -> Option<&ScheduledCapacity> {
        self.object.as_ref().ok()
    }

    /// The verdict that every command shows too.
    pub(crate) fn verdict(&self, lease: &Lease, now: Timestamp) -> Verdict {
        match &self.object {
            Ok(object) => verdict(object, lease, now),
            Err(error) => Verdict::undecoded(error),
        }
    }
}

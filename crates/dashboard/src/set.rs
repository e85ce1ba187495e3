//! A ScheduledMachineSet, as its row shows it.

use fivespot_api::ScheduledMachineSet;
use fivespot_api::condition::{self, ConditionType};

use crate::undecoded::UndecodedSet;

/// The last observed numbers of a ScheduledMachineSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    /// How many machines there should be; `None` if the object cannot be decoded.
    pub(crate) wanted: Option<u32>,
    /// How many there are, how many are Active, and how many Ready; `None` before the first status.
    pub(crate) exist: Option<i32>,
    pub(crate) active: Option<i32>,
    pub(crate) ready: Option<i32>,
    /// What the operator says of it; or why it cannot be decoded.
    pub(crate) message: String,
}

impl Set {
    /// The name of the kind in notices.
    pub(crate) const KINDS: &str = "ScheduledMachineSets";

    /// Reads an object. One that cannot be decoded has the error as its message.
    pub(crate) fn of(undecoded: UndecodedSet) -> Self {
        let UndecodedSet {
            metadata,
            spec,
            status,
            ..
        } = undecoded;
        let read = || {
            Ok(ScheduledMachineSet {
                metadata,
                spec: serde_json::from_value(spec)?,
                status: serde_json::from_value(status)?,
            })
        };
        let set = match read() {
            Ok(set) => set,
            Err(error) => return Self::undecoded(&error),
        };
        let status = set.status.unwrap_or_default();
        let ready = condition::find(&status.conditions, ConditionType::Ready);
        let message =
            ready.map_or("the operator has not reported on it yet", |it| &it.message);
        Self {
            wanted: Some(set.spec.replicas),
            exist: status.replicas,
            active: status.active_replicas,
            ready: status.ready_replicas,
            message: message.to_owned(),
        }
    }

    fn undecoded(error: &serde_json::Error) -> Self {
        Self {
            wanted: None,
            exist: None,
            active: None,
            ready: None,
            message: format!("cannot be decoded: {error}"),
        }
    }
}

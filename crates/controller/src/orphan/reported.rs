//! Which Machines without a ScheduledMachine have been reported.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The uids of the Machines that have been reported.
#[derive(Debug, Default)]
pub(crate) struct ReportedOrphans(Mutex<BTreeSet<String>>);

impl ReportedOrphans {
    /// Returns those of `all` that have not been reported, and records `all` as reported. Other
    /// Machines are forgotten.
    pub(super) fn unreported(&self, all: Vec<Value>) -> Vec<Value> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = |it: &Value| {
            it["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let now = all.iter().map(uid).collect();
        let before = std::mem::replace(&mut *reported, now);
        let is_new = |it: &Value| !before.contains(&uid(it));
        all.into_iter().filter(is_new).collect()
    }
}

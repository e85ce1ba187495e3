//! Which Machines without a ScheduledMachine have been reported.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::Key;

/// The uids of the Machines that have been reported.
#[derive(Debug, Default)]
pub(crate) struct ReportedOrphans(Mutex<BTreeMap<Key, String>>);

impl ReportedOrphans {
    /// Records that the Machine of a ScheduledMachine that is gone has that uid, or that it has none.
    /// Returns whether that is new.
    pub(super) fn is_new(&self, key: &Key, uid: Option<&str>) -> bool {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match uid {
            Some(uid) => reported.insert(key.clone(), uid.to_owned()),
            None => reported.remove(key),
        };
        before.as_deref() != uid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_reported_once_and_another_of_its_name_again() {
        let reported = ReportedOrphans::default();
        let is_new = |name, uid| reported.is_new(&Key::new("default", name), uid);
        assert!(is_new("worker", Some("a")));
        assert!(!is_new("worker", Some("a")));
        assert!(is_new("other", Some("c")));
        assert!(is_new("worker", Some("b")));
        assert!(is_new("worker", None));
        assert!(is_new("worker", Some("b")));
        assert!(!is_new("other", Some("c")));
    }
}

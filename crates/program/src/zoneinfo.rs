//! Selects the tz database of this process: that of a given directory, the system's, or the
//! embedded one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::{Arg, value_parser};
use fivespot_schedule::{ZoneData, ZoneRelease, ZoneSource, embedded_release};

use crate::Failure;

/// The name of [`flag`].
pub const FLAG: &str = "zoneinfo";

/// The directories of the system's tz database.
const SYSTEM: [&str; 3] = [
    "/usr/share/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/etc/zoneinfo",
];

/// The first bytes of every TZif file (RFC 9636).
const MAGIC: &[u8] = b"TZif";

/// The largest size of a zone file; real ones have a few KiB.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// The largest number of entries; a release has about 600 names and a dozen other files.
const MAX_ENTRIES: usize = 4096;
/// The largest depth; directories of zones have at most three levels, as in `America/Indiana/Knox`.
const MAX_DEPTH: usize = 4;

/// Top-level entries that are not zones: copies of the zones with or without leap seconds, and the
/// setting of this machine.
const IGNORED: [&str; 4] = ["posix", "right", "localtime", "posixrules"];

/// The flag that selects the tz database, with a path as its value.
pub fn flag() -> Arg {
    Arg::new(FLAG)
        .long(FLAG)
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help(
            "Directory of compiled time zones [default: $TZDIR, then the newer of the system's \
             and the embedded ones]",
        )
}

/// Selects the tz database of this process and sets it, before any schedule is read.
///
/// Returns a warning about the given directory, if any.
///
/// # Errors
/// The given directory cannot be read or contains no zones.
pub fn start(named: Option<&Path>) -> Result<Option<String>, Failure> {
    let choice = choose(named, std::env::var_os("TZDIR"), &SYSTEM.map(Path::new))?;
    let (data, warning) = choice;
    // No zone has been used yet. A second call has no effect.
    let _ = fivespot_schedule::use_zone_data(data);
    Ok(warning)
}

/// The directory of `--zoneinfo`, else of `$TZDIR`, whatever its release; otherwise the newer of
/// the system's and the embedded data.
fn choose(
    named: Option<&Path>,
    tzdir: Option<OsString>,
    system: &[&Path],
) -> Result<(ZoneData, Option<String>), Failure> {
    let tzdir = tzdir.filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let (dir, named_by) = match (named, &tzdir) {
        (Some(dir), _) => (dir, "--zoneinfo"),
        (None, Some(dir)) => (dir.as_path(), "$TZDIR"),
        (None, None) => return Ok((newest(system), None)),
    };
    let data = read(dir, ZoneSource::Directory).map_err(|error| {
        let what = format!("reading time zones from {} ({named_by})", dir.display());
        Failure::new(what, error)
            .remedy("give a directory of compiled zones, such as /usr/share/zoneinfo")
    })?;
    let warning = is_older(data.release()).then(|| {
        format!(
            "the time zones in {} ({named_by}) are release {}, older than the embedded release \
             {}; unset {named_by} to use the newer one",
            dir.display(),
            data.release(),
            embedded_release(),
        )
    });
    Ok((data, warning))
}

/// The system's data if it is newer than the embedded one and can be read, else the embedded one.
fn newest(system: &[&Path]) -> ZoneData {
    let later = |dir: &&&Path| {
        let release = release(dir);
        let release = release.as_deref().and_then(ZoneRelease::parse);
        release > ZoneRelease::parse(embedded_release())
    };
    let newer = system.iter().find(later);
    newer
        .and_then(|dir| read(dir, ZoneSource::System).ok())
        .unwrap_or_else(ZoneData::embedded)
}

/// Whether a release is older than the embedded data. An unknown release counts as older.
fn is_older(release: &str) -> bool {
    ZoneRelease::parse(release) < ZoneRelease::parse(embedded_release())
}

/// The release of a directory, from the first line of its `tzdata.zi`: `# version 2026a`; else of
/// its `+VERSION`: `2026a`.
fn release(dir: &Path) -> Option<String> {
    let first_line = |name: &str| {
        let mut front = String::new();
        let file = File::open(dir.join(name)).ok()?;
        file.take(64).read_to_string(&mut front).ok()?;
        Some(front.lines().next()?.trim().to_owned())
    };
    let version = |line: String| Some(line.strip_prefix("# version ")?.to_owned());
    let named = first_line("tzdata.zi").and_then(version);
    named.or_else(|| first_line("+VERSION"))
}

/// Reads the whole directory at once, so that an update of the system's package has no effect.
fn read(dir: &Path, source: ZoneSource) -> io::Result<ZoneData> {
    let mut walk = Walk::default();
    walk.directory(dir, "")?;
    if walk.zones.is_empty() {
        return Err(io::Error::other("it contains no compiled zone (TZif file)"));
    }
    Ok(ZoneData::of_files(source, release(dir), walk.zones))
}

/// The data that was read of a directory so far.
#[derive(Default)]
struct Walk {
    zones: Vec<(String, Vec<u8>)>,
    entries: usize,
}

impl Walk {
    /// Adds the zones below `dir`, whose names begin with `prefix`.
    fn directory(&mut self, dir: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let error = format!("it contains more than {MAX_ENTRIES} files");
                return Err(io::Error::other(error));
            }
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let is_ignored = prefix.is_empty() && IGNORED.contains(&&*name);
            if is_part_of_a_name(&name) && !is_ignored {
                self.entry(&entry.path(), format!("{prefix}{name}"))?;
            }
        }
        Ok(())
    }

    /// Adds the zones of one entry. Links are followed, because zones with two names are often
    /// links. A broken link is ignored.
    fn entry(&mut self, path: &Path, name: String) -> io::Result<()> {
        let Ok(meta) = fs::metadata(path) else {
            return Ok(());
        };
        if meta.is_dir() && name.split('/').count() < MAX_DEPTH {
            return self.directory(path, &format!("{name}/"));
        }
        if meta.is_file() && meta.len() <= MAX_FILE_BYTES {
            let mut bytes = Vec::new();
            File::open(path)?
                .take(MAX_FILE_BYTES)
                .read_to_end(&mut bytes)?;
            if bytes.starts_with(MAGIC) {
                self.zones.push((name, bytes));
            }
        }
        Ok(())
    }
}

/// Whether it is a valid component of a zone's name.
fn is_part_of_a_name(part: &str) -> bool {
    let begins = part
        .bytes()
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic());
    begins
        && part
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"+-_".contains(&it))
}

#[cfg(test)]
mod tests;

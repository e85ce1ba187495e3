//! The owner's switch: a file by which a user of the host asks for it, without rights in a cluster.
//!
//! Each user has one file, `reclaim-<uid>`, in a directory in which everybody may create files and
//! remove their own, as in `/tmp`. It is empty, or has the instant at which the reclaim ends.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{Now, Signal, Source};
use crate::bounded::{self, is_missing};

/// The beginning of a file's name, before the uid.
const PREFIX: &str = "reclaim-";
/// How many entries of the directory are looked at; other users may create more.
const MAX_ENTRIES: usize = 4096;
/// The maximum size of a file in bytes; an instant is shorter.
const MAX_BYTES: u64 = 64;

/// Stands while the file of any user does.
#[derive(Clone, Debug)]
pub struct OwnerSwitch {
    directory: PathBuf,
}

/// A reclaim by a user of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnerRequest {
    since: Option<Timestamp>,
    /// `None`: until it is taken back.
    until: Option<Timestamp>,
}

/// The files of users in the directory.
#[derive(Debug, Default)]
struct Entries {
    files: Vec<PathBuf>,
    /// Why there may be more.
    unread: Option<io::Error>,
}

impl OwnerSwitch {
    /// The switch whose files are in this directory. It need not exist yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Writes this user's file, in place of an earlier one.
    ///
    /// # Errors
    /// The directory does not exist, or another user has taken the name of the file.
    ///
    /// # Guarantees
    /// A reader finds the earlier file or this one, whole.
    pub fn reclaim(&self, until: Option<Timestamp>) -> io::Result<()> {
        let text = until.map_or_else(String::new, |until| format!("{until}\n"));
        let new = self.directory.join(format!(".new-{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&new)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| {
            let uid = file.metadata()?.uid();
            fs::rename(&new, self.directory.join(format!("{PREFIX}{uid}")))
        });
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Removes this user's file, or every file where the user may, as root. Returns how many there
    /// were.
    ///
    /// # Errors
    /// The directory cannot be read or has too many entries, or a file cannot be removed for another
    /// reason than that it belongs to somebody else.
    pub fn take_back(&self) -> io::Result<usize> {
        let mut number = 0;
        let Entries { files, unread } = self.entries()?;
        for path in files {
            match fs::remove_file(path) {
                Ok(()) => number += 1,
                Err(error) if is_missing(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
        unread.map_or(Ok(number), Err)
    }

    /// The files of users. One that does not belong to the user of its name is none: so each user
    /// has one at most, however many files somebody creates.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn entries(&self) -> io::Result<Entries> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Ok(Entries::default()),
            Err(error) => return Err(error),
        };
        let mut entries = entries.into_iter();
        let named = entries.by_ref().take(MAX_ENTRIES).filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let uid: u32 = name.to_str()?.strip_prefix(PREFIX)?.parse().ok()?;
            (entry.metadata().ok()?.uid() == uid).then(|| entry.path())
        });
        let files = named.collect();
        let unread = entries.next().map(|_| {
            io::Error::other(format!(
                "{} has more than {MAX_ENTRIES} entries, and a request may be among those that are \
                 not read; remove what is no request",
                self.directory.display()
            ))
        });
        Ok(Entries { files, unread })
    }
}

impl Source for OwnerSwitch {
    fn name(&self) -> String {
        "owner's switch".to_owned()
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }

    fn read(&mut self, now: Now) -> io::Result<Option<Signal>> {
        let mut longest: Option<OwnerRequest> = None;
        let Entries { files, unread } = self.entries()?;
        let mut failed = unread;
        for path in files {
            let request = match read(&path) {
                Ok(request) => request,
                Err(error) if is_missing(&error) => continue,
                Err(error) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    failed =
                        Some(io::Error::new(error.kind(), format!("{name}: {error}")));
                    continue;
                }
            };
            if request.until.is_some_and(|until| until <= now.time) {
                continue;
            }
            let is_longer = |than: OwnerRequest| match (request.until, than.until) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(this), Some(other)) => this > other,
            };
            if longest.is_none_or(is_longer) {
                longest = Some(request);
            }
        }
        // What cannot be read hides nothing that can.
        match (longest, failed) {
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
            (Some(OwnerRequest { since, until }), _) => Ok(Some(Signal {
                reason: match until {
                    Some(until) => format!("owner: until {until}"),
                    None => "owner: until it is taken back".to_owned(),
                },
                since,
                until,
            })),
        }
    }
}

fn read(path: &Path) -> io::Result<OwnerRequest> {
    let (text, found) = bounded::read(path, MAX_BYTES)?;
    let until = match text.trim() {
        "" => None,
        text => Some(text.parse::<Timestamp>().map_err(|_| {
            io::Error::other("must be empty, or a time such as 2026-03-08T07:00:00Z")
        })?),
    };
    Ok(OwnerRequest {
        since: Timestamp::from_second(found.mtime()).ok(),
        until,
    })
}

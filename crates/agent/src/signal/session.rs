//! Login sessions, as systemd-logind records them.
//!
//! From `/run/systemd/sessions`, which `libsystemd` reads too. The files are private to systemd, so
//! a key that is missing or unknown counts as no session. The bus has the same and more, such as
//! whether the screen is locked; its client would bring more code than the rest of the agent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Now, Signal, Source};
use crate::bounded::{self, is_missing};

/// How many sessions are read; a host has a few.
const MAX_SESSIONS: usize = 256;
/// The maximum size of a session's file in bytes; systemd writes less than a kilobyte.
const MAX_BYTES: u64 = 16 * 1024;

/// Which sessions count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Those at this host.
    Local,
    /// Those through the network too.
    All,
}

/// Stands while a person is logged in, and in the foreground of a seat or connected.
#[derive(Clone, Debug)]
pub struct Sessions {
    directory: PathBuf,
    counted: Counted,
}

impl Sessions {
    /// The sessions below a directory like `/run/systemd`.
    pub fn new(root: &Path, counted: Counted) -> Self {
        Self {
            directory: root.join("sessions"),
            counted,
        }
    }
}

impl Source for Sessions {
    fn name(&self) -> String {
        "login-sessions".to_owned()
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }

    fn read(&mut self, _: Now) -> io::Result<Option<Signal>> {
        let entries = fs::read_dir(&self.directory).map_err(|error| {
            let why = format!("{}: {error}", self.directory.display());
            io::Error::new(error.kind(), why)
        })?;
        let mut number = 0_u32;
        for entry in entries.take(MAX_SESSIONS) {
            let entry = entry?;
            // Beside `<id>` there are pipes `<id>.ref`, and files that are being written.
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                continue;
            }
            match bounded::read(&entry.path(), MAX_BYTES) {
                Ok((text, _)) => number += u32::from(counts(&text, self.counted)),
                // It ended meanwhile.
                Err(error) if is_missing(&error) => {}
                Err(error) => {
                    let why = format!("session {name}: {error}");
                    return Err(io::Error::new(error.kind(), why));
                }
            }
        }
        let plural = if number == 1 { "" } else { "s" };
        Ok((number > 0).then(|| Signal {
            reason: format!("login-session: {number} active session{plural}"),
            since: None,
            until: None,
        }))
    }
}

/// Whether a session counts, by the text of its file.
fn counts(text: &str, counted: Counted) -> bool {
    let value = |key: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        lines
            .filter(|(name, _)| *name == key)
            .map(|(_, value)| value)
            .next_back()
    };
    // Not those of greeters, lock screens, services and user managers.
    let is_of_a_person = matches!(
        value("CLASS"),
        Some("user" | "user-early" | "user-light" | "user-early-light")
    );
    let is_active = value("ACTIVE") == Some("1") && value("STATE") == Some("active");
    let is_local = value("REMOTE") == Some("0");
    is_of_a_person && is_active && (is_local || counted == Counted::All)
}

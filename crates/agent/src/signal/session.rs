//! Login sessions, as systemd-logind records them.
//!
//! From `/run/systemd/sessions`, which `libsystemd` reads too. The files are private to systemd, so
//! a key that is missing or unknown counts as no session. Whether somebody sits at a session is known
//! on the bus alone, see [`Logind`].

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures::FutureExt as _;
use futures::future::{BoxFuture, pending};

use super::away::{Away, Known, Logind};
use super::{Counted, Now, Signal, Source};
use crate::bounded::{self, is_missing};

/// How many sessions are read; a host has a few.
const MAX_SESSIONS: usize = 256;
/// The maximum size of a session's file in bytes; systemd writes less than a kilobyte.
const MAX_BYTES: u64 = 16 * 1024;

/// Stands while a person is logged in, and in the foreground of a seat or connected.
#[derive(Debug)]
pub struct Sessions {
    directory: PathBuf,
    counted: Counted,
    /// Which of them somebody sits at, if that matters.
    logind: Option<Logind>,
}

impl Sessions {
    /// The sessions below a directory like `/run/systemd`.
    pub fn new(root: &Path, counted: Counted) -> Self {
        Self {
            directory: root.join("sessions"),
            counted,
            logind: None,
        }
    }

    /// Without those at which nobody sits, according to the logind of the bus with this socket. While it
    /// cannot be asked, all count. Must be called in a runtime.
    #[must_use]
    pub fn without(self, away: Away, bus: &Path) -> Self {
        Self {
            logind: Some(Logind::ask(bus, away)),
            ..self
        }
    }
}

impl Sessions {
    /// Whether logind is asked, and cannot be.
    pub fn is_unanswered(&self) -> bool {
        let known = self.logind.as_ref().map(|logind| logind.known.borrow());
        known.is_some_and(|known| *known == Known::Nothing)
    }
}

impl Source for Sessions {
    fn name(&self) -> String {
        "login-sessions".to_owned()
    }

    fn note(&self) -> Option<String> {
        let counted = match self.counted {
            Counted::Off => "no sessions count",
            Counted::Local => "local sessions count",
            Counted::All => "all sessions count",
        };
        Some(match &self.logind {
            None => counted.to_owned(),
            Some(logind) => {
                let away = logind.away.words();
                match *logind.known.borrow() {
                    Known::NotYet => {
                        format!("{counted} unless {away}; logind has not answered yet")
                    }
                    Known::Away(_) => format!("{counted} unless {away}; logind answers"),
                    Known::Nothing => {
                        format!("{counted}, also {away} ones: logind cannot be asked")
                    }
                }
            }
        })
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }

    fn told(&mut self) -> BoxFuture<'_, ()> {
        match &mut self.logind {
            None => pending().boxed(),
            Some(logind) => async {
                if logind.known.changed().await.is_err() {
                    pending::<()>().await;
                }
            }
            .boxed(),
        }
    }

    fn settled(&mut self) -> BoxFuture<'_, ()> {
        let logind = self.logind.as_mut();
        async {
            if let Some(logind) = logind {
                let is_known = |known: &Known| *known != Known::NotYet;
                let _ = logind.known.wait_for(is_known).await;
            }
        }
        .boxed()
    }

    fn read(&mut self, _: Now) -> io::Result<Option<Signal>> {
        let known = self.logind.as_mut();
        let known = known.map(|logind| logind.known.borrow_and_update().clone());
        let away = match known {
            Some(Known::NotYet) => return Err(io::ErrorKind::WouldBlock.into()),
            None | Some(Known::Nothing) => BTreeSet::new(),
            Some(Known::Away(names)) => names,
        };
        let entries = fs::read_dir(&self.directory).map_err(|error| {
            let why = format!("{}: {error}", self.directory.display());
            io::Error::new(error.kind(), why)
        })?;
        // Beside `<id>` there are pipes `<id>.ref`, and files that are being written.
        let is_session = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !away.contains(name)
        };
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .filter(|name: &io::Result<String>| {
                name.as_ref().map_or(true, |name| is_session(name))
            });
        let mut number = 0_u32;
        let mut failed = None;
        for name in names.by_ref().take(MAX_SESSIONS) {
            let name = name?;
            match bounded::read(&self.directory.join(&name), MAX_BYTES) {
                Ok((text, _)) => number += u32::from(counts(&text, self.counted)),
                // It ended meanwhile.
                Err(error) if is_missing(&error) => {}
                Err(error) => {
                    let why = format!("session {name}: {error}");
                    failed = Some(io::Error::new(error.kind(), why));
                }
            }
        }
        if names.next().is_some() {
            failed = Some(io::Error::other(format!(
                "{} has more than {MAX_SESSIONS} sessions, and a person may be at one that is not \
                 read",
                self.directory.display()
            )));
        }
        // What cannot be read hides nobody who is seen.
        if let (0, Some(error)) = (number, failed) {
            return Err(error);
        }
        let plural = if number == 1 { "" } else { "s" };
        let reason = || format!("login-session: {number} active session{plural}");
        Ok((number > 0).then(reason).map(Signal::of))
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
    let is_counted = match counted {
        Counted::Off => false,
        Counted::Local => value("REMOTE") == Some("0"),
        Counted::All => true,
    };
    is_of_a_person && is_active && is_counted
}

//! The record of what was done with pods, on disk until it is reported.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bounded::{self, is_missing};
use crate::detect::with_causes;

/// The maximum size of the file in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// How an account begins.
pub(crate) const ACCOUNT: &str = "(no API server answered";

/// What was done with pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// When they were frozen.
    pub(super) frozen: Timestamp,
    /// When they were ended.
    pub(super) ended: Option<Timestamp>,
    /// Who asked for the host.
    pub(super) reason: String,
}

impl Record {
    /// In one line, as the end of a reason.
    pub(super) fn text(&self) -> String {
        let ended = self.ended.map(|ended| format!(", ended at {ended:.3}"));
        let ended = ended.unwrap_or_default();
        format!("{ACCOUNT}: pods frozen at {:.3}{ended})", self.frozen)
    }
}

fn file(state: &Path) -> PathBuf {
    state.join("held.json")
}

/// The record of an earlier agent. One that cannot be read is logged.
pub(super) fn read(state: Option<&Path>) -> Option<Record> {
    let path = file(state?);
    let read = bounded::read(&path, MAX_BYTES)
        .and_then(|(text, _)| Ok(serde_json::from_str(&text)?));
    match read {
        Ok(record) => Some(record),
        Err(error) if is_missing(&error) => None,
        Err(error) => {
            let (path, error) = (path.display(), with_causes(&error));
            tracing::error!(%path, error, "the record of an earlier agent cannot be read");
            None
        }
    }
}

/// Replaces the record; `None` removes it.
pub(super) fn write(state: Option<&Path>, record: Option<&Record>) -> io::Result<()> {
    let Some(state) = state else { return Ok(()) };
    let Some(record) = record else {
        return match fs::remove_file(file(state)) {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        };
    };
    fs::create_dir_all(state)?;
    let new = state.join(".held.new");
    fs::write(&new, serde_json::to_vec(record)?)?;
    fs::rename(new, file(state))
}

//! The audit log of an API server: one event a line, appended while it runs.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The program, as it names itself; empty where the server does not record that.
    pub agent: String,
    /// Who asked; of somebody who was impersonated, that one.
    pub user: String,
    /// `create`, `patch`, `watch` and so on.
    pub verb: String,
    /// The resource's plural, or what was asked for that is no resource.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The object's namespace; empty for none.
    pub namespace: String,
    /// The object's name; empty for a collection, and for one that the server named.
    pub name: String,
    /// The code of the answer; 0 for none.
    pub code: u16,
    /// When the request came in; none where the server does not record that.
    pub begun: Option<Timestamp>,
    /// When it was answered.
    pub ended: Option<Timestamp>,
}

impl Entry {
    /// The request of one line, if that was answered.
    pub fn read(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| {
            let found = event.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        if text("/stage") != "ResponseComplete" {
            return None;
        }
        let or = |one: String, other: &str| {
            if one.is_empty() { text(other) } else { one }
        };
        let code = event
            .pointer("/responseStatus/code")
            .and_then(Value::as_u64);
        Some(Self {
            agent: text("/userAgent"),
            user: or(text("/impersonatedUser/username"), "/user/username"),
            verb: text("/verb"),
            resource: or(text("/objectRef/resource"), "/requestURI"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: u16::try_from(code.unwrap_or_default()).unwrap_or_default(),
            begun: text("/requestReceivedTimestamp").parse().ok(),
            ended: text("/stageTimestamp").parse().ok(),
        })
    }

    /// Whether the request was for a change, and one was made.
    pub fn is_write(&self) -> bool {
        let is_read = matches!(self.verb.as_str(), "get" | "list" | "watch");
        !is_read && (200..300).contains(&self.code)
    }
}

/// The file.
#[derive(Clone, Debug)]
pub struct Log(PathBuf);

impl Log {
    /// The log in this file, which need not be there yet.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The folder it is in.
    pub fn folder(&self) -> PathBuf {
        self.0.parent().unwrap_or(Path::new(".")).to_owned()
    }

    /// How many bytes it has by now.
    ///
    /// # Errors
    /// The file cannot be asked; the text names it.
    pub fn length(&self) -> Result<u64, String> {
        let found = std::fs::metadata(&self.0);
        found.map(|of| of.len()).map_err(|error| self.error(&error))
    }

    /// What was answered since that byte, in the order of the log. Half a line at its end is
    /// left out.
    ///
    /// # Errors
    /// The file cannot be read; the text names it.
    pub fn since(&self, mut from: u64) -> Result<Vec<Entry>, String> {
        self.follow(&mut from)
    }

    /// The same, and moves on to the first byte that has not been read.
    ///
    /// # Errors
    /// The file cannot be read; the text names it.
    pub fn follow(&self, from: &mut u64) -> Result<Vec<Entry>, String> {
        let mut bytes = Vec::new();
        File::open(&self.0)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(*from))?;
                file.read_to_end(&mut bytes)
            })
            .map_err(|error| self.error(&error))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(whole.map_or(0, |last| last + 1));
        *from += u64::try_from(bytes.len()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().filter_map(Entry::read).collect())
    }

    fn error(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.0.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impersonated_user_is_the_one_who_asked_and_half_a_line_is_nobody() {
        let line = serde_json::json!({
            "stage": "ResponseComplete", "verb": "patch",
            "user": {"username": "admin"}, "impersonatedUser": {"username": "shard-a"},
            "objectRef": {"resource": "machines", "subresource": "status"},
            "responseStatus": {"code": 409},
        })
        .to_string();
        let entry = Entry::read(&line).unwrap();
        assert_eq!((&*entry.user, entry.code), ("shard-a", 409));
        assert!(!entry.is_write(), "it was refused");
        assert_eq!(Entry::read(&line[..line.len() / 2]), None);
    }
}

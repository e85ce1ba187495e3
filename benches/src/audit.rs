//! The audit log of an API server: one event a line, appended while it runs.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

/// A request with a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The user agent of the program. Empty if the server does not record it.
    pub agent: String,
    /// The user of the request. For an impersonated request, the impersonated user.
    pub user: String,
    /// The verb: `create`, `patch`, `watch` and so on.
    pub verb: String,
    /// The resource's plural, or the path of a request that is not for a resource.
    pub resource: String,
    /// The subresource. Empty for the object itself.
    pub subresource: String,
    /// The object's namespace. Empty for none.
    pub namespace: String,
    /// The object's name. Empty for a collection, and for a name that the server generated.
    pub name: String,
    /// The status code of the response. 0 for none.
    pub code: u16,
    /// When the request was received. `None` if the server does not record it.
    pub begun: Option<Timestamp>,
    /// When the response was complete.
    pub ended: Option<Timestamp>,
}

impl Entry {
    /// Parses a line. `None` if it is not a completed request.
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

    /// Whether the request changed an object successfully.
    pub fn is_write(&self) -> bool {
        let is_read = matches!(self.verb.as_str(), "get" | "list" | "watch");
        !is_read && (200..300).contains(&self.code)
    }
}

/// The log file.
#[derive(Clone, Debug)]
pub struct Log(PathBuf);

impl Log {
    /// The log in this file, which need not exist yet.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The folder of the file.
    pub fn folder(&self) -> PathBuf {
        self.0.parent().unwrap_or(Path::new(".")).to_owned()
    }

    /// The current length of the file in bytes.
    ///
    /// # Errors
    /// The file's metadata cannot be read. The text names the file.
    pub fn length(&self) -> Result<u64, String> {
        let found = std::fs::metadata(&self.0);
        found.map(|of| of.len()).map_err(|error| self.error(&error))
    }

    /// The requests from this byte on, in the order of the log. An incomplete line at the end is
    /// left out.
    ///
    /// # Errors
    /// The file cannot be read. The text names the file.
    pub fn since(&self, mut from: u64) -> Result<Vec<Entry>, String> {
        self.follow(&mut from)
    }

    /// The same, and advances `from` to the first byte that has not been read.
    ///
    /// # Errors
    /// The file cannot be read. The text names the file.
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
    fn an_impersonated_user_is_recorded_and_an_incomplete_line_is_skipped() {
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

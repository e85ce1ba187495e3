//! A file from which no text could be read, or a text that is neither YAML nor JSON.

use std::borrow::Cow;
use std::io;

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DefaultMessageFormatter, Error, MessageFormatter};

use super::{MAX_BYTES, MAX_DOCUMENTS, MAX_VALUES, SourceLocation};
use kubemu_terminal::{Failure, plain};

/// A file or a text from which no object could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The path of the file, or `standard input`.
    pub file: String,
    /// The line at fault, from 1.
    line: usize,
    /// The reason. Further lines are an excerpt of the text.
    why: String,
    remedy: &'static str,
}

impl Malformed {
    /// The text of `file` that cannot be parsed.
    pub fn of(file: &str, error: &Error) -> Self {
        let line = error.location().map_or(1, |at| at.line().max(1));
        let why = error.render_with_formatter(&Words);
        Self {
            file: file.to_owned(),
            line: usize::try_from(line).unwrap_or(1),
            why: why.strip_prefix("error: ").unwrap_or(&why).to_owned(),
            remedy: match error.without_snippet() {
                Error::DuplicateMappingKey { .. } => "remove one of them",
                Error::Budget { .. } => "split it into several files",
                _ => "write YAML or JSON",
            },
        }
    }

    /// The file that cannot be read.
    pub(super) fn unreadable(file: &str, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                "give an existing file or directory"
            }
            io::ErrorKind::PermissionDenied => "make it readable, or give another file",
            io::ErrorKind::InvalidData => "give UTF-8 text",
            _ => "give another file",
        };
        Self {
            file: file.to_owned(),
            line: 1,
            why: error.to_string(),
            remedy,
        }
    }

    /// The file with more bytes than are read.
    pub(super) fn too_large(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: 1,
            why: format!("it is larger than {} MiB", MAX_BYTES >> 20),
            remedy: "split it into several files",
        }
    }

    /// The location of the fault.
    pub fn location(&self) -> SourceLocation {
        SourceLocation::new(self.file.clone(), self.line, String::new())
    }

    /// What failed, why, and what to do about it, on one line. The excerpt is left out: the text may
    /// contain a secret, and the line may be written to the log of a pipeline.
    pub fn message(&self) -> String {
        let why = self.why.lines().next().unwrap_or_default();
        format!(
            "reading {}: {why}; {}",
            plain::line(&self.file),
            self.remedy
        )
    }
}

impl From<Malformed> for Failure {
    fn from(text: Malformed) -> Self {
        Self::new(format!("reading {}", text.file), text.why).remedy(text.remedy)
    }
}

/// The words of the parser, except where they are about its options, or repeat the text.
struct Words;

impl MessageFormatter for Words {
    fn format_message<'e>(&self, error: &'e Error) -> Cow<'e, str> {
        match error {
            Error::DuplicateMappingKey { .. } => "duplicate key".into(),
            Error::UnsupportedTag { .. } => "unsupported tag".into(),
            Error::Budget {
                breach: BudgetBreach::Documents { .. },
                ..
            } => format!("more than {MAX_DOCUMENTS} documents").into(),
            Error::Budget {
                breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. },
                ..
            } => format!("more than {MAX_VALUES} values").into(),
            other => DefaultMessageFormatter.format_message(other),
        }
    }
}

//! The result of a command.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::plain;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Yes, or done: exit code 0.
    Yes,
    /// No: exit code 1. The reason was printed as the command's output.
    No,
    /// No result: exit code 2. The reason was printed.
    NoResult,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Yes => Self::SUCCESS,
            Outcome::No => Self::from(1),
            Outcome::NoResult => Self::from(2),
        }
    }
}

/// A failure of a command: what failed, why, and what to do about it.
///
/// Displayed as `<what>: <why>; <what to do>`; the caller prepends `error: `. Further lines of the
/// reason, for example an excerpt of the text at fault, follow below.
#[derive(Debug)]
pub struct Failure {
    what: String,
    why: String,
    remedy: Option<String>,
    closed_pipe: bool,
}

impl Failure {
    /// A failure to do `what`, because of `why`.
    pub fn new(what: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            why: why.to_string(),
            remedy: None,
            closed_pipe: false,
        }
    }

    /// A failure to start, because of a limit of the system.
    pub fn at_start(error: io::Error) -> Self {
        Self::new("starting", error).remedy(
            "raise the limits of open files and processes (`ulimit -a` shows them)",
        )
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl fmt::Display) -> Self {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// Adds an alternative to what to do about it.
    #[must_use]
    pub fn or(mut self, alternative: &str) -> Self {
        self.remedy = Some(match self.remedy {
            Some(remedy) => format!("{remedy}, or {alternative}"),
            None => alternative.to_owned(),
        });
        self
    }

    /// Whether the reader of the output has closed it.
    pub fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self {
            closed_pipe,
            ..Self::new("writing the output", error)
                .remedy("check that the disk is not full")
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut why = self.why.lines();
        let what = plain::line(&self.what);
        write!(f, "{what}: {}", why.next().unwrap_or_default())?;
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        why.try_for_each(|line| write!(f, "\n{line}"))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_contains_what_failed_why_and_a_remedy() {
        let failure =
            Failure::new("reading a.yaml", "no such file").remedy("check the path");
        assert_eq!(
            failure.to_string(),
            "reading a.yaml: no such file; check the path"
        );
    }

    #[test]
    fn an_excerpt_of_the_invalid_text_is_shown_below_the_remedy() {
        let failure = Failure::new("reading a.yaml", "not closed\n | a: [\n | ...^")
            .remedy("close it");
        assert_eq!(
            failure.to_string(),
            "reading a.yaml: not closed; close it\n | a: [\n | ...^"
        );
    }
}

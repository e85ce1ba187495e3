//! How a command ended.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The answer of a command that could answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Yes, or done: exit code 0.
    Yes,
    /// No: exit code 1. What is wrong was printed as the command's output.
    No,
    /// There is no answer: exit code 2. Why was printed.
    Unanswered,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Yes => Self::SUCCESS,
            Outcome::No => Self::from(1),
            Outcome::Unanswered => Self::from(2),
        }
    }
}

/// Why a command could not answer: what failed, why, and what to do about it.
///
/// Displayed as `<what>: <why>; <what to do>`; the caller puts `error: ` before it. Of a cause
/// in several lines, such as one that shows the text at fault, the others come below.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    why: String,
    remedy: Option<String>,
    closed_pipe: bool,
}

impl Failure {
    /// `what` could not be done, because of `why`.
    pub(crate) fn new(what: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            why: why.to_string(),
            remedy: None,
            closed_pipe: false,
        }
    }

    /// The system does not give what every command needs.
    pub(crate) fn at_start(error: io::Error) -> Self {
        Self::new("starting", error).remedy(
            "raise the limits of open files and processes (`ulimit -a` shows them)",
        )
    }

    /// Adds what to do about it.
    pub(crate) fn remedy(mut self, remedy: impl fmt::Display) -> Self {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// Whether the reader of our output has gone away.
    pub(crate) fn is_closed_pipe(&self) -> bool {
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
        write!(f, "{}: {}", self.what, why.next().unwrap_or_default())?;
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        why.try_for_each(|line| write!(f, "\n{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let failure =
            Failure::new("reading a.yaml", "no such file").remedy("check the path");
        assert_eq!(
            failure.to_string(),
            "reading a.yaml: no such file; check the path"
        );
    }

    #[test]
    fn the_text_at_fault_is_shown_below_what_to_do() {
        let failure = Failure::new("reading a.yaml", "not closed\n | a: [\n | ...^")
            .remedy("close it");
        assert_eq!(
            failure.to_string(),
            "reading a.yaml: not closed; close it\n | a: [\n | ...^"
        );
    }
}

//! The end of a program: what it prints to standard error, and its exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::{Failure, Outcome, plain};

/// The exit code of a program that has ended, after its failure is printed.
pub fn exit(ended: Result<Outcome, Failure>) -> ExitCode {
    match ended {
        Ok(outcome) => outcome.into(),
        // A reader that closes the pipe, such as `head`, is not an error.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            let _ = writeln!(io::stderr(), "error: {}", plain::lines(&text));
            Outcome::NoResult.into()
        }
    }
}

/// Prints a warning to standard error.
pub fn warn(warning: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", plain::lines(warning));
}

/// Prints a clap error: help and version to standard output, errors to standard error.
pub fn clap_error(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() {
        Outcome::NoResult.into()
    } else {
        ExitCode::SUCCESS
    }
}

//! The `5spot` command line: wiring of the other crates.

use std::process::ExitCode;

/// Runs the command line of this process and says how it ended.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}

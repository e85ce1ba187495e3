//! How a program speaks to whoever started it: errors with remedies, text that cannot command a
//! terminal, exit codes, signals.
//!
//! Exit codes: 0 success, 1 a negative result, 2 error (wrong arguments, an unreadable file, an
//! unreachable cluster). Errors go to standard error as `error: <what>: <why>; <what to do>`.

mod exit;
mod failure;
pub mod plain;
mod runtime;
pub mod signals;

pub use exit::{clap_error, exit, warn};
pub use failure::{Failure, Outcome};
pub use plain::is_active_character;
pub use runtime::block_on;

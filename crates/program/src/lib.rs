//! What the programs of 5-Spot have in common: the cluster, the log, the ports and the time zones
//! that flags select, the signals that stop them, and how they fail and exit.
//!
//! Exit codes: 0 success, 1 a negative result, 2 error (wrong arguments, an unreadable file, an
//! unreachable cluster). Errors go to standard error as `error: <what>: <why>; <what to do>`.

pub mod cluster;
mod duration;
mod exit;
mod failure;
pub mod log;
pub mod plain;
pub mod port;
pub mod service;
pub mod signals;
pub mod zoneinfo;

pub use duration::duration;
pub use exit::{clap_error, exit, warn};
pub use failure::{Failure, Outcome};
pub use log::is_colored;

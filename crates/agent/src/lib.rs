//! The node side of emergency reclaim: detects that a listed program starts, or another signal of the
//! owner, and requests a reclaim.
//!
//! - [`pattern`]: which processes match; no I/O
//! - [`proc`], [`scan`]: the processes in `/proc`
//! - [`event`], [`connector`]: process events of the kernel
//! - [`detect`]: detection by either of the two, after an initial scan
//! - [`signal`]: signals beside processes
//! - [`bus`]: a client of a D-Bus; [`notify`]: says on a desktop that the host is about to be lent
//! - [`run_directory`]: what the agent and the users of its host exchange
//! - [`config`]: `reclaim.toml`; [`node`]: the annotations on the Node; [`run`]: the main loop
//! - [`hold`]: freezes and ends pods while no API server answers
//! - [`reporting`]: tells the ScheduledMachine that its host is free, as `free` decides
//! - [`policy_check`]: checks that the agent cannot write to other Nodes
//! - [`command`]: the command line

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test of many steps is read from its top"
    )
)]

mod bounded;
pub mod bus;
pub mod command;
pub mod config;
pub mod connector;
pub mod detect;
mod doctor;
pub mod event;
mod free;
pub mod hold;
pub mod node;
pub mod notify;
mod once;
mod opening;
pub mod pattern;
pub mod policy_check;
pub mod proc;
pub mod reporting;
pub mod run;
pub mod run_directory;
pub mod scan;
mod service;
pub mod signal;
mod switch;
#[cfg(test)]
mod test_host;
mod watched;

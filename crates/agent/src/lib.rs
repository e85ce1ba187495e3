//! The node side of emergency reclaim: sees a listed program start, asks for the machine back.
//!
//! - [`pattern`]: which processes are meant; pure
//! - [`proc`], [`sight`]: processes as `/proc` shows them
//! - [`event`], [`connector`]: processes as the kernel tells of them
//! - [`detect`]: either of the two, from the first scan on
//! - [`config`]: `reclaim.toml`; [`node`]: what is written on the Node; [`run`]: the agent at work
//! - [`confinement`]: nothing is done where the agent could write to other Nodes
//! - [`command`]: the command line

pub mod command;
pub mod config;
pub mod confinement;
pub mod connector;
pub mod detect;
mod doctor;
pub mod event;
mod follow;
pub mod node;
mod once;
pub mod pattern;
pub mod proc;
pub mod run;
pub mod sight;

//! The dashboard: a read-only view of a cluster's ScheduledMachines, for one user on this machine.
//!
//! [`Dashboard`] watches the ScheduledMachines and their Events, serves server-rendered pages on a
//! loopback address, and sends a server-sent event when something changes. It cannot change
//! anything: every request to a cluster passes through a layer that refuses methods other than GET
//! ([`read_only`]).
//!
//! Access requires a token that is in the printed URL and works once, and after that a cookie.
//! Requests for another host name are refused, so that no web site can reach the page by a name of
//! its own that resolves to this machine.

mod access;
mod asset;
mod filter;
mod follow;
mod live;
mod machine;
mod page;
mod reader;
mod route;
mod schedule_inputs;
pub mod schedule_text;
mod serve;
pub mod shutdown;
mod state;
#[cfg(test)]
mod tests;
mod undecoded;

pub use reader::{EventRecord, Reader, read_only};
pub use serve::{Dashboard, Now, Options};

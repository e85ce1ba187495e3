//! The dashboard: a read-only page about a cluster's ScheduledMachines, for one person on this
//! machine.
//!
//! [`Dashboard`] follows the ScheduledMachines and their Events by watches, serves server-rendered
//! pages on a loopback address, and sends a server-sent event when something changes. It cannot
//! change anything: every request to a cluster passes a layer that refuses whatever is not a GET
//! ([`read_only`]).
//!
//! Who may look is decided by a token that is in the printed URL and works once; after that by a
//! cookie. Requests for another host name are refused, so that no web site can reach the page by
//! a name of its own that resolves to this machine.

mod access;
mod asset;
mod filter;
mod follow;
mod listed;
mod live;
mod machine;
mod page;
mod reader;
mod route;
mod serve;
pub mod shutdown;
mod state;
#[cfg(test)]
mod tests;
pub mod words;

pub use reader::{EventRecord, Reader, read_only};
pub use serve::{Dashboard, Now, Options};

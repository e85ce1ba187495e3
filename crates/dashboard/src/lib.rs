//! The dashboard: a read-only view of a cluster's ScheduledMachines and
//! ScheduledCapacities, for one user on this machine.
//!
//! [`Dashboard`] watches the ScheduledMachines and their Events, serves server-rendered pages on a
//! loopback address, and sends a server-sent event when something changes. It cannot change
//! anything: every request to a cluster passes through a layer that refuses methods other than GET
//! ([`read_only`]).
//!
//! Access requires a token that is in the printed URL and works once, and after that a cookie.
//! Requests for another host name are refused, so that no web site can reach the page by a name of
//! its own that resolves to this machine. Browsers send the cookies of a host to all of its ports,
//! so the pages are below a path of random bits, which is the cookie's path too. In a pod, a proxy
//! that authenticates its users takes the place of both ([`Audience::Proxy`]).
//!
//! The server only sends *that* something has changed, and the script fetches that part of the page
//! again: there is no second description of the page in JSON, and pages work without the script.

mod access;
mod asset;
mod decoded;
mod filter;
mod follow;
mod followed;
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

pub use reader::{EventRecord, LeaseLocation, Reader, read_only};
pub use schedule_inputs::{NoSchedule, ScheduleInputs};
pub use serve::{Audience, Dashboard, Now, Options};

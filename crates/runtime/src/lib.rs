//! What a Kubernetes operator runs on, whatever it reconciles.
//!
//! - [`queue`]: which object is due when; each at most once, and one reconcile of each at a time.
//! - [`cache`]: what the API server last said about objects, cut down to what is read of them.
//! - [`lease`]: who may write, by coordination Leases.
//! - [`watch`]: the loop that lists, watches, and lists again when a watch breaks.
//! - [`http`]: requests whose answers are bounded in time and in size.
//!
//! Everything takes the time from a [`Clock`](fivespot_clock::Clock). Under a virtual clock, time
//! stands still while a reconcile is due or an event has not been processed, so that a test runs a
//! day in a second and every run is the same.

// The example of the README runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod cache;
pub mod http;
mod key;
pub mod lease;
pub mod queue;
pub mod watch;

pub use key::{Key, Named};

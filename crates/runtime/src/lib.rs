//! The runtime of a Kubernetes operator, independent of the kinds that it reconciles.
//!
//! - [`queue`]: the work queue: when each key is due; one reconcile of a key at a time.
//! - [`cache`]: caches of objects, reduced to the fields that are read.
//! - [`lease`]: which replica may write, by coordination Leases.
//! - [`watch`]: the loop that lists, watches, and lists again when a watch fails.
//! - [`http`]: requests whose responses are bounded in time and in size.
//!
//! All modules take the time from a [`Clock`](kubemu_clock::Clock). A virtual clock is stopped
//! while a reconcile is due or an event has not been processed, so that a test runs a day in a
//! second and every run is the same.

// Runs the example of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod cache;
pub mod http;
mod key;
pub mod lease;
pub mod queue;
pub mod watch;

pub use key::{Key, NamespacedName};

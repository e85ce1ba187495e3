//! What tests share: instants, builders, and a whole cluster in the process.
//!
//! Never published. A test drives a [`Cluster`] through the Kubernetes API alone, so that
//! another backend can stand behind the same test.

mod build;
mod cluster;
mod crash;

pub use build::{instant, pod, scheduled_machine};
pub use cluster::{Cluster, Operator, machine_path};
pub use crash::{Crash, Tally};

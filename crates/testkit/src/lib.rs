//! What tests share: instants, builders, and a whole cluster in the process.
//!
//! Never published. A test drives a [`Cluster`] through the Kubernetes API alone, so that
//! another backend can stand behind the same test.

mod build;
mod cluster;
mod crash;
mod listening;
mod story;

pub use build::{cluster_object, instant, pod, scheduled_machine};
pub use cluster::{Cluster, Operator, machine_path, path_of};
pub use crash::{Crash, Tally};
pub use fivespot_apiserver::AuditEvent;
pub use fivespot_sim::Contract;
pub use listening::Listening;
pub use story::{BEFORE_CLOSING, CLOSING, condition, node_path, pod_path};

//! Shared parts of tests: times, builders, and a whole cluster in the process.
//!
//! Never published. A test uses only the Kubernetes API of a [`Cluster`], so that the same test
//! runs on another backend.

mod backend;
mod build;
mod cluster;
mod connection_switch;
mod crash;
mod embedded;
mod listening;
mod manifest_tree;
mod mask;
mod measured_run;
mod memory;
mod name_mapping;
mod naming;
mod operator;
mod page;
mod path;
mod providers;
mod proxy;
mod replica;
mod request;
mod rights;
mod scenario;
mod shared_cluster;
mod token;
mod traffic;
mod workload;
mod zone;

pub use backend::Backend;
pub use build::{cluster_object, instant, pod, scheduled_machine};
pub use cluster::Cluster;
pub use connection_switch::ConnectionSwitch;
pub use fivespot_controller::{Coordination, Lease, LeaseTiming};
pub use fivespot_sim::Contract;
pub use kubemu_apiserver::{AuditEvent, User};
pub use kubemu_clock::{Clock, Host};
pub use listening::ListeningServer;
pub use manifest_tree::{MANIFEST_SORTS, ManifestSort, ManifestTree};
pub use mask::mask;
pub use measured_run::MeasuredRun;
pub use memory::resident_kib;
pub use operator::{CrashableOperator, Operator};
pub use page::Page;
pub use path::{machine_path, path_of};
pub use providers::Providers;
pub use proxy::{
    CrashSwitch, Delivery, ProxiedRequest, Proxy, RequestOutcome, WatchStart,
};
pub use replica::Replica;
pub use scenario::{BEFORE_CLOSING, CLOSING, condition, node_path, pod_path};
pub use shared_cluster::{SharedCluster, cluster_directory, target_directory};
pub use zone::fixed_zone;

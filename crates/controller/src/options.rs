//! What [`run`](crate::run) needs to know.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use fivespot_clock::Clock;
use kube::Client;

use crate::connect::{Connect, Dial};
use crate::observe::{Observe, Silent};

/// How many passes may be under way at a time unless told otherwise.
const DEFAULT_MAX_CONCURRENT: NonZeroUsize = NonZeroUsize::new(32).unwrap();

/// Where ScheduledMachines are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// In every namespace.
    #[default]
    All,
    /// In these, with one watch per kind and namespace. None at all means nowhere.
    Only(BTreeSet<String>),
}

/// How the nodes of a workload cluster are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeAccess {
    /// Through the kubeconfig Secret that Cluster API keeps for the Cluster.
    #[default]
    Workload,
    /// The management cluster is the workload cluster.
    Management,
}

/// Everything that [`run`](crate::run) is given. Made by [`Options::new`], then changed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The management cluster. It should not retry by itself (kube's `default_retry`): the
    /// controller does, and a retried eviction would hide a disruption budget's answer.
    pub client: Client,
    /// The source of *now* and of waiting.
    pub clock: Clock,
    /// Where ScheduledMachines are looked for.
    pub namespaces: Namespaces,
    /// How nodes are reached.
    pub node_access: NodeAccess,
    /// What makes a client of an accepted kubeconfig.
    pub connect: Arc<dyn Connect>,
    /// How many passes may be under way at a time.
    pub max_concurrent: NonZeroUsize,
    /// Who is told of each transition.
    pub observe: Arc<dyn Observe>,
    /// This instance's name in events, unique among replicas.
    pub identity: String,
    /// The seed of the jitter in retries: equal seeds, equal waits.
    pub seed: u64,
}

impl Options {
    /// All namespaces, workload access through [`Dial`], 32 passes at a time, no observer.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            namespaces: Namespaces::All,
            node_access: NodeAccess::Workload,
            connect: Arc::new(Dial),
            max_concurrent: DEFAULT_MAX_CONCURRENT,
            observe: Arc::new(Silent),
            identity: fivespot_api::name::FIELD_MANAGER.to_owned(),
            seed: 0,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("namespaces", &self.namespaces)
            .field("node_access", &self.node_access)
            .field("max_concurrent", &self.max_concurrent)
            .field("identity", &self.identity)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

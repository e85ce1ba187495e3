//! What [`run`](crate::run) needs to know.

use std::collections::BTreeSet;
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use fivespot_clock::Clock;
use jiff::SignedDuration;
use kube::Client;

use crate::connect::{Connect, Dial};
use crate::listener::{Listener, NoListener};
use crate::observe::kubeconfig::Allowed;
use crate::telemetry::instruments::Instruments;
use fivespot_runtime::lease::Lease;

/// How many reconciles may be under way at a time by default: so many that an edge has its
/// share of a server on which Cluster API is at work as well.
const DEFAULT_MAX_CONCURRENT: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// Where ScheduledMachines are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// In every namespace.
    #[default]
    All,
    /// In these, with one watch per kind and namespace. None at all means nowhere.
    Only(BTreeSet<String>),
}

/// How instances agree on who acts on what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Coordination {
    /// There is one instance: nobody is asked.
    #[default]
    Alone,
    /// There is to be one instance. It writes nothing while another holds this Lease and renews it.
    Unelected(Lease),
    /// One of them acts on everything, the others stand by: whoever holds the Lease.
    Leader(Lease),
    /// All objects are divided among so many shards, and the instances among themselves divide the
    /// shards. Each shard has a Lease, and each instance, in the namespace of this one and on its
    /// terms.
    Shards {
        /// Where the Leases are, and how long they bind.
        lease: Lease,
        /// How many shards there are: the same for every instance.
        count: NonZeroU32,
    },
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
    /// How instances agree on who acts on what.
    pub coordination: Coordination,
    /// Which servers a kubeconfig Secret may name.
    pub workload_servers: Allowed,
    /// What makes a client of an accepted kubeconfig.
    pub connect: Arc<dyn Connect>,
    /// How many reconciles may be under way at a time.
    pub max_concurrent: NonZeroUsize,
    /// How many machines this instance may start within a minute; none is no limit. Those of
    /// the highest priority start first.
    pub max_starts_per_minute: Option<NonZeroU32>,
    /// What is measured, and whether all is well.
    pub instruments: Instruments,
    /// Whether the finalizer is taken off a day after a removal began that has not ended,
    /// whatever is left behind then.
    pub force_finalizer_on_timeout: bool,
    /// For how long a reclaim stops the machine with a ScheduleOverride, at most two weeks; none if
    /// it sets `spec.schedule.enabled` to false.
    pub reclaim_override: Option<SignedDuration>,
    /// What is called with each transition.
    pub listener: Arc<dyn Listener>,
    /// This instance's name in events and Leases, unique among replicas.
    pub identity: String,
    /// The seed of the jitter in retries: equal seeds, equal waits.
    pub seed: u64,
}

impl Options {
    /// All namespaces, no other instance, workload access through [`Dial`] to
    /// servers on other hosts, 128 reconciles at a
    /// time, no observer.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            namespaces: Namespaces::All,
            node_access: NodeAccess::Workload,
            coordination: Coordination::Alone,
            workload_servers: Allowed::default(),
            connect: Arc::new(Dial),
            max_concurrent: DEFAULT_MAX_CONCURRENT,
            max_starts_per_minute: None,
            instruments: Instruments::default(),
            force_finalizer_on_timeout: false,
            reclaim_override: None,
            listener: Arc::new(NoListener),
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
            .field("coordination", &self.coordination)
            .field("max_concurrent", &self.max_concurrent)
            .field("identity", &self.identity)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

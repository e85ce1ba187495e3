//! The options of [`run`](crate::run).

use std::collections::BTreeSet;
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use jiff::SignedDuration;
use kube::Client;
use kubemu_clock::Clock;
use tokio::runtime::Handle;

use crate::connect::{Connect, NetworkConnect};
use crate::listener::{Listener, NoListener};
use crate::observe::kubeconfig::Allowed;
use crate::telemetry::instruments::Instruments;
use fivespot_runtime::lease::Lease;

/// The default number of concurrent reconciles. A server without a free processor divides its time
/// among the requests that it has, and up to a hundred of them are Cluster API's, about the Machines
/// that exist already. Of 300 machines in one namespace that are created at once, the last is made in
/// three quarters of the time that half as many reconciles need. More of them gain little, and the
/// machines in the middle are made later.
const DEFAULT_MAX_CONCURRENT: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The namespaces in which ScheduledMachines are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// In every namespace.
    #[default]
    All,
    /// In these, with one watch per kind and namespace. An empty set means no namespace.
    Only(BTreeSet<String>),
}

impl Namespaces {
    /// Whether ScheduledMachines of this namespace are watched.
    pub(crate) fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(some) => some.contains(namespace),
        }
    }
}

/// Which objects are reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// ScheduledMachines and ScheduleOverrides.
    pub machines: bool,
    /// ScheduledCapacities.
    pub capacity: bool,
}

impl Default for Controllers {
    fn default() -> Self {
        Self {
            machines: true,
            capacity: true,
        }
    }
}

/// How replicas coordinate which of them acts on an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Coordination {
    /// There is one replica: no coordination.
    #[default]
    Alone,
    /// There should be one replica. It writes nothing while another holds this Lease and renews
    /// it.
    Unelected(Lease),
    /// One replica, the holder of the Lease, acts on all objects; the others stand by.
    Leader(Lease),
    /// All objects are divided into shards, and the replicas divide the shards. Each shard has a
    /// Lease, and so has each replica. They are in the namespace of this Lease and have its timing.
    Shards {
        /// The namespace and the timing of the Leases.
        lease: Lease,
        /// The number of shards: the same for every replica.
        count: NonZeroU32,
    },
}

/// A runtime on a thread that no reconcile uses: however long a reconcile computes, Leases are
/// renewed there.
#[derive(Clone)]
pub struct LeaseRuntime {
    /// The runtime.
    pub handle: Handle,
    /// A client of the management cluster that was created on it: its connections are served
    /// there.
    pub client: Client,
}

/// How the Nodes of a workload cluster are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum NodeAccess {
    /// Through the kubeconfig Secret that Cluster API maintains for each Cluster.
    #[default]
    Workload,
    /// The nodes are in the management cluster itself.
    Management,
}

/// The options of [`run`](crate::run). Created by [`Options::new`], then changed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The management cluster. Its client should not retry (kube's `default_retry`): the
    /// controller does, and a retried eviction would hide the response of a disruption budget.
    pub client: Client,
    /// The source of the current time and of timers.
    pub clock: Clock,
    /// The namespaces in which ScheduledMachines are watched.
    pub namespaces: Namespaces,
    /// Which objects are reconciled.
    pub controllers: Controllers,
    /// How Nodes are reached.
    pub node_access: NodeAccess,
    /// How replicas coordinate which of them acts on an object.
    pub coordination: Coordination,
    /// Where Leases are acquired and renewed. `None`: by the future that runs the controller, as a
    /// virtual clock requires.
    pub lease_runtime: Option<LeaseRuntime>,
    /// Which servers a kubeconfig Secret may name.
    pub workload_servers: Allowed,
    /// Makes a client of an accepted kubeconfig.
    pub connect: Arc<dyn Connect>,
    /// The maximum number of concurrent reconciles. Those of one namespace are at most half of it.
    pub max_concurrent: NonZeroUsize,
    /// The namespace of the Leases with which machines claim hosts of classes: the same for all
    /// replicas.
    pub claim_namespace: String,
    /// The maximum number of machines that this replica starts within a minute; `None` for no
    /// limit. Those of the highest priority start first.
    pub max_starts_per_minute: Option<NonZeroU32>,
    /// The metrics and the health.
    pub instruments: Instruments,
    /// Whether the finalizer is removed a day after the start of a removal that has not ended,
    /// even if objects remain.
    pub force_finalizer_on_timeout: bool,
    /// For how long a reclaim stops the machine with a ScheduleOverride, at most two weeks. `None`
    /// if it sets `spec.schedule.enabled` to false, as it does where so many others stop machines
    /// that a further one is not considered.
    pub reclaim_override: Option<SignedDuration>,
    /// The callbacks for transitions, steps and events.
    pub listener: Arc<dyn Listener>,
    /// This replica's name in events and Leases, unique among replicas.
    pub identity: String,
    /// The seed of the jitter in retries: equal seeds give equal waits.
    pub seed: u64,
}

impl Options {
    /// The defaults: all namespaces, no other replica, access to workload clusters through
    /// [`NetworkConnect`] to servers on other hosts, 256 concurrent reconciles, no listener.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            namespaces: Namespaces::All,
            controllers: Controllers::default(),
            node_access: NodeAccess::Workload,
            coordination: Coordination::Alone,
            lease_runtime: None,
            workload_servers: Allowed::default(),
            connect: Arc::new(NetworkConnect),
            max_concurrent: DEFAULT_MAX_CONCURRENT,
            claim_namespace: fivespot_api::name::SYSTEM_NAMESPACE.to_owned(),
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

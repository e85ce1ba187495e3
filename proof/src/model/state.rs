//! One state of the model: the server, the operator's caches and memory, and what may still
//! happen.

use std::ops::{Deref, DerefMut};

use jiff::Timestamp;
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::interner::Id;
use super::schedule_at::Override;

/// The instants that the clock steps through: a Friday on which the window opens at 9:00 and
/// closes at 18:00, and the Monday after it. A requeue between two of them happens at the later
/// one.
pub(crate) const INSTANTS: [&str; 14] = [
    "2026-03-06T08:59:30Z",
    "2026-03-06T09:00:00Z",
    "2026-03-06T09:12:00Z",
    "2026-03-06T11:00:00Z",
    "2026-03-06T12:00:00Z",
    "2026-03-06T17:00:00Z",
    "2026-03-06T18:00:00Z",
    "2026-03-06T18:01:30Z",
    "2026-03-06T18:07:00Z",
    "2026-03-06T18:30:00Z",
    "2026-03-09T09:00:00Z",
    "2026-03-09T12:00:00Z",
    "2026-03-09T23:00:00Z",
    "2026-03-09T23:30:00Z",
];

/// The instants at which the desired state must be reached: hours after an edge, or the last.
pub(crate) const SETTLED: [u8; 3] = [4, 11, 13];

/// The instant with this number; past the end, the last.
pub(crate) fn instant(number: u8) -> Timestamp {
    let text = INSTANTS[usize::from(number).min(INSTANTS.len() - 1)];
    text.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The kinds of object in addition to the ScheduledMachine, at most one object of each.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray,
)]
pub(crate) enum Kind {
    Machine,
    #[strum(to_string = "K0sWorkerConfig")]
    Bootstrap,
    #[strum(to_string = "RemoteMachine")]
    Infrastructure,
    /// The bootstrap object of another provider.
    #[strum(to_string = "KubeadmConfig")]
    OtherBootstrap,
    /// The infrastructure object of another provider.
    #[strum(to_string = "Metal3Machine")]
    OtherInfrastructure,
    Cluster,
    Node,
}

/// How many kinds there are.
const KINDS: usize = Kind::VARIANTS.len();

/// How many kinds are in the management cluster, and in caches of the operator.
pub(crate) const CACHED: usize = 6;

impl Kind {
    /// The kinds that the operator creates and removes.
    pub(crate) const CREATED: [Self; 5] = [
        Self::Bootstrap,
        Self::Infrastructure,
        Self::OtherBootstrap,
        Self::OtherInfrastructure,
        Self::Machine,
    ];

    /// The infrastructure objects of both providers.
    pub(crate) const INFRASTRUCTURES: [Self; 2] =
        [Self::Infrastructure, Self::OtherInfrastructure];

    /// The name of the kind in the API.
    pub(crate) fn api_kind(self) -> &'static str {
        self.into()
    }

    pub(crate) fn parse(api_kind: &str) -> Option<Self> {
        api_kind.parse().ok()
    }
}

/// The object of each kind.
pub(crate) type Objects = [Option<Id>; KINDS];

/// The pod on the Node that must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pod {
    None,
    Running,
    Leaving,
}

/// How the workload cluster responds to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkloadReachability {
    Answers,
    /// No response.
    Silent,
    /// The kubeconfig has contents that are not accepted.
    Refused,
}

/// The faults and changes that may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct FaultBudget {
    /// Requests that fail, or whose responses are lost.
    pub(crate) errors: u8,
    /// Crashes of the operator.
    pub(crate) crashes: u8,
    /// Edits of the ScheduledMachine by its user.
    pub(crate) edits: u8,
    /// Changes by other clients to the objects around it.
    pub(crate) external_changes: u8,
}

/// One state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) core: Core,
    /// The operator's cache of ScheduledMachines, which may be stale.
    pub(crate) cached_sm: Option<Id>,
    /// The operator's cache of all other objects in the management cluster, stale independently.
    pub(crate) cached: [Option<Id>; CACHED],
    /// The override in the operator's cache.
    pub(crate) cached_override: Option<Override>,
    /// Whether a cache lacks a write of the operator.
    pub(crate) is_cache_behind: bool,
    pub(crate) budget: FaultBudget,
    /// The law that the last step violated.
    pub(crate) broken: Option<super::invariant::Invariant>,
}

/// The state without the operator's caches and without the remaining faults: all that a step depends
/// on, and all that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Core {
    pub(crate) now: u8,
    /// The ScheduledMachine on the server.
    pub(crate) sm: Option<Id>,
    pub(crate) objects: Objects,
    pub(crate) pod: Pod,
    /// Whether a disruption budget refuses evictions.
    pub(crate) is_guarded: bool,
    pub(crate) reachability: WorkloadReachability,
    /// The override of the ScheduledMachine, in force or not.
    pub(crate) overriding: Option<Override>,
    /// Whether Cluster API can adopt no object, because a policy refuses it.
    pub(crate) refuses_adoption: bool,
    /// How many objects of each kind there have been: their uids.
    pub(crate) created_counts: [u8; KINDS],
    pub(crate) memory: Id,
    /// The writes that the operator is about to send.
    pub(crate) pending: Option<Id>,
}

impl Deref for State {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl State {
    pub(crate) fn at(&self, kind: Kind) -> Option<Id> {
        self.objects[kind as usize]
    }

    pub(crate) fn put(&mut self, kind: Kind, id: Option<Id>) {
        self.objects[kind as usize] = id;
    }

    /// The objects in the management cluster.
    pub(crate) fn managed(&self) -> [Option<Id>; CACHED] {
        let mut managed = [None; CACHED];
        managed.copy_from_slice(&self.objects[..CACHED]);
        managed
    }

    /// Whether both caches equal the state of the server.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.cached_sm == self.sm
            && self.cached == self.managed()
            && self.cached_override == self.overriding
    }

    pub(crate) fn catch_up(&mut self) {
        self.cached_sm = self.sm;
        self.cached = self.managed();
        self.cached_override = self.overriding;
        self.is_cache_behind = false;
    }
}

//! Actions: a step, and the request that carries it out.

use fivespot_capi::Reference;
use serde_json::Value;

/// One write. It may be sent twice: the server's guard turns the second one into a no-op, a 404
/// or a conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The step that it belongs to.
    pub step: Step,
    /// What to send.
    pub request: Request,
}

/// The purpose of an action. The order is that of a machine's lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Add our finalizer to the ScheduledMachine.
    AddFinalizer,
    /// Create the Lease of a host. 409 means that somebody has the host, maybe this machine.
    ClaimHost,
    /// Create the bootstrap object.
    CreateBootstrap,
    /// Create the infrastructure object.
    CreateInfrastructure,
    /// Create the Machine.
    CreateMachine,
    /// Put the uid of the ScheduledMachine on the label of a Machine that is ours by its owner
    /// reference and has another uid on the label, as after `clusterctl move`.
    RelabelMachine,
    /// Set timeouts on the Machine, or remove our exclude annotations from it.
    UpdateMachine,
    /// Set the annotations that make Cluster API skip its own drain, or its wait for volumes.
    ExcludeDrain,
    /// Cordon the Node and put our marker on it.
    CordonNode,
    /// Put our taints on the Node and remove those that are no longer desired, together with the
    /// record of which are ours.
    TaintNode,
    /// Add or remove the label on the Node that schedules the agent there.
    LabelNode,
    /// Create the agent's configuration.
    CreateAgentConfig,
    /// Change the agent's configuration.
    UpdateAgentConfig,
    /// Delete the agent's configuration.
    DeleteAgentConfig,
    /// Record the reclaim on the Machine.
    RecordReclaim,
    /// Disable the schedule, because the host is reclaimed.
    DisableSchedule,
    /// Create an override that stops the machine, because the host is reclaimed. 409 means that
    /// it already exists.
    CreateOverride,
    /// End the override of a reclaim, because the host is free.
    EndOverride,
    /// Record on the Machine that the schedule has been disabled, or the override created.
    RecordDisabled,
    /// Evict one pod from the Node.
    EvictPod,
    /// Delete one pod of a reclaimed host, without regard to its disruption budgets.
    DeletePod,
    /// Remove the reclaim request from the Node.
    ClearRequest,
    /// Remove our marker from the Node and uncordon it.
    UncordonNode,
    /// Delete the Machine.
    DeleteMachine,
    /// Delete a bootstrap object that no Machine owns.
    DeleteBootstrap,
    /// Delete an infrastructure object that no Machine owns.
    DeleteInfrastructure,
    /// Delete the Lease of a host that is not used any more.
    ReleaseHost,
    /// Remove our finalizer from the ScheduledMachine.
    RemoveFinalizer,
}

impl Step {
    /// Whether the step removes something that we cannot restore.
    pub fn is_destructive(self) -> bool {
        match self {
            Self::ExcludeDrain
            | Self::CordonNode
            | Self::EvictPod
            | Self::DeletePod
            | Self::DeleteMachine
            | Self::DeleteBootstrap
            | Self::DeleteInfrastructure
            | Self::ReleaseHost
            | Self::RemoveFinalizer => true,
            Self::AddFinalizer
            | Self::ClaimHost
            | Self::CreateBootstrap
            | Self::CreateInfrastructure
            | Self::CreateMachine
            | Self::RelabelMachine
            | Self::UpdateMachine
            | Self::TaintNode
            | Self::LabelNode
            | Self::CreateAgentConfig
            | Self::UpdateAgentConfig
            | Self::DeleteAgentConfig
            | Self::RecordReclaim
            | Self::DisableSchedule
            | Self::CreateOverride
            | Self::EndOverride
            | Self::RecordDisabled
            | Self::ClearRequest
            | Self::UncordonNode => false,
        }
    }
}

/// One request to one of the two API servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Which API server.
    pub side: Side,
    /// Which object.
    pub target: Target,
    /// What to do with it.
    pub call: Call,
}

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of the ScheduledMachines and Machines.
    Management,
    /// That of the Node.
    Workload,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Group, version, kind and name. Without a version, any served one is used.
    pub object: Reference,
    /// Namespace; `None` for a Node.
    pub namespace: Option<String>,
}

/// The operation on an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// POST this object. After a 409, observe again: the existing object may be ours or foreign.
    Create(Value),
    /// PATCH with this JSON merge patch (RFC 7386), which contains uid and resourceVersion.
    Patch(Value),
    /// DELETE with background propagation and this uid as precondition.
    Delete {
        /// The uid.
        uid: String,
    },
    /// DELETE a pod, with this uid as precondition and this grace period.
    DeletePod {
        /// The uid.
        uid: String,
        /// The grace period in seconds; 0 would not wait for the kubelet.
        grace: u32,
    },
    /// POST a `policy/v1` Eviction, with this uid as precondition of its delete options and the
    /// pod's own grace period.
    Evict {
        /// The uid.
        uid: String,
    },
}

//! What can be done: a step, and the request that does it.

use fivespot_capi::Reference;
use serde_json::Value;

/// One write. It may be sent twice: the server's guard makes the second one a no-op, a 404 or a
/// conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What it is for.
    pub step: Step,
    /// What to send.
    pub request: Request,
}

/// What an action is for. The order is that of a machine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Put our finalizer on the ScheduledMachine.
    AddFinalizer,
    /// Create the bootstrap object.
    CreateBootstrap,
    /// Create the infrastructure object.
    CreateInfrastructure,
    /// Create the Machine.
    CreateMachine,
    /// Put the uid of the ScheduledMachine on the label of a Machine that is ours by its owner
    /// reference and has another uid there, as after `clusterctl move`.
    RelabelMachine,
    /// Set timeouts on the Machine, or take our exclude annotations off it.
    UpdateMachine,
    /// Set the annotations that make Cluster API skip its own drain, or its wait for volumes.
    ExcludeDrain,
    /// Cordon the Node and leave our marker on it.
    CordonNode,
    /// Put our taints on the Node and take those off that are not asked for any more, together
    /// with the record of which are ours.
    TaintNode,
    /// Put the label on the Node that brings the agent, or take it off.
    LabelNode,
    /// Create the agent's configuration.
    CreateAgentConfig,
    /// Change the agent's configuration.
    UpdateAgentConfig,
    /// Delete the agent's configuration.
    DeleteAgentConfig,
    /// Write the commitment to reclaim on the Machine.
    CommitReclaim,
    /// Switch the schedule off, because the host is reclaimed.
    DisableSchedule,
    /// Create an override that stops the machine, because the host is reclaimed. 409 means that it
    /// is there already.
    CreateOverride,
    /// Note on the Machine that the schedule has been switched off, or the override created.
    RecordDisabled,
    /// Evict one pod from the Node.
    EvictPod,
    /// Delete one pod of a reclaimed host, without asking its disruption budgets.
    DeletePod,
    /// Take the request for reclaim off the Node.
    ClearRequest,
    /// Take our marker off the Node and let pods in again.
    UncordonNode,
    /// Delete the Machine.
    DeleteMachine,
    /// Delete a bootstrap object that no Machine owns.
    DeleteBootstrap,
    /// Delete an infrastructure object that no Machine owns.
    DeleteInfrastructure,
    /// Take our finalizer off the ScheduledMachine.
    RemoveFinalizer,
}

impl Step {
    /// Whether the step takes something away that is not ours to give back.
    pub fn is_destructive(self) -> bool {
        match self {
            Self::ExcludeDrain
            | Self::CordonNode
            | Self::EvictPod
            | Self::DeletePod
            | Self::DeleteMachine
            | Self::DeleteBootstrap
            | Self::DeleteInfrastructure
            | Self::RemoveFinalizer => true,
            Self::AddFinalizer
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
            | Self::CommitReclaim
            | Self::DisableSchedule
            | Self::CreateOverride
            | Self::RecordDisabled
            | Self::ClearRequest
            | Self::UncordonNode => false,
        }
    }
}

/// One request to one of the two API servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Which of them.
    pub side: Side,
    /// Which object.
    pub target: Target,
    /// What to do with it.
    pub call: Call,
}

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where ScheduledMachines and Machines live.
    Management,
    /// Where the Node lives.
    Workload,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Group, version, kind and name. Where no version is said, any that is served will do.
    pub object: Reference,
    /// Namespace; none for a Node.
    pub namespace: Option<String>,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// POST this object. 409 means look again: whose is the one that is there?
    Create(Value),
    /// PATCH with this JSON merge patch (RFC 7386). Uid and resourceVersion are in it.
    Patch(Value),
    /// DELETE in the background, with this uid as precondition.
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

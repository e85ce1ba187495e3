//! Actions: a step, and the request that carries it out.

use fivespot_api::condition::Reason;
use fivespot_capi::Reference;
use serde_json::Value;

use crate::why::Why;

/// One write. It may be sent twice: the server's guard turns the second one into a no-op, a 404
/// or a conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The step that it belongs to.
    pub step: Step,
    /// What to send.
    pub request: Request,
}

/// How a step relates to the others of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The steps after it wait for it.
    InTurn,
    /// Likewise, and it removes something that we cannot restore.
    Destructive,
    /// It is independent of the machine's lifecycle: no step waits for it once it has failed, and
    /// it waits for no other.
    Independent,
}

/// The table of steps: how each relates to the others, and which reason and words `Ready` has for
/// its failure. Without these, the failure is not the business of `Ready`, as that of a step which a
/// condition of its own reports.
macro_rules! steps {
    ($($(#[doc = $doc:literal])+ $step:ident ($order:ident) $(: $reason:expr, $words:literal)?;)+) => {
        /// The purpose of an action. The order is that of a machine's lifecycle.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Step {
            $($(#[doc = $doc])+ $step,)+
        }

        impl Step {
            fn order(self) -> Order {
                match self {
                    $(Self::$step => Order::$order,)+
                }
            }

            /// What `Ready` says while the step fails with this message; `None` if that is not
            /// the business of `Ready`.
            pub(crate) fn failed(self, message: &str) -> Option<Why> {
                match self {
                    $($(Self::$step => Some(Why::new($reason, format!("{}: {message}", $words))),)?)+
                    _ => None,
                }
            }
        }
    };
}

steps! {
    /// Add our finalizer to the ScheduledMachine.
    AddFinalizer (InTurn):
        finalizer_update_failed(), "cannot change the finalizers of the ScheduledMachine";
    /// Create the Lease of a host. 409 means that somebody has the host, maybe this machine.
    ClaimHost (InTurn): Reason::HostClaimFailed, "cannot change the claim of a host";
    /// Create the bootstrap object.
    CreateBootstrap (InTurn):
        Reason::BootstrapCreationFailed, "cannot create the bootstrap object";
    /// Create the infrastructure object.
    CreateInfrastructure (InTurn):
        Reason::InfrastructureCreationFailed, "cannot create the infrastructure object";
    /// Create the Machine.
    CreateMachine (InTurn): Reason::MachineCreationFailed, "cannot create the Machine";
    /// Put the uid of the ScheduledMachine on the label of a Machine that is ours by its owner
    /// reference and has another uid on the label, as after `clusterctl move`.
    RelabelMachine (Independent): Reason::MachineUpdateFailed, "cannot change the Machine";
    /// Set timeouts on the Machine, or remove our exclude annotations from it.
    UpdateMachine (InTurn): Reason::MachineUpdateFailed, "cannot change the Machine";
    /// Set the annotations that make Cluster API skip its own drain, or its wait for volumes.
    ExcludeDrain (Destructive): Reason::MachineUpdateFailed, "cannot change the Machine";
    /// Cordon the Node and put our marker on it.
    CordonNode (Destructive): Reason::NodeDrainFailed, "cannot cordon the Node";
    /// Put our taints on the Node and remove those that are no longer desired, together with the
    /// record of which are ours.
    TaintNode (Independent);
    /// Add or remove the label on the Node that schedules the agent there.
    LabelNode (Independent);
    /// Create the agent's configuration.
    CreateAgentConfig (Independent);
    /// Change the agent's configuration.
    UpdateAgentConfig (Independent);
    /// Delete the agent's configuration.
    DeleteAgentConfig (Independent);
    /// Record the reclaim on the Machine.
    RecordReclaim (InTurn): Reason::MachineUpdateFailed, "cannot change the Machine";
    /// Disable the schedule, because the host is reclaimed.
    DisableSchedule (Independent): Reason::EmergencyReclaim, "cannot disable the schedule";
    /// Create an override that stops the machine, because the host is reclaimed. 409 means that
    /// it already exists.
    CreateOverride (Independent): Reason::EmergencyReclaim, "cannot create an override";
    /// End the override of a reclaim, because the host is free.
    EndOverride (Independent);
    /// Record on the Machine that the schedule has been disabled, or the override created.
    RecordDisabled (Independent): Reason::MachineUpdateFailed, "cannot change the Machine";
    /// Evict one pod from the Node.
    EvictPod (Destructive): Reason::NodeDrainFailed, "cannot evict a pod";
    /// Delete one pod of a reclaimed host, without regard to its disruption budgets.
    DeletePod (Destructive): Reason::NodeDrainFailed, "cannot delete a pod";
    /// Remove the reclaim request from the Node.
    ClearRequest (Independent);
    /// Remove our marker from the Node and uncordon it.
    UncordonNode (InTurn): Reason::NodeDrainFailed, "cannot uncordon the Node";
    /// Delete the Machine.
    DeleteMachine (Destructive): Reason::MachineDeletionFailed, "cannot delete the Machine";
    /// Delete a bootstrap object that no Machine owns.
    DeleteBootstrap (Destructive):
        Reason::MachineDeletionFailed, "cannot delete the bootstrap object";
    /// Delete an infrastructure object that no Machine owns.
    DeleteInfrastructure (Destructive):
        Reason::MachineDeletionFailed, "cannot delete the infrastructure object";
    /// Delete the Lease of a host that is not used any more.
    ReleaseHost (Destructive): Reason::HostClaimFailed, "cannot change the claim of a host";
    /// Remove our finalizer from the ScheduledMachine.
    RemoveFinalizer (Destructive):
        finalizer_update_failed(), "cannot change the finalizers of the ScheduledMachine";
}

fn finalizer_update_failed() -> Reason {
    Reason::Reported("FinalizerUpdateFailed".to_owned())
}

impl Step {
    /// The steps that create a machine, in order.
    pub(crate) const CREATIONS: [Self; 3] = [
        Self::CreateBootstrap,
        Self::CreateInfrastructure,
        Self::CreateMachine,
    ];

    /// Whether the step removes something that we cannot restore.
    pub fn is_destructive(self) -> bool {
        self.order() == Order::Destructive
    }

    /// Whether the step is independent of the machine's lifecycle.
    pub(crate) fn is_independent(self) -> bool {
        self.order() == Order::Independent
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

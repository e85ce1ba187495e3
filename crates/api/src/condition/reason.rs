//! The reasons of conditions, their meanings and remedies.

use std::fmt;

use serde::Serialize;

/// Kubernetes' bound on a condition's reason, in characters.
const MAX_REASON: usize = 1_024;

/// A section of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// Its page below `docs/`, with the anchor of the section unless it is the whole page.
    pub path: &'static str,
}

const AUDIT: Section = Section {
    title: "Start in audit mode",
    path: "how-to/audit-mode.md",
};
const NOT_RUNNING: Section = Section {
    title: "The operator does not act",
    path: "troubleshooting.md#the-operator-does-not-act",
};
const COMES_UP: Section = Section {
    title: "A machine does not come up",
    path: "troubleshooting.md#a-machine-does-not-come-up",
};
const GOES_AWAY: Section = Section {
    title: "A machine does not go away",
    path: "troubleshooting.md#a-machine-does-not-go-away",
};
const KUBECONFIG: Section = Section {
    title: "What is accepted",
    path: "concepts/node-access.md#what-is-accepted",
};
const LIMITS: Section = Section {
    title: "Limits of a class",
    path: "how-to/multi-tenancy.md#limits-of-a-class",
};
const NETWORK: Section = Section {
    title: "Network",
    path: "how-to/install.md#network",
};
const OVERRIDES: Section = Section {
    title: "Override a schedule for some hours",
    path: "how-to/overrides.md",
};
const PERMISSIONS: Section = Section {
    title: "Permissions",
    path: "reference/permissions.md",
};
const RECLAIM: Section = Section {
    title: "Emergency reclaim: returning a host to its owner",
    path: "how-to/reclaim.md",
};
const RESTORE: Section = Section {
    title: "Restore objects that have new uids",
    path: "how-to/backup.md#restore-objects-that-have-new-uids",
};

const UPGRADE: Section = Section {
    title: "Upgrade",
    path: "how-to/upgrade.md",
};

/// What to do when a condition has a certain reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Remedy {
    /// Sentences in Markdown. `NAMESPACE` represents the namespace of the ScheduledMachine.
    pub text: &'static str,
    /// The section with more details.
    pub section: Option<Section>,
}

impl Remedy {
    /// No operator holds a fresh Lease.
    pub const NO_OPERATOR: Self = Self {
        text: "Check the pods of the operator: `kubectl get pods -A -l \
               app.kubernetes.io/name=5spot`. No schedule applies until one of them leads.",
        section: Some(NOT_RUNNING),
    };
    /// An operator runs, and has not reported on the object, or on its present spec.
    pub const NOT_OBSERVED: Self = Self {
        text: "Check that the operator watches namespace NAMESPACE (its flag `--namespaces`), and \
               its log.",
        section: Some(NOT_RUNNING),
    };
    /// The object cannot be decoded.
    pub const NOT_DECODED: Self = Self {
        text: "Correct the object, or use the `5spot` of the version that is installed.",
        section: None,
    };
    /// A provider reports a failure. `OBJECT` represents its object, e.g. `remotemachine worker`.
    pub const PROVIDER_FAILURE: Self = Self {
        text: "The provider cannot continue until the cause that it reports is corrected, for \
               example a Secret that it needs: `kubectl describe OBJECT -n NAMESPACE`.",
        section: Some(COMES_UP),
    };
}

/// Who can act on a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Actor {
    /// The owner of the ScheduledMachine.
    Owner,
    /// The team that runs the cluster, 5-Spot and the providers.
    PlatformTeam,
    /// The provider, or the host that it manages.
    Provider,
    /// Nobody has to act.
    Nobody,
}

impl Actor {
    /// The actor in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "the owner",
            Self::PlatformTeam => "the platform team",
            Self::Provider => "the provider or its host",
            Self::Nobody => "nobody",
        }
    }
}

/// One row of the table of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonRow {
    /// The reason as a string.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Who can act.
    pub actor: Actor,
    /// What to do; `None` if no action is needed.
    pub remedy: Option<Remedy>,
}

impl ReasonRow {
    /// A reason with which there is nothing to do.
    pub(super) const fn well(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            actor: Actor::Nobody,
            remedy: None,
        }
    }
}

/// Declares [`Reason`] so that each reason is spelled once, with its meaning as documentation,
/// who can act, and the remedy: `none`, or sentences and the [`Section`] with more details.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $reason:ident ($actor:ident): $($remedy:tt),+;)+) => {
        /// The reason of a condition.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $reason,)+
            /// A reason that another controller reports, e.g. Cluster API.
            Reported(String),
        }

        impl Reason {
            /// Every reason that 5-Spot itself reports, with its meaning and its remedy.
            pub const TABLE: &'static [ReasonRow] = &[$(ReasonRow {
                name: stringify!($reason),
                meaning: concat!($($doc),+).trim_ascii(),
                actor: Actor::$actor,
                remedy: reasons!(@remedy $($remedy),+),
            },)+];

            /// The reason as a string.
            ///
            /// A reported reason that is not a CamelCase word is written as `Reported`, because
            /// Kubernetes rejects a status with a malformed reason as a whole.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$reason => stringify!($reason),)+
                    Self::Reported(reason) if is_reason(reason) => reason,
                    Self::Reported(_) => "Reported",
                }
            }
        }
    };
    (@remedy none) => { None };
    (@remedy $text:literal) => { Some(Remedy { text: $text, section: None }) };
    (@remedy $text:literal, $section:ident) => {
        Some(Remedy { text: $text, section: Some($section) })
    };
}

reasons! {
    // Ready
    /// The machine is running and its Node is ready.
    MachineRunning (Nobody): none;
    /// No machine is desired and none exists.
    Inactive (Nobody): none;
    /// The schedule is disabled.
    Disabled (Owner): "To return to the schedule, set the field to true that is false: `spec.enabled` or \
         `spec.schedule.enabled`.";
    /// In audit mode, what would be done is reported, and nothing is created, changed or removed.
    Audited (Owner):
        "To have it done, set `spec.enforcement: Enforce`.", AUDIT;
    /// The kill switch removed the machine.
    Terminated (Owner): "To return to the schedule, set `spec.killSwitch: false`.";
    /// The machine is running; a changed spec takes effect at the next activation.
    PendingChanges (Owner):
        "The change applies from the next window on. To apply it now, end the window \
         and open it again.";
    /// The machine is being provisioned.
    Provisioning (Nobody):
        "It continues without you. If it lasts longer than usual, look for the cause.", COMES_UP;
    /// The Node exists but is not ready (also in `NodeTainted`).
    NodeNotReady (PlatformTeam):
        "Inspect the Node in the workload cluster with `kubectl describe node`. The \
         machine is kept.";
    /// The machine is running, but its bootstrap or infrastructure object is missing.
    InfrastructureMissing (Owner):
        "Another client deleted it. End the window or use the kill switch, so that all three \
         objects are created again.";
    /// The machine is shutting down.
    ShuttingDown (Nobody):
        "The Machine is deleted at the deadline, `status.nextCleanup`. If a disruption budget \
         blocks the drain until then, scale its workload.", GOES_AWAY;
    /// The machine is shutting down, without progress for ten minutes.
    RemovalStalled (Provider):
        "The message names the objects, their finalizers, and the reason that Cluster API \
         reports.", GOES_AWAY;
    /// Reconciliation is paused.
    Paused (PlatformTeam):
        "Remove the annotation `cluster.x-k8s.io/paused` from the ScheduledMachine and \
         the Machine, and `spec.paused` from the Cluster.";
    /// The machine is being removed because the owner of its host reclaims it.
    EmergencyReclaim (Nobody):
        "The machine is removed. Then the schedule is disabled or, with \
         `--reclaim-by-override`, an override stops the machine.", RECLAIM;
    /// An object could not be read.
    ReadFailed (PlatformTeam): "The message has the API server's error. The read is retried.";
    /// The CustomResourceDefinition in the cluster lacks fields that the operator needs. It creates
    /// no machine.
    CustomResourceDefinitionOutdated (PlatformTeam):
        "Apply the CustomResourceDefinitions of the operator's release. The chart does so \
         unless `crds.install` is false.", UPGRADE;
    /// The Node was not ready within `provisioning.timeout` (in `Stalled`).
    ProvisioningTimeout (Provider):
        "The machine is not replaced, and the operator still waits for it. Look for the \
         cause.", COMES_UP;
    /// The bootstrap object could not be created.
    BootstrapCreationFailed (PlatformTeam):
        "The message of `Ready` has the API server's error. Often the webhook of the \
         provider does not respond. The step is retried.";
    /// The infrastructure object could not be created.
    InfrastructureCreationFailed (PlatformTeam):
        "The message of `Ready` has the API server's error. Often the webhook of the \
         provider does not respond. The step is retried.";
    /// The Machine could not be created.
    MachineCreationFailed (PlatformTeam):
        "The message has the API server's error. Often the webhook of Cluster API does \
         not respond. The step is retried.";
    /// The Machine could not be updated.
    MachineUpdateFailed (PlatformTeam): "The message has the API server's error. The step is retried.";
    /// The Machine, or a bootstrap or infrastructure object without one, could not be deleted.
    MachineDeletionFailed (PlatformTeam):
        "The message names the cause: a missing permission, or a webhook that does not \
         respond. The step is retried.";
    /// The Node could not be cordoned, or its pods could not be evicted.
    NodeDrainFailed (PlatformTeam):
        "The message names a permission in the workload cluster, or its API server. The \
         Machine is deleted at the deadline in any case.";

    // Scheduled
    /// The current time is inside a window of the schedule.
    ScheduleActive (Nobody): none;
    /// The current time is outside all windows of the schedule.
    ScheduleInactive (Nobody): none;
    /// An override of mode Run is in force.
    OverrideRun (Nobody): none;
    /// An override of mode Stop is in force.
    OverrideStop (Owner):
        "It ends automatically. `5spot overrides -n NAMESPACE` lists it; `--end` with its \
         name ends it now.", OVERRIDES;
    /// An override of mode Hold is in force.
    OverrideHold (Owner):
        "It ends automatically. `5spot overrides -n NAMESPACE` lists it; `--end` with its \
         name ends it now.", OVERRIDES;
    /// An exception of action Run applies today.
    ExceptionRun (Nobody): none;
    /// An exception of action Stop applies today.
    ExceptionStop (Nobody): none;
    /// The schedule is disabled.
    ScheduleDisabled (Owner): "To enable it, set the field to true that is false: `spec.enabled` or \
         `spec.schedule.enabled`.";
    /// A reclaim disabled the schedule.
    EmergencyReclaimDisabledSchedule (Owner):
        "When the owner of the host has finished, set the field to true that is false: \
         `spec.enabled` or `spec.schedule.enabled`.", RECLAIM;
    /// The kill switch overrides the schedule.
    KillSwitchActivated (Owner): "To return to the schedule, set `spec.killSwitch: false`.";

    // ScheduleValid, ReferencesValid
    /// No errors were found.
    Valid (Nobody): none;
    /// The time zone is not in the tz database.
    UnknownTimeZone (Owner): "Use a name such as `Europe/Zurich`.";
    /// The days are invalid.
    InvalidDays (Owner): "Write lower-case names such as `mon-fri`.";
    /// The hours are invalid.
    InvalidHours (Owner): "Write hours from 0 to 23, such as `9-17`.";
    /// The cron expression or its duration is invalid.
    InvalidCron (Owner): "Correct it; `5spot validate` names the position.";
    /// Neither cron nor both of daysOfWeek and hoursOfDay are set.
    Incomplete (Owner): "Set both lists, or `cron`, or `windows`.";
    /// A field of the spec other than the schedule violates a rule.
    InvalidSpec (Owner): "The message names the rule: `5spot explain rule ID`.";
    // SpotScheduleResolved
    /// The schedule that the machine follows is evaluated.
    Resolved (Nobody): none;
    /// The kind of the schedule that the machine follows is not served. What was decided last
    /// holds on.
    ProviderCRDNotInstalled (PlatformTeam):
        "Install the CRDs of this version, or those of the provider of that kind: `5spot check`.";
    /// The schedule that the machine follows does not exist. What was decided last holds on.
    ProviderNotFound (Owner):
        "Create the object that `spec.schedule` names, or correct the name: `kubectl get tbss,cms \
         -n NAMESPACE`.";
    /// The schedule that the machine follows has no `status.active`. What was decided last holds on.
    StatusActiveMissing (PlatformTeam):
        "Look whether the controller of that kind runs: it has not published `status.active`.";
    /// The schedule that the machine follows has changed more than 6 times in 10 minutes. It is
    /// followed once a minute.
    ProviderFlapping (PlatformTeam):
        "Look at the controller of that kind: `status.active` changes to and fro.";
    /// The schedule that the machine follows cannot be evaluated. What was decided last holds on.
    ProviderNotReady (Owner):
        "Correct the object that `spec.schedule` names; the message says what is wrong.";
    /// No host of the class is free. The machine takes the next one, machines with a higher priority
    /// first.
    NoHostFree (PlatformTeam):
        "Have a host added to the class, or end a machine that has one: its `status.host` is set.";
    /// The Lease of a host could not be created or deleted.
    HostClaimFailed (PlatformTeam):
        "The operator creates and deletes Leases in its own namespace; the message says what it was \
         refused.", PERMISSIONS;
    /// A limit of the class is reached: for the machines of one namespace, or for those that begin
    /// within a minute. Machines with a higher priority come first.
    LimitReached (PlatformTeam):
        "The message says which limit it is, and when the machine may be made. To have it made now, \
         end another machine of the class, or have `spec.limits` or `spec.startsPerMinute` of the \
         class raised.", LIMITS;
    /// Another ScheduledMachine has the host that the machine names.
    HostTaken (Owner):
        "Name another host in `spec.classRef.host`, or end the machine that the message names.";
    // ReferencesValid
    /// A ScheduleCalendar does not exist: its exceptions do not apply (also in `Ready`).
    CalendarNotFound (Owner):
        "Create the calendar, or remove the exception: `kubectl get smc -n NAMESPACE`. \
         The schedule applies without it meanwhile.";
    /// The class of the machine does not exist. No machine is created; one that exists leaves as
    /// usual.
    ClassNotFound (Owner):
        "Check `spec.classRef.name` for a typo, or have the class created: `kubectl get smclass`.";
    /// The class of the machine does not select the namespace, or does not allow the Cluster. No
    /// machine is created; one that exists leaves as usual.
    ClassNotAllowed (PlatformTeam):
        "The team that owns the class decides which namespaces and Clusters may use it: `kubectl \
         describe smclass`.";
    /// The class of the machine does not have the host that the machine names. No machine is
    /// created; one that exists leaves as usual.
    HostNotFound (Owner):
        "Check `spec.classRef.host` for a typo, or have the host added to the class: `kubectl \
         describe smclass`.";
    /// The Cluster does not exist.
    ClusterNotFound (Owner):
        "Check `spec.clusterName` for a typo. The Cluster must be in the same \
         namespace: `kubectl get clusters -n NAMESPACE`.";
    /// The Cluster is being deleted.
    ClusterDeleting (Owner):
        "No machine is created for a Cluster that is being deleted. If this is not \
         intended, create the Cluster again.";
    /// The Cluster is not initialized.
    ClusterNotReady (PlatformTeam):
        "Its control plane and its infrastructure have to be ready: `kubectl describe cluster -n \
         NAMESPACE` shows what is missing.";
    /// A bootstrap or infrastructure spec exceeds the size limit.
    SpecTooLarge (Owner):
        "Keep it below 256 KiB; put large files into Secrets that the provider reads.";
    /// An object with this name exists and is not owned by the ScheduledMachine.
    NameTaken (Owner):
        "Rename one of the two. After a restore, label the objects so that this \
         ScheduledMachine owns them.", RESTORE;
    /// The API server does not serve this kind.
    KindNotServed (PlatformTeam):
        "Install the provider, or correct `apiVersion` and `kind`: `kubectl \
         api-resources`.";
    /// The operator lacks a permission; the message names the role to extend.
    Forbidden (PlatformTeam):
        "Generate the roles again with the missing `--provider`, `--kubeconfig` or \
         `--namespace`, and apply them.", PERMISSIONS;
    /// The API server rejected the object.
    Rejected (Owner):
        "Correct what the API server's error names: a field that the provider's version \
         does not have, a quota, or a policy.";

    // MachineReady
    /// There is no Machine.
    NoMachine (Nobody): none;

    // NodeAccess
    /// The workload cluster is reachable.
    Connected (Nobody): none;
    /// The kubeconfig Secret does not exist.
    KubeconfigMissing (PlatformTeam):
        "Cluster API creates the Secret `<cluster>-kubeconfig` when the control plane \
         is initialized. Check the Cluster.";
    /// The kubeconfig uses a feature that 5-Spot rejects for security (exec, auth provider, file
    /// path, proxy, impersonation).
    KubeconfigRefused (PlatformTeam): "Give it inline credentials.", KUBECONFIG;
    /// The workload cluster does not respond.
    Unreachable (PlatformTeam): "Check the NetworkPolicy and the port.", NETWORK;
    /// The objects of the workload cluster exceed the size limit.
    TooLarge (PlatformTeam):
        "A cluster with more than 10,000 objects of a kind on the Node cannot be \
         drained by 5-Spot; Cluster API drains it.";
    /// The workload cluster rejects the credentials.
    Unauthorized (PlatformTeam):
        "The kubeconfig has expired, or its user lacks the role: `5spot generate rbac \
         --workload`.";
    /// The Node belongs to another Machine or to two Machines, or has a control-plane role. It is
    /// not changed.
    NodeNotOurs (Owner):
        "Two ScheduledMachines may use one host (lint SL010). Correct the address or \
         the providerID.";

    // NodeTainted
    /// All taints are applied.
    Applied (Nobody): none;
    /// There is no Node.
    NoNodeYet (Nobody):
        "It continues without you. If it lasts longer than usual, look for the cause.", COMES_UP;
    /// The Node could not be patched.
    PatchFailed (PlatformTeam):
        "The message names the cause, often a missing permission in the workload \
         cluster.";
    /// Another client has set a taint with this key and effect.
    TaintOwnershipConflict (Owner):
        "Remove one of the two: the taint on the Node, or the entry of \
         `spec.nodeTaints`.";

    // AgentReady
    /// The agent runs with the desired configuration.
    Running (Nobody): none;
    /// No agent has reported.
    NotInstalled (PlatformTeam):
        "Install the agent in the workload cluster, and check that its pod runs on the \
         Node.", RECLAIM;
    /// The agent rejected its configuration.
    ConfigRejected (Owner):
        "The message names the entry, or the policy that is not in force. Correct it.", RECLAIM;
}

impl Reason {
    /// The row of a reason by its name. `None` for a reason of another controller.
    pub fn row(name: &str) -> Option<&'static ReasonRow> {
        Self::TABLE.iter().find(|row| row.name == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Kubernetes' format of a condition reason, `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`.
fn is_reason(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "_,:".contains(letter);
    text.len() <= MAX_REASON
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(inner)
        && !text.ends_with([',', ':'])
}

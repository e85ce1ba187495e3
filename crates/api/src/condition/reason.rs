//! The reasons of conditions, their meanings and remedies.

use std::fmt;

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

/// One row of the table of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonRow {
    /// The reason as a string.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to do; `None` if no action is needed.
    pub remedy: Option<Remedy>,
}

/// Declares [`Reason`] so that each reason is spelled once, with its meaning as documentation
/// and its remedy: `none`, or sentences and the [`Section`] with more details.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $reason:ident: $($remedy:tt),+;)+) => {
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
    MachineRunning: none;
    /// No machine is desired and none exists.
    Inactive: none;
    /// The schedule is disabled.
    Disabled: "To return to the schedule, set `spec.schedule.enabled: true`.";
    /// The kill switch removed the machine.
    Terminated: "To return to the schedule, set `spec.killSwitch: false`.";
    /// The machine is running; a changed spec takes effect at the next activation.
    PendingChanges:
        "The change applies from the next window on. To apply it now, end the window \
         and open it again.";
    /// The machine is being provisioned.
    Provisioning: "Wait. If it lasts longer than usual, look for the cause.", COMES_UP;
    /// The Node exists but is not ready (also in `NodeTainted`).
    NodeNotReady:
        "Inspect the Node in the workload cluster with `kubectl describe node`. The \
         machine is kept.";
    /// The machine is running, but its bootstrap or infrastructure object is missing.
    InfrastructureMissing:
        "Another client deleted it. End the window or use the kill switch, so that all three \
         objects are created again.";
    /// The machine is shutting down.
    ShuttingDown: none;
    /// The machine is shutting down, without progress for ten minutes.
    RemovalStalled:
        "The message names the objects, their finalizers, and the reason that Cluster API \
         reports.", GOES_AWAY;
    /// Reconciliation is paused.
    Paused:
        "Remove the annotation `cluster.x-k8s.io/paused` from the ScheduledMachine and \
         the Machine, and `spec.paused` from the Cluster.";
    /// The machine is being removed because the owner of its host reclaims it.
    EmergencyReclaim:
        "Wait until the machine is removed. Then the schedule is disabled or, with \
         `--reclaim-by-override`, an override stops the machine.", RECLAIM;
    /// An object could not be read.
    ReadFailed: "The message has the API server's error. The read is retried.";
    /// The CustomResourceDefinition in the cluster lacks fields that the operator needs. It creates
    /// no machine.
    CustomResourceDefinitionOutdated:
        "Apply the CustomResourceDefinitions of the operator's release. The chart does so \
         unless `crds.install` is false.", UPGRADE;
    /// The Node was not ready within `provisioning.timeout` (in `Stalled`).
    ProvisioningTimeout:
        "The machine is not replaced, and the operator still waits for it. Look for the \
         cause.", COMES_UP;
    /// The bootstrap object could not be created.
    BootstrapCreationFailed:
        "The message of `Ready` has the API server's error. Often the webhook of the \
         provider does not respond. The step is retried.";
    /// The infrastructure object could not be created.
    InfrastructureCreationFailed:
        "The message of `Ready` has the API server's error. Often the webhook of the \
         provider does not respond. The step is retried.";
    /// The Machine could not be created.
    MachineCreationFailed:
        "The message has the API server's error. Often the webhook of Cluster API does \
         not respond. The step is retried.";
    /// The Machine could not be updated.
    MachineUpdateFailed: "The message has the API server's error. The step is retried.";
    /// The Machine, or a bootstrap or infrastructure object without one, could not be deleted.
    MachineDeletionFailed:
        "The message names the cause: a missing permission, or a webhook that does not \
         respond. The step is retried.";
    /// The Node could not be cordoned, or its pods could not be evicted.
    NodeDrainFailed:
        "The message names a permission in the workload cluster, or its API server. The \
         Machine is deleted at the deadline in any case.";

    // Scheduled
    /// The current time is inside a window of the schedule.
    ScheduleActive: none;
    /// The current time is outside all windows of the schedule.
    ScheduleInactive: none;
    /// An override of mode Run is in force.
    OverrideRun: none;
    /// An override of mode Stop is in force.
    OverrideStop:
        "It ends automatically. `5spot overrides -n NAMESPACE` lists it; `--end` with its \
         name ends it now.", OVERRIDES;
    /// An override of mode Hold is in force.
    OverrideHold:
        "It ends automatically. `5spot overrides -n NAMESPACE` lists it; `--end` with its \
         name ends it now.", OVERRIDES;
    /// An exception of action Run applies today.
    ExceptionRun: none;
    /// An exception of action Stop applies today.
    ExceptionStop: none;
    /// The schedule is disabled.
    ScheduleDisabled: "To enable it, set `spec.schedule.enabled: true`.";
    /// A reclaim disabled the schedule.
    EmergencyReclaimDisabledSchedule:
        "When the owner of the host has finished, set `spec.schedule.enabled: true`.", RECLAIM;
    /// The kill switch overrides the schedule.
    KillSwitchActivated: "To return to the schedule, set `spec.killSwitch: false`.";

    // ScheduleValid, ReferencesValid
    /// No errors were found.
    Valid: none;
    /// The time zone is not in the tz database.
    UnknownTimeZone: "Use a name such as `Europe/Zurich`.";
    /// The days are invalid.
    InvalidDays: "Write lower-case names such as `mon-fri`.";
    /// The hours are invalid.
    InvalidHours: "Write hours from 0 to 23, such as `9-17`.";
    /// The cron expression or its duration is invalid.
    InvalidCron: "Correct it; `5spot validate` names the position.";
    /// Neither cron nor both of daysOfWeek and hoursOfDay are set.
    Incomplete: "Set both lists, or `cron`, or `windows`.";
    /// A field of the spec other than the schedule violates a rule.
    InvalidSpec: "The message names the rule: `5spot explain rule ID`.";
    /// A ScheduleCalendar does not exist: its exceptions do not apply (also in `Ready`).
    CalendarNotFound:
        "Create the calendar, or remove the exception: `kubectl get smc -n NAMESPACE`. \
         The schedule applies without it meanwhile.";
    /// The Cluster does not exist.
    ClusterNotFound:
        "Check `spec.clusterName` for a typo. The Cluster must be in the same \
         namespace: `kubectl get clusters -n NAMESPACE`.";
    /// The Cluster is being deleted.
    ClusterDeleting:
        "No machine is created for a Cluster that is being deleted. If this is not \
         intended, create the Cluster again.";
    /// The Cluster is not initialized.
    ClusterNotReady:
        "Wait for its control plane and infrastructure: `kubectl describe cluster -n \
         NAMESPACE`.";
    /// A bootstrap or infrastructure spec exceeds the size limit.
    SpecTooLarge:
        "Keep it below 256 KiB; put large files into Secrets that the provider reads.";
    /// An object with this name exists and is not owned by the ScheduledMachine.
    NameTaken:
        "Rename one of the two. After a restore, label the objects so that this \
         ScheduledMachine owns them.", RESTORE;
    /// The API server does not serve this kind.
    KindNotServed:
        "Install the provider, or correct `apiVersion` and `kind`: `kubectl \
         api-resources`.";
    /// The operator lacks a permission; the message names the role to extend.
    Forbidden:
        "Generate the roles again with the missing `--provider`, `--kubeconfig` or \
         `--namespace`, and apply them.", PERMISSIONS;
    /// The API server rejected the object.
    Rejected:
        "The message has the API server's error: a field that the provider's version \
         does not have, a quota, or a policy.";

    // MachineReady
    /// There is no Machine.
    NoMachine: none;

    // NodeAccess
    /// The workload cluster is reachable.
    Connected: none;
    /// The kubeconfig Secret does not exist.
    KubeconfigMissing:
        "Cluster API creates the Secret `<cluster>-kubeconfig` when the control plane \
         is initialized. Check the Cluster.";
    /// The kubeconfig uses a feature that 5-Spot rejects for security (exec, auth provider, file
    /// path, proxy, impersonation).
    KubeconfigRefused: "Give it inline credentials.", KUBECONFIG;
    /// The workload cluster does not respond.
    Unreachable: "Check the NetworkPolicy and the port.", NETWORK;
    /// The objects of the workload cluster exceed the size limit.
    TooLarge:
        "A cluster with more than 10,000 objects of a kind on the Node cannot be \
         drained by 5-Spot; Cluster API drains it.";
    /// The workload cluster rejects the credentials.
    Unauthorized:
        "The kubeconfig has expired, or its user lacks the role: `5spot generate rbac \
         --workload`.";
    /// The Node belongs to another Machine or to two Machines, or has a control-plane role. It is
    /// not changed.
    NodeNotOurs:
        "Two ScheduledMachines may use one host (lint SL010). Correct the address or \
         the providerID.";

    // NodeTainted
    /// All taints are applied.
    Applied: none;
    /// There is no Node.
    NoNodeYet: "Wait. If it lasts longer than usual, look for the cause.", COMES_UP;
    /// The Node could not be patched.
    PatchFailed:
        "The message names the cause, often a missing permission in the workload \
         cluster.";
    /// Another client has set a taint with this key and effect.
    TaintOwnershipConflict:
        "Remove one of the two: the taint on the Node, or the entry of \
         `spec.nodeTaints`.";

    // AgentReady
    /// The agent runs with the desired configuration.
    Running: none;
    /// No agent has reported.
    NotInstalled:
        "Install the agent in the workload cluster, and check that its pod runs on the \
         Node.", RECLAIM;
    /// The agent rejected its configuration.
    ConfigRejected:
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

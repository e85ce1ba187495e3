//! What a user sees: one row for each breakage.

use fivespot_api::condition::Remedy;
use fivespot_api::verdict::State;

/// A breakage, and what a user then sees of the machine. A `-` represents nothing.
pub(super) struct Breakage {
    /// The breakage.
    pub(super) what: &'static str,
    /// The state that `5spot status`, `5spot explain` and the dashboard show.
    pub(super) state: State,
    /// The columns of `kubectl get`.
    pub(super) phase: &'static str,
    /// Status and reason of the condition `Ready`.
    pub(super) ready: &'static str,
    /// The reason of the condition `Stalled`.
    pub(super) stalled: &'static str,
    /// The reason of a Warning event about it. A `-` means that there is no Warning at all.
    pub(super) warning: &'static str,
    /// The result of kstatus.
    pub(super) kstatus: &'static str,
    /// The message of the status.
    pub(super) message: &'static str,
    /// The reason whose remedy is in the table of reasons, or the remedy.
    pub(super) remedy: &'static str,
}

/// The values that are compared with the object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExpectedColumns {
    pub(super) phase: String,
    pub(super) ready: String,
    pub(super) stalled: String,
    pub(super) message: String,
}

impl Breakage {
    pub(super) fn columns(&self) -> ExpectedColumns {
        ExpectedColumns {
            phase: self.phase.to_owned(),
            ready: self.ready.to_owned(),
            stalled: self.stalled.to_owned(),
            message: self.message.to_owned(),
        }
    }
}

/// The row with this title.
pub(super) fn row(what: &str) -> &'static Breakage {
    let mut all = BREAKAGES.iter().chain(HEALTHY);
    all.find(|row| row.what == what).expect("a row")
}

/// The breakages.
pub(super) const BREAKAGES: &[Breakage] = &[
    Breakage {
        what: "the operator does not run",
        state: State::Unknown,
        phase: "-",
        ready: "- -",
        stalled: "-",
        warning: "-",
        kstatus: "InProgress",
        message: "-",
        remedy: Remedy::NO_OPERATOR.text,
    },
    Breakage {
        what: "the bootstrap kind is not served",
        state: State::Blocked,
        phase: "Pending",
        ready: "False KindNotServed",
        stalled: "KindNotServed",
        warning: "KindNotServed",
        kstatus: "Failed",
        message: "the API server does not serve NowhereConfig of bootstrap.cluster.x-k8s.io; install its provider",
        remedy: "KindNotServed",
    },
    Breakage {
        what: "the infrastructure kind is not served",
        state: State::Blocked,
        phase: "Pending",
        ready: "False KindNotServed",
        stalled: "KindNotServed",
        warning: "KindNotServed",
        kstatus: "Failed",
        message: "the API server does not serve NowhereMachine of infrastructure.cluster.x-k8s.io; install its provider",
        remedy: "KindNotServed",
    },
    Breakage {
        what: "the Cluster does not exist",
        state: State::Blocked,
        phase: "Pending",
        ready: "False ClusterNotFound",
        stalled: "ClusterNotFound",
        warning: "ClusterNotFound",
        kstatus: "Failed",
        message: "there is no Cluster production-cluster in this namespace; create it, or correct spec.clusterName",
        remedy: "ClusterNotFound",
    },
    Breakage {
        what: "the Cluster does not exist, outside the window",
        state: State::Off,
        phase: "Inactive",
        ready: "False ClusterNotFound",
        stalled: "-",
        warning: "-",
        kstatus: "InProgress",
        message: "no machine is wanted until <time>; there is no Cluster production-cluster in this namespace; create it, or correct spec.clusterName",
        remedy: "ClusterNotFound",
    },
    Breakage {
        what: "another object already has the name",
        state: State::Blocked,
        phase: "Error",
        ready: "False NameTaken",
        stalled: "NameTaken",
        warning: "NameTaken",
        kstatus: "Failed",
        message: "a K0sWorkerConfig worker exists and is not owned by this ScheduledMachine; rename one of the two",
        remedy: "NameTaken",
    },
    Breakage {
        what: "a quota refuses an object",
        state: State::Blocked,
        phase: "Error",
        ready: "False BootstrapCreationFailed",
        stalled: "Rejected",
        warning: "Rejected",
        kstatus: "Failed",
        message: "cannot create the bootstrap object: k0sworkerconfigs.bootstrap.cluster.x-k8s.io \"worker\" is forbidden: exceeded quota: machines, requested: count/k0sworkerconfigs.bootstrap.cluster.x-k8s.io=1, used: count/k0sworkerconfigs.bootstrap.cluster.x-k8s.io=0, limited: count/k0sworkerconfigs.bootstrap.cluster.x-k8s.io=0",
        remedy: "Rejected",
    },
    Breakage {
        what: "a policy or a webhook refuses an object",
        state: State::Blocked,
        phase: "Error",
        ready: "False BootstrapCreationFailed",
        stalled: "Rejected",
        warning: "Rejected",
        kstatus: "Failed",
        message: "cannot create the bootstrap object: k0sworkerconfigs.bootstrap.cluster.x-k8s.io \"worker\" is forbidden: ValidatingAdmissionPolicy 'refuses' with binding 'refuses' denied request: k0s must be installed on the host",
        remedy: "Rejected",
    },
    Breakage {
        what: "a webhook of the provider does not respond",
        state: State::Blocked,
        phase: "Error",
        ready: "False BootstrapCreationFailed",
        stalled: "-",
        warning: "BootstrapCreationFailed",
        kstatus: "InProgress",
        message: "cannot create the bootstrap object: Internal error occurred: failed calling webhook \"bootstrap.example.com\": failed to call webhook: Post \"https://127.0.0.1:1/validate?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused",
        remedy: "BootstrapCreationFailed",
    },
    Breakage {
        what: "the operator lacks a permission",
        state: State::Blocked,
        phase: "Error",
        ready: "False BootstrapCreationFailed",
        stalled: "Forbidden",
        warning: "Forbidden",
        kstatus: "Failed",
        message: "cannot create the bootstrap object: k0sworkerconfigs.bootstrap.cluster.x-k8s.io is forbidden: User \"system:serviceaccount:5spot-system:5spot-controller\" cannot create resource \"k0sworkerconfigs\" in API group \"bootstrap.cluster.x-k8s.io\" in the namespace \"default\"",
        remedy: "Forbidden",
    },
    Breakage {
        what: "the provider reports a failure",
        state: State::Starting,
        phase: "Pending",
        ready: "False Provisioning",
        stalled: "-",
        warning: "-",
        kstatus: "InProgress",
        message: "waiting for Machine worker to get a Node; RemoteMachine worker: ProvisionFailed: secrets \"worker-key\" not found",
        remedy: Remedy::PROVIDER_FAILURE.text,
    },
    Breakage {
        what: "no Node is ready after provisioning.timeout",
        state: State::Blocked,
        phase: "Pending",
        ready: "False Provisioning",
        stalled: "ProvisioningTimeout",
        warning: "ProvisioningTimeout",
        kstatus: "Failed",
        message: "waiting for Machine worker to get a Node; RemoteMachine worker: ProvisionFailed: secrets \"worker-key\" not found",
        remedy: Remedy::PROVIDER_FAILURE.text,
    },
    Breakage {
        what: "the Node is no longer ready",
        state: State::Late,
        phase: "Active",
        ready: "False NodeNotReady",
        stalled: "-",
        warning: "NodeNotReady",
        kstatus: "InProgress",
        message: "Node worker is no longer ready",
        remedy: "NodeNotReady",
    },
    Breakage {
        what: "a calendar does not exist",
        state: State::Serving,
        phase: "Active",
        ready: "True CalendarNotFound",
        stalled: "-",
        warning: "CalendarNotFound",
        kstatus: "Current",
        message: "Node worker is in service until <time>; there is no ScheduleCalendar company in this namespace: its exceptions do not apply; create it",
        remedy: "CalendarNotFound",
    },
    Breakage {
        what: "the time zone is unknown",
        state: State::Blocked,
        phase: "Error",
        ready: "False UnknownTimeZone",
        stalled: "UnknownTimeZone",
        warning: "UnknownTimeZone",
        kstatus: "Failed",
        message: "spec.schedule: time zone: 'Europe/Zurch' is not in the tz database; use an IANA name such as 'Europe/Zurich'; nothing is changed",
        remedy: "UnknownTimeZone",
    },
    Breakage {
        what: "an invalid schedule was admitted",
        state: State::Blocked,
        phase: "Error",
        ready: "False InvalidHours",
        stalled: "InvalidHours",
        warning: "InvalidHours",
        kstatus: "Failed",
        message: "spec.schedule: hours[0]: expected an hour from 0 to 23, found '25'; nothing is changed",
        remedy: "InvalidHours",
    },
    Breakage {
        what: "the cron expression never fires",
        state: State::Off,
        phase: "Inactive",
        ready: "True Inactive",
        stalled: "-",
        warning: "NeverNeeded",
        kstatus: "Current",
        message: "no machine is wanted: the cron expression '0 0 30 2 *' never fires: that day does not exist in the months that it names; correct spec.schedule.cron",
        remedy: "Correct the expression; `5spot validate` rejects it. `Ready` is true, because the schedule requests no machine.",
    },
    Breakage {
        what: "a disruption budget blocks the drain",
        state: State::Leaving,
        phase: "ShuttingDown",
        ready: "False ShuttingDown",
        stalled: "-",
        warning: "-",
        kstatus: "InProgress",
        message: "evicting 1 pod from Node worker; default/only is not evicted: Cannot evict pod as it would violate the pod's disruption budget. The disruption budget shop needs 1 healthy pods and has 1 currently",
        remedy: "ShuttingDown",
    },
    Breakage {
        what: "the provider does not remove the host",
        state: State::Blocked,
        phase: "ShuttingDown",
        ready: "False RemovalStalled",
        stalled: "RemovalStalled",
        warning: "RemovalStalled",
        kstatus: "Failed",
        message: "Machine worker has not changed for 10 minutes: WaitingForInfrastructureDeletion; RemoteMachine worker has the finalizers example.com/hold",
        remedy: "RemovalStalled",
    },
    Breakage {
        what: "the kubeconfig of the Cluster does not exist",
        state: State::Serving,
        phase: "Active",
        ready: "True MachineRunning",
        stalled: "-",
        warning: "-",
        kstatus: "Current",
        message: "Node worker is in service until <time>",
        remedy: "KubeconfigMissing",
    },
    Breakage {
        what: "the Cluster is paused, and the kill switch is set",
        state: State::Blocked,
        phase: "Active",
        ready: "False Paused",
        stalled: "-",
        warning: "-",
        kstatus: "InProgress",
        message: "the kill switch waits: the Cluster production-cluster is paused, and nothing is changed until it is resumed",
        remedy: "Paused",
    },
];

/// Rows without a breakage.
pub(super) const HEALTHY: &[Breakage] = &[
    Breakage {
        what: "the machine is in service",
        state: State::Serving,
        phase: "Active",
        ready: "True MachineRunning",
        stalled: "-",
        warning: "-",
        kstatus: "Current",
        message: "Node worker is in service until <time>",
        remedy: "-",
    },
    Breakage {
        what: "no window is open",
        state: State::Off,
        phase: "Inactive",
        ready: "True Inactive",
        stalled: "-",
        warning: "-",
        kstatus: "Current",
        message: "no machine is wanted until <time>",
        remedy: "-",
    },
    Breakage {
        what: "the machine is being provisioned",
        state: State::Starting,
        phase: "Pending",
        ready: "False Provisioning",
        stalled: "-",
        warning: "-",
        kstatus: "InProgress",
        message: "waiting for Machine worker to get a Node",
        remedy: "-",
    },
    Breakage {
        what: "the schedule is disabled",
        state: State::Disabled,
        phase: "Disabled",
        ready: "True Disabled",
        stalled: "-",
        warning: "-",
        kstatus: "Current",
        message: "the schedule is disabled",
        remedy: "-",
    },
    Breakage {
        what: "the kill switch is set",
        state: State::Killed,
        phase: "Terminated",
        ready: "True Terminated",
        stalled: "-",
        warning: "KillSwitchActivated",
        kstatus: "Current",
        message: "no machine runs while the kill switch is set; set spec.killSwitch to false to return to service",
        remedy: "-",
    },
];

//! The promises: the steps of each promise, and the facts that must be observed.

use std::fmt;

/// A promise that a provider keeps or breaks.
#[derive(Debug)]
pub(crate) struct Promise {
    /// The name, which `--only` selects.
    pub(crate) name: &'static str,
    /// What the provider does, as a sentence without a period.
    pub(crate) meaning: &'static str,
    /// The input that the promise needs from the command line, if any.
    pub(crate) needs: Option<Need>,
    /// What must not be observed at any time after the pod was added.
    pub(crate) forbidden: Option<Violation>,
    /// The steps, in order.
    pub(crate) steps: &'static [&'static [Step]],
}

/// An input that not every user can provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// An infrastructure object whose host never joins.
    Unreachable,
    /// A command that restarts the provider.
    Restart,
}

impl Need {
    /// The instruction to provide it.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Unreachable => {
                "give an infrastructure object whose host never joins with --unreachable"
            }
            Self::Restart => {
                "give a command that restarts the provider with --restart-command"
            }
        }
    }
}

/// One step of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Create the ScheduledMachine, wanted at all times.
    Create(Limits),
    /// Put a pod on the Node.
    AddPod {
        /// Whether a PodDisruptionBudget forbids to evict it.
        has_budget: bool,
    },
    /// Make a change.
    Apply(Change),
    /// Wait until the fact is observed. If it is not observed within the timeout, the promise is
    /// broken.
    Await(Fact),
    /// Wait until the fact is observed. If it is not observed within the timeout, the promise
    /// cannot be run.
    Require(Fact),
}

/// The durations of a ScheduledMachine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// `gracefulShutdownTimeout` and `nodeDrainTimeout`.
    pub(crate) drain: &'static str,
    /// `provisioning.timeout`.
    pub(crate) provisioning: &'static str,
}

impl Limits {
    const fn drain(drain: &'static str) -> Self {
        Self {
            drain,
            provisioning: LONG_DURATION,
        }
    }
}

/// A change that a user makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Create a ScheduleOverride of mode Stop.
    Stop,
    /// Delete the ScheduleOverride.
    Resume,
    /// Set the kill switch.
    Kill,
    /// Set `schedule.enabled` to false.
    Disable,
    /// Delete the ScheduledMachine.
    Delete,
    /// Restart the provider.
    Restart,
}

/// An object that belongs to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    ScheduledMachine,
    Bootstrap,
    Infrastructure,
    Machine,
    Node,
    Pod,
}

/// A fact that can be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// The object exists.
    Exists(Part),
    /// The object does not exist.
    Gone(Part),
    /// The Machine has the name of the Secret with its bootstrap data.
    BootstrapData,
    /// Machine and Node have the same providerID.
    ProviderId,
    /// The Node is Ready.
    NodeReady,
    /// The Node is not cordoned.
    Schedulable,
    /// The pod is Ready.
    PodReady,
    /// The phase of the ScheduledMachine.
    Phase(&'static str),
    /// The ScheduledMachine is Stalled for this reason.
    Stalled(&'static str),
}

/// A state that must not occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The Machine is gone while a pod that could be evicted still exists.
    MachineBeforePod,
    /// Another Machine has replaced the first one.
    MachineReplaced,
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ScheduledMachine => "ScheduledMachine",
            Self::Bootstrap => "bootstrap object",
            Self::Infrastructure => "infrastructure object",
            Self::Machine => "Machine",
            Self::Node => "Node",
            Self::Pod => "pod",
        })
    }
}

/// Displayed after `waiting until`.
impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(part) => write!(formatter, "the {part} exists"),
            Self::Gone(part) => write!(formatter, "the {part} is gone"),
            Self::BootstrapData => formatter.write_str("the bootstrap data exist"),
            Self::ProviderId => {
                formatter.write_str("Machine and Node have the same providerID")
            }
            Self::NodeReady => formatter.write_str("the Node is Ready"),
            Self::Schedulable => formatter.write_str("the Node is schedulable"),
            Self::PodReady => formatter.write_str("the pod is Ready"),
            Self::Phase(phase) => write!(formatter, "the phase is {phase}"),
            Self::Stalled(reason) => write!(formatter, "Stalled is True ({reason})"),
        }
    }
}

/// A drain timeout that an unblocked drain does not reach.
const NORMAL_DRAIN: &str = "5m";
/// A drain timeout for promises that wait until it passes.
const SHORT_DRAIN: &str = "30s";
/// A drain timeout that no run reaches.
const LONG_DURATION: &str = "12h";

const CREATE: &[Step] = &[Step::Create(Limits::drain(NORMAL_DRAIN))];
const CREATE_SHORT: &[Step] = &[Step::Create(Limits::drain(SHORT_DRAIN))];
const CREATE_LONG: &[Step] = &[Step::Create(Limits::drain(LONG_DURATION))];
/// With the shortest valid provisioning.timeout.
const CREATE_SHORT_PROVISIONING: &[Step] = &[Step::Create(Limits {
    drain: NORMAL_DRAIN,
    provisioning: "1m",
})];
const ACTIVE: &[Step] = &[
    Step::Await(Fact::NodeReady),
    Step::Await(Fact::Phase("Active")),
];
const POD_WITH_BUDGET: &[Step] = &[
    Step::AddPod { has_budget: true },
    Step::Require(Fact::PodReady),
];
/// The Machine is awaited after the objects that it refers to, so that the one that blocks its
/// deletion is reported.
const ALL_GONE: &[Step] = &[
    Step::Await(Fact::Gone(Part::Infrastructure)),
    Step::Await(Fact::Gone(Part::Bootstrap)),
    Step::Await(Fact::Gone(Part::Machine)),
    Step::Await(Fact::Gone(Part::Node)),
];
const DELETE: &[Step] = &[Step::Apply(Change::Delete)];
const DELETED: &[Step] = &[Step::Await(Fact::Gone(Part::ScheduledMachine))];
const STOP: &[Step] = &[Step::Apply(Change::Stop)];
const SHUTTING_DOWN: &[Step] = &[Step::Await(Fact::Phase("ShuttingDown"))];
const INACTIVE: &[Step] = &[Step::Await(Fact::Phase("Inactive"))];
const RESTART: &[Step] = &[Step::Apply(Change::Restart)];

/// All promises, in the order in which they are run.
pub(crate) const PROMISES: &[Promise] = &[
    Promise {
        name: "opens",
        meaning: "a host joins: bootstrap data, a providerID that Machine and Node share, and a \
                  Ready Node",
        needs: None,
        forbidden: None,
        steps: &[
            CREATE,
            &[
                Step::Await(Fact::Exists(Part::Bootstrap)),
                Step::Await(Fact::Exists(Part::Infrastructure)),
                Step::Await(Fact::Exists(Part::Machine)),
                Step::Await(Fact::BootstrapData),
                Step::Await(Fact::Exists(Part::Node)),
                Step::Await(Fact::ProviderId),
            ],
            ACTIVE,
        ],
    },
    Promise {
        name: "closes",
        meaning: "a host stays until its pods are evicted, and leaves no object and no Node",
        needs: None,
        forbidden: Some(Violation::MachineBeforePod),
        steps: &[
            CREATE,
            ACTIVE,
            &[
                Step::AddPod { has_budget: false },
                Step::Require(Fact::Exists(Part::Pod)),
            ],
            STOP,
            &[Step::Await(Fact::Gone(Part::Pod))],
            ALL_GONE,
            INACTIVE,
            DELETE,
            DELETED,
        ],
    },
    Promise {
        name: "reopens",
        meaning: "the same host joins again after it has left",
        needs: None,
        forbidden: None,
        steps: &[
            CREATE,
            ACTIVE,
            STOP,
            ALL_GONE,
            INACTIVE,
            &[Step::Apply(Change::Resume)],
            &[Step::Await(Fact::Exists(Part::Machine))],
            ACTIVE,
        ],
    },
    Promise {
        name: "drain-deadline",
        meaning: "a host leaves at the deadline although a pod cannot be evicted",
        needs: None,
        forbidden: None,
        steps: &[
            CREATE_SHORT,
            ACTIVE,
            POD_WITH_BUDGET,
            STOP,
            ALL_GONE,
            INACTIVE,
        ],
    },
    Promise {
        name: "cancelled-close",
        meaning: "a close that is cancelled leaves the same Machine, its Node schedulable again",
        needs: None,
        forbidden: Some(Violation::MachineReplaced),
        steps: &[
            CREATE_LONG,
            ACTIVE,
            POD_WITH_BUDGET,
            STOP,
            SHUTTING_DOWN,
            &[Step::Apply(Change::Resume)],
            ACTIVE,
            &[Step::Await(Fact::Schedulable)],
        ],
    },
    Promise {
        name: "kill-switch",
        meaning: "the kill switch removes a host immediately, even with pods",
        needs: None,
        forbidden: None,
        steps: &[
            CREATE_LONG,
            ACTIVE,
            POD_WITH_BUDGET,
            &[Step::Apply(Change::Kill)],
            ALL_GONE,
            &[Step::Await(Fact::Phase("Terminated"))],
            DELETE,
            DELETED,
        ],
    },
    Promise {
        name: "delete-while-pending",
        meaning: "a host that is being provisioned is removed when the ScheduledMachine is \
                  deleted",
        needs: None,
        forbidden: None,
        steps: &[
            CREATE,
            &[Step::Await(Fact::Exists(Part::Infrastructure))],
            DELETE,
            ALL_GONE,
            DELETED,
        ],
    },
    Promise {
        name: "delete-while-active",
        meaning: "a host in service is removed when the ScheduledMachine is deleted",
        needs: None,
        forbidden: None,
        steps: &[CREATE, ACTIVE, DELETE, ALL_GONE, DELETED],
    },
    Promise {
        name: "delete-while-shutting-down",
        meaning: "a host that is being drained is removed when the ScheduledMachine is deleted",
        needs: None,
        forbidden: None,
        steps: &[
            CREATE_SHORT,
            ACTIVE,
            POD_WITH_BUDGET,
            STOP,
            SHUTTING_DOWN,
            DELETE,
            ALL_GONE,
            DELETED,
        ],
    },
    Promise {
        name: "delete-while-disabled",
        meaning: "a host that is kept by `enabled: false` is removed when the ScheduledMachine is \
                  deleted",
        needs: None,
        forbidden: None,
        steps: &[
            CREATE,
            ACTIVE,
            &[
                Step::Apply(Change::Disable),
                Step::Await(Fact::Phase("Disabled")),
                Step::Await(Fact::NodeReady),
            ],
            DELETE,
            ALL_GONE,
            DELETED,
        ],
    },
    Promise {
        name: "provider-restarted",
        meaning: "a host joins and leaves although the provider restarts meanwhile",
        needs: Some(Need::Restart),
        forbidden: None,
        steps: &[
            CREATE,
            &[Step::Await(Fact::Exists(Part::Infrastructure))],
            RESTART,
            ACTIVE,
            STOP,
            RESTART,
            ALL_GONE,
            INACTIVE,
        ],
    },
    // The last one, so that objects that it leaves behind do not affect other promises.
    Promise {
        name: "never-comes-up",
        meaning: "a host that never joins is reported after provisioning.timeout, and its objects \
                  can be deleted",
        needs: Some(Need::Unreachable),
        forbidden: None,
        steps: &[
            CREATE_SHORT_PROVISIONING,
            &[Step::Await(Fact::Stalled("ProvisioningTimeout"))],
            DELETE,
            ALL_GONE,
            DELETED,
        ],
    },
];

/// The names of all promises.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROMISES.iter().map(|it| it.name)
}

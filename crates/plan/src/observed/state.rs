//! All facts that were read before a decision, including those that could not be read.

use std::collections::BTreeMap;

use fivespot_api::ScheduleOverride;
use fivespot_api::condition::Reason;
use fivespot_capi::{Cluster, Contract, Machine, Provider, Reference};
use fivespot_schedule::{Dates, Override};
use jiff::{SignedDuration, Timestamp};

use crate::{AgentConfig, Hosts, Node, Pod};

/// What was read for one ScheduledMachine, in addition to the object itself. Nothing was read by
/// default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// How the facts were read.
    pub freshness: Freshness,
    /// Where the provider specs of the object are.
    pub specs: Specs,
    /// The inputs of the schedule in addition to the spec.
    pub schedule: ScheduleInputs,
    /// The version of Cluster API that the server offers, from discovery.
    pub contract: Fact<Contract>,
    /// The Cluster of [`Locations::cluster`](crate::Locations::cluster); `None` is a 404.
    pub cluster: Fact<Option<Cluster>>,
    /// The Machine of [`Locations::machine`](crate::Locations::machine), ours or not; `None` is a
    /// 404.
    pub machine: Fact<Option<Machine>>,
    /// The result for each of [`Locations::bootstrap`](crate::Locations::bootstrap), in that
    /// order.
    pub bootstrap: Vec<Lookup>,
    /// The result for each of [`Locations::infrastructure`](crate::Locations::infrastructure), in
    /// that order.
    pub infrastructure: Vec<Lookup>,
    /// What was found in the workload cluster.
    pub workload: Workload,
    /// Whether the operator is configured to release an object if its removal has not ended a day
    /// after it began, whatever objects are left.
    pub releases_stuck: bool,
    /// How long the override of a reclaim stops the machine; `None` if a reclaim disables the
    /// schedule instead, also because the override would not be considered.
    pub reclaim_override: Option<SignedDuration>,
    /// Which required fields the stored CustomResourceDefinition lacks, for users; `None` if it
    /// has them all. Nothing is created without them.
    pub outdated_crd: Option<String>,
    /// The claims of hosts of classes.
    pub hosts: Hosts,
}

impl Observed {
    /// Whether the operator lacks a permission in the management cluster that it needs.
    pub(crate) fn is_forbidden(&self) -> bool {
        let lookups = self.bootstrap.iter().chain(&self.infrastructure);
        let unknown = [
            self.contract.unknown(),
            self.cluster.unknown(),
            self.machine.unknown(),
            self.schedule.unknown.as_ref(),
            self.hosts.unknown.as_ref(),
        ];
        let mut unknown = unknown
            .into_iter()
            .chain(lookups.map(|lookup| lookup.found.unknown()))
            .flatten();
        unknown.any(|why| matches!(why, Unknown::Forbidden { .. }))
    }
}

/// How facts were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// From a watch cache, which may be stale.
    #[default]
    Cached,
    /// By quorum reads (no resourceVersion), including that of the ScheduledMachine.
    Live,
}

/// Where `bootstrapSpec.spec` and `infrastructureSpec.spec` of the ScheduledMachine are. They can
/// be large, and are needed only to create an object from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Specs {
    /// In the ScheduledMachine.
    #[default]
    Included,
    /// They were left out of it. A [`Call::Create`](crate::Call::Create) of a bootstrap or
    /// infrastructure object then has no `spec`. The sender takes it from the stored object, if
    /// that still has this hash.
    LeftOut {
        /// The hash of the specs that the machine is created from, including these.
        hash: String,
    },
    /// One of them is larger than the limit: nothing can be created.
    TooLarge {
        /// Which, and the limit, for users.
        message: String,
    },
}

/// The inputs of a schedule in addition to the spec: calendars and overrides of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleInputs {
    /// The calendars that exceptions refer to, by name; those that do not exist are left out.
    pub calendars: BTreeMap<String, Dates>,
    /// Whether the kind of the schedule that the machine follows is not served. What the reference
    /// resolves to is in the object, [`ScheduleSpec::resolved`](fivespot_api::ScheduleSpec).
    pub is_kind_missing: bool,
    /// The overrides of this ScheduledMachine, including those that have ended or not begun.
    pub overrides: Vec<Override>,
    /// Those of them that stop the machine because its host was reclaimed.
    pub reclaim_stops: Vec<ReclaimStop>,
    /// Why one of them is unknown; `None` if all are known. A kind that is not served has no
    /// objects.
    pub unknown: Option<Unknown>,
}

/// An override that stops a machine because its host was reclaimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimStop {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When the reclaim began.
    pub begun: Timestamp,
}

impl ReclaimStop {
    /// `None` if the override was created otherwise.
    pub fn of(object: &ScheduleOverride) -> Option<Self> {
        Some(Self {
            name: object.metadata.name.clone()?,
            uid: object.metadata.uid.clone()?,
            begun: object.reclaimed_at()?,
        })
    }
}

/// A fact, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// It was read.
    Known(T),
    /// It was not read.
    Unknown(Unknown),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown(Unknown::NotRequested)
    }
}

impl<T> Fact<T> {
    /// The fact, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// What `next` makes of the fact, if it is known.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known(value) => next(value),
            Self::Unknown(unknown) => Fact::Unknown(unknown),
        }
    }

    /// Why it is unknown.
    pub(crate) fn unknown(&self) -> Option<&Unknown> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(unknown) => Some(unknown),
        }
    }
}

impl<T> From<Result<T, Unknown>> for Fact<T> {
    fn from(result: Result<T, Unknown>) -> Self {
        result.map_or_else(Self::Unknown, Self::Known)
    }
}

/// Why a fact is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It was not requested.
    NotRequested,
    /// According to discovery the kind is not served. No object of it can exist.
    NotServed {
        /// The kind and its group, e.g. `Machine of cluster.x-k8s.io`.
        message: String,
    },
    /// The operator may not read it.
    Forbidden {
        /// The API server's message.
        message: String,
    },
    /// The request failed, or the response could not be parsed.
    Failed {
        /// The error, for users.
        message: String,
    },
}

impl Unknown {
    /// Why the fact is unknown, for users; `None` if it was not requested.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::NotRequested => None,
            Self::NotServed { message }
            | Self::Forbidden { message }
            | Self::Failed { message } => Some(message),
        }
    }
}

/// What was found at one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The location.
    pub reference: Reference,
    /// The object there, ours or not; `None` is a 404.
    pub found: Fact<Option<Provider>>,
}

/// What was found in the workload cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Whether it is accessible.
    pub access: Access,
    /// The Node of [`Locations::node`](crate::Locations::node); `None` is a 404.
    pub node: Fact<Option<Node>>,
    /// Name of another Machine of the same Cluster that refers to that Node, or has its provider
    /// ID, if one is in the caches.
    pub conflicting_machine: Option<String>,
    /// All pods bound to that Node, if [`Locations::wants_pods`](crate::Locations::wants_pods).
    /// They are listed after the Node was read: only then a cordoned Node without pods stays
    /// without pods.
    pub pods: Fact<Vec<Pod>>,
    /// The ConfigMap that configures the agent on that Node, if
    /// [`Locations::wants_agent`](crate::Locations::wants_agent) or the Node has the agent's
    /// label; `None` is a 404.
    pub agent_config: Fact<Option<AgentConfig>>,
}

/// Whether the workload cluster is accessible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It was not requested: no Node was to be read.
    #[default]
    NotRequested,
    /// It responds.
    Connected,
    /// There is no kubeconfig Secret that the operator may read.
    KubeconfigMissing {
        /// What is missing, for users.
        message: String,
    },
    /// The kubeconfig requires something that the operator does not accept from a Secret.
    KubeconfigRefused {
        /// What it requires, for users.
        message: String,
    },
    /// It does not respond, or the management cluster does not return how to reach it; they may
    /// later.
    Unreachable {
        /// The error, for users.
        message: String,
    },
    /// A response exceeds the limit for one cluster.
    TooLarge {
        /// What exceeds the limit, for users.
        message: String,
    },
    /// It responds, and refuses the credentials or the request (401, 403).
    Unauthorized {
        /// The error, for users.
        message: String,
    },
}

impl Access {
    /// The reason and the message of the condition `NodeAccess`; `None` if the cluster was not
    /// requested.
    pub fn condition(&self) -> Option<(Reason, &str)> {
        Some(match self {
            Self::NotRequested => return None,
            Self::Connected => (Reason::Connected, "the workload cluster is reachable"),
            Self::KubeconfigMissing { message } => (Reason::KubeconfigMissing, message),
            Self::KubeconfigRefused { message } => (Reason::KubeconfigRefused, message),
            Self::Unreachable { message } => (Reason::Unreachable, message),
            Self::TooLarge { message } => (Reason::TooLarge, message),
            Self::Unauthorized { message } => (Reason::Unauthorized, message),
        })
    }
}

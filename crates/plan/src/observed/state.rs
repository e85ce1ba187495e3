//! Everything that was gathered before a decision, including what could not be found out.

use std::collections::BTreeMap;

use fivespot_api::condition::Reason;
use fivespot_capi::{Cluster, Contract, Machine, Provider, Reference};
use fivespot_schedule::{Dates, Override};
use jiff::SignedDuration;

use crate::{AgentConfig, Node, Pod};

/// What was gathered about one ScheduledMachine, besides the object itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// How it was read.
    pub freshness: Freshness,
    /// Where the provider specs of the object are.
    pub specs: Specs,
    /// What the schedule depends on besides the spec.
    pub schedule: ScheduleInputs,
    /// The version of Cluster API that the server offers, by discovery.
    pub contract: Fact<Contract>,
    /// The Cluster of [`Locations::cluster`](crate::Locations::cluster); none is a 404.
    pub cluster: Fact<Option<Cluster>>,
    /// The Machine of [`Locations::machine`](crate::Locations::machine), ours or not; none is a 404.
    pub machine: Fact<Option<Machine>>,
    /// What was found at each of [`Locations::bootstrap`](crate::Locations::bootstrap), in that order.
    pub bootstrap: Vec<Lookup>,
    /// What was found at each of [`Locations::infrastructure`](crate::Locations::infrastructure), in
    /// that order.
    pub infrastructure: Vec<Lookup>,
    /// What was found in the workload cluster.
    pub workload: Workload,
    /// Whether the operator is configured to release an object whose removal has not ended a day
    /// after it began, whatever it leaves behind.
    pub releases_stuck: bool,
    /// For how long a reclaim stops the machine with an override; none if a reclaim disables the
    /// schedule.
    pub reclaim_override: Option<SignedDuration>,
    /// Which fields the stored CustomResourceDefinition lacks that this operator needs, for people;
    /// none if it has them all. Nothing is created without them.
    pub outdated_definition: Option<String>,
}

impl Observed {
    /// Whether the operator may not read something of the management cluster that it needs.
    pub(crate) fn is_forbidden(&self) -> bool {
        let lookups = self.bootstrap.iter().chain(&self.infrastructure);
        let unknown = [
            self.contract.unknown(),
            self.cluster.unknown(),
            self.machine.unknown(),
            self.schedule.unknown.as_ref(),
        ];
        let mut unknown = unknown
            .into_iter()
            .chain(lookups.map(|lookup| lookup.found.unknown()))
            .flatten();
        unknown.any(|why| matches!(why, Unknown::Forbidden { .. }))
    }
}

impl Default for Observed {
    /// Nothing was asked.
    fn default() -> Self {
        Self {
            freshness: Freshness::Cached,
            specs: Specs::Included,
            schedule: ScheduleInputs::default(),
            contract: Fact::default(),
            cluster: Fact::default(),
            machine: Fact::default(),
            bootstrap: Vec::new(),
            infrastructure: Vec::new(),
            workload: Workload::default(),
            releases_stuck: false,
            reclaim_override: None,
            outdated_definition: None,
        }
    }
}

/// How facts were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freshness {
    /// From a watch cache, which may be behind.
    Cached,
    /// By quorum reads (no resourceVersion), all of them, the ScheduledMachine included.
    Live,
}

/// Where `bootstrapSpec.spec` and `infrastructureSpec.spec` of the ScheduledMachine are: they can
/// be large, and are needed only when an object is created from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Specs {
    /// In the ScheduledMachine.
    #[default]
    Included,
    /// They were left out of it. Whoever sends a [`Call::Create`](crate::Call::Create) of a
    /// bootstrap or infrastructure object, which then has no `spec`, puts it in from the object as
    /// it is stored, if that still has this hash.
    LeftOut {
        /// The hash of what the machine is made from, with them.
        hash: String,
    },
    /// One of them is larger than is read: nothing can be created.
    TooLarge {
        /// Which, and how large it may be, for people.
        message: String,
    },
}

/// What a schedule depends on besides the spec: calendars and overrides of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleInputs {
    /// The calendars that exceptions name, by name; those that do not exist are left out.
    pub calendars: BTreeMap<String, Dates>,
    /// The overrides about this ScheduledMachine, also those that have ended or not begun.
    pub overrides: Vec<Override>,
    /// Why one of them is not known, if that is so. Where a kind is not served there is none of it.
    pub unknown: Option<Unknown>,
}

/// A fact, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// It was found out.
    Known(T),
    /// It was not.
    Unknown(Unknown),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown(Unknown::NotAsked)
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

    /// Why it is not known.
    pub(crate) fn unknown(&self) -> Option<&Unknown> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(unknown) => Some(unknown),
        }
    }
}

/// Why a fact is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Nobody asked.
    NotAsked,
    /// Discovery answered, and the kind is not served. Nothing of it can exist.
    NotServed {
        /// The kind and its group, e.g. `Machine of cluster.x-k8s.io`.
        message: String,
    },
    /// The operator may not read it.
    Forbidden {
        /// The API server's words.
        message: String,
    },
    /// The answer did not come, or made no sense.
    Failed {
        /// The error, for people.
        message: String,
    },
}

impl Unknown {
    /// Why nothing was found out, for people; none where nobody asked.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::NotAsked => None,
            Self::NotServed { message }
            | Self::Forbidden { message }
            | Self::Failed { message } => Some(message),
        }
    }
}

/// What was found at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Where it was looked for.
    pub place: Reference,
    /// What was found there, ours or not; none is a 404.
    pub found: Fact<Option<Provider>>,
}

/// What was found in the workload cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Whether it answers.
    pub access: Access,
    /// The Node of [`Locations::node`](crate::Locations::node); none is a 404.
    pub node: Fact<Option<Node>>,
    /// Name of another Machine of the same Cluster that names that Node, or its provider
    /// identifier, for its own, as far as caches show one.
    pub rival: Option<String>,
    /// All pods bound to that Node, where [`Locations::wants_pods`](crate::Locations::wants_pods).
    /// They are listed after the Node was read: only then does a cordoned Node without pods stay
    /// without them.
    pub pods: Fact<Vec<Pod>>,
    /// The ConfigMap that configures the agent on that Node, where
    /// [`Locations::wants_agent`](crate::Locations::wants_agent) or the Node has the agent's label;
    /// none is a 404.
    pub agent_config: Fact<Option<AgentConfig>>,
}

/// Whether the workload cluster answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Nobody asked: no Node was to be looked for.
    #[default]
    NotAsked,
    /// It answers.
    Connected,
    /// There is no kubeconfig Secret, or none that the operator may read.
    KubeconfigMissing {
        /// What is missing, for people.
        message: String,
    },
    /// The kubeconfig asks for what the operator does not do on a Secret's word.
    KubeconfigRefused {
        /// What it asks for, for people.
        message: String,
    },
    /// It does not answer, or the management cluster does not about how to reach it; they may later.
    Unreachable {
        /// The error, for people.
        message: String,
    },
    /// What it sends is more than is read of one cluster.
    TooLarge {
        /// What there is too much of, for people.
        message: String,
    },
    /// It answers, and refuses the credentials or the request (401, 403).
    Unauthorized {
        /// The error, for people.
        message: String,
    },
}

impl Access {
    /// What the condition `NodeAccess` says of it, the reason and the message; none where nobody
    /// asked.
    pub fn condition(&self) -> Option<(Reason, &str)> {
        Some(match self {
            Self::NotAsked => return None,
            Self::Connected => (Reason::Connected, "the workload cluster answers"),
            Self::KubeconfigMissing { message } => (Reason::KubeconfigMissing, message),
            Self::KubeconfigRefused { message } => (Reason::KubeconfigRefused, message),
            Self::Unreachable { message } => (Reason::Unreachable, message),
            Self::TooLarge { message } => (Reason::TooLarge, message),
            Self::Unauthorized { message } => (Reason::Unauthorized, message),
        })
    }
}

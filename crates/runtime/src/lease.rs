//! Which replica may write: coordination Leases, and the rules by which they are held.
//!
//! The rules are values without I/O ([`Election`], [`Shards`]). [`run_leader_election`] and
//! [`run_sharding`] execute them, and put what a replica may act on into a [`Fence`], which every
//! write is checked against. The rules and their reasons:
//! `internals/decisions/0039-leases-by-observation.md`.

mod client;
mod election;
mod fence;
mod hold;
mod record;
mod shards;
mod unelected;

use std::fmt;
use std::sync::Arc;

use kubemu_clock::Clock;

use crate::http::ApiClient;
use crate::queue::Backoff;
pub use election::{Action, Election};
pub use fence::{Fence, Fenced, Ownership};
pub use hold::{run_leader_election, run_sharding};
pub use record::{
    LeaseName, LeaseTiming, LeaseTimingError, Record, SKEW, StoredLease, micro_time,
};
pub use shards::{ShardNames, Shards, shard_of};
pub use unelected::run_unelected;

/// A coordination Lease and its timing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its namespace.
    pub namespace: String,
    /// Its name: a DNS label.
    pub name: String,
    /// How long it is valid, and how often it is renewed.
    pub timing: LeaseTiming,
}

/// One of the replicas that elect a leader or divide shards.
#[derive(Clone)]
pub struct Replica {
    /// The client of the server that has the Leases.
    pub client: ApiClient,
    /// The fence that every write is checked against.
    pub fence: Arc<Fence>,
    /// The clock that is busy while an event is processed: a virtual clock is stopped meanwhile.
    pub clock: Clock,
    /// The wait before a failed watch is retried.
    pub backoff: Backoff,
    /// The identity of this replica, unique among all.
    pub identity: String,
    /// The Lease. For shards: the namespace and the timing of all their Leases.
    pub lease: Lease,
    /// Called with the state of the Leases.
    pub observer: Arc<dyn Observer>,
}

impl fmt::Debug for Replica {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            identity, lease, ..
        } = self;
        formatter
            .debug_struct("Replica")
            .field("identity", identity)
            .field("lease", lease)
            .finish_non_exhaustive()
    }
}

/// Callbacks with the state of the Leases.
pub trait Observer: Send + Sync {
    /// The role of this replica; called also when it has not changed.
    fn role(&self, role: Role);

    /// There may be objects that this replica may act on and could not act on before.
    fn gained(&self);

    /// A request has failed, and is retried.
    fn failed(&self, what: &'static str, error: &str);
}

/// The role of a replica among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// There is no other replica.
    #[default]
    Alone,
    /// It runs without leader election, and writes nothing, because this holder has the Lease.
    Barred(String),
    /// Not decided yet.
    Undecided,
    /// It leads.
    Leading,
    /// This holder leads; empty while the Lease has no holder.
    Following(String),
    /// It has a Lease, but could not renew it in time: it writes nothing.
    Lapsed,
    /// It holds some of the shards.
    Sharing {
        /// How many it holds.
        held: u32,
        /// How many there are.
        count: u32,
    },
    /// It writes nothing while other replicas divide the objects among another number of shards.
    OtherShards {
        /// Its own number of shards.
        own: u32,
        /// The other number that is in use.
        other: u32,
    },
}

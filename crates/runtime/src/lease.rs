//! Who may write: coordination Leases, and the rules by which they are held.
//!
//! The rules are values without I/O ([`Election`], [`Shards`]). [`lead`] and [`share`] carry them
//! out, and put what an instance may act on into a [`Fence`], which every write reconciles.

mod client;
mod election;
mod fence;
mod hold;
mod record;
mod shards;
mod unelected;

use std::fmt;
use std::sync::Arc;

use fivespot_clock::Clock;

use crate::http::ApiClient;
use crate::queue::Backoff;
pub use election::{Election, Move};
pub use fence::{Fence, Fenced, Ownership};
pub use hold::{lead, share};
pub use record::{LeaseName, Record, SKEW, Stored, Terms, TermsError, micro_time};
pub use shards::{ShardNames, Shards, shard_of};
pub use unelected::act_unless_held;

/// A coordination Lease, and for how long it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its namespace.
    pub namespace: String,
    /// Its name: a DNS label.
    pub name: String,
    /// How long it binds.
    pub terms: Terms,
}

/// One of the instances that agree on who acts.
#[derive(Clone)]
pub struct Instance {
    /// Where the Leases are.
    pub client: ApiClient,
    /// What reconciles writes.
    pub fence: Arc<Fence>,
    /// What events are processed under: a virtual clock stands still meanwhile.
    pub clock: Clock,
    /// When a watch that has failed is tried again.
    pub backoff: Backoff,
    /// The name of this instance, unique among all.
    pub identity: String,
    /// The Lease; of shards, the namespace and the terms of all their Leases.
    pub lease: Lease,
    /// What is called.
    pub observer: Arc<dyn Observer>,
}

impl fmt::Debug for Instance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            identity, lease, ..
        } = self;
        formatter
            .debug_struct("Instance")
            .field("identity", identity)
            .field("lease", lease)
            .finish_non_exhaustive()
    }
}

/// What is called with the state of Leases.
pub trait Observer: Send + Sync {
    /// The role of this instance; also when it has not changed.
    fn role(&self, role: Role);

    /// There may be objects that this instance may act on from now on, and might not before.
    fn gained(&self);

    /// A request has failed, and is tried again.
    fn failed(&self, what: &'static str, error: &str);
}

/// What an instance does beside the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// There are no others.
    #[default]
    Alone,
    /// It takes no part in the election, and writes nothing, because that one holds the Lease.
    Barred(String),
    /// Not known yet.
    Undecided,
    /// It leads.
    Leading,
    /// That one leads; empty while nobody does.
    Following(String),
    /// It has a Lease, and could not renew it in time: it writes nothing.
    Lapsed,
    /// It acts on some of all shards.
    Sharing {
        /// How many it holds.
        held: u32,
        /// How many there are.
        count: u32,
    },
    /// It writes nothing while others divide the objects among another number of shards.
    OtherShards {
        /// The number that it was given.
        own: u32,
        /// The other that is in use.
        other: u32,
    },
}

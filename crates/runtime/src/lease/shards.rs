//! Which replica should hold which shard: rules as values, based on the watch of Leases.
//!
//! All objects are divided among a number of shards ([`shard_of`]). Each shard has a Lease that
//! is held like that of a leader ([`Election`](super::Election)). In addition, each running
//! replica holds a member Lease. The members, sorted, divide the shards evenly; a replica that
//! holds a shard which this assigns to another one releases it.
//!
//! Two replicas with different numbers of shards divide the objects differently, so that only one
//! number may be in use at a time:
//!
//! - A shard counts as held only once the watch has shown its Lease with us as holder: by then,
//!   the watch has also shown the holders of shards of another number that were taken before.
//! - Nothing is owned, and no further shard is taken, while the watch shows an unexpired Lease of
//!   a shard of another number. If both numbers are held, the smaller gives way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kubemu_clock::after;

use super::record::{LeaseTiming, StoredLease};

/// The names of the Leases of shards and of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardNames {
    /// `<prefix>-shard-<i>-of-<n>` is the Lease of a shard, `<prefix>-member-<identity>` that of
    /// a replica.
    pub prefix: String,
    /// The label that all of them have; its value is the number of shards.
    pub label: String,
}

impl ShardNames {
    /// The name of the Lease of the shard, counted from 0, of so many.
    pub fn shard(&self, shard: u32, count: u32) -> String {
        format!("{}-shard-{shard}-of-{count}", self.prefix)
    }

    /// The name of the Lease of a replica.
    pub fn member(&self, identity: &str) -> String {
        format!("{}-member-{identity}", self.prefix)
    }

    fn is_member(&self, name: &str) -> bool {
        name.starts_with(&self.member(""))
    }
}

/// The shard, counted from 0, of so many that an object with that uid belongs to; `None` if there
/// are no shards or no uid.
///
/// FNV-1a of the uid. Replicas of different releases must agree on it, so it is not std's hasher,
/// which may change.
pub fn shard_of(uid: &str, count: u32) -> Option<u32> {
    if uid.is_empty() {
        return None;
    }
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let shard = hash.checked_rem(u64::from(count))?;
    u32::try_from(shard).ok()
}

/// One replica's view of the Leases of shards and of replicas.
#[derive(Clone, Debug)]
pub struct Shards {
    names: ShardNames,
    identity: String,
    timing: LeaseTiming,
    count: u32,
    leases: BTreeMap<String, Observed>,
}

/// A Lease as the watch shows it.
#[derive(Clone, Debug)]
struct Observed {
    stored: StoredLease,
    /// Since when it has not changed, by our own clock.
    since: Timestamp,
    /// It was deleted: its holder may not have noticed.
    is_deleted: bool,
}

impl Shards {
    /// A replica that has observed nothing.
    pub fn new(
        names: ShardNames,
        identity: String,
        timing: LeaseTiming,
        count: u32,
    ) -> Self {
        Self {
            names,
            identity,
            timing,
            count,
            leases: BTreeMap::new(),
        }
    }

    /// How many shards there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The watch shows all Leases.
    pub fn observe_list(&mut self, all: &[StoredLease], now: Timestamp) {
        for (name, observed) in &mut self.leases {
            observed.is_deleted |= !all.iter().any(|stored| stored.name == *name);
        }
        for stored in all {
            self.observe(stored, now);
        }
    }

    /// The watch shows one Lease.
    pub fn observe(&mut self, stored: &StoredLease, now: Timestamp) {
        let before = self.leases.get(&stored.name).filter(|before| {
            !before.is_deleted
                && before.stored.uid == stored.uid
                && before.stored.record == stored.record
        });
        let observed = Observed {
            since: before.map_or(now, |before| before.since),
            stored: stored.clone(),
            is_deleted: false,
        };
        self.leases.insert(stored.name.clone(), observed);
        self.forget(now);
    }

    /// The watch shows that a Lease was deleted.
    pub fn observe_deletion(&mut self, stored: &StoredLease, now: Timestamp) {
        if let Some(observed) = self.leases.get_mut(&stored.name) {
            observed.is_deleted |= observed.stored.uid == stored.uid;
        }
        self.forget(now);
    }

    /// Removes Leases that were deleted and have expired.
    fn forget(&mut self, now: Timestamp) {
        let timing = self.timing;
        self.leases
            .retain(|_, observed| !observed.is_deleted || observed.is_live(&timing, now));
    }

    fn live(&self, now: Timestamp) -> impl Iterator<Item = &StoredLease> {
        let live = self
            .leases
            .values()
            .filter(move |observed| observed.is_live(&self.timing, now));
        live.map(|observed| &observed.stored)
    }

    fn count_of(&self, stored: &StoredLease) -> Option<u32> {
        stored.labels.get(&self.names.label)?.parse().ok()
    }

    /// The largest other number of shards that is in use.
    pub fn other_count(&self, now: Timestamp) -> Option<u32> {
        let shards = self
            .live(now)
            .filter(|stored| !self.names.is_member(&stored.name));
        let counts = shards.filter_map(|stored| self.count_of(stored));
        counts.filter(|count| *count != self.count).max()
    }

    /// The shards that are assigned to this replica; none before the watch shows its member
    /// Lease.
    fn assigned(&self, now: Timestamp) -> BTreeSet<u32> {
        let members = self.live(now).filter(|stored| {
            self.names.is_member(&stored.name)
                && self.count_of(stored) == Some(self.count)
        });
        let members: BTreeSet<&str> =
            members.map(|stored| &*stored.record.holder).collect();
        let own = members.iter().position(|member| *member == self.identity);
        let Some(own) = own else {
            return BTreeSet::new();
        };
        (0..self.count)
            .filter(|shard| *shard as usize % members.len() == own)
            .collect()
    }

    /// The shards that this replica should hold, of which it holds `held` already. Those of
    /// `held` that are not among them must be released.
    pub fn wanted(&self, held: &BTreeSet<u32>, now: Timestamp) -> BTreeSet<u32> {
        let assigned = self.assigned(now);
        match self.other_count(now) {
            None => assigned,
            Some(other) if other < self.count => {
                assigned.intersection(held).copied().collect()
            }
            Some(_) => BTreeSet::new(),
        }
    }

    /// Whether the watch has shown that this replica holds the shard.
    pub fn is_shown_as_held(&self, shard: u32) -> bool {
        let observed = self.leases.get(&self.names.shard(shard, self.count));
        observed.is_some_and(|observed| {
            !observed.is_deleted && observed.stored.record.holder == self.identity
        })
    }

    /// When the next Lease expires, if it is not renewed.
    pub fn next_expiry(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.leases.values();
        let ends = all.map(|observed| observed.expires(&self.timing));
        ends.filter(|end| *end > now).min()
    }

    /// An obsolete Lease: of a replica that has ended, or of a shard of another number. The first
    /// of the live replicas should delete it; `None` for the others.
    pub fn obsolete(&self, now: Timestamp) -> Option<&StoredLease> {
        if !self.assigned(now).contains(&0) {
            return None;
        }
        let is_own = |stored: &StoredLease| {
            !self.names.is_member(&stored.name)
                && self.count_of(stored) == Some(self.count)
        };
        let all = self.leases.values();
        let mut expired = all.filter(|observed| {
            !observed.is_deleted && !observed.is_live(&self.timing, now)
        });
        let obsolete = expired.find(|observed| !is_own(&observed.stored));
        obsolete.map(|observed| &observed.stored)
    }
}

impl Observed {
    fn expires(&self, timing: &LeaseTiming) -> Timestamp {
        let duration = self.stored.record.duration;
        after(self.since, duration.unwrap_or(timing.duration()))
    }

    /// Whether it has a holder that may act on it.
    fn is_live(&self, timing: &LeaseTiming, now: Timestamp) -> bool {
        !self.stored.record.holder.is_empty() && now < self.expires(timing)
    }
}

#[cfg(test)]
mod tests;

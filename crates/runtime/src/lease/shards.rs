//! Who is to hold which shard: rules as values, on what a watch of Leases has shown.
//!
//! All objects are divided among a number of shards ([`shard_of`]), and each shard has a Lease that
//! is held like that of a leader ([`Election`](super::Election)). Besides, each instance holds a
//! Lease that says that it is there. The instances that are, sorted, divide the shards evenly; one
//! that holds a shard which this gives to another releases it.
//!
//! Two instances that were given different numbers of shards divide the objects differently, so that
//! of those only one number may be in use at a time:
//!
//! - A shard counts as held only once the watch has shown its Lease with us as holder: whoever had
//!   taken a shard of another number before has been shown by then.
//! - Nothing is owned, and no further shard is taken, while the watch shows an unexpired Lease of a
//!   shard of another number. Where both numbers are held, the smaller gives way.

use std::collections::{BTreeMap, BTreeSet};

use fivespot_clock::after;
use jiff::Timestamp;

use super::record::{Stored, Terms};

/// How the Leases of shards and of instances are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardNames {
    /// `<prefix>-shard-<i>-of-<n>` is the Lease of a shard, `<prefix>-member-<identity>` that of an
    /// instance.
    pub prefix: String,
    /// The label that all of them have; its value is the number of shards.
    pub label: String,
}

impl ShardNames {
    /// The Lease of the shard, counted from 0, of so many.
    pub fn shard(&self, shard: u32, count: u32) -> String {
        format!("{}-shard-{shard}-of-{count}", self.prefix)
    }

    /// The Lease of the instance.
    pub fn member(&self, identity: &str) -> String {
        format!("{}-member-{identity}", self.prefix)
    }

    fn is_member(&self, name: &str) -> bool {
        name.starts_with(&self.member(""))
    }
}

/// To which of so many shards, counted from 0, an object with that uid belongs; none where there are
/// no shards, or there is no uid.
///
/// FNV-1a of the uid: part of what instances of different releases agree on, so that it is not std's
/// hasher, which may change.
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

/// One instance's view of the Leases of shards and of instances.
#[derive(Clone, Debug)]
pub struct Shards {
    names: ShardNames,
    identity: String,
    terms: Terms,
    count: u32,
    leases: BTreeMap<String, Observed>,
}

/// A Lease as the watch shows it.
#[derive(Clone, Debug)]
struct Observed {
    stored: Stored,
    /// Since when it has been saying the same, by our own clock.
    since: Timestamp,
    /// Somebody has deleted it: its holder may not have noticed.
    is_deleted: bool,
}

impl Shards {
    /// An instance that has seen nothing.
    pub fn new(names: ShardNames, identity: String, terms: Terms, count: u32) -> Self {
        Self {
            names,
            identity,
            terms,
            count,
            leases: BTreeMap::new(),
        }
    }

    /// How many shards there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The watch shows all Leases there are.
    pub fn listed(&mut self, all: &[Stored], now: Timestamp) {
        for (name, observed) in &mut self.leases {
            observed.is_deleted |= !all.iter().any(|stored| stored.name == *name);
        }
        for stored in all {
            self.shown(stored, now);
        }
    }

    /// The watch shows one Lease.
    pub fn shown(&mut self, stored: &Stored, now: Timestamp) {
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

    /// The watch shows that a Lease is gone.
    pub fn deleted(&mut self, stored: &Stored, now: Timestamp) {
        if let Some(observed) = self.leases.get_mut(&stored.name) {
            observed.is_deleted |= observed.stored.uid == stored.uid;
        }
        self.forget(now);
    }

    /// Nothing is remembered of Leases that are gone and bind nobody.
    fn forget(&mut self, now: Timestamp) {
        let terms = self.terms;
        self.leases
            .retain(|_, observed| !observed.is_deleted || observed.is_live(&terms, now));
    }

    fn live(&self, now: Timestamp) -> impl Iterator<Item = &Stored> {
        let live = self
            .leases
            .values()
            .filter(move |observed| observed.is_live(&self.terms, now));
        live.map(|observed| &observed.stored)
    }

    fn count_of(&self, stored: &Stored) -> Option<u32> {
        stored.labels.get(&self.names.label)?.parse().ok()
    }

    /// Another number of shards that is in use: the largest.
    pub fn other_count(&self, now: Timestamp) -> Option<u32> {
        let shards = self
            .live(now)
            .filter(|stored| !self.names.is_member(&stored.name));
        let counts = shards.filter_map(|stored| self.count_of(stored));
        counts.filter(|count| *count != self.count).max()
    }

    /// The shards that fall to this instance; none before the watch shows it to be there.
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

    /// The shards that this instance is to hold, of which it holds `held` already. Those of `held`
    /// that are not among them are to be released.
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

    /// Whether the watch has shown that this instance holds the shard.
    pub fn shows_as_held(&self, shard: u32) -> bool {
        let observed = self.leases.get(&self.names.shard(shard, self.count));
        observed.is_some_and(|observed| {
            !observed.is_deleted && observed.stored.record.holder == self.identity
        })
    }

    /// When the next Lease expires, if nobody renews it.
    pub fn next_expiry(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.leases.values();
        let ends = all.map(|observed| observed.expires(&self.terms));
        ends.filter(|end| *end > now).min()
    }

    /// A Lease that is of no use to anybody any more: of an instance that has ended, or of a shard
    /// of another number. The first of the live instances is to delete it.
    pub fn obsolete(&self, now: Timestamp) -> Option<&Stored> {
        if !self.assigned(now).contains(&0) {
            return None;
        }
        let is_own = |stored: &Stored| {
            !self.names.is_member(&stored.name)
                && self.count_of(stored) == Some(self.count)
        };
        let all = self.leases.values();
        let mut expired = all.filter(|observed| {
            !observed.is_deleted && !observed.is_live(&self.terms, now)
        });
        let obsolete = expired.find(|observed| !is_own(&observed.stored));
        obsolete.map(|observed| &observed.stored)
    }
}

impl Observed {
    fn expires(&self, terms: &Terms) -> Timestamp {
        let duration = self.stored.record.duration;
        after(self.since, duration.unwrap_or(terms.duration()))
    }

    /// Whether somebody holds it and may act on it.
    fn is_live(&self, terms: &Terms, now: Timestamp) -> bool {
        !self.stored.record.holder.is_empty() && now < self.expires(terms)
    }
}

#[cfg(test)]
mod tests;

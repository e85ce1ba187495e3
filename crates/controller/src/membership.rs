//! Which shards there are: the rules of one of them, as values.
//!
//! Each shard has a Lease of its own and is a member as long as that is there. In it the shard
//! names the members that it reckons with, by the uids of their Leases. From this follows what
//! it may act on:
//!
//! - It divides the objects among all members that the watch shows ([`Ring`]), and acts on its
//!   share only while *each* of them says that it reckons with it. Of two members that reckon
//!   with each other at most one claims an object, whoever else they know.
//! - It acts on nothing before the watch shows its own Lease: whoever came earlier has been
//!   shown by then, so that of two members at least the later knows the earlier.
//! - It reckons with a newcomer from the moment it sees it, and says so only when it has
//!   stopped to act on what is the newcomer's.
//! - It writes nothing later than the renew deadline after its last renewal. A member is
//!   removed by deleting its Lease, guarded by the version that has not changed for the whole
//!   duration, by the remover's own clock; the removed one had stopped long before.
//!
//! A member that leaves in order releases its Lease first, and is not reckoned with any more at
//! once. One whose Lease was taken away otherwise is waited out.

use std::collections::BTreeMap;

use fivespot_clock::after;
use jiff::{SignedDuration, Timestamp};

use crate::ring::Ring;
use fivespot_runtime::lease::{Record, Stored, Terms, micro_time};

/// One shard's view of all of them. Shards are named by their Leases.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    /// The name of our Lease.
    name: String,
    identity: String,
    terms: Terms,
    /// Whether the watch has shown all Leases once.
    is_listed: bool,
    view: BTreeMap<String, Member>,
    own: Option<Own>,
    /// Nothing is tried before this instant, because something has failed.
    pause: Option<Timestamp>,
    is_doubtful: bool,
}

/// A Lease, ours or another's, as the watch shows it.
#[derive(Clone, Debug)]
struct Member {
    stored: Stored,
    /// Since when it has been saying the same.
    since: Timestamp,
    is_gone: bool,
}

/// Our own Lease.
#[derive(Clone, Debug)]
struct Own {
    stored: Stored,
    /// When the last renewal that succeeded was asked for.
    asked: Timestamp,
}

/// What a shard does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Nothing until then, or until a Lease changes.
    Wait(Option<Timestamp>),
    /// Read our own Lease.
    Read,
    /// Create our own Lease.
    Create(Record),
    /// Replace what our own Lease says, if it still is of this version.
    Replace {
        /// What to say.
        record: Record,
        /// The version.
        version: String,
    },
    /// Delete a Lease that nobody has renewed, if it still is this one.
    Remove {
        /// The name of the Lease.
        name: String,
        /// Its uid.
        uid: String,
        /// Its version.
        version: String,
    },
}

/// What a shard acts on: its part of the ring, until the instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The ring.
    pub(crate) ring: Ring,
    /// The shard's name in it.
    pub(crate) own: String,
    /// Until when it may write.
    pub(crate) until: Timestamp,
}

impl Membership {
    /// A shard with that Lease that has seen nothing.
    pub(crate) fn new(name: String, identity: String, terms: Terms) -> Self {
        Self {
            name,
            identity,
            terms,
            is_listed: false,
            view: BTreeMap::new(),
            own: None,
            pause: None,
            is_doubtful: false,
        }
    }

    /// What to do next. `is_settled` says that nothing is under way any more that the present
    /// share does not cover.
    pub(crate) fn next(&self, now: Timestamp, is_settled: bool) -> Move {
        if let Some(pause) = self.pause.filter(|pause| *pause > now) {
            return Move::Wait(Some(pause));
        }
        if !self.is_listed {
            return Move::Wait(None);
        }
        if self.is_doubtful {
            return Move::Read;
        }
        let Some(own) = &self.own else {
            return self.join(now);
        };
        let renewal = self.terms.next_try(own.asked);
        let ring = self.uids(now);
        if renewal <= now || (is_settled && ring != own.stored.record.ring) {
            // What has not settled is not said yet.
            let said = own.stored.record.ring.iter();
            let kept = said.filter(|uid| ring.contains(uid)).cloned().collect();
            let record = Record {
                renewed: micro_time(now),
                ring: if is_settled { ring } else { kept },
                ..own.stored.record.clone()
            };
            return Move::Replace {
                record,
                version: own.stored.version.clone(),
            };
        }
        if let Some(removal) = self.removal(now) {
            return removal;
        }
        let others = self.others().map(|member| self.free_at(member));
        Move::Wait(others.filter(|free| *free > now).chain([renewal]).min())
    }

    fn join(&self, now: Timestamp) -> Move {
        if let Some(namesake) = self.view.get(&self.name) {
            // Of our name, and not ours: left by a predecessor, or another process has it.
            let free = self.free_at(namesake);
            if free > now {
                return Move::Wait(Some(free));
            }
            if !namesake.is_gone {
                return remove(namesake);
            }
        }
        Move::Create(Record {
            holder: self.identity.clone(),
            duration: Some(self.terms.duration()),
            acquired: micro_time(now),
            renewed: micro_time(now),
            transitions: 0,
            ring: self.uids(now),
        })
    }

    fn removal(&self, now: Timestamp) -> Option<Move> {
        let mut others = self.others();
        let dead = others.find(|other| !other.is_gone && self.free_at(other) <= now);
        dead.map(remove)
    }

    fn others(&self) -> impl Iterator<Item = &Member> {
        let others = self.view.iter().filter(|(name, _)| **name != self.name);
        others.map(|(_, member)| member)
    }

    /// When a Lease that has been saying the same for long enough has lapsed.
    fn free_at(&self, member: &Member) -> Timestamp {
        let record = &member.stored.record;
        after(
            member.since,
            record.duration.unwrap_or(self.terms.duration()),
        )
    }

    /// Those that are reckoned with, besides us.
    fn alive(&self, now: Timestamp) -> impl Iterator<Item = &Member> {
        self.others().filter(move |other| {
            let is_released = other.stored.record.holder.is_empty();
            let is_forgotten = other.is_gone && self.free_at(other) <= now;
            !is_released && !is_forgotten
        })
    }

    fn uids(&self, now: Timestamp) -> Vec<String> {
        let mut uids: Vec<String> = self
            .alive(now)
            .map(|member| member.stored.uid.clone())
            .collect();
        uids.sort();
        uids
    }

    /// What this shard may act on; none while it may act on nothing.
    pub(crate) fn share(&self, now: Timestamp) -> Option<Share> {
        let own = self.own.as_ref()?;
        let shown = self.view.get(&self.name)?;
        if shown.is_gone || shown.stored.uid != own.stored.uid {
            return None;
        }
        let is_known = |other: &Member| {
            let ring = &other.stored.record.ring;
            ring.contains(&own.stored.uid)
        };
        if !self.alive(now).all(is_known) {
            return None;
        }
        let others = self.alive(now).map(|other| other.stored.name.clone());
        Some(Share {
            ring: Ring::new(others.chain([self.name.clone()])),
            own: self.name.clone(),
            until: self.terms.fence(own.asked),
        })
    }

    /// The watch shows all Leases there are.
    pub(crate) fn listed(&mut self, all: Vec<Stored>, now: Timestamp) {
        self.is_listed = true;
        for (name, member) in &mut self.view {
            member.is_gone |= !all.iter().any(|stored| stored.name == *name);
        }
        for stored in all {
            self.shown(stored, now);
        }
        self.notice_own_loss();
    }

    /// The watch shows one Lease.
    pub(crate) fn shown(&mut self, stored: Stored, now: Timestamp) {
        let since = match self.view.get(&stored.name) {
            Some(known)
                if !known.is_gone
                    && known.stored.uid == stored.uid
                    && known.stored.record == stored.record =>
            {
                known.since
            }
            _ => now,
        };
        let member = Member {
            since,
            is_gone: false,
            stored,
        };
        self.view.insert(member.stored.name.clone(), member);
        self.view
            .retain(|_, member| !member.is_gone || after(member.since, KEPT) > now);
        self.notice_own_loss();
    }

    /// The watch shows that a Lease is gone.
    pub(crate) fn gone(&mut self, stored: &Stored) {
        if let Some(member) = self.view.get_mut(&stored.name)
            && member.stored.uid == stored.uid
        {
            member.is_gone = true;
        }
        self.notice_own_loss();
    }

    fn notice_own_loss(&mut self) {
        let shown = self.view.get(&self.name);
        let is_lost = |own: &mut Own| {
            shown.is_some_and(|shown| shown.stored.uid == own.stored.uid && shown.is_gone)
        };
        self.own.take_if(is_lost);
    }

    /// Our own Lease was created or replaced; that was asked for at `asked`.
    pub(crate) fn wrote(&mut self, stored: Stored, asked: Timestamp) {
        self.pause = None;
        self.own = Some(Own { stored, asked });
        self.notice_own_loss();
    }

    /// A Lease was removed: that nobody had renewed it, the server has confirmed.
    pub(crate) fn removed(&mut self, uid: &str) {
        self.pause = None;
        self.view.retain(|_, member| member.stored.uid != uid);
    }

    /// A Lease that was to be removed has changed meanwhile, and the watch has yet to show it.
    pub(crate) fn was_renewed(&mut self, uid: &str, now: Timestamp) {
        for member in self.view.values_mut() {
            if member.stored.uid == uid {
                member.since = now;
            }
        }
    }

    /// Our own Lease has changed, or is gone, or another process has one of its name.
    pub(crate) fn was_overtaken(&mut self) {
        self.is_doubtful = true;
    }

    /// Our own Lease was read.
    pub(crate) fn read(&mut self, lease: Option<Stored>) {
        self.is_doubtful = false;
        let before = self.own.take();
        if let (Some(own), Some(found)) = (before, lease)
            && own.stored.uid == found.uid
        {
            self.own = Some(Own {
                stored: found,
                ..own
            });
        }
    }

    /// Something failed without an answer as to why.
    pub(crate) fn failed(&mut self, asked: Timestamp) {
        self.pause = Some(self.terms.next_try(asked));
    }

    /// What our Lease is to say when we leave, and its version; it is then deleted.
    pub(crate) fn leave(&mut self, now: Timestamp) -> Option<(Record, String)> {
        let own = self.own.take()?;
        let record = Record {
            holder: String::new(),
            duration: Some(SignedDuration::from_secs(1)),
            renewed: micro_time(now),
            ring: Vec::new(),
            ..own.stored.record
        };
        Some((record, own.stored.version))
    }

    /// How many shards there are, this one included.
    pub(crate) fn count(&self, now: Timestamp) -> usize {
        self.alive(now).count() + 1
    }
}

/// How long what is gone is remembered; longer than any Lease binds.
const KEPT: SignedDuration = SignedDuration::from_hours(2);

fn remove(member: &Member) -> Move {
    Move::Remove {
        name: member.stored.name.clone(),
        uid: member.stored.uid.clone(),
        version: member.stored.version.clone(),
    }
}

#[cfg(test)]
mod tests;

//! Holds Leases: that of the leader, or those of shards.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::client::{Answer, Event, LeaseClient, follow_leases};
use super::election::{Election, Move};
use super::fence::Ownership;
use super::record::{LeaseName, Stored};
use super::shards::{ShardNames, Shards};
use super::{Replica, Role};
use crate::watch::Selector;

/// Leads whenever no other replica does, until `leave` is ready or dropped; then releases the
/// Lease.
pub async fn lead(replica: Replica, leave: oneshot::Receiver<()>) {
    let selector = Selector::named(&replica.lease.name);
    let named = LeaseName {
        namespace: replica.lease.namespace.clone(),
        name: replica.lease.name.clone(),
        labels: BTreeMap::new(),
    };
    let slots = vec![Slot::new(&replica, Which::Leader, named)];
    let holder = Holder {
        replica,
        slots,
        shards: None,
        requests: FuturesUnordered::new(),
    };
    holder.hold(selector, leave).await;
}

/// Holds this replica's part of so many shards, until `leave` is ready or dropped; then releases
/// its Leases.
pub async fn share(
    replica: Replica,
    names: ShardNames,
    count: u32,
    leave: oneshot::Receiver<()>,
) {
    let selector = Selector::Labels(names.label.clone());
    let named = |name: String| LeaseName {
        namespace: replica.lease.namespace.clone(),
        name,
        labels: BTreeMap::from([(names.label.clone(), count.to_string())]),
    };
    let own = named(names.member(&replica.identity));
    let mut slots = vec![Slot::new(&replica, Which::Member, own)];
    slots.extend((0..count).map(|shard| {
        let named = named(names.shard(shard, count));
        Slot::new(&replica, Which::Shard(shard), named)
    }));
    let (identity, terms) = (replica.identity.clone(), replica.lease.terms);
    let holder = Holder {
        shards: Some(Shards::new(names, identity, terms, count)),
        replica,
        slots,
        requests: FuturesUnordered::new(),
    };
    holder.hold(selector, leave).await;
}

/// The purpose of a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// Its holder leads.
    Leader,
    /// Its holder is running.
    Member,
    /// Its holder acts on the objects of this shard.
    Shard(u32),
}

/// One Lease that this replica holds or may acquire.
struct Slot {
    which: Which,
    client: LeaseClient,
    election: Election,
    /// Whether a request for it is under way.
    is_busy: bool,
}

impl Slot {
    fn new(replica: &Replica, which: Which, named: LeaseName) -> Self {
        let terms = replica.lease.terms;
        Self {
            which,
            client: LeaseClient {
                client: replica.client.clone(),
                clock: replica.fence.clock().clone(),
                named,
                terms,
            },
            election: Election::new(replica.identity.clone(), terms),
            is_busy: false,
        }
    }

    /// The shard, if the Lease is that of a shard and is held.
    fn held_shard(&self) -> Option<u32> {
        match self.which {
            Which::Shard(shard) if self.election.fence().is_some() => Some(shard),
            Which::Shard(_) | Which::Leader | Which::Member => None,
        }
    }
}

/// The outcome of a request for a Lease.
enum Ended {
    Read(Option<Stored>),
    Written(Answer<Stored>),
    Released(Answer<Stored>),
    /// The deletion of an obsolete Lease was tried.
    Deleted(Stored),
}

/// A request that has ended.
struct Done {
    /// Which slot it was for.
    slot: usize,
    /// When it was sent.
    sent: Timestamp,
    ended: Ended,
}

struct Holder {
    replica: Replica,
    slots: Vec<Slot>,
    /// The view of the shards; `None` for a leader.
    shards: Option<Shards>,
    requests: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Holder {
    fn now(&self) -> Timestamp {
        self.replica.fence.clock().now()
    }

    async fn hold(mut self, selector: Selector, mut leave: oneshot::Receiver<()>) {
        let (watch, mut shown) = follow_leases(&self.replica, selector);
        let mut watch = Box::pin(watch);
        let (fence, clock) = (self.replica.fence.clone(), self.replica.fence.clock());
        let clock = clock.clone();
        loop {
            self.publish();
            let is_settled = fence.is_settled();
            let due = self.step(is_settled);
            let alarm = async {
                match due {
                    Some(due) => clock.sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // In this order, so that runs are reproducible.
                biased;
                _ = &mut leave => break,
                Some(done) = self.requests.next(), if !self.requests.is_empty() => {
                    self.note(done);
                }
                Some(news) = shown.recv() => self.on_event(&news.event),
                () = fence.changed(), if !is_settled => {}
                () = &mut watch => {}
                () = alarm => {}
            }
        }
        // Events that are not processed any more would keep a virtual clock stopped.
        drop((watch, shown));
        self.release_all().await;
    }

    /// Sends the requests that are due for each Lease. Returns when the next one is due.
    fn step(&mut self, is_settled: bool) -> Option<Timestamp> {
        let now = self.now();
        let wanted = self.wanted(now);
        let mut due = self.shards.as_ref().and_then(|it| it.next_expiry(now));
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.is_busy {
                continue;
            }
            let is_wanted = match slot.which {
                Which::Leader | Which::Member => true,
                Which::Shard(shard) => wanted.contains(&shard),
            };
            let is_held = slot.election.fence().is_some();
            if !is_wanted && is_held && is_settled {
                if let Some((record, version)) = slot.election.release(now) {
                    let client = slot.client.clone();
                    self.send(index, async move {
                        Ended::Released(client.replace(&record, &version).await)
                    });
                }
            } else if is_wanted || is_held {
                match slot.election.next(now) {
                    Move::Wait(until) => due = earlier(due, until),
                    step => {
                        let client = slot.client.clone();
                        self.send(index, carry_out(client, step));
                    }
                }
            }
        }
        self.delete_obsolete(now);
        due
    }

    fn send(&mut self, slot: usize, ended: impl Future<Output = Ended> + Send + 'static) {
        let sent = self.now();
        self.slots[slot].is_busy = true;
        let done = ended.map(move |ended| Done { slot, sent, ended });
        self.requests.push(done.boxed());
    }

    /// Deletes one obsolete Lease, if any: those of replicas that have ended would stay forever.
    fn delete_obsolete(&mut self, now: Timestamp) {
        let obsolete = self.shards.as_ref().and_then(|it| it.obsolete(now));
        // The first slot is that of this replica.
        let is_free = self.slots.first().is_some_and(|slot| !slot.is_busy);
        if let Some(stored) = obsolete.cloned().filter(|_| is_free) {
            let client = self.slots[0].client.clone();
            self.send(0, async move {
                // If the Lease has changed, the watch shows that. If the request fails, the
                // deletion is retried when the watch shows the Lease again.
                let _ = client.delete(&stored).await;
                Ended::Deleted(stored)
            });
        }
    }

    fn held(&self) -> BTreeSet<u32> {
        self.slots.iter().filter_map(Slot::held_shard).collect()
    }

    /// The shards that this replica should hold.
    fn wanted(&self, now: Timestamp) -> BTreeSet<u32> {
        let shards = self.shards.as_ref();
        shards.map_or_else(BTreeSet::new, |it| it.wanted(&self.held(), now))
    }

    fn on_event(&mut self, event: &Event) {
        let now = self.now();
        for slot in &mut self.slots {
            let is_it = |stored: &&Stored| stored.name == slot.client.named.name;
            match event {
                Event::Listed(all) => {
                    slot.election.shown(all.iter().find(is_it).cloned(), now);
                }
                Event::Changed(stored) if is_it(&stored) => {
                    slot.election.shown(Some(stored.clone()), now);
                }
                Event::Deleted(stored) if is_it(&stored) => {
                    slot.election.shown(None, now);
                }
                Event::Changed(_) | Event::Deleted(_) => {}
            }
        }
        let Some(shards) = &mut self.shards else {
            return;
        };
        match event {
            Event::Listed(all) => shards.listed(all, now),
            Event::Changed(stored) => shards.shown(stored, now),
            Event::Deleted(stored) => shards.deleted(stored, now),
        }
    }

    fn note(&mut self, done: Done) {
        let now = self.now();
        let slot = &mut self.slots[done.slot];
        slot.is_busy = false;
        let name = &slot.client.named.name;
        match done.ended {
            Ended::Read(found) => slot.election.read(found, now),
            Ended::Written(Answer::Done(stored)) => {
                slot.election.wrote(stored, done.sent);
            }
            Ended::Written(Answer::Conflict) => slot.election.was_overtaken(),
            Ended::Written(Answer::Failed(error)) => {
                let observer = &self.replica.observer;
                observer.failed("Lease could not be read, renewed or acquired", &error);
                slot.election.failed(done.sent);
            }
            Ended::Released(Answer::Done(stored)) => {
                tracing::info!(lease = name, "Lease released");
                slot.election.shown(Some(stored), now);
            }
            // The Lease expires.
            Ended::Released(Answer::Conflict | Answer::Failed(_)) => {
                tracing::warn!(lease = name, "Lease could not be released");
            }
            Ended::Deleted(stored) => {
                if let Some(shards) = &mut self.shards {
                    shards.deleted(&stored, now);
                }
            }
        }
    }

    /// Publishes the state of the elections to the fence and the observer.
    fn publish(&self) {
        let Replica {
            fence, observer, ..
        } = &self.replica;
        let is_gain = fence.replace(self.ownership());
        observer.role(self.role());
        if is_gain {
            observer.gained();
        }
    }

    fn ownership(&self) -> Ownership {
        let Some(shards) = &self.shards else {
            let fence = self.slots[0].election.fence();
            return fence.map_or(Ownership::Nothing, Ownership::Until);
        };
        let now = self.now();
        if shards.other_count(now).is_some() {
            return Ownership::Nothing;
        }
        let wanted = self.wanted(now);
        let held = self.slots.iter().filter_map(|slot| {
            let shard = slot.held_shard()?;
            let is_owned = wanted.contains(&shard) && shards.shows_as_held(shard);
            slot.election
                .fence()
                .filter(|_| is_owned)
                .map(|until| (shard, until))
        });
        Ownership::Shards {
            count: shards.count(),
            held: held.collect(),
        }
    }

    fn role(&self) -> Role {
        let is_in_force = self.replica.fence.is_in_force();
        let Some(shards) = &self.shards else {
            let election = &self.slots[0].election;
            return match election.holder() {
                _ if is_in_force => Role::Leading,
                _ if election.fence().is_some() => Role::Lapsed,
                Some(holder) => Role::Following(holder.to_owned()),
                None => Role::Undecided,
            };
        };
        let now = self.now();
        if let Some(other) = shards.other_count(now) {
            return Role::OtherShards {
                own: shards.count(),
                other,
            };
        }
        let own = &self.slots[0].election;
        let has_expired = |fence: Timestamp| fence <= now;
        let held = self.held().len();
        match own.fence() {
            None => Role::Undecided,
            Some(fence) if has_expired(fence) || (held > 0 && !is_in_force) => {
                Role::Lapsed
            }
            Some(_) => Role::Sharing {
                held: u32::try_from(held).unwrap_or(u32::MAX),
                count: shards.count(),
            },
        }
    }

    async fn release_all(&mut self) {
        self.replica.fence.replace(Ownership::Nothing);
        while let Some(done) = self.requests.next().await {
            self.note(done);
        }
        let now = self.now();
        // The replica's own Lease comes last: the shards are free when it ends and others take
        // over.
        for index in (0..self.slots.len()).rev() {
            let slot = &mut self.slots[index];
            let Some((record, version)) = slot.election.release(now) else {
                continue;
            };
            let (client, which) = (slot.client.clone(), slot.which);
            let released = client.replace(&record, &version).await;
            if let (Which::Member, Answer::Done(stored)) = (which, &released) {
                // If this fails, another replica deletes it.
                let _ = client.delete(stored).await;
            }
            self.note(Done {
                slot: index,
                sent: now,
                ended: Ended::Released(released),
            });
        }
    }
}

async fn carry_out(client: LeaseClient, step: Move) -> Ended {
    match step {
        Move::Wait(_) | Move::Read => match client.read().await {
            Answer::Done(found) => Ended::Read(found),
            Answer::Conflict => {
                Ended::Written(Answer::Failed("Leases are not served".to_owned()))
            }
            Answer::Failed(why) => Ended::Written(Answer::Failed(why)),
        },
        Move::Create(record) => Ended::Written(client.create(&record).await),
        Move::Replace { record, version } => {
            Ended::Written(client.replace(&record, &version).await)
        }
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

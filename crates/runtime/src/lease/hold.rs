//! Holds Leases: that of the leader, or those of shards.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::client::{Event, LeaseClient, RequestResult, follow_leases};
use super::election::{Action, Election};
use super::fence::Ownership;
use super::record::{LeaseName, StoredLease};
use super::shards::{ShardNames, Shards};
use super::{Replica, Role};
use crate::watch::Selector;

/// Leads whenever no other replica does, until `leave` is ready or dropped; then releases the
/// Lease.
pub async fn run_leader_election(replica: Replica, leave: oneshot::Receiver<()>) {
    let selector = Selector::named(&replica.lease.name);
    let lease_name = LeaseName {
        namespace: replica.lease.namespace.clone(),
        name: replica.lease.name.clone(),
        labels: BTreeMap::new(),
    };
    let slots = vec![Slot::new(&replica, Purpose::Leader, lease_name)];
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
pub async fn run_sharding(
    replica: Replica,
    names: ShardNames,
    count: u32,
    leave: oneshot::Receiver<()>,
) {
    let selector = Selector::Labels(names.label.clone());
    let lease_name = |name: String| LeaseName {
        namespace: replica.lease.namespace.clone(),
        name,
        labels: BTreeMap::from([(names.label.clone(), count.to_string())]),
    };
    let own = lease_name(names.member(&replica.identity));
    let mut slots = vec![Slot::new(&replica, Purpose::Member, own)];
    slots.extend((0..count).map(|shard| {
        let lease_name = lease_name(names.shard(shard, count));
        Slot::new(&replica, Purpose::Shard(shard), lease_name)
    }));
    let (identity, timing) = (replica.identity.clone(), replica.lease.timing);
    let holder = Holder {
        shards: Some(Shards::new(names, identity, timing, count)),
        replica,
        slots,
        requests: FuturesUnordered::new(),
    };
    holder.hold(selector, leave).await;
}

/// The purpose of a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Its holder leads.
    Leader,
    /// Its holder is running.
    Member,
    /// Its holder acts on the objects of this shard.
    Shard(u32),
}

/// One Lease that this replica holds or may acquire.
struct Slot {
    purpose: Purpose,
    client: LeaseClient,
    election: Election,
    /// Whether a request for it is under way.
    is_busy: bool,
}

impl Slot {
    fn new(replica: &Replica, purpose: Purpose, lease_name: LeaseName) -> Self {
        let timing = replica.lease.timing;
        Self {
            purpose,
            client: LeaseClient {
                client: replica.client.clone(),
                clock: replica.fence.clock().clone(),
                lease_name,
                timing,
            },
            election: Election::new(replica.identity.clone(), timing),
            is_busy: false,
        }
    }

    /// The shard, if the Lease is that of a shard and is held.
    fn held_shard(&self) -> Option<u32> {
        match self.purpose {
            Purpose::Shard(shard) if self.election.fence().is_some() => Some(shard),
            Purpose::Shard(_) | Purpose::Leader | Purpose::Member => None,
        }
    }
}

/// The outcome of a request for a Lease.
enum Outcome {
    Read(Option<StoredLease>),
    Written(RequestResult<StoredLease>),
    Released(RequestResult<StoredLease>),
    /// The deletion of an obsolete Lease was tried.
    Deleted(StoredLease),
}

/// A request that has ended.
struct CompletedRequest {
    /// Which slot it was for.
    slot: usize,
    /// When it was sent.
    sent: Timestamp,
    outcome: Outcome,
}

struct Holder {
    replica: Replica,
    slots: Vec<Slot>,
    /// The view of the shards; `None` for a leader.
    shards: Option<Shards>,
    requests: FuturesUnordered<BoxFuture<'static, CompletedRequest>>,
}

impl Holder {
    fn now(&self) -> Timestamp {
        self.replica.fence.clock().now()
    }

    async fn hold(mut self, selector: Selector, mut leave: oneshot::Receiver<()>) {
        let (watch, mut events) = follow_leases(&self.replica, selector);
        let mut watch = Box::pin(watch);
        let (fence, clock) = (self.replica.fence.clone(), self.replica.fence.clock());
        let clock = clock.clone();
        loop {
            self.publish();
            let is_settled = fence.is_settled();
            let due = self.send_due_requests(is_settled);
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
                Some(completed) = self.requests.next(), if !self.requests.is_empty() => {
                    self.handle_response(completed);
                }
                Some(received) = events.recv() => self.on_event(&received.event),
                () = fence.changed(), if !is_settled => {}
                () = &mut watch => {}
                () = alarm => {}
            }
        }
        // Events that are not processed any more would keep a virtual clock stopped.
        drop((watch, events));
        self.release_all().await;
    }

    /// Sends the requests that are due for each Lease. Returns when the next one is due.
    fn send_due_requests(&mut self, is_settled: bool) -> Option<Timestamp> {
        let now = self.now();
        let wanted = self.wanted(now);
        let mut due = self.shards.as_ref().and_then(|it| it.next_expiry(now));
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.is_busy {
                continue;
            }
            let is_wanted = match slot.purpose {
                Purpose::Leader | Purpose::Member => true,
                Purpose::Shard(shard) => wanted.contains(&shard),
            };
            let is_held = slot.election.fence().is_some();
            if !is_wanted && is_held && is_settled {
                if let Some((record, version)) = slot.election.release(now) {
                    let client = slot.client.clone();
                    self.send(index, async move {
                        Outcome::Released(client.replace(&record, &version).await)
                    });
                }
            } else if is_wanted || is_held {
                match slot.election.next(now) {
                    Action::Wait(until) => due = earlier(due, until),
                    action => {
                        let client = slot.client.clone();
                        self.send(index, carry_out(client, action));
                    }
                }
            }
        }
        self.delete_obsolete(now);
        due
    }

    fn send(
        &mut self,
        slot: usize,
        outcome: impl Future<Output = Outcome> + Send + 'static,
    ) {
        let sent = self.now();
        self.slots[slot].is_busy = true;
        let completed = outcome.map(move |outcome| CompletedRequest {
            slot,
            sent,
            outcome,
        });
        self.requests.push(completed.boxed());
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
                Outcome::Deleted(stored)
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
            let is_it =
                |stored: &&StoredLease| stored.name == slot.client.lease_name.name;
            match event {
                Event::Listed(all) => {
                    slot.election.observe(all.iter().find(is_it).cloned(), now);
                }
                Event::Changed(stored) if is_it(&stored) => {
                    slot.election.observe(Some(stored.clone()), now);
                }
                Event::Deleted(stored) if is_it(&stored) => {
                    slot.election.observe(None, now);
                }
                Event::Changed(_) | Event::Deleted(_) => {}
            }
        }
        let Some(shards) = &mut self.shards else {
            return;
        };
        match event {
            Event::Listed(all) => shards.observe_list(all, now),
            Event::Changed(stored) => shards.observe(stored, now),
            Event::Deleted(stored) => shards.observe_deletion(stored, now),
        }
    }

    fn handle_response(&mut self, completed: CompletedRequest) {
        let now = self.now();
        let slot = &mut self.slots[completed.slot];
        slot.is_busy = false;
        let name = &slot.client.lease_name.name;
        match completed.outcome {
            Outcome::Read(found) => slot.election.read_succeeded(found, now),
            Outcome::Written(RequestResult::Success(stored)) => {
                slot.election.write_succeeded(stored, completed.sent);
            }
            Outcome::Written(RequestResult::Conflict) => slot.election.write_conflicted(),
            Outcome::Written(RequestResult::Failed(error)) => {
                let observer = &self.replica.observer;
                observer.failed("Lease could not be read, renewed or acquired", &error);
                slot.election.request_failed(completed.sent);
            }
            Outcome::Released(RequestResult::Success(stored)) => {
                tracing::info!(lease = name, "Lease released");
                slot.election.observe(Some(stored), now);
            }
            // The Lease expires.
            Outcome::Released(RequestResult::Conflict | RequestResult::Failed(_)) => {
                tracing::warn!(lease = name, "Lease could not be released");
            }
            Outcome::Deleted(stored) => {
                if let Some(shards) = &mut self.shards {
                    shards.observe_deletion(&stored, now);
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
            let is_owned = wanted.contains(&shard) && shards.is_shown_as_held(shard);
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
        while let Some(completed) = self.requests.next().await {
            self.handle_response(completed);
        }
        let now = self.now();
        // The replica's own Lease comes last: the shards are free when it ends and others take
        // over.
        for index in (0..self.slots.len()).rev() {
            let slot = &mut self.slots[index];
            let Some((record, version)) = slot.election.release(now) else {
                continue;
            };
            let (client, purpose) = (slot.client.clone(), slot.purpose);
            let released = client.replace(&record, &version).await;
            if let (Purpose::Member, RequestResult::Success(stored)) =
                (purpose, &released)
            {
                // If this fails, another replica deletes it.
                let _ = client.delete(stored).await;
            }
            self.handle_response(CompletedRequest {
                slot: index,
                sent: now,
                outcome: Outcome::Released(released),
            });
        }
    }
}

async fn carry_out(client: LeaseClient, action: Action) -> Outcome {
    match action {
        Action::Wait(_) | Action::Read => match client.read().await {
            RequestResult::Success(found) => Outcome::Read(found),
            RequestResult::Conflict => Outcome::Written(RequestResult::Failed(
                "Leases are not served".to_owned(),
            )),
            RequestResult::Failed(why) => Outcome::Written(RequestResult::Failed(why)),
        },
        Action::Create(record) => Outcome::Written(client.create(&record).await),
        Action::Replace { record, version } => {
            Outcome::Written(client.replace(&record, &version).await)
        }
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

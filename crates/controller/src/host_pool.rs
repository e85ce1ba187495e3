//! Which machine of this replica may claim which host of a class next.
//!
//! The Lease of a host decides who has it. What is here spares claims that cannot succeed, and says
//! whose turn it is: that of the highest priority. All of it may be lost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::HostPool;
use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

use crate::Key;

/// How long a host is left alone whose claim was sent, until the cache shows the Lease.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// The classes whose hosts machines wait for or have just claimed.
#[derive(Debug, Default)]
pub(crate) struct HostPools(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pools: BTreeMap<String, Pool>,
    /// The class and the place of each machine that waits or was offered a host.
    seeking: BTreeMap<Key, (String, Place)>,
}

/// The order of those that wait: by priority, then by name.
type Place = (Reverse<u8>, Key);

#[derive(Debug, Default)]
struct Pool {
    /// Those that wait, the next one first, and the only host that each takes.
    waiting: BTreeMap<Place, Option<String>>,
    /// By host: who was offered it.
    offers: BTreeMap<String, Offer>,
    /// Those that name a free host which is left to one ahead of them that takes any.
    passed_over: BTreeSet<Key>,
    /// How often the claims have changed.
    changes: u64,
    /// The number of changes, and the hosts, with which no host was free.
    full_at: Option<(u64, Arc<HostPool>)>,
}

/// What there is for a machine.
#[derive(Debug, PartialEq, Eq)]
enum Find {
    /// This host.
    Host(String),
    /// The one that it names is free, and left to one ahead of it.
    PassedOver,
    /// None.
    None,
}

/// A host that one machine may claim.
#[derive(Debug)]
struct Offer {
    to: Key,
    /// Since when its Lease exists, as far as is known from the response of the server.
    claimed_at: Option<Timestamp>,
}

/// What a machine needs.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) class: String,
    pub(crate) hosts: Arc<HostPool>,
    /// The only host that it takes.
    pub(crate) named: Option<String>,
    pub(crate) priority: u8,
}

/// The answer to a [`Wish`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This host may be claimed.
    Offered(String),
    /// None is free; the key is enqueued when that changes, but asks again at this instant if there
    /// is one.
    Wait(Option<Timestamp>),
}

impl HostPools {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers `key` a host that is not taken, the first by name, unless others that wait come first.
    pub(crate) fn seek(
        &self,
        key: &Key,
        wish: Wish,
        now: Timestamp,
        is_taken: impl Fn(&str) -> bool,
    ) -> Turn {
        let mut state = self.state();
        let place = (Reverse(wish.priority), key.clone());
        state.enter(key, &wish.class, place.clone());
        let pool = state.pools.entry(wish.class.clone()).or_default();
        pool.offers.retain(|_, offer| {
            let left = |at| after(at, SHOWN_WITHIN) > now;
            offer.claimed_at.is_none_or(left)
        });
        let found = pool.find(&place, &wish, is_taken);
        pool.offers.retain(|_, offer| !offer.is_open_to(key));
        pool.passed_over.remove(key);
        let is_passed_over = found == Find::PassedOver;
        if let Find::Host(host) = found {
            let offer = Offer {
                to: key.clone(),
                claimed_at: None,
            };
            pool.offers.insert(host.clone(), offer);
            return Turn::Offered(host);
        }
        let claimed = pool.offers.values().filter_map(|offer| offer.claimed_at);
        let again = claimed.min().map(|at| after(at, SHOWN_WITHIN));
        let is_first = pool.waiting.range(..&place).next().is_none();
        if wish.named.is_none() && is_first && pool.offers.is_empty() {
            pool.full_at = Some((pool.changes, wish.hosts));
        }
        if is_passed_over {
            pool.passed_over.insert(key.clone());
        }
        pool.waiting.insert(place, wish.named);
        Turn::Wait(again)
    }

    /// The class and the host that `key` was offered last, until the cache shows its claim: also after
    /// it has stopped waiting, because a Lease that nobody reads is not given back.
    pub(crate) fn offered(&self, key: &Key) -> Option<(String, String)> {
        let state = self.state();
        state.pools.iter().find_map(|(class, pool)| {
            let mut offers = pool.offers.iter();
            let (host, _) = offers.find(|(_, offer)| offer.to == *key)?;
            Some((class.clone(), host.clone()))
        })
    }

    /// The server has said that the Lease of the host that `key` was offered exists: it is that of
    /// `key`, or of another machine. Returns whose turn is next.
    pub(crate) fn claimed(&self, key: &Key, now: Timestamp) -> Vec<Key> {
        let mut state = self.state();
        let Some((class, _)) = state.seeking.get(key).cloned() else {
            return Vec::new();
        };
        let pool = state.pools.entry(class).or_default();
        for offer in pool.offers.values_mut().filter(|of| of.to == *key) {
            offer.claimed_at.get_or_insert(now);
        }
        pool.next_for_any()
    }

    /// `key` needs no further host. Returns whose turn is next.
    pub(crate) fn leave(&self, key: &Key) -> Vec<Key> {
        let mut state = self.state();
        let Some((class, place)) = state.seeking.remove(key) else {
            return Vec::new();
        };
        let pool = state.pools.entry(class).or_default();
        pool.waiting.remove(&place);
        pool.passed_over.remove(key);
        pool.changes += 1;
        let mut offers = pool.offers.iter();
        let freed = offers.find(|(_, offer)| offer.is_open_to(key));
        let next = match freed.map(|(host, _)| host.clone()) {
            Some(host) => {
                pool.offers.remove(&host);
                let mut next = pool.next_for(&host);
                next.extend(std::mem::take(&mut pool.passed_over));
                next
            }
            None => pool.next_for_any(),
        };
        state.pools.retain(|_, pool| !pool.is_unused());
        next
    }

    /// The cache shows a change of the Lease of a host. Returns whose turn it is.
    pub(crate) fn changed(&self, class: &str, host: &str) -> Vec<Key> {
        let mut state = self.state();
        let Some(pool) = state.pools.get_mut(class) else {
            return Vec::new();
        };
        pool.changes += 1;
        let is_shown = |offer: &Offer| offer.claimed_at.is_some();
        if pool.offers.get(host).is_some_and(is_shown) {
            pool.offers.remove(host);
        }
        pool.next_for(host)
    }
}

impl State {
    /// Records the place of `key`, which does not wait elsewhere any more.
    fn enter(&mut self, key: &Key, class: &str, place: Place) {
        let sought = (class.to_owned(), place);
        let Some((before, place)) = self.seeking.insert(key.clone(), sought) else {
            return;
        };
        if let Some(pool) = self.pools.get_mut(&before) {
            pool.waiting.remove(&place);
            pool.passed_over.remove(key);
            if before != class {
                pool.offers.retain(|_, offer| !offer.is_open_to(key));
            }
        }
    }
}

impl Offer {
    /// Whether `key` may claim the host and has not.
    fn is_open_to(&self, key: &Key) -> bool {
        self.to == *key && self.claimed_at.is_none()
    }
}

impl Pool {
    /// The host that is offered at this place: if those ahead each have one left.
    fn find(&self, place: &Place, wish: &Wish, is_taken: impl Fn(&str) -> bool) -> Find {
        let (_, key) = place;
        let ahead = || {
            self.waiting
                .range(..place)
                .map(|(_, named)| named.as_deref())
        };
        let named_ahead: BTreeSet<&str> = ahead().flatten().collect();
        let is_free = |host: &&str| {
            let offer = self.offers.get(*host);
            offer.is_none_or(|offer| offer.is_open_to(key))
                && !named_ahead.contains(*host)
                && !is_taken(host)
        };
        let others = || ahead().filter(Option::is_none).count();
        if let Some(host) = &wish.named {
            if !is_free(&host.as_str()) {
                return Find::None;
            }
            // Each of the others takes the first one by name.
            let others = others();
            let before = wish.hosts.names().take_while(|name| *name < host.as_str());
            return if others == 0 || before.filter(is_free).count() >= others {
                Find::Host(host.clone())
            } else {
                Find::PassedOver
            };
        }
        let is_full = self.full_at.as_ref().is_some_and(|(changes, hosts)| {
            *changes == self.changes && Arc::ptr_eq(hosts, &wish.hosts)
        });
        if is_full {
            return Find::None;
        }
        let others = others();
        let mut free = wish.hosts.names().filter(is_free);
        match free.next() {
            Some(first) if others == 0 || free.nth(others - 1).is_some() => {
                Find::Host(first.to_owned())
            }
            Some(_) | None => Find::None,
        }
    }

    fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.offers.is_empty()
    }

    /// The first that takes any host.
    fn next(&self) -> Option<Key> {
        let mut waiting = self.waiting.iter();
        let first = waiting.find(|(_, named)| named.is_none());
        first.map(|((_, key), _)| key.clone())
    }

    /// Whose turn it is when one that was ahead of others waits no longer.
    fn next_for_any(&mut self) -> Vec<Key> {
        let passed_over = std::mem::take(&mut self.passed_over);
        self.next().into_iter().chain(passed_over).collect()
    }

    /// Whose turn it is when this host may be free: the first that takes any, and those that take
    /// this one alone.
    fn next_for(&self, host: &str) -> Vec<Key> {
        let named = self.waiting.iter();
        let named = named.filter(|(_, named)| named.as_deref() == Some(host));
        let named = named.map(|((_, key), _)| key.clone());
        self.next().into_iter().chain(named).collect()
    }
}

#[cfg(test)]
mod tests;

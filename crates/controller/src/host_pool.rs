//! Which machine of this replica may claim which host of a class next.
//!
//! The Lease of a host decides who has it. What is here spares claims that cannot succeed, and says
//! whose turn it is: that of the highest priority, also of those that may need a host at the same
//! instant and have not asked yet. All of it may be lost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::HostPool;
use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

use crate::Key;

/// How long a host is left alone whose claim was sent, until the cache shows the Lease.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// For how long one that may need a host is left its place until it asks.
const ASKS_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// The classes whose hosts machines wait for or have just claimed.
#[derive(Debug, Default)]
pub(crate) struct HostPools(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pools: BTreeMap<String, Pool>,
    /// The class and the place of each machine that waits or was offered a host.
    seeking: BTreeMap<Key, (String, Place)>,
    /// The class, the instant and the place of each machine that may need a host then.
    expected: BTreeMap<Key, (String, Timestamp, Place)>,
}

/// The order of those that wait: by priority, then by name.
type Place = (Reverse<u8>, Key);

#[derive(Debug, Default)]
struct Pool {
    /// Those that wait, the next one first, and the only host that each takes.
    waiting: BTreeMap<Place, Option<String>>,
    /// By host: who was offered it.
    offers: BTreeMap<String, Offer>,
    /// Those that may need one at an instant, as those that wait.
    expected: BTreeMap<Timestamp, BTreeMap<Place, Option<String>>>,
    /// Those for which a host is free that is left to one ahead of them.
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
    /// One is free, and left to one ahead of it.
    PassedOver,
    /// None that is free.
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

    /// `key` needs no host now, and may need one at an instant.
    pub(crate) fn expect(&self, key: &Key, wish: Wish, at: Timestamp) {
        let mut state = self.state();
        state.forget_expected(key);
        let place = (Reverse(wish.priority), key.clone());
        let expected = (wish.class.clone(), at, place.clone());
        state.expected.insert(key.clone(), expected);
        let pool = state.pools.entry(wish.class).or_default();
        pool.expected
            .entry(at)
            .or_default()
            .insert(place, wish.named);
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
        state.forget_expected(key);
        state.enter(key, &wish.class, place.clone());
        let pool = state.pools.entry(wish.class.clone()).or_default();
        pool.offers.retain(|_, offer| {
            let left = |at| after(at, SHOWN_WITHIN) > now;
            offer.claimed_at.is_none_or(left)
        });
        while let Some(first) = pool.expected.first_entry()
            && after(*first.key(), ASKS_WITHIN) <= now
        {
            first.remove();
        }
        let found = pool.find(&place, &wish, now, is_taken);
        pool.offers.retain(|_, offer| !offer.is_open_to(key));
        pool.passed_over.remove(key);
        let is_passed_over = found == Find::PassedOver;
        let is_due_ahead = is_passed_over && pool.has_due_ahead(&place, now);
        if let Find::Host(host) = found {
            let offer = Offer {
                to: key.clone(),
                claimed_at: None,
            };
            pool.offers.insert(host.clone(), offer);
            return Turn::Offered(host);
        }
        let claimed = pool.offers.values().filter_map(|offer| offer.claimed_at);
        let shown = claimed.map(|at| after(at, SHOWN_WITHIN));
        let asked = is_due_ahead.then(|| after(now, ASKS_WITHIN));
        let again = shown.chain(asked).min();
        let is_first = pool.ahead(&place, now).next().is_none();
        if wish.named.is_none() && is_first && pool.offers.is_empty() {
            pool.full_at = Some((pool.changes, wish.hosts));
        }
        // Those that wait for any host are asked in their order anyway.
        if is_due_ahead || is_passed_over && wish.named.is_some() {
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
        let expected = state.forget_expected(key);
        let Some((class, place)) = state.seeking.remove(key) else {
            let Some(class) = expected else {
                return Vec::new();
            };
            let passed_over = state.passed_over(&class);
            if state.pools.get(&class).is_some_and(Pool::is_unused) {
                state.pools.remove(&class);
            }
            return passed_over;
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
    /// `key` is not expected any more. Returns the class in which it was.
    fn forget_expected(&mut self, key: &Key) -> Option<String> {
        let (class, at, place) = self.expected.remove(key)?;
        let pool = self.pools.get_mut(&class)?;
        if let Some(expected) = pool.expected.get_mut(&at) {
            expected.remove(&place);
            if expected.is_empty() {
                pool.expected.remove(&at);
            }
        }
        Some(class)
    }

    /// Those of a class that were passed over, which are to ask again.
    fn passed_over(&mut self, class: &str) -> Vec<Key> {
        let pool = self.pools.get_mut(class);
        let passed_over = pool.map(|pool| std::mem::take(&mut pool.passed_over));
        passed_over.into_iter().flatten().collect()
    }

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
    /// The only hosts that those take which are ahead of a place, by waiting or because they may need
    /// one by now.
    fn ahead(&self, place: &Place, now: Timestamp) -> impl Iterator<Item = Option<&str>> {
        let due = self.expected.range(..=now);
        let due = due.flat_map(move |(_, expected)| expected.range(..place));
        let ahead = self.waiting.range(..place).chain(due);
        ahead.map(|(_, named)| named.as_deref())
    }

    /// Whether one that may need a host by now is ahead of a place.
    fn has_due_ahead(&self, place: &Place, now: Timestamp) -> bool {
        let mut due = self.expected.range(..=now);
        due.any(|(_, expected)| expected.range(..place).next().is_some())
    }

    /// The host that is offered at this place: if those ahead each have one left.
    fn find(
        &self,
        place: &Place,
        wish: &Wish,
        now: Timestamp,
        is_taken: impl Fn(&str) -> bool,
    ) -> Find {
        let (_, key) = place;
        let ahead = || self.ahead(place, now);
        let named_ahead: BTreeSet<&str> = ahead().flatten().collect();
        let others = || ahead().filter(Option::is_none).count();
        let is_free = |host: &&str| {
            let offer = self.offers.get(*host);
            offer.is_none_or(|offer| offer.is_open_to(key)) && !is_taken(host)
        };
        let is_left = |host: &&str| is_free(host) && !named_ahead.contains(*host);
        if let Some(host) = &wish.named {
            if !is_free(&host.as_str()) {
                return Find::None;
            }
            // Each of the others takes the first one by name.
            let others = others();
            let before = wish.hosts.names().take_while(|name| *name < host.as_str());
            let is_others = others > 0 && before.filter(is_left).count() < others;
            return if is_others || !is_left(&host.as_str()) {
                Find::PassedOver
            } else {
                Find::Host(host.clone())
            };
        }
        let is_full = self.full_at.as_ref().is_some_and(|(changes, hosts)| {
            *changes == self.changes && Arc::ptr_eq(hosts, &wish.hosts)
        });
        if is_full {
            return Find::None;
        }
        let others = others();
        let mut left = wish.hosts.names().filter(is_left);
        match left.next() {
            Some(first) if others == 0 || left.nth(others - 1).is_some() => {
                Find::Host(first.to_owned())
            }
            None if !wish.hosts.names().any(|host| is_free(&host)) => Find::None,
            Some(_) | None => Find::PassedOver,
        }
    }

    fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.offers.is_empty() && self.expected.is_empty()
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

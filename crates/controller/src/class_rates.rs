//! When the machines of a class may begin and leave, where the class has rates.
//!
//! Each reconcile says what its machine claims, and asks. The answer for all of them, in all
//! namespaces, is computed once and holds until a claim changes or a slot is free, so that an event
//! costs one pass at most. All of it may be lost: what counts is in the schedules, in
//! `status.lastScheduledTime` and in `status.lastShutdownTime`. Only of a machine that is deleted, and
//! of one whose start is not recorded yet, nothing is known after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_api::RatesOfClass;
use fivespot_plan::rates::{Claim, Grant, Member, Pace, Stage, Wish, rule};
use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

use crate::Key;
use crate::awaited::{self, Awaited};

/// How long what a machine was allowed counts.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// The classes with rates.
#[derive(Debug, Default)]
pub(crate) struct ClassRates(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    classes: BTreeMap<String, Members>,
    class_of: BTreeMap<Key, String>,
}

/// The machines of one class.
#[derive(Debug)]
struct Members {
    rates: RatesOfClass,
    all: BTreeMap<Key, Entry>,
    /// Those that are deleted, and count for the rest of their minute.
    past: Vec<(Key, Entry)>,
    awaited: Awaited<Key>,
    /// Until when the last ruling holds.
    until: Timestamp,
    /// When it was made; `None` if it does not hold any more.
    ruled_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct Entry {
    claim: Claim,
    pace: Pace,
    grant: Option<Grant>,
    /// When the machine asks again, according to the answer that it has.
    asks_at: Option<Timestamp>,
}

/// What a machine claims of its class.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) class: String,
    pub(crate) rates: RatesOfClass,
    pub(crate) claim: Claim,
}

/// The answer to a [`Request`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether the machine is held; `None` if that is not known yet.
    pub(crate) pace: Option<Pace>,
    /// When to ask again, whatever happens.
    pub(crate) again: Option<Timestamp>,
    /// Others that are to ask now.
    pub(crate) others: Vec<Key>,
}

impl ClassRates {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what `key` claims, and says whether it is held. `all` returns the machines of the
    /// class that exist.
    pub(crate) fn ask(
        &self,
        key: &Key,
        request: Request,
        now: Timestamp,
        all: impl FnOnce() -> Vec<Key>,
    ) -> Answer {
        let Request {
            class,
            rates,
            claim,
        } = request;
        let mut state = self.state();
        let mut others = BTreeSet::new();
        if state.class_of.get(key).is_some_and(|of| *of != class) {
            others.extend(state.leave(key, now));
        }
        state.class_of.insert(key.clone(), class.clone());
        if !state.classes.contains_key(&class) {
            state.drop_past(now);
        }
        let new = || Members::new(rates, all(), now);
        let members = state.classes.entry(class).or_insert_with(new);
        if members.rates != rates {
            members.rates = rates;
            members.ruled_at = None;
        }
        members.claim(key, claim, now);
        let (pace, again) = members.answer(key, now, &mut others);
        others.remove(key);
        Answer {
            pace,
            again,
            others: others.into_iter().collect(),
        }
    }

    /// `key` claims nothing of any class. Returns those that are to ask because of that.
    pub(crate) fn leave(&self, key: &Key, now: Timestamp) -> Vec<Key> {
        self.state().leave(key, now)
    }
}

impl State {
    fn leave(&mut self, key: &Key, now: Timestamp) -> Vec<Key> {
        let class = self.class_of.remove(key);
        let members = class.and_then(|class| self.classes.get_mut(&class));
        members.map_or_else(Vec::new, |members| members.leave(key, now))
    }

    /// Drops the classes of which nothing counts any more.
    fn drop_past(&mut self, now: Timestamp) {
        self.classes.retain(|_, members| {
            members.forget_past(now);
            !members.all.is_empty() || !members.past.is_empty()
        });
    }
}

impl Members {
    fn new(rates: RatesOfClass, awaited: Vec<Key>, now: Timestamp) -> Self {
        Self {
            rates,
            all: BTreeMap::new(),
            past: Vec::new(),
            awaited: Awaited::new(awaited, now),
            until: now,
            ruled_at: None,
        }
    }

    /// Records a claim. The ruling holds on if the claim changes nothing at this time.
    fn claim(&mut self, key: &Key, claim: Claim, now: Timestamp) {
        self.awaited.claimed(key);
        let next = claim.next_change(now).unwrap_or(Timestamp::MAX);
        let known = self.all.get(key);
        let is_same = match known.map(|entry| &entry.claim) {
            Some(known) => {
                let relevant = |of: &Claim| {
                    let wish = of.wish(now);
                    (of.priority, of.stage, of.started, of.stopped, wish)
                };
                relevant(known) == relevant(&claim)
            }
            None => claim.wish(now) == Wish::Nothing && claim.is_past(now),
        };
        if is_same {
            self.until = self.until.min(next);
        } else {
            self.ruled_at = None;
        }
        let entry = self.all.entry(key.clone()).or_insert_with(|| Entry {
            claim: Claim::default(),
            pace: Pace::Free,
            grant: None,
            asks_at: None,
        });
        entry.claim = claim;
    }

    fn leave(&mut self, key: &Key, now: Timestamp) -> Vec<Key> {
        let asked = self.awaited.gone(key);
        self.ruled_at = None;
        if let Some(mut entry) = self.all.remove(key) {
            entry.claim.stage = Stage::Aside;
            self.past.push((key.clone(), entry));
        }
        self.forget_past(now);
        if let Some(asked) = asked {
            return asked.into_iter().collect();
        }
        // It has the others enqueued for which the next ruling is another one.
        let waiting = |entry: &Entry| entry.pace != Pace::Free;
        let mut waiting = self.all.iter().filter(|(_, entry)| waiting(entry));
        waiting
            .next()
            .map(|(key, _)| key.clone())
            .into_iter()
            .collect()
    }

    fn forget_past(&mut self, now: Timestamp) {
        self.past.retain(|(_, entry)| {
            let is_open = |grant: Grant| after(grant.at, MINUTE) > now;
            !entry.claim.is_past(now) || entry.grant.is_some_and(is_open)
        });
    }

    fn answer(
        &mut self,
        key: &Key,
        now: Timestamp,
        others: &mut BTreeSet<Key>,
    ) -> (Option<Pace>, Option<Timestamp>) {
        match self.awaited.ask(key.clone(), now) {
            Ok(mut asked) => others.append(&mut asked),
            Err(until) => return (None, Some(until)),
        }
        if !awaited::holds(self.ruled_at, self.until, now) {
            others.append(&mut self.rule(now));
        }
        let Some(entry) = self.all.get_mut(key) else {
            return (None, None);
        };
        entry.asks_at = again(entry.pace);
        (Some(entry.pace), None)
    }

    /// Makes the ruling. Returns those that are not held any more, and those for which the next slot
    /// is free before they ask.
    fn rule(&mut self, now: Timestamp) -> BTreeSet<Key> {
        self.forget_past(now);
        let present = self.all.iter();
        let past = self.past.iter().map(|(key, entry)| (key, entry));
        let members: Vec<Member<'_>> = present
            .chain(past)
            .map(|(key, entry)| Member {
                namespace: &key.namespace,
                name: &key.name,
                claim: &entry.claim,
                grant: entry.grant,
            })
            .collect();
        let ruling = rule(&self.rates, &members, now);
        self.until = ruling.until;
        self.ruled_at = Some(now);
        let first = ruling.paces.iter().filter_map(|pace| again(*pace)).min();
        let mut to_ask = BTreeSet::new();
        let ruled = ruling.paces.into_iter().zip(ruling.grants);
        for ((key, entry), (pace, grant)) in self.all.iter_mut().zip(ruled) {
            let is_freed = entry.pace != Pace::Free && pace == Pace::Free;
            let is_first = first.is_some() && again(pace) == first;
            let asks_late = entry.asks_at.is_none_or(|at| Some(at) > first);
            if is_freed || is_first && asks_late {
                to_ask.insert(key.clone());
            }
            entry.pace = pace;
            entry.grant = grant;
        }
        to_ask
    }
}

fn again(pace: Pace) -> Option<Timestamp> {
    match pace {
        Pace::Free => None,
        Pace::Wait { again, .. } => again,
    }
}

#[cfg(test)]
mod tests;

//! Whose turn it is among the machines of a class in one namespace, where the class limits them.
//!
//! Each reconcile says what its machine claims, and asks. The answer for all of them is computed once
//! and holds until a claim changes or begins, so that an event costs one pass at most. All of it may
//! be lost: what counts is in the schedules and in `status.weeklyUse`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::LimitsOfClass;
use fivespot_plan::limits::{Claim, Ruling, Turn, Week, rule};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::Key;
use crate::awaited::{self, Awaited};

/// The classes with limits, by namespace.
#[derive(Debug, Default)]
pub(crate) struct ClassTurns(Mutex<State>);

/// A class and a namespace.
type Group = (String, String);

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<Group, Members>,
    group_of: BTreeMap<Key, Group>,
}

/// The machines of one class in one namespace, by name.
#[derive(Debug)]
struct Members {
    limits: Arc<LimitsOfClass>,
    claims: BTreeMap<String, Claim>,
    awaited: Awaited<String>,
    ruling: Ruling,
    /// When the ruling was made; `None` if it does not hold any more.
    ruled_at: Option<Timestamp>,
}

/// What a machine claims of its class.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) class: String,
    pub(crate) limits: Arc<LimitsOfClass>,
    pub(crate) claim: Claim,
}

/// The answer to a [`Request`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether the machine may be made; `None` if that is not known yet.
    pub(crate) turn: Option<Turn>,
    /// When to ask again, whatever happens.
    pub(crate) again: Option<Timestamp>,
    /// Others for which the answer has changed.
    pub(crate) others: Vec<Key>,
}

impl ClassTurns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what `key` claims, and says whether it is its turn. `all` returns the machines of the
    /// class in its namespace that exist.
    pub(crate) fn ask(
        &self,
        key: &Key,
        request: Request,
        now: Timestamp,
        all: impl FnOnce() -> Vec<Key>,
    ) -> Answer {
        let group = (request.class, key.namespace.clone());
        let mut state = self.state();
        let mut others = Vec::new();
        if state.group_of.get(key).is_some_and(|of| *of != group) {
            others = state.leave(key);
        }
        state.group_of.insert(key.clone(), group.clone());
        let members = state.groups.entry(group).or_insert_with(|| {
            let awaited = all().into_iter().map(|of| of.name.clone());
            let awaited = Awaited::new(awaited, now);
            Members::new(&request.limits, awaited, now)
        });
        members.limit(request.limits);
        members.claim(&key.name, request.claim, now);
        let mut answer = members.answer(&key.name, now);
        let named = |name: &String| Key::new(key.namespace.clone(), name);
        others.extend(answer.names.iter().map(named));
        others.retain(|of| of != key);
        Answer {
            turn: answer.turn.take(),
            again: answer.again,
            others,
        }
    }

    /// `key` claims nothing of any class. Returns those that may have a turn because of that.
    pub(crate) fn leave(&self, key: &Key) -> Vec<Key> {
        self.state().leave(key)
    }
}

impl State {
    fn leave(&mut self, key: &Key) -> Vec<Key> {
        let Some(group) = self.group_of.remove(key) else {
            return Vec::new();
        };
        let Some(members) = self.groups.get_mut(&group) else {
            return Vec::new();
        };
        let names = members.leave(&key.name);
        if members.claims.is_empty() {
            self.groups.remove(&group);
        }
        let named = |name| Key::new(key.namespace.clone(), name);
        names.iter().map(|name: &String| named(name)).collect()
    }
}

/// An [`Answer`] with the names of the others.
struct Found {
    turn: Option<Turn>,
    again: Option<Timestamp>,
    names: BTreeSet<String>,
}

impl Members {
    fn new(
        limits: &Arc<LimitsOfClass>,
        awaited: Awaited<String>,
        now: Timestamp,
    ) -> Self {
        Self {
            limits: limits.clone(),
            claims: BTreeMap::new(),
            awaited,
            ruling: Ruling {
                until: now,
                waiting: BTreeMap::new(),
            },
            ruled_at: None,
        }
    }

    fn limit(&mut self, limits: Arc<LimitsOfClass>) {
        if self.limits != limits {
            self.ruled_at = None;
        }
        self.limits = limits;
    }

    /// Records a claim. The ruling holds on if the claim changes nothing at this time.
    fn claim(&mut self, name: &str, claim: Claim, now: Timestamp) {
        self.awaited.claimed(name);
        let known = self.claims.insert(name.to_owned(), claim);
        let claim = &self.claims[name];
        let is_waiting = self.ruling.waiting.contains_key(name);
        let is_same = known.as_ref().is_some_and(|known| {
            // One that is allowed holds its turn from then on.
            let held = Claim {
                holds: known.holds || claim.holds && !is_waiting,
                ..known.clone()
            };
            claim.is_same_from(&held, now)
        });
        let is_needed = |of: &Claim| of.at(name, now).is_some();
        let concerns_now = is_needed(claim) || known.as_ref().is_some_and(is_needed);
        if !is_same && concerns_now {
            self.ruled_at = None;
        } else if let Some(next) = claim.next_change(now) {
            self.ruling.until = self.ruling.until.min(next);
        }
    }

    fn leave(&mut self, name: &str) -> BTreeSet<String> {
        self.claims.remove(name);
        let asked = self.awaited.gone(name);
        self.ruling.waiting.remove(name);
        self.ruled_at = None;
        if let Some(asked) = asked {
            return asked;
        }
        // It has the others enqueued for which the next ruling is another one.
        let priority = |name: &&String| self.claims.get(*name).map(|of| of.priority);
        let first = self.ruling.waiting.keys().max_by_key(priority);
        first.cloned().into_iter().collect()
    }

    fn answer(&mut self, name: &str, now: Timestamp) -> Found {
        let mut names = match self.awaited.ask(name.to_owned(), now) {
            Ok(asked) => asked,
            Err(until) => {
                return Found {
                    turn: None,
                    again: Some(until),
                    names: BTreeSet::new(),
                };
            }
        };
        if !awaited::holds(self.ruled_at, self.ruling.until, now) {
            names.append(&mut self.rule(now));
        }
        Found {
            turn: Some(self.ruling.waiting.get(name).copied().unwrap_or(Turn::Open)),
            again: None,
            names,
        }
    }

    /// Makes the ruling. Returns the names of those that have waited and for which it differs.
    fn rule(&mut self, now: Timestamp) -> BTreeSet<String> {
        let zone = fivespot_schedule::zone(&self.limits.timezone);
        let week = Week::at(now, &zone.unwrap_or(TimeZone::UTC));
        let next = rule(&self.limits, &week, &self.claims, now);
        let before = std::mem::replace(&mut self.ruling, next);
        self.ruled_at = Some(now);
        let waiting = before.waiting.into_iter();
        let changed =
            waiting.filter(|(name, turn)| self.ruling.waiting.get(name) != Some(turn));
        changed.map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests;

//! Searches for an object that one side admits and the other refuses.

mod repair;

use std::collections::BTreeMap;

use kubemu_terminal::Failure;
use serde_json::Value;

use super::compared::{Compared, Edit};
use super::minimal::minimal;
use super::place::Place;
use crate::validate::judge::{Judge, Opinion, Question};

/// How many requests are used to make one object valid: one from which the search starts, and one
/// of those that it tries.
const FOR_A_START: u64 = 3_000;
const FOR_AN_EDIT: u64 = 100;
/// How many places are given what is around them.
const MAX_SURROUNDINGS: usize = 12;
/// How many refused objects are kept to be completed.
const MAX_REFUSED: usize = 2_000;
/// The size of objects that are combined with others.
const SMALL: usize = 4_096;
/// How many objects updates are tried between.
const MAX_STATES: usize = 40;

/// How the sides differ about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Difference {
    /// The old side admits it, the new side refuses it.
    Refused,
    /// The old side refuses it, the new side admits it.
    Admitted,
    /// Both admit it, and store another object.
    Stored,
}

/// The requests that may still be used.
pub(super) struct Budget {
    limit: u64,
    pub(super) used: u64,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0 }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.used >= self.limit
    }

    /// A large object and one whose rules are expensive count as several requests.
    fn charge(&mut self, bytes: usize, cost: u64) {
        let more = bytes as u64 / 4_096 + cost / 10_000;
        self.used = self.used.saturating_add(more).saturating_add(1);
    }
}

/// The search about one version of a kind.
pub(super) struct Search<'s, 'e> {
    judges: &'s [Judge<'e>; 2],
    compared: &'s Compared,
    pub(super) budget: Budget,
    /// The smallest question of each difference.
    pub(super) found: BTreeMap<Difference, Question>,
    /// The objects that both sides admit, for updates.
    states: Vec<Value>,
    /// Which sides admit any object.
    pub(super) admitted: [bool; 2],
}

impl<'s, 'e> Search<'s, 'e> {
    pub(super) fn new(
        judges: &'s [Judge<'e>; 2],
        compared: &'s Compared,
        limit: u64,
    ) -> Self {
        Self {
            judges,
            compared,
            budget: Budget::new(limit),
            found: BTreeMap::new(),
            states: Vec::new(),
            admitted: [false; 2],
        }
    }

    /// Searches until a difference is found or the budget is used: first the objects that are given
    /// and the smallest ones, then those with one edit, two edits, several, and updates.
    ///
    /// # Errors
    /// An object cannot be judged.
    pub(super) fn run(&mut self, examples: &[Value]) -> Result<(), Failure> {
        let starts = self.starts(examples)?;
        if self.is_decided() {
            return Ok(());
        }
        let focus = self.compared.focus.iter();
        let edits: Vec<Edit> = focus.flat_map(|it| self.compared.edits(it)).collect();
        let mut refused = Vec::new();
        for start in &starts {
            self.single(start, &edits, &mut refused)?;
        }
        if self.is_decided() {
            return Ok(());
        }
        if self.compared.has_transitions {
            self.updates()?;
        }
        let small = |it: &&Edit| {
            let value = it.value.as_ref();
            value.is_none_or(|it| it.to_string().len() < SMALL)
        };
        let small: Vec<&Edit> = edits.iter().filter(small).collect();
        if !self.is_decided() {
            self.completed(&refused)?;
        }
        // What is stored differently is enough where no single edit has another verdict.
        // The last ones have most around the places that matter.
        for (left, start) in starts.iter().enumerate().rev() {
            if self.found.is_empty() {
                let end = self.part(left as u64 + 2);
                self.pairs(start, &small, end)?;
            }
        }
        self.several(&starts, &small)
    }

    /// Up to which use of the budget a step may go that has this part of what is left.
    fn part(&self, of: u64) -> u64 {
        self.budget.used + self.budget.limit.saturating_sub(self.budget.used) / of
    }

    /// Whether the sides have different verdicts about an object.
    fn is_decided(&self) -> bool {
        let mut verdicts = self.found.keys();
        verdicts.any(|it| *it != Difference::Stored)
    }

    fn opinion(&mut self, side: usize, question: &Question) -> Result<Opinion, Failure> {
        let judge = self.judges.get(side).unwrap_or(&self.judges[0]);
        let opinion = judge.opinion(question)?;
        self.budget.charge(question.bytes(), opinion.cost);
        Ok(opinion)
    }

    /// How the sides differ about a question.
    pub(super) fn difference(
        &mut self,
        question: &Question,
    ) -> Result<(Option<Difference>, [Opinion; 2]), Failure> {
        let opinions = [self.opinion(0, question)?, self.opinion(1, question)?];
        if let Some(old) = &question.old {
            // Only what both sides admit is stored on both.
            let old = Question::create(old.clone());
            if !(self.opinion(0, &old)?.admitted && self.opinion(1, &old)?.admitted) {
                return Ok((None, opinions));
            }
        }
        let admitted = [opinions[0].admitted, opinions[1].admitted];
        let difference = match admitted {
            [true, false] => Some(Difference::Refused),
            [false, true] => Some(Difference::Admitted),
            [true, true] if self.compared.compares_stored && question.old.is_none() => {
                let stored = |it: &Judge<'_>| it.completed(&question.object);
                let differs = stored(&self.judges[0]) != stored(&self.judges[1]);
                differs.then_some(Difference::Stored)
            }
            _ => None,
        };
        for (any, admits) in self.admitted.iter_mut().zip(admitted) {
            *any |= admits;
        }
        Ok((difference, opinions))
    }

    /// Judges a question and keeps it if the sides differ and it is the smallest.
    fn ask(&mut self, question: &Question) -> Result<[Opinion; 2], Failure> {
        let (difference, opinions) = self.difference(question)?;
        if let Some(difference) = difference {
            let is_smallest = self
                .found
                .get(&difference)
                .is_none_or(|it| question.bytes() < it.bytes());
            if is_smallest {
                self.found.insert(difference, question.clone());
            }
        }
        let is_state = opinions.iter().all(|it| it.admitted) && question.old.is_none();
        if self.compared.has_transitions
            && is_state
            && self.states.len() < MAX_STATES
            && !self.states.contains(&question.object)
        {
            self.states.push(question.object.clone());
        }
        Ok(opinions)
    }

    /// The objects from which the search starts: those that are given, and one that each side
    /// admits.
    fn starts(&mut self, examples: &[Value]) -> Result<Vec<Value>, Failure> {
        let mut starts: Vec<Value> = Vec::new();
        for example in examples {
            self.ask(&Question::create(example.clone()))?;
            starts.push(example.clone());
        }
        for side in [0, 1] {
            let Some(schema) = &self.compared.schemas[side] else {
                continue;
            };
            let start = self.compared.start(schema);
            let valid = self.repaired(start, side, (None, FOR_A_START))?;
            let Some(valid) = valid.filter(|it| !starts.contains(it)) else {
                continue;
            };
            self.ask(&Question::create(valid.clone()))?;
            starts.push(valid);
        }
        self.surround(&mut starts)?;
        Ok(starts)
    }

    /// Adds objects that have what is around the places that matter: edits of several of them must
    /// not fail because of something else that is required there.
    fn surround(&mut self, starts: &mut Vec<Value>) -> Result<(), Failure> {
        let mut around: Vec<Place> = Vec::new();
        for place in self.compared.focus.iter().filter_map(Place::parent) {
            let is_new = !place.0.is_empty() && !around.contains(&place);
            if is_new && around.len() < MAX_SURROUNDINGS {
                around.push(place);
            }
        }
        for place in around {
            for side in [0, 1] {
                let Some(start) = starts.last().cloned() else {
                    return Ok(());
                };
                if place.value_in(&start).is_some() {
                    continue;
                }
                let value = self.compared.schema_with(&place, side);
                let value = value.and_then(|it| place.schema_in(it));
                let edit = Edit {
                    place: place.clone(),
                    value: value.map(|it| minimal(it, 0)),
                };
                let Some(object) = self.edited(&start, &edit, side) else {
                    continue;
                };
                let kept = place.parent();
                let kept = (kept.as_ref(), FOR_A_START / 6);
                if let Some(valid) = self.repaired(object, side, kept)?
                    && place.value_in(&valid).is_some()
                {
                    self.ask(&Question::create(valid.clone()))?;
                    starts.push(valid);
                }
            }
        }
        Ok(())
    }

    /// Tries each edit alone, and collects those with which both sides refuse the object.
    fn single<'d>(
        &mut self,
        start: &Value,
        edits: &'d [Edit],
        refused: &mut Vec<(Value, &'d Edit)>,
    ) -> Result<(), Failure> {
        for edit in edits {
            if self.budget.is_exhausted() {
                return Ok(());
            }
            let edited = self.edited(start, edit, 0);
            let Some(object) = edited.or_else(|| self.edited(start, edit, 1)) else {
                continue;
            };
            let question = Question::create(object);
            let opinions = self.ask(&question)?;
            let is_refused = opinions.iter().all(|it| !it.admitted);
            if is_refused && refused.len() < MAX_REFUSED && question.bytes() < SMALL {
                refused.push((question.object, edit));
            }
        }
        Ok(())
    }

    /// Completes what both sides refuse to objects that one of them admits.
    fn completed(&mut self, refused: &[(Value, &Edit)]) -> Result<(), Failure> {
        let end = self.part(3);
        for (object, edit) in refused {
            for side in [0, 1] {
                if self.budget.used >= end {
                    return Ok(());
                }
                let fixed = (Some(&edit.place), FOR_AN_EDIT);
                if let Some(valid) = self.repaired(object.clone(), side, fixed)? {
                    self.ask(&Question::create(valid))?;
                }
            }
        }
        Ok(())
    }

    fn edited(&self, object: &Value, edit: &Edit, side: usize) -> Option<Value> {
        let mut edited = object.clone();
        if let Some(value) = &edit.value {
            let schema = self.compared.schema_with(&edit.place, side)?;
            edit.place.set(&mut edited, value.clone(), schema);
        } else {
            // What is around the absent value matters.
            if let Some(parent) = edit.place.parent()
                && parent.value_in(&edited).is_none()
            {
                let schema = self.compared.schema_with(&parent, side)?;
                let around = minimal(parent.schema_in(schema)?, 0);
                parent.set(&mut edited, around, schema);
            }
            edit.place.remove(&mut edited);
        }
        (edited != *object).then_some(edited)
    }

    /// Tries all pairs of edits of different places, the first values first.
    fn pairs(&mut self, start: &Value, edits: &[&Edit], end: u64) -> Result<(), Failure> {
        let mut by_place: BTreeMap<&Place, Vec<&Edit>> = BTreeMap::new();
        for edit in edits {
            by_place.entry(&edit.place).or_default().push(edit);
        }
        let places: Vec<(&Place, Vec<&Edit>)> = by_place.into_iter().collect();
        let most = places.iter().map(|it| it.1.len()).max().unwrap_or_default();
        // The sum of the indexes grows, so that every place has its turn.
        for sum in 0..most.saturating_mul(2) {
            for (at, (place, one)) in places.iter().enumerate() {
                for (other_place, other) in places.iter().skip(at + 1) {
                    if place.contains(other_place) {
                        continue;
                    }
                    for first in 0..=sum {
                        let edits = (one.get(first), other.get(sum - first));
                        let (Some(one), Some(other)) = edits else {
                            continue;
                        };
                        self.pair(start, one, other)?;
                        if self.budget.used >= end {
                            return Ok(());
                        }
                    }
                }
            }
            if !self.found.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn pair(&mut self, start: &Value, one: &Edit, other: &Edit) -> Result<(), Failure> {
        let edited = self.edited(start, one, 1);
        let edited = edited.unwrap_or_else(|| start.clone());
        match self.edited(&edited, other, 1) {
            Some(edited) => self.ask(&Question::create(edited)).map(drop),
            None => Ok(()),
        }
    }

    /// Tries several edits at once, until the budget is used or a difference is found.
    fn several(&mut self, starts: &[Value], edits: &[&Edit]) -> Result<(), Failure> {
        if edits.len() < 3 || starts.is_empty() {
            return Ok(());
        }
        // A fixed seed: the same files have the same answer.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap_or_default() % below.max(1)
        };
        while !self.budget.is_exhausted() && self.found.is_empty() {
            let Some(mut object) = starts.get(random(starts.len())).cloned() else {
                return Ok(());
            };
            for _ in 0..3 + random(3) {
                if let Some(edit) = edits.get(random(edits.len())) {
                    let edited = self.edited(&object, edit, random(2));
                    object = edited.unwrap_or(object);
                }
            }
            self.ask(&Question::create(object))?;
        }
        Ok(())
    }

    /// Tries updates between the objects that both sides admit.
    fn updates(&mut self) -> Result<(), Failure> {
        let states = std::mem::take(&mut self.states);
        for old in &states {
            for object in &states {
                if self.budget.is_exhausted() {
                    return Ok(());
                }
                self.ask(&Question {
                    object: object.clone(),
                    old: Some(old.clone()),
                })?;
            }
        }
        self.states = states;
        Ok(())
    }
}

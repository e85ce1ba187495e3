//! Makes an object valid on one side, by edits where its errors are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use kubemu_terminal::Failure;
use serde_json::Value;

use super::{SMALL, Search};
use crate::diff::compared::Edit;
use crate::diff::place::Place;
use crate::validate::judge::{Opinion, Question};

/// How many pairs of edits are tried to resolve an error.
const MAX_PAIRS: usize = 700;
/// Between how many places, and how many values of each.
const PAIRED_PLACES: usize = 12;
const PAIRED_VALUES: usize = 4;

impl Search<'_, '_> {
    /// An object like `object` that the side admits. The value at a fixed place is kept. `None` if
    /// none is found with so many requests.
    pub(super) fn repaired(
        &mut self,
        object: Value,
        side: usize,
        (fixed, requests): (Option<&Place>, u64),
    ) -> Result<Option<Value>, Failure> {
        let end = self.budget.used.saturating_add(requests);
        let mut open = Repairs::default();
        let first = self.opinion(side, &Question::create(object.clone()))?;
        if first.admitted {
            return Ok(Some(object));
        }
        open.add(object, &first);
        let mut stuck = HashSet::new();
        while let Some((best, object, fields)) = open.next() {
            let edits = self.remedies(&fields, side, fixed);
            let singles = edits.iter().map(|it| vec![it]);
            let pairs = pairs_of(&edits).into_iter();
            for (edits, is_pair) in singles
                .map(|it| (it, false))
                .chain(pairs.map(|it| (it, true)))
            {
                // Two fields may be required together. Pairs are tried once where no single edit
                // helps.
                if is_pair && (open.is_better_than(best) || stuck.contains(&best)) {
                    break;
                }
                if self.budget.used >= end || self.budget.is_exhausted() {
                    return Ok(None);
                }
                let edited = edits.iter().fold(object.clone(), |object, edit| {
                    self.edited(&object, edit, side).unwrap_or(object)
                });
                if !open.is_new(&edited) {
                    continue;
                }
                let question = Question::create(edited);
                let opinion = self.opinion(side, &question)?;
                if opinion.admitted {
                    return Ok(Some(question.object));
                }
                // One more error may be the way to fewer.
                let (passed, Reverse(faults)) = best;
                if score(&opinion) >= (passed, Reverse(faults + 1)) {
                    open.add(question.object, &opinion);
                }
            }
            stuck.insert(best);
        }
        Ok(None)
    }

    /// The edits that may resolve the errors of these fields.
    fn remedies(
        &self,
        fields: &[String],
        side: usize,
        fixed: Option<&Place>,
    ) -> Vec<Edit> {
        let mut places: Vec<Place> = Vec::new();
        for field in fields.iter().take(3) {
            for place in self.compared.places_of_error(field, side) {
                let is_fixed = fixed.is_some_and(|it| place.contains(it));
                if !is_fixed && !places.contains(&place) && places.len() < 40 {
                    places.push(place);
                }
            }
        }
        let edits = places.iter().flat_map(|place| {
            let edits = self.compared.edits(place).into_iter();
            let small = |it: &Edit| {
                let value = it.value.as_ref();
                value.is_none_or(|it| it.to_string().len() < SMALL)
            };
            edits.filter(small).take(60)
        });
        edits.collect()
    }
}

/// Pairs of edits of different places, the first values first.
fn pairs_of(edits: &[Edit]) -> Vec<Vec<&Edit>> {
    let mut ranked: Vec<(usize, &Edit)> = Vec::new();
    let (mut rank, mut places) = (0, 0);
    for (at, edit) in edits.iter().enumerate() {
        let is_next =
            at > 0 && edits.get(at - 1).is_some_and(|it| it.place == edit.place);
        rank = if is_next { rank + 1 } else { 0 };
        places += usize::from(!is_next);
        if rank < PAIRED_VALUES && places <= PAIRED_PLACES {
            ranked.push((rank, edit));
        }
    }
    let mut pairs = Vec::new();
    for (at, (rank, one)) in ranked.iter().enumerate() {
        for (other_rank, other) in ranked.iter().skip(at + 1) {
            let is_apart = !one.place.contains(&other.place);
            if is_apart && !other.place.contains(&one.place) {
                pairs.push((rank + other_rank, vec![*one, *other]));
            }
        }
    }
    pairs.sort_by_key(|it| it.0);
    pairs.truncate(MAX_PAIRS);
    pairs.into_iter().map(|it| it.1).collect()
}

/// The objects from which an admitted one is looked for, the nearest and smallest first.
#[derive(Default)]
struct Repairs {
    open: BinaryHeap<(Score, Reverse<usize>, Reverse<usize>)>,
    objects: Vec<(Value, Vec<String>)>,
    seen: HashSet<String>,
    best: Option<Score>,
}

impl Repairs {
    fn add(&mut self, object: Value, opinion: &Opinion) {
        let text = object.to_string();
        let score = score(opinion);
        let index = self.objects.len();
        self.open.push((score, Reverse(text.len()), Reverse(index)));
        self.objects.push((object, fields(opinion)));
        self.seen.insert(text);
        self.best = self.best.max(Some(score));
    }

    fn next(&mut self) -> Option<(Score, Value, Vec<String>)> {
        let (score, _, Reverse(at)) = self.open.pop()?;
        let (object, fields) = self.objects.get(at)?.clone();
        Some((score, object, fields))
    }

    fn is_new(&mut self, object: &Value) -> bool {
        self.seen.insert(object.to_string())
    }

    fn is_better_than(&self, score: Score) -> bool {
        self.best > Some(score)
    }
}

/// The layers that were passed, and the errors.
type Score = (usize, Reverse<usize>);

/// How near an object is to being admitted: the layers that it passed, then the errors.
fn score(opinion: &Opinion) -> Score {
    (opinion.passed, Reverse(opinion.faults.len()))
}

fn fields(opinion: &Opinion) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for (field, _) in &opinion.faults {
        if !fields.contains(field) {
            fields.push(field.clone());
        }
    }
    fields
}

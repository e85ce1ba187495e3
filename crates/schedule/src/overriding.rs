//! Overrides: changes of a schedule for a limited time.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::effective::floor;

/// The effect of an override on a schedule. The strongest mode is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverrideMode {
    /// A machine is wanted.
    Run,
    /// The schedule is unchanged. The caller ensures that nothing is started or stopped.
    Hold,
    /// No machine is wanted.
    Stop,
}

/// A change of a schedule for a limited time. It takes precedence over exceptions.
///
/// It is in force from its start (inclusive) to its end (exclusive). Fractions of a second are
/// rounded up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The name, unique among those of a schedule.
    pub name: String,
    /// What it does.
    pub mode: OverrideMode,
    /// The start. An override without one has always been in force before its end.
    pub start: Option<Timestamp>,
    /// The end.
    pub end: Timestamp,
    /// When it was created. Only [`Schedule::looking_back`] uses it, because the clock of the
    /// client that wrote it may be ahead.
    pub created: Option<Timestamp>,
}

impl Override {
    fn start_second(&self) -> i64 {
        self.start.map_or(i64::MIN, ceiling)
    }

    fn end_second(&self) -> i64 {
        ceiling(self.end)
    }

    fn is_in_force(&self, at: i64) -> bool {
        self.start_second() <= at && at < self.end_second()
    }

    /// The override with precedence at `now`. Of those in force it is the one with the
    /// strongest mode (Stop, Hold, Run), then with the latest end, then with the first name.
    pub fn strongest(overrides: &[Self], now: Timestamp) -> Option<&Self> {
        let at = floor(now);
        let in_force = overrides.iter().filter(|it| it.is_in_force(at));
        in_force.max_by(|one, other| one.cmp_strength(other))
    }

    fn cmp_strength(&self, other: &Self) -> Ordering {
        let strength = |it: &Self| (it.mode, it.end);
        strength(self)
            .cmp(&strength(other))
            .then_with(|| other.name.cmp(&self.name))
    }
}

/// The overrides of a schedule, and which of them has precedence when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    /// The strongest last.
    all: Vec<Override>,
    /// Where the precedence changes, in order.
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    at: i64,
    /// The place of the override that has precedence from then on.
    strongest: Option<usize>,
}

/// The override with precedence, and the first instant at which that is another one or none.
pub(crate) struct InForce<'s> {
    pub(crate) strongest: Option<&'s Override>,
    pub(crate) until: i64,
}

impl Overrides {
    pub(crate) fn of(mut all: Vec<Override>) -> Self {
        all.sort_by(Override::cmp_strength);
        let mut edges = Vec::new();
        for (place, of) in all.iter().enumerate() {
            let (start, end) = (of.start_second(), of.end_second());
            if start < end {
                edges.extend([(start, place, true), (end, place, false)]);
            }
        }
        edges.sort_unstable();
        let mut in_force = BTreeSet::new();
        let mut changes: Vec<Change> = Vec::new();
        for at_once in edges.chunk_by(|(one, ..), (other, ..)| one == other) {
            for (at, place, starts) in at_once.iter().copied() {
                if starts {
                    in_force.insert(place);
                } else {
                    in_force.remove(&place);
                }
                let strongest = in_force.last().copied();
                changes.pop_if(|change| change.at == at);
                changes.push(Change { at, strongest });
            }
        }
        changes.dedup_by_key(|change| change.strongest);
        Self { all, changes }
    }

    pub(crate) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn into_all(self) -> Vec<Override> {
        self.all
    }

    pub(crate) fn at(&self, at: i64) -> InForce<'_> {
        let next = self.changes.partition_point(|change| change.at <= at);
        let last = next.checked_sub(1).and_then(|last| self.changes.get(last));
        let strongest = last.and_then(|change| change.strongest);
        InForce {
            strongest: strongest.and_then(|place| self.all.get(place)),
            until: self.changes.get(next).map_or(i64::MAX, |change| change.at),
        }
    }
}

/// The first whole second that is not before an instant.
fn ceiling(instant: Timestamp) -> i64 {
    instant.as_second() + i64::from(instant.subsec_nanosecond() > 0)
}

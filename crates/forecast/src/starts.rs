//! Which of the machines that have all that they need begin, where their class says how many may within
//! a minute. Namespaces take turns as in [`fivespot_plan::rates`], which decides at one instant.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// For how long a beginning counts, in seconds.
const MINUTE: i64 = 60;

/// The machines of a class, by their places in the order in which those of one namespace begin.
pub(super) struct Starts<'m> {
    most: Option<u32>,
    /// Until when each beginning counts, in order.
    counted: VecDeque<i64>,
    namespaces: BTreeMap<&'m str, Turn>,
    /// The namespace of each machine.
    of: Vec<&'m str>,
}

/// What a namespace has had.
#[derive(Default)]
struct Turn {
    waiting: BTreeSet<usize>,
    /// Until when each beginning counts, in order.
    counted: VecDeque<i64>,
    /// When the last one was.
    last: Option<i64>,
}

impl<'m> Starts<'m> {
    /// At most so many within a minute; any number without it.
    pub(super) fn at_most(most: Option<u32>) -> Self {
        Self {
            most,
            counted: VecDeque::new(),
            namespaces: BTreeMap::new(),
            of: Vec::new(),
        }
    }

    pub(super) fn most(&self) -> Option<u32> {
        self.most
    }

    /// Adds the next machine, which began at an instant before the first turn.
    pub(super) fn add(&mut self, namespace: &'m str, started: Option<i64>) {
        self.of.push(namespace);
        let turn = self.namespaces.entry(namespace).or_default();
        turn.last = turn.last.max(started);
        if let Some(at) = started {
            turn.counted.push_back(at.saturating_add(MINUTE));
            self.counted.push_back(at.saturating_add(MINUTE));
        }
    }

    /// Forgets those that were added and do not count at the beginning.
    pub(super) fn forget(&mut self, since: i64) {
        let all = self.namespaces.values_mut().map(|turn| &mut turn.counted);
        for counted in all.chain([&mut self.counted]) {
            counted.retain(|until| *until > since);
            counted.make_contiguous().sort_unstable();
        }
    }

    fn turn(&mut self, member: usize) -> Option<&mut Turn> {
        self.namespaces.get_mut(self.of.get(member)?)
    }

    /// The machine waits for its turn.
    pub(super) fn join(&mut self, member: usize) {
        if let Some(turn) = self.turn(member) {
            turn.waiting.insert(member);
        }
    }

    /// The machine does not wait any more, if it does.
    pub(super) fn leave(&mut self, member: usize) {
        if let Some(turn) = self.turn(member) {
            turn.waiting.remove(&member);
        }
    }

    /// When the next one of those that wait may begin.
    pub(super) fn next_turn(&self) -> Option<i64> {
        let most = self.most? as usize;
        let waits = self
            .namespaces
            .values()
            .any(|turn| !turn.waiting.is_empty());
        let oldest = self.counted.len().checked_sub(most)?;
        self.counted.get(oldest).copied().filter(|_| waits)
    }

    /// Those that begin at an instant.
    pub(super) fn begin(&mut self, at: i64) -> Vec<usize> {
        let most = self.most.map_or(usize::MAX, |most| most as usize);
        let all = self.namespaces.values_mut().map(|turn| &mut turn.counted);
        for counted in all.chain([&mut self.counted]) {
            let past = counted.partition_point(|until| *until <= at);
            counted.drain(..past);
        }
        let mut begin = Vec::new();
        while self.counted.len() < most {
            let turns = self.namespaces.values_mut();
            let next = turns
                .filter_map(|turn| {
                    let first = *turn.waiting.first()?;
                    Some(((turn.counted.len(), turn.last, first), turn))
                })
                .min_by_key(|(key, _)| *key);
            let Some(((.., member), turn)) = next else {
                break;
            };
            turn.waiting.remove(&member);
            begin.push(member);
            if self.most.is_some() {
                turn.counted.push_back(at.saturating_add(MINUTE));
                self.counted.push_back(at.saturating_add(MINUTE));
            }
        }
        for member in &begin {
            if let Some(turn) = self.turn(*member) {
                turn.last = Some(at);
            }
        }
        begin
    }
}

use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::lease::LeaseName;

fn start() -> Timestamp {
    "2026-03-06T21:30:00Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

fn stored(record: Record, version: u64) -> Stored {
    Stored {
        name: "lease".to_owned(),
        uid: "uid".to_owned(),
        version: version.to_string(),
        labels: BTreeMap::new(),
        record,
    }
}

fn record_of(step: &Move) -> Record {
    match step {
        Move::Create(record) | Move::Replace { record, .. } => record.clone(),
        other => panic!("{other:?} writes nothing"),
    }
}

/// A candidate that holds the Lease since [`start`].
fn leader() -> Election {
    let mut leader = Election::new("a".to_owned(), Terms::default());
    leader.shown(None, start());
    let record = record_of(&leader.next(start()));
    leader.wrote(stored(record, 1), start());
    leader
}

#[test]
fn nothing_is_done_before_the_lease_was_observed() {
    let candidate = Election::new("a".to_owned(), Terms::default());
    assert_eq!(candidate.next(start()), Move::Wait(None));
    assert_eq!(candidate.fence(), None);
}

#[test]
fn a_missing_lease_is_created() {
    let leader = leader();
    assert_eq!(leader.fence(), Some(later(10)));
    assert_eq!(leader.next(start()), Move::Wait(Some(later(2))));
    let renewal = record_of(&leader.next(later(2)));
    assert_eq!(renewal.renewed, micro_time(later(2)));
    assert_eq!(renewal.acquired, micro_time(start()));
}

#[test]
fn a_standby_waits_for_the_duration_since_the_last_observed_change() {
    let mut standby = Election::new("b".to_owned(), Terms::default());
    let mut record = record_of(&leader().next(later(2)));
    record.renewed = "1999-01-01T00:00:00.000000Z".to_owned();
    standby.shown(Some(stored(record.clone(), 5)), later(3));
    assert_eq!(standby.next(later(3)), Move::Wait(Some(later(18))));
    // A new version with the same content is not a renewal.
    standby.shown(Some(stored(record.clone(), 6)), later(9));
    assert_eq!(standby.next(later(9)), Move::Wait(Some(later(18))));
    let step = standby.next(later(18));
    assert!(matches!(&step, Move::Replace { version, .. } if version == "6"));
    let taken = record_of(&step);
    assert_eq!((taken.holder.as_str(), taken.transitions), ("b", 1));
    standby.shown(
        Some(stored(record_of(&leader().next(later(4))), 7)),
        later(18),
    );
    assert_eq!(standby.next(later(18)), Move::Wait(Some(later(33))));
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut standby = Election::new("b".to_owned(), Terms::default());
    let (released, version) = leader().release(later(3)).unwrap();
    assert_eq!(version, "1");
    standby.shown(Some(stored(released, 2)), later(3));
    assert!(matches!(standby.next(later(3)), Move::Replace { .. }));
}

#[test]
fn a_leader_that_cannot_renew_stops_at_the_deadline_and_keeps_trying() {
    let mut leader = leader();
    for second in [2, 4, 6, 8, 10] {
        assert!(matches!(leader.next(later(second)), Move::Replace { .. }));
        leader.failed(later(second));
        assert_eq!(
            leader.next(later(second)),
            Move::Wait(Some(later(second + 2)))
        );
    }
    assert_eq!(leader.fence(), Some(later(10)));
}

#[test]
fn a_leader_that_was_replaced_reads_the_lease_and_follows() {
    let mut leader = leader();
    leader.was_overtaken();
    assert_eq!(leader.next(later(2)), Move::Read);
    let usurper = Record {
        holder: "b".to_owned(),
        ..record_of(&next_renewal())
    };
    leader.read(Some(stored(usurper, 9)), later(2));
    assert_eq!(leader.fence(), None);
    assert_eq!(leader.next(later(2)), Move::Wait(Some(later(17))));
}

fn next_renewal() -> Move {
    leader().next(later(2))
}

#[test]
fn a_leader_stays_leader_when_its_lease_is_only_edited() {
    let mut leader = leader();
    let same = record_of(&leader.next(later(2)));
    leader.was_overtaken();
    leader.read(Some(stored(same, 9)), later(2));
    assert_eq!(leader.fence(), Some(later(10)));
    assert!(
        matches!(leader.next(later(2)), Move::Replace { version, .. } if version == "9")
    );
}

#[test]
fn a_deleted_lease_is_created_only_after_its_duration() {
    let mut standby = Election::new("b".to_owned(), Terms::default());
    standby.shown(Some(stored(record_of(&next_renewal()), 5)), later(3));
    standby.shown(None, later(4));
    assert_eq!(standby.next(later(4)), Move::Wait(Some(later(18))));
    assert!(matches!(standby.next(later(18)), Move::Create(_)));
}

/// An event of one of three candidates, or the time that passes.
#[derive(Clone, Debug)]
enum Happening {
    Passes(i64),
    Shown(usize),
    Tries(usize),
    Lands(usize),
    Answers(usize),
    GetsLost(usize),
    Restarts(usize),
    ClockSteps(usize, i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let whom = 0..3_usize;
    prop_oneof![
        4 => (1..4_000_i64).prop_map(Happening::Passes),
        4 => whom.clone().prop_map(Happening::Shown),
        6 => whom.clone().prop_map(Happening::Tries),
        5 => whom.clone().prop_map(Happening::Lands),
        5 => whom.clone().prop_map(Happening::Answers),
        1 => whom.clone().prop_map(Happening::GetsLost),
        1 => whom.clone().prop_map(Happening::Restarts),
        1 => (whom, 0..2_500_i64).prop_map(|(whom, by)| Happening::ClockSteps(whom, by)),
    ]
}

struct Candidate {
    election: Election,
    /// How far its clock is ahead, ms; at most half the assumed skew.
    ahead: i64,
    /// A request on its way: what, and when it was sent.
    sent: Option<(Move, Timestamp)>,
    answer: Option<(Result<Option<Stored>, ()>, Timestamp)>,
    unseen: VecDeque<Option<Stored>>,
}

/// Three candidates and a server with one Lease.
struct Simulation {
    elapsed: i64,
    candidates: Vec<Candidate>,
    lease: Option<Stored>,
    versions: u64,
}

impl Simulation {
    fn new() -> Self {
        let candidate = |number: usize| Candidate {
            election: Election::new(format!("pod-{number}"), Terms::default()),
            ahead: 0,
            sent: None,
            answer: None,
            unseen: VecDeque::from([None]),
        };
        Self {
            elapsed: 0,
            candidates: (0..3).map(candidate).collect(),
            lease: None,
            versions: 0,
        }
    }

    fn now(&self, whom: usize) -> Timestamp {
        let ahead = self.candidates[whom].ahead;
        start() + SignedDuration::from_millis(self.elapsed + ahead)
    }

    fn leaders(&self) -> Vec<usize> {
        (0..self.candidates.len())
            .filter(|whom| {
                let fence = self.candidates[*whom].election.fence();
                fence.is_some_and(|fence| self.now(*whom) < fence)
            })
            .collect()
    }

    fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Passes(millis) => self.elapsed += millis,
            Happening::Shown(whom) => {
                let now = self.now(whom);
                let candidate = &mut self.candidates[whom];
                if let Some(lease) = candidate.unseen.pop_front() {
                    candidate.election.shown(lease, now);
                }
            }
            Happening::Tries(whom) => {
                let now = self.now(whom);
                let candidate = &mut self.candidates[whom];
                let step = candidate.election.next(now);
                let is_free = candidate.sent.is_none() && candidate.answer.is_none();
                if is_free && !matches!(step, Move::Wait(_)) {
                    candidate.sent = Some((step, now));
                }
            }
            Happening::Lands(whom) => self.land(whom),
            Happening::Answers(whom) => self.answer(whom),
            Happening::GetsLost(whom) => {
                let candidate = &mut self.candidates[whom];
                let sent = candidate.sent.take().map(|(_, asked)| asked);
                let answer = candidate.answer.take().map(|(_, asked)| asked);
                if let Some(asked) = sent.or(answer) {
                    candidate.election.failed(asked);
                }
            }
            Happening::Restarts(whom) => {
                let candidate = &mut self.candidates[whom];
                candidate.election =
                    Election::new(format!("pod-{whom}"), Terms::default());
                (candidate.sent, candidate.answer) = (None, None);
                candidate.unseen = VecDeque::from([self.lease.clone()]);
            }
            Happening::ClockSteps(whom, ahead) => self.candidates[whom].ahead = ahead,
        }
    }

    fn land(&mut self, whom: usize) {
        let Some((step, asked)) = self.candidates[whom].sent.take() else {
            return;
        };
        let is_current = match &step {
            Move::Create(_) => self.lease.is_none(),
            Move::Replace { version, .. } => self
                .lease
                .as_ref()
                .is_some_and(|lease| lease.version == *version),
            Move::Read | Move::Wait(_) => {
                let found = self.lease.clone();
                self.candidates[whom].answer = Some((Ok(found), asked));
                return;
            }
        };
        if !is_current {
            self.candidates[whom].answer = Some((Err(()), asked));
            return;
        }
        self.versions += 1;
        let written = stored(record_of(&step), self.versions);
        // As the server would return it.
        let named = LeaseName {
            namespace: "ns".to_owned(),
            name: written.name.clone(),
            labels: BTreeMap::new(),
        };
        let json = written.record.lease(&named, Some(&written.version));
        let mut shown = Stored::read(&json);
        shown.uid.clone_from(&written.uid);
        self.lease = Some(shown.clone());
        for candidate in &mut self.candidates {
            candidate.unseen.push_back(Some(shown.clone()));
        }
        self.candidates[whom].answer = Some((Ok(Some(shown)), asked));
    }

    fn answer(&mut self, whom: usize) {
        let now = self.now(whom);
        let candidate = &mut self.candidates[whom];
        let Some((answer, asked)) = candidate.answer.take() else {
            return;
        };
        let is_read = matches!(candidate.election.next(now), Move::Read);
        match answer {
            Ok(found) if is_read => candidate.election.read(found, now),
            Ok(Some(written)) => candidate.election.wrote(written, asked),
            Ok(None) => {}
            Err(()) => candidate.election.was_overtaken(),
        }
    }
}

proptest! {
    #[test]
    fn at_most_one_candidate_leads_at_a_time(happenings in vec(happening(), 1..300)) {
        let mut simulation = Simulation::new();
        for happening in &happenings {
            simulation.happen(happening);
            let leaders = simulation.leaders();
            prop_assert!(leaders.len() <= 1, "{:?} lead", leaders);
        }
    }

    #[test]
    fn one_candidate_leads_soon_after_the_events_have_ended(
        happenings in vec(happening(), 1..200),
    ) {
        let mut simulation = Simulation::new();
        for happening in &happenings {
            simulation.happen(happening);
        }
        for _ in 0..40 {
            simulation.happen(&Happening::Passes(1_000));
            for whom in 0..3 {
                while !simulation.candidates[whom].unseen.is_empty() {
                    simulation.happen(&Happening::Shown(whom));
                }
                for _ in 0..3 {
                    simulation.happen(&Happening::Tries(whom));
                    simulation.happen(&Happening::Lands(whom));
                    simulation.happen(&Happening::Answers(whom));
                }
            }
        }
        prop_assert_eq!(simulation.leaders().len(), 1);
    }
}

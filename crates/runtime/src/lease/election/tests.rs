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

fn stored(record: Record, version: u64) -> StoredLease {
    StoredLease {
        name: "lease".to_owned(),
        uid: "uid".to_owned(),
        version: version.to_string(),
        labels: BTreeMap::new(),
        record,
    }
}

fn record_of(step: &Action) -> Record {
    match step {
        Action::Create(record) | Action::Replace { record, .. } => record.clone(),
        other => panic!("{other:?} writes nothing"),
    }
}

/// A candidate that holds the Lease since [`start`].
fn leader() -> Election {
    let mut leader = Election::new("a".to_owned(), LeaseTiming::default());
    leader.observe(None, start());
    let record = record_of(&leader.next(start()));
    leader.write_succeeded(stored(record, 1), start());
    leader
}

#[test]
fn nothing_is_done_before_the_lease_was_observed() {
    let candidate = Election::new("a".to_owned(), LeaseTiming::default());
    assert_eq!(candidate.next(start()), Action::Wait(None));
    assert_eq!(candidate.fence(), None);
}

#[test]
fn a_missing_lease_is_created() {
    let leader = leader();
    assert_eq!(leader.fence(), Some(later(10)));
    assert_eq!(leader.next(start()), Action::Wait(Some(later(2))));
    let renewal = record_of(&leader.next(later(2)));
    assert_eq!(renewal.renewed, micro_time(later(2)));
    assert_eq!(renewal.acquired, micro_time(start()));
}

#[test]
fn a_standby_waits_for_the_duration_since_the_last_observed_change() {
    let mut standby = Election::new("b".to_owned(), LeaseTiming::default());
    let mut record = record_of(&leader().next(later(2)));
    record.renewed = "1999-01-01T00:00:00.000000Z".to_owned();
    standby.observe(Some(stored(record.clone(), 5)), later(3));
    assert_eq!(standby.next(later(3)), Action::Wait(Some(later(18))));
    // A new version with the same content is not a renewal.
    standby.observe(Some(stored(record.clone(), 6)), later(9));
    assert_eq!(standby.next(later(9)), Action::Wait(Some(later(18))));
    let step = standby.next(later(18));
    assert!(matches!(&step, Action::Replace { version, .. } if version == "6"));
    let taken = record_of(&step);
    assert_eq!((taken.holder.as_str(), taken.transitions), ("b", 1));
    standby.observe(
        Some(stored(record_of(&leader().next(later(4))), 7)),
        later(18),
    );
    assert_eq!(standby.next(later(18)), Action::Wait(Some(later(33))));
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut standby = Election::new("b".to_owned(), LeaseTiming::default());
    let (released, version) = leader().release(later(3)).unwrap();
    assert_eq!(version, "1");
    standby.observe(Some(stored(released, 2)), later(3));
    assert!(matches!(standby.next(later(3)), Action::Replace { .. }));
}

#[test]
fn a_leader_that_cannot_renew_stops_at_the_deadline_and_keeps_trying() {
    let mut leader = leader();
    for second in [2, 4, 6, 8, 10] {
        assert!(matches!(leader.next(later(second)), Action::Replace { .. }));
        leader.request_failed(later(second));
        assert_eq!(
            leader.next(later(second)),
            Action::Wait(Some(later(second + 2)))
        );
    }
    assert_eq!(leader.fence(), Some(later(10)));
}

#[test]
fn a_leader_that_was_replaced_reads_the_lease_and_follows() {
    let mut leader = leader();
    leader.write_conflicted();
    assert_eq!(leader.next(later(2)), Action::Read);
    let new_holder = Record {
        holder: "b".to_owned(),
        ..record_of(&next_renewal())
    };
    leader.read_succeeded(Some(stored(new_holder, 9)), later(2));
    assert_eq!(leader.fence(), None);
    assert_eq!(leader.next(later(2)), Action::Wait(Some(later(17))));
}

fn next_renewal() -> Action {
    leader().next(later(2))
}

#[test]
fn a_leader_stays_leader_when_its_lease_is_only_edited() {
    let mut leader = leader();
    let same = record_of(&leader.next(later(2)));
    leader.write_conflicted();
    leader.read_succeeded(Some(stored(same, 9)), later(2));
    assert_eq!(leader.fence(), Some(later(10)));
    assert!(
        matches!(leader.next(later(2)), Action::Replace { version, .. } if version == "9")
    );
}

#[test]
fn a_deleted_lease_is_created_only_after_its_duration() {
    let mut standby = Election::new("b".to_owned(), LeaseTiming::default());
    standby.observe(Some(stored(record_of(&next_renewal()), 5)), later(3));
    standby.observe(None, later(4));
    assert_eq!(standby.next(later(4)), Action::Wait(Some(later(18))));
    assert!(matches!(standby.next(later(18)), Action::Create(_)));
}

/// An event of one of three candidates, or the time that passes.
#[derive(Clone, Debug)]
enum Event {
    TimePasses(i64),
    WatchDelivers(usize),
    SendsRequest(usize),
    RequestArrives(usize),
    ResponseArrives(usize),
    RequestIsLost(usize),
    Restarts(usize),
    ClockSteps(usize, i64),
}

fn any_event() -> impl Strategy<Value = Event> {
    let index = 0..3_usize;
    prop_oneof![
        4 => (1..4_000_i64).prop_map(Event::TimePasses),
        4 => index.clone().prop_map(Event::WatchDelivers),
        6 => index.clone().prop_map(Event::SendsRequest),
        5 => index.clone().prop_map(Event::RequestArrives),
        5 => index.clone().prop_map(Event::ResponseArrives),
        1 => index.clone().prop_map(Event::RequestIsLost),
        1 => index.clone().prop_map(Event::Restarts),
        1 => (index, 0..2_500_i64).prop_map(|(index, by)| Event::ClockSteps(index, by)),
    ]
}

struct Candidate {
    election: Election,
    /// How far its clock is ahead, ms; at most half the assumed skew.
    ahead: i64,
    /// A request on its way: what, and when it was sent.
    request: Option<(Action, Timestamp)>,
    response: Option<(Result<Option<StoredLease>, ()>, Timestamp)>,
    pending_events: VecDeque<Option<StoredLease>>,
}

/// Three candidates and a server with one Lease.
struct Simulation {
    elapsed: i64,
    candidates: Vec<Candidate>,
    lease: Option<StoredLease>,
    versions: u64,
}

impl Simulation {
    fn new() -> Self {
        let candidate = |number: usize| Candidate {
            election: Election::new(format!("pod-{number}"), LeaseTiming::default()),
            ahead: 0,
            request: None,
            response: None,
            pending_events: VecDeque::from([None]),
        };
        Self {
            elapsed: 0,
            candidates: (0..3).map(candidate).collect(),
            lease: None,
            versions: 0,
        }
    }

    fn now(&self, index: usize) -> Timestamp {
        let ahead = self.candidates[index].ahead;
        start() + SignedDuration::from_millis(self.elapsed + ahead)
    }

    fn leaders(&self) -> Vec<usize> {
        (0..self.candidates.len())
            .filter(|index| {
                let fence = self.candidates[*index].election.fence();
                fence.is_some_and(|fence| self.now(*index) < fence)
            })
            .collect()
    }

    fn apply(&mut self, event: &Event) {
        match *event {
            Event::TimePasses(millis) => self.elapsed += millis,
            Event::WatchDelivers(index) => {
                let now = self.now(index);
                let candidate = &mut self.candidates[index];
                if let Some(lease) = candidate.pending_events.pop_front() {
                    candidate.election.observe(lease, now);
                }
            }
            Event::SendsRequest(index) => {
                let now = self.now(index);
                let candidate = &mut self.candidates[index];
                let step = candidate.election.next(now);
                let is_free = candidate.request.is_none() && candidate.response.is_none();
                if is_free && !matches!(step, Action::Wait(_)) {
                    candidate.request = Some((step, now));
                }
            }
            Event::RequestArrives(index) => self.serve_request(index),
            Event::ResponseArrives(index) => self.deliver_response(index),
            Event::RequestIsLost(index) => {
                let candidate = &mut self.candidates[index];
                let sent = candidate.request.take().map(|(_, sent_at)| sent_at);
                let response = candidate.response.take().map(|(_, sent_at)| sent_at);
                if let Some(sent_at) = sent.or(response) {
                    candidate.election.request_failed(sent_at);
                }
            }
            Event::Restarts(index) => {
                let candidate = &mut self.candidates[index];
                candidate.election =
                    Election::new(format!("pod-{index}"), LeaseTiming::default());
                (candidate.request, candidate.response) = (None, None);
                candidate.pending_events = VecDeque::from([self.lease.clone()]);
            }
            Event::ClockSteps(index, ahead) => self.candidates[index].ahead = ahead,
        }
    }

    fn serve_request(&mut self, index: usize) {
        let Some((step, sent_at)) = self.candidates[index].request.take() else {
            return;
        };
        let is_current = match &step {
            Action::Create(_) => self.lease.is_none(),
            Action::Replace { version, .. } => self
                .lease
                .as_ref()
                .is_some_and(|lease| lease.version == *version),
            Action::Read | Action::Wait(_) => {
                let found = self.lease.clone();
                self.candidates[index].response = Some((Ok(found), sent_at));
                return;
            }
        };
        if !is_current {
            self.candidates[index].response = Some((Err(()), sent_at));
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
        let mut shown = StoredLease::read(&json);
        shown.uid.clone_from(&written.uid);
        self.lease = Some(shown.clone());
        for candidate in &mut self.candidates {
            candidate.pending_events.push_back(Some(shown.clone()));
        }
        self.candidates[index].response = Some((Ok(Some(shown)), sent_at));
    }

    fn deliver_response(&mut self, index: usize) {
        let now = self.now(index);
        let candidate = &mut self.candidates[index];
        let Some((response, sent_at)) = candidate.response.take() else {
            return;
        };
        let is_read = matches!(candidate.election.next(now), Action::Read);
        match response {
            Ok(found) if is_read => candidate.election.read_succeeded(found, now),
            Ok(Some(written)) => candidate.election.write_succeeded(written, sent_at),
            Ok(None) => {}
            Err(()) => candidate.election.write_conflicted(),
        }
    }
}

proptest! {
    #[test]
    fn at_most_one_candidate_leads_at_a_time(events in vec(any_event(), 1..300)) {
        let mut simulation = Simulation::new();
        for event in &events {
            simulation.apply(event);
            let leaders = simulation.leaders();
            prop_assert!(leaders.len() <= 1, "{:?} lead", leaders);
        }
    }

    #[test]
    fn one_candidate_leads_soon_after_the_events_have_ended(
        events in vec(any_event(), 1..200),
    ) {
        let mut simulation = Simulation::new();
        for event in &events {
            simulation.apply(event);
        }
        for _ in 0..40 {
            simulation.apply(&Event::TimePasses(1_000));
            for index in 0..3 {
                while !simulation.candidates[index].pending_events.is_empty() {
                    simulation.apply(&Event::WatchDelivers(index));
                }
                for _ in 0..3 {
                    simulation.apply(&Event::SendsRequest(index));
                    simulation.apply(&Event::RequestArrives(index));
                    simulation.apply(&Event::ResponseArrives(index));
                }
            }
        }
        prop_assert_eq!(simulation.leaders().len(), 1);
    }
}

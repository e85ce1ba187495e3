use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use fivespot_runtime::Key;

fn start() -> Timestamp {
    "2026-03-06T21:30:00Z".parse().unwrap()
}

/// What happens to one of three shards, or to time.
#[derive(Clone, Debug)]
enum Happening {
    Passes(i64),
    Shown(usize),
    Tries(usize),
    Lands(usize),
    Answers(usize),
    GetsLost(usize),
    Begins(usize, usize),
    Ends(usize),
    Leaves(usize),
    Restarts(usize),
    ClockSteps(usize, i64),
    WatchBreaks(usize),
    SomebodyDeletes(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    let whom = 0..3_usize;
    let key = 0..KEYS;
    prop_oneof![
        4 => (1..4_000_i64).prop_map(Happening::Passes),
        8 => whom.clone().prop_map(Happening::Shown),
        8 => whom.clone().prop_map(Happening::Tries),
        7 => whom.clone().prop_map(Happening::Lands),
        7 => whom.clone().prop_map(Happening::Answers),
        1 => whom.clone().prop_map(Happening::GetsLost),
        6 => (whom.clone(), key).prop_map(|(whom, key)| Happening::Begins(whom, key)),
        3 => whom.clone().prop_map(Happening::Ends),
        1 => whom.clone().prop_map(Happening::Leaves),
        1 => whom.clone().prop_map(Happening::Restarts),
        1 => (whom.clone(), 0..2_500_i64)
            .prop_map(|(whom, by)| Happening::ClockSteps(whom, by)),
        1 => whom.prop_map(Happening::WatchBreaks),
    ]
}

/// The same, with somebody who takes Leases away besides.
fn mischief() -> impl Strategy<Value = Happening> {
    prop_oneof![
        40 => happening(),
        1 => (0..3_usize).prop_map(Happening::SomebodyDeletes),
    ]
}

const KEYS: usize = 4;

fn key(number: usize) -> Key {
    Key::new("default", format!("worker-{number}"))
}

#[derive(Clone)]
enum Event {
    Listed(Vec<Stored>),
    Changed(Stored),
    Gone(Stored),
}

enum Response {
    Wrote(Stored),
    Read(Option<Stored>),
    Removed(String),
    Renewed(String),
    Taken,
    Overtaken,
}

struct Shard {
    membership: Membership,
    /// How far its clock is ahead, ms; at most half the assumed skew.
    ahead: i64,
    sent: Option<(Move, Timestamp)>,
    answer: Option<(Response, Timestamp)>,
    unseen: VecDeque<Event>,
    /// Passes under way, and until when they may write.
    passes: BTreeMap<usize, Timestamp>,
}

/// Three shards around one server.
struct Rehearsal {
    elapsed: i64,
    shards: Vec<Shard>,
    leases: BTreeMap<String, Stored>,
    versions: u64,
}

fn name(whom: usize) -> String {
    format!("ring-pod-{whom}")
}

impl Rehearsal {
    fn new() -> Self {
        let shard = |whom: usize| Shard {
            membership: Membership::new(
                name(whom),
                format!("pod-{whom}"),
                Terms::default(),
            ),
            ahead: 0,
            sent: None,
            answer: None,
            unseen: VecDeque::from([Event::Listed(Vec::new())]),
            passes: BTreeMap::new(),
        };
        Self {
            elapsed: 0,
            shards: (0..3).map(shard).collect(),
            leases: BTreeMap::new(),
            versions: 0,
        }
    }

    fn now(&self, whom: usize) -> Timestamp {
        let ahead = self.shards[whom].ahead;
        start() + SignedDuration::from_millis(self.elapsed + ahead)
    }

    /// Who acts on a key: a pass is under way there that may still write.
    fn acting_on(&self, number: usize) -> Vec<usize> {
        (0..self.shards.len())
            .filter(|whom| {
                let until = self.shards[*whom].passes.get(&number);
                until.is_some_and(|until| self.now(*whom) < *until)
            })
            .collect()
    }

    /// Who may begin to act on a key.
    fn claimants_of(&self, number: usize) -> Vec<usize> {
        (0..self.shards.len())
            .filter(|whom| self.claim(*whom, number).is_some())
            .collect()
    }

    /// Until when a shard may act on a key.
    fn claim(&self, whom: usize, number: usize) -> Option<Timestamp> {
        let now = self.now(whom);
        let share = self.shards[whom].membership.share(now)?;
        let is_own = share.ring.owner(&key(number)) == Some(share.own.as_str());
        (is_own && now < share.until).then_some(share.until)
    }

    fn is_settled(&self, whom: usize) -> bool {
        let passes = &self.shards[whom].passes;
        passes
            .keys()
            .all(|number| self.claim(whom, *number).is_some())
    }

    fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Passes(millis) => self.elapsed += millis,
            Happening::Shown(whom) => self.show(whom),
            Happening::Tries(whom) => {
                let (now, is_settled) = (self.now(whom), self.is_settled(whom));
                let shard = &mut self.shards[whom];
                let step = shard.membership.next(now, is_settled);
                let is_free = shard.sent.is_none() && shard.answer.is_none();
                if is_free && !matches!(step, Move::Wait(_)) {
                    shard.sent = Some((step, now));
                }
            }
            Happening::Lands(whom) => self.land(whom),
            Happening::Answers(whom) => self.answer(whom),
            Happening::GetsLost(whom) => {
                let shard = &mut self.shards[whom];
                let sent = shard.sent.take().map(|(_, asked)| asked);
                let answer = shard.answer.take().map(|(_, asked)| asked);
                if let Some(asked) = sent.or(answer) {
                    shard.membership.failed(asked);
                }
            }
            Happening::Begins(whom, number) => {
                if let Some(until) = self.claim(whom, number) {
                    self.shards[whom].passes.insert(number, until);
                }
            }
            Happening::Ends(whom) => {
                self.shards[whom].passes.pop_first();
            }
            Happening::Leaves(whom) => self.leave(whom),
            Happening::Restarts(whom) => self.restart(whom),
            Happening::ClockSteps(whom, ahead) => self.shards[whom].ahead = ahead,
            Happening::WatchBreaks(whom) => {
                let all = self.leases.values().cloned().collect();
                self.shards[whom].unseen = VecDeque::from([Event::Listed(all)]);
            }
            Happening::SomebodyDeletes(whom) => {
                if let Some(lease) = self.leases.remove(&name(whom)) {
                    self.tell(&Event::Gone(lease));
                }
            }
        }
    }

    fn show(&mut self, whom: usize) {
        let now = self.now(whom);
        let shard = &mut self.shards[whom];
        match shard.unseen.pop_front() {
            Some(Event::Listed(all)) => shard.membership.listed(all, now),
            Some(Event::Changed(lease)) => shard.membership.shown(lease, now),
            Some(Event::Gone(lease)) => shard.membership.gone(&lease),
            None => {}
        }
    }

    fn tell(&mut self, event: &Event) {
        for shard in &mut self.shards {
            shard.unseen.push_back(event.clone());
        }
    }

    fn store(&mut self, name: String, uid: String, record: Record) -> Stored {
        self.versions += 1;
        let version = self.versions.to_string();
        let lease = Stored {
            name: name.clone(),
            uid,
            version,
            record,
        };
        self.leases.insert(name, lease.clone());
        self.tell(&Event::Changed(lease.clone()));
        lease
    }

    fn land(&mut self, whom: usize) {
        let Some((step, asked)) = self.shards[whom].sent.take() else {
            return;
        };
        let own = self.leases.get(&name(whom)).cloned();
        let response = match (step, own) {
            (Move::Wait(_) | Move::Read, own) => Response::Read(own),
            (Move::Create(_), Some(_)) => Response::Taken,
            (Move::Create(record), None) => {
                let uid = format!("uid-{}", self.versions);
                Response::Wrote(self.store(name(whom), uid, record))
            }
            (Move::Replace { record, version }, Some(own)) if own.version == version => {
                Response::Wrote(self.store(name(whom), own.uid, record))
            }
            (Move::Replace { .. }, _) => Response::Overtaken,
            (Move::Remove { name, uid, version }, _) => {
                match self.leases.get(&name).cloned() {
                    Some(lease) if lease.uid == uid && lease.version != version => {
                        Response::Renewed(uid)
                    }
                    Some(lease) if lease.uid == uid => {
                        self.leases.remove(&name);
                        self.tell(&Event::Gone(lease));
                        Response::Removed(uid)
                    }
                    Some(_) => Response::Renewed(uid),
                    None => Response::Removed(uid),
                }
            }
        };
        self.shards[whom].answer = Some((response, asked));
    }

    fn answer(&mut self, whom: usize) {
        let now = self.now(whom);
        let shard = &mut self.shards[whom];
        let Some((response, asked)) = shard.answer.take() else {
            return;
        };
        match response {
            Response::Wrote(lease) => shard.membership.wrote(lease, asked),
            Response::Read(found) => shard.membership.read(found),
            Response::Removed(uid) => shard.membership.removed(&uid),
            Response::Renewed(uid) => shard.membership.was_renewed(&uid, now),
            Response::Taken => shard.membership.failed(asked),
            Response::Overtaken => shard.membership.was_overtaken(),
        }
    }

    /// In order: when no pass is under way, and no request.
    fn leave(&mut self, whom: usize) {
        let now = self.now(whom);
        let shard = &mut self.shards[whom];
        shard.passes.clear();
        if shard.sent.is_none()
            && shard.answer.is_none()
            && let Some((record, version)) = shard.membership.leave(now)
            && let Some(own) = self.leases.get(&name(whom)).cloned()
            && own.version == version
        {
            let released = self.store(name(whom), own.uid, record);
            self.leases.remove(&released.name);
            self.tell(&Event::Gone(released));
        }
        self.restart(whom);
    }

    fn restart(&mut self, whom: usize) {
        let all = self.leases.values().cloned().collect();
        let fresh = Self::new().shards.swap_remove(whom);
        self.shards[whom] = Shard {
            ahead: self.shards[whom].ahead,
            unseen: VecDeque::from([Event::Listed(all)]),
            ..fresh
        };
    }

    /// A second in which everything works.
    fn pass_well(&mut self) {
        self.elapsed += 1_000;
        for _ in 0..4 {
            for whom in 0..self.shards.len() {
                while !self.shards[whom].unseen.is_empty() {
                    self.show(whom);
                }
                self.shards[whom].passes.clear();
                self.happen(&Happening::Tries(whom));
                self.happen(&Happening::Lands(whom));
                self.happen(&Happening::Answers(whom));
            }
        }
    }

    fn owners(&self) -> Vec<Vec<usize>> {
        (0..KEYS).map(|number| self.claimants_of(number)).collect()
    }
}

proptest! {
    #[test]
    fn never_do_two_act_on_one_object_at_a_time(happenings in vec(happening(), 1..400)) {
        let mut rehearsal = Rehearsal::new();
        for happening in &happenings {
            rehearsal.happen(happening);
            for number in 0..KEYS {
                let acting = rehearsal.acting_on(number);
                prop_assert!(acting.len() <= 1, "{:?} act on {}", acting, number);
                let claimants = rehearsal.claimants_of(number);
                prop_assert!(claimants.len() <= 1, "{:?} claim {}", claimants, number);
            }
        }
    }

    #[test]
    fn whatever_happened_each_object_is_soon_acted_on_after_it_has_ended(
        happenings in vec(mischief(), 1..200),
    ) {
        let mut rehearsal = Rehearsal::new();
        for happening in &happenings {
            rehearsal.happen(happening);
        }
        for _ in 0..60 {
            rehearsal.pass_well();
        }
        for (number, owners) in rehearsal.owners().iter().enumerate() {
            prop_assert_eq!(owners.len(), 1, "owners of {}", number);
        }
    }
}

#[test]
fn three_shards_divide_the_objects_at_once() {
    let mut rehearsal = Rehearsal::new();
    rehearsal.pass_well();
    assert!(rehearsal.owners().iter().all(|owners| owners.len() == 1));
}

fn lease(name: &str, ring: &[&str]) -> Stored {
    Stored {
        name: name.to_owned(),
        uid: format!("uid of {name}"),
        version: "1".to_owned(),
        record: Record {
            holder: format!("pod of {name}"),
            duration: Some(SignedDuration::from_secs(15)),
            ring: ring.iter().map(|name| format!("uid of {name}")).collect(),
            ..Record::default()
        },
    }
}

fn later(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

/// The shard `a`, which has joined `b` and is known to it.
fn member() -> Membership {
    let mut member =
        Membership::new("a".to_owned(), "pod of a".to_owned(), Terms::default());
    member.listed(vec![lease("b", &["a"])], start());
    let Move::Create(record) = member.next(start(), true) else {
        panic!("a shard joins by creating its Lease");
    };
    assert_eq!(record.ring, ["uid of b"]);
    let own = Stored {
        record,
        ..lease("a", &[])
    };
    member.wrote(own.clone(), start());
    assert_eq!(member.share(start()), None, "its Lease has not been shown");
    member.shown(own, start());
    member
}

#[test]
fn a_member_acts_while_all_others_know_it() {
    let mut member = member();
    assert_eq!(member.count(start()), 2);
    let share = member.share(start()).unwrap();
    assert_eq!(share.until, later(10));
    member.shown(lease("c", &["b"]), start());
    assert_eq!(member.share(start()), None);
    member.shown(lease("c", &["a", "b"]), start());
    let share = member.share(start()).unwrap();
    assert_eq!(share.ring, Ring::new(["a", "b", "c"].map(str::to_owned)));
}

#[test]
fn a_newcomer_is_acknowledged_when_nothing_of_its_own_is_under_way_any_more() {
    let mut member = member();
    member.shown(lease("c", &["a", "b"]), later(1));
    let unsettled = member.next(later(1), false);
    assert_eq!(unsettled, Move::Wait(Some(later(2))));
    let Move::Replace { record, .. } = member.next(later(1), true) else {
        panic!("it is acknowledged at once");
    };
    assert_eq!(record.ring, ["uid of b", "uid of c"]);
    let Move::Replace { record, .. } = member.next(later(2), false) else {
        panic!("the Lease is renewed whatever happens");
    };
    assert_eq!(record.ring, ["uid of b"]);
}

#[test]
fn a_lease_that_nobody_renews_is_removed_and_nobody_waits_for_its_shard() {
    let mut member = member();
    for second in (2..15).step_by(2) {
        let own = Stored {
            version: second.to_string(),
            ..member.own.clone().unwrap().stored
        };
        member.wrote(own, later(second));
    }
    let removal = Move::Remove {
        name: "b".to_owned(),
        uid: "uid of b".to_owned(),
        version: "1".to_owned(),
    };
    assert_ne!(
        member.next(later(15) - SignedDuration::from_millis(1), true),
        removal
    );
    assert_eq!(member.next(later(15), true), removal);
    member.removed("uid of b");
    let share = member.share(later(15)).unwrap();
    assert_eq!(share.ring, Ring::new(["a".to_owned()]));
}

#[test]
fn a_lease_that_was_taken_away_is_waited_out() {
    let mut member = member();
    member.gone(&lease("b", &["a"]));
    assert_eq!(member.count(later(14)), 2);
    assert_eq!(member.count(later(15)), 1);
}

#[test]
fn a_lease_that_was_released_is_not_waited_for() {
    let mut member = member();
    let mut released = lease("b", &[]);
    released.record.holder = String::new();
    member.shown(released, later(1));
    assert_eq!(member.count(later(1)), 1);
}

#[test]
fn a_shard_whose_own_lease_is_gone_stops_at_once() {
    let mut member = member();
    assert!(member.share(later(1)).is_some());
    member.gone(&lease("a", &[]));
    assert_eq!(member.share(later(1)), None);
    assert_eq!(member.next(later(1), true), Move::Wait(Some(later(15))));
}

#[test]
fn another_process_of_the_same_name_is_waited_for() {
    let mut second =
        Membership::new("a".to_owned(), "pod of a".to_owned(), Terms::default());
    second.listed(vec![lease("a", &[])], start());
    assert_eq!(second.next(start(), true), Move::Wait(Some(later(15))));
    second.shown(lease("a", &["b"]), later(9));
    assert_eq!(second.next(later(15), true), Move::Wait(Some(later(24))));
    assert!(matches!(second.next(later(24), true), Move::Remove { .. }));
}

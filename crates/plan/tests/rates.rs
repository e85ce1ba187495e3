//! When the machines of a class begin and leave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use fivespot_api::RatesOfClass;
use fivespot_api::time::whole_seconds;
use fivespot_plan::limits::Span;
use fivespot_plan::rates::{Claim, Grant, Member, Pace, Rate, Ruling, Stage, Wish, rule};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

/// A Friday.
const NOW: &str = "2026-03-06T15:00:00Z";

fn at(second: i64) -> Timestamp {
    let now: Timestamp = NOW.parse().unwrap();
    now + SignedDuration::from_secs(second)
}

fn needed(from: i64, to: i64) -> Vec<Span> {
    vec![Span {
        start: at(from),
        end: Some(at(to)),
    }]
}

fn starts(starts: u32) -> RatesOfClass {
    RatesOfClass {
        starts: Some(starts),
        ..RatesOfClass::default()
    }
}

/// A machine that is needed from now on for an hour.
fn beginning(priority: u8) -> Claim {
    Claim {
        priority,
        stage: Stage::Absent,
        spans: needed(0, 3600),
        ..Claim::default()
    }
}

/// An active machine that has not been needed for a second.
fn ending(priority: u8) -> Claim {
    Claim {
        stage: Stage::Active,
        spans: needed(-3600, -1),
        ..beginning(priority)
    }
}

/// The paces, as the seconds from now at which a machine may go.
fn paces(rates: RatesOfClass, all: &[(&str, Claim)]) -> Vec<String> {
    let members: Vec<Member<'_>> =
        all.iter().map(|(name, of)| member(name, of)).collect();
    let ruling = rule(&rates, &members, at(0));
    let text = |pace: &Pace| match pace {
        Pace::Free => "free".to_owned(),
        Pace::Wait {
            rate: Rate::MinimumActive,
            ..
        } => "kept".to_owned(),
        Pace::Wait { again, .. } => {
            again.unwrap().duration_since(at(0)).as_secs().to_string()
        }
    };
    ruling.paces.iter().map(text).collect()
}

/// `team-a/desk-1`.
fn member<'a>(name: &'a str, claim: &'a Claim) -> Member<'a> {
    let (namespace, name) = name.split_once('/').unwrap();
    Member {
        namespace,
        name,
        claim,
        grant: None,
    }
}

#[test]
fn the_highest_priority_begins_first_and_the_others_a_minute_later() {
    let all = [
        ("a/1", beginning(1)),
        ("a/2", beginning(9)),
        ("a/3", beginning(5)),
        ("a/4", beginning(5)),
    ];
    assert_eq!(paces(starts(1), &all), ["180", "free", "60", "120"]);
    assert_eq!(paces(starts(3), &all), ["60", "free", "free", "free"]);
    assert_eq!(paces(RatesOfClass::default(), &all), ["free"; 4]);
}

#[test]
fn what_has_begun_in_the_last_minute_counts_and_what_is_longer_ago_does_not() {
    let begun = |second: i64| Claim {
        stage: Stage::Present,
        started: Some(at(second)),
        ..beginning(9)
    };
    let all = [
        ("a/1", begun(-10)),
        ("a/2", begun(-60)),
        ("a/3", beginning(5)),
        ("a/4", beginning(4)),
    ];
    assert_eq!(paces(starts(1), &all)[2..], ["50", "110"]);
    assert_eq!(paces(starts(2), &all)[2..], ["free", "50"]);
    // Another clock is ahead.
    let ahead = [("a/1", begun(4)), ("a/3", beginning(5))];
    assert_eq!(paces(starts(1), &ahead)[1..], ["60"]);
}

#[test]
fn what_was_allowed_counts_until_a_later_beginning_is_recorded_and_then_once() {
    let next = beginning(5);
    let is_free = |started: Option<i64>, most: u32| {
        let allowed = Claim {
            stage: started.map_or(Stage::Absent, |_| Stage::Present),
            started: started.map(at),
            ..beginning(9)
        };
        let allowed = Member {
            grant: Some(Grant {
                at: at(-10),
                is_stop: false,
            }),
            ..member("a/1", &allowed)
        };
        let all = [allowed, member("a/2", &next)];
        rule(&starts(most), &all, at(0)).paces[1] == Pace::Free
    };
    // Not begun, begun earlier, begun since.
    for started in [None, Some(-100), Some(-5)] {
        assert!(!is_free(started, 1), "{started:?}");
        assert!(is_free(started, 2), "{started:?}");
    }
}

#[test]
fn namespaces_take_turns_whatever_priorities_their_machines_have() {
    let all = [
        ("a/1", beginning(255)),
        ("a/2", beginning(255)),
        ("a/3", beginning(255)),
        ("b/1", beginning(1)),
        ("b/2", beginning(2)),
    ];
    let expected = ["free", "120", "240", "180", "60"];
    assert_eq!(paces(starts(1), &all), expected);
    // The namespace whose last machine has begun longer ago comes first.
    let begun = |second: i64| Claim {
        stage: Stage::Active,
        started: Some(at(second)),
        ..beginning(9)
    };
    let all = [
        ("a/1", beginning(255)),
        ("a/2", begun(-70)),
        ("b/1", beginning(1)),
        ("b/2", begun(-130)),
    ];
    assert_eq!(paces(starts(1), &all), ["60", "free", "free", "free"]);
}

#[test]
fn machines_that_cannot_begin_or_have_failed_delay_nobody() {
    let of = |stage| Claim {
        stage,
        ..beginning(255)
    };
    let all = [
        ("a/1", of(Stage::Aside)),
        ("a/2", of(Stage::Failed)),
        ("a/3", beginning(1)),
    ];
    assert_eq!(paces(starts(1), &all)[1..], ["60", "free"]);
    let later = Claim {
        spans: needed(1, 3600),
        ..beginning(255)
    };
    let all = [("a/1", later), ("a/2", beginning(1))];
    assert_eq!(paces(starts(1), &all)[1..], ["free"]);
}

#[test]
fn the_lowest_priority_leaves_first_and_the_highest_stays() {
    let rates = RatesOfClass {
        stops: Some(1),
        minimum_active: 2,
        ..RatesOfClass::default()
    };
    let all = [
        ("a/1", ending(9)),
        ("b/2", ending(8)),
        ("a/3", ending(2)),
        ("a/4", ending(1)),
    ];
    assert_eq!(paces(rates, &all), ["kept", "kept", "60", "free"]);
    // What stays anyway counts, what is not active does not.
    let staying = |stage| Claim {
        stage,
        spans: needed(-3600, 3600),
        ..ending(1)
    };
    let with = |stage| {
        let all = [
            ("a/1", ending(9)),
            ("a/2", ending(8)),
            ("b/1", staying(stage)),
        ];
        paces(rates, &all)[..2].to_vec()
    };
    assert_eq!(with(Stage::Active), ["kept", "free"]);
    assert_eq!(with(Stage::Fixed), ["kept", "free"]);
    assert_eq!(with(Stage::Present), ["kept", "kept"]);
    assert_eq!(with(Stage::Aside), ["kept", "kept"]);
}

#[test]
fn a_machine_that_a_person_stops_neither_waits_nor_counts_as_one_that_stays() {
    let rates = RatesOfClass {
        minimum_active: 1,
        ..RatesOfClass::default()
    };
    let stopped = Claim {
        unheld_ends: vec![at(-1)],
        ..ending(9)
    };
    let all = [("a/1", stopped), ("a/2", ending(1))];
    assert_eq!(paces(rates, &all), ["free", "kept"]);
}

#[test]
fn a_ruling_holds_until_a_slot_is_free_or_a_machine_is_needed() {
    let begun = Claim {
        started: Some(at(-10)),
        ..ending(1)
    };
    let later = Claim {
        spans: needed(30, 3600),
        ..beginning(1)
    };
    let waiting = beginning(9);
    let members = [member("a/1", &begun), member("a/2", &waiting)];
    assert_eq!(rule(&starts(1), &members, at(0)).until, at(50));
    let members = [members[0], members[1], member("a/3", &later)];
    assert_eq!(rule(&starts(1), &members, at(0)).until, at(30));
    let idle = [member("a/3", &later)];
    assert_eq!(rule(&starts(1), &idle, at(4000)).until, Timestamp::MAX);
}

/// A machine of a simulated class.
#[derive(Clone, Debug)]
struct Simulated {
    namespace: &'static str,
    name: String,
    priority: u8,
    from: i64,
    to: i64,
    /// How long it takes from what it is allowed to what is recorded.
    takes: i64,
    killed_at: Option<i64>,
}

prop_compose! {
    fn simulated()(
        namespace in prop::sample::select(vec!["a", "b", "c"]),
        priority in 0..4_u8,
        from in 0..120_i64,
        length in 60..600_i64,
        takes in 0..20_i64,
        kill in prop::option::weighted(0.1, 0..700_i64),
    ) -> Simulated {
        Simulated {
            namespace,
            name: String::new(),
            priority,
            from,
            to: from + length,
            takes,
            killed_at: kill,
        }
    }
}

fn fleet() -> impl Strategy<Value = Vec<Simulated>> {
    prop::collection::vec(simulated(), 1..16).prop_map(|mut all| {
        for (number, of) in all.iter_mut().enumerate() {
            of.name = format!("m{number}");
        }
        all
    })
}

/// What has happened to a machine.
#[derive(Clone, Debug, Default)]
struct Life {
    claim: Claim,
    grant: Option<Grant>,
    begins_at: Option<i64>,
    leaves_at: Option<i64>,
    has_left: bool,
}

/// The seconds at which machines began, and at which shutdowns by schedule did.
#[derive(Debug, Default)]
struct Log {
    starts: Vec<(i64, usize)>,
    stops: Vec<(i64, usize)>,
    kills: Vec<(i64, usize)>,
}

/// Plays a fleet by the second. With `forgets`, everything but the claims is forgotten now and then.
/// Asserts the floor.
fn play(rates: RatesOfClass, fleet: &[Simulated], forgets: bool) -> Log {
    let mut log = Log::default();
    let mut lives: Vec<Life> = fleet
        .iter()
        .map(|of| Life {
            claim: Claim {
                priority: of.priority,
                stage: Stage::Absent,
                spans: needed(of.from, of.to),
                ..Claim::default()
            },
            ..Life::default()
        })
        .collect();
    for second in 0..1900 {
        let is_active = |life: &Life| life.claim.stage == Stage::Active;
        let before = lives.iter().filter(|of| is_active(of)).count();
        let mut stopped = 0;
        for (number, (of, life)) in fleet.iter().zip(&mut lives).enumerate() {
            if of.killed_at == Some(second) && life.claim.stage != Stage::Aside {
                life.claim.stage = Stage::Aside;
                life.has_left = true;
                log.kills.push((second, number));
            }
            if life.has_left {
                continue;
            }
            if life.begins_at == Some(second) {
                life.begins_at = None;
                life.claim.stage = Stage::Active;
                life.claim.started = Some(at(second));
                log.starts.push((second, number));
            }
            if life.leaves_at == Some(second) {
                life.claim.stage = Stage::Aside;
                life.has_left = true;
                life.claim.stopped = Some(at(second));
                log.stops.push((second, number));
                stopped += 1;
            }
        }
        if stopped > 0 {
            let after = lives.iter().filter(|of| is_active(of)).count();
            let killed = log.kills.iter().filter(|(when, _)| *when == second).count();
            assert!(
                after + killed >= before.min(rates.minimum_active as usize),
                "{after} of {before} are left at {second}"
            );
        }
        if forgets && second % 97 == 0 {
            // A restart: what was allowed and has not begun is forgotten with who was to do it.
            for life in &mut lives {
                life.grant = None;
                life.begins_at = None;
                life.leaves_at = None;
            }
        }
        decide(rates, fleet, &mut lives, second);
    }
    log
}

fn decide(rates: RatesOfClass, fleet: &[Simulated], lives: &mut [Life], second: i64) {
    let members: Vec<Member<'_>> = fleet
        .iter()
        .zip(&*lives)
        .map(|(of, life)| Member {
            namespace: of.namespace,
            name: &of.name,
            claim: &life.claim,
            grant: life.grant,
        })
        .collect();
    let Ruling { paces, grants, .. } = rule(&rates, &members, at(second));
    let ruled = paces.into_iter().zip(grants);
    for ((of, life), (pace, grant)) in fleet.iter().zip(lives).zip(ruled) {
        let is_new = grant != life.grant;
        life.grant = grant;
        let due = grant.filter(|_| is_new).map(|_| second + 1 + of.takes);
        match life.claim.wish(at(second)) {
            Wish::Start if pace == Pace::Free => life.begins_at = due.or(life.begins_at),
            Wish::Stop if pace == Pace::Free => life.leaves_at = due.or(life.leaves_at),
            Wish::Start | Wish::Nothing | Wish::Stay | Wish::Stop => {
                life.begins_at = None;
                life.leaves_at = None;
            }
        }
    }
}

/// The most of these within any minute.
fn most_in_a_minute(seconds: &[(i64, usize)]) -> usize {
    let count = |from: i64| {
        let is_in = |(at, _): &&(i64, usize)| *at >= from && *at < from + 60;
        seconds.iter().filter(is_in).count()
    };
    seconds.iter().map(|(at, _)| count(*at)).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn never_more_begin_or_leave_in_a_minute_than_the_class_says(
        fleet in fleet(),
        starts in 1..6_u32,
        stops in 1..6_u32,
        minimum_active in 0..4_u32,
        forgets: bool,
    ) {
        let rates = RatesOfClass { starts: Some(starts), stops: Some(stops), minimum_active };
        let log = play(rates, &fleet, forgets);
        prop_assert!(most_in_a_minute(&log.starts) <= starts as usize, "{log:?}");
        prop_assert!(most_in_a_minute(&log.stops) <= stops as usize, "{log:?}");
    }

    #[test]
    fn everything_begins_in_the_end(mut fleet in fleet(), starts in 1..6_u32) {
        for of in &mut fleet {
            of.to = 1800;
            of.killed_at = None;
        }
        let log = play(self::starts(starts), &fleet, false);
        for number in 0..fleet.len() {
            prop_assert!(log.starts.iter().any(|(_, which)| *which == number));
        }
    }

    #[test]
    fn of_one_namespace_the_highest_priority_of_those_that_are_needed_begins_first(
        fleet in fleet(),
        starts in 1..4_u32,
    ) {
        let fleet: Vec<Simulated> = fleet
            .into_iter()
            .map(|of| Simulated {
                namespace: "a", from: 10, to: 1890, takes: 0, killed_at: None, ..of
            })
            .collect();
        let rates = RatesOfClass { starts: Some(starts), ..RatesOfClass::default() };
        let log = play(rates, &fleet, false);
        prop_assert_eq!(log.starts.len(), fleet.len());
        let mut order: Vec<(i64, u8)> =
            log.starts.iter().map(|(at, which)| (*at, fleet[*which].priority)).collect();
        order.sort_by_key(|(at, priority)| (*at, std::cmp::Reverse(*priority)));
        let by_time: BTreeMap<i64, Vec<u8>> = order.iter().fold(
            BTreeMap::new(),
            |mut all: BTreeMap<i64, Vec<u8>>, (at, priority)| {
                all.entry(*at).or_default().push(*priority);
                all
            },
        );
        let mut last = u8::MAX;
        for priorities in by_time.into_values() {
            for priority in priorities {
                prop_assert!(priority <= last);
                last = priority;
            }
        }
    }

    #[test]
    fn another_namespace_delays_a_machine_by_as_many_turns_as_there_are_namespaces(
        many in 1..60_usize,
        priority in 0..3_u8,
    ) {
        let names: Vec<String> = (0..many).map(|number| format!("a/{number}")).collect();
        let high = beginning(255);
        let own = beginning(priority);
        let mut members: Vec<Member<'_>> =
            names.iter().map(|name| member(name, &high)).collect();
        members.push(member("b/1", &own));
        let ruling = rule(&starts(1), &members, at(0));
        let again = Some(at(60));
        let expected = Pace::Wait { rate: Rate::Starts, again };
        prop_assert_eq!(ruling.paces[many], expected);
    }

    #[test]
    fn the_order_of_the_members_makes_no_difference(fleet in fleet(), starts in 1..6_u32) {
        let claims: Vec<Claim> = fleet
            .iter()
            .map(|of| Claim { priority: of.priority, ..beginning(0) })
            .collect();
        let pairs = fleet.iter().zip(&claims);
        let mut members: Vec<Member<'_>> = pairs
            .map(|(of, claim)| Member {
                namespace: of.namespace,
                name: &of.name,
                claim,
                grant: None,
            })
            .collect();
        let found = rule(&self::starts(starts), &members, at(0));
        members.reverse();
        let mut reversed = rule(&self::starts(starts), &members, at(0));
        reversed.paces.reverse();
        prop_assert_eq!(found.paces, reversed.paces);
        prop_assert_eq!(whole_seconds(found.until), whole_seconds(reversed.until));
    }
}

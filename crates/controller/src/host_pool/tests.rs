use std::collections::BTreeSet;

use super::*;

struct Desks {
    pools: HostPools,
    hosts: Arc<HostPool>,
    taken: BTreeSet<&'static str>,
    now: Timestamp,
}

fn desks(names: &[&str]) -> Desks {
    let host = |name: &&str| ((*name).to_owned(), serde_json::Map::new());
    Desks {
        pools: HostPools::default(),
        hosts: Arc::new(names.iter().map(host).collect()),
        taken: BTreeSet::new(),
        now: Timestamp::UNIX_EPOCH,
    }
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn offered(host: &str) -> Turn {
    Turn::Offered(host.to_owned())
}

impl Desks {
    fn seek(&self, name: &str, priority: u8) -> Turn {
        self.seek_named(name, priority, None)
    }

    fn wish(&self, priority: u8, named: Option<&str>) -> Wish {
        Wish {
            class: "desks".to_owned(),
            hosts: self.hosts.clone(),
            named: named.map(str::to_owned),
            priority,
        }
    }

    fn seek_named(&self, name: &str, priority: u8, named: Option<&str>) -> Turn {
        let wish = self.wish(priority, named);
        let is_taken = |host: &str| self.taken.contains(host);
        self.pools.seek(&key(name), wish, self.now, is_taken)
    }

    fn freed(&mut self, host: &'static str) -> Vec<Key> {
        self.taken.remove(host);
        self.pools.changed("desks", host)
    }

    fn after(&mut self, seconds: i64) {
        self.now = after(self.now, SignedDuration::from_secs(seconds));
    }
}

#[test]
fn each_machine_is_offered_another_host_in_the_order_of_their_names() {
    let mut desks = desks(&["c", "a", "b"]);
    desks.taken.insert("a");
    assert_eq!(desks.seek("one", 50), offered("b"));
    assert_eq!(desks.seek("two", 50), offered("c"));
    assert_eq!(desks.seek("one", 50), offered("b"), "asked again");
    assert_eq!(desks.seek("three", 50), Turn::Wait(None));
}

#[test]
fn of_machines_that_wait_the_highest_priority_comes_first() {
    let mut desks = desks(&["a"]);
    desks.taken.insert("a");
    for (name, priority) in [("a-low", 1), ("high", 9), ("also-high", 9)] {
        assert_eq!(desks.seek(name, priority), Turn::Wait(None));
    }
    assert_eq!(desks.freed("a"), [key("also-high")]);
    assert_eq!(desks.seek("a-low", 1), Turn::Wait(None));
    assert_eq!(desks.seek("also-high", 9), offered("a"));
}

#[test]
fn one_that_names_a_host_does_not_take_it_from_one_ahead_that_takes_any() {
    let mut desks = desks(&["a", "b"]);
    desks.taken.extend(["a", "b"]);
    assert_eq!(desks.seek("first", 50), Turn::Wait(None));
    assert_eq!(desks.seek_named("third", 50, Some("b")), Turn::Wait(None));
    assert_eq!(desks.freed("b"), [key("first"), key("third")]);
    assert_eq!(desks.seek_named("third", 50, Some("b")), Turn::Wait(None));
    // It takes the first one by name.
    assert_eq!(desks.freed("a"), [key("first")]);
    assert_eq!(desks.seek_named("third", 50, Some("b")), offered("b"));
    assert_eq!(desks.seek_named("second", 50, Some("a")), Turn::Wait(None));
    // It needs none any more.
    assert_eq!(desks.pools.leave(&key("first")), [key("second")]);
    assert_eq!(desks.seek_named("second", 50, Some("a")), offered("a"));
}

#[test]
fn one_that_may_need_a_host_at_the_same_instant_keeps_its_place_until_it_asks() {
    let mut desks = desks(&["a"]);
    let expect = |desks: &Desks, name: &str, priority, seconds| {
        let at = after(desks.now, SignedDuration::from_secs(seconds));
        desks
            .pools
            .expect(&key(name), desks.wish(priority, None), at);
    };
    expect(&desks, "high", 90, 0);
    expect(&desks, "later", 90, 60);
    expect(&desks, "low", 10, 0);
    let again = Some(after(desks.now, ASKS_WITHIN));
    assert_eq!(desks.seek("middle", 50), Turn::Wait(again));
    // It does not need one after all.
    assert_eq!(desks.pools.leave(&key("high")), [key("middle")]);
    assert_eq!(desks.seek("middle", 50), offered("a"));
    // Nobody waits for long for one that does not ask.
    desks.pools.leave(&key("middle"));
    expect(&desks, "high", 90, 0);
    assert_eq!(desks.seek("middle", 50), Turn::Wait(again));
    desks.after(1);
    assert_eq!(desks.seek("middle", 50), offered("a"));
    assert_eq!(desks.seek("high", 90), Turn::Wait(None));
}

#[test]
fn as_many_machines_as_hosts_become_free_have_their_turn() {
    let mut desks = desks(&["a", "b"]);
    desks.taken.extend(["a", "b"]);
    for name in ["first", "second", "third"] {
        desks.seek(name, 50);
    }
    desks.freed("a");
    assert_eq!(desks.freed("b"), [key("first")]);
    assert_eq!(
        desks.seek("second", 50),
        offered("a"),
        "one host is left for one"
    );
    assert_eq!(desks.seek("first", 50), offered("b"));
    assert_eq!(
        desks.pools.claimed(&key("first"), desks.now),
        [key("third")]
    );
    assert_eq!(
        desks.seek("third", 50),
        Turn::Wait(Some(desks.now + SHOWN_WITHIN))
    );
}

#[test]
fn a_host_that_was_offered_and_never_claimed_wakes_who_waits() {
    let desks = desks(&["a"]);
    assert_eq!(desks.seek("first", 50), offered("a"));
    assert_eq!(desks.seek("second", 50), Turn::Wait(None));
    assert_eq!(desks.seek_named("third", 50, Some("a")), Turn::Wait(None));
    assert_eq!(
        desks.pools.leave(&key("first")),
        [key("second"), key("third")]
    );
    assert_eq!(desks.seek("second", 50), offered("a"));
    assert!(desks.pools.leave(&key("never-asked")).is_empty());
}

#[test]
fn a_host_whose_claim_was_refused_is_left_alone_until_its_lease_is_shown() {
    let mut desks = desks(&["a", "b"]);
    assert_eq!(desks.seek("one", 50), offered("a"));
    desks.pools.claimed(&key("one"), desks.now);
    assert_eq!(desks.seek("one", 50), offered("b"));
    desks.pools.claimed(&key("one"), desks.now);
    let again = Some(desks.now + SHOWN_WITHIN);
    assert_eq!(desks.seek("one", 50), Turn::Wait(again));
    // The Lease came and went before the cache was asked.
    desks.after(11);
    assert_eq!(desks.seek("one", 50), offered("a"));
}

#[test]
fn a_claim_is_known_until_its_lease_is_shown_although_its_machine_waits_no_more() {
    let desks = desks(&["a"]);
    let offered = || desks.pools.offered(&key("one")).map(|(_, host)| host);
    desks.seek("one", 50);
    desks.pools.claimed(&key("one"), desks.now);
    desks.pools.leave(&key("one"));
    assert_eq!(offered().as_deref(), Some("a"));
    desks.pools.changed("desks", "a");
    assert_eq!(offered(), None);
}

#[test]
fn a_named_host_waits_for_that_host_alone_and_comes_before_a_lower_priority() {
    let mut desks = desks(&["a", "b"]);
    desks.taken.extend(["a", "b"]);
    assert_eq!(desks.seek_named("named", 60, Some("a")), Turn::Wait(None));
    assert_eq!(desks.seek("any", 50), Turn::Wait(None));
    desks.freed("b");
    assert_eq!(desks.seek_named("named", 60, Some("a")), Turn::Wait(None));
    assert_eq!(desks.seek("any", 50), offered("b"));
    desks.taken.insert("b");
    desks.pools.leave(&key("any"));
    assert_eq!(desks.seek("other", 50), Turn::Wait(None));
    assert!(desks.freed("a").contains(&key("named")));
    assert_eq!(desks.seek("other", 50), Turn::Wait(None), "it is named");
    assert_eq!(desks.seek_named("named", 60, Some("a")), offered("a"));
}

#[test]
fn a_machine_that_waits_asks_about_no_host_again_while_nothing_changes() {
    let names: Vec<String> = (0..1_000).map(|place| format!("h{place:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let desks = desks(&names);
    let asked = std::cell::Cell::new(0);
    let seek = |name: &str| {
        let wish = Wish {
            class: "desks".to_owned(),
            hosts: desks.hosts.clone(),
            named: None,
            priority: 50,
        };
        desks.pools.seek(&key(name), wish, desks.now, |_| {
            asked.set(asked.get() + 1);
            true
        })
    };
    for place in 0..1_000 {
        assert_eq!(seek(&format!("m{place:03}")), Turn::Wait(None));
    }
    assert!(asked.get() <= 3_000, "{}", asked.get());
}

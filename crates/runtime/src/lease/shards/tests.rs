use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use crate::lease::Record;

fn later(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn names() -> ShardNames {
    ShardNames {
        prefix: "x".to_owned(),
        label: "x.example/shards".to_owned(),
    }
}

/// A Lease with this holder, for 15 seconds.
fn lease(name: String, holder: &str, count: u32) -> StoredLease {
    StoredLease {
        uid: format!("uid of {name}"),
        name,
        version: "1".to_owned(),
        labels: BTreeMap::from([(names().label, count.to_string())]),
        record: Record {
            holder: holder.to_owned(),
            duration: Some(SignedDuration::from_secs(15)),
            ..Record::default()
        },
    }
}

fn member(identity: &str, count: u32) -> StoredLease {
    lease(names().member(identity), identity, count)
}

fn shard(shard: u32, count: u32, holder: &str) -> StoredLease {
    lease(names().shard(shard, count), holder, count)
}

/// The view of `identity`, with so many shards, after it was shown these Leases.
fn view(identity: &str, count: u32, shown: &[StoredLease]) -> Shards {
    let mut view =
        Shards::new(names(), identity.to_owned(), LeaseTiming::default(), count);
    view.observe_list(shown, later(0));
    view
}

fn wanted(view: &Shards, held: &[u32], second: i64) -> Vec<u32> {
    let held = held.iter().copied().collect();
    view.wanted(&held, later(second)).into_iter().collect()
}

#[test]
fn an_object_has_the_same_shard_in_every_release() {
    let uid = "6e8b3a52-90de-4b5c-b0f7-6ec6e2c9bb62";
    assert_eq!(shard_of(uid, 1_000), Some(33));
    assert_eq!(shard_of(uid, 1), Some(0));
    assert_eq!(shard_of("", 3), None);
    assert_eq!(shard_of(uid, 0), None);
}

#[test]
fn no_shard_is_wanted_before_the_watch_shows_our_member_lease() {
    assert_eq!(wanted(&view("a", 2, &[]), &[], 0), Vec::<u32>::new());
    assert_eq!(wanted(&view("a", 2, &[member("a", 2)]), &[], 0), [0, 1]);
}

#[test]
fn the_shards_of_a_replica_that_does_not_renew_are_taken_over() {
    let mut view = view("a", 2, &[member("a", 2), member("b", 2)]);
    assert_eq!(wanted(&view, &[], 14), [0]);
    let mut renewed = member("a", 2);
    renewed.record.renewed = "later".to_owned();
    view.observe(&renewed, later(14));
    assert_eq!(view.next_expiry(later(14)), Some(later(15)));
    assert_eq!(wanted(&view, &[0], 15), [0, 1]);
    let obsolete = view.obsolete(later(15)).map(|stored| &*stored.name);
    assert_eq!(obsolete, Some("x-member-b"));
}

#[test]
fn a_replica_that_has_released_its_lease_does_not_count() {
    let mut view = view("a", 2, &[member("a", 2), member("b", 2)]);
    let mut released = member("b", 2);
    released.record.holder.clear();
    view.observe(&released, later(1));
    assert_eq!(wanted(&view, &[0], 1), [0, 1]);
}

#[test]
fn a_deleted_lease_counts_until_it_would_have_expired() {
    let mut view = view("a", 2, &[member("a", 2), member("b", 2), shard(1, 5, "c")]);
    view.observe_deletion(&member("b", 2), later(1));
    view.observe_deletion(&shard(1, 5, "c"), later(1));
    assert_eq!(wanted(&view, &[], 1), Vec::<u32>::new());
    assert_eq!(view.other_count(later(14)), Some(5));
    assert_eq!(view.other_count(later(15)), None);
}

#[test]
fn a_shard_is_held_once_the_watch_shows_it() {
    let mut view = view("a", 2, &[member("a", 2), shard(0, 2, "b")]);
    assert!(!view.is_shown_as_held(0));
    view.observe(&shard(0, 2, "a"), later(1));
    assert!(view.is_shown_as_held(0));
    assert!(!view.is_shown_as_held(1));
    view.observe_deletion(&shard(0, 2, "a"), later(2));
    assert!(!view.is_shown_as_held(0));
}

#[test]
fn the_first_number_of_shards_stays_and_if_both_are_held_the_smaller_gives_way() {
    let others = [member("b", 3), shard(0, 3, "b")];
    let mut shown = vec![member("a", 2), shard(0, 2, "a")];
    shown.extend(others);
    let smaller = view("a", 2, &shown);
    assert_eq!(smaller.other_count(later(0)), Some(3));
    assert_eq!(wanted(&smaller, &[0], 0), Vec::<u32>::new());
    let larger = view("b", 3, &shown);
    assert_eq!(larger.other_count(later(0)), Some(2));
    assert_eq!(wanted(&larger, &[0], 0), [0], "no other shard is taken");
    assert_eq!(wanted(&larger, &[], 0), Vec::<u32>::new());
}

#[test]
fn a_replica_with_another_number_is_assigned_no_shard() {
    let view = view("a", 2, &[member("a", 2), member("b", 3)]);
    assert_eq!(wanted(&view, &[], 0), [0, 1]);
}

proptest! {
    #[test]
    fn every_shard_is_assigned_to_one_replica_and_evenly(
        count in 1_u32..20, instances in 1_usize..8,
    ) {
        let identities: Vec<String> = (0..instances).map(|it| format!("pod-{it}")).collect();
        let shown: Vec<StoredLease> = identities.iter().map(|it| member(it, count)).collect();
        let mut all = Vec::new();
        let mut sizes = Vec::new();
        for identity in &identities {
            let own = wanted(&view(identity, count, &shown), &[], 0);
            sizes.push(own.len());
            all.extend(own);
        }
        all.sort_unstable();
        prop_assert_eq!(all, (0..count).collect::<Vec<u32>>());
        let most = sizes.iter().max().unwrap();
        prop_assert!(most - sizes.iter().min().unwrap() <= 1, "{:?}", sizes);
    }
}

use std::rc::Rc;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn queue<G>() -> Queue<G> {
    Queue::new(Backoff::seeded(7))
}

fn taken<G>(queue: &mut Queue<G>, now: Timestamp) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((key, _)) = queue.take(now) {
        names.push(key.name.clone());
    }
    names
}

const DONE: ReconcileResult = ReconcileResult::Done { wake: None };
const FAILED: ReconcileResult = ReconcileResult::Failed { wake: None };

#[test]
fn a_key_that_is_asked_for_twice_is_taken_once() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    queue.wake(&key("b"), at(0), ());
    queue.wake(&key("a"), at(1), ());
    assert_eq!(taken(&mut queue, at(1)), ["a", "b"]);
}

#[test]
fn a_key_whose_pass_is_under_way_is_not_taken_but_comes_again() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    assert!(queue.take(at(0)).is_some());
    queue.wake(&key("a"), at(0), ());
    assert!(queue.take(at(0)).is_none());
    queue.finish(
        &key("a"),
        ReconcileResult::Done { wake: Some(at(99)) },
        at(1),
    );
    assert_eq!(taken(&mut queue, at(1)), ["a"]);
}

#[test]
fn a_key_is_due_exactly_when_its_pass_said() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    queue.take(at(0));
    queue.finish(
        &key("a"),
        ReconcileResult::Done { wake: Some(at(60)) },
        at(0),
    );
    assert_eq!(queue.next_due(), Some(at(60)));
    assert!(queue.take(at(59)).is_none());
    assert!(queue.take(at(60)).is_some());
}

#[test]
fn what_happens_earlier_replaces_a_later_wake_up() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    queue.take(at(0));
    queue.finish(
        &key("a"),
        ReconcileResult::Done { wake: Some(at(60)) },
        at(0),
    );
    queue.wake(&key("a"), at(5), ());
    assert_eq!(taken(&mut queue, at(5)), ["a"]);
    queue.finish(&key("a"), DONE, at(5));
    assert_eq!(queue.next_due(), None);
}

#[test]
fn failures_wait_longer_each_time_up_to_five_minutes() {
    let mut queue = queue();
    let mut now = at(0);
    let mut waits = Vec::new();
    queue.wake(&key("a"), now, ());
    for _ in 0..12 {
        queue.take(now).unwrap();
        queue.finish(&key("a"), FAILED, now);
        let due = queue.next_due().unwrap();
        waits.push(due.duration_since(now));
        now = due;
    }
    // The first wait may not undercut the pause after a failure.
    assert_eq!(waits[0], SignedDuration::from_secs(1));
    for (doublings, wait) in waits.iter().enumerate().skip(1) {
        let full = (1_u64 << doublings).min(300);
        let wait = wait.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "at most 300")]
        let full = full as f64;
        assert!(
            (full * 0.8 - 0.001..=full).contains(&wait),
            "{wait} of {full}"
        );
    }
}

#[test]
fn a_pass_that_succeeds_forgets_the_failures_before_it() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    queue.take(at(0));
    assert_eq!(queue.finish(&key("a"), FAILED, at(0)), 1);
    queue.take(at(10));
    queue.finish(&key("a"), DONE, at(10));
    queue.wake(&key("a"), at(10), ());
    assert!(queue.take(at(10)).is_some());
    assert_eq!(queue.finish(&key("a"), FAILED, at(10)), 1);
}

#[test]
fn an_edge_is_met_although_a_retry_would_come_later() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    for _ in 0..9 {
        let now = queue.next_due().unwrap();
        queue.take(now).unwrap();
        queue.finish(&key("a"), FAILED, now);
    }
    let now = queue.next_due().unwrap();
    queue.take(now).unwrap();
    let edge = now + SignedDuration::from_secs(30);
    queue.finish(&key("a"), ReconcileResult::Failed { wake: Some(edge) }, now);
    assert_eq!(queue.next_due(), Some(edge));
}

#[test]
fn whatever_happens_after_a_failure_brings_the_retry_forward_to_a_second() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    for _ in 0..5 {
        let now = queue.next_due().unwrap();
        queue.take(now).unwrap();
        queue.finish(&key("a"), FAILED, now);
    }
    let now = queue.next_due().unwrap();
    queue.take(now).unwrap();
    queue.finish(&key("a"), FAILED, now);
    queue.wake(&key("a"), now, ());
    assert_eq!(queue.next_due(), Some(now + SignedDuration::from_secs(1)));
}

#[test]
fn a_stale_view_is_refreshed_at_once_and_then_with_waits() {
    let mut queue = queue();
    let stale = ReconcileResult::Stale { wake: None };
    queue.wake(&key("a"), at(0), ());
    queue.take(at(0));
    queue.finish(&key("a"), stale, at(0));
    assert_eq!(queue.next_due(), Some(at(0)));
    queue.take(at(0));
    queue.finish(&key("a"), stale, at(0));
    assert!(queue.next_due().unwrap() > at(0));
}

#[test]
fn a_key_that_never_rests_is_slowed_down() {
    let mut queue = queue();
    let mut passes = 0;
    queue.wake(&key("a"), at(0), ());
    while queue.take(at(0)).is_some() {
        passes += 1;
        queue.wake(&key("a"), at(0), ());
        queue.finish(&key("a"), DONE, at(0));
        assert!(passes <= BURST, "the queue never lets go of it");
    }
    assert_eq!(queue.next_due(), Some(at(1)));
    assert!(queue.take(at(1)).is_some());
}

#[test]
fn the_guard_is_held_from_being_due_to_the_end_of_the_pass() {
    let guard = Rc::new(());
    let mut queue = queue();
    queue.wake(&key("a"), at(0), guard.clone());
    assert_eq!(Rc::strong_count(&guard), 2);
    let (_, held) = queue.take(at(0)).unwrap();
    assert_eq!(Rc::strong_count(&guard), 2);
    queue.finish(
        &key("a"),
        ReconcileResult::Done { wake: Some(at(60)) },
        at(0),
    );
    drop(held);
    assert_eq!(Rc::strong_count(&guard), 1);
}

#[test]
fn a_key_that_waits_out_a_failure_holds_no_guard() {
    let guard = Rc::new(());
    let mut queue = queue();
    queue.wake(&key("a"), at(0), guard.clone());
    drop(queue.take(at(0)));
    queue.wake(&key("a"), at(0), guard.clone());
    queue.finish(&key("a"), FAILED, at(0));
    queue.wake(&key("a"), at(0), guard.clone());
    assert_eq!(Rc::strong_count(&guard), 1);
}

#[test]
fn equal_seeds_wait_equally_and_others_do_not() {
    let wait = |seed| Backoff::seeded(seed).wait(&key("a"), 8);
    assert_eq!(wait(1), wait(1));
    assert_ne!(wait(1), wait(2));
}

#[test]
fn of_keys_that_are_due_together_the_lower_rank_comes_first() {
    let edge = at(100);
    let mut queue: Queue<()> = Queue::new(Backoff::seeded(0));
    for (name, rank) in [("a", 9), ("b", 3), ("c", 9), ("d", 0)] {
        let key = Key::new("default", name);
        queue.wake(&key, at(0), ());
        queue.take(at(0)).unwrap();
        queue.rank(&key, rank);
        queue.finish(&key, ReconcileResult::Done { wake: Some(edge) }, at(0));
    }
    let order: Vec<String> = std::iter::from_fn(|| queue.take(edge))
        .map(|(key, _)| key.name.clone())
        .collect();
    assert_eq!(order, ["d", "b", "a", "c"]);
}

/// A queue in which what is left to do of `a` can wait for others, until 10 s.
fn deferred() -> Queue<()> {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    queue.take(at(0)).unwrap();
    let until = at(10);
    queue.finish(&key("a"), ReconcileResult::Deferred { until }, at(0));
    queue
}

#[test]
fn what_can_wait_comes_after_everything_that_is_due() {
    let mut queue = deferred();
    queue.wake_deferred(&key("a"), at(1), ());
    queue.wake(&key("b"), at(2), ());
    queue.wake(&key("c"), at(3), ());
    assert_eq!(taken(&mut queue, at(3)), ["b", "c", "a"]);
}

#[test]
fn what_happens_during_a_pass_that_is_deferred_can_wait_as_well() {
    let mut queue = queue();
    queue.wake(&key("a"), at(0), ());
    queue.take(at(0)).unwrap();
    queue.wake_deferred(&key("a"), at(1), ());
    let until = at(11);
    queue.finish(&key("a"), ReconcileResult::Deferred { until }, at(1));
    queue.wake(&key("b"), at(2), ());
    assert_eq!(taken(&mut queue, at(2)), ["b", "a"]);
}

#[test]
fn a_change_that_cannot_wait_ends_a_deferral() {
    let mut queue = deferred();
    queue.wake_deferred(&key("a"), at(2), ());
    queue.wake(&key("a"), at(3), ());
    queue.wake(&key("b"), at(4), ());
    assert_eq!(taken(&mut queue, at(4)), ["a", "b"]);
}

#[test]
fn nobody_is_deferred_for_longer_than_half_a_minute() {
    let mut queue = deferred();
    queue.wake_deferred(&key("a"), at(2), ());
    queue.wake(&key("b"), at(31), ());
    queue.wake(&key("c"), at(32), ());
    assert_eq!(queue.take(at(31)).unwrap().0, key("b"));
    assert_eq!(queue.take(at(32)).unwrap().0, key("a"));
}

/// A queue in which what is left to do of six keys can wait, and is due at 1 s.
fn six_deferred() -> Queue<()> {
    let mut queue = queue();
    for name in ["a", "b", "c", "d", "e", "f"] {
        queue.wake(&key(name), at(0), ());
        queue.take(at(0)).unwrap();
        let until = at(1);
        queue.finish(&key(name), ReconcileResult::Deferred { until }, at(0));
    }
    queue
}

#[test]
fn few_that_can_wait_begin_while_one_that_cannot_is_under_way() {
    let mut queue = six_deferred();
    queue.wake(&key("urgent"), at(1), ());
    let begun = taken(&mut queue, at(1));
    assert_eq!(begun, ["urgent", "a", "b", "c", "d"]);
    assert_eq!(queue.next_due(), None, "one that is under way ends first");
    queue.finish(&key("b"), DONE, at(2));
    assert_eq!(taken(&mut queue, at(2)), ["e"]);
    queue.finish(&key("urgent"), DONE, at(3));
    assert_eq!(taken(&mut queue, at(3)), ["f"]);
}

#[test]
fn all_that_can_wait_begin_when_nothing_else_is_under_way() {
    assert_eq!(taken(&mut six_deferred(), at(1)).len(), 6);
}

#[test]
fn what_has_waited_for_half_a_minute_comes_first_and_few_at_a_time() {
    let mut queue = six_deferred();
    queue.wake(&key("urgent"), at(1), ());
    taken(&mut queue, at(1));
    queue.wake(&key("next"), at(31), ());
    queue.wake(&key("third"), at(31), ());
    assert_eq!(queue.take(at(31)).unwrap().0, key("next"));
    queue.finish(&key("b"), DONE, at(31));
    assert_eq!(taken(&mut queue, at(31)), ["e", "third"]);
}

#[test]
fn what_is_deferred_is_due_at_its_instant_whatever_happens() {
    let mut queue = deferred();
    assert_eq!(queue.next_due(), Some(at(10)));
    assert_eq!(taken(&mut queue, at(10)), ["a"]);
}

#[test]
fn whoever_is_not_deferred_has_high_priority() {
    let mut queue = queue();
    queue.wake_deferred(&key("a"), at(0), ());
    queue.wake(&key("b"), at(1), ());
    assert_eq!(taken(&mut queue, at(1)), ["a", "b"]);
}

#[test]
fn a_clock_that_is_set_back_puts_nothing_off() {
    let (mut queue, hour) = (queue(), 3_600);
    for name in ["retries", "waits"] {
        queue.wake(&key(name), at(hour), ());
        queue.take(at(hour)).unwrap();
    }
    queue.finish(&key("retries"), FAILED, at(hour));
    let until = at(hour + 10);
    queue.finish(&key("waits"), ReconcileResult::Waiting { until }, at(hour));
    assert_eq!(taken(&mut queue, at(0)), ["retries", "waits"]);
    queue.finish(&key("waits"), DONE, at(0));
    queue.wake(&key("waits"), at(0), ());
    assert_eq!(taken(&mut queue, at(0)), ["waits"]);
}

#[test]
fn a_clock_that_hesitates_for_less_than_a_second_changes_nothing() {
    let mut queue = queue();
    queue.wake(&key("a"), at(9), ());
    queue.take(at(9)).unwrap();
    queue.finish(
        &key("a"),
        ReconcileResult::Done { wake: Some(at(60)) },
        at(9),
    );
    let earlier = at(9) - SignedDuration::from_millis(900);
    assert!(queue.take(earlier).is_none());
    assert_eq!(queue.next_due(), Some(at(60)));
}

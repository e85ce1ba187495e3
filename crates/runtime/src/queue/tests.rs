use std::num::NonZeroUsize;
use std::rc::Rc;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

const SLOTS: NonZeroUsize = NonZeroUsize::new(128).unwrap();

fn queue<G>() -> Queue<G> {
    Queue::new(Backoff::seeded(7), SLOTS)
}

fn taken<G>(queue: &mut Queue<G>, now: Timestamp) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((key, _)) = queue.take(now) {
        names.push(key.name.clone());
    }
    names
}

const DONE: ReconcileResult = ReconcileResult::Succeeded { requeue_at: None };
const FAILED: ReconcileResult = ReconcileResult::Failed { requeue_at: None };

#[test]
fn a_key_that_is_enqueued_twice_is_taken_once() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    queue.enqueue(&key("b"), at(0), ());
    queue.enqueue(&key("a"), at(1), ());
    assert_eq!(taken(&mut queue, at(1)), ["a", "b"]);
}

#[test]
fn a_key_that_is_being_reconciled_is_not_taken_but_due_again_afterwards() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    assert!(queue.take(at(0)).is_some());
    queue.enqueue(&key("a"), at(0), ());
    assert!(queue.take(at(0)).is_none());
    queue.finish(
        &key("a"),
        ReconcileResult::Succeeded {
            requeue_at: Some(at(99)),
        },
        at(1),
    );
    assert_eq!(taken(&mut queue, at(1)), ["a"]);
}

#[test]
fn a_key_is_due_exactly_when_its_reconcile_requeued_it() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    queue.take(at(0));
    queue.finish(
        &key("a"),
        ReconcileResult::Succeeded {
            requeue_at: Some(at(60)),
        },
        at(0),
    );
    assert_eq!(queue.next_due(), Some(at(60)));
    assert!(queue.take(at(59)).is_none());
    assert!(queue.take(at(60)).is_some());
}

#[test]
fn an_earlier_event_replaces_a_later_requeue() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    queue.take(at(0));
    queue.finish(
        &key("a"),
        ReconcileResult::Succeeded {
            requeue_at: Some(at(60)),
        },
        at(0),
    );
    queue.enqueue(&key("a"), at(5), ());
    assert_eq!(taken(&mut queue, at(5)), ["a"]);
    queue.finish(&key("a"), DONE, at(5));
    assert_eq!(queue.next_due(), None);
}

#[test]
fn the_backoff_grows_with_each_failure_up_to_five_minutes() {
    let mut queue = queue();
    let mut now = at(0);
    let mut waits = Vec::new();
    queue.enqueue(&key("a"), now, ());
    for _ in 0..12 {
        queue.take(now).unwrap();
        queue.finish(&key("a"), FAILED, now);
        let due = queue.next_due().unwrap();
        waits.push(due.duration_since(now));
        now = due;
    }
    // The first wait is not shorter than the pause after a failure.
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
fn a_successful_reconcile_resets_the_failures() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    queue.take(at(0));
    assert_eq!(queue.finish(&key("a"), FAILED, at(0)), 1);
    queue.take(at(10));
    queue.finish(&key("a"), DONE, at(10));
    queue.enqueue(&key("a"), at(10), ());
    assert!(queue.take(at(10)).is_some());
    assert_eq!(queue.finish(&key("a"), FAILED, at(10)), 1);
}

#[test]
fn a_requeue_instant_before_the_end_of_the_backoff_is_kept() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    for _ in 0..9 {
        let now = queue.next_due().unwrap();
        queue.take(now).unwrap();
        queue.finish(&key("a"), FAILED, now);
    }
    let now = queue.next_due().unwrap();
    queue.take(now).unwrap();
    let edge = now + SignedDuration::from_secs(30);
    queue.finish(
        &key("a"),
        ReconcileResult::Failed {
            requeue_at: Some(edge),
        },
        now,
    );
    assert_eq!(queue.next_due(), Some(edge));
}

#[test]
fn an_event_after_a_failure_brings_the_retry_forward_to_a_second() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    for _ in 0..5 {
        let now = queue.next_due().unwrap();
        queue.take(now).unwrap();
        queue.finish(&key("a"), FAILED, now);
    }
    let now = queue.next_due().unwrap();
    queue.take(now).unwrap();
    queue.finish(&key("a"), FAILED, now);
    queue.enqueue(&key("a"), now, ());
    assert_eq!(queue.next_due(), Some(now + SignedDuration::from_secs(1)));
}

#[test]
fn a_stale_reconcile_is_repeated_at_once_and_then_with_backoff() {
    let mut queue = queue();
    let stale = ReconcileResult::Stale { requeue_at: None };
    queue.enqueue(&key("a"), at(0), ());
    queue.take(at(0));
    queue.finish(&key("a"), stale, at(0));
    assert_eq!(queue.next_due(), Some(at(0)));
    queue.take(at(0));
    queue.finish(&key("a"), stale, at(0));
    assert!(queue.next_due().unwrap() > at(0));
}

#[test]
fn a_key_that_is_enqueued_by_each_reconcile_is_rate_limited() {
    let mut queue = queue();
    let mut reconciles = 0;
    queue.enqueue(&key("a"), at(0), ());
    while queue.take(at(0)).is_some() {
        reconciles += 1;
        queue.enqueue(&key("a"), at(0), ());
        queue.finish(&key("a"), DONE, at(0));
        assert!(reconciles <= BURST, "the burst is not limited");
    }
    assert_eq!(queue.next_due(), Some(at(1)));
    assert!(queue.take(at(1)).is_some());
}

#[test]
fn the_guard_is_held_from_being_due_to_the_end_of_the_reconcile() {
    let guard = Rc::new(());
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), guard.clone());
    assert_eq!(Rc::strong_count(&guard), 2);
    let (_, held) = queue.take(at(0)).unwrap();
    assert_eq!(Rc::strong_count(&guard), 2);
    queue.finish(
        &key("a"),
        ReconcileResult::Succeeded {
            requeue_at: Some(at(60)),
        },
        at(0),
    );
    drop(held);
    assert_eq!(Rc::strong_count(&guard), 1);
}

#[test]
fn a_key_in_backoff_holds_no_guard() {
    let guard = Rc::new(());
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), guard.clone());
    drop(queue.take(at(0)));
    queue.enqueue(&key("a"), at(0), guard.clone());
    queue.finish(&key("a"), FAILED, at(0));
    queue.enqueue(&key("a"), at(0), guard.clone());
    assert_eq!(Rc::strong_count(&guard), 1);
}

#[test]
fn equal_seeds_give_equal_waits_and_different_seeds_do_not() {
    let wait = |seed| Backoff::seeded(seed).wait(&key("a"), 8);
    assert_eq!(wait(1), wait(1));
    assert_ne!(wait(1), wait(2));
}

#[test]
fn of_keys_that_are_due_together_the_lower_rank_comes_first() {
    let edge = at(100);
    let mut queue: Queue<()> = Queue::new(Backoff::seeded(0), SLOTS);
    for (name, rank) in [("a", 9), ("b", 3), ("c", 9), ("d", 0)] {
        let key = Key::new("default", name);
        queue.enqueue(&key, at(0), ());
        queue.take(at(0)).unwrap();
        queue.rank(&key, rank);
        queue.finish(
            &key,
            ReconcileResult::Succeeded {
                requeue_at: Some(edge),
            },
            at(0),
        );
    }
    let order: Vec<String> = std::iter::from_fn(|| queue.take(edge))
        .map(|(key, _)| key.name.clone())
        .collect();
    assert_eq!(order, ["d", "b", "a", "c"]);
}

/// A queue in which `a` is deferred until 10 s.
fn deferred() -> Queue<()> {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    queue.take(at(0)).unwrap();
    let until = at(10);
    queue.finish(&key("a"), ReconcileResult::Deferred { until }, at(0));
    queue
}

#[test]
fn a_deferred_key_comes_after_all_other_due_keys() {
    let mut queue = deferred();
    queue.enqueue_deferred(&key("a"), at(1), ());
    queue.enqueue(&key("b"), at(2), ());
    queue.enqueue(&key("c"), at(3), ());
    assert_eq!(taken(&mut queue, at(3)), ["b", "c", "a"]);
}

#[test]
fn a_low_priority_event_during_a_reconcile_that_is_deferred_can_wait() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(0), ());
    queue.take(at(0)).unwrap();
    queue.enqueue_deferred(&key("a"), at(1), ());
    let until = at(11);
    queue.finish(&key("a"), ReconcileResult::Deferred { until }, at(1));
    queue.enqueue(&key("b"), at(2), ());
    assert_eq!(taken(&mut queue, at(2)), ["b", "a"]);
}

#[test]
fn an_event_of_high_priority_ends_a_deferral() {
    let mut queue = deferred();
    queue.enqueue_deferred(&key("a"), at(2), ());
    queue.enqueue(&key("a"), at(3), ());
    queue.enqueue(&key("b"), at(4), ());
    assert_eq!(taken(&mut queue, at(4)), ["a", "b"]);
}

#[test]
fn no_key_is_deferred_for_longer_than_half_a_minute() {
    let mut queue = deferred();
    queue.enqueue_deferred(&key("a"), at(2), ());
    queue.enqueue(&key("b"), at(31), ());
    queue.enqueue(&key("c"), at(32), ());
    assert_eq!(queue.take(at(31)).unwrap().0, key("b"));
    assert_eq!(queue.take(at(32)).unwrap().0, key("a"));
}

/// A queue in which six keys are deferred, and due at 1 s.
fn six_deferred() -> Queue<()> {
    let mut queue = queue();
    for name in ["a", "b", "c", "d", "e", "f"] {
        queue.enqueue(&key(name), at(0), ());
        queue.take(at(0)).unwrap();
        let until = at(1);
        queue.finish(&key(name), ReconcileResult::Deferred { until }, at(0));
    }
    queue
}

#[test]
fn few_of_low_priority_begin_while_one_of_high_priority_runs() {
    let mut queue = six_deferred();
    queue.enqueue(&key("urgent"), at(1), ());
    let begun = taken(&mut queue, at(1));
    assert_eq!(begun, ["urgent", "a", "b", "c", "d"]);
    assert_eq!(queue.next_due(), None, "a running reconcile must end first");
    queue.finish(&key("b"), DONE, at(2));
    assert_eq!(taken(&mut queue, at(2)), ["e"]);
    queue.finish(&key("urgent"), DONE, at(3));
    assert_eq!(taken(&mut queue, at(3)), ["f"]);
}

#[test]
fn all_of_low_priority_begin_when_nothing_else_runs() {
    assert_eq!(taken(&mut six_deferred(), at(1)).len(), 6);
}

#[test]
fn after_half_a_minute_low_priority_comes_first_and_few_at_a_time() {
    let mut queue = six_deferred();
    queue.enqueue(&key("urgent"), at(1), ());
    taken(&mut queue, at(1));
    queue.enqueue(&key("next"), at(31), ());
    queue.enqueue(&key("third"), at(31), ());
    assert_eq!(queue.take(at(31)).unwrap().0, key("next"));
    queue.finish(&key("b"), DONE, at(31));
    assert_eq!(taken(&mut queue, at(31)), ["e", "third"]);
}

#[test]
fn a_deferred_key_is_due_at_its_instant_without_an_event() {
    let mut queue = deferred();
    assert_eq!(queue.next_due(), Some(at(10)));
    assert_eq!(taken(&mut queue, at(10)), ["a"]);
}

#[test]
fn a_key_that_is_not_deferred_has_high_priority() {
    let mut queue = queue();
    queue.enqueue_deferred(&key("a"), at(0), ());
    queue.enqueue(&key("b"), at(1), ());
    assert_eq!(taken(&mut queue, at(1)), ["a", "b"]);
}

#[test]
fn a_clock_that_is_set_back_delays_no_key() {
    let (mut queue, hour) = (queue(), 3_600);
    for name in ["retries", "waits"] {
        queue.enqueue(&key(name), at(hour), ());
        queue.take(at(hour)).unwrap();
    }
    queue.finish(&key("retries"), FAILED, at(hour));
    let until = at(hour + 10);
    queue.finish(&key("waits"), ReconcileResult::Waiting { until }, at(hour));
    assert_eq!(taken(&mut queue, at(0)), ["retries", "waits"]);
    queue.finish(&key("waits"), DONE, at(0));
    queue.enqueue(&key("waits"), at(0), ());
    assert_eq!(taken(&mut queue, at(0)), ["waits"]);
}

#[test]
fn a_clock_that_is_set_back_by_less_than_a_second_changes_nothing() {
    let mut queue = queue();
    queue.enqueue(&key("a"), at(9), ());
    queue.take(at(9)).unwrap();
    queue.finish(
        &key("a"),
        ReconcileResult::Succeeded {
            requeue_at: Some(at(60)),
        },
        at(9),
    );
    let earlier = at(9) - SignedDuration::from_millis(900);
    assert!(queue.take(earlier).is_none());
    assert_eq!(queue.next_due(), Some(at(60)));
}

#[test]
fn a_wait_that_a_server_asks_for_is_at_most_a_fifth_longer() {
    let asked = SignedDuration::from_secs(10);
    let waits: Vec<_> = ["a", "b", "c"]
        .map(|name| Backoff::seeded(0).not_before(asked, &key(name)))
        .into();
    let longest = SignedDuration::from_secs(12);
    assert!(waits.iter().all(|wait| (asked..=longest).contains(wait)));
    assert!(waits[0] != waits[1] || waits[1] != waits[2]);
    let none = Backoff::seeded(0).not_before(SignedDuration::ZERO, &key("a"));
    assert_eq!(none, SignedDuration::ZERO);
}

/// A queue with so many due keys of each namespace, which were enqueued in this order.
fn of_namespaces(all: &[(&str, usize)]) -> Queue<()> {
    let mut queue = Queue::new(Backoff::seeded(0), SLOTS);
    for (namespace, count) in all {
        for number in 0..*count {
            queue.enqueue(&Key::new(*namespace, number.to_string()), at(0), ());
        }
    }
    queue
}

/// The next keys that are taken at that instant; their reconciles end at once.
fn reconciled(queue: &mut Queue<()>, now: Timestamp, most: usize) -> Vec<String> {
    let mut order = Vec::new();
    while order.len() < most
        && let Some((key, _)) = queue.take(now)
    {
        queue.finish(&key, DONE, now);
        order.push(key.to_string());
    }
    order
}

#[test]
fn namespaces_with_due_keys_take_turns() {
    let mut queue = of_namespaces(&[("a", 4), ("b", 2), ("c", 1)]);
    let order = reconciled(&mut queue, at(0), usize::MAX);
    assert_eq!(order, ["a/0", "b/0", "c/0", "a/1", "b/1", "a/2", "a/3"]);
}

#[test]
fn a_key_of_an_idle_namespace_is_next_however_many_keys_of_another_are_due() {
    let mut queue = of_namespaces(&[("a", 1_000)]);
    reconciled(&mut queue, at(0), 500);
    queue.enqueue(&Key::new("b", "kill"), at(1), ());
    assert_eq!(reconciled(&mut queue, at(1), 2), ["b/kill", "a/500"]);
}

#[test]
fn a_namespace_that_was_idle_has_no_turns_to_make_up_for() {
    let mut queue = of_namespaces(&[("a", 100)]);
    reconciled(&mut queue, at(0), 50);
    for number in 0..3 {
        queue.enqueue(&Key::new("b", number.to_string()), at(1), ());
    }
    let order = reconciled(&mut queue, at(1), 6);
    assert_eq!(order, ["b/0", "a/50", "b/1", "a/51", "b/2", "a/52"]);
}

#[test]
fn a_namespace_beyond_its_cpu_budget_comes_last_and_is_not_forgotten() {
    let mut queue = of_namespaces(&[("a", 3), ("b", 4)]);
    let (first, _) = queue.take(at(0)).unwrap();
    assert_eq!(first.to_string(), "a/0");
    queue.charge(&first, SignedDuration::from_millis(19));
    queue.charge(&first, SignedDuration::from_millis(45));
    queue.finish(&first, DONE, at(0));
    let order = reconciled(&mut queue, at(0), usize::MAX);
    assert_eq!(order, ["b/0", "b/1", "b/2", "a/1", "b/3", "a/2"]);
    assert_eq!(queue.next_due(), None);
}

#[test]
fn within_a_namespace_the_order_is_that_of_the_ranks() {
    let mut queue = of_namespaces(&[("a", 3)]);
    for rank in [9, 5, 1] {
        let (key, _) = queue.take(at(0)).unwrap();
        queue.rank(&key, rank);
        let requeue_at = Some(at(5));
        let result = ReconcileResult::Succeeded { requeue_at };
        queue.finish(&key, result, at(0));
    }
    queue.enqueue(&Key::new("b", "0"), at(5), ());
    let order = reconciled(&mut queue, at(5), usize::MAX);
    assert_eq!(order, ["b/0", "a/2", "a/1", "a/0"]);
}

#[test]
fn no_turn_is_remembered_once_nobody_waits() {
    let mut queue = of_namespaces(&[("a", 2), ("b", 1)]);
    reconciled(&mut queue, at(0), 2);
    assert_ne!(queue.turns, Turns::default());
    reconciled(&mut queue, at(0), 1);
    assert_eq!(queue.turns, Turns::default());
}

/// How many reconciles begin that do not end, of so many namespaces with more due keys than there
/// are slots.
fn begun_of(queue: &mut Queue<()>, namespaces: usize) -> BTreeMap<String, usize> {
    for (namespace, number) in (0..namespaces)
        .flat_map(|namespace| (0..=16).map(move |number| (namespace, number)))
    {
        let key = Key::new(format!("slow-{namespace}"), number.to_string());
        queue.enqueue(&key, at(0), ());
    }
    let mut begun = BTreeMap::new();
    while let Some((key, _)) = queue.take(at(0)) {
        *begun.entry(key.namespace.clone()).or_default() += 1;
    }
    begun
}

#[test]
fn namespaces_whose_reconciles_do_not_end_share_the_slots_and_leave_as_many_to_the_next()
{
    let slots = NonZeroUsize::new(16).unwrap();
    for namespaces in 1..slots.get() {
        let mut queue = Queue::new(Backoff::seeded(0), slots);
        let begun = begun_of(&mut queue, namespaces);
        let most = slots.get().div_ceil(namespaces + 1);
        assert_eq!(begun.len(), namespaces, "each has its turn");
        assert!(begun.values().all(|of| *of <= most), "{begun:?}");
        assert!(begun.values().sum::<usize>() < slots.get());
        assert_eq!(queue.next_due(), None, "a reconcile must end first");
        let kill = Key::new("other", "kill");
        queue.enqueue(&kill, at(1), ());
        assert_eq!(queue.take(at(1)).unwrap().0, kill);
    }
}

#[test]
fn a_namespace_that_has_its_share_goes_on_when_one_of_its_reconciles_ends() {
    let mut queue = Queue::new(Backoff::seeded(0), NonZeroUsize::new(16).unwrap());
    assert_eq!(begun_of(&mut queue, 1)["slow-0"], 8);
    queue.finish(&Key::new("slow-0", "1"), DONE, at(2));
    let next = queue.take(at(2)).unwrap().0;
    assert_eq!(next.namespace, "slow-0");
    assert!(queue.take(at(2)).is_none());
}

#[test]
fn a_single_slot_serves_all_namespaces_in_turn() {
    let mut queue = Queue::new(Backoff::seeded(0), NonZeroUsize::MIN);
    for namespace in ["a", "b"] {
        queue.enqueue(&Key::new(namespace, "0"), at(0), ());
    }
    assert_eq!(queue.take(at(0)).unwrap().0.namespace, "a");
    assert!(queue.take(at(0)).is_none());
    assert_eq!(queue.next_due(), None);
    queue.finish(&Key::new("a", "0"), DONE, at(0));
    assert_eq!(queue.take(at(0)).unwrap().0.namespace, "b");
}

#[test]
fn a_due_key_that_may_not_begin_holds_no_guard() {
    let guard = Rc::new(());
    let mut queue = Queue::new(Backoff::seeded(0), NonZeroUsize::MIN);
    queue.enqueue(&key("slow"), at(0), guard.clone());
    drop(queue.take(at(0)));
    queue.enqueue(&key("waits"), at(0), guard.clone());
    assert!(queue.take(at(0)).is_none());
    assert_eq!(Rc::strong_count(&guard), 1);
}

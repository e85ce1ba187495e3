//! Model test of the store against a naive log: at every retained version, a list plus the
//! replayed watch equals a later list.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, u8),
    Remove(u8, u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..2u8, 0..2u8, 0..3u8);
    prop_oneof![
        3 => place().prop_map(|(bucket, space, name)| Step::Put(bucket, space, name)),
        1 => place().prop_map(|(bucket, space, name)| Step::Remove(bucket, space, name)),
    ]
}

type Contents = BTreeMap<Key, u64>;
/// A version and the contents of both buckets at that version.
type Snapshot = (u64, [Contents; 2]);

/// Runs the steps on the store and records every state in a naive model.
fn run(steps: &[Step], retained: usize) -> (Store, Vec<Bucket>, Vec<Snapshot>) {
    let mut store = Store::new(retained);
    let buckets: Vec<Bucket> = ["a", "b"]
        .iter()
        .map(|it| store.bucket(&GroupResource::new("g", it)))
        .collect();
    let mut snapshots = vec![(store.version(), [Contents::new(), Contents::new()])];
    go_on(&mut store, &buckets, &mut snapshots, steps);
    (store, buckets, snapshots)
}

/// Runs further steps, and records every state.
fn go_on(
    store: &mut Store,
    buckets: &[Bucket],
    snapshots: &mut Vec<Snapshot>,
    steps: &[Step],
) {
    for step in steps {
        let mut state = snapshots[snapshots.len() - 1].1.clone();
        match *step {
            Step::Put(bucket, space, name) => {
                let key = Key::new(&format!("ns{space}"), &format!("x{name}"));
                let change =
                    store.put(buckets[usize::from(bucket)], key.clone(), json!({}));
                state[usize::from(bucket)].insert(key, change.version);
            }
            Step::Remove(bucket, space, name) => {
                let key = Key::new(&format!("ns{space}"), &format!("x{name}"));
                let removed = store.remove(buckets[usize::from(bucket)], &key).is_some();
                assert_eq!(removed, state[usize::from(bucket)].remove(&key).is_some());
            }
        }
        snapshots.push((store.version(), state));
    }
}

/// Whether every list at a version is the state at that version, or is refused because it is too old.
fn check_lists(
    store: &Store,
    buckets: &[Bucket],
    snapshots: &[Snapshot],
) -> Result<(), TestCaseError> {
    for (version, state) in snapshots {
        for (bucket, state) in buckets.iter().zip(state) {
            match listed(store, *bucket, Some(*version)) {
                Ok(seen) => prop_assert_eq!(&seen, state),
                Err(too_old) => prop_assert!(*version < too_old.oldest),
            }
        }
    }
    Ok(())
}

fn listed(store: &Store, bucket: Bucket, at: Option<u64>) -> Result<Contents, TooOld> {
    let seen = store.list(bucket, &Range::default(), at)?;
    Ok(seen
        .map(|(key, object)| (key.clone(), version_of(object)))
        .collect())
}

fn version_of(object: &Object) -> u64 {
    meta::version(object).parse().unwrap()
}

proptest! {
    #[test]
    fn a_list_at_a_retained_version_equals_the_state_at_that_version(
        steps in proptest::collection::vec(step(), 0..60), retained in 1usize..40,
    ) {
        let (store, buckets, snapshots) = run(&steps, retained);
        check_lists(&store, &buckets, &snapshots)?;
        let (_, last) = &snapshots[snapshots.len() - 1];
        prop_assert_eq!(&listed(&store, buckets[0], None).unwrap(), &last[0]);
    }

    #[test]
    fn a_clone_and_its_original_do_not_see_each_others_writes(
        steps in proptest::collection::vec(step(), 0..40),
        own in proptest::collection::vec(step(), 0..40),
        of_clone in proptest::collection::vec(step(), 0..40),
        retained in 1usize..40,
    ) {
        let (mut store, buckets, mut snapshots) = run(&steps, retained);
        let mut clone = store.clone();
        let mut snapshots_of_clone = snapshots.clone();
        go_on(&mut store, &buckets, &mut snapshots, &own);
        go_on(&mut clone, &buckets, &mut snapshots_of_clone, &of_clone);
        check_lists(&store, &buckets, &snapshots)?;
        check_lists(&clone, &buckets, &snapshots_of_clone)?;
    }

    #[test]
    fn a_list_plus_its_watch_equals_a_later_list(
        steps in proptest::collection::vec(step(), 0..60), retained in 1usize..40,
    ) {
        let (store, buckets, snapshots) = run(&steps, retained);
        for (version, state) in &snapshots {
            for (bucket, state) in buckets.iter().zip(state) {
                let Ok(changes) = store.changes(*bucket, *version) else { continue };
                let mut state = state.clone();
                let mut last = *version;
                for change in changes {
                    prop_assert!(change.version > last);
                    last = change.version;
                    prop_assert_eq!(version_of(&change.object), change.version);
                    match &change.after {
                        Some(_) => state.insert(change.key.clone(), change.version),
                        None => state.remove(&change.key),
                    };
                }
                prop_assert_eq!(state, listed(&store, *bucket, None).unwrap());
            }
        }
    }

    #[test]
    fn the_last_retained_writes_can_always_be_replayed(
        steps in proptest::collection::vec(step(), 0..60), retained in 1usize..40,
    ) {
        let (store, buckets, _) = run(&steps, retained);
        let since = store.version().saturating_sub(retained as u64 - 1).max(1);
        prop_assert!(store.changes(buckets[0], since).is_ok());
    }
}

#[test]
fn a_namespace_and_a_continue_key_restrict_a_list() {
    let mut store = Store::new(100);
    let bucket = store.bucket(&GroupResource::new("", "things"));
    let places = [
        ("b", "1"),
        ("a", "2"),
        ("a", "1"),
        ("ab", "1"),
        ("a-b", "1"),
    ];
    for (namespace, name) in places {
        store.put(bucket, Key::new(namespace, name), json!({}));
    }
    let names = |range: Range<'_>| -> Vec<String> {
        let seen = store.list(bucket, &range, None).unwrap();
        seen.map(|(key, _)| format!("{}/{}", key.namespace, key.name))
            .collect()
    };
    let all = ["a-b/1", "a/1", "a/2", "ab/1", "b/1"];
    assert_eq!(names(Range::default()), all);
    let namespace = Some("a");
    assert_eq!(
        names(Range {
            namespace,
            after: None
        }),
        ["a/1", "a/2"]
    );
    let after = Key::new("a", "1");
    assert_eq!(
        names(Range {
            namespace,
            after: Some(&after)
        }),
        ["a/2"]
    );
}

#[test]
fn the_retained_changes_have_a_limited_size_together() {
    let mut store = Store::new(16_384);
    let bucket = store.bucket(&GroupResource::new("", "things"));
    let key = Key::new("a", "1");
    let large = json!({"data": "x".repeat(16 * 1024 * 1024)});
    for _ in 0..20 {
        store.put(bucket, key.clone(), large.clone());
    }
    let newest = store.version();
    let changes = |since| store.changes(bucket, since).map(Iterator::count);
    assert_eq!(changes(newest - 7), Ok(7));
    let too_old = changes(newest - 8).unwrap_err();
    assert_eq!(too_old.oldest, newest - 7);
    assert!(
        store
            .list(bucket, &Range::default(), Some(newest - 8))
            .is_err()
    );
    assert!(store.get(bucket, &key).is_some());
}

#[test]
fn small_objects_are_retained_by_their_number() {
    let mut store = Store::new(1000);
    let bucket = store.bucket(&GroupResource::new("", "things"));
    for number in 0..1100 {
        let key = Key::new("a", &number.to_string());
        store.put(bucket, key, json!({"data": "x".repeat(8 * 1024)}));
    }
    let newest = store.version();
    let changes = store.changes(bucket, newest - 999).map(Iterator::count);
    assert_eq!(changes, Ok(999));
}

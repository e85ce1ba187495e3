//! Properties of any configurations applied in any order.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::apply::owned::OwnedFields;

fn any_spec() -> impl Strategy<Value = Value> {
    let tags =
        proptest::sample::subsequence(vec!["a", "b", "c", "d"], 0..=4).prop_shuffle();
    let ports = proptest::sample::subsequence(vec![80, 81, 82], 0..=3).prop_shuffle();
    let limits = proptest::collection::btree_map("[xyz]", 0..3_i64, 0..3);
    (
        proptest::option::of(0..3_i64),
        tags,
        ports,
        limits,
        any::<bool>(),
    )
        .prop_map(|(priority, tags, ports, limits, place)| {
            let mut spec = json!({"tags": tags, "limits": limits});
            if let Some(priority) = priority {
                spec["priority"] = priority.into();
            }
            if place {
                spec["place"] = json!({"x": 1});
            }
            spec["ports"] = ports
                .iter()
                .map(|it| json!({"number": it, "name": format!("p{it}")}))
                .collect();
            spec
        })
}

proptest! {
    #[test]
    fn a_forced_configuration_is_applied_and_then_is_idempotent(
        specs in proptest::collection::vec((any_spec(), 0..3_usize), 1..5)
    ) {
        let mut server = Server::new();
        for (spec, at) in specs {
            let manager = ["a", "b", "c"][at];
            server.try_apply(manager, widget(spec.clone()), OnConflict::Force).unwrap();
            let shape = Shape::of(&server.resource);
            let requested = walk::field_set(&widget(spec.clone()), shape);
            let object = server.object.clone().unwrap();
            let found = walk::field_set(&object, shape).with_named_fields(shape);
            prop_assert_eq!(requested.difference(&found), FieldSet::default());
            // An empty list may come back at the second apply, as in Kubernetes: it had no
            // manager and was removed with its last entry.
            server.try_apply(manager, widget(spec.clone()), OnConflict::Refuse).unwrap();
            let before = server.object.clone();
            server.try_apply(manager, widget(spec), OnConflict::Refuse).unwrap();
            prop_assert_eq!(&server.object, &before);
        }
    }

    #[test]
    fn a_field_that_every_manager_gives_up_is_removed(
        specs in proptest::collection::vec(any_spec(), 1..4)
    ) {
        let mut server = Server::new();
        for (at, spec) in specs.iter().enumerate() {
            server.try_apply(&format!("m{at}"), widget(spec.clone()), OnConflict::Force).unwrap();
        }
        for at in 0..specs.len() {
            let nothing = json!({"apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": "w", "namespace": "default"}});
            server.try_apply(&format!("m{at}"), nothing, OnConflict::Refuse).unwrap();
        }
        let remaining = server.object.clone().unwrap();
        prop_assert!(remaining["spec"].is_null(), "{}", remaining);
        prop_assert_eq!(server.managers(), "");
    }

    #[test]
    fn a_field_set_round_trips_through_fields_v1(spec in any_spec()) {
        let set = walk::field_set(&widget(spec), Shape::of(&widgets()));
        prop_assert_eq!(fields::decode(&fields::encode(&set)), Some(set));
    }

    #[test]
    fn stored_fields_change_as_their_set_does(one in any_spec(), other in any_spec()) {
        let set = |spec| walk::field_set(&widget(spec), Shape::of(&widgets()));
        let (set, change) = (set(one), set(other));
        let stored = fields::encode(&set);
        let stored = || OwnedFields::decode(Cow::Borrowed(&stored)).unwrap();
        prop_assert!(matches!(stored(), OwnedFields::Encoded(_)));
        prop_assert_eq!(stored().may_have_any(&change), !set.intersection(&change).is_empty());
        for path in set.paths().iter().chain(&change.paths()) {
            prop_assert_eq!(stored().has_path(path), set.has_path(path));
        }
        let mut fewer = stored();
        fewer.remove(&change);
        prop_assert_eq!(fewer.encode(), fields::encode(&set.clone().difference(&change)));
        let mut more = stored();
        more.extend(change.clone());
        prop_assert_eq!(more.encode(), fields::encode(&set.union(change)));
    }
}

#[test]
fn fields_that_are_not_stored_as_the_server_writes_them_are_rewritten() {
    let rows = [
        (r#"{"f:b":{},"f:a":{}}"#, r#"{"f:a":{},"f:b":{}}"#),
        (r#"{"f:a":{".":{}}}"#, r#"{"f:a":{}}"#),
        (
            r#"{"f:a":{"f:b":{},".":{}}}"#,
            r#"{"f:a":{".":{},"f:b":{}}}"#,
        ),
        (r#"{".":{},"f:a":{}}"#, r#"{"f:a":{}}"#),
        (r#"{"f:a":{},"x:b":{}}"#, r#"{"f:a":{}}"#),
        (
            r#"{"k:{\"b\":1,\"a\":2}":{}}"#,
            r#"{"k:{\"a\":2,\"b\":1}":{}}"#,
        ),
        (r#"{"v:1":{},"v:1.0":{}}"#, r#"{"v:1":{}}"#),
        (r#"{"v:1":{},"f:a":{}}"#, r#"{"f:a":{},"v:1":{}}"#),
    ];
    for (sent, written) in rows {
        let sent: Value = serde_json::from_str(sent).unwrap();
        let found = OwnedFields::decode(Cow::Owned(sent)).unwrap();
        assert_eq!(found.encode().to_string(), written);
    }
    for malformed in [
        json!([]),
        json!({"f:a": 1}),
        json!({"f:a": {".": 1, "f:b": null}}),
    ] {
        assert_eq!(OwnedFields::decode(Cow::Owned(malformed)), None);
    }
}

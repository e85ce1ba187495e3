use jiff::SignedDuration;
use kubemu_clock::Clock;
use serde_json::{Map, Value, json};

use super::*;
use crate::kind::builtin;

fn resource(kind: &str) -> Resource {
    let all = builtin::resources();
    all.into_iter().find(|it| it.kind == kind).unwrap()
}

#[track_caller]
fn assert_strategic(kind: &str, original: Value, patch: Value, expected: Value) {
    let found = strategic(&resource(kind), &original, &patch);
    assert_eq!(found.map_err(|it| it.message), Ok(expected));
}

#[test]
fn a_custom_resource_does_not_support_strategic_merge_patches() {
    let mut custom = Resource::new("example.com", "v1", "Thing", "things");
    custom.custom = true;
    let strategic = "application/strategic-merge-patch+json";
    assert!(!media_types(&custom).contains(&strategic));
    assert!(media_types(&resource("Node")).contains(&strategic));
}

#[test]
fn json_patch_operations_are_applied_in_order() {
    let object = json!({"spec": {"priority": 50, "list": [1, 2]}});
    let patch = json!([
        {"op": "test", "path": "/spec/priority", "value": 50},
        {"op": "replace", "path": "/spec/priority", "value": 60},
        {"op": "add", "path": "/spec/list/-", "value": 3},
        {"op": "remove", "path": "/spec/list/0"},
        {"op": "copy", "from": "/spec/list", "path": "/spec/copy"},
        {"op": "move", "from": "/spec/list", "path": "/moved"},
    ]);
    let expected = json!({"spec": {"priority": 60, "copy": [2, 3]}, "moved": [2, 3]});
    assert_eq!(json(&object, &patch), Ok(expected));
}

#[test]
fn a_json_patch_that_does_not_apply_is_rejected_as_in_kubernetes() {
    let object = json!({"spec": {"priority": 50}, "list": [1]});
    let rows = [
        json!([{"op": "test", "path": "/spec/priority", "value": 51}]),
        json!([{"op": "remove", "path": "/spec/absent"}]),
        json!([{"op": "replace", "path": "/absent/deep", "value": 1}]),
        json!([{"op": "replace", "path": "/list/1", "value": 1}]),
        json!([{"op": "add", "path": "/absent/deep", "value": 1}]),
        json!([{"op": "frob", "path": "/spec"}]),
        json!([{"op": "replace", "path": "", "value": [1]}]),
    ];
    for patch in rows {
        let refused = json(&object, &patch).unwrap_err();
        assert_eq!(
            (refused.code, refused.reason),
            (422, Reason::Invalid),
            "{patch}"
        );
        assert_eq!(
            refused.message,
            "the server rejected our request due to an error in our request"
        );
    }
}

#[test]
fn a_missing_key_can_be_replaced_as_in_kubernetes() {
    let patch = json!([{"op": "replace", "path": "/spec/absent", "value": 1}]);
    let expected = json!({"spec": {"absent": 1}});
    assert_eq!(json(&json!({"spec": {}}), &patch), Ok(expected));
}

#[test]
fn a_json_patch_parses_paths_like_the_library_of_kubernetes() {
    let object = json!({"spec": {"n": 1, "list": [1, 2]}});
    let rows = [
        // A missing value is null for a copy and for a test.
        (
            json!([{"op": "copy", "from": "/spec/absent", "path": "/new"},
                {"op": "test", "path": "/absent"},
                {"op": "test", "path": "/absent", "value": null}]),
            json!({"spec": {"n": 1, "list": [1, 2]}, "new": null}),
        ),
        // A negative index counts from the end.
        (
            json!([{"op": "remove", "path": "/spec/list/-2"},
                {"op": "add", "path": "/spec/list/-1", "value": 3},
                {"op": "test", "path": "/spec/list/-1", "value": 3}]),
            json!({"spec": {"n": 1, "list": [2, 3]}}),
        ),
        // The part before the first slash is ignored.
        (
            json!([{"op": "add", "path": "spec/x", "value": 1}]),
            json!({"spec": {"n": 1, "list": [1, 2]}, "x": 1}),
        ),
        (
            json!([{"op": "replace", "path": "", "value": {"a": 1}},
                {"op": "add", "path": "/a~1b~0", "value": 2},
                {"op": "test", "path": "", "value": {"a~0": 1}}]),
            Value::Null,
        ),
        (
            json!([{"op": "replace", "path": "/spec/list/-1", "value": 7}]),
            json!({"spec": {"n": 1, "list": [1, 7]}}),
        ),
    ];
    for (patch, expected) in rows {
        let found = json(&object, &patch).unwrap_or_default();
        assert_eq!(found, expected, "{patch}");
    }
    for path in [
        "/spec/list/-",
        "/spec/list/2",
        "/spec/list/-3",
        "/spec/n/x",
        "",
        "x",
    ] {
        for op in ["remove", "test", "replace"] {
            let patch = json!([{"op": op, "path": path, "value": null}]);
            assert_eq!(
                json(&object, &patch).map_err(|it| it.code),
                Err(422),
                "{patch}"
            );
        }
    }
}

#[test]
fn a_json_patch_with_non_string_fields_is_rejected_by_the_decoder() {
    let rows = [
        (
            json!(["x"]),
            "string into Go value of type handlers.jsonPatchOp",
        ),
        (
            json!([{"op": "add", "path": 1}]),
            "number into Go struct field jsonPatchOp.path of type string",
        ),
    ];
    for (patch, why) in rows {
        let refused = json(&json!({}), &patch).unwrap_err();
        let expected = format!("error decoding patch: json: cannot unmarshal {why}");
        assert_eq!((refused.code, refused.message), (400, expected), "{patch}");
    }
}

#[test]
fn a_json_patch_is_limited_in_operations_and_copied_bytes() {
    let object = json!({"a": {"b": "x".repeat(1000)}});
    let one = json!({"op": "test", "path": "/a/b", "value": "y"});
    let many = Value::Array(vec![one; 10_001]);
    let refused = json(&object, &many).unwrap_err();
    assert_eq!(refused.code, 413);
    assert_eq!(
        refused.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is \
         10000, got 10001"
    );
    let double =
        |at: usize| json!({"op": "copy", "from": "/a", "path": format!("/a/{at}")});
    let doubled = Value::Array((0..64).map(double).collect());
    assert_eq!(json(&object, &doubled).unwrap_err().code, 422);
}

#[test]
fn merge_patches_replace_lists_and_drop_nulls() {
    let object = json!({"spec": {"a": 1, "list": [1, 2], "gone": {}}});
    let patch = json!({"spec": {"list": [3], "gone": null, "new": {"x": null, "y": 1}}});
    let expected = json!({"spec": {"a": 1, "list": [3], "new": {"y": 1}}});
    assert_eq!(merge(&object, &patch), Ok(expected));
    assert_eq!(
        merge(&object, &json!([])).unwrap_err().message,
        "error decoding patch: json: cannot unmarshal array into Go value of type \
         map[string]interface {}"
    );
}

#[test]
fn lists_with_a_merge_key_are_merged_entry_by_entry() {
    assert_strategic(
        "Pod",
        json!({"spec": {"nodeName": "n", "containers": [
            {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]},
            {"name": "b", "image": "b:1"}]}}),
        json!({"spec": {"containers": [
            {"name": "b", "image": "b:2"},
            {"name": "a", "env": [{"name": "Y", "value": "2"}]},
            {"name": "c", "image": "c:1"}]}}),
        json!({"spec": {"nodeName": "n", "containers": [
            {"name": "b", "image": "b:2"},
            {"name": "a", "image": "a:1",
                "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
            {"name": "c", "image": "c:1"}]}}),
    );
}

#[test]
fn taints_of_a_node_are_replaced_as_kubectl_taint_expects() {
    assert_strategic(
        "Node",
        json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
        json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}),
        json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}),
    );
}

#[test]
fn cordoning_and_uncordoning_set_and_remove_one_field() {
    let open = json!({"metadata": {"name": "n"}, "spec": {"providerID": "p"}});
    let cordoned = strategic(
        &resource("Node"),
        &open,
        &json!({"spec": {"unschedulable": true}}),
    )
    .unwrap();
    assert_eq!(
        cordoned["spec"],
        json!({"providerID": "p", "unschedulable": true})
    );
    assert_strategic(
        "Node",
        cordoned,
        json!({"spec": {"unschedulable": null}}),
        open,
    );
}

#[test]
fn finalizers_are_merged_without_duplicates_and_deleted_by_directive() {
    assert_strategic(
        "ConfigMap",
        json!({"metadata": {"finalizers": ["a/x", "b/y"]}}),
        json!({"metadata": {"finalizers": ["c/z", "a/x"]}}),
        json!({"metadata": {"finalizers": ["c/z", "a/x", "b/y"]}}),
    );
    assert_strategic(
        "ConfigMap",
        json!({"metadata": {"finalizers": ["a/x", "b/y"]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/x"]}}),
        json!({"metadata": {"finalizers": ["b/y"]}}),
    );
}

#[test]
fn set_element_order_takes_precedence_over_the_order_of_the_server() {
    assert_strategic(
        "Node",
        json!({"status": {"conditions": [
            {"type": "Ready", "status": "False"}, {"type": "Disk", "status": "False"},
            {"type": "Gone", "status": "True"}]}}),
        json!({"status": {
            "$setElementOrder/conditions": [{"type": "Disk"}, {"type": "Ready"}],
            "conditions": [{"type": "Ready", "status": "True"},
                {"$patch": "delete", "type": "Gone"}]}}),
        json!({"status": {"conditions": [
            {"type": "Disk", "status": "False"}, {"type": "Ready", "status": "True"}]}}),
    );
}

/// The CPU time of a strategic patch, the shortest of several.
fn cpu_time(kind: &str, original: &Value, patch: &Value) -> SignedDuration {
    let (resource, clock) = (resource(kind), Clock::system());
    let once = || {
        let start = clock.cpu_time();
        strategic(&resource, original, patch).unwrap();
        clock.cpu_time() - start
    };
    (0..3).map(|_| once()).min().unwrap()
}

fn key(text: &Value) -> String {
    text.as_str().unwrap().to_owned()
}

fn annotations(all: impl Iterator<Item = (String, Value)>) -> Value {
    json!({"metadata": {"annotations": all.collect::<Map<_, _>>()}})
}

#[test]
fn the_time_of_a_patch_does_not_grow_with_the_square_of_the_length_of_its_lists() {
    type List = fn(Vec<Value>) -> Value;
    type Entry = fn(usize) -> Value;
    let finalizers: List = |all| json!({"metadata": {"finalizers": all}});
    let gone: List =
        |all| json!({"metadata": {"$deleteFromPrimitiveList/finalizers": all}});
    let secrets: List = |all| json!({"secrets": all});
    let fields: List = |all| annotations(all.into_iter().map(|it| (key(&it), it)));
    let others: List =
        |all| annotations(all.into_iter().map(|it| (format!("x{}", key(&it)), it)));
    let nulls: List = |all| annotations(all.iter().map(|it| (key(it), Value::Null)));
    let orders: List = |all| {
        let order = |it| (format!("$setElementOrder/{}", key(it)), json!([]));
        annotations(all.iter().map(order))
    };
    let retained: List = |all| {
        let retain = ("$retainKeys".to_owned(), all.clone().into());
        let fields = all.into_iter().map(|it| (key(&it), it));
        annotations(fields.chain([retain]))
    };
    let text: Entry = |at| at.to_string().into();
    let secret: Entry = |at| json!({"name": at.to_string()});
    let no_secret: Entry = |at| json!({"$patch": "delete", "name": at.to_string()});
    for (name, (original, old), (patch, new)) in [
        ("merged texts", (finalizers, text), (finalizers, text)),
        ("removed texts", (finalizers, text), (gone, text)),
        ("merged objects", (secrets, secret), (secrets, secret)),
        ("removed objects", (secrets, secret), (secrets, no_secret)),
        ("removed fields", (fields, text), (nulls, text)),
        ("retained fields", (fields, text), (retained, text)),
        ("orders of absent lists", (others, text), (orders, text)),
    ] {
        let of = |length: usize| {
            let original = original((0..length).map(old).collect());
            // Half of the entries are new.
            let patch = patch((length / 2..length * 3 / 2).map(new).collect());
            cpu_time("ServiceAccount", &original, &patch)
        };
        let (short, long) = (of(100), of(100 * 32));
        // Linear is 32 times the time, and the square 1,024 times.
        assert!(long <= short * 128, "{name}: {short:?} and {long:?}");
    }
}

#[test]
fn directives_replace_and_delete_objects_and_lists() {
    assert_strategic(
        "ConfigMap",
        json!({"data": {"a": "1", "b": "2"}}),
        json!({"data": {"$patch": "replace", "c": "3"}}),
        json!({"data": {"c": "3"}}),
    );
    assert_strategic(
        "ConfigMap",
        json!({"data": {"a": "1"}}),
        json!({"data": {"$patch": "delete"}}),
        json!({"data": {}}),
    );
    assert_strategic(
        "Pod",
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
        json!({"spec": {"containers": [{"name": "c"}, {"$patch": "replace"}]}}),
        json!({"spec": {"containers": [{"name": "c"}]}}),
    );
}

#[test]
fn retain_keys_removes_all_other_keys() {
    assert_strategic(
        "Pod",
        json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
        json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"],
            "hostPath": {"path": "/x"}}]}}),
        json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}),
    );
}

#[test]
fn malformed_strategic_merge_patches_have_kubernetes_messages() {
    let pod = json!({"metadata": {"finalizers": ["a/x"]},
        "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "v"}]}});
    let rows = [
        (
            json!({"spec": {"containers": [{"image": "x", "tty": true}]}}),
            500,
            "map: map[image:x tty:true] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"$patch": "frob"}}),
            500,
            "unknown patch type: frob in map: map[$patch:frob]",
        ),
        (
            json!({"spec": {"$retainKeys": ["volumes"], "containers": []}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!({"spec": {"$setElementOrder/containers": 1}}),
            400,
            "invalid patch format of setElementOrder list",
        ),
    ];
    for (patch, code, message) in rows {
        let refused = strategic(&resource("Pod"), &pod, &patch).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (code, message));
    }
}

#[test]
fn mixed_entry_types_are_rejected_before_lists_of_lists() {
    let node = json!({"metadata": {"finalizers": ["a"]}});
    let refused = |entries: Value| {
        let patch = json!({"metadata": {"finalizers": entries}});
        strategic(&resource("Node"), &node, &patch).unwrap_err()
    };
    let mixed = refused(json!(["b", 1]));
    let expected = "list element types are not identical: [[a] [b 1]]";
    assert_eq!((mixed.code, mixed.message.as_str()), (500, expected));
    // The list follows an entry of another type.
    let listed = refused(json!([["b"]]));
    let expected = "list element types are not identical: [[a] [[b]]]";
    assert_eq!((listed.code, listed.message.as_str()), (500, expected));
    let bare = json!({"metadata": {"finalizers": []}});
    let patch = json!({"metadata": {"finalizers": [["b"]]}});
    let alone = strategic(&resource("Node"), &bare, &patch).unwrap_err();
    assert_eq!(alone.code, 422);
}

/// A list of this many entries, and one operation many times.
fn repeated(entries: usize, operation: &Value, times: usize) -> (Value, Value) {
    let object = json!({"list": vec![0; entries], "map": {}});
    (object, Value::from(vec![operation.clone(); times]))
}

#[test]
fn a_json_patch_that_shifts_too_many_values_is_rejected() {
    let insert = json!({"op": "add", "path": "/list/0", "value": 1});
    let there_and_back = json!({"op": "move", "from": "/list", "path": "/list"});
    for operation in [insert, there_and_back] {
        let (object, few) = repeated(100_000, &operation, 100);
        assert!(json(&object, &few).is_ok(), "{operation}");
        let (object, many) = repeated(100_000, &operation, 300);
        let refused = json(&object, &many).unwrap_err();
        assert_eq!(
            (refused.code, refused.reason),
            (413, Reason::RequestEntityTooLarge)
        );
        let expected = "Request entity too large: the operations of the JSON patch shift more than \
             20000000 values in lists or move them; send several smaller patches, or replace the \
             list as a whole";
        assert_eq!(refused.message, expected);
        let many = many.as_array().unwrap();
        assert!(
            of_webhook(&object, many)
                .unwrap_err()
                .contains("smaller patches")
        );
    }
    // At the end of a list nothing is shifted.
    let append = json!({"op": "add", "path": "/list/-", "value": 1});
    let (object, many) = repeated(100_000, &append, 10_000);
    assert_eq!(
        json(&object, &many).unwrap()["list"]
            .as_array()
            .unwrap()
            .len(),
        110_000
    );
}

#[test]
fn any_number_of_keys_can_be_removed_from_a_large_object() {
    let keys = 0..30_000;
    let object: serde_json::Map<_, _> =
        keys.map(|it| (format!("k{it}"), json!(it))).collect();
    let remove = |it: u32| json!({"op": "remove", "path": format!("/k{it}")});
    let operations: Value = (0..10_000).map(remove).collect();
    let left = json(&Value::Object(object), &operations).unwrap();
    assert_eq!(left.as_object().unwrap().len(), 20_000);
    assert_eq!(
        (&left["k9999"], &left["k10000"]),
        (&Value::Null, &json!(10_000))
    );
}

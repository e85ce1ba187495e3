use serde_json::json;

use super::*;

fn read(keep: &'static FieldMask, value: &Value) -> Value {
    keep.read(value.to_string().as_bytes()).unwrap()
}

/// So many nested lists.
fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn only_the_managed_fields_are_left_out() {
    let text = json!({
        "apiVersion": "v1",
        "metadata": {
            "name": "a",
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {}}}],
            "labels": {"managedFields": "a label"},
        },
        "data": {"metadata": {"managedFields": "what somebody has written"}},
    });
    let mut expected = text.clone();
    expected["metadata"]
        .as_object_mut()
        .unwrap()
        .shift_remove("managedFields");
    assert_eq!(read(&LEAN, &text), expected);
}

#[test]
fn a_value_within_the_depth_limit_is_read_unchanged() {
    let text = format!(
        r#"{{"spec": {}, "all": [null, true, -1, 1, 1.5, "a", {{"b": "c"}}, []]}}"#,
        nested(99)
    );
    let read = LEAN.read(text.as_bytes()).unwrap();
    assert_eq!(read, serde_json::from_str::<Value>(&text).unwrap());
}

#[test]
fn a_field_that_is_nested_too_deep_leaves_the_others_readable() {
    for levels in [101, 1_000, 100_000] {
        let text = format!(
            r#"{{"kind": "A", "spec": {}, "status": {{}}}}"#,
            nested(levels)
        );
        let read = LEAN.read(text.as_bytes()).unwrap();
        let said = json!("(nested more than 100 levels deep)");
        assert_eq!(read, json!({"kind": "A", "spec": said, "status": {}}));
    }
}

#[test]
fn only_the_fields_that_are_kept_are_read() {
    static KEEP: FieldMask = FieldMask::Only(
        &["kind"],
        &[
            ("spec", FieldMask::Only(&["a"], &[])),
            (
                "status",
                FieldMask::Only(
                    &[],
                    &[("conditions", FieldMask::Conditions(&["Ready"]))],
                ),
            ),
        ],
    );
    let all = json!({
        "kind": "K", "data": {"x": 1},
        "spec": {"a": [1, {"b": 2}], "large": ["x", "y"]},
        "status": {"images": [], "conditions": [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": "now"},
            {"type": "DiskPressure", "status": "False"},
        ]},
    });
    let expected = json!({
        "kind": "K", "spec": {"a": [1, {"b": 2}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    assert_eq!(read(&KEEP, &all), expected);
    // A value of another type than expected is kept for the reader of the object.
    let odd = json!({"kind": 1, "spec": "text", "status": {"conditions": null}});
    assert_eq!(read(&KEEP, &odd), odd);
}

static MARKS: FieldMask = FieldMask::Domains(&[
    "own.example",
    "cluster.x-k8s.io",
    ".cluster.x-k8s.io",
    "node-role.kubernetes.io",
]);

#[test]
fn labels_and_annotations_of_other_domains_are_left_out_and_ours_are_bounded() {
    let marks = json!({
        "own.example/cordoned": "a",
        "cluster.x-k8s.io/paused": "",
        "machine.cluster.x-k8s.io/exclude-node-draining": "b",
        "node-role.kubernetes.io/control-plane": "",
        "kubectl.kubernetes.io/last-applied-configuration": "c",
        "evil.example/own.example": "d",
        "team": "e",
    });
    let kept = read(&MARKS, &marks);
    let keys: Vec<&String> = kept.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "own.example/cordoned",
            "cluster.x-k8s.io/paused",
            "machine.cluster.x-k8s.io/exclude-node-draining",
            "node-role.kubernetes.io/control-plane",
        ]
    );
    let fat: Map<String, Value> = (0..100)
        .map(|number| (format!("own.example/{number}"), "x".repeat(2_000).into()))
        .collect();
    let kept = read(&MARKS, &fat.into());
    assert!(
        kept.to_string().len() < 70_000,
        "{}",
        kept.to_string().len()
    );
}

#[test]
fn a_text_is_kept_up_to_its_limit() {
    static SIX: FieldMask = FieldMask::Text(6);
    static SEVEN: FieldMask = FieldMask::Text(7);
    static LARGE: FieldMask = FieldMask::Text(1 << 20);
    // White space between tokens does not count.
    assert_eq!(
        SEVEN.read(br#" { "a" : 1 } "#).unwrap(),
        json!(r#"{"a":1}"#)
    );
    for large in [r#"{"a":1}"#, r#""12345""#, "[1,2,3]", "[0,[0,[0]]]"] {
        assert_eq!(SIX.read(large.as_bytes()).unwrap(), Value::Null, "{large}");
    }
    let whole = json!({
        "a": [null, true, -1, 1, 1.5, 1e300, "\u{e9}\n\"", {"b": {}}, []], "c": "",
    });
    let kept = read(&LARGE, &whole);
    assert_eq!(kept, json!(whole.to_string()));
    let deep = LARGE.read(nested(100_000).as_bytes()).unwrap();
    assert_eq!(deep, json!("(nested more than 100 levels deep)"));
}

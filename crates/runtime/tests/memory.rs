//! How much memory one object of a server can cost. A process of its own, so that nothing else is
//! measured.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use fivespot_runtime::cache::{FieldMask, LEAN, TOO_MANY};

/// The largest object that is read, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// In KiB. The limit of the shipped Deployment is 256 MiB, for all objects together.
const MAX_KIB: u64 = 64 * 1024;

/// What is read of a Node and of its like.
static PARTS: FieldMask = FieldMask::Only(
    &["kind"],
    &[
        (
            "metadata",
            FieldMask::Only(
                &["finalizers", "name", "ownerReferences"],
                &[("labels", FieldMask::Domains(&["own.example"]))],
            ),
        ),
        ("spec", FieldMask::Only(&["taints"], &[])),
        (
            "status",
            FieldMask::Only(&[], &[("conditions", FieldMask::Conditions(&["Ready"]))]),
        ),
    ],
);

/// The peak memory of this process, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_ascii_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// An object in which `DENSE` is replaced by as many items as fit; `ITEM` is the number of each.
fn dense(place: &str, item: &str) -> String {
    let room = MAX_BYTES - place.len();
    let mut items = String::new();
    for number in 0_usize.. {
        let next = item.replace("ITEM", &number.to_string());
        if items.len() + next.len() + 1 > room {
            break;
        }
        if number > 0 {
            items.push(',');
        }
        items.push_str(&next);
    }
    place.replace("DENSE", &items)
}

#[test]
fn the_densest_object_is_read_in_a_small_part_of_the_memory_of_the_operator() {
    for (place, item) in [
        (r#"{"metadata": {"name": "a", "finalizers": [DENSE]}}"#, "0"),
        (
            r#"{"metadata": {"name": "a", "ownerReferences": [DENSE]}}"#,
            "{}",
        ),
        (
            r#"{"metadata": {"name": "a"}, "spec": {"taints": [DENSE]}}"#,
            "[]",
        ),
        (
            r#"{"metadata": {"name": "a"}, "spec": {"taints": {DENSE}}}"#,
            r#""ITEM":0"#,
        ),
        (r#"{"metadata": {"name": "a"}, "kind": [[DENSE]]}"#, "0"),
        (
            r#"{"metadata": {"name": "a", "labels": {"own.example/a": [DENSE]}}}"#,
            "0",
        ),
        (
            r#"{"metadata": {"name": "a", "labels": {DENSE}}}"#,
            r#""own.example/ITEM":0"#,
        ),
        (
            r#"{"metadata": {"name": "a"}, "status": {"conditions": [DENSE]}}"#,
            r#"{"type":"Ready"}"#,
        ),
    ] {
        let text = dense(place, item);
        for mask in [&PARTS, &LEAN] {
            let read = mask.read(text.as_bytes()).unwrap();
            assert_eq!(read["metadata"]["name"], "a", "the other fields are read");
            drop(read);
            assert!(peak() < MAX_KIB, "{place}: {} KiB", peak());
        }
    }
}

#[test]
fn a_field_with_too_many_values_is_named_and_the_others_are_whole() {
    let zeros = "0,".repeat(60_000);
    let text = format!(
        r#"{{"metadata": {{"name": "a", "finalizers": [{zeros} 0]}},
            "spec": {{"taints": [{zeros} 0]}}, "kind": "Node"}}"#
    );
    let read = PARTS.read(text.as_bytes()).unwrap();
    let finalizers = read["metadata"]["finalizers"].as_array().unwrap();
    assert_eq!(finalizers.len(), 60_001);
    assert_eq!(read["spec"]["taints"], TOO_MANY);
    assert_eq!(read["kind"], "Node");
}

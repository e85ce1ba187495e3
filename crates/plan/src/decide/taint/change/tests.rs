use fivespot_api::TaintEffect;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::Node;
use crate::decide::taint::recorded;

fn changed(
    wanted: &[NodeTaint],
    record: &[NodeTaint],
    applied: &[NodeTaint],
    node: &[Taint],
) -> Change {
    change(wanted, Ownership { record, applied }, node)
}

fn ours(text: &str) -> NodeTaint {
    let (key, rest) = text.split_once('=').unwrap();
    let (value, effect) = rest.split_once(':').unwrap();
    let effects = TaintEffect::ALL.into_iter();
    NodeTaint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effects
            .into_iter()
            .find(|one| one.as_str() == effect)
            .unwrap(),
    }
}

fn there(text: &str) -> Taint {
    let (taint, time) = match text.split_once('@') {
        Some((taint, time)) => (taint, Some(time.to_owned())),
        None => (text, None),
    };
    let taint = ours(taint);
    Taint {
        key: taint.key,
        value: taint.value,
        effect: taint.effect.as_str().to_owned(),
        time_added: time,
    }
}

fn shown(taint: &Taint) -> String {
    let time = taint.time_added.as_ref().map(|time| format!("@{time}"));
    format!(
        "{}={}:{}{}",
        taint.key,
        taint.value,
        taint.effect,
        time.unwrap_or_default()
    )
}

fn shown_ours(taint: &NodeTaint) -> String {
    format!("{}={}:{}", taint.key, taint.value, taint.effect.as_str())
}

/// Desired, recorded, on the Node; and then: on the Node, recorded, in conflict.
type Row = ([&'static [&'static str]; 3], [&'static [&'static str]; 3]);

#[test]
fn only_recorded_taints_are_changed_or_removed() {
    let rows: &[Row] = &[
        // The Node has no taint: it is added.
        (
            [
                &["a=1:NoSchedule"],
                &[],
                &["x=y:NoExecute@2026-03-06T12:00:00Z"],
            ],
            [
                &["x=y:NoExecute@2026-03-06T12:00:00Z", "a=1:NoSchedule"],
                &["a=1:NoSchedule"],
                &[],
            ],
        ),
        // An administrator has set the same taint with the same value: it stays foreign.
        (
            [&["a=1:NoSchedule"], &[], &["a=1:NoSchedule"]],
            [&["a=1:NoSchedule"], &[], &["a=1:NoSchedule"]],
        ),
        // A conflict does not stop the others.
        (
            [
                &["a=1:NoSchedule", "b=1:NoSchedule"],
                &[],
                &["a=2:NoSchedule"],
            ],
            [
                &["a=2:NoSchedule", "b=1:NoSchedule"],
                &["b=1:NoSchedule"],
                &["a=1:NoSchedule"],
            ],
        ),
        // The same key with another effect is another taint.
        (
            [&["a=1:NoSchedule"], &[], &["a=1:NoExecute"]],
            [
                &["a=1:NoExecute", "a=1:NoSchedule"],
                &["a=1:NoSchedule"],
                &[],
            ],
        ),
        // The spec's value changes, and the taint keeps its place and its time.
        (
            [
                &["a=2:NoSchedule"],
                &["a=1:NoSchedule"],
                &["a=1:NoSchedule@2026-03-06T12:00:00Z", "x=:NoSchedule"],
            ],
            [
                &["a=2:NoSchedule@2026-03-06T12:00:00Z", "x=:NoSchedule"],
                &["a=2:NoSchedule"],
                &[],
            ],
        ),
        // Another client has changed the value of ours: it is not overwritten.
        (
            [
                &["a=1:NoSchedule"],
                &["a=1:NoSchedule"],
                &["a=9:NoSchedule"],
            ],
            [
                &["a=9:NoSchedule"],
                &["a=1:NoSchedule"],
                &["a=1:NoSchedule"],
            ],
        ),
        // ... until the spec has the same value.
        (
            [
                &["a=9:NoSchedule"],
                &["a=1:NoSchedule"],
                &["a=9:NoSchedule"],
            ],
            [&["a=9:NoSchedule"], &["a=9:NoSchedule"], &[]],
        ),
        // No longer desired.
        (
            [
                &[],
                &["a=1:NoSchedule"],
                &["a=1:NoSchedule", "x=:NoSchedule"],
            ],
            [&["x=:NoSchedule"], &[], &[]],
        ),
        // No longer desired, and changed by another client: it is not removed.
        (
            [&[], &["a=1:NoSchedule"], &["a=9:NoSchedule"]],
            [
                &["a=9:NoSchedule"],
                &["a=1:NoSchedule"],
                &["a=1:NoSchedule"],
            ],
        ),
        // Another client has removed ours: it is added again, or dropped from the record.
        (
            [
                &["a=1:NoSchedule"],
                &["a=1:NoSchedule", "b=1:NoExecute"],
                &[],
            ],
            [&["a=1:NoSchedule"], &["a=1:NoSchedule"], &[]],
        ),
    ];
    for (given, expected) in rows {
        let [wanted, record, node] = given;
        let wanted: Vec<_> = wanted.iter().map(|text| ours(text)).collect();
        let record: Vec<_> = record.iter().map(|text| ours(text)).collect();
        let node: Vec<_> = node.iter().map(|text| there(text)).collect();
        let next = changed(&wanted, &record, &record, &node);
        let found = [
            next.taints.iter().map(shown).collect::<Vec<_>>(),
            next.record.iter().map(shown_ours).collect(),
            next.conflicts.iter().map(shown_ours).collect(),
        ];
        assert_eq!(&found.each_ref().map(Vec::as_slice), expected, "{given:?}");
    }
}

#[test]
fn a_record_of_kubernetes_own_taints_is_ignored() {
    let node = |record: &str| {
        let node = serde_json::json!({"metadata": {
            "annotations": {fivespot_api::name::APPLIED_TAINTS_ANNOTATION: record},
        }});
        let node: k8s_openapi::api::core::v1::Node =
            serde_json::from_value(node).unwrap();
        Node::from(&node)
    };
    let claimed = r#"[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"},
                      {"key":"b","effect":"NoExecute"},{"key":"a","value":"1","effect":"NoExecute"},
                      {"key":"a","value":"2","effect":"NoExecute"}]"#;
    let read: Vec<_> = recorded(&node(claimed)).iter().map(shown_ours).collect();
    assert_eq!(read, ["a=1:NoExecute", "b=:NoExecute"]);
    assert!(recorded(&node("{}")).is_empty() && recorded(&node("not JSON")).is_empty());
}

fn taint() -> impl Strategy<Value = NodeTaint> {
    let keys = select(vec!["a", "b", "example.com/c"]);
    let values = select(vec!["", "1", "2"]);
    (keys, values, select(TaintEffect::ALL.to_vec())).prop_map(|(key, value, effect)| {
        NodeTaint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect,
        }
    })
}

/// Taints with distinct keys and effects.
fn taints() -> impl Strategy<Value = Vec<NodeTaint>> {
    vec(taint(), 0..8).prop_map(|all| {
        let mut distinct: Vec<NodeTaint> = Vec::new();
        for taint in all {
            if !distinct.iter().any(|known| is_same(known, &taint)) {
                distinct.push(taint);
            }
        }
        distinct
    })
}

fn on_node() -> impl Strategy<Value = Vec<Taint>> {
    let times = vec(any::<bool>(), 8);
    (taints(), times).prop_map(|(taints, times)| {
        let both = taints.into_iter().zip(times);
        both.map(|(taint, is_timed)| Taint {
            key: taint.key,
            value: taint.value,
            effect: taint.effect.as_str().to_owned(),
            time_added: is_timed.then(|| "2026-03-06T12:00:00Z".to_owned()),
        })
        .collect()
    })
}

proptest! {
    #[test]
    fn taints_that_are_not_in_both_records_are_unchanged(
        wanted in taints(), record in taints(), applied in taints(), node in on_node(),
    ) {
        let next = changed(&wanted, &record, &applied, &node);
        let both = |ours: &&NodeTaint| applied.iter().any(|of| is_same(of, ours));
        let foreign =
            |taint: &&Taint| !record.iter().filter(both).any(|ours| is_at(taint, ours));
        let before: Vec<_> = node.iter().filter(foreign).collect();
        let is_known = |taint: &&Taint| before.contains(taint);
        let after: Vec<_> = next.taints.iter().filter(is_known).collect();
        prop_assert_eq!(before, after);
        for ours in &next.ours {
            let is_claimed = node.iter().filter(foreign).any(|taint| is_at(taint, ours));
            prop_assert!(!is_claimed, "adopted {ours:?}");
        }
    }

    #[test]
    fn a_desired_taint_is_applied_or_reported_as_a_conflict(
        wanted in taints(), record in taints(), node in on_node(),
    ) {
        let next = changed(&wanted, &record, &record, &node);
        for desired in &wanted {
            let is_there = next.taints.iter().any(|taint| is_at(taint, desired) && taint.value == desired.value);
            let is_ours = next.ours.contains(desired);
            prop_assert!(is_there && is_ours || next.conflicts.contains(desired));
        }
        for ours in &next.ours {
            prop_assert!(next.taints.iter().any(|taint| is_at(taint, ours)));
        }
    }

    #[test]
    fn a_written_change_is_settled(
        wanted in taints(), record in taints(), applied in taints(), node in on_node(),
    ) {
        let next = changed(&wanted, &record, &applied, &node);
        let again = changed(&wanted, &next.record, &next.ours, &next.taints);
        prop_assert_eq!(&again.claims, &[]);
        let settled = Change { before: next.before.clone(), claims: next.claims.clone(), ..again };
        prop_assert_eq!(&settled, &next);
    }

    #[test]
    fn changed_taints_are_claimed_before_they_are_on_the_node(
        wanted in taints(), record in taints(), applied in taints(), node in on_node(),
    ) {
        let next = changed(&wanted, &record, &applied, &node);
        for taint in next.taints.iter().filter(|taint| !node.contains(taint)) {
            let is_claimed = next.claims.iter().any(|claim| {
                is_at(taint, claim) && claim.value == taint.value
            });
            prop_assert!(is_claimed, "{taint:?}");
        }
        for ours in &next.before {
            let is_kept = next.claimed().iter().any(|of| is_same(of, ours));
            prop_assert!(is_kept, "the status lists {ours:?} until it is off the Node");
        }
    }

    #[test]
    fn an_empty_spec_removes_all_our_taints(record in taints(), node in on_node()) {
        let next = changed(&[], &record, &record, &node);
        prop_assert_eq!(next.ours.len(), next.conflicts.len());
        let is_ours = |taint: &&Taint| record.iter().any(|ours| is_at(taint, ours) && taint.value == ours.value);
        prop_assert_eq!(next.taints.iter().filter(is_ours).count(), 0);
    }
}

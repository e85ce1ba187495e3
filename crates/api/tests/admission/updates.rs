//! An object that was stored before the rules were in force can still be managed.

use std::collections::BTreeSet;

use fivespot_api::ScheduledMachine;
use fivespot_api::rules::{self, RULES};
use serde_json::{Value, json};

use super::evaluator::Evaluator;

/// The rules about a field that was in no schema before them, and about classes, before which the
/// schema required what they require: no stored object violates them.
const OF_NEW_FIELDS: [&str; 9] = [
    "SM088", "SM096", "SM124", "SM125", "SM126", "SM127", "SM128", "SM129", "SM846",
];

/// Objects that together violate every rule; some rules exclude each other.
fn violators() -> [Value; 7] {
    let mut large = json!({"bad key": "", "cluster.x-k8s.io/cluster-name": "other"});
    for place in 0..17 {
        large[format!("key-{place}")] = json!("a".repeat(4000));
    }
    let metadata = json!({
        "name": "other",
        "labels": {"bad key": "bad value", "k8s.io/x": "y"},
        "annotations": large,
    });
    let violator = |spec: Value| {
        json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledMachine",
            "metadata": {
                "name": "not.a.label",
                "namespace": "default",
                "uid": "0b1c",
                "resourceVersion": "7",
                "generation": 1,
                "creationTimestamp": "2026-03-02T09:00:00Z",
                "finalizers": ["5spot.finos.org/scheduledmachine"],
            },
            "spec": spec,
            "status": {"machineRef": {
                "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "not.a.label",
                "uid": "1",
            }},
        })
    };
    [
        violator(json!({
            "schedule": {
                "cron": "@daily",
                "daysOfWeek": ["monday"],
                "hoursOfDay": ["9am", "24"],
                "duration": "soon",
                "timezone": "../etc/passwd",
            },
            "clusterName": "",
            "bootstrapSpec": {"apiVersion": "v1", "kind": "", "namespace": "other",
                              "metadata": metadata, "spec": {}},
            "infrastructureSpec": {"apiVersion": "v1", "kind": "", "namespace": "other",
                                   "metadata": metadata, "spec": {}},
            "kata": {"kind": "ConfigMap"},
            "machineTemplate": {
                "labels": {"bad key": "bad value", "k8s.io/x": "y"},
                "annotations": large,
                "version": "latest",
                "failureDomain": "",
            },
            "gracefulShutdownTimeout": "five minutes",
            "nodeDrainTimeout": "five minutes",
            "killIfCommands": [" "],
            "reclaim": {"commands": [" "], "return": {"after": "soon"}},
            "nodeTaints": [
                {"key": "bad key", "value": "bad value", "effect": "NoSchedule"},
                {"key": "kubernetes.io/x", "effect": "NoExecute"},
            ],
        })),
        violator(json!({
            "schedule": {"cron": "60 24 0 13 8", "duration": "30s"},
            "clusterName": "-bad",
            "bootstrapSpec": {"apiVersion": "apps/1", "kind": "bad-List", "spec": {}},
            "infrastructureSpec": {"apiVersion": "apps/1", "kind": "bad-List", "spec": {}},
            "gracefulShutdownTimeout": "25h",
            "nodeDrainTimeout": "25h",
        })),
        violator(json!({
            "schedule": {"daysOfWeek": ["mon"], "duration": "8h"},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "k0smotron.io/v1", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec":
                {"apiVersion": "k0smotron.io/v1", "kind": "RemoteMachine", "spec": {}},
        })),
        violator(json!({
            "schedule": {
                "cron": "0 9 * * *",
                "windows": [
                    {"name": "Night", "days": ["Mon"], "start": "24:00", "end": "7"},
                    {"name": "none", "start": "09:00"},
                    {"name": "short", "start": "09:00", "duration": "1s"},
                    {"name": "word", "start": "09:00", "duration": "soon"},
                ],
                "exceptions": [
                    {"name": "No Dates", "action": "Run"},
                    {"name": "a", "action": "Stop", "startDate": "b", "endDate": "a"},
                    {"name": "c", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-23"},
                    {"name": "b", "action": "Stop", "calendarRef": {"name": "A/B"}},
                ],
            },
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "k0smotron.io/v1", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec":
                {"apiVersion": "k0smotron.io/v1", "kind": "RemoteMachine", "spec": {}},
            "provisioning": {"leadTime": "x", "timeout": "x", "minimumRun": "x"},
            "shutdown": {"lastCall": "x"},
        })),
        violator(json!({
            "schedule": {"daysOfWeek": ["mon"], "hoursOfDay": ["9"]},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "k0smotron.io/v1", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec":
                {"apiVersion": "k0smotron.io/v1", "kind": "RemoteMachine", "spec": {}},
            "provisioning": {"leadTime": "3h", "timeout": "25h", "minimumRun": "25h"},
            "reclaim": {"return": {"after": "25h"}},
            "shutdown": {"lastCall": "25h"},
        })),
        violator(json!({
            "schedule": {"apiVersion": "v1", "kind": "other", "cron": "0 9 * * *"},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "k0smotron.io/v1", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec":
                {"apiVersion": "k0smotron.io/v1", "kind": "RemoteMachine", "spec": {}},
        })),
        violator(json!({
            "schedule": {"name": "A/B", "daysOfWeek": ["mon"], "hoursOfDay": ["9"]},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "k0smotron.io/v1", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec":
                {"apiVersion": "k0smotron.io/v1", "kind": "RemoteMachine", "spec": {}},
        })),
    ]
}

fn evaluators() -> [Evaluator; 3] {
    [
        Evaluator::shipped(),
        Evaluator::crd_alone(),
        Evaluator::policy_alone(),
    ]
}

/// The object with one member changed.
fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    let mut changed = object.clone();
    changed.pointer_mut(parent).unwrap()[member] = value;
    changed
}

#[test]
fn the_violators_violate_every_rule_that_is_not_about_a_change() {
    let broken: BTreeSet<_> = violators()
        .into_iter()
        .flat_map(|object| {
            rules::check(&serde_json::from_value::<ScheduledMachine>(object).unwrap())
        })
        .map(|violation| violation.rule)
        .collect();
    let all: BTreeSet<_> = RULES
        .iter()
        .filter(|rule| rule.requirement.predicate.is_some())
        .map(|rule| rule.id)
        .filter(|id| !OF_NEW_FIELDS.contains(id))
        // An empty name of a Cluster is read as none.
        .map(|id| if id == "SM001" { "SM124" } else { id })
        .collect();
    assert_eq!(broken, all);
    for evaluator in evaluators() {
        for violator in violators() {
            assert_ne!(evaluator.create(violator), [""; 0]);
        }
    }
}

#[test]
fn the_kill_switch_can_be_set_and_the_schedule_be_disabled() {
    for evaluator in evaluators() {
        for old in violators() {
            for (pointer, value) in [
                ("/spec/killSwitch", json!(true)),
                ("/spec/enabled", json!(false)),
                ("/spec/schedule/enabled", json!(false)),
            ] {
                let new = with(&old, pointer, value);
                assert_eq!(
                    evaluator.update(old.clone(), new),
                    [""; 0],
                    "{pointer} of {old}"
                );
            }
        }
    }
}

#[test]
fn labels_can_be_edited_and_finalizers_be_removed() {
    for evaluator in evaluators() {
        for old in violators() {
            let labelled = with(&old, "/metadata/labels", json!({"team": "a"}));
            assert_eq!(evaluator.update(old.clone(), labelled), [""; 0]);
            let released = with(&old, "/metadata/finalizers", json!([]));
            assert_eq!(evaluator.update(old.clone(), released), [""; 0]);
            let leaving = with(
                &old,
                "/metadata/deletionTimestamp",
                json!("2026-03-02T10:00:00Z"),
            );
            let gone = with(&leaving, "/metadata/finalizers", json!([]));
            assert_eq!(evaluator.update(leaving, gone), [""; 0]);
        }
    }
}

#[test]
fn an_edit_that_changes_no_input_is_admitted() {
    for evaluator in evaluators() {
        for old in violators() {
            let new = with(&old, "/spec/priority", json!(1));
            let new = with(
                &new,
                "/spec/bootstrapSpec/spec",
                json!({"version": "v1.30.0"}),
            );
            assert_eq!(evaluator.update(old, new), [""; 0]);
        }
    }
}

#[test]
fn a_taint_can_be_removed_while_an_invalid_one_is_unchanged() {
    for evaluator in evaluators() {
        let [old, ..] = violators();
        let kept = old.pointer("/spec/nodeTaints/0").unwrap().clone();
        let new = with(&old, "/spec/nodeTaints", json!([kept]));
        assert_eq!(evaluator.update(old, new), [""; 0]);
    }
}

#[test]
fn changing_an_input_without_fixing_it_is_rejected() {
    let touches = [
        (
            "/spec/gracefulShutdownTimeout",
            json!("six minutes"),
            "duration string",
        ),
        (
            "/spec/schedule/hoursOfDay",
            json!(["9am"]),
            "must be hours or ranges",
        ),
        (
            "/spec/schedule/cron",
            json!("@hourly"),
            "must be five fields",
        ),
        (
            "/spec/bootstrapSpec/apiVersion",
            json!("v2"),
            "namespaced API group",
        ),
        (
            "/spec/killIfCommands",
            json!(["", " "]),
            "must not be blank",
        ),
        (
            "/spec/nodeTaints",
            json!([{"key": "other key", "effect": "NoSchedule"}]),
            "must be a qualified name",
        ),
        ("/spec/clusterName", json!("-"), "must be at most 63"),
    ];
    for evaluator in evaluators() {
        let [old, ..] = violators();
        for (pointer, value, words) in &touches {
            let errors =
                evaluator.update(old.clone(), with(&old, pointer, value.clone()));
            assert!(
                errors.iter().any(|text| text.contains(words)),
                "{pointer}: {errors:?}"
            );
        }
    }
}

#[test]
fn the_cluster_cannot_be_changed_while_the_machine_exists_and_can_when_it_is_gone() {
    for evaluator in evaluators() {
        let [.., old] = violators();
        let new = with(&old, "/spec/clusterName", json!("staging"));
        let errors = evaluator.update(old.clone(), new.clone());
        assert!(
            errors.iter().any(|text| text.contains("must not change")),
            "{errors:?}"
        );
        let idle = with(&old, "/status", json!({}));
        assert_eq!(
            evaluator.update(idle, with(&new, "/status", json!({}))),
            [""; 0]
        );
    }
}

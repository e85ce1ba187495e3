//! Reading and writing in both contract versions.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]

use std::time::Duration;

use fivespot_capi::{
    Cluster, Contract, Error, Machine, MachineDraft, MachinePatch, Meta, Owner, Provider,
    Reference, duration, key,
};
use serde_json::{Value, json};

/// A running Machine as the API server of a version returns it.
fn running(contract: Contract) -> Value {
    let meta = json!({
        "name": "worker", "namespace": "default", "uid": "m-1", "resourceVersion": "42",
        "finalizers": [key::MACHINE_FINALIZER],
        "labels": { key::CLUSTER_NAME: "prod" },
        "ownerReferences": [{
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "name": "worker", "uid": "sm-1", "controller": true, "blockOwnerDeletion": true,
        }],
    });
    let (spec, status) = match contract {
        Contract::V1Beta1 => (
            json!({
                "clusterName": "prod",
                "bootstrap": { "configRef": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                    "kind": "K0sWorkerConfig", "name": "worker", "namespace": "default",
                } },
                "infrastructureRef": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "RemoteMachine", "name": "worker", "namespace": "default",
                },
                "providerID": "remote-machine://192.0.2.7:22",
                "nodeDrainTimeout": "5m0s",
                "nodeVolumeDetachTimeout": "300s",
            }),
            json!({
                "phase": "Running", "bootstrapReady": true, "infrastructureReady": true,
                "nodeRef": { "apiVersion": "v1", "kind": "Node", "name": "worker", "uid": "n-1" },
                "conditions": [
                    { "type": "Ready", "status": "True" },
                    { "type": "NodeHealthy", "status": "True" },
                ],
            }),
        ),
        Contract::V1Beta2 => (
            json!({
                "clusterName": "prod",
                "bootstrap": { "configRef": {
                    "apiGroup": "bootstrap.cluster.x-k8s.io",
                    "kind": "K0sWorkerConfig", "name": "worker",
                } },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "RemoteMachine", "name": "worker",
                },
                "providerID": "remote-machine://192.0.2.7:22",
                "deletion": {
                    "nodeDrainTimeoutSeconds": 300, "nodeVolumeDetachTimeoutSeconds": 300,
                },
            }),
            json!({
                "phase": "Running",
                "initialization": {
                    "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true,
                },
                "nodeRef": { "name": "worker" },
                "conditions": [
                    { "type": "Ready", "status": "True", "reason": "Ready", "message": "" },
                    { "type": "NodeReady", "status": "True", "reason": "NodeReady" },
                ],
            }),
        ),
    };
    json!({
        "apiVersion": contract.api_version(), "kind": "Machine",
        "metadata": meta, "spec": spec, "status": status,
    })
}

fn draft() -> MachineDraft {
    MachineDraft {
        name: "worker".to_owned(),
        namespace: "default".to_owned(),
        labels: [].into(),
        annotations: [].into(),
        owners: vec![],
        cluster_name: "prod".to_owned(),
        bootstrap: Reference::new(
            "bootstrap.cluster.x-k8s.io/v1beta2",
            "K0sWorkerConfig",
            "worker",
        ),
        infrastructure: Reference::new(
            "infrastructure.cluster.x-k8s.io/v1",
            "RemoteMachine",
            "worker",
        ),
        drain_timeout: Duration::from_mins(5),
        version: None,
        failure_domain: None,
    }
}

#[test]
fn version_and_failure_domain_have_the_same_path_in_both_versions() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let plain = draft().json(contract);
        assert_eq!(plain["spec"].get("version"), None);
        assert_eq!(plain["spec"].get("failureDomain"), None);
        let draft = MachineDraft {
            version: Some("v1.31.2".to_owned()),
            failure_domain: Some("zone-1".to_owned()),
            ..draft()
        };
        let spec = &draft.json(contract)["spec"];
        assert_eq!(spec["version"], "v1.31.2");
        assert_eq!(spec["failureDomain"], "zone-1");
    }
}

#[test]
fn a_running_machine_reads_the_same_in_both_versions() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let machine = Machine::read(&running(contract)).unwrap();
        assert_eq!(machine.contract, contract);
        assert_eq!(machine.cluster_name, "prod");
        assert_eq!(machine.node.as_ref().unwrap().name, "worker");
        assert_eq!(
            machine.provider_id.as_deref(),
            Some("remote-machine://192.0.2.7:22")
        );
        assert!(machine.had_bootstrap && machine.had_infrastructure);
        assert_eq!(machine.drain_timeout, Some(Duration::from_mins(5)));
        assert_eq!(machine.volume_detach_timeout, Some(Duration::from_mins(5)));
        assert_eq!(machine.is_node_ready(), Some(true));
        let bootstrap = machine.bootstrap.unwrap();
        assert_eq!(
            (
                bootstrap.group.as_str(),
                bootstrap.kind.as_str(),
                bootstrap.name.as_str()
            ),
            ("bootstrap.cluster.x-k8s.io", "K0sWorkerConfig", "worker"),
        );
        assert_eq!(machine.meta.controller().unwrap().uid, "sm-1");
        assert!(!machine.meta.is_deleting);
    }
}

#[test]
fn only_the_older_version_has_the_uid_of_the_node() {
    let uid = |contract| Machine::read(&running(contract)).unwrap().node.unwrap().uid;
    assert_eq!(uid(Contract::V1Beta1).as_deref(), Some("n-1"));
    assert_eq!(uid(Contract::V1Beta2), None);
}

#[test]
fn a_fresh_machine_has_no_node_and_nothing_ready() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let machine = Machine::read(&json!({
            "apiVersion": contract.api_version(), "kind": "Machine",
            "metadata": { "name": "worker", "uid": "m-1" },
        }))
        .unwrap();
        assert_eq!(
            (machine.node.is_some(), machine.provider_id.is_some()),
            (false, false)
        );
        assert_eq!(
            (machine.had_bootstrap, machine.had_infrastructure),
            (false, false)
        );
        assert_eq!(machine.is_node_ready(), None);
        assert_eq!(machine.deletion_progress(), None);
        assert!(!machine.wants_remediation());
    }
}

#[test]
fn a_timeout_of_zero_reads_as_no_limit() {
    let mut machine = running(Contract::V1Beta2);
    machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"] = json!(0);
    assert_eq!(Machine::read(&machine).unwrap().drain_timeout, None);
    let mut machine = running(Contract::V1Beta1);
    machine["spec"]["nodeDrainTimeout"] = json!("0s");
    assert_eq!(Machine::read(&machine).unwrap().drain_timeout, None);
}

#[test]
fn the_step_that_a_deletion_waits_for_is_found_in_both_versions() {
    let mut machine = running(Contract::V1Beta1);
    machine["status"]["conditions"] = json!([
        { "type": "PreDrainDeleteHookSucceeded", "status": "True" },
        { "type": "DrainingSucceeded", "status": "False", "reason": "Draining", "message": "2 pods" },
    ]);
    let read = Machine::read(&machine).unwrap();
    assert_eq!(read.deletion_progress().unwrap().reason, "Draining");
    let mut machine = running(Contract::V1Beta2);
    machine["status"]["conditions"] =
        json!([{ "type": "Deleting", "status": "True", "reason": "DrainingNode" }]);
    let read = Machine::read(&machine).unwrap();
    assert_eq!(read.deletion_progress().unwrap().reason, "DrainingNode");
    machine["status"]["conditions"] =
        json!([{ "type": "Deleting", "status": "False", "reason": "NotDeleting" }]);
    let read = Machine::read(&machine).unwrap();
    assert!(read.deletion_progress().is_none(), "it has not begun");
}

#[test]
fn a_health_check_wants_a_remediation_while_its_condition_is_false() {
    for (status, wants) in [("False", true), ("True", false), ("Unknown", false)] {
        let mut machine = running(Contract::V1Beta2);
        machine["status"]["conditions"] =
            json!([{ "type": key::OWNER_REMEDIATED, "status": status }]);
        let machine = Machine::read(&machine).unwrap();
        assert_eq!(machine.wants_remediation(), wants, "{status}");
    }
}

#[test]
fn an_object_is_owned_by_whoever_a_reference_names() {
    let meta = Machine::read(&running(Contract::V1Beta2)).unwrap().meta;
    assert!(meta.is_owned_by("sm-1"));
    assert!(!meta.is_owned_by("m-1"));
}

#[test]
fn references_are_to_the_same_object_if_only_their_versions_differ() {
    let host = Reference::new("infrastructure.cluster.x-k8s.io/v1", "Host", "a");
    for (api_version, kind, name, is_same) in [
        ("infrastructure.cluster.x-k8s.io/v2", "Host", "a", true),
        ("bootstrap.cluster.x-k8s.io/v1", "Host", "a", false),
        ("infrastructure.cluster.x-k8s.io/v1", "Guest", "a", false),
        ("infrastructure.cluster.x-k8s.io/v1", "Host", "b", false),
    ] {
        let other = Reference::new(api_version, kind, name);
        assert_eq!(host.is_same_object(&other), is_same, "{other:?}");
    }
}

#[test]
fn a_created_machine_reads_like_its_draft() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let mut stored = draft().json(contract);
        stored["metadata"]["uid"] = json!("m-1");
        let machine = Machine::read(&stored).unwrap();
        assert_eq!(machine.drain_timeout, Some(Duration::from_mins(5)));
        assert_eq!(machine.volume_detach_timeout, Some(Duration::from_mins(5)));
        assert!(
            machine
                .bootstrap
                .unwrap()
                .is_same_object(&draft().bootstrap)
        );
        assert!(
            machine
                .infrastructure
                .unwrap()
                .is_same_object(&draft().infrastructure)
        );
        assert_eq!(machine.meta.labels[key::CLUSTER_NAME], "prod");
    }
}

#[test]
fn a_timeout_of_zero_is_written_as_one_second() {
    for (contract, path, written) in [
        (Contract::V1Beta1, "/spec/nodeDrainTimeout", json!("1s")),
        (
            Contract::V1Beta1,
            "/spec/nodeVolumeDetachTimeout",
            json!("1s"),
        ),
        (
            Contract::V1Beta2,
            "/spec/deletion/nodeDrainTimeoutSeconds",
            json!(1),
        ),
        (
            Contract::V1Beta2,
            "/spec/deletion/nodeVolumeDetachTimeoutSeconds",
            json!(1),
        ),
    ] {
        let draft = MachineDraft {
            drain_timeout: Duration::ZERO,
            ..draft()
        };
        assert_eq!(draft.json(contract).pointer(path), Some(&written), "{path}");
    }
}

#[test]
fn references_have_the_form_of_their_version() {
    let older = draft().json(Contract::V1Beta1);
    assert_eq!(
        older["spec"]["infrastructureRef"],
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "RemoteMachine",
            "name": "worker", "namespace": "default",
        }),
    );
    let newer = draft().json(Contract::V1Beta2);
    assert_eq!(
        newer["spec"]["infrastructureRef"],
        json!({
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine",
            "name": "worker",
        }),
    );
}

#[test]
fn empty_values_are_not_written() {
    fn has_empty(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
            Value::Object(fields) => fields.is_empty() || fields.values().any(has_empty),
            Value::Bool(_) => false,
            Value::Number(number) => number.as_u64() == Some(0),
        }
    }
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let object = draft().json(contract);
        assert!(!has_empty(&object), "{object}");
    }
}

#[test]
fn only_a_controlling_owner_blocks_its_deletion() {
    let owner = |is_controller| Owner {
        api_version: "v1".to_owned(),
        kind: "K".to_owned(),
        name: "n".to_owned(),
        uid: "u".to_owned(),
        is_controller,
    };
    assert_eq!(owner(true).json()["blockOwnerDeletion"], true);
    let plain = owner(false).json();
    assert!(
        plain.get("controller").is_none() && plain.get("blockOwnerDeletion").is_none()
    );
}

#[test]
fn a_patch_has_only_its_preconditions_and_the_change() {
    let machine = Machine::read(&running(Contract::V1Beta2)).unwrap();
    let patch = MachinePatch {
        annotations: [
            ("a".to_owned(), Some("1".to_owned())),
            ("b".to_owned(), None),
        ]
        .into(),
        drain_timeout: None,
    };
    assert_eq!(
        patch.json(&machine),
        json!({ "metadata": {
            "uid": "m-1", "resourceVersion": "42", "annotations": { "a": "1", "b": null },
        } }),
    );
    assert!(!patch.is_empty() && MachinePatch::default().is_empty());
}

#[test]
fn a_cluster_is_initialized_with_infrastructure_and_control_plane() {
    let read = |contract: Contract, status: Value| {
        Cluster::read(&json!({
            "apiVersion": contract.api_version(), "kind": "Cluster",
            "metadata": { "name": "prod", "uid": "c-1" }, "status": status,
        }))
        .unwrap()
        .is_initialized()
    };
    let up = json!([{ "type": "ControlPlaneInitialized", "status": "True" }]);
    assert!(read(
        Contract::V1Beta1,
        json!({ "infrastructureReady": true, "conditions": up })
    ));
    assert!(!read(
        Contract::V1Beta1,
        json!({ "infrastructureReady": true, "controlPlaneReady": true })
    ));
    assert!(!read(Contract::V1Beta1, json!({ "conditions": up })));
    let both =
        json!({ "infrastructureProvisioned": true, "controlPlaneInitialized": true });
    assert!(read(Contract::V1Beta2, json!({ "initialization": both })));
    let half = json!({ "infrastructureProvisioned": true });
    assert!(!read(Contract::V1Beta2, json!({ "initialization": half })));
    assert!(!read(
        Contract::V1Beta2,
        json!({ "infrastructureReady": true, "conditions": up })
    ));
}

#[test]
fn a_cluster_is_paused_by_its_spec_or_by_any_value_of_the_annotation() {
    let mut object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "prod", "uid": "c-1" },
    });
    assert!(!Cluster::read(&object).unwrap().is_paused);
    object["metadata"]["annotations"] = json!({ key::PAUSED: "false" });
    assert!(Cluster::read(&object).unwrap().is_paused);
    object["metadata"]["annotations"] = json!({});
    object["spec"] = json!({ "paused": true });
    assert!(Cluster::read(&object).unwrap().is_paused);
}

#[test]
fn a_provider_object_of_either_contract_is_ready() {
    let read = |status: Value| {
        Provider::read(&json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
            "metadata": { "name": "worker", "uid": "i-1" }, "status": status,
        }))
        .unwrap()
        .is_ready
    };
    assert!(read(json!({ "ready": true })));
    assert!(read(json!({ "initialization": { "provisioned": true } })));
    assert!(read(
        json!({ "initialization": { "dataSecretCreated": true } })
    ));
    assert!(!read(json!({ "ready": "true" })));
    assert!(!read(json!(null)));
}

#[test]
fn an_object_without_a_required_field_is_an_error_with_its_name() {
    let error = Meta::read(&json!({ "kind": "Machine", "metadata": { "name": "m" } }))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Machine has no metadata.uid; read it from an API server, not from a manifest",
    );
    let error =
        Machine::read(&json!({ "apiVersion": "cluster.x-k8s.io/v1alpha4" })).unwrap_err();
    assert_eq!(
        error,
        Error::UnknownVersion {
            found: "cluster.x-k8s.io/v1alpha4".to_owned()
        }
    );
    for nonsense in [json!(null), json!([]), json!("x"), json!({ "metadata": 1 })] {
        assert!(Provider::read(&nonsense).is_err(), "{nonsense}");
        assert!(Machine::read(&nonsense).is_err(), "{nonsense}");
        assert!(Cluster::read(&nonsense).is_err(), "{nonsense}");
    }
}

#[test]
fn an_owner_is_a_machine_only_with_the_kind_and_the_group_of_cluster_api() {
    for (api_version, kind, is_machine) in [
        ("cluster.x-k8s.io/v1beta1", "Machine", true),
        ("cluster.x-k8s.io/v1beta2", "Machine", true),
        ("cluster.x-k8s.io/v1beta2", "MachineSet", false),
        ("machine.openshift.io/v1beta1", "Machine", false),
        ("v1", "Machine", false),
    ] {
        let meta = json!({"name": "a", "uid": "1", "ownerReferences": [
            {"apiVersion": api_version, "kind": kind, "name": "m", "uid": "2"}]});
        let provider = Provider::read(&json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "RemoteMachine", "metadata": meta,
        }));
        let owner = &provider.unwrap().meta.owners[0];
        assert_eq!(owner.is_machine(), is_machine, "{api_version} {kind}");
    }
}

#[test]
fn the_problem_of_a_provider_is_its_condition_and_its_failure() {
    let problem = |status: Value| {
        let provider = Provider::read(&json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "RemoteMachine", "metadata": {"name": "a", "uid": "1"},
            "status": status,
        }));
        provider.unwrap().problem
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message});
    let quota = condition("Quota", "False", "Exceeded", "no\nroom");
    let ready = condition("Ready", "False", "Failed", "no host: timed out");
    let rows = [
        (json!({}), None),
        (
            json!({"conditions": [condition("Ready", "True", "Ready", "fine")]}),
            None,
        ),
        (
            json!({"conditions": [condition("Ready", "False", "Waiting", "")]}),
            None,
        ),
        (json!({"conditions": [quota]}), Some("Exceeded: no room")),
        (
            json!({"conditions": [quota, ready]}),
            Some("Failed: no host: timed out"),
        ),
        (
            json!({"conditions": [condition("Ready", "False", "", "down")]}),
            Some("down"),
        ),
        (
            json!({"conditions": [{"type": "Ready", "status": "False", "severity": "Info",
                "reason": "Waiting", "message": "soon"}]}),
            None,
        ),
        (
            json!({"failureReason": "CreateError", "failureMessage": "no host"}),
            Some("CreateError: no host"),
        ),
        (
            json!({"deprecated": {"v1beta1": {"failureReason": "CreateError"}}}),
            Some("CreateError"),
        ),
        // Only a failure that the condition does not contain is added.
        (
            json!({"conditions": [ready], "failureMessage": "timed out"}),
            Some("Failed: no host: timed out"),
        ),
        (
            json!({"conditions": [ready], "failureMessage": "no disk"}),
            Some("Failed: no host: timed out; no disk"),
        ),
    ];
    for (status, wanted) in rows {
        assert_eq!(problem(status.clone()).as_deref(), wanted, "{status}");
    }
}

#[test]
fn durations_are_parsed_as_in_go() {
    for (text, milliseconds) in [
        ("5m", 300_000),
        ("1h2m3s", 3_723_000),
        ("1.5s", 1_500),
        (".5s", 500),
        ("0.25s", 250),
        ("1500ms", 1_500),
        ("+1s", 1_000),
        ("2µs1ms", 1),
        ("0", 0),
    ] {
        let read = duration::parse(text).map(|length| length.as_millis());
        assert_eq!(read, Some(milliseconds), "{text}");
    }
    for text in [
        "",
        "5",
        "m",
        "5x",
        "-1s",
        "1.2.3s",
        "1 s",
        ".s",
        "9999999999h",
        "+",
    ] {
        assert_eq!(duration::parse(text), None, "{text}");
    }
}

#[test]
fn the_newest_supported_version_is_chosen() {
    assert_eq!(Contract::choose(["v1beta1"]), Some(Contract::V1Beta1));
    assert_eq!(
        Contract::choose(["v1beta2", "v1beta1", "v1"]),
        Some(Contract::V1Beta2)
    );
    assert_eq!(Contract::choose([]), None);
}

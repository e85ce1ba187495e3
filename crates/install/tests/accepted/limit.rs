//! What the token of the operator changes at most, although its roles allow more.

use fivespot_api::{crd, name};
use fivespot_install::controller::Settings;
use fivespot_install::file;
use fivespot_install::role::Rights;
use kubemu_apiserver::{Client, Delete, KubeVersion, Patch, Server, Status, User};
use serde_json::{Value, json};

use super::{create_all, example, server};

const MACHINES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";

/// A server with the operator's manifests and one ScheduledMachine.
async fn installed() -> Server {
    let server = server(KubeVersion::default());
    let manifests = file::install(&Settings::default()).expect("rendered");
    let manifests = serde_saphyr::from_multiple(&manifests.text).expect("YAML");
    create_all(&server, manifests).await;
    server.clock().wait_until_idle().await;
    let mut machine = example("business-hours.yaml");
    machine.retain(|it| it["kind"] == "ScheduledMachine");
    machine[0]["metadata"]["name"] = "worker".into();
    create_all(&server, machine).await;
    server
}

/// A client with the token of the operator.
fn operator(server: &Server) -> Client {
    server.client_as(User::service_account("5spot-system", "5spot-controller"))
}

async fn patch(client: &Client, patch: Value) -> Result<(), Status> {
    let path = format!("{MACHINES}/worker");
    client.patch(&path, Patch::Merge(patch)).await.map(|_| ())
}

#[tokio::test]
async fn the_operator_changes_only_finalizers_and_whether_a_schedule_is_enabled() {
    let server = installed().await;
    let operator = operator(&server);
    for edit in [
        json!({"metadata": {"labels": {"team": "b"}}}),
        json!({"metadata": {"annotations": {"note": "b"}}}),
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"},
        ]}}),
        json!({"spec": {"killSwitch": true}}),
        json!({"spec": {"priority": 7}}),
        json!({"spec": {"nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}}),
        json!({"spec": {"killIfCommands": ["steam"]}}),
        json!({"spec": {"machineTemplate": {"labels": {"a": "b"}}}}),
        json!({"spec": {"bootstrapSpec": {"spec": {"args": ["--debug"]}}}}),
        json!({"spec": {"infrastructureSpec": {"spec": {"address": "192.168.1.7"}}}}),
        json!({"spec": {"schedule": {"hoursOfDay": ["0-23"]}}}),
        json!({"spec": {"schedule": {"timezone": "UTC"}}}),
        json!({"spec": {"schedule": {"enabled": false, "timezone": "Europe/Zurich"}}}),
    ] {
        let refused = patch(&operator, edit.clone()).await.expect_err("refused");
        assert_eq!(
            refused.message,
            "scheduledmachines.5spot.finos.org \"worker\" is forbidden: \
             ValidatingAdmissionPolicy '5spot-controller-scheduledmachines' with binding \
             '5spot-controller-scheduledmachines' denied request: the operator may only change \
             metadata.finalizers and spec.enabled and spec.schedule.enabled of scheduledmachines, \
             except of those of a ScheduledMachineSet",
            "{edit}"
        );
        // Everybody else may change it.
        patch(&server.client(), edit.clone())
            .await
            .unwrap_or_else(|error| panic!("{edit}: {error:?}"));
    }
    for edit in [
        json!({"metadata": {"finalizers": [name::FINALIZER]}}),
        json!({"spec": {"enabled": true}}),
        json!({"spec": {"enabled": false}}),
        json!({"spec": {"schedule": {"enabled": true}}}),
        json!({"spec": {"schedule": {"enabled": false}}}),
        json!({"metadata": {"finalizers": []}, "spec": {"schedule": {"enabled": null}}}),
    ] {
        let changed = patch(&operator, edit.clone()).await;
        changed.unwrap_or_else(|error| panic!("{edit}: {error:?}"));
    }
    let status = Patch::Merge(json!({"status": {"phase": "Active"}}));
    let path = format!("{MACHINES}/worker/status");
    operator.patch(&path, status).await.expect("it reports");
}

#[tokio::test]
async fn the_operator_creates_and_deletes_only_machines_of_sets() {
    let server = installed().await;
    let operator = operator(&server);
    let mut machine = example("business-hours.yaml");
    machine.retain(|it| it["kind"] == "ScheduledMachine");
    let mut machine = machine.remove(0);
    machine["metadata"]["name"] = "desks-0".into();
    let words = "except of those of a ScheduledMachineSet";
    let refused = operator.create(MACHINES, machine.clone()).await;
    let refused = refused.expect_err("no set owns it").message;
    assert!(refused.ends_with(words), "{refused}");
    let worker = format!("{MACHINES}/worker");
    let refused = operator.delete(&worker, &Delete::default()).await;
    let refused = refused.expect_err("no set owns it").message;
    assert!(refused.ends_with(words), "{refused}");
    machine["metadata"]["ownerReferences"] = json!([{
        "apiVersion": name::API_VERSION, "kind": name::SET_KIND, "name": "desks", "uid": "a",
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let path = format!("{MACHINES}/desks-0");
    operator.create(MACHINES, machine).await.expect("of a set");
    let edit = Patch::Merge(json!({"spec": {"priority": 7}}));
    operator.patch(&path, edit).await.expect("of a set");
    let deleted = operator.delete(&path, &Delete::default()).await;
    deleted.expect("of a set");
}

/// A webhook of another vendor that adds a label to everything must not keep objects from being
/// deleted.
#[tokio::test]
async fn the_finalizer_of_a_deleted_machine_is_removed_whatever_else_changes() {
    let server = installed().await;
    let operator = operator(&server);
    let held = json!({"metadata": {"finalizers": [name::FINALIZER]}});
    patch(&operator, held).await.expect("its own finalizer");
    let path = format!("{MACHINES}/worker");
    let deleted = server.client().delete(&path, &Delete::default()).await;
    deleted.expect("waits for the finalizer");
    let freed =
        json!({"metadata": {"finalizers": [], "labels": {"added": "by-a-webhook"}}});
    patch(&operator, freed).await.expect("is admitted");
    assert_eq!(
        server.client().get(&path).await.map_err(|it| it.code).err(),
        Some(404)
    );
}

#[tokio::test]
async fn the_operator_writes_only_its_own_leases() {
    let server = installed().await;
    let operator = operator(&server);
    let lease = |name: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {"holderIdentity": "someone"},
        })
    };
    for name in [
        "5spot-leader",
        "5spot-shard-0-of-3",
        "5spot-member-5spot-controller-abc",
    ] {
        let stored = operator.create(LEASES, lease(name)).await.expect(name);
        let path = format!("{LEASES}/{name}");
        operator.update(&path, (*stored).clone()).await.expect(name);
        operator
            .delete(&path, &Delete::default())
            .await
            .expect(name);
    }
    let foreign = server
        .client()
        .create(LEASES, lease("other"))
        .await
        .expect("a Lease");
    let path = format!("{LEASES}/other");
    for refused in [
        operator.create(LEASES, lease("another")).await.map(|_| ()),
        operator.update(&path, (*foreign).clone()).await.map(|_| ()),
        operator.delete(&path, &Delete::default()).await.map(|_| ()),
    ] {
        let refused = refused.expect_err("refused");
        assert!(
            refused.message.ends_with(
                "ValidatingAdmissionPolicy '5spot-controller-leases' with binding \
                 '5spot-controller-leases' denied request: the operator may only write leases \
                 whose name begins with 5spot-"
            ),
            "{refused:?}"
        );
    }
}

#[test]
fn every_other_field_of_the_schema_is_compared() {
    let limits = Rights::default().limits();
    let expression = limits[0]["spec"]["validations"][0]["expression"]
        .as_str()
        .unwrap();
    let root = crd::render(30);
    let root = &root["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let properties = |pointer: &str| -> Vec<String> {
        let found = root.pointer(pointer).and_then(Value::as_object).unwrap();
        found.keys().cloned().collect()
    };
    let of_spec = properties("/properties/spec/properties");
    let of_schedule = properties("/properties/spec/properties/schedule/properties");
    assert!(of_spec.len() > 10 && of_schedule.len() > 6);
    let spec = of_spec
        .iter()
        .filter(|it| !["enabled", "schedule"].contains(&it.as_str()))
        .map(|it| format!("spec.?{it}"));
    let schedule = of_schedule.iter().filter(|it| *it != "enabled");
    let schedule = schedule.map(|it| format!("spec.?schedule.?{it}"));
    for path in spec.chain(schedule) {
        let compared = format!("object.?{path} == oldObject.?{path}");
        assert!(expression.contains(&compared), "{path}");
    }
}

//! An operator that is newer than the CustomResourceDefinitions in its cluster.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use fivespot_api::crd;
use fivespot_api::resource::SCHEDULED_MACHINE;
use fivespot_api::vap::{self, Action};
use fivespot_controller::{Detail, Options};
use kubemu_apiserver::Patch;
use serde_json::{Value, json};

use crate::cluster::{OWNED, RunningController, SCHEDULED, TestCluster};
use crate::faults::{in_service, refusal};
use crate::overrides::reconciles;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The definition of a release without windows and without an account of usage.
fn older() -> Value {
    let mut definition = crd::render_without_rules();
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let properties = &mut root["properties"];
    for (part, field) in [("status", "usage"), ("status", "lastProvisioning")] {
        let part = properties[part]["properties"].as_object_mut();
        assert!(part.unwrap().remove(field).is_some(), "{field}");
    }
    let schedule = &mut properties["spec"]["properties"]["schedule"];
    let fields = schedule["properties"].as_object_mut().unwrap();
    assert!(fields.remove("windows").is_some());
    definition
}

fn own() -> String {
    format!("{DEFINITIONS}/{}", SCHEDULED_MACHINE.definition_name())
}

async fn store(cluster: &TestCluster, definition: &Value) {
    let change = json!({"spec": {"versions": definition["spec"]["versions"]}});
    cluster.merge(&own(), change).await;
    cluster.clock.wait_until_idle().await;
}

/// Installs the definitions of a release before overrides and calendars.
async fn install_older(cluster: &TestCluster) {
    store(cluster, &older()).await;
    for other in fivespot_api::RESOURCES
        .iter()
        .filter(|of| of.kind != SCHEDULED_MACHINE.kind)
    {
        let definition = format!("{DEFINITIONS}/{}", other.definition_name());
        cluster.delete(&definition).await;
    }
    cluster.clock.wait_until_idle().await;
}

#[tokio::test]
async fn an_operator_newer_than_its_definitions_creates_no_machine() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    install_older(&cluster).await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:30:00Z").await;
    let status = cluster.status("worker").await;
    let ready = TestCluster::condition(&status, "Ready");
    assert_eq!(
        ready["reason"], "CustomResourceDefinitionOutdated",
        "{status:#}"
    );
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("lacks spec.schedule.windows"), "{message}");
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    let before = cluster.requests().len();
    cluster.advance_to("2026-03-06T17:30:00Z").await;
    let mut asked = cluster.requests().split_off(before);
    for kind in [
        "scheduleoverrides",
        "scheduledmachinesets",
        "scheduledcapacities",
        "timebasedspotschedules",
        "capitalmarketsschedules",
    ] {
        let before = asked.len();
        asked.retain(|line| !line.contains(&format!("/{kind} ")));
        let retries = before - asked.len();
        assert!(
            retries <= 30,
            "a retry every four minutes: {retries} of {kind}"
        );
    }
    assert_eq!(asked, [""; 0]);
}

#[tokio::test]
async fn updated_definitions_take_effect_at_once() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    install_older(&cluster).await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:30:00Z").await;
    for resource in &fivespot_api::RESOURCES {
        let definition = crd::render_of(resource, 36);
        if resource.kind == SCHEDULED_MACHINE.kind {
            store(&cluster, &definition).await;
        } else {
            let created = cluster.client.create(DEFINITIONS, definition).await;
            created.unwrap();
        }
    }
    cluster.advance_to("2026-03-06T15:30:05Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    let override_ = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": "not-today", "namespace": "default"},
        "spec": {"targetRef": {"name": "worker"}, "mode": "Stop",
                 "endTime": "2026-03-06T20:00:00Z"},
    });
    let overrides = "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides";
    cluster.client.create(overrides, override_).await.unwrap();
    cluster.advance_to("2026-03-06T15:36:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn an_older_definition_is_unready_and_does_not_block_a_shutdown() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    store(&cluster, &older()).await;
    cluster.advance_to("2026-03-06T22:59:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Active");
    cluster.advance_to("2026-03-06T23:06:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);

    let printed = std::sync::Mutex::new(None);
    let _second = cluster.run(|client, clock| {
        let options = Options::new(client, clock);
        *printed.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    cluster.advance_to("2026-03-06T23:07:00Z").await;
    let instruments = printed.lock().unwrap().take().unwrap();
    let response = instruments.on_health_port("/readyz", Detail::Verbose);
    assert_eq!(response.code, 503, "{}", response.body);
    let problem = "[-]crd failed: CustomResourceDefinitionOutdated: ";
    assert!(response.body.contains(problem), "{}", response.body);
}

/// A machine in service at 15:10, after which the definition of a release without
/// `status.shutdown` is installed.
async fn without_a_shutdown_record() -> (TestCluster, RunningController) {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let running = in_service(&cluster, &[]).await;
    let mut definition = older();
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let status = root["properties"]["status"]["properties"].as_object_mut();
    assert!(status.unwrap().remove("shutdown").is_some());
    store(&cluster, &definition).await;
    (cluster, running)
}

#[tokio::test]
async fn the_kill_switch_and_a_deletion_need_no_record_that_the_server_keeps() {
    let path = format!("{SCHEDULED}/worker");
    for is_killed in [true, false] {
        let (cluster, _controller) = without_a_shutdown_record().await;
        let before = cluster.requests().len();
        if is_killed {
            cluster
                .merge(&path, json!({"spec": {"killSwitch": true}}))
                .await;
        } else {
            cluster.delete(&path).await;
        }
        cluster.advance_to("2026-03-06T15:10:30Z").await;
        for kind in OWNED {
            assert_eq!(cluster.names(kind).await, [""; 0], "{kind}");
        }
        if is_killed {
            assert_eq!(cluster.status("worker").await["phase"], "Terminated");
        } else {
            assert_eq!(cluster.names(SCHEDULED).await, [""; 0]);
        }
        let sent = cluster.requests().split_off(before);
        assert!(sent.len() < 60, "{}: {sent:#?}", sent.len());
    }
}

#[tokio::test]
async fn a_shutdown_keeps_its_deadline_although_the_server_drops_its_record() {
    let (cluster, _controller) = without_a_shutdown_record().await;
    cluster.bind_pod("a", "worker").await;
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let eviction = "POST /api/v1/namespaces/default/pods/a/eviction";
    cluster.inject_fault(usize::MAX, eviction, (429, &refusal(429, message)));
    cluster.advance_to("2026-03-06T23:02:00Z").await;
    // Any event plans the machine again.
    let path = format!("{SCHEDULED}/worker");
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    cluster.merge(&path, labels).await;
    cluster.advance_to("2026-03-06T23:04:59Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    cluster.advance_to("2026-03-06T23:05:10Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn a_definition_that_cannot_be_read_does_not_count_as_current() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let read = format!("GET {DEFINITIONS}");
    let denied = refusal(403, "customresourcedefinitions is forbidden");
    cluster.inject_fault(12, &read, (403, &denied));
    let instruments = std::sync::Mutex::new(None);
    let _controller = cluster.run(|client, clock| {
        let options = Options::new(client, clock);
        *instruments.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    cluster.advance_to("2026-03-06T15:00:01Z").await;
    let instruments = instruments.lock().unwrap().take().unwrap();
    let planned = reconciles(&instruments);
    cluster.advance_to("2026-03-06T15:00:10Z").await;
    assert_eq!(
        reconciles(&instruments),
        planned,
        "no read has brought news"
    );
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    let status = cluster.status("worker").await;
    let ready = TestCluster::condition(&status, "Ready");
    assert_eq!(
        ready["reason"], "CustomResourceDefinitionOutdated",
        "{status:#}"
    );
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("could not be read"), "{message}");
    assert!(message.contains("is forbidden"), "{message}");
    // It is read again without any event.
    cluster.advance_to("2026-03-06T15:36:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

#[tokio::test]
async fn the_shipped_policy_admits_the_kill_switch_under_an_older_definition() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let registration = "/apis/admissionregistration.k8s.io/v1";
    for (kind, object) in [
        ("validatingadmissionpolicies", vap::policy()),
        (
            "validatingadmissionpolicybindings",
            vap::binding(Action::Deny),
        ),
    ] {
        let path = format!("{registration}/{kind}");
        cluster.client.create(&path, object).await.unwrap();
    }
    cluster.create_scheduled_machine("worker").await;
    let path = format!("{SCHEDULED}/worker");
    let schedule = json!({
        "daysOfWeek": null, "hoursOfDay": null,
        "windows": [{"name": "day", "start": "14:00", "end": "20:00"}],
    });
    cluster
        .merge(&path, json!({"spec": {"schedule": schedule}}))
        .await;
    store(&cluster, &older()).await;
    let refused = json!({"spec": {"schedule": {"daysOfWeek": ["today"]}}});
    assert!(
        cluster
            .client
            .patch(&path, Patch::Merge(refused))
            .await
            .is_err()
    );
    let disabled = json!({"spec": {"schedule": {"enabled": false}}});
    cluster.merge(&path, disabled).await;
    cluster
        .merge(&path, json!({"spec": {"killSwitch": true}}))
        .await;
    let stored = cluster.get(&path).await.unwrap();
    assert_eq!(stored["spec"]["killSwitch"], true, "{stored:#}");
}

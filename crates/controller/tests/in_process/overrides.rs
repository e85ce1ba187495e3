//! ScheduleOverrides.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use std::sync::Mutex;

use fivespot_api::resource::SCHEDULE_OVERRIDE;
use fivespot_api::{crd, name};
use fivespot_controller::{Instruments, Options};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cluster::{OWNED, RunningController, SCHEDULED, TestCluster, instant};
use crate::faults::in_service;
use crate::timing::LogCapture;

const OVERRIDES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn the_log_names_an_override_and_no_scheduled_machine_if_it_is_about_an_override() {
    let logged = LogCapture::begin(tracing::Level::INFO);
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    // A definition without a schema accepts what the operator cannot parse.
    let mut versions = crd::render_of(SCHEDULE_OVERRIDE, 36)["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = format!("{DEFINITIONS}/{}", SCHEDULE_OVERRIDE.definition_name());
    let change = json!({"spec": {"versions": versions}});
    cluster.merge(&definition, change).await;
    let unreadable = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": "not-today", "namespace": "default"},
        "spec": {"targetRef": {"name": "worker"}, "mode": 5},
    });
    cluster.client.create(OVERRIDES, unreadable).await.unwrap();
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    let mut lines = logged.lines();
    lines.retain(|line| line.contains("ScheduleOverride could not be parsed"));
    assert!(!lines.is_empty(), "{:#?}", logged.lines());
    for line in lines {
        assert!(line.contains("scheduleoverride=\"not-today\""), "{line}");
        assert!(!line.contains("scheduledmachine"), "{line}");
        assert!(!line.contains(" name="), "{line}");
    }
}

/// Creates an override of this mode, which ends in ten days.
async fn create(cluster: &TestCluster, name: &str, mode: &str, whom: Value) {
    let mut object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"mode": mode, "endTime": "2026-03-16T15:00:00Z"},
    });
    for (field, value) in whom.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    cluster.client.create(OVERRIDES, object).await.unwrap();
}

fn selecting(team: &str) -> Value {
    json!({"selector": {"matchLabels": {"team": team}}})
}

fn naming(machine: &str) -> Value {
    json!({"targetRef": {"name": machine}})
}

async fn label(cluster: &TestCluster, machine: &str, team: &str) {
    let labels = json!({"metadata": {"labels": {"team": team}}});
    cluster
        .merge(&format!("{SCHEDULED}/{machine}"), labels)
        .await;
}

async fn status_of(cluster: &TestCluster, name: &str) -> Value {
    let found = cluster.get(&format!("{OVERRIDES}/{name}")).await.unwrap();
    found["status"].clone()
}

/// A cluster with so many closed machines of team `a`, and its operator.
async fn with_closed_machines(
    count: usize,
) -> (TestCluster, RunningController, Instruments) {
    let cluster = TestCluster::with_cluster_api("2026-03-06T23:10:00Z").await;
    for number in 0..count {
        let name = format!("worker-{number}");
        cluster.create_scheduled_machine(&name).await;
        label(&cluster, &name, "a").await;
    }
    let instruments = Mutex::new(None);
    let running = cluster.run(|client, clock| {
        let options = Options::new(client, clock);
        *instruments.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    cluster.advance_to("2026-03-06T23:11:00Z").await;
    let instruments = instruments.into_inner().unwrap().unwrap();
    (cluster, running, instruments)
}

/// How many reconciles of ScheduledMachines have ended.
pub(crate) fn reconciles(instruments: &Instruments) -> u64 {
    let metrics = instruments.metrics();
    let lines = metrics.lines();
    let counted =
        lines.filter(|line| line.starts_with("fivespot_reconciliations_total{"));
    counted
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[tokio::test]
async fn only_a_change_of_the_spec_of_an_override_reconciles_its_machines() {
    let (cluster, _running, instruments) = with_closed_machines(3).await;
    create(&cluster, "o", "Stop", selecting("a")).await;
    cluster.clock.wait_until_idle().await;
    let before = reconciles(&instruments);
    let path = format!("{OVERRIDES}/o");
    let note = json!({"metadata": {"annotations": {"5spot.finos.org/keep": "true"}}});
    cluster.merge(&path, note).await;
    cluster.clock.wait_until_idle().await;
    let status = json!({"status": {"matchedMachines": 7}});
    cluster.merge(&format!("{path}/status"), status).await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(status_of(&cluster, "o").await["matchedMachines"], 3);
    assert_eq!(reconciles(&instruments), before);
    let end = json!({"spec": {"endTime": "2026-03-15T15:00:00Z"}});
    cluster.merge(&path, end).await;
    cluster.clock.wait_until_idle().await;
    assert!(reconciles(&instruments) >= before + 3);
}

#[tokio::test]
async fn an_override_counts_its_machines_when_their_labels_or_schedules_change() {
    let (cluster, _running, _) = with_closed_machines(2).await;
    create(&cluster, "o", "Stop", selecting("a")).await;
    create(&cluster, "p", "Stop", selecting("b")).await;
    cluster.clock.wait_until_idle().await;
    let counts = async || {
        let o = status_of(&cluster, "o").await;
        let p = status_of(&cluster, "p").await;
        [o, p].map(|status| status["matchedMachines"].clone())
    };
    assert_eq!(counts().await, [2, 0]);
    label(&cluster, "worker-1", "b").await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(counts().await, [1, 1]);
    let disabled = json!({"spec": {"schedule": {"enabled": false}}});
    cluster
        .merge(&format!("{SCHEDULED}/worker-1"), disabled)
        .await;
    cluster.clock.wait_until_idle().await;
    let ignored = TestCluster::condition(&status_of(&cluster, "p").await, "Ignored");
    assert_eq!(ignored["reason"], "ScheduleDisabled");
    cluster.delete(&format!("{SCHEDULED}/worker-0")).await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(counts().await, [0, 1]);
}

#[tokio::test]
async fn nothing_is_done_while_an_override_with_a_selector_is_in_force() {
    let (cluster, _running, _) = with_closed_machines(1).await;
    create(&cluster, "o", "Stop", selecting("a")).await;
    cluster.clock.wait_until_idle().await;
    let before = cluster.clock.now();
    let limit = instant("2026-03-07T12:00:00Z");
    let next = cluster.clock.advance_to_next(limit).await;
    assert!(
        next.is_none_or(|next| next > before + SignedDuration::from_mins(2)),
        "{next:?}"
    );
}

#[tokio::test]
async fn a_stop_is_obeyed_however_many_older_overrides_there_are() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    for number in 0..256 {
        create(&cluster, &format!("o-{number}"), "Run", naming("nobody")).await;
    }
    cluster.create_scheduled_machine("worker").await;
    let _running = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    create(&cluster, "stop", "Stop", naming("worker")).await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("worker").await;
    assert_eq!(status["override"]["name"], "stop", "{status:#}");
    let ignored = TestCluster::condition(&status_of(&cluster, "stop").await, "Ignored");
    assert_eq!(ignored["status"], "False");
    // The youngest of the weakest has given up its place, and takes it again.
    let beyond = async || {
        let mut names = Vec::new();
        for item in cluster.items(OVERRIDES).await {
            let ignored = TestCluster::condition(&item["status"], "Ignored");
            if ignored["reason"] == "TooMany" {
                names.push(item["metadata"]["name"].as_str().unwrap().to_owned());
            }
        }
        names
    };
    assert_eq!(beyond().await, ["o-99"]);
    cluster.delete(&format!("{OVERRIDES}/stop")).await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(beyond().await, [""; 0]);
    assert_eq!(cluster.status("worker").await["override"], Value::Null);
}

#[tokio::test]
async fn an_override_beyond_the_limit_costs_one_write() {
    let (cluster, _running, _) = with_closed_machines(2).await;
    for number in 0..256 {
        create(&cluster, &format!("o-{number}"), "Stop", naming("nobody")).await;
    }
    cluster.clock.wait_until_idle().await;
    create(&cluster, "z", "Stop", selecting("a")).await;
    cluster.advance_to("2026-03-06T23:12:00Z").await;
    label(&cluster, "worker-0", "b").await;
    cluster.advance_to("2026-03-07T23:12:00Z").await;
    let status = format!("{OVERRIDES}/z/status");
    let writes = cluster.writes();
    let written = writes.iter().filter(|line| line.contains(&status)).count();
    assert_eq!(written, 1, "{writes:#?}");
    let events = cluster
        .items("/apis/events.k8s.io/v1/namespaces/default/events")
        .await;
    let about_it = |of: &&Value| of["regarding"]["name"] == "z";
    assert_eq!(events.iter().find(about_it), None);
    let ignored = TestCluster::condition(&status_of(&cluster, "z").await, "Ignored");
    assert_eq!(ignored["reason"], "TooMany");
}

#[tokio::test]
async fn an_override_that_has_ended_does_not_return_when_the_clock_is_set_back() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let host = kubemu_clock::Host::default();
    let own = host.clone();
    cluster.create_scheduled_machine("worker").await;
    let spec = json!({"spec": {
        "mode": "Stop", "endTime": "2026-03-06T15:20:00Z", "targetRef": {"name": "worker"},
    }});
    create(&cluster, "o", "Stop", naming("worker")).await;
    cluster.merge(&format!("{OVERRIDES}/o"), spec).await;
    let _controller = cluster
        .run(move |client, clock| Options::new(client, clock.of_host(own.clone())));
    cluster.advance_to("2026-03-06T15:19:59Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    cluster.advance_to("2026-03-06T15:21:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    // By more than a clock is corrected: the operator's instants go back, too.
    host.set(-SignedDuration::from_mins(15));
    label(&cluster, "worker", "b").await;
    cluster.advance_to("2026-03-06T15:23:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    assert!(cluster.status("worker").await["shutdown"].is_null());
}

#[tokio::test]
async fn a_hold_made_just_before_the_end_counts_although_no_watch_has_shown_it() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let watch = "WATCH /apis/5spot.finos.org/v1alpha1/scheduleoverrides";
    cluster.delay_requests(watch, SignedDuration::from_hours(48));
    let _running = in_service(&cluster, &[]).await;
    cluster.advance_to("2026-03-06T22:59:58Z").await;
    create(&cluster, "hold", "Hold", naming("worker")).await;
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["shutdown"], Value::Null, "{status:#}");
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

/// A machine in service, whose operator stops a reclaimed one with an override of four hours.
async fn reclaimable(cluster: &TestCluster) -> RunningController {
    cluster
        .create_wanted_machine(&json!({"token": "abc"}))
        .await;
    let running = cluster.run(|client, clock| {
        let mut options = cluster.options(client, clock);
        options.reclaim_override = Some(SignedDuration::from_hours(4));
        options
    });
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    cluster.join("worker").await;
    cluster.ready("worker", true).await;
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active", "{status:#}");
    running
}

async fn reclaim(cluster: &TestCluster) {
    let request = json!({"metadata": {"annotations": {
        "5spot.finos.org/reclaim-requested": "true",
    }}});
    cluster.merge("/api/v1/nodes/worker", request).await;
}

#[tokio::test]
async fn an_override_with_the_name_of_a_reclaim_does_not_defeat_it() {
    let (run, short) = (
        ("Run", "2026-03-07T15:00:00Z"),
        ("Stop", "2026-03-06T15:11:00Z"),
    );
    for (mode, end) in [run, short] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
        let _running = reclaimable(&cluster).await;
        let status = cluster.status("worker").await;
        let uid = status["machineRef"]["uid"].as_str().unwrap();
        let taken = name::reclaim_override("worker", uid);
        let forged = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
            "metadata": {
                "name": taken, "namespace": "default",
                "annotations": {"5spot.finos.org/reclaim": uid},
            },
            "spec": {"targetRef": {"name": "worker"}, "mode": mode, "endTime": end},
        });
        cluster.client.create(OVERRIDES, forged).await.unwrap();
        reclaim(&cluster).await;
        cluster.advance_to("2026-03-06T16:00:00Z").await;
        assert_eq!(cluster.names(OWNED[2]).await, [""; 0], "{mode}");
        let status = cluster.status("worker").await;
        assert_eq!(status["phase"], "Inactive", "{mode} {status:#}");
        let mut others = cluster.items(OVERRIDES).await;
        others.retain(|it| it["metadata"]["name"] != taken);
        assert_eq!(others.len(), 1, "{others:#?}");
        assert_eq!(others[0]["spec"]["mode"], "Stop");
        assert_eq!(others[0]["spec"]["endTime"], "2026-03-06T19:10:00Z");
    }
}

#[tokio::test]
async fn a_reclaim_disables_the_schedule_where_a_further_stop_is_not_considered() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    for number in 0..256 {
        create(&cluster, &format!("o-{number}"), "Stop", naming("nobody")).await;
    }
    let _running = reclaimable(&cluster).await;
    reclaim(&cluster).await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    assert_eq!(cluster.items(OVERRIDES).await.len(), 256);
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Disabled", "{status:#}");
}

#[tokio::test]
async fn a_throttled_create_is_tried_again_when_the_server_says() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let busy = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
        "reason": "TooManyRequests", "message": "too many requests",
        "details": {"retryAfterSeconds": 1},
    });
    let create = format!("POST {}", OWNED[0]);
    cluster.inject_fault(7, &create, (429, &busy.to_string()));
    let _running = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:00:10Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

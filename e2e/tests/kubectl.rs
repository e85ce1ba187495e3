//! The real kubectl works as with any API server, and prints machines in a readable form.

pub(crate) mod creates;
pub(crate) mod page;
pub(crate) mod policies;
pub(crate) mod session;
pub(crate) mod shows;

use fivespot_testkit::{machine_path, scheduled_machine};
use insta::assert_snapshot;
use serde_json::{Value, json};

use session::Session;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(apply_reports_what_it_changed).with_kubectl(),
    promise!(apply_on_the_server_names_those_it_conflicts_with).with_kubectl(),
    promise!(patch_annotate_and_label_change_the_object).with_kubectl(),
    promise!(a_watch_shows_a_window_opening).with_kubectl(),
    promise!(wait_ends_when_its_condition_is_met).with_kubectl(),
    promise!(cordon_and_uncordon_reach_the_node).with_kubectl(),
    promise!(delete_waits_until_the_machine_has_left).with_kubectl(),
    promise!(an_invalid_object_is_rejected_with_the_message_of_the_rule).with_kubectl(),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const BEFORE_OPENING: &str = "2026-03-06T13:59:00Z";

async fn apply_reports_what_it_changed() {
    let session = Session::with_worker(IN_WINDOW).await;
    let mut worker = scheduled_machine("worker");
    worker["spec"]["priority"] = json!(60);
    assert_snapshot!(
        session.kubectl_reading("apply", &worker).await,
        @"scheduledmachine.5spot.finos.org/worker configured"
    );
    assert_snapshot!(
        session.kubectl_reading("apply", &worker).await,
        @"scheduledmachine.5spot.finos.org/worker unchanged"
    );
    // Fields that are no longer applied get their default again.
    let again = session
        .kubectl_reading("apply", &scheduled_machine("worker"))
        .await;
    assert_eq!(again, "scheduledmachine.5spot.finos.org/worker configured");
    let stored = session.cluster.get(&machine_path("worker")).await.unwrap();
    assert_eq!(stored["spec"]["priority"], 50);
}

async fn apply_on_the_server_names_those_it_conflicts_with() {
    let session = Session::start(IN_WINDOW).await;
    let mut worker = scheduled_machine("worker");
    worker["spec"]["priority"] = json!(60);
    let alice = "apply --server-side --field-manager=alice";
    assert_snapshot!(
        session.kubectl_reading(alice, &worker).await,
        @"scheduledmachine.5spot.finos.org/worker serverside-applied"
    );
    worker["spec"]["priority"] = json!(70);
    let bob = "apply --server-side --field-manager=bob";
    assert_snapshot!(session.kubectl_reading(bob, &worker).await, @r#"
    error: Apply failed with 1 conflict: conflict with "alice": .spec.priority
    Please review the fields above--they currently have other managers. Here
    are the ways you can resolve this warning:
    * If you intend to manage all of these fields, please re-run the apply
      command with the `--force-conflicts` flag.
    * If you do not intend to manage all of the fields, please edit your
      manifest to remove references to the fields that should keep their
      current managers.
    * You may co-own fields by updating your manifest to match the existing
      value; in this case, you'll become the manager if the other manager(s)
      stop managing the field (remove it from their configuration).
    See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
    exit status: 1
    "#);
    let forced = format!("{bob} --force-conflicts");
    assert_snapshot!(
        session.kubectl_reading(&forced, &worker).await,
        @"scheduledmachine.5spot.finos.org/worker serverside-applied"
    );
}

async fn patch_annotate_and_label_change_the_object() {
    let session = Session::with_worker(IN_WINDOW).await;
    let merge = r#"{"spec":{"nodeDrainTimeout":"2m"}}"#;
    let json =
        r#"[{"op":"replace","path":"/spec/schedule/hoursOfDay","value":["8-17"]}]"#;
    for (form, patch) in [("merge", merge), ("json", json)] {
        let words = ["patch", "sm", "worker", "--type", form, "-p", patch];
        let printed = session.kubectl_with(&words).await;
        assert_eq!(printed, "scheduledmachine.5spot.finos.org/worker patched");
        let printed = session.kubectl_with(&words).await;
        assert_eq!(
            printed,
            "scheduledmachine.5spot.finos.org/worker patched (no change)"
        );
    }
    assert_snapshot!(
        session.kubectl("annotate sm worker note=hello").await,
        @"scheduledmachine.5spot.finos.org/worker annotated"
    );
    assert_snapshot!(
        session.kubectl("label sm worker team=a").await,
        @"scheduledmachine.5spot.finos.org/worker labeled"
    );
    assert_snapshot!(session.kubectl("get sm -l team=a -o name").await, @"scheduledmachine.5spot.finos.org/worker");
    let stored = session.cluster.get(&machine_path("worker")).await.unwrap();
    assert_eq!(stored["spec"]["nodeDrainTimeout"], "2m");
    assert_eq!(stored["spec"]["schedule"]["hoursOfDay"], json!(["8-17"]));
    assert_eq!(stored["metadata"]["annotations"]["note"], "hello");
    let refused = r#"{"spec":{"nodeDrainTimeout":"2 minutes"}}"#;
    let words = ["patch", "sm", "worker", "--type", "merge", "-p", refused];
    assert_snapshot!(session.kubectl_with(&words).await, @r#"
    The ScheduledMachine "worker" is invalid: spec.nodeDrainTimeout: Invalid value: "2 minutes": must be a duration string such as '5m', '30s', or '1h'
    exit status: 1
    "#);
}

async fn a_watch_shows_a_window_opening() {
    let session = Session::with_worker(BEFORE_OPENING).await;
    let mut watch = session
        .watching("get sm worker -w", "scheduledmachines")
        .await;
    let header = watch.line().await.unwrap();
    assert!(header.starts_with("NAME     PHASE"), "{header}");
    let mut shown: Vec<(String, String)> = Vec::new();
    session.cluster.advance_to("2026-03-06T14:01:00Z").await;
    while shown.last().is_none_or(|(phase, _)| phase != "Active") {
        let line = watch.line().await.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let next = words.iter().find(|word| word.starts_with("2026-"));
        shown.push((words[1].to_owned(), (*next.unwrap()).to_owned()));
        shown.dedup();
    }
    let expected = [
        ("Inactive", "2026-03-06T14:00:00Z"),
        ("Pending", "2026-03-06T23:00:00Z"),
        ("Active", "2026-03-06T23:00:00Z"),
    ];
    assert_eq!(
        shown,
        expected.map(|(phase, next)| (phase.to_owned(), next.to_owned()))
    );
}

async fn wait_ends_when_its_condition_is_met() {
    let session = Session::with_worker(BEFORE_OPENING).await;
    let pending = "wait --for=jsonpath={.status.phase}=Pending sm/worker --timeout=60s";
    let wait = session.watching(pending, "scheduledmachines").await;
    session.cluster.advance_to("2026-03-06T14:00:00Z").await;
    assert!(wait.ends_well().await);
    let ready = "wait --for=condition=Ready sm/worker --timeout=60s";
    let wait = session.watching(ready, "scheduledmachines").await;
    session.cluster.advance_to("2026-03-06T14:01:00Z").await;
    assert!(wait.ends_well().await);
    assert_snapshot!(
        session.kubectl("wait --for=condition=Ready sm/worker").await,
        @"scheduledmachine.5spot.finos.org/worker condition met"
    );
}

async fn cordon_and_uncordon_reach_the_node() {
    let session = Session::with_worker(IN_WINDOW).await;
    session.cluster.advance_to("2026-03-06T15:01:00Z").await;
    assert_snapshot!(session.kubectl("cordon worker").await, @"node/worker cordoned");
    let words = "get node worker -o jsonpath={.spec.unschedulable}";
    assert_snapshot!(session.kubectl(words).await, @"true");
    assert_snapshot!(session.kubectl("uncordon worker").await, @"node/worker uncordoned");
    assert_snapshot!(session.kubectl(words).await, @"");
}

async fn delete_waits_until_the_machine_has_left() {
    let session = Session::with_worker(IN_WINDOW).await;
    session.cluster.advance_to("2026-03-06T15:01:00Z").await;
    let delete = session
        .watching("delete sm worker", "scheduledmachines")
        .await;
    let worker = session.cluster.get(&machine_path("worker")).await.unwrap();
    assert_ne!(worker["metadata"]["deletionTimestamp"], Value::Null);
    session.cluster.advance_to("2026-03-06T15:07:00Z").await;
    assert!(delete.ends_well().await);
    assert_eq!(
        session.kubectl("get machines").await,
        "No resources found in default namespace."
    );
}

async fn an_invalid_object_is_rejected_with_the_message_of_the_rule() {
    let session = Session::start(IN_WINDOW).await;
    let examples = "examples/admission";
    let apply = async |file: &str| {
        session
            .kubectl(&format!("apply -f {examples}/{file}.yaml"))
            .await
    };
    assert_snapshot!(apply("valid").await, @"scheduledmachine.5spot.finos.org/test-valid created");
    assert_snapshot!(apply("bad-duration").await, @r#"
    The ScheduledMachine "test-bad-duration" is invalid: spec.gracefulShutdownTimeout: Invalid value: "five minutes": must be a duration string such as '5m', '30s', or '1h'
    exit status: 1
    "#);
    assert_snapshot!(apply("bad-api-group").await, @r#"
    The ScheduledMachine "test-bad-apigroup" is invalid: spec.bootstrapSpec.apiVersion: Invalid value: "rbac.authorization.k8s.io/v1": must be from an allowed group: bootstrap.cluster.x-k8s.io or k0smotron.io
    exit status: 1
    "#);
    assert_snapshot!(apply("cron-conflict").await, @r#"
    The ScheduledMachine "test-cron-conflict" is invalid: spec.schedule: Invalid value: cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the other, not both
    exit status: 1
    "#);
    let mut misspelt = scheduled_machine("worker");
    misspelt["spec"]["kilSwitch"] = json!(true);
    assert_snapshot!(session.kubectl_reading("create", &misspelt).await, @r#"
    Error from server (BadRequest): error when creating "STDIN": ScheduledMachine in version "v1alpha1" cannot be handled as a ScheduledMachine: strict decoding error: unknown field "spec.kilSwitch"
    exit status: 1
    "#);
    let mut unknown = scheduled_machine("worker");
    unknown["kind"] = json!("ScheduledMachin");
    assert_snapshot!(session.kubectl_reading("apply", &unknown).await, @r#"
    error: resource mapping not found for name: "worker" namespace: "default" from "STDIN": no matches for kind "ScheduledMachin" in version "5spot.finos.org/v1alpha1"
    ensure CRDs are installed first
    exit status: 1
    "#);
    let mut twofold = scheduled_machine("worker");
    twofold["spec"]["nodeDrainTimeout"] = json!("25h");
    twofold["spec"]["schedule"]["hoursOfDay"] = json!(["9-24"]);
    assert_snapshot!(session.kubectl_reading("create", &twofold).await, @r#"
    The ScheduledMachine "worker" is invalid:
    * spec.nodeDrainTimeout: Invalid value: "25h": must be at most 24h
    * spec.schedule.hoursOfDay[0]: Invalid value: "9-24": hours must be from 0 to 23
    exit status: 1
    "#);
}

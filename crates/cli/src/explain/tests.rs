use fivespot_api::verdict::Lease;
use fivespot_api::{ClassProblem, ResolvedClass, ScheduledMachine};
use fivespot_capi::{Cluster, Contract, Machine, Reference};
use fivespot_controller::{Inspection, NodeAccess};
use fivespot_plan::{
    Access, Fact, Freshness, Locations, Lookup, Node, Observed, ReclaimStop, Specs,
    Unknown, Workload,
};
use fivespot_schedule::{Override, OverrideMode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{outcome, reason, report, rule};
use crate::Outcome;
use crate::output::Format;

const FRIDAY_EVENING: &str = "2026-03-06T23:00:30Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn object(status: &Value) -> ScheduledMachine {
    let made_from = |group: &str, kind: &str| json!({"apiVersion": format!("{group}.cluster.x-k8s.io/v1beta1"), "kind": kind, "spec": {}});
    let object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {
            "name": "worker",
            "namespace": "default",
            "uid": "u1",
            "resourceVersion": "7",
            "generation": 1,
            "finalizers": ["5spot.finos.org/scheduledmachine"],
        },
        "spec": {
            "clusterName": "prod",
            "schedule": {
                "daysOfWeek": ["mon-fri"],
                "hoursOfDay": ["9-17"],
                "timezone": "America/New_York",
            },
            "bootstrapSpec": made_from("bootstrap", "K0sWorkerConfig"),
            "infrastructureSpec": made_from("infrastructure", "RemoteMachine"),
        },
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

fn inspection(status: &Value, found: Option<Value>) -> Inspection {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": "prod", "namespace": "default", "uid": "c1", "resourceVersion": "1"},
        "status": {
            "infrastructureReady": true,
            "conditions": [{"type": "ControlPlaneInitialized", "status": "True"}],
        },
    });
    let node = Node {
        name: "worker".to_owned(),
        uid: "n1".to_owned(),
        provider_id: Some("remote://worker".to_owned()),
        is_ready: true,
        ..node()
    };
    let workload = match &found {
        None => Workload::default(),
        Some(_) => Workload {
            access: Access::Connected,
            node: Fact::Known(Some(node)),
            conflicting_machine: None,
            pods: Fact::default(),
            agent_config: Fact::default(),
        },
    };
    let object = object(status);
    let machine = found.map(|it| Machine::read(&it).unwrap());
    let locations = Locations::of(&object, machine.as_ref());
    let nothing_at = |all: &[Reference]| {
        let all = all.iter().map(|place| Lookup {
            reference: place.clone(),
            found: Fact::Known(None),
        });
        all.collect()
    };
    Inspection {
        now: at(FRIDAY_EVENING),
        object,
        observed: Observed {
            freshness: Freshness::Live,
            specs: Specs::Included,
            schedule: fivespot_plan::ScheduleInputs::default(),
            contract: Fact::Known(Contract::V1Beta1),
            cluster: Fact::Known(Some(Cluster::read(&cluster).unwrap())),
            bootstrap: nothing_at(&locations.bootstrap),
            infrastructure: nothing_at(&locations.infrastructure),
            machine: Fact::Known(machine),
            workload,
            ..Observed::default()
        },
    }
}

fn node() -> Node {
    Node::from(&k8s_openapi::api::core::v1::Node::default())
}

fn running() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "metadata": {
            "name": "worker",
            "namespace": "default",
            "uid": "m1",
            "resourceVersion": "9",
            "labels": {
                "5spot.finos.org/scheduled-machine": "worker",
                "5spot.finos.org/scheduled-machine-uid": "u1",
            },
        },
        "spec": {"clusterName": "prod", "providerID": "remote://worker"},
        "status": {"phase": "Running", "nodeRef": {"name": "worker"}},
    })
}

/// The printed report, and the outcome of the command.
fn explained(found: &Inspection, at: Timestamp, format: Format) -> (String, Outcome) {
    let mut out = Vec::new();
    let report = report::report(found, &Lease::Held, at);
    crate::output::print(&mut out, format, &report, |out| report::text(out, &report))
        .unwrap();
    let outcome = outcome(report.verdict());
    (String::from_utf8(out).unwrap(), outcome)
}

fn report(found: &Inspection, at: Timestamp, format: Format) -> String {
    explained(found, at, format).0
}

/// The planned report as a value.
fn planned(found: &Inspection, at: Timestamp) -> Value {
    serde_json::to_value(report::report(found, &Lease::Held, at)).unwrap()
}

#[test]
fn a_closed_window_without_a_machine_is_the_last_check() {
    let found = inspection(&json!({}), None);
    insta::assert_snapshot!(report(&found, found.now, Format::Text));
}

/// A status in which creation has been refused by a quota for longer than five minutes.
fn refused() -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-03-06T14:00:00Z",
        })
    };
    let said = "cannot create the bootstrap object: exceeded quota: machines";
    json!({
        "phase": "Error", "observedGeneration": 1, "message": said,
        "conditions": [
            condition("Ready", "False", "BootstrapCreationFailed", said),
            condition("Stalled", "True", "Rejected", "refused for five minutes"),
        ],
    })
}

#[test]
fn the_status_is_believed_and_not_what_the_command_would_plan() {
    let found = inspection(&refused(), None);
    let (text, outcome) = explained(&found, at("2026-03-06T16:00:00Z"), Format::Text);
    insta::assert_snapshot!(text);
    assert_eq!(outcome, Outcome::No);
    let json = report(&found, at("2026-03-06T16:00:00Z"), Format::Json);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["verdict"]["state"], "Blocked");
    assert_eq!(json["verdict"]["reason"], "Rejected");
    assert_eq!(json["verdict"]["actor"], "Owner");
}

#[test]
fn what_the_user_may_not_read_is_no_fault_of_the_machine() {
    let status = json!({
        "phase": "Active", "observedGeneration": 1, "message": "Node worker is in service",
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "MachineRunning",
            "message": "Node worker is in service", "lastTransitionTime": "2026-03-06T14:00:00Z",
        }],
    });
    let mut found = inspection(&status, Some(running()));
    let message = "clusters.cluster.x-k8s.io \"prod\" is forbidden: User \"owner\" cannot get \
                   resource \"clusters\" in API group \"cluster.x-k8s.io\" in the namespace \
                   \"default\"";
    found.observed.cluster = Fact::Unknown(Unknown::Forbidden {
        message: message.to_owned(),
    });
    let (text, outcome) = explained(&found, at("2026-03-06T16:00:00Z"), Format::Text);
    insta::assert_snapshot!(text);
    assert_eq!(outcome, Outcome::Yes);
    assert!(
        !text.contains("Error") && !text.contains("5spot-controller"),
        "{text}"
    );
}

#[test]
fn a_reason_is_explained_from_the_table() {
    let mut out = Vec::new();
    reason::explain("kindnotserved", Format::Text, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
    let error = reason::explain("Nothing", Format::Text, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("reason Nothing: not found; "));
}

#[test]
fn a_reason_that_two_kinds_have_is_explained_for_each() {
    let explained = |name: &str| {
        let mut out = Vec::new();
        reason::explain(name, Format::Text, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = explained("Forbidden");
    for words in [
        "Forbidden (ScheduledMachine): The operator lacks a permission",
        "\n\nForbidden (ScheduledCapacity): The operator may not read the target.\n",
        "--capacity-target",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = explained("targetnotfound");
    assert!(text.starts_with("TargetNotFound: The target does not exist."));
    let mut out = Vec::new();
    reason::list(Format::Text, &mut out).unwrap();
    let list = String::from_utf8(out).unwrap();
    assert!(
        list.contains("\nFieldContested (ScheduledCapacity): "),
        "{list}"
    );
}

#[test]
fn a_machine_that_still_exists_when_the_window_has_closed_is_shut_down() {
    let found = inspection(&json!({}), Some(running()));
    insta::assert_snapshot!(report(&found, found.now, Format::Text));
}

#[test]
fn a_check_above_the_windows_is_named_if_it_decides() {
    let observed = |found: &Inspection| {
        let value = planned(found, found.now);
        let checks = value["checks"].as_array().unwrap();
        let decides = checks.iter().find(|check| check["decides"] == true);
        decides.unwrap()["observed"].as_str().unwrap().to_owned()
    };
    let of_mode = |mode: OverrideMode, now: &str| {
        let mut found = inspection(&json!({}), Some(running()));
        found.now = at(now);
        found.observed.schedule.overrides = vec![Override {
            name: "inc-1".to_owned(),
            mode,
            start: None,
            created: None,
            end: at("2026-03-06T23:30:00Z"),
        }];
        observed(&found)
    };
    // The window is open at that time, and the override takes precedence.
    let noon = "2026-03-06T17:00:00Z";
    assert_eq!(
        of_mode(OverrideMode::Stop, noon),
        "override inc-1 decides: the machine is not wanted until 2026-03-09T13:00:00Z"
    );
    assert_eq!(
        of_mode(OverrideMode::Run, FRIDAY_EVENING),
        "override inc-1 decides: the machine is wanted until 2026-03-06T23:30:00Z"
    );
    assert_eq!(
        of_mode(OverrideMode::Hold, noon),
        "the override inc-1 holds until 2026-03-06T23:30:00Z"
    );
}

#[test]
fn a_machine_whose_host_was_reclaimed_says_when_it_is_back() {
    let mut found = inspection(&json!({}), None);
    found.now = at("2026-03-06T17:05:00Z");
    let spec = json!({"return": {"after": "30m"}});
    found.object.spec.reclaim = Some(serde_json::from_value(spec).unwrap());
    let report = "2026-03-06T16:50:00Z 2026-03-06T17:05:00Z".to_owned();
    let annotation = (fivespot_api::name::HOST_FREE_ANNOTATION.to_owned(), report);
    found.object.metadata.annotations = Some([annotation].into());
    found.observed.schedule.overrides = vec![Override {
        name: "worker-5d1f1a52".to_owned(),
        mode: OverrideMode::Stop,
        start: None,
        created: None,
        end: at("2026-03-07T16:00:00Z"),
    }];
    found.observed.schedule.reclaim_stops = vec![ReclaimStop {
        name: "worker-5d1f1a52".to_owned(),
        uid: "o1".to_owned(),
        begun: at("2026-03-06T16:00:00Z"),
    }];
    let value = planned(&found, found.now);
    let checks = value["checks"].as_array().unwrap();
    let decides = checks.iter().find(|check| check["decides"] == true);
    insta::assert_snapshot!(decides.unwrap()["observed"].as_str().unwrap(), @"override worker-5d1f1a52 decides: the machine is not wanted until 2026-03-09T13:00:00Z; back at 2026-03-06T17:20:00Z if the host stays free");
}

#[test]
fn a_shutdown_is_completed_before_the_schedule_is_checked() {
    let status = json!({"shutdown": {
        "machineUID": "m1",
        "startedAt": "2026-03-06T23:00:00Z",
        "deadline": "2026-03-06T23:05:00Z",
        "reason": "ScheduleEnded",
    }});
    let value = planned(&inspection(&status, Some(running())), at(FRIDAY_EVENING));
    assert_eq!(value["checks"][4]["decides"], true, "{value}");
}

#[test]
fn a_paused_object_or_cluster_decides_first() {
    let report = |found: &Inspection| {
        let value = planned(found, found.now);
        value["checks"][0].clone()
    };
    let paused = json!({"annotations": {"cluster.x-k8s.io/paused": ""}});
    let by_object = {
        let mut found = inspection(&json!({}), None);
        found.object.metadata.annotations =
            serde_json::from_value(paused["annotations"].clone()).unwrap();
        report(&found)
    };
    let of_cluster = |change: Value| {
        let mut found = inspection(&json!({}), None);
        let mut cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "Cluster",
            "metadata": {"name": "prod", "namespace": "default", "uid": "c1"},
            "spec": {},
        });
        for (field, value) in change.as_object().unwrap() {
            for (key, value) in value.as_object().unwrap() {
                cluster[field][key] = value.clone();
            }
        }
        found.observed.cluster = Fact::Known(Some(Cluster::read(&cluster).unwrap()));
        report(&found)
    };
    let reports = [
        by_object,
        of_cluster(json!({"spec": {"paused": true}})),
        of_cluster(json!({"metadata": paused})),
    ];
    let observed_texts: Vec<&Value> =
        reports.iter().map(|check| &check["observed"]).collect();
    assert!(
        reports.iter().all(|check| check["decides"] == true),
        "{reports:?}"
    );
    assert_eq!(
        observed_texts,
        [
            "the ScheduledMachine is paused: nothing is changed",
            "the Cluster is paused: nothing is changed",
            "the Cluster is paused: nothing is changed",
        ]
    );
}

#[test]
fn instants_are_shown_to_the_second() {
    let mut found = inspection(&json!({}), None);
    found.now = at("2026-03-06T23:00:30.123456789Z");
    found.object = object(&refused());
    let instant = at("2026-03-09T14:00:00.5Z");
    let text = report(&found, instant, Format::Text);
    for line in [
        "default/worker: Blocked since 2026-03-06T14:00:00Z (phase Error, Rejected)",
        "At 2026-03-09T14:00:00Z, with the objects read at 2026-03-06T23:00:30Z:",
    ] {
        assert!(text.lines().any(|it| it == line), "{text}");
    }
}

#[test]
fn a_failure_reported_by_a_provider_is_shown_with_its_object() {
    let mut found = inspection(&json!({}), Some(running()));
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
        "metadata": {"name": "worker", "uid": "r1"},
        "status": {"deprecated": {"v1beta1": {
            "failureReason": "ProvisionFailed",
            "failureMessage": "secrets \"no-such-key\" not found",
        }}},
    });
    let provider = fivespot_capi::Provider::read(&object).unwrap();
    found.observed.infrastructure[0].found = Fact::Known(Some(provider));
    let text = report(&found, found.now, Format::Text);
    let line = "RemoteMachine    worker not ready: ProvisionFailed: secrets \"no-such-key\" not found";
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_class_of_a_machine_is_shown_with_what_prevents_its_use() {
    let mut found = inspection(&json!({}), None);
    let text = report(&found, found.now, Format::Text);
    assert!(!text.contains("ScheduledMachineClass"), "{text}");
    for (problem, state) in [
        (None, "desks is used"),
        (Some(ClassProblem::NotFound), "desks not found"),
        (
            Some(ClassProblem::NamespaceNotSelected),
            "desks does not select the namespace",
        ),
    ] {
        found.object.spec.class = Some(ResolvedClass {
            name: "desks".to_owned(),
            problem,
            ..ResolvedClass::default()
        });
        let text = report(&found, found.now, Format::Text);
        let line = format!("ScheduledMachineClass  {state}\n");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn another_instant_is_decided_with_the_same_facts() {
    let found = inspection(&json!({}), None);
    let monday = at("2026-03-09T14:00:00Z");
    let text = report(&found, monday, Format::Text);
    insta::assert_snapshot!(text);
}

#[test]
fn exactly_one_check_decides() {
    for hour in 0..168 {
        let now = at(FRIDAY_EVENING) + jiff::SignedDuration::from_hours(hour);
        let value = planned(&inspection(&json!({}), Some(running())), now);
        let checks = value["checks"].as_array().unwrap();
        let deciding = checks.iter().filter(|it| it["decides"] == true).count();
        assert_eq!(deciding, 1, "{now}: {value}");
    }
}

#[test]
fn node_access_can_be_set_as_for_the_operator() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: super::Args,
    }
    let access = |words: &[&str]| {
        let words = ["explain", "worker"].iter().chain(words);
        let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
        line.args.node_access
    };
    assert_eq!(access(&[]), NodeAccess::Workload);
    assert_eq!(
        access(&["--node-access", "management"]),
        NodeAccess::Management
    );
}

#[test]
fn another_state_that_the_operator_reports_is_shown() {
    let with_reported = |status: &str, reason: &str| {
        let access = json!({
            "type": "NodeAccess",
            "status": status,
            "reason": reason,
            "message": "there is no Secret default/prod-kubeconfig",
            "lastTransitionTime": "2026-03-06T14:00:00Z",
        });
        let found = inspection(&json!({"conditions": [access]}), Some(running()));
        report(&found, found.now, Format::Text)
    };
    insta::assert_snapshot!(with_reported("False", "KubeconfigMissing"));
    let same = with_reported("True", "Connected");
    assert!(
        !same.contains("The operator reports another state"),
        "{same}"
    );
}

#[test]
fn what_a_server_says_cannot_command_the_terminal() {
    let hostile = "<html>\u{1b}]0;pwned\u{7}\n  =>  0 trusted \u{202e}";
    let access = json!({
        "type": "NodeAccess",
        "status": "False",
        "reason": "Unreachable",
        "message": hostile,
        "lastTransitionTime": "2026-03-06T14:00:00Z",
    });
    let found = inspection(&json!({"conditions": [access]}), Some(running()));
    let text = report(&found, found.now, Format::Text);
    let line = r"(<html>\u{1b}]0;pwned\u{7}   =>  0 trusted \u{202e})";
    assert!(text.contains(line), "{text:?}");
    assert!(
        !text.contains(|it: char| it.is_control() && it != '\n'),
        "{text:?}"
    );
}

#[test]
fn a_rule_is_shown_with_its_examples() {
    let mut out = Vec::new();
    rule::explain("sm002", Format::Text, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn a_rule_is_found_by_its_number() {
    for number in ["7", "07", "SM7", "sm007"] {
        let mut out = Vec::new();
        rule::explain(number, Format::Text, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("SM007  "), "{number}: {text}");
    }
}

#[test]
fn an_unknown_rule_is_refused_with_the_valid_ids() {
    let error = rule::explain("SM000", Format::Text, &mut Vec::new()).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("rule SM000: not found; give an id from SM001 to SM"));
}

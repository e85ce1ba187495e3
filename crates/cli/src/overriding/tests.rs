use fivespot_api::{OverrideMode, ScheduleOverride, name, rules};
use fivespot_install::user::Aggregation;
use fivespot_schedule::Schedule;
use insta::assert_snapshot;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kubemu_apiserver::User;
use serde_json::{Value, json};

use super::target::Target;
use super::{
    RequestedOverride, SpanArgs, created_message, effect, end_of, next_window, table,
};
use crate::preview::Context;

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn requested() -> RequestedOverride<'static> {
    RequestedOverride {
        mode: OverrideMode::Stop,
        start: Some(instant("2026-03-06T18:00:00.7Z")),
        end: instant("2026-03-07T06:30:00Z"),
        reason: Some("no batch tonight"),
    }
}

#[test]
fn a_created_override_is_valid_and_has_the_requested_values() {
    let manifest = requested().manifest("desk-042");
    let object: ScheduleOverride = serde_json::from_value(manifest.clone()).unwrap();
    assert_eq!(rules::check_override(&object), []);
    assert_eq!(manifest["metadata"]["generateName"], "desk-042-stop-");
    assert_eq!(
        manifest["spec"],
        json!({
            "targetRef": {"name": "desk-042"},
            "mode": "Stop",
            "startTime": "2026-03-06T18:00:00Z",
            "endTime": "2026-03-07T06:30:00Z",
            "reason": "no batch tonight",
        })
    );
    assert_snapshot!(created_message("desk-042-stop-x7k2p", "", "desk-042", &requested()), @"desk-042 is stopped from 2026-03-06T18:00:00Z until 2026-03-07T06:30:00Z (ScheduleOverride desk-042-stop-x7k2p; `5spot overrides --end desk-042-stop-x7k2p` ends it)");
}

#[test]
fn the_command_that_ends_an_override_selects_the_same_cluster_and_namespace() {
    let words = [
        "hold",
        "desk-042",
        "--for",
        "2h",
        "-n",
        "team-a",
        "--context",
        "it's prod",
    ];
    let typed = <CommandLine as clap::Parser>::try_parse_from(words).unwrap();
    let flags = typed.hold.create.access.flags();
    let message = created_message("desk-042-run-x", &flags, "desk-042", &requested());
    let command =
        r"`5spot overrides --end desk-042-run-x -n team-a --context 'it'\''s prod'` ends";
    assert!(message.contains(command), "{message}");
}

#[test]
fn the_next_window_is_the_one_that_has_not_started() {
    let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC").unwrap();
    let monday = (
        instant("2026-03-09T09:00:00Z"),
        instant("2026-03-09T18:00:00Z"),
    );
    assert_eq!(
        next_window(&office, instant("2026-03-06T12:00:00Z")),
        Some(monday)
    );
    assert_eq!(
        next_window(&office, instant("2026-03-07T12:00:00Z")),
        Some(monday)
    );
    let always = Schedule::weekly(&["mon-sun"], &["0-23"], "UTC").unwrap();
    assert_eq!(next_window(&always, instant("2026-03-06T12:00:00Z")), None);
}

#[test]
fn overrides_are_listed_by_their_ends_with_their_state() {
    let object = |name: &str, spec: serde_json::Value| -> ScheduleOverride {
        let metadata = json!({"name": name, "namespace": "team-a"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    };
    let target = json!({"name": "desk-042"});
    let with_status = |name: &str, status: serde_json::Value| {
        let mut with_status = object(
            name,
            json!({
                "targetRef": target, "mode": "Run", "endTime": "2026-03-06T14:00:00Z",
            }),
        );
        with_status.status = Some(serde_json::from_value(status).unwrap());
        with_status
    };
    let disabled = json!([{
        "type": "Ignored", "status": "True", "reason": "x", "message": "",
        "lastTransitionTime": "2026-03-06T11:00:00Z",
    }]);
    let all = [
        with_status("typo", json!({"matchedMachines": 0})),
        with_status(
            "without-effect",
            json!({"matchedMachines": 1, "conditions": disabled}),
        ),
        object(
            "late",
            json!({
                "targetRef": target, "mode": "Stop", "startTime": "2026-03-06T18:00:00Z",
                "endTime": "2026-03-07T06:30:00Z", "reason": "no batch\u{7}",
            }),
        ),
        object(
            "now",
            json!({
                "selector": {"matchLabels": {"pool": "a"}}, "mode": "Run",
                "endTime": "2026-03-06T13:00:00Z",
            }),
        ),
        object(
            "over",
            json!({
                "targetRef": target, "mode": "Hold", "endTime": "2026-03-06T11:00:00Z",
            }),
        ),
    ];
    let mut out = Vec::new();
    table::print(&mut out, &all, instant("2026-03-06T12:00:00Z")).unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    NAMESPACE  NAME            MODE  TARGET      FROM                  UNTIL                 STATE       REASON
    team-a     over            Hold  desk-042    -                     2026-03-06T11:00:00Z  ended       -
    team-a     now             Run   (selector)  -                     2026-03-06T13:00:00Z  in force    -
    team-a     typo            Run   desk-042    -                     2026-03-06T14:00:00Z  no machine  -
    team-a     without-effect  Run   desk-042    -                     2026-03-06T14:00:00Z  ignored     -
    team-a     late            Stop  desk-042    2026-03-06T18:00:00Z  2026-03-07T06:30:00Z  waiting     no batch\u{7}
    ");
}

#[test]
fn an_override_is_superseded_by_a_stronger_one_of_the_same_machine() {
    let object = |namespace: &str, name: &str, target: Value, mode: &str, hour: u8| {
        let mut object = json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"mode": mode, "endTime": format!("2026-03-06T{hour}:00:00Z")},
        });
        if name == "selected" {
            object["spec"]["selector"] = target;
        } else {
            object["spec"]["targetRef"] = target;
        }
        if name == "ignored" {
            object["status"] = json!({"conditions": [{
                "type": "Ignored", "status": "True", "reason": "TooMany", "message": "",
                "lastTransitionTime": "2026-03-06T11:00:00Z",
            }]});
        }
        serde_json::from_value::<ScheduleOverride>(object).unwrap()
    };
    let (first, second) = (json!({"name": "desk-042"}), json!({"name": "desk-043"}));
    let all = [
        object("team-a", "run", first.clone(), "Run", 14),
        object("team-a", "stop", first.clone(), "Stop", 13),
        object("team-b", "elsewhere", first, "Run", 14),
        object("team-a", "other", second.clone(), "Run", 14),
        object("team-a", "over", second.clone(), "Stop", 11),
        object("team-a", "ignored", second, "Stop", 15),
        object(
            "team-a",
            "selected",
            json!({"matchLabels": {"pool": "a"}}),
            "Run",
            14,
        ),
    ];
    let mut out = Vec::new();
    table::print(&mut out, &all, instant("2026-03-06T12:00:00Z")).unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    NAMESPACE  NAME       MODE  TARGET      FROM  UNTIL                 STATE       REASON
    team-a     over       Stop  desk-043    -     2026-03-06T11:00:00Z  ended       -
    team-a     stop       Stop  desk-042    -     2026-03-06T13:00:00Z  in force    -
    team-a     run        Run   desk-042    -     2026-03-06T14:00:00Z  superseded  -
    team-b     elsewhere  Run   desk-042    -     2026-03-06T14:00:00Z  in force    -
    team-a     other      Run   desk-043    -     2026-03-06T14:00:00Z  in force    -
    team-a     selected   Run   (selector)  -     2026-03-06T14:00:00Z  in force    -
    team-a     ignored    Stop  desk-043    -     2026-03-06T15:00:00Z  ignored     -
    ");
}

#[derive(Debug, clap::Parser)]
struct CommandLine {
    #[command(flatten)]
    hold: SpanArgs,
}

/// The end of `5spot hold desk-042 ...` at noon, or the error message.
fn parse_end(rest: &[&str]) -> String {
    let target = target(&machine(|_| ()), "");
    end_in_mode(OverrideMode::Hold, &target, rest)
}

/// The machine with what is in these documents.
fn target(machine: &Value, documents: &str) -> Target {
    let documents = crate::document::parse("test.yaml", documents).unwrap();
    let context = Context::of(&documents, Some("team-a"));
    Target::of(
        serde_json::from_value(machine.clone()).unwrap(),
        Ok(context),
    )
}

/// The end of an override of that mode at noon, or the error message.
fn end_in_mode(mode: OverrideMode, target: &Target, rest: &[&str]) -> String {
    let now = instant("2026-03-06T12:00:00.5Z");
    let words = ["hold", "desk-042"].iter().chain(rest);
    match <CommandLine as clap::Parser>::try_parse_from(words) {
        Err(refused) => refused.to_string().lines().next().unwrap().to_owned(),
        Ok(typed) => match end_of(&typed.hold, mode, target, now) {
            Ok(end) => format!("until {end}"),
            Err(refused) => format!("error: {refused}"),
        },
    }
}

fn machine(change: fn(&mut Value)) -> Value {
    let mut machine = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": "desk-042", "namespace": "team-a"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"],
                         "timezone": "Europe/Zurich"},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                              "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                                   "kind": "RemoteMachine", "spec": {}},
        },
    });
    change(&mut machine["spec"]);
    machine
}

#[test]
fn an_end_that_has_passed_is_refused_and_a_length_is_explained() {
    let rows = [
        &["--for", "90m"][..],
        &["--until", "2026-03-07"],
        &["--for", "0s"],
        &["--until", "2026-03-06"],
        &["--until", "2026-03-06T12:00:00Z"],
        &["--for", "336h"],
        &["--for", "400h"],
        &["--until", "2026-03-21"],
        &["--for", "20d"],
        &["--for", "2"],
        &["--for", "-2h"],
    ];
    let printed: Vec<String> = rows.map(parse_end).into();
    assert_snapshot!(printed.join("\n"), @r"
    until 2026-03-06T13:30:00.5Z
    until 2026-03-06T23:00:00Z
    error: --for: 2026-03-06T12:00:00Z is not later than now, 2026-03-06T12:00:00Z; give a later end
    error: --until: 2026-03-05T23:00:00Z is not later than now, 2026-03-06T12:00:00Z; give a later end
    error: --until: 2026-03-06T12:00:00Z is not later than now, 2026-03-06T12:00:00Z; give a later end
    until 2026-03-20T12:00:00.5Z
    error: --for: 2026-03-23T04:00:00Z is more than 14 days from now; give an earlier end, and another override later
    error: --until: 2026-03-20T23:00:00Z is more than 14 days from now; give an earlier end, and another override later
    error: invalid value '20d' for '--for <DURATION>': must be digits and one of s, m, h, such as 90m or 2h: 20 days are 480h
    error: invalid value '2' for '--for <DURATION>': must be digits and one of s, m, h, such as 90m or 2h
    error: invalid value '-2h' for '--for <DURATION>': must be digits and one of s, m, h, such as 90m or 2h
    ");
}

#[test]
fn an_override_without_effect_is_reported_with_the_stronger_one() {
    let now = instant("2026-03-06T12:00:00Z");
    let by = |name: &str, mode: &str, end: &str| -> ScheduleOverride {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "team-a"},
            "spec": {"targetRef": {"name": "desk-042"}, "mode": mode, "endTime": end},
        }))
        .unwrap()
    };
    let run = by("run", "Run", "2026-03-06T14:00:00Z");
    let stop = by("stop", "Stop", "2026-03-06T13:00:00Z");
    let over = by("over", "Stop", "2026-03-06T11:00:00Z");
    let all = [run, stop, over];
    let noted = |change: fn(&mut Value), name: &str, others: &[ScheduleOverride]| {
        let mut context = Context::default();
        for other in others {
            context.inputs.add_override("team-a", other.clone());
        }
        let machine = serde_json::from_value(machine(change)).unwrap();
        let target = Target::of(machine, Ok(context));
        let created = all
            .iter()
            .find(|it| it.metadata.name.as_deref() == Some(name));
        effect::note(target, created.unwrap().clone(), now)
            .unwrap_or_else(|| "-".to_owned())
    };
    let printed = [
        noted(|_| (), "run", &all[1..]),
        noted(|_| (), "stop", &[all[0].clone(), all[2].clone()]),
        noted(|_| (), "run", &[]),
        noted(|spec| spec["killSwitch"] = json!(true), "run", &all),
        noted(
            |spec| spec["schedule"]["enabled"] = json!(false),
            "run",
            &all,
        ),
        noted(|spec| spec["enforcement"] = json!("Audit"), "run", &all),
        noted(
            |spec| spec["schedule"]["hoursOfDay"] = json!(["25"]),
            "run",
            &all,
        ),
    ];
    assert_snapshot!(printed.join("\n"), @r"
    override stop takes precedence until 2026-03-06T13:00:00Z (Stop over Hold over Run; of the same mode, the one that ends last)
    -
    -
    it has no effect while spec.killSwitch is true
    it has no effect while spec.schedule.enabled is false
    it is only reported while spec.enforcement is Audit
    it has no effect while the schedule is invalid
    ");
}

const DESKS: &str = "\
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduledMachineClass
metadata: {name: desks}
spec:
  clusterNames: [prod]
  bootstrapSpec: {apiVersion: b/v1, kind: B, spec: {}}
  infrastructureSpec: {apiVersion: i/v1, kind: I, spec: {}}
  limits: {maxOverride: 2h}
";

fn of_class() -> Value {
    let mut machine = machine(|_| ());
    machine["spec"] = json!({
        "schedule": machine["spec"]["schedule"], "classRef": {"name": "desks"},
    });
    machine
}

#[test]
fn a_run_that_the_class_does_not_allow_is_refused_and_a_stop_or_hold_is_not() {
    let target = target(&of_class(), DESKS);
    let ends = |mode, length: &str| end_in_mode(mode, &target, &["--for", length]);
    assert_eq!(
        ends(OverrideMode::Run, "2h"),
        "until 2026-03-06T14:00:00.5Z"
    );
    assert_eq!(
        ends(OverrideMode::Run, "121m"),
        "error: --for: 2026-03-06T14:01:00Z is more than 2h from now, the longest that \
         ScheduledMachineClass desks allows; give an earlier end"
    );
    for mode in [OverrideMode::Stop, OverrideMode::Hold] {
        assert_eq!(ends(mode, "121m"), "until 2026-03-06T14:01:00.5Z");
    }
}

#[test]
fn an_override_that_the_operator_does_not_consider_is_reported() {
    let now = instant("2026-03-06T12:00:00Z");
    let run: ScheduleOverride = serde_json::from_value(json!({
        "metadata": {"name": "run", "namespace": "team-a", "creationTimestamp": now},
        "spec": {
            "targetRef": {"name": "desk-042"}, "mode": "Run", "endTime": "2026-03-06T14:00:01Z",
        },
    }))
    .unwrap();
    let noted =
        |documents| effect::note(target(&of_class(), documents), run.clone(), now);
    let note = noted(DESKS).unwrap();
    assert!(
        note.contains("longer than the class of the machine allows"),
        "{note}"
    );
    assert_eq!(noted(""), None);
}

#[test]
fn a_window_that_the_operator_does_not_open_is_not_the_next_one() {
    let run = "\
---
apiVersion: 5spot.finos.org/v1alpha1
kind: ScheduleOverride
metadata: {name: run, creationTimestamp: 2026-03-06T12:00:00Z}
spec:
  targetRef: {name: desk-042}
  mode: Run
  startTime: 2026-03-07T12:00:00Z
  endTime: 2026-03-07T15:00:00Z
";
    let next = |documents: &str| {
        let schedule = target(&of_class(), documents).schedule.unwrap();
        next_window(&schedule, instant("2026-03-07T06:00:00Z"))
            .unwrap()
            .0
    };
    assert_eq!(
        next(&format!("{DESKS}{run}")),
        instant("2026-03-09T08:00:00Z")
    );
    let allowed = DESKS.replace("maxOverride: 2h", "maxOverride: 3h");
    assert_eq!(
        next(&format!("{allowed}{run}")),
        instant("2026-03-07T12:00:00Z")
    );
}

#[test]
fn a_date_is_in_the_time_zone_of_the_schedule_that_a_machine_follows() {
    let mut follower = machine(|_| ());
    follower["spec"]["schedule"] = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "TimeBasedSpotSchedule", "name": "office",
    });
    let office = "\
apiVersion: spotschedules.5spot.finos.org/v1alpha1
kind: TimeBasedSpotSchedule
metadata: {name: office}
spec: {daysOfWeek: [mon-fri], hoursOfDay: ['9-17'], timezone: Asia/Tokyo}
";
    let ends = |documents, until: &str| {
        let target = target(&follower, documents);
        end_in_mode(OverrideMode::Stop, &target, &["--until", until])
    };
    assert_eq!(ends(office, "2026-03-08"), "until 2026-03-07T15:00:00Z");
    assert_eq!(
        ends("", "2026-03-08"),
        "error: --until: the time zone of a date is not known: the schedule of ScheduledMachine desk-042: \
         there is no TimeBasedSpotSchedule office in namespace team-a; create it; or give a time \
         such as 2026-03-08T07:00:00Z"
    );
    let instant = ends("", "2026-03-08T00:00:00Z");
    assert_eq!(instant, "until 2026-03-08T00:00:00Z");
}

#[tokio::test]
async fn a_missing_definition_of_overrides_is_named() {
    let cluster = fivespot_testkit::Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let connection = crate::cluster::Connection {
        client: cluster.client(),
        address: "https://it".to_owned(),
        now: instant("2026-03-06T15:00:00Z"),
    };
    let crd = "scheduleoverrides.5spot.finos.org";
    cluster
        .delete(&format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}"
        ))
        .await;
    let failed = super::read::list(&connection, false).await;
    let failed = failed.unwrap_err().to_string();
    assert!(
        failed.contains(&format!("there is no CRD {crd}")),
        "{failed}"
    );
}

#[tokio::test]
async fn a_user_without_the_right_to_override_is_told_which_role_has_it() {
    let cluster = fivespot_testkit::Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let owner = User::new("owner", &["system:authenticated"]);
    let client = kube::Client::new(cluster.server().in_process_as(owner), "default");
    let refused = super::create(&client, "desk-042", &requested()).await;
    let refused = refused.unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.contains("User \"owner\" cannot create"),
        "{refused}"
    );
    let remedy =
        "ask who binds roles in this namespace for the ClusterRole 5spot-override-editor";
    assert!(refused.ends_with(remedy), "{refused}");
}

#[tokio::test]
async fn the_role_for_overrides_shows_the_schedule_that_a_machine_follows() {
    let now = instant("2026-03-06T15:00:00Z");
    let cluster = fivespot_testkit::Cluster::start(now).await;
    let roles = fivespot_install::user::roles(Aggregation::Both);
    let is_editor = |role: &&Value| role["metadata"]["name"] == name::OVERRIDE_EDITOR;
    cluster.apply(roles.iter().find(is_editor).unwrap()).await;
    let rbac = "rbac.authorization.k8s.io";
    cluster
        .apply(&json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "owners", "namespace": "default"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name::OVERRIDE_EDITOR},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "owner"}],
        }))
        .await;
    cluster
        .apply(&json!({
            "apiVersion": name::SPOT_API_VERSION, "kind": name::TIME_BASED_KIND,
            "metadata": {"name": "office", "namespace": "default"},
            "spec": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
        }))
        .await;
    let mut follower = fivespot_testkit::scheduled_machine("worker");
    follower["spec"]["schedule"] = json!({
        "apiVersion": name::SPOT_API_VERSION, "kind": name::TIME_BASED_KIND, "name": "office",
    });
    cluster.apply(&follower).await;
    let owner = User::new("owner", &["system:authenticated"]);
    let connection = crate::cluster::Connection {
        client: kube::Client::new(cluster.server().in_process_as(owner), "default"),
        address: "https://it".to_owned(),
        now,
    };
    let target = Target::read(&connection, "worker").await.unwrap();
    let monday = instant("2026-03-09T09:00:00Z");
    let next = next_window(&target.schedule.unwrap(), now);
    assert_eq!(next.map(|(start, _)| start), Some(monday));
}

#[tokio::test]
async fn the_server_knows_who_wrote_an_override_and_the_output_leaves_that_out() {
    let now = instant("2026-03-06T15:00:00Z");
    let cluster = fivespot_testkit::Cluster::start(now).await;
    let connection = crate::cluster::Connection {
        client: cluster.client(),
        address: "https://it".to_owned(),
        now,
    };
    let client = &connection.client;
    let created = super::create(client, "desk-042", &requested()).await;
    let created = created.unwrap().metadata;
    assert_eq!(created.managed_fields, None);
    let api: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &ApiResource::erase::<ScheduleOverride>(&()),
    );
    let stored = api.get(&created.name.unwrap()).await.unwrap();
    let entries = stored.metadata.managed_fields.unwrap_or_default();
    let managers: Vec<_> = entries
        .iter()
        .filter_map(|it| it.manager.as_deref())
        .collect();
    assert_eq!(managers, ["5spot"]);
    let listed = super::read::list(&connection, false).await;
    let listed = listed.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].metadata.managed_fields, None);
}

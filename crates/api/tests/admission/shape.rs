//! The types and the schema describe the same object.

use std::collections::BTreeSet;

use fivespot_api::resource::{
    CAPITAL_MARKETS_SCHEDULE, SCHEDULE_CALENDAR, SCHEDULE_OVERRIDE,
    TIME_BASED_SPOT_SCHEDULE,
};
use fivespot_api::{
    CapitalMarketsSchedule, ScheduleCalendar, ScheduleOverride, ScheduledMachine,
    TimeBasedSpotSchedule, crd,
};
use serde_json::{Value, json};

use super::evaluator::Evaluator;

/// An object in which every field is set.
fn full() -> Value {
    let reference = |kind: &str| {
        json!({"apiVersion": "example.com/v1", "kind": kind, "name": "worker",
               "namespace": "default", "uid": "1"})
    };
    let inline = |kind: &str| {
        json!({"apiVersion": "k0smotron.io/v1beta1", "kind": kind, "namespace": "default",
               "metadata": {"labels": {"rack": "7"}, "annotations": {"note": "b"}},
               "spec": {"any": {"thing": [1, 2.5, null, true]}}})
    };
    let taint = json!({"key": "workload", "value": "batch", "effect": "NoSchedule"});
    let instant = "2026-03-06T22:00:00Z";
    let status = json!({
        "phase": "ShuttingDown", "message": "leaving", "ready": false, "inSchedule": false,
        "observedGeneration": 3, "clusterName": "prod",
        "conditions": [{
            "type": "Ready", "status": "False", "observedGeneration": 3,
            "lastTransitionTime": instant, "reason": "ShuttingDown", "message": "leaving",
        }],
        "machineRef": reference("Machine"), "bootstrapRef": reference("K0sWorkerConfig"),
        "infrastructureRef": reference("RemoteMachine"), "specHash": "00",
        "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "worker", "uid": "2"},
        "providerID": "remote-machine://10.0.0.1:22",
        "shutdown": {"machineUID": "1", "startedAt": instant, "deadline": instant,
                     "reason": "ScheduleEnded", "windowEnd": instant},
        "appliedNodeTaints": [taint],
        "returns": [{"time": instant, "overrideUID": "3"}],
        "lastScheduledTime": instant, "nextActivation": instant, "nextCleanup": instant,
        "nextTransition": instant,
        "spotSchedule": {
            "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
            "kind": "TimeBasedSpotSchedule", "name": "office", "active": true,
            "nextTransitionTime": instant, "observedGeneration": 2,
        },
        "override": {"name": "tonight", "mode": "Run", "endTime": instant},
        "host": "desk-7",
        "leadTime": "10m", "lastProvisioning": {"startTime": instant, "readyTime": instant},
        "lastShutdownTime": instant,
        "weeklyUse": {"weekStart": instant, "seconds": 3600, "since": instant},
        "usage": {
            "months": [{
                "month": "2026-03", "activeSeconds": 1, "wantedSeconds": 2,
                "provisioningSeconds": 3, "lateSeconds": 4, "auditedSeconds": 6, "reclaims": 5,
            }],
            "startTime": instant, "accountedTime": instant, "accountedState": "Active",
        },
    });
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {
            "schedule": {
                "daysOfWeek": [], "hoursOfDay": [], "cron": "0 9 * * 1-5", "duration": "8h",
                "exceptions": [
                    {"name": "a", "action": "Stop", "calendarRef": {"name": "zurich"}},
                    {"name": "b", "action": "Run", "startDate": "2026-12-24",
                     "endDate": "2026-12-31"},
                ],
                "timezone": "Europe/Zurich", "enabled": false,
            },
            "clusterName": "prod",
            "bootstrapSpec": inline("K0sWorkerConfig"),
            "infrastructureSpec": inline("RemoteMachine"),
            "machineTemplate": {"labels": {"team": "a"}, "annotations": {"note": "b"},
                                "version": "v1.31.2", "failureDomain": "zone-1"},
            "enabled": true,
            "priority": 255,
            "gracefulShutdownTimeout": "10m",
            "nodeDrainTimeout": "0s",
            "killSwitch": true,
            "enforcement": "Audit",
            "killIfCommands": ["game"],
            "reclaim": {"return": {"after": "30m", "maxPerDay": 3}},
            "nodeTaints": [taint],
            "provisioning": {"leadTime": "10m", "timeout": "20m", "minimumRun": "30m"},
            "shutdown": {"endPolicy": "CompleteByWindowEnd", "lastCall": "0s"},
        },
        "status": status,
    })
}

/// The same with windows and the fields that exist to be rejected.
fn full_with_rejected() -> Value {
    let mut object = full();
    object["spec"]["reclaim"]["commands"] = json!(["game"]);
    object["spec"]["classRef"] = json!({"name": "desks", "host": "desk-7"});
    object["spec"]["kata"] = json!({"kind": "ConfigMap"});
    for (field, value) in [
        ("apiVersion", "spotschedules.5spot.finos.org/v1alpha1"),
        ("kind", "TimeBasedSpotSchedule"),
        ("name", "office"),
    ] {
        object["spec"]["schedule"][field] = json!(value);
    }
    for role in ["bootstrapSpec", "infrastructureSpec"] {
        let metadata = &mut object["spec"][role]["metadata"];
        metadata["name"] = json!("worker");
        metadata["namespace"] = json!("default");
    }
    object["spec"]["schedule"]["windows"] = json!([
        {"name": "night", "days": ["mon-fri"], "start": "19:00", "end": "07:30"},
        {"name": "weekend", "days": ["sat"], "start": "07:30", "duration": "48h"},
    ]);
    object
}

fn schedule_override() -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleOverride",
        "metadata": {"name": "tonight", "namespace": "default"},
        "spec": {
            "selector": {
                "matchLabels": {"team": "a"},
                "matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}],
            },
            "mode": "Stop",
            "startTime": "2026-03-06T18:00:00Z",
            "endTime": "2026-03-06T22:00:00Z",
            "reason": "INC-4711",
        },
        "status": {
            "observedGeneration": 1, "matchedMachines": 2,
            "conditions": [{
                "type": "Active", "status": "True", "reason": "InForce", "message": "",
                "lastTransitionTime": "2026-03-06T18:00:00Z",
            }],
        },
    })
}

fn schedule_calendar() -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleCalendar",
        "metadata": {"name": "zurich", "namespace": "default"},
        "spec": {"dates": [
            {"name": "christmas", "date": "12-25"},
            {"name": "works", "startDate": "2026-07-01", "endDate": "2026-07-14"},
        ]},
    })
}

fn time_based() -> Value {
    json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "TimeBasedSpotSchedule",
        "metadata": {"name": "office", "namespace": "default"},
        "spec": full()["spec"]["schedule"],
    })
}

fn capital_markets() -> Value {
    json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "CapitalMarketsSchedule",
        "metadata": {"name": "nyse", "namespace": "default"},
        "spec": {
            "timezone": "America/New_York",
            "sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}],
            "holidays": ["2026-11-26"],
            "earlyCloses": [{"date": "2026-11-27", "closeHour": 12}],
        },
    })
}

#[test]
fn shared_schedules_are_admitted_and_round_trip() {
    let object = time_based();
    let evaluator = Evaluator::shipped_of(TIME_BASED_SPOT_SCHEDULE);
    assert_eq!(evaluator.create(object.clone()), [""; 0]);
    let typed: TimeBasedSpotSchedule = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), object);

    let object = capital_markets();
    let evaluator = Evaluator::shipped_of(CAPITAL_MARKETS_SCHEDULE);
    assert_eq!(evaluator.create(object.clone()), [""; 0]);
    let typed: CapitalMarketsSchedule = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), object);
}

#[test]
fn overrides_and_calendars_are_admitted_and_round_trip() {
    let object = schedule_override();
    let evaluator = Evaluator::shipped_of(SCHEDULE_OVERRIDE);
    assert_eq!(evaluator.create(object.clone()), [""; 0]);
    let typed: ScheduleOverride = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), object);

    let object = schedule_calendar();
    let evaluator = Evaluator::shipped_of(SCHEDULE_CALENDAR);
    assert_eq!(evaluator.create(object.clone()), [""; 0]);
    let typed: ScheduleCalendar = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), object);
    let other = serde_json::from_value::<ScheduleCalendar>(schedule_override());
    let error = other.unwrap_err().to_string();
    assert!(error.starts_with("kind is `ScheduleOverride`"), "{error}");
}

#[test]
fn a_status_that_was_never_written_is_none() {
    let mut object = minimal();
    object["status"] = json!({"observedGeneration": -1});
    let read: ScheduledMachine = serde_json::from_value(object).unwrap();
    assert_eq!(read.status, None);
    let mut object = schedule_override();
    object["status"] = json!({"observedGeneration": -1});
    let read: ScheduleOverride = serde_json::from_value(object).unwrap();
    assert_eq!(read.status.unwrap().observed_generation, None);
}

fn minimal() -> Value {
    let mut object = full();
    object["status"].take();
    let spec = object["spec"].as_object_mut().unwrap();
    spec.retain(|field, _| {
        [
            "schedule",
            "clusterName",
            "bootstrapSpec",
            "infrastructureSpec",
        ]
        .contains(&field.as_str())
    });
    spec["schedule"] = json!({"cron": "0 9 * * 1-5"});
    object.as_object_mut().unwrap().remove("status");
    object
}

/// Every field of a schema or an object, as paths; the fields of lists are those of their
/// items.
fn schema_fields(schema: &Value, prefix: &str, fields: &mut BTreeSet<String>) {
    let node = schema.get("items").unwrap_or(schema);
    for (name, property) in node["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}.{name}");
        schema_fields(property, &path, fields);
        fields.insert(path);
    }
}

fn object_fields(value: &Value, prefix: &str, fields: &mut BTreeSet<String>) {
    if prefix.ends_with(".spec.any")
        || prefix.contains(".machineTemplate.") && value.is_string()
    {
        return;
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let path = format!("{prefix}.{name}");
        object_fields(member, &path, fields);
        fields.insert(path);
    }
    for item in value.as_array().into_iter().flatten() {
        object_fields(item, prefix, fields);
    }
}

#[test]
fn an_object_with_every_field_is_admitted_and_round_trips() {
    assert_eq!(Evaluator::shipped().create(full()), [""; 0]);
    let typed: ScheduledMachine = serde_json::from_value(full()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), full());
}

#[test]
fn every_field_of_the_schema_is_a_field_of_the_types() {
    let crd = crd::render_without_rules();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let object = full_with_rejected();
    for part in ["spec", "status"] {
        let (mut in_schema, mut in_object) = (BTreeSet::new(), BTreeSet::new());
        schema_fields(&schema[part], "", &mut in_schema);
        object_fields(&object[part], "", &mut in_object);
        in_object.retain(|path| !path.contains(".spec.any") && !is_map_entry(path));
        assert_eq!(in_schema, in_object);
    }
}

fn is_map_entry(path: &str) -> bool {
    path.contains(".labels.")
        || path.contains(".annotations.")
        || path.starts_with(".kata.")
}

#[test]
fn the_types_and_the_schema_have_the_same_defaults() {
    let from_server: ScheduledMachine =
        serde_json::from_value(Evaluator::crd_alone().stored(minimal())).unwrap();
    let from_file: ScheduledMachine = serde_json::from_value(minimal()).unwrap();
    assert_eq!(from_server, from_file);
}

#[test]
fn nulls_of_fields_with_a_default_are_absent_for_server_and_types() {
    let mut object = minimal();
    object["spec"]["machineTemplate"] = Value::Null;
    object["spec"]["nodeTaints"] =
        json!([{"key": "workload", "value": null, "effect": "NoSchedule"}]);
    object["spec"]["schedule"]["daysOfWeek"] = Value::Null;
    assert_eq!(Evaluator::shipped().create(object.clone()), [""; 0]);
    let from_server: ScheduledMachine =
        serde_json::from_value(Evaluator::shipped().stored(object.clone())).unwrap();
    assert_eq!(from_server, serde_json::from_value(object).unwrap());
}

#[test]
fn a_value_of_another_type_anywhere_is_an_error_and_no_panic() {
    let object = full_with_rejected();
    let mut paths = BTreeSet::new();
    object_fields(&object["spec"], "/spec", &mut paths);
    object_fields(&object["status"], "/status", &mut paths);
    for path in paths {
        let pointer = path.replace('.', "/");
        let mut wrong = object.clone();
        let Some(member) = wrong.pointer_mut(&pointer) else {
            continue;
        };
        *member = json!([[0]]);
        let read = serde_json::from_value::<ScheduledMachine>(wrong);
        // An entry of a later release is skipped.
        let may_be_anything = pointer.contains("/spec/any")
            || pointer.starts_with("/spec/kata/")
            || pointer == "/status/appliedNodeTaints";
        assert_eq!(read.is_ok(), may_be_anything, "{pointer}");
    }
}

#[test]
fn unknown_fields_are_ignored_and_an_unknown_phase_is_none() {
    let mut object = full();
    object["spec"]["colour"] = json!("red");
    object["status"]["phase"] = json!("Sleeping");
    let typed: ScheduledMachine = serde_json::from_value(object).unwrap();
    assert_eq!(typed.status.unwrap().phase, None);
}

#[test]
fn an_object_of_another_kind_or_group_is_an_error() {
    for (field, value) in [
        ("kind", "Machine"),
        ("apiVersion", "capi.5spot.io/v1alpha1"),
    ] {
        let mut object = full();
        object[field] = json!(value);
        let error = serde_json::from_value::<ScheduledMachine>(object).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{field} is `{value}`")),
            "{error}"
        );
    }
    let mut item = full();
    item.as_object_mut().unwrap().remove("kind");
    item.as_object_mut().unwrap().remove("apiVersion");
    assert!(serde_json::from_value::<ScheduledMachine>(item).is_ok());
}

/// Kubernetes 1.30 knows a property whose name is a word of CEL by its escaped name only.
#[test]
fn rules_of_the_definitions_read_a_namespace_by_its_escaped_name() {
    let all = fivespot_api::manifest::definitions(fivespot_api::crd::SHIPPED_MINOR);
    let text = serde_json::Value::from(all).to_string();
    assert!(text.contains("has(self.__namespace__)"));
    for plain in ["self.namespace", ".value().namespace"] {
        assert!(!text.contains(plain), "{plain}");
    }
}

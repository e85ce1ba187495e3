//! Warnings about ScheduledCapacities.

use fivespot_schedule::Steps;
use jiff::Timestamp;

use super::{
    LintWarning, MAX_STEPS, NEVER_DRAINED, SAME_VALUES, SHARED_FIELD, of_several,
    of_spec, warning,
};
use crate::ScheduledCapacity;

/// The numbers of a status that are left out while they are 0, by group, kind and path.
const LEFT_OUT: &[(&str, &str, &[&str])] = &[
    (
        "apps",
        "Deployment",
        &[
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "updatedReplicas",
        ],
    ),
    ("apps", "StatefulSet", &["readyReplicas"]),
    (
        "apps",
        "ReplicaSet",
        &["readyReplicas", "availableReplicas"],
    ),
    ("batch", "Job", &["active", "ready"]),
];

/// The warnings about one ScheduledCapacity, as of `now`: those about its schedule, SL016 and SL017.
pub fn of_capacity(object: &ScheduledCapacity, now: Timestamp) -> Vec<LintWarning> {
    let mut warnings = of_spec(&object.spec.schedule, now, &Steps::at_most(MAX_STEPS));
    warnings.extend(same_values(object));
    warnings.extend(never_drained(object));
    warnings
}

fn same_values(object: &ScheduledCapacity) -> Vec<LintWarning> {
    let is_single = object.spec.capacity.is_some();
    let all = object.spec.all_fields().into_iter().enumerate();
    let same = all.filter(|(_, it)| it.active_value == it.inactive_value);
    let warnings = same.map(|(place, it)| {
        let field = if is_single {
            "spec.capacity".to_owned()
        } else {
            format!("spec.fields[{place}]")
        };
        let message = format!(
            "{} is {} whatever the schedule says",
            it.field, it.active_value
        );
        warning(SAME_VALUES, field, message)
    });
    warnings.collect()
}

fn never_drained(object: &ScheduledCapacity) -> Option<LintWarning> {
    let target = &object.spec.target;
    let (group, _) = target.api_version.split_once('/')?;
    let path = object.spec.handback.as_ref()?.path_below_status();
    let (.., paths) = LEFT_OUT
        .iter()
        .find(|(of, kind, _)| *of == group && *kind == target.kind)?;
    paths.contains(&path).then(|| {
        let message = format!("a {} leaves status.{path} out while it is 0", target.kind);
        warning(NEVER_DRAINED, "spec.handback.drainedPath", message)
    })
}

/// The warnings about fields that several of `objects` write, SL018: each with the index in
/// `objects` of the object that it concerns. Objects with the same namespace and name count as one.
pub fn shared_fields(objects: &[&ScheduledCapacity]) -> Vec<(usize, LintWarning)> {
    let written = objects.iter().enumerate().flat_map(|(place, object)| {
        let target = &object.spec.target;
        let (group, _) = target.api_version.rsplit_once('/').unwrap_or_default();
        object.spec.all_fields().into_iter().map(move |it| {
            let field = [
                format!("{}/{group}", namespace(object)),
                target.kind.clone(),
                object.target_name().to_owned(),
                it.field,
            ];
            (
                field,
                place,
                object.metadata.name.clone().unwrap_or_default(),
            )
        })
    });
    of_several(written, |[_, kind, target, path], other| {
        let message = format!(
            "{path} of {kind} {target} is also written by ScheduledCapacity {other}"
        );
        warning(SHARED_FIELD, "spec.target", message)
    })
}

fn namespace(object: &ScheduledCapacity) -> &str {
    object.metadata.namespace.as_deref().unwrap_or("default")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn capacity(name: &str, change: impl FnOnce(&mut Value)) -> ScheduledCapacity {
        let mut object = json!({
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {
                "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
                "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "capacity": {"field": "replicas", "activeValue": 3},
            },
        });
        change(&mut object["spec"]);
        serde_json::from_value(object).unwrap()
    }

    fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let now = "2026-01-05T00:00:00Z".parse().unwrap();
        let all = of_capacity(&capacity("web", change), now).into_iter();
        all.map(|it| format!("{} {}: {}", it.lint.code, it.field, it.message))
            .collect()
    }

    #[test]
    fn a_usual_capacity_has_no_warnings() {
        assert_eq!(found(|_| {}), [""; 0]);
        let follows = |spec: &mut Value| {
            spec["schedule"] = json!({
                "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
                "kind": "TimeBasedSpotSchedule", "name": "office",
            });
        };
        assert_eq!(found(follows), [""; 0]);
    }

    #[test]
    fn a_schedule_that_never_opens_is_reported_as_for_a_machine() {
        let over = |spec: &mut Value| {
            spec["schedule"] = json!({"windows": [
                {"name": "w", "start": "09:00", "duration": "1h", "days": ["mon"]},
            ]});
            spec["schedule"]["exceptions"] = json!([
                {"name": "never", "action": "Stop", "startDate": "2026-01-01", "endDate": "2040-01-01"},
            ]);
        };
        assert_eq!(
            found(over),
            ["SL001 spec.schedule: the schedule has no window in the next ten years"]
        );
    }

    #[test]
    fn values_that_are_equal_are_reported_by_their_field() {
        let single = |spec: &mut Value| spec["capacity"]["activeValue"] = json!(0);
        assert_eq!(
            found(single),
            ["SL016 spec.capacity: replicas is 0 whatever the schedule says"]
        );
        let several = |spec: &mut Value| {
            spec["capacity"] = Value::Null;
            spec["fields"] = json!([
                {"field": "minReplicas", "activeValue": 5, "inactiveValue": 1},
                {"field": "maxReplicas", "activeValue": 9, "inactiveValue": 9},
            ]);
        };
        assert_eq!(
            found(several),
            ["SL016 spec.fields[1]: maxReplicas is 9 whatever the schedule says"]
        );
    }

    #[test]
    fn a_number_that_is_left_out_while_it_is_0_is_never_drained() {
        let drained = |path: &'static str, kind: &'static str| {
            found(move |spec| {
                spec["target"]["kind"] = json!(kind);
                spec["handback"] = json!({"drainedPath": path});
            })
        };
        let expected = [
            "SL017 spec.handback.drainedPath: a Deployment leaves status.replicas out \
                         while it is 0",
        ];
        assert_eq!(drained("replicas", "Deployment"), expected);
        assert_eq!(drained("status.replicas", "Deployment"), expected);
        assert_eq!(drained("replicas", "StatefulSet"), [""; 0]);
    }

    #[test]
    fn a_field_that_two_capacities_write_is_reported_for_each() {
        let day = capacity("day", |_| {});
        let night = capacity("night", |spec| spec["capacity"]["activeValue"] = json!(1));
        let other = capacity("other", |spec| spec["target"]["name"] = json!("api"));
        let paused =
            capacity("paused", |spec| spec["capacity"]["field"] = json!("paused"));
        let all = shared_fields(&[&day, &other, &night, &paused]);
        let all: Vec<_> = all
            .iter()
            .map(|(place, it)| (*place, it.message.as_str()))
            .collect();
        let message = "replicas of Deployment web is also written by ScheduledCapacity";
        assert_eq!(
            all,
            [
                (0, &*format!("{message} night")),
                (2, &*format!("{message} day"))
            ]
        );
        assert_eq!(
            shared_fields(&[&day, &day]),
            [],
            "one object that is given twice"
        );
    }
}

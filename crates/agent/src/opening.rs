//! When the machine of this host is created next, as its ScheduledMachine says. No I/O.

use std::collections::BTreeMap;

use fivespot_api::ScheduledMachine;
use fivespot_api::scheduled_machine::Enforcement;
use fivespot_schedule::{Need, Steps};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How far the end of a window is looked for, less than the operator looks for it: an end that is not
/// found is said to be unknown.
const MAX_STEPS: u64 = 20_000;

/// The next time that this host is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// When the machine is created.
    pub(crate) at: Timestamp,
    /// When it is not needed any more, if the object says so without others.
    pub(crate) until: Option<Timestamp>,
}

impl Opening {
    /// That of an object. `None` if its machine is not created as far as is known, or would not come
    /// back by itself after a reclaim: then the owner has other means.
    pub(crate) fn of(object: &ScheduledMachine) -> Option<Self> {
        let (spec, status) = (&object.spec, object.status.as_ref()?);
        let at = status.next_activation?;
        let is_done = spec.enforcement == Enforcement::Enforce
            && spec.returning().is_some()
            && object.metadata.deletion_timestamp.is_none();
        // Of a reference nothing is known here, and of a calendar only that the others are days.
        let schedule = spec.schedule(&BTreeMap::new()).ok();
        let steps = Steps::at_most(MAX_STEPS);
        let need = schedule.map(|schedule| schedule.needed(at, &steps));
        let until = need.filter(|need| need.is_needed()).and_then(Need::until);
        is_done.then_some(Self { at, until })
    }
}

#[cfg(test)]
mod tests {
    use fivespot_api::ScheduledMachine;
    use serde_json::{Value, json};

    use super::Opening;

    const AT: &str = "2026-03-06T18:00:00Z";

    fn object() -> Value {
        json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledMachine",
            "metadata": {"name": "desk", "namespace": "team-a"},
            "spec": {
                "clusterName": "batch",
                "schedule": {
                    "daysOfWeek": ["mon-fri"], "hoursOfDay": ["18-23", "0-6"],
                    "timezone": "Etc/UTC",
                },
                "reclaim": {"return": {"after": "30m"}},
            },
            "status": {"nextActivation": AT},
        })
    }

    /// The opening of the object with a change.
    fn changed(change: impl Fn(&mut Value)) -> Option<String> {
        let mut object = object();
        change(&mut object);
        let object: ScheduledMachine = serde_json::from_value(object).unwrap();
        let Opening { at, until } = Opening::of(&object)?;
        let until = until.map_or("?".to_owned(), |until| until.to_string());
        Some(format!("{at} {until}").replace("2026-03-", ""))
    }

    #[test]
    fn a_host_is_lent_from_the_next_activation_to_the_end_of_its_window() {
        let of = |change: &dyn Fn(&mut Value)| changed(change).unwrap();
        // Friday night ends with Friday.
        assert_eq!(of(&|_| {}), "06T18:00:00Z 07T00:00:00Z");
        let early = json!({"leadTime": "30m"});
        assert_eq!(
            of(&|object| {
                object["spec"]["provisioning"] = early.clone();
                object["status"]["nextActivation"] = json!("2026-03-06T17:30:00Z");
            }),
            "06T17:30:00Z 07T00:00:00Z"
        );
    }

    #[test]
    fn an_end_that_the_object_alone_does_not_tell_is_not_known() {
        let of = |change: &dyn Fn(&mut Value)| changed(change).unwrap();
        let always = json!({"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]});
        let shared = json!({"kind": "TimeBasedSpotSchedule", "name": "nights",
                            "apiVersion": "5spot.finos.org/v1alpha1"});
        for schedule in [always, shared] {
            let of = of(&|object| object["spec"]["schedule"] = schedule.clone());
            assert_eq!(of, "06T18:00:00Z ?");
        }
        // An override runs it at another time.
        let noon = json!("2026-03-06T12:00:00Z");
        let of = of(&|object| object["status"]["nextActivation"] = noon.clone());
        assert_eq!(of, "06T12:00:00Z ?");
    }

    #[test]
    fn a_host_whose_machine_is_not_created_or_would_not_return_has_no_opening() {
        let rows: [&dyn Fn(&mut Value); 5] = [
            &|object| object["status"] = Value::Null,
            &|object| object["status"]["nextActivation"] = Value::Null,
            &|object| object["spec"]["enforcement"] = json!("Audit"),
            &|object| object["spec"]["reclaim"] = Value::Null,
            &|object| object["metadata"]["deletionTimestamp"] = json!(AT),
        ];
        for (number, change) in rows.iter().enumerate() {
            assert_eq!(changed(change), None, "row {number}");
        }
    }
}

//! The usage of a machine, counted independently of the operator's own account in `status.usage`.
//!
//! Nothing of it is taken from the status: what the machine is used for follows from the objects
//! that exist and from the instant at which the Node became ready or no longer was, and whether it
//! is wanted from the objects as they were at each instant. The two accounts must be equal if
//! nothing disturbs the operator.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::Value;

use crate::snapshot::{MachineSnapshot, instant};

/// Seconds of one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seconds {
    wanted: i64,
    active: i64,
    provisioning: i64,
    late: i64,
}

/// What a machine is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Use {
    Active,
    Provisioning,
    #[default]
    None,
}

/// The account of one machine.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// The instant up to which usage is counted. `None` before the first status.
    counted: Option<Timestamp>,
    used_as: Use,
    /// The objects as stored since then.
    snapshot: MachineSnapshot,
    months: BTreeMap<String, Seconds>,
}

impl Account {
    /// Counts up to `now`. From then on, `snapshot` is stored. A Node that has changed its
    /// readiness since has another use from that instant on.
    pub(crate) fn count(&mut self, snapshot: &MachineSnapshot, now: Timestamp) {
        if self.snapshot.uid() != snapshot.uid() {
            *self = Self::default();
        }
        let next = used_as(snapshot);
        if let Some(counted) = self.counted {
            let changed = ready_condition(&snapshot.node)
                .and_then(|ready| instant(&ready["lastTransitionTime"]))
                .filter(|_| next != self.used_as)
                .map_or(now, |changed| changed.clamp(counted, now));
            self.add(counted, changed);
            self.used_as = next;
            self.add(changed, now);
            self.counted = Some(now);
        }
        self.used_as = next;
        self.snapshot = snapshot.clone();
    }

    /// Counts up to the status that has just been written. If that status accounts up to `now`,
    /// compares the two accounts and returns how they differ, if they do.
    pub(crate) fn compare(
        &mut self,
        snapshot: &MachineSnapshot,
        now: Timestamp,
    ) -> Option<String> {
        self.count(snapshot, now);
        self.counted = Some(now);
        let usage = &snapshot.owner["status"]["usage"];
        let is_over = instant(&usage["accountedTime"]) == Some(now);
        is_over.then(|| self.difference(usage)).flatten()
    }

    fn difference(&self, usage: &Value) -> Option<String> {
        let months = usage["months"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> = months.iter().map(|of| of["month"].clone()).collect();
        let missing = self.months.keys().find(|name| {
            let counted = self.months.get(*name).copied().unwrap_or_default();
            counted != Seconds::default() && !names.contains(&Value::from(name.as_str()))
        });
        if let Some(month) = missing {
            return Some(format!("the status has no month {month}"));
        }
        months.iter().find_map(|of| {
            let name = of["month"].as_str().unwrap_or_default();
            let seconds = |field: &str| of[field].as_i64().unwrap_or(0);
            let reported = Seconds {
                wanted: seconds("wantedSeconds"),
                active: seconds("activeSeconds"),
                provisioning: seconds("provisioningSeconds"),
                late: seconds("lateSeconds"),
            };
            let counted = self.months.get(name).copied().unwrap_or_default();
            (reported != counted)
                .then(|| format!("{name}: reported {reported:?}, expected {counted:?}"))
        })
    }

    /// Whether the machine should serve, and neither the kill switch nor a hold prevents it.
    fn is_wanted(&self, at: Timestamp) -> bool {
        let snapshot = &self.snapshot;
        let is_held_off = self.used_as == Use::None
            && snapshot.schedule().is_some_and(|of| of.is_held(at));
        snapshot.is_in_force(at) && !snapshot.is_killed() && !is_held_off
    }

    /// Adds the seconds of a span in which nothing was written.
    fn add(&mut self, since: Timestamp, until: Timestamp) {
        let mut at = since;
        while at < until {
            let schedule = self.snapshot.schedule();
            let next_change = schedule.as_ref().and_then(|of| of.next_edge(at));
            let is_wanted = self.is_wanted(at);
            let zoned = at.to_zoned(TimeZone::UTC);
            let next_month = zoned.date().first_of_month().checked_add(1.month());
            let month_end = next_month
                .ok()
                .and_then(|day| day.to_zoned(TimeZone::UTC).ok());
            let ends = next_change
                .into_iter()
                .chain(month_end.map(|day| day.timestamp()));
            let to = ends.fold(until, Timestamp::min);
            let month = format!("{:04}-{:02}", zoned.year(), zoned.month());
            let of = self.months.entry(month).or_default();
            let seconds = to.duration_since(at).as_secs();
            let wanted = if is_wanted { seconds } else { 0 };
            of.wanted += wanted;
            match self.used_as {
                Use::Active => of.active += seconds,
                Use::Provisioning => {
                    of.provisioning += seconds;
                    of.late += wanted;
                }
                Use::None => of.late += wanted,
            }
            at = to.max(at + SignedDuration::from_secs(1));
        }
    }
}

/// What a machine is used for.
fn used_as(snapshot: &MachineSnapshot) -> Use {
    let has_machine = snapshot.is_ours(&snapshot.machine);
    let is_ready =
        ready_condition(&snapshot.node).is_some_and(|ready| ready["status"] == "True");
    if has_machine && snapshot.has_its_node() && is_ready {
        Use::Active
    } else if snapshot.ours().is_empty() {
        Use::None
    } else {
        Use::Provisioning
    }
}

fn ready_condition(node: &Value) -> Option<&Value> {
    let mut conditions = node["status"]["conditions"].as_array()?.iter();
    conditions.find(|of| of["type"] == "Ready")
}

#[cfg(test)]
mod tests {
    use fivespot_api::name;
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A machine with a Node whose readiness has this status since 17:00.
    fn served(status: &str) -> MachineSnapshot {
        let mut owner = fivespot_testkit::scheduled_machine("worker");
        owner["metadata"]["uid"] = json!("sm-1");
        owner["spec"]["schedule"]["timezone"] = json!("UTC");
        owner["status"] = json!({"phase": "Active"});
        let provider = json!({"providerID": "remote-machine://1"});
        let machine = json!({
            "kind": "Machine", "spec": provider, "metadata": {"labels": {
                name::SCHEDULED_MACHINE_LABEL: "worker",
                name::SCHEDULED_MACHINE_UID_LABEL: "sm-1",
            }},
        });
        let ready = json!({
            "type": "Ready", "status": status, "lastTransitionTime": "2026-03-06T17:00:00Z",
        });
        let node = json!({"spec": provider, "status": {"conditions": [ready]}});
        MachineSnapshot {
            owner,
            machine,
            node,
            ..MachineSnapshot::default()
        }
    }

    fn reported(seconds: Value) -> Value {
        let mut month = seconds;
        month["month"] = json!("2026-03");
        json!({"accountedTime": "2026-03-06T18:30:00Z", "months": [month]})
    }

    #[test]
    fn a_wrong_second_is_found() {
        let mut snapshot = served("True");
        let mut account = Account::default();
        assert_eq!(account.compare(&snapshot, at("2026-03-06T17:00:00Z")), None);
        snapshot.owner["status"]["usage"] =
            reported(json!({"activeSeconds": 5_400, "wantedSeconds": 3_600}));
        let now = at("2026-03-06T18:30:00Z");
        assert_eq!(account.compare(&snapshot, now), None);
        snapshot.owner["status"]["usage"] =
            reported(json!({"activeSeconds": 5_401, "wantedSeconds": 3_600}));
        let found = account.compare(&snapshot, now).unwrap();
        assert!(found.contains("active: 5401"), "{found}");
    }

    #[test]
    fn a_node_that_is_not_ready_is_not_active_whatever_the_phase_is() {
        let mut account = Account::default();
        let begin = at("2026-03-06T16:30:00Z");
        assert_eq!(account.compare(&served("True"), begin), None);
        let mut snapshot = served("False");
        snapshot.owner["status"]["usage"] = reported(json!({
            "activeSeconds": 1_800, "provisioningSeconds": 5_400,
            "wantedSeconds": 5_400, "lateSeconds": 3_600,
        }));
        let now = at("2026-03-06T18:30:00Z");
        assert_eq!(account.compare(&snapshot, now), None);
        snapshot.owner["status"]["usage"] =
            reported(json!({"activeSeconds": 7_200, "wantedSeconds": 5_400}));
        assert!(account.compare(&snapshot, now).is_some());
    }
}

//! The usage of a machine, counted independently of the operator's own account in `status.usage`.
//!
//! The phase of each status that is written is what the machine is used for from then on. Whether
//! it is wanted is evaluated from the objects as they were at each instant. The two accounts must
//! be equal if nothing disturbs the operator.

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
    /// Counts up to `now`. From then on, `snapshot` is stored.
    pub(crate) fn count(&mut self, snapshot: &MachineSnapshot, now: Timestamp) {
        if self.snapshot.uid() != snapshot.uid() {
            *self = Self::default();
        }
        if let Some(counted) = self.counted {
            self.add(counted, now);
            self.counted = Some(now);
        }
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
        let difference = is_over.then(|| self.difference(usage)).flatten();
        self.used_as = used_as(snapshot, self.used_as);
        difference
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

    /// Adds the seconds of a span in which nothing was written.
    fn add(&mut self, since: Timestamp, until: Timestamp) {
        let mut at = since;
        while at < until {
            let schedule = self.snapshot.schedule();
            let next_change = schedule.as_ref().and_then(|of| of.next_change(at));
            let is_wanted = self.snapshot.is_in_force(at);
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

/// What a machine is used for after a status. A machine that is shut down, disabled or in error is
/// used as before while it exists.
fn used_as(snapshot: &MachineSnapshot, before: Use) -> Use {
    match snapshot.phase() {
        "Active" => Use::Active,
        "Pending" => Use::Provisioning,
        "ShuttingDown" | "Disabled" | "EmergencyRemove" | "Error"
            if snapshot.is_ours(&snapshot.machine) =>
        {
            before
        }
        _ => Use::None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_wrong_second_is_found() {
        let mut owner = fivespot_testkit::scheduled_machine("worker");
        owner["spec"]["schedule"]["timezone"] = json!("UTC");
        owner["status"] = json!({"phase": "Active"});
        let mut snapshot = MachineSnapshot {
            owner,
            ..MachineSnapshot::default()
        };
        let mut account = Account::default();
        assert_eq!(account.compare(&snapshot, at("2026-03-06T17:00:00Z")), None);
        let reported = |active: i64| {
            json!({
                "accountedTime": "2026-03-06T18:30:00Z",
                "months": [{"month": "2026-03", "activeSeconds": active, "wantedSeconds": 3600}],
            })
        };
        snapshot.owner["status"]["usage"] = reported(5_400);
        let now = at("2026-03-06T18:30:00Z");
        assert_eq!(account.compare(&snapshot, now), None);
        snapshot.owner["status"]["usage"] = reported(5_401);
        let found = account.compare(&snapshot, now).unwrap();
        assert!(found.contains("active: 5401"), "{found}");
    }
}

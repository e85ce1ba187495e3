//! When a machine is wanted and needed, according to the objects on the server.
//!
//! Only the windows are evaluated by the schedule crate. Overrides, exceptions, lead times and
//! early ends are implemented independently here, so that an error in the operator is detected.

use std::cmp::Reverse;

use fivespot_api::ScheduledMachine;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::snapshot::instant;

/// The inputs of schedules besides their specs: overrides and calendars of the namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inputs {
    pub(crate) overrides: Vec<Value>,
    pub(crate) calendars: Vec<Value>,
}

/// The maximum number of schedule changes that are searched.
const MAX_CHANGES: usize = 400;

/// How far ahead a change is searched.
const HORIZON: SignedDuration = SignedDuration::from_hours(24 * 40);

/// The schedule of one machine with its overrides and calendars.
pub(crate) struct EffectiveSchedule<'a> {
    owner: &'a Value,
    inputs: &'a Inputs,
    windows: fivespot_schedule::Schedule,
    zone: TimeZone,
}

impl<'a> EffectiveSchedule<'a> {
    /// `None` if the schedule is invalid.
    pub(crate) fn of(owner: &'a Value, inputs: &'a Inputs) -> Option<Self> {
        let mut object: ScheduledMachine = serde_json::from_value(owner.clone()).ok()?;
        object.spec.schedule.exceptions = None;
        let windows = object.spec.schedule.schedule().ok()?;
        let zone = TimeZone::get(&object.spec.schedule.timezone).ok()?;
        Some(Self {
            owner,
            inputs,
            windows,
            zone,
        })
    }

    /// The override in force with the highest precedence: Stop before Hold before Run, then the
    /// latest end, then the first name.
    pub(crate) fn in_force(&self, now: Timestamp) -> Option<&'a Value> {
        let overrides = self.inputs.overrides.iter();
        let in_force = overrides.filter(|of| self.is_about(of) && covers(of, now));
        in_force.min_by_key(|of| {
            let mode = of["spec"]["mode"].as_str();
            let rank = ["Stop", "Hold", "Run"]
                .iter()
                .position(|it| Some(*it) == mode);
            let end = instant(&of["spec"]["endTime"]);
            let name = of["metadata"]["name"].as_str().unwrap_or_default();
            (rank, Reverse(end), name.to_owned())
        })
    }

    /// Whether an override holds the machine.
    pub(crate) fn is_held(&self, now: Timestamp) -> bool {
        self.in_force(now)
            .is_some_and(|of| of["spec"]["mode"] == "Hold")
    }

    /// Whether the machine is wanted by an override, an exception or the windows.
    pub(crate) fn is_wanted(&self, now: Timestamp) -> bool {
        let mode = self
            .in_force(now)
            .and_then(|of| of["spec"]["mode"].as_str());
        match mode {
            Some("Run") => true,
            Some("Stop") => false,
            _ => self
                .exception(now)
                .unwrap_or_else(|| self.windows.at(now).is_open()),
        }
    }

    /// Whether a machine is needed: from the lead time before a window on, to the window's end or,
    /// with `CompleteByWindowEnd`, the grace period before it. A window that is not longer than the
    /// grace period needs none.
    pub(crate) fn is_needed(&self, now: Timestamp) -> bool {
        let is_long_enough = |from: Timestamp| {
            let closes = self.next_change(from);
            closes.is_none_or(|closes| closes > from + self.early_end())
        };
        if self.is_wanted(now) && is_long_enough(now) {
            return true;
        }
        let mut at = now;
        while let Some(next_change) = self
            .next_change(at)
            .filter(|next_change| *next_change <= now + self.lead_time())
        {
            if self.is_wanted(next_change) && is_long_enough(next_change) {
                return true;
            }
            at = next_change;
        }
        false
    }

    /// The next instant at which it changes whether the machine is wanted.
    pub(crate) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let is_wanted = self.is_wanted(now);
        let changes = self.changes(now).take(MAX_CHANGES);
        let mut flips = changes.take_while(|at| *at < now + HORIZON);
        flips.find(|at| self.is_wanted(*at) != is_wanted)
    }

    /// The next instant at which it changes whether the machine is needed.
    pub(crate) fn next_need_change(&self, now: Timestamp) -> Option<Timestamp> {
        let is_needed = self.is_needed(now);
        let (lead, early) = (self.lead_time(), self.early_end());
        let mut found: Option<Timestamp> = None;
        let mut at = now;
        for _ in 0..MAX_CHANGES {
            let Some(next_change) = self.next_change(at) else {
                break;
            };
            // A later change has no effect before that.
            if found.is_some_and(|found| found <= next_change - lead.max(early)) {
                break;
            }
            let edges = [next_change - lead, next_change - early];
            let edges = edges
                .into_iter()
                .filter(|at| *at > now && self.is_needed(*at) != is_needed);
            found = edges.chain(found).min();
            at = next_change;
        }
        found
    }

    /// When a machine that is needed no longer is, from its last call on. `None` before the last
    /// call, and without one.
    pub(crate) fn leaves_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.last_call().is_zero() || !self.is_needed(now) {
            return None;
        }
        let end = self.next_need_change(now)?;
        (end - self.last_call() <= now).then_some(end)
    }

    /// The next instant at which anything changes for the machine: whether it is wanted or needed,
    /// its last call, the exception that applies, or the start or end of one of its overrides.
    pub(crate) fn next_edge(&self, now: Timestamp) -> Option<Timestamp> {
        let overrides = self.override_edges(now);
        let exceptions = self.next_exception(now);
        let needed_until = self.next_need_change(now);
        let last_call = needed_until
            .filter(|_| !self.last_call().is_zero() && self.is_needed(now))
            .map(|end| end - self.last_call())
            .filter(|at| *at > now);
        let all = [
            self.next_change(now),
            needed_until,
            last_call,
            overrides,
            exceptions,
        ];
        all.into_iter().flatten().min()
    }

    /// The next instant at which a different exception applies, or none.
    fn next_exception(&self, now: Timestamp) -> Option<Timestamp> {
        let name = |at| self.first_exception(at).map(|of| &of["name"]);
        let changes = self.changes(now).take(MAX_CHANGES);
        let mut changes = changes.take_while(|at| *at < now + HORIZON);
        let today = name(now);
        changes.find(|at| name(*at) != today)
    }

    /// Whether the remaining time in which a machine is needed is too short to create one.
    pub(crate) fn is_too_short(&self, now: Timestamp) -> bool {
        let minimum = length(&self.owner["spec"]["provisioning"]["minimumRun"]);
        self.next_need_change(now)
            .is_some_and(|end| end < now + minimum)
    }

    /// Whether the machine must be removed by the end of its window.
    pub(crate) fn completes_by_window_end(&self) -> bool {
        self.owner["spec"]["shutdown"]["endPolicy"] == "CompleteByWindowEnd"
    }

    fn lead_time(&self) -> SignedDuration {
        length(&self.owner["spec"]["provisioning"]["leadTime"])
    }

    fn last_call(&self) -> SignedDuration {
        length(&self.owner["spec"]["shutdown"]["lastCall"])
    }

    fn early_end(&self) -> SignedDuration {
        let grace = length(&self.owner["spec"]["gracefulShutdownTimeout"]);
        if self.completes_by_window_end() {
            grace
        } else {
            SignedDuration::ZERO
        }
    }

    /// Whether the exception that applies runs the machine. `None` if no exception applies.
    fn exception(&self, now: Timestamp) -> Option<bool> {
        self.first_exception(now).map(|of| of["action"] == "Run")
    }

    /// The first exception that includes the local date.
    fn first_exception(&self, now: Timestamp) -> Option<&'a Value> {
        let today = self.zone.to_datetime(now).date();
        let exceptions = self.owner["spec"]["schedule"]["exceptions"].as_array()?;
        exceptions.iter().find(|of| self.applies(of, today))
    }

    fn applies(&self, exception: &Value, today: Date) -> bool {
        let Some(name) = exception["calendarRef"]["name"].as_str() else {
            return is_of(exception, today);
        };
        let mut calendars = self.inputs.calendars.iter();
        let calendar = calendars.find(|of| of["metadata"]["name"] == name);
        let dates = calendar.and_then(|of| of["spec"]["dates"].as_array());
        dates.is_some_and(|all| all.iter().any(|entry| is_of(entry, today)))
    }

    fn is_about(&self, of: &Value) -> bool {
        let meta = &self.owner["metadata"];
        let target = &of["spec"]["targetRef"]["name"];
        let labels = of["spec"]["selector"]["matchLabels"].as_object();
        let is_selected = labels.is_some_and(|labels| {
            let mut labels = labels.iter();
            labels.all(|(key, value)| meta["labels"][key.as_str()] == *value)
        });
        target.is_string() && *target == meta["name"] || is_selected
    }

    /// The instants after `now` at which the result may change, in order.
    fn changes(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.change(now), |at| self.change(*at))
    }

    fn change(&self, now: Timestamp) -> Option<Timestamp> {
        let has_exceptions = self.owner["spec"]["schedule"]["exceptions"].is_array();
        let midnight = now.to_zoned(self.zone.clone()).tomorrow().ok();
        let midnight = midnight.and_then(|day| day.start_of_day().ok());
        let midnight = midnight.map(|day| day.timestamp());
        let clocks = self.zone.following(now).next().map(|at| at.timestamp());
        let dates = midnight
            .into_iter()
            .chain(clocks)
            .filter(|_| has_exceptions);
        let windows = self.windows.at(now).until();
        let edges = windows.into_iter().chain(self.override_edges(now));
        edges.chain(dates).filter(|at| *at > now).min()
    }

    fn override_edges(&self, now: Timestamp) -> Option<Timestamp> {
        let overrides = self.inputs.overrides.iter();
        let edges = overrides.filter(|of| self.is_about(of)).flat_map(|of| {
            let spec = &of["spec"];
            [instant(&spec["startTime"]), instant(&spec["endTime"])]
        });
        edges.flatten().filter(|at| *at > now).min()
    }
}

/// Whether an override is in force.
fn covers(of: &Value, now: Timestamp) -> bool {
    let spec = &of["spec"];
    instant(&spec["startTime"]).is_none_or(|start| start <= now)
        && instant(&spec["endTime"]).is_some_and(|end| now < end)
}

/// Whether an exception or an entry of a calendar includes this date.
fn is_of(entry: &Value, today: Date) -> bool {
    let date = |field: &str| entry[field].as_str()?.parse::<Date>().ok();
    if let (Some(first), Some(last)) = (date("startDate"), date("endDate")) {
        return first <= today && today <= last;
    }
    let text = entry["date"].as_str().unwrap_or_default();
    let every_year = format!("{:02}-{:02}", today.month(), today.day());
    date("date") == Some(today) || text == every_year
}

/// Parses a duration of a spec. Zero if it is absent.
pub(crate) fn length(text: &Value) -> SignedDuration {
    let length = text.as_str().and_then(|text| text.parse().ok());
    length.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn machine(spec: &Value) -> Value {
        let mut object = fivespot_testkit::scheduled_machine("worker");
        object["spec"]["schedule"]["timezone"] = json!("UTC");
        for (field, value) in spec.as_object().unwrap() {
            if field == "exceptions" {
                object["spec"]["schedule"]["exceptions"] = value.clone();
            } else {
                object["spec"][field.as_str()] = value.clone();
            }
        }
        object
    }

    fn overriding(name: &str, mode: &str, end: &str) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {"targetRef": {"name": "worker"}, "mode": mode, "endTime": end},
        })
    }

    #[test]
    fn the_override_of_highest_precedence_applies_and_then_the_exception() {
        let object = machine(&json!({"exceptions": [
            {"name": "fair", "action": "Stop", "startDate": "2026-03-06", "endDate": "2026-03-06"},
        ]}));
        let inputs = Inputs {
            overrides: vec![
                overriding("a", "Run", "2026-03-06T12:00:00Z"),
                overriding("b", "Stop", "2026-03-06T11:00:00Z"),
            ],
            calendars: Vec::new(),
        };
        let wanted = EffectiveSchedule::of(&object, &inputs).unwrap();
        assert!(!wanted.is_wanted(at("2026-03-06T10:00:00Z")));
        assert!(wanted.is_wanted(at("2026-03-06T11:30:00Z")));
        assert!(!wanted.is_wanted(at("2026-03-06T12:30:00Z")));
        let monday = at("2026-03-09T09:00:00Z");
        assert_eq!(wanted.next_change(at("2026-03-06T12:30:00Z")), Some(monday));
    }

    #[test]
    fn a_machine_is_needed_from_its_lead_time_to_its_early_end() {
        let object = machine(&json!({
            "provisioning": {"leadTime": "10m"},
            "shutdown": {"endPolicy": "CompleteByWindowEnd"},
        }));
        let inputs = Inputs::default();
        let wanted = EffectiveSchedule::of(&object, &inputs).unwrap();
        let begin = at("2026-03-06T08:50:00Z");
        let end = at("2026-03-06T17:55:00Z");
        assert_eq!(
            wanted.next_need_change(at("2026-03-06T07:00:00Z")),
            Some(begin)
        );
        assert_eq!(wanted.next_need_change(begin), Some(end));
        assert!(wanted.is_needed(begin) && !wanted.is_needed(end));
        assert!(!wanted.is_wanted(begin) && wanted.is_wanted(end));
    }

    #[test]
    fn the_last_call_is_an_edge_before_the_end_of_the_need() {
        let object = machine(&json!({"shutdown": {"lastCall": "45m"}}));
        let inputs = Inputs::default();
        let schedule = EffectiveSchedule::of(&object, &inputs).unwrap();
        let (call, end) = (at("2026-03-06T17:15:00Z"), at("2026-03-06T18:00:00Z"));
        let before = at("2026-03-06T17:14:59Z");
        assert_eq!(schedule.leaves_at(before), None);
        assert_eq!(schedule.next_edge(before), Some(call));
        assert_eq!(schedule.leaves_at(call), Some(end));
        assert_eq!(schedule.next_edge(call), Some(end));
        assert_eq!(schedule.leaves_at(end), None);
    }
}

//! ScheduleOverride: a change of the schedule of some machines for a limited time. It ends on
//! its own and does not modify their spec.

mod considered;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, ObjectMeta,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::label_selector::selects;
use crate::object::{named, with_spec};
use crate::scheduled_machine::null_is_default;
use crate::schema::{MAX_NAME, MAX_SHORT, NO_GENERATION};
use crate::status::written_generation;
use crate::time::next_whole_second;
use crate::{name, schema};

pub use crate::time::MAX_OVERRIDE_DURATION;
pub use considered::{ConsideredOverrides, MAX_OVERRIDES, Rank};

/// A change of the schedule of some ScheduledMachines of a namespace for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleOverride {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// The desired override.
    pub spec: ScheduleOverrideSpec,
    /// What was observed; absent before the first reconcile.
    pub status: Option<ScheduleOverrideStatus>,
}

/// The desired override. targetRef, selector and mode cannot be changed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleOverrideSpec {
    /// The ScheduledMachine or ScheduledCapacity, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
    /// Selects ScheduledMachines of the same namespace by their labels, instead of targetRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: Option<LabelSelector>,
    /// Run: the machine runs. Stop: it does not run. Hold: nothing is created or shut down.
    pub mode: OverrideMode,
    /// When the override starts, RFC 3339; immediately if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub start_time: Option<String>,
    /// When the override ends, RFC 3339, at most 14 days after its creation.
    #[schemars(length(max = MAX_SHORT))]
    pub end_time: String,
    /// The reason, for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub reason: Option<String>,
}

/// A ScheduledMachine or ScheduledCapacity of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TargetRef {
    /// Kind; ScheduledMachine if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TargetKind>,
    /// Name of the object.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
}

/// What an override is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum TargetKind {
    /// A machine.
    ScheduledMachine,
    /// A value of another object.
    ScheduledCapacity,
}

/// What an override does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum OverrideMode {
    /// The machine is wanted.
    Run,
    /// The machine is not wanted.
    Stop,
    /// Nothing is started or shut down.
    Hold,
}

impl OverrideMode {
    /// The mode as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "Run",
            Self::Stop => "Stop",
            Self::Hold => "Hold",
        }
    }
}

impl From<OverrideMode> for fivespot_schedule::OverrideMode {
    fn from(mode: OverrideMode) -> Self {
        match mode {
            OverrideMode::Run => Self::Run,
            OverrideMode::Stop => Self::Stop,
            OverrideMode::Hold => Self::Hold,
        }
    }
}

impl From<fivespot_schedule::OverrideMode> for OverrideMode {
    fn from(mode: fivespot_schedule::OverrideMode) -> Self {
        match mode {
            fivespot_schedule::OverrideMode::Run => Self::Run,
            fivespot_schedule::OverrideMode::Stop => Self::Stop,
            fivespot_schedule::OverrideMode::Hold => Self::Hold,
        }
    }
}

/// The observed state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleOverrideStatus {
    /// The generation that was last reconciled.
    #[serde(
        default,
        deserialize_with = "written_generation",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = NO_GENERATION))]
    pub observed_generation: Option<i64>,
    /// Number of ScheduledMachines that the override matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub matched_machines: Option<i32>,
    /// Conditions, one per type.
    // Active, Expired, TargetFound and Ignored.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(schema_with = "schema::conditions_of_schedule_override")]
    pub conditions: Vec<Condition>,
}

/// The type of the condition that is `True` if an override has no effect.
pub const IGNORED: &str = "Ignored";

impl ScheduleOverride {
    /// Whether it targets a ScheduledMachine of its namespace with that name and these labels.
    pub fn is_about(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.applies_to(name, |key| labels.get(key).map(String::as_str))
    }

    /// The same with a function that returns the value of a label.
    pub fn applies_to<'a>(
        &self,
        name: &str,
        label: impl Fn(&str) -> Option<&'a str>,
    ) -> bool {
        match (&self.spec.target_ref, &self.spec.selector) {
            (Some(target), None) => {
                target.kind != Some(TargetKind::ScheduledCapacity) && target.name == name
            }
            (None, Some(selector)) => selects(selector, label),
            _ => false,
        }
    }

    /// The name of the ScheduledCapacity that it targets, if it targets one.
    pub fn capacity(&self) -> Option<&str> {
        let target = self.spec.target_ref.as_ref()?;
        let is_capacity = target.kind == Some(TargetKind::ScheduledCapacity);
        (is_capacity && self.spec.selector.is_none()).then_some(target.name.as_str())
    }

    /// Whether it stops what `other` stops by name, from `now` on and not for a shorter time. Who
    /// has created it makes no difference: a client may write any annotation and any field manager.
    pub fn replaces_stop(&self, other: &Self, now: Timestamp) -> bool {
        let spec = &self.spec;
        let is_stop = spec.mode == OverrideMode::Stop
            && spec.target_ref.is_some()
            && spec.target_ref == other.spec.target_ref
            && spec.selector.is_none();
        let lasts = |(own, end): (fivespot_schedule::Override, Timestamp)| {
            own.start.is_none_or(|start| start <= now) && now < own.end && end <= own.end
        };
        is_stop && self.in_schedule().zip(other.end()).is_some_and(lasts)
    }

    /// When it starts. `None` if the start is absent or cannot be parsed.
    pub fn start(&self) -> Option<Timestamp> {
        self.spec.start_time.as_deref()?.parse().ok()
    }

    /// When it ends: the earlier of its `endTime` and [`MAX_OVERRIDE_DURATION`] after its creation.
    /// `None` if a time cannot be parsed.
    pub fn end(&self) -> Option<Timestamp> {
        let asked: Timestamp = self.spec.end_time.parse().ok()?;
        let created = self.metadata.creation_timestamp.as_ref();
        let latest =
            created.and_then(|created| created.0.checked_add(MAX_OVERRIDE_DURATION).ok());
        Some(latest.map_or(asked, |latest| latest.min(asked)))
    }

    /// The override for [`fivespot_schedule`], with its times at whole seconds, as it is in force.
    /// `None` if a time cannot be parsed or it ends before it starts.
    pub fn in_schedule(&self) -> Option<fivespot_schedule::Override> {
        let start = match &self.spec.start_time {
            Some(text) => Some(text.parse().ok()?),
            None => None,
        };
        let end = self.end()?;
        start.is_none_or(|start: Timestamp| start < end).then(|| {
            fivespot_schedule::Override {
                name: self.metadata.name.clone().unwrap_or_default(),
                mode: self.spec.mode.into(),
                start: start.map(next_whole_second),
                end: next_whole_second(end),
                created: self.metadata.creation_timestamp.as_ref().map(|at| at.0),
            }
        })
    }

    /// Whether the operator has reported that it has no effect.
    pub fn is_ignored(&self) -> bool {
        let mut conditions = self.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|it| it.type_ == IGNORED && it.status == "True")
    }

    /// When the reclaim began that it was created for; `None` if it was created otherwise.
    pub fn reclaimed_at(&self) -> Option<Timestamp> {
        let annotations = self.metadata.annotations.as_ref()?;
        let written = annotations.get(name::RECLAIMED_AT_ANNOTATION)?;
        written.parse().ok()
    }

    /// Whether it is kept after its end, because it is stored in Git.
    pub fn is_kept(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations
            .and_then(|all| all.get(name::KEEP_ANNOTATION))
            .is_some_and(|value| value == "true")
    }
}

named!(
    ScheduleOverride,
    scope: NamespaceResourceScope,
    api_version: name::API_VERSION,
    group: name::GROUP,
    plural: name::OVERRIDE_PLURAL
);
with_spec!(ScheduleOverride, status);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn overriding(spec: &Value) -> ScheduleOverride {
        serde_json::from_value(json!({
            "metadata": {"name": "o", "creationTimestamp": "2026-03-06T12:00:00Z"},
            "spec": spec,
        }))
        .unwrap()
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn an_override_ends_two_weeks_after_its_creation_at_the_latest() {
        let end = |end: &str| {
            let it = overriding(&json!({
                "targetRef": {"name": "a"}, "mode": "Run", "endTime": end,
            }));
            it.end().unwrap().to_string()
        };
        assert_eq!(end("2026-03-06T22:00:00+01:00"), "2026-03-06T21:00:00Z");
        assert_eq!(end("2027-01-01T00:00:00Z"), "2026-03-20T12:00:00Z");
    }

    #[test]
    fn a_target_is_named_or_selected_by_its_labels() {
        let named = overriding(&json!({
            "targetRef": {"name": "a"}, "mode": "Run", "endTime": "2026-03-06T22:00:00Z",
        }));
        assert!(named.is_about("a", &labels(&[])) && !named.is_about("b", &labels(&[])));
        let selected = overriding(&json!({
            "selector": {
                "matchLabels": {"team": "x"},
                "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}],
            },
            "mode": "Stop", "endTime": "2026-03-06T22:00:00Z",
        }));
        assert!(selected.is_about("a", &labels(&[("team", "x")])));
        assert!(!selected.is_about("a", &labels(&[("team", "x"), ("old", "1")])));
        let empty = overriding(&json!({
            "selector": {}, "mode": "Stop", "endTime": "2026-03-06T22:00:00Z",
        }));
        assert!(!empty.is_about("a", &labels(&[("team", "x")])));
    }

    #[test]
    fn an_override_of_a_capacity_is_about_no_machine_of_that_name() {
        let of = |kind: &str| {
            overriding(&json!({
                "targetRef": {"kind": kind, "name": "a"},
                "mode": "Hold", "endTime": "2026-03-06T22:00:00Z",
            }))
        };
        let (machine, capacity) = (of("ScheduledMachine"), of("ScheduledCapacity"));
        assert!(machine.is_about("a", &labels(&[])) && machine.capacity().is_none());
        assert!(!capacity.is_about("a", &labels(&[])));
        assert_eq!(capacity.capacity(), Some("a"));
    }

    #[test]
    fn an_override_replaces_a_stop_if_it_stops_the_same_machine_for_as_long() {
        let spec = json!({
            "targetRef": {"name": "a"}, "mode": "Stop", "endTime": "2026-03-06T22:00:00Z",
        });
        let asked = overriding(&spec);
        let replaces = |spec: &Value, now: &str| {
            overriding(spec).replaces_stop(&asked, now.parse().unwrap())
        };
        let (now, end) = ("2026-03-06T21:00:00Z", "2026-03-06T22:00:00Z");
        assert!(replaces(&spec, now) && !replaces(&spec, end));
        for (field, other, does) in [
            ("mode", json!("Run"), false),
            ("targetRef", json!({"name": "b"}), false),
            ("startTime", json!("2026-03-06T21:30:00Z"), false),
            ("startTime", json!("2026-03-06T20:30:00Z"), true),
            ("endTime", json!("2026-03-06T21:59:59Z"), false),
            ("endTime", json!("2026-03-06T22:00:01Z"), true),
        ] {
            let mut changed = spec.clone();
            changed[field] = other;
            assert_eq!(replaces(&changed, now), does, "{changed}");
        }
    }

    #[test]
    fn an_override_that_ends_before_it_begins_changes_no_schedule() {
        let spec = |start: &str| {
            overriding(&json!({
                "targetRef": {"name": "a"}, "mode": "Hold",
                "startTime": start, "endTime": "2026-03-06T22:00:00Z",
            }))
        };
        assert!(spec("2026-03-06T21:00:00Z").in_schedule().is_some());
        assert!(spec("2026-03-06T22:00:00Z").in_schedule().is_none());
    }
}

//! How long each value of a ScheduledCapacity applied.

use fivespot_api::ScheduledCapacity;
use fivespot_api::scheduled_capacity::ValueSet;
use fivespot_api::verdict::Verdict;
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Figures, Month};

/// A ScheduledCapacity, with the time of each of its values as its schedule plans it: no account is
/// kept of capacities.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Capacity {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The target: `Deployment web`.
    pub target: String,
    /// The beginning of the count: of the month, or when it was created.
    pub start_time: Timestamp,
    /// The active values, then the inactive ones.
    pub values: [ValueTime; 2],
    /// What its status says at present; absent in a forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::verdict")]
    pub verdict: Option<Verdict>,
}

/// How long values applied.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ValueTime {
    /// The values by their fields.
    pub values: Map<String, Value>,
    /// The same in words.
    #[serde(skip)]
    pub text: String,
    /// For how many seconds the schedule of today plans them.
    #[schemars(range(min = 0))]
    pub seconds: i64,
}

impl Capacity {
    /// The times in a month, up to `now`. `schedule` is the one in force, with calendars, overrides
    /// and the lead time; `None` if the inactive values apply whatever it says.
    pub fn planned(
        object: &ScheduledCapacity,
        schedule: Option<&Schedule>,
        month: Month,
        now: Timestamp,
    ) -> Self {
        let metadata = &object.metadata;
        let created = metadata.creation_timestamp.as_ref().map(|it| it.0);
        let end = month.end().min(now);
        let start = created.map_or(month.start(), |it| it.max(month.start()));
        let start = start.min(end);
        // The values are written for the lead time too.
        let figures = Figures::planned(schedule, start, end);
        let active = figures.used_seconds;
        let of = |set: ValueSet, seconds: i64| ValueTime {
            values: object.values(set),
            text: object.values_text(set),
            seconds,
        };
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            target: object.target_text(),
            start_time: start,
            values: [
                of(ValueSet::Active, active),
                of(ValueSet::Inactive, figures.always_on_seconds - active),
            ],
            verdict: None,
        }
    }
}

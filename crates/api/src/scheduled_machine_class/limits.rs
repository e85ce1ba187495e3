//! What the machines of a class in one namespace may use together.

use fivespot_schedule::Duration;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScheduledMachineClassSpec;
use crate::schema::MAX_SHORT;

/// The highest limit of machines.
const MAX_MACHINES: u32 = 100_000;

/// The highest limit of hours: those of as many machines that are always on.
const MAX_HOURS: u32 = MAX_MACHINES * 168;

/// What the machines of a class in one namespace may use together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassLimits {
    /// How many machines may be needed at the same time, at most 100,000. A further one waits until
    /// another is not needed any more; the highest priority comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_MACHINES))]
    pub machines_per_namespace: Option<u32>,
    /// How many hours machines may be needed in one week, all together, at most 16,800,000. One for
    /// which the hours do not suffice until the end of its window, or of the week, waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_HOURS))]
    pub hours_per_week_per_namespace: Option<u32>,
    /// The longest ScheduleOverride of mode Run that has an effect on machines of the class, from 1m
    /// to 336h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub max_override: Option<String>,
}

impl ClassLimits {
    /// The longest override of mode Run. `None` also if the text is not a duration, which admission
    /// refuses.
    pub fn longest_override(&self) -> Option<SignedDuration> {
        let text = self.max_override.as_deref()?;
        Some(text.parse::<Duration>().ok()?.into())
    }
}

/// The limits of a class, as they are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsOfClass {
    /// How many machines of a namespace may be needed at the same time.
    pub machines: Option<u32>,
    /// How many hours machines of a namespace may be needed in one week.
    pub hours: Option<u32>,
    /// The longest override of mode Run.
    pub max_override: Option<SignedDuration>,
    /// The zone in which weeks begin.
    pub timezone: String,
}

impl LimitsOfClass {
    /// `None` if the class limits nothing.
    pub fn of(class: &ScheduledMachineClassSpec) -> Option<Self> {
        let limits = class.limits.as_ref()?;
        let found = Self {
            machines: limits.machines_per_namespace,
            hours: limits.hours_per_week_per_namespace,
            max_override: limits.longest_override(),
            timezone: class.timezone.clone(),
        };
        found.limits_anything().then_some(found)
    }

    /// Whether it limits when machines are made, so that they have to know of each other.
    pub fn limits_openings(&self) -> bool {
        self.machines.is_some() || self.hours.is_some()
    }

    fn limits_anything(&self) -> bool {
        self.limits_openings() || self.max_override.is_some()
    }
}

//! How the owner of the host gets it back, and how it returns.

use fivespot_schedule::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long the override of a reclaim stops a machine that can return, if the operator is not
/// configured otherwise: then it returns although its host has not reported.
pub(super) const DEFAULT_RECLAIM_STOP: Duration = Duration::hours(24);

/// The default of `reclaim.return.maxPerDay`.
const DEFAULT_MAX_PER_DAY: u8 = 4;

/// The largest `reclaim.return.maxPerDay`.
pub const MAX_RETURNS: u8 = 24;

/// How the owner of the host gets it back, and how it returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimSpec {
    /// As killIfCommands, which must be absent then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(max = 256)))]
    pub commands: Option<Vec<String>>,
    /// If set, a reclaim stops the machine with a ScheduleOverride in place of disabling the
    /// schedule, and the machine returns once its host reports that its owner has not needed it
    /// for a while.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub returning: Option<ReturnSpec>,
}

/// When a machine whose host was reclaimed returns.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReturnSpec {
    /// How long the host must have been free without interruption, from 1m to 24h.
    #[schemars(length(max = 64))]
    pub after: String,
    /// How often the machine returns within 24 hours at most, from 1 to 24. After that it is
    /// stopped until the override ends.
    #[serde(default = "default_max_per_day")]
    #[schemars(range(min = 1, max = MAX_RETURNS))]
    pub max_per_day: u8,
}

fn default_max_per_day() -> u8 {
    DEFAULT_MAX_PER_DAY
}

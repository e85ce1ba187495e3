//! Warnings about schedules that objects share.

use fivespot_schedule::Steps;
use jiff::Timestamp;

use super::{LintWarning, MAX_STEPS, never_active, of_spec};
use crate::ScheduleSpec;
use crate::spot_schedule::{CapitalMarketsScheduleSpec, SharedSpec};

/// The warnings about a schedule alone, without those about what follows it.
pub fn of_shared(spec: &SharedSpec, now: Timestamp) -> Vec<LintWarning> {
    match spec {
        SharedSpec::TimeBased(spec) => of_time_based(spec, now),
        SharedSpec::CapitalMarkets(spec) => of_capital_markets(spec, now),
    }
}

/// Those of a schedule whose fields are below `spec`.
fn of_time_based(spec: &ScheduleSpec, now: Timestamp) -> Vec<LintWarning> {
    let all = of_spec(spec, now, &Steps::at_most(MAX_STEPS)).into_iter();
    all.map(|it| LintWarning {
        field: it.field.replacen("spec.schedule", "spec", 1),
        ..it
    })
    .collect()
}

fn of_capital_markets(
    spec: &CapitalMarketsScheduleSpec,
    now: Timestamp,
) -> Vec<LintWarning> {
    let zone = super::time_zone(&spec.timezone).map(|it| LintWarning {
        field: "spec.timezone".to_owned(),
        ..it
    });
    let schedule = spec.schedule().ok();
    let window = schedule.map(|it| it.at_within(now, &Steps::at_most(MAX_STEPS)));
    let never = window.and_then(|window| never_active(window, "spec"));
    zone.into_iter().chain(never).collect()
}

//! Warnings about schedules that objects share.

use fivespot_schedule::Steps;
use jiff::Timestamp;

use super::{
    CLOCK_CHANGE, CRON_NEVER_FIRES, EXCEPTION_OVER, LintWarning, MAX_STEPS, NEVER_ACTIVE,
    OVERNIGHT_TAIL, REDUNDANT_WINDOW, TIME_ZONE, of_schedule_within, warning,
};
use crate::rules::acceptable;
use crate::spot_schedule::{CapitalMarketsScheduleSpec, SharedSpec};
use crate::{ScheduleSpec, ScheduledMachine};

/// The warnings about a schedule alone, without those about what follows it.
pub fn of_shared(spec: &SharedSpec, now: Timestamp) -> Vec<LintWarning> {
    match spec {
        SharedSpec::TimeBased(spec) => of_time_based(spec, now),
        SharedSpec::CapitalMarkets(spec) => of_capital_markets(spec, now),
    }
}

/// Those of a schedule whose fields are below `spec`.
fn of_time_based(spec: &ScheduleSpec, now: Timestamp) -> Vec<LintWarning> {
    let all = of_spec(spec, now).into_iter();
    all.map(|it| LintWarning {
        field: it.field.replacen("spec.schedule", "spec", 1),
        ..it
    })
    .collect()
}

/// Those of a machine with that schedule, apart from what follows from its other fields.
pub(super) fn of_spec(spec: &ScheduleSpec, now: Timestamp) -> Vec<LintWarning> {
    let about_schedules = [
        NEVER_ACTIVE,
        OVERNIGHT_TAIL,
        TIME_ZONE,
        CLOCK_CHANGE,
        CRON_NEVER_FIRES,
        REDUNDANT_WINDOW,
        EXCEPTION_OVER,
    ];
    let Ok(mut machine) = serde_json::from_value::<ScheduledMachine>(acceptable()) else {
        return Vec::new();
    };
    machine.spec.schedule = spec.clone();
    let mut all = of_schedule_within(&machine, now, &Steps::at_most(MAX_STEPS));
    all.retain(|it| about_schedules.contains(&it.lint));
    all
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
    let is_never = window.is_some_and(|it| !it.is_open() && it.until().is_none());
    let never = is_never.then(|| {
        let message = "the schedule has no window in the next ten years".to_owned();
        warning(NEVER_ACTIVE, "spec", message)
    });
    zone.into_iter().chain(never).collect()
}

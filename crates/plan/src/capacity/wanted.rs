//! Which values apply: the active or the inactive ones, or those that are written.

use fivespot_api::FollowedSchedule;
use fivespot_api::rules;
use fivespot_api::scheduled_capacity::{
    ScheduledCapacity, ScheduledCapacitySpec, ScheduledCapacityStatus,
};
use fivespot_schedule::{Duration, OverrideMode, Schedule, Steps};
use jiff::Timestamp;

use super::CapacityFacts;
use super::report::Problem;
use crate::MAX_STEPS;
use crate::decide::resolve::Followed;

/// The values that apply now.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) is_active: bool,
    /// When that changes.
    pub(super) until: Option<Timestamp>,
    /// When to decide again at the latest.
    pub(super) look_again: Option<Timestamp>,
    /// Whether a machine decides about the host, and not the schedule.
    pub(super) is_governed: bool,
    /// Whether a closing waits until the target is not in use.
    pub(super) awaits: bool,
    followed: Option<FollowedSchedule>,
}

impl Wanted {
    /// The values that apply, or why those that are written are kept.
    pub(super) fn of(
        object: &ScheduledCapacity,
        facts: &CapacityFacts,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let spec = &object.spec;
        let violations = rules::check_capacity(object);
        let is_about_schedule =
            |field: &str| field.starts_with("spec.schedule") || field == "spec.leadTime";
        let mut others = violations.iter();
        if let Some(other) = others.find(|it| !is_about_schedule(&it.field)) {
            return Err(Problem::invalid(other.to_string()));
        }
        let is_off = spec.kill_switch || !spec.is_enabled();
        let is_governed = facts.governor.is_some() && !is_off;
        if is_off || is_governed {
            return Ok(Self {
                is_active: false,
                until: None,
                look_again: None,
                is_governed,
                awaits: is_governed,
                followed: None,
            });
        }
        match violations.first() {
            Some(violation) => Err(Problem::invalid(violation.to_string())),
            None => Self::by_schedule(spec, facts, now),
        }
    }

    fn by_schedule(
        spec: &ScheduledCapacitySpec,
        facts: &CapacityFacts,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        if let Some(unknown) = &facts.schedule.unknown {
            return Err(Problem::unread(unknown, "the inputs of the schedule", ""));
        }
        let followed = match Followed::of(&spec.schedule, &facts.schedule) {
            None => None,
            Some(followed) => {
                let own = followed.schedule.as_ref().map_err(Problem::unresolved)?;
                Some(followed.published(own.at(now)))
            }
        };
        let schedule = schedule(spec, facts)?;
        if let Some(held) = schedule
            .override_at(now)
            .filter(|it| it.mode == OverrideMode::Hold)
        {
            return Err(Problem::held(&held.name, held.end));
        }
        let need = schedule.needed(now, &Steps::at_most(MAX_STEPS));
        if let Some(unknown) =
            facts.governor_unknown.as_ref().filter(|_| need.is_needed())
        {
            let what = "the ScheduledMachines of the namespace";
            return Err(Problem::unread(unknown, what, ""));
        }
        let ends = [need.until(), need.known_until(), next_override(facts, now)];
        Ok(Self {
            is_active: need.is_needed(),
            until: need.until(),
            look_again: ends.into_iter().flatten().filter(|at| *at > now).min(),
            is_governed: false,
            awaits: true,
            followed,
        })
    }

    /// Records what was decided, apart from the values.
    pub(super) fn record(
        &self,
        spec: &ScheduledCapacitySpec,
        status: &mut ScheduledCapacityStatus,
    ) {
        if self.followed.is_some() || spec.schedule.reference().is_none() {
            status.spot_schedule.clone_from(&self.followed);
        }
    }
}

/// When the next override begins or ends.
pub(super) fn next_override(facts: &CapacityFacts, now: Timestamp) -> Option<Timestamp> {
    let overrides = facts.schedule.overrides.iter();
    let edges = overrides.flat_map(|of| of.start.into_iter().chain([of.end]));
    edges.filter(|at| *at > now).min()
}

fn schedule(
    spec: &ScheduledCapacitySpec,
    facts: &CapacityFacts,
) -> Result<Schedule, Problem> {
    let schedule = spec.schedule.schedule_with(&facts.schedule.calendars);
    let schedule =
        schedule.map_err(|error| Problem::invalid(format!("spec.schedule: {error}")))?;
    let lead = spec.lead_time.parse().unwrap_or(Duration::ZERO);
    Ok(schedule
        .with_overrides(facts.schedule.overrides.clone())
        .with_lead_time(lead))
}

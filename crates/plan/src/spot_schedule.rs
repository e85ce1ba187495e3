//! What to publish about one schedule that other objects follow.

use std::collections::BTreeMap;

use fivespot_api::time::whole_seconds;
use fivespot_api::{SharedSchedule, SharedSpec, SpotScheduleStatus};
use fivespot_schedule::Dates;
use jiff::Timestamp;

use crate::condition::Found;

/// A TimeBasedSpotSchedule or a CapitalMarketsSchedule, as it is stored.
#[derive(Clone, Debug)]
pub struct SpotSchedule<'o> {
    /// The schedule, or why its spec cannot be read.
    pub schedule: Result<&'o SharedSchedule, String>,
    /// The dates of the calendars that it refers to, by name.
    pub calendars: &'o BTreeMap<String, Dates>,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// What was published last.
    pub status: &'o SpotScheduleStatus,
}

/// What to do about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpotSchedulePlan {
    /// The new status; `None` if it is unchanged.
    pub status: Option<SpotScheduleStatus>,
    /// The next transition; `None` if there is none within ten years.
    pub requeue_at: Option<Timestamp>,
}

/// Decides what to publish at `now`.
///
/// # Guarantees
/// Total and deterministic. Between two transitions of the schedule the status stays the same. If
/// the schedule cannot be evaluated, `active` stays what it was.
pub fn plan_spot_schedule(object: &SpotSchedule<'_>, now: Timestamp) -> SpotSchedulePlan {
    let before = object.status;
    let mut after = SpotScheduleStatus {
        observed_generation: object.generation,
        next_transition_time: None,
        ..before.clone()
    };
    let ready = match evaluate(object, now) {
        Ok(published) => {
            if before.active != Some(published.active) {
                after.active = Some(published.active);
                after.last_transition_time = Some(whole_seconds(now));
            }
            after.next_transition_time = published.until;
            Found::new("Ready", true, published.reason, published.message())
        }
        Err(why) => {
            let message = format!(
                "the schedule cannot be evaluated, active stays as it was: {why}"
            );
            Found::new("Ready", false, "InvalidSchedule", message)
        }
    };
    after.conditions = vec![ready.after(&before.conditions, object.generation, now)];
    SpotSchedulePlan {
        requeue_at: after.next_transition_time,
        status: (after != *before).then_some(after),
    }
}

/// The state of a schedule that can be evaluated.
struct Published {
    active: bool,
    until: Option<Timestamp>,
    reason: &'static str,
}

fn evaluate(object: &SpotSchedule<'_>, now: Timestamp) -> Result<Published, String> {
    let shared = object.schedule.clone()?;
    if let Some(fault) = shared.fault() {
        return Err(fault.to_owned());
    }
    let schedule = shared.schedule(object.calendars);
    let window = schedule.map_err(|error| error.to_string())?.at(now);
    let reason = match (shared.spec(), window.is_open()) {
        (SharedSpec::TimeBased(_), true) => "WindowOpen",
        (SharedSpec::TimeBased(_), false) => "WindowClosed",
        (SharedSpec::CapitalMarkets(_), true) => "SessionOpen",
        (SharedSpec::CapitalMarkets(_), false) => "SessionClosed",
    };
    Ok(Published {
        active: window.is_open(),
        until: window.until(),
        reason,
    })
}

impl Published {
    fn message(&self) -> String {
        match (self.active, self.until) {
            (true, Some(until)) => format!("open until {until}"),
            (false, Some(until)) => format!("closed until {until}"),
            (true, None) => "open for the next ten years".to_owned(),
            (false, None) => "closed for the next ten years".to_owned(),
        }
    }
}

//! The rates of the class of a machine: what is done while they hold it.

use fivespot_api::condition::ConditionType;
use fivespot_api::time::{next_whole_second, whole_seconds};
use fivespot_api::{RatesOfClass, ShutdownReason};
use fivespot_capi::one_line;
use fivespot_schedule::OverrideMode;
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::case::Case;
use crate::decide::turn::is_eligible;
use crate::rates::{Pace, Rate};
use crate::why::Held;

/// How the messages about a machine that stays begin.
const STAYS: [&str; 2] = ["kept: ", "leaves "];

/// Times that are further ahead than this are announced by the minute.
const NEAR: SignedDuration = SignedDuration::from_mins(1);

/// Why the machine, of which nothing exists, is not made yet; `None` if it may be.
pub(crate) fn start_held(case: &Case<'_>) -> Option<Held> {
    let rates = case.desired.turn.rates;
    let most = rates.starts?;
    let class = one_line(&case.desired.host.class);
    let of_class = format!("startsPerMinute {most} of ScheduledMachineClass {class}");
    let (message, again) = match case.memory.pace {
        Some(Pace::Free) => return None,
        Some(Pace::Wait {
            rate: Rate::Starts,
            again: Some(again),
        }) => {
            let at = announced(again, case.now);
            let message =
                format!("{of_class} is reached; the machine may be made from {at} on");
            (message, Some(again))
        }
        Some(Pace::Wait { .. }) | None => {
            let unknown = || format!("{of_class}: which machines begin is not known yet");
            let message = recorded(case, &of_class).unwrap_or_else(unknown);
            (message, None)
        }
    };
    Some(Held::by_limit(message, again, case.now))
}

/// What `Ready` says already, if it is about this.
fn recorded(case: &Case<'_>, start: &str) -> Option<String> {
    let ready = case.subject.reported(ConditionType::Ready)?;
    let is_same = ready.message.starts_with(start);
    is_same.then(|| ready.message.clone())
}

/// Why the machine stays although its schedule does not need it any more; `None` if it leaves, or is
/// needed.
///
/// Only what the schedule ends is held: not what a Stop override, the kill switch, a reclaim or a
/// deletion ends, nor a machine that has to be replaced.
pub(crate) fn stop_held(case: &Case<'_>) -> Option<Held> {
    let rates = case.desired.turn.rates;
    if !rates.holds_stops() || case.is_wanted() || !is_eligible(case) {
        return None;
    }
    let machine = case.owned.our_machine()?;
    let is_leaving = machine.meta.is_deleting || case.shutdown_record(machine).is_some();
    let is_stopped = is_stopped_by_override(case);
    if is_leaving || is_stopped || case.wants_replacement(machine) {
        return None;
    }
    let class = one_line(&case.desired.host.class);
    let (message, again) = match case.memory.pace {
        Some(Pace::Free) => return None,
        Some(Pace::Wait {
            rate: Rate::MinimumActive,
            ..
        }) => {
            let least = rates.minimum_active;
            let message =
                format!("kept: minimumActive {least} of ScheduledMachineClass {class}");
            (message, None)
        }
        Some(Pace::Wait {
            rate: Rate::Stops,
            again: Some(again),
        }) => {
            let message = format!(
                "leaves from {} on: stopsPerMinute {} of ScheduledMachineClass {class}",
                announced(again, case.now),
                rates.stops.unwrap_or_default(),
            );
            (message, Some(again))
        }
        Some(Pace::Wait { .. }) | None => {
            let rates = named(rates);
            let unknown = || {
                format!("leaves when {rates} of ScheduledMachineClass {class} lets it")
            };
            (recorded_stay(case).unwrap_or_else(unknown), None)
        }
    };
    Some(Held::by_limit(message, again, case.now))
}

/// The fields that hold shutdowns.
fn named(rates: RatesOfClass) -> &'static str {
    match (rates.stops, rates.minimum_active) {
        (None, _) => "minimumActive",
        (Some(_), 0) => "stopsPerMinute",
        (Some(_), _) => "stopsPerMinute and minimumActive",
    }
}

/// What `Ready` says already about why the machine stays.
fn recorded_stay(case: &Case<'_>) -> Option<String> {
    let ready = case.subject.reported(ConditionType::Ready)?;
    let mut parts = ready.message.split("; ");
    let found = parts.find(|part| STAYS.iter().any(|start| part.starts_with(start)));
    found.map(str::to_owned)
}

fn is_stopped_by_override(case: &Case<'_>) -> bool {
    let in_force = case.override_in_force();
    in_force.is_some_and(|of| of.mode == OverrideMode::Stop)
}

/// An instant for a message. What is further ahead moves by seconds with each machine that begins or
/// leaves: the minute stays, and with it the status of all that wait.
fn announced(again: Timestamp, now: Timestamp) -> Timestamp {
    if again <= after(now, NEAR) {
        return next_whole_second(again);
    }
    let seconds = again.as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(60)).unwrap_or(again)
}

/// When a shutdown by schedule last began, for the status: now, if one with this reason begins.
pub(crate) fn last_shutdown(
    case: &Case<'_>,
    begins: Option<ShutdownReason>,
) -> Option<Timestamp> {
    let is_counted = begins == Some(ShutdownReason::ScheduleEnded)
        && case.desired.turn.rates.stops.is_some()
        && !is_stopped_by_override(case);
    if is_counted {
        Some(whole_seconds(case.now))
    } else {
        case.subject.status.last_shutdown_time
    }
}

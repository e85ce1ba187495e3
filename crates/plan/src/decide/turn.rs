//! The limits of the class of a machine: what it claims of them, and what is done while it is not its
//! turn.

use fivespot_api::condition::{ConditionType, Reason};
use fivespot_api::time::whole_seconds;
use fivespot_api::{LimitsOfClass, WeeklyUse};
use fivespot_capi::one_line;
use fivespot_schedule::{Need, Steps};
use jiff::Timestamp;

use crate::decide::case::Case;
use crate::decide::jitter::Delayed;
use crate::limits::{Claim, Limit, Span, Turn, Week};
use crate::why::{Held, Why};

/// How many steps the spans of a claim may take.
const STEPS: u64 = 15_000;

/// How many spans a claim has: the one that is open, or next, and the one after it.
const SPANS: usize = 2;

/// What the machine claims of the limits of its class; `None` if the class limits nothing.
pub(crate) fn claim(case: &Case<'_>) -> Option<Claim> {
    case.desired.turn.limits.as_ref()?;
    let holds = holds(case);
    Some(Claim {
        priority: case.desired.turn.priority,
        holds,
        spans: spans_needed(case, holds),
        used: case.subject.status.weekly_use,
    })
}

/// When the machine is needed next. One that does not exist is not made under Hold, nor for less than
/// its shortest run.
pub(crate) fn spans_needed(case: &Case<'_>, exists: bool) -> Vec<Span> {
    let schedule = case.delayed().filter(|_| is_eligible(case));
    let mut spans = schedule.map_or_else(Vec::new, |it| spans(&it, case.now));
    if exists {
        return spans;
    }
    let from = case.hold().map_or(Timestamp::MIN, |hold| hold.end);
    let least = case.desired.minimum_run;
    for span in &mut spans {
        span.start = span.start.max(from);
    }
    spans.retain(|span| {
        let is_long = |end: Timestamp| {
            let rest = end.duration_since(span.start);
            rest.is_positive() && rest >= least
        };
        span.end.is_none_or(is_long)
    });
    spans
}

/// Whether its schedule decides about the machine, so that it counts.
pub(crate) fn is_eligible(case: &Case<'_>) -> bool {
    case.desired.is_enabled
        && !case.desired.is_killed
        && !case.desired.is_audited
        && !case.subject.is_deleting
        && case.desired.class_fault.is_none()
}

/// Whether the machine was allowed before, or exists.
fn holds(case: &Case<'_>) -> bool {
    let used = case.subject.status.weekly_use;
    used.is_some_and(|used| used.since.is_some()) || !case.owned.is_gone()
}

fn spans(schedule: &Delayed<'_>, now: Timestamp) -> Vec<Span> {
    let steps = Steps::at_most(STEPS);
    let mut spans = Vec::new();
    let mut from = now;
    while spans.len() < SPANS && !steps.are_spent() {
        let (start, end) = match schedule.needed(from, &steps) {
            Need::Needed {
                until, known_until, ..
            } => (from, until.or(known_until)),
            Need::NotNeeded { until: None, .. } => break,
            Need::NotNeeded {
                until: Some(start), ..
            } => match schedule.needed(start, &steps) {
                Need::Needed {
                    until, known_until, ..
                } => (start, until.or(known_until)),
                Need::NotNeeded { .. } => break,
            },
        };
        spans.push(Span { start, end });
        match end {
            Some(end) if end > from => from = end,
            Some(_) | None => break,
        }
    }
    spans
}

/// Why the machine, of which nothing exists, is not made yet; `None` if it may be.
pub(crate) fn start_held(case: &Case<'_>) -> Option<Held> {
    let limits = case.desired.turn.limits.as_ref()?;
    let class = one_line(&case.desired.host.class);
    if limits.hours.is_some() && week(case).is_none() {
        let zone = one_line(&limits.timezone);
        let message = format!(
            "ScheduledMachineClass {class}: spec.timezone: there is no time zone {zone}"
        );
        return Some(Held {
            why: Why::new(Reason::UnknownTimeZone, message),
            again: None,
        });
    }
    let (message, again) = match case.memory.turn {
        Some(Turn::Open) => return None,
        Some(Turn::Wait { limit, again }) => {
            (waiting(&class, limits, limit, again), again)
        }
        None => {
            let unknown = || {
                format!(
                    "which machines of ScheduledMachineClass {class} are needed is not known yet"
                )
            };
            let recorded = recorded_wait(case);
            (recorded.unwrap_or_else(unknown), None)
        }
    };
    Some(Held::by_limit(message, again, case.now))
}

/// Which limit is reached, and when the machine may be made.
fn waiting(
    class: &str,
    limits: &LimitsOfClass,
    limit: Limit,
    again: Option<Timestamp>,
) -> String {
    let reached = match limit {
        Limit::Machines => format!(
            "limits.machinesPerNamespace of ScheduledMachineClass {class} is reached, {}",
            limits.machines.unwrap_or_default(),
        ),
        Limit::Hours => format!(
            "limits.hoursPerWeekPerNamespace of ScheduledMachineClass {class}, {}, does not suffice \
             for the window",
            limits.hours.unwrap_or_default(),
        ),
    };
    match again {
        Some(again) => format!("{reached}; the machine may be made from {again} on"),
        None => format!("{reached}; the machine is made when its turn comes"),
    }
}

/// The message of a machine that was waiting for its turn already.
fn recorded_wait(case: &Case<'_>) -> Option<String> {
    let ready = case.subject.reported(ConditionType::Ready)?;
    let is_waiting = ready.reason == Reason::LimitReached.as_str();
    is_waiting.then(|| ready.message.clone())
}

/// The week of the limits; `None` if their time zone does not exist.
fn week(case: &Case<'_>) -> Option<Week> {
    let limits = case.desired.turn.limits.as_ref()?;
    let zone = fivespot_schedule::zone(&limits.timezone)?;
    Some(Week::at(case.now, &zone))
}

/// How long the machine was needed in the week, for the status. Where its objects or its turn are not
/// known, that stays as it is.
pub(crate) fn weekly_use(case: &Case<'_>) -> Option<WeeklyUse> {
    let recorded = case.subject.status.weekly_use;
    let fault = case.desired.class_fault.as_ref();
    let is_class_unknown = fault.is_some_and(|it| it.is_unknown);
    if case.desired.turn.limits.is_none() && !is_class_unknown {
        return None;
    }
    let (is_gone, turn) = (case.owned.is_gone(), case.memory.turn);
    let is_undecided = turn.is_none() && is_gone && case.is_wanted();
    let Some(week) = week(case).filter(|_| !is_undecided) else {
        return recorded;
    };
    let may_begin =
        || turn == Some(Turn::Open) && case.hold().is_none() && !case.is_too_short();
    let is_counted = is_eligible(case) && case.is_wanted() && (!is_gone || may_begin());
    let now = whole_seconds(case.now);
    if is_counted {
        Some(week.begin(recorded.as_ref(), now))
    } else {
        recorded.map(|recorded| week.stop(&recorded, now))
    }
}

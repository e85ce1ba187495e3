//! What a machine claims of the rates of its class.

use fivespot_api::Phase;
use fivespot_api::condition::{ConditionType, Reason};
use fivespot_schedule::OverrideMode;
use jiff::Timestamp;

use crate::decide::case::Case;
use crate::decide::precedence::{self, Decision};
use crate::decide::turn::{is_eligible, spans_needed};
use crate::limits::{Span, Turn};
use crate::rates::{Claim, Stage};
use crate::status::conditions;

/// What the machine claims of the rates of its class.
pub(crate) fn claim(case: &Case<'_>) -> Claim {
    let spans = spans_needed(case, !case.owned.is_gone());
    let status = &case.subject.status;
    Claim {
        priority: case.desired.turn.priority,
        stage: stage(case),
        unheld_ends: unheld_ends(case, &spans),
        spans,
        started: status.last_scheduled_time,
        stopped: status.last_shutdown_time,
    }
}

/// The ends of spans at which an override stops the machine.
fn unheld_ends(case: &Case<'_>, spans: &[Span]) -> Vec<Timestamp> {
    let Ok(schedule) = &case.desired.schedule else {
        return Vec::new();
    };
    let is_stopped = |at: &Timestamp| {
        let in_force = schedule.override_at(*at);
        in_force.is_some_and(|of| of.mode == OverrideMode::Stop)
    };
    let ends = spans.iter().filter_map(|span| span.end);
    ends.filter(is_stopped).collect()
}

fn stage(case: &Case<'_>) -> Stage {
    let decision = precedence::decide(case);
    let is_untouched = !matches!(decision, Decision::ShutDown(_) | Decision::Serve);
    let phase = case.subject.status.phase;
    let Some(machine) = case.owned.our_machine() else {
        let is_missing = case.owned.is_gone() && !is_untouched && is_eligible(case);
        return match phase {
            _ if !is_missing || is_prevented(case) => Stage::Aside,
            Some(Phase::Error) => Stage::Failed,
            _ => Stage::Absent,
        };
    };
    let is_leaving = machine.meta.is_deleting || decision.shutdown_reason().is_some();
    match (is_leaving, phase == Some(Phase::Active)) {
        (true, _) => Stage::Aside,
        (false, true) if is_untouched => Stage::Fixed,
        (false, true) => Stage::Active,
        (false, false) if is_untouched => Stage::Aside,
        (false, false) => Stage::Present,
    }
}

/// Whether something other than the rates keeps the machine from being made.
fn is_prevented(case: &Case<'_>) -> bool {
    let ready = case.subject.reported(ConditionType::Ready);
    let seeks_host = ready.is_some_and(|ready| {
        [Reason::NoHostFree, Reason::HostTaken]
            .iter()
            .any(|reason| ready.reason == reason.as_str())
    });
    let is_limited = case.desired.turn.limits.is_some();
    seeks_host
        || is_limited && case.memory.turn != Some(Turn::Open)
        || conditions::outdated(case).is_some()
        || conditions::obstacle(case).is_some()
}

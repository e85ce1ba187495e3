//! Debouncing: status writes that may be delayed a little.
//!
//! Cluster API reports each step of a Machine, several a second. No decision depends on them, so
//! a status that differs only in progress is written at most every two seconds, and while a
//! machine is provisioned once a minute. Every other change is written at once.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, ScheduledMachineStatus};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::case::Case;
use crate::status::undrained;

/// The shortest time between two reports of progress.
const INTERVAL: SignedDuration = SignedDuration::from_secs(2);

/// The same for a machine that is being provisioned, if the last report was also of progress: a
/// provider's first report is written soon, and a thousand machines that are provisioned at the
/// same time need few writes each.
const PROVISIONING_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// When the change may be written; `None` if that is now.
pub(crate) fn due(
    case: &Case<'_>,
    after_this: &ScheduledMachineStatus,
) -> Option<Timestamp> {
    let before = &case.subject.status;
    let is_provisioning = after_this.phase == Some(Phase::Pending);
    let interval = if is_provisioning && case.memory.was_progress {
        PROVISIONING_INTERVAL
    } else {
        INTERVAL
    };
    let due = after(case.memory.status_written_at?, interval);
    let is_news = before != after_this && is_progress(before, after_this);
    (case.now < due && is_news).then_some(due)
}

/// Whether two statuses differ at most in progress: in messages, and in the conditions that
/// repeat the reports of other components.
pub(crate) fn is_progress(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> bool {
    let mut expected = after.clone();
    expected.message.clone_from(&before.message);
    // It can be read from the Machine at any time; it is recorded for when the Machine is gone.
    if before.provider_id.is_none() {
        expected.provider_id = None;
    }
    expected.conditions.clone_from(&before.conditions);
    let lasting = |status: &ScheduledMachineStatus| {
        let mut lasting = status.conditions.clone();
        for kind in [ConditionType::MachineReady, ConditionType::NodeAccess] {
            condition::remove(&mut lasting, kind);
        }
        for ready in &mut lasting {
            if ready.type_ == ConditionType::Ready.as_str() {
                // A message that cannot be derived later is reported at once.
                ready.message = undrained::of(&ready.message).unwrap_or_default();
            }
        }
        lasting
    };
    expected == *before && lasting(before) == lasting(after)
}

//! Debouncing: status writes that may come a little later.
//!
//! Cluster API reports each step of a Machine, several a second. Nothing is decided by that, so a
//! status that differs in nothing but progress is written at most every two seconds, and while a
//! machine is provisioned once a minute. Every other change is written at once.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, ScheduledMachineStatus};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::case::Case;
use crate::status::undrained;

/// The shortest time between two reports of progress.
const INTERVAL: SignedDuration = SignedDuration::from_secs(2);

/// The same for a machine that is provisioned, where the last report was of progress too: what a
/// provider reports at first is known soon, and of a thousand machines that come up at the same time
/// each costs few writes.
const PROVISIONING_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// When the change may be written, if that is not now.
pub(crate) fn due(
    case: &Case<'_>,
    after_this: &ScheduledMachineStatus,
) -> Option<Timestamp> {
    let before = &case.subject.status;
    let is_provisioning = after_this.phase == Some(Phase::Pending);
    let interval = if is_provisioning && case.memory.was_progress() {
        PROVISIONING_INTERVAL
    } else {
        INTERVAL
    };
    let due = after(case.memory.status_written_at()?, interval);
    let is_news = before != after_this && is_progress(before, after_this);
    (case.now < due && is_news).then_some(due)
}

/// Whether two statuses differ in how far a machine has come, if in anything: in the conditions
/// that repeat what others report, and in words.
pub(crate) fn is_progress(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> bool {
    let mut brought = after.clone();
    brought.message.clone_from(&before.message);
    // Known from the Machine at any time; on record it serves when the Machine is gone.
    if before.provider_id.is_none() {
        brought.provider_id = None;
    }
    brought.conditions.clone_from(&before.conditions);
    let lasting = |status: &ScheduledMachineStatus| {
        let mut lasting = status.conditions.clone();
        for kind in [ConditionType::MachineReady, ConditionType::NodeAccess] {
            condition::remove(&mut lasting, kind);
        }
        for ready in &mut lasting {
            if ready.type_ == ConditionType::Ready.as_str() {
                // What nobody can find out later is reported at once.
                ready.message = undrained::of(&ready.message).unwrap_or_default();
            }
        }
        lasting
    };
    brought == *before && lasting(before) == lasting(after)
}

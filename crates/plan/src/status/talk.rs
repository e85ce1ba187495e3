//! What may be told a little later.
//!
//! Cluster API reports each step of a Machine, several a second. People do not read so fast, and
//! nothing is decided by what they are told: such news waits until the last is two seconds old,
//! and what has come by then is told at once. While a machine comes up it is told twice a minute.
//! Nothing else ever waits.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, ScheduledMachineStatus};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::case::Case;
use crate::status::undrained;

/// How old the last news has to be.
const PAUSE: SignedDuration = SignedDuration::from_secs(2);

/// The same for a machine that comes up, where the last news said nothing but how far it had come:
/// most machines come up within a minute, and a thousand do so together.
const LONG_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// When the change may be told, if that is not now.
pub(crate) fn later(
    case: &Case<'_>,
    (before, after_this): (&ScheduledMachineStatus, &ScheduledMachineStatus),
) -> Option<Timestamp> {
    let is_coming = after_this.phase == Some(Phase::Pending);
    let pause = if is_coming && case.memory.has_told_progress() {
        LONG_PAUSE
    } else {
        PAUSE
    };
    let due = after(case.memory.told_at()?, pause);
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
                // What nobody can find out later is told at once.
                ready.message = undrained::of(&ready.message).unwrap_or_default();
            }
        }
        lasting
    };
    brought == *before && lasting(before) == lasting(after)
}

//! Machines whose ScheduledMachine is gone, for example after its finalizer was removed by hand:
//! no schedule and no kill switch applies to them. They are not changed, only counted and
//! reported.
//!
//! They are found only while Machines are watched, which begins with the first ScheduledMachine.

pub(crate) mod reported;

use fivespot_plan::{Event, EventType};

use crate::Key;
use crate::context::Context;
use crate::report::{Regarding, create_event};

const NOTE: &str = "the ScheduledMachine of this Machine no longer exists: no schedule, kill switch \
     or reclaim applies to it; delete the Machine, or create the ScheduledMachine again";

/// Reports, once, the Machine of a ScheduledMachine that is gone, which has its name. Best effort: a
/// lost event is not sent again.
pub(crate) async fn warn(context: &Context, key: &Key) {
    let machine = context.orphan_of(key);
    let uid = machine
        .as_ref()
        .and_then(|it| it["metadata"]["uid"].as_str());
    let is_new = context.reported_orphans.is_new(key, uid);
    let Some((machine, uid)) = machine.as_ref().zip(uid).filter(|_| is_new) else {
        return;
    };
    tracing::warn!(
        namespace = key.namespace,
        machine = key.name,
        "the ScheduledMachine of a Machine no longer exists"
    );
    let kind = "Machine";
    let event = Event {
        kind: EventType::Warning,
        reason: "OrphanedMachine".to_owned(),
        action: "None".to_owned(),
        note: NOTE.to_owned(),
    };
    let regarding = Regarding { kind, key, uid };
    let mut event = regarding.event(context, &event, context.clock.now(), 0);
    event["regarding"]["apiVersion"] = machine["apiVersion"].clone();
    create_event(context, &context.fence, key, &event).await;
}

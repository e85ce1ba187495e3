//! Machines whose ScheduledMachine is gone, for example after its finalizer was removed by hand:
//! no schedule and no kill switch applies to them. They are not changed, only counted and
//! reported.
//!
//! They are found only while Machines are watched, which begins with the first ScheduledMachine.

pub(crate) mod reported;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fivespot_api::name;
use serde_json::{Value, json};

use crate::context::Context;
use crate::{Key, report};

/// Reports, once each, Machines whose ScheduledMachine is gone. `key` is the ScheduledMachine
/// whose deletion was noticed. Best effort: a lost event is not sent again.
pub(crate) async fn warn(context: &Context, key: &Key) {
    for machine in context.reported_orphans.unreported(context.orphans()) {
        let namespace = text(&machine, "/metadata/namespace");
        let machine_name = text(&machine, "/metadata/name");
        tracing::warn!(
            namespace,
            machine = machine_name,
            "the ScheduledMachine of a Machine no longer exists"
        );
        let event = body(context, &machine);
        report::create_event(context, &context.fence, key, &event).await;
    }
}

fn body(context: &Context, machine: &Value) -> Value {
    let (now, uid) = (context.clock.now(), text(machine, "/metadata/uid"));
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    // Events are shown in the order of their names.
    let prefix = format!("{:016x}.{:016x}", now.as_nanosecond(), hasher.finish());
    let (namespace, own) = (
        text(machine, "/metadata/namespace"),
        text(machine, "/metadata/name"),
    );
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": format!("{prefix}.{own}"), "namespace": namespace},
        "eventTime": format!("{now:.6}"),
        "reportingController": name::FIELD_MANAGER,
        "reportingInstance": context.options.identity,
        "type": "Warning",
        "reason": "OrphanedMachine",
        "action": "None",
        "note": "the ScheduledMachine of this Machine no longer exists: no schedule, kill switch \
                 or reclaim applies to it; delete the Machine, or create the ScheduledMachine again",
        "regarding": {
            "apiVersion": machine["apiVersion"],
            "kind": "Machine",
            "namespace": namespace,
            "name": own,
            "uid": uid,
        },
    })
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

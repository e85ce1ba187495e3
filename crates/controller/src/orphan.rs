//! Machines whose ScheduledMachine is gone, for example after its finalizer was removed by hand:
//! no schedule and no kill switch applies to them. They are not changed, only counted and
//! reported.
//!
//! They are found only while Machines are watched, which begins with the first ScheduledMachine.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use fivespot_api::name;
use serde_json::{Value, json};

use crate::context::Context;
use crate::observe::projection::CachedKind;
use crate::observe::projection::Target;
use crate::{Key, report};

/// The uids of the Machines that have been reported.
#[derive(Debug, Default)]
pub(crate) struct ReportedOrphans(Mutex<BTreeSet<String>>);

impl ReportedOrphans {
    /// Returns those of `all` that have not been reported, and records `all` as reported. Other
    /// Machines are forgotten.
    fn unreported(&self, all: Vec<Value>) -> Vec<Value> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = |it: &Value| text(it, "/metadata/uid").to_owned();
        let now = all.iter().map(uid).collect();
        let before = std::mem::replace(&mut *reported, now);
        let is_new = |it: &Value| !before.contains(&uid(it));
        all.into_iter().filter(is_new).collect()
    }
}

/// The Machines without a ScheduledMachine that are not being deleted.
pub(crate) fn orphans(context: &Context) -> Vec<Value> {
    let owners = &context.scheduled_machines.store;
    let is_left = |owner: &Target| match owner {
        Target::One(owner) => owners.get(owner).is_none(),
        _ => false,
    };
    let caches = context.caches().into_iter();
    let machines = caches.filter(|informer| informer.projection == CachedKind::Machine);
    machines
        .flat_map(|informer| informer.store.all())
        .filter(|(_, object)| object.targets.iter().any(is_left))
        .map(|(_, object)| object.value())
        .filter(|it| it.pointer("/metadata/deletionTimestamp").is_none())
        .collect()
}

/// Reports, once each, Machines whose ScheduledMachine is gone. `key` is the ScheduledMachine
/// whose deletion was noticed. Best effort: a lost event is not sent again.
pub(crate) async fn warn(context: &Context, key: &Key) {
    for machine in context.reported_orphans.unreported(orphans(context)) {
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

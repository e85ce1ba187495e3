//! Machines whose ScheduledMachine is gone, such as after somebody took its finalizer off: no
//! schedule and no kill switch reaches them any more. They are left alone, counted and reported of.
//!
//! Known as far as Machines are watched, which begins with the first ScheduledMachine.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use fivespot_api::name;
use serde_json::{Value, json};

use crate::context::Context;
use crate::observe::projection::CachedKind;
use crate::observe::projection::Target;
use crate::{Key, report};

/// Of which Machines it has been reported, by their uids.
#[derive(Debug, Default)]
pub(crate) struct Reported(Mutex<BTreeSet<String>>);

impl Reported {
    /// Those of `all` of which it has not been reported; now it has. Others are forgotten.
    fn unreported(&self, all: Vec<Value>) -> Vec<Value> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = |it: &Value| text(it, "/metadata/uid").to_owned();
        let now = all.iter().map(uid).collect();
        let before = std::mem::replace(&mut *reported, now);
        let is_new = |it: &Value| !before.contains(&uid(it));
        all.into_iter().filter(is_new).collect()
    }
}

/// The Machines that are there without their ScheduledMachine and are not being deleted.
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
        .filter(|(_, object)| object.wakes.iter().any(is_left))
        .map(|(_, object)| object.value())
        .filter(|it| it.pointer("/metadata/deletionTimestamp").is_none())
        .collect()
}

/// Warns, once each, of Machines whose ScheduledMachine is gone; `key` is one that is. Best effort:
/// an event that is lost is lost.
pub(crate) async fn warn(context: &Context, key: &Key) {
    for machine in context.reported_orphans.unreported(orphans(context)) {
        let namespace = text(&machine, "/metadata/namespace");
        let machine_name = text(&machine, "/metadata/name");
        tracing::warn!(
            namespace,
            machine = machine_name,
            "a Machine has outlived its ScheduledMachine"
        );
        let event = body(context, &machine);
        report::create_event(context, key, &event).await;
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
        "note": "the ScheduledMachine of this Machine is gone: no schedule, kill switch or reclaim \
                 reaches it any more; delete the Machine, or create the ScheduledMachine again",
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

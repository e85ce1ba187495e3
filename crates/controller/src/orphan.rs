//! Machines whose ScheduledMachine is gone, such as after somebody took its finalizer off: no
//! schedule and no kill switch reaches them any more. They are left alone, counted and told of.
//!
//! Known as far as Machines are watched, which begins with the first ScheduledMachine.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use fivespot_api::name;
use k8s_openapi::api::events::v1 as events;
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::shape::Shape;
use crate::shape::Target;
use crate::shell::Shell;
use crate::{Key, failure};
use fivespot_runtime::http::Address;

/// Of which Machines it has been told, by their uids.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<BTreeSet<String>>);

impl Told {
    /// Those of `all` of which it has not been told; now it has. Others are forgotten.
    fn news(&self, all: Vec<Value>) -> Vec<Value> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = |it: &Value| text(it, "/metadata/uid").to_owned();
        let now = all.iter().map(uid).collect();
        let before = std::mem::replace(&mut *told, now);
        let is_new = |it: &Value| !before.contains(&uid(it));
        all.into_iter().filter(is_new).collect()
    }
}

/// The Machines that are there without their ScheduledMachine and are not being deleted.
pub(crate) fn orphans(shell: &Shell) -> Vec<Value> {
    let owners = &shell.scheduled_machines.store;
    let is_left = |owner: &Target| match owner {
        Target::One(owner) => owners.get(owner).is_none(),
        Target::Cluster(_) | Target::Machine(_) => false,
    };
    let caches = shell.caches().into_iter();
    let machines = caches.filter(|feed| feed.projection == Shape::Machine);
    machines
        .flat_map(|feed| feed.store.all())
        .filter(|(_, object)| object.wakes.iter().any(is_left))
        .map(|(_, object)| object.value())
        .filter(|it| it.pointer("/metadata/deletionTimestamp").is_none())
        .collect()
}

/// Warns, once each, of Machines whose ScheduledMachine is gone; `key` is one that is. Best effort:
/// an event that is lost is lost.
pub(crate) async fn warn(shell: &Shell, key: &Key) {
    let resource = ApiResource::erase::<events::Event>(&());
    for machine in shell.told_orphans.news(orphans(shell)) {
        let namespace = text(&machine, "/metadata/namespace");
        let machine_name = text(&machine, "/metadata/name");
        tracing::warn!(
            namespace,
            machine = machine_name,
            "a Machine has outlived its ScheduledMachine"
        );
        let at = Address {
            resource: &resource,
            namespace: Some(namespace),
            name: "",
            shape: None,
        };
        let body = body(shell, &machine);
        let sent = shell.fence.write(key, shell.port.create(&at, &body)).await;
        if let Ok(Err(error)) = sent {
            let error = failure::words(&error);
            tracing::debug!(error, "event lost");
        }
    }
}

fn body(shell: &Shell, machine: &Value) -> Value {
    let (now, uid) = (shell.clock.now(), text(machine, "/metadata/uid"));
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
        "reportingInstance": shell.options.identity,
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

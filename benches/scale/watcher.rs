//! The phases of all ScheduledMachines, what each status write changed, and which of the writes
//! only repeat what Cluster API and the workload cluster report.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use benches::TestNamespace;
use fivespot_api::ScheduledMachine;
use futures::TryStreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, LocalSet};
use tokio::time::Instant;

use crate::fleet::BoxError;

/// The conditions that repeat what other controllers report.
const REPEATED: [&str; 2] = ["MachineReady", "NodeAccess"];

/// After how long without a status change a wait fails.
const STALL_TIMEOUT: Duration = Duration::from_mins(4);

/// The interval at which progress is printed.
const PROGRESS: Duration = Duration::from_secs(15);

/// The number of status writes by what they changed.
pub(crate) type Changes = BTreeMap<String, usize>;

/// The observed state of the ScheduledMachines.
#[derive(Default)]
struct ObservedMachines {
    statuses: RefCell<BTreeMap<String, Value>>,
    /// The number of machines in each phase. Counting many machines again for each event is slow.
    phases: RefCell<BTreeMap<String, usize>>,
    version: RefCell<String>,
    changes: RefCell<Changes>,
    changed: Notify,
    /// The error that ended the watch.
    ended: RefCell<Option<String>>,
}

/// Watches the ScheduledMachines of a namespace, and counts. Must be used within a [`LocalSet`].
pub(crate) struct Watcher {
    observed: Rc<ObservedMachines>,
    watch_task: AbortHandle,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watch_task.abort();
    }
}

impl Watcher {
    /// Starts the watch. No objects exist yet.
    pub(crate) fn start(test_namespace: &TestNamespace) -> Self {
        let resource = ApiResource::erase::<ScheduledMachine>(&());
        let api = Api::namespaced_with(
            test_namespace.client().clone(),
            test_namespace.namespace(),
            &resource,
        );
        let observed = Rc::new(ObservedMachines::default());
        observed.version.replace("0".to_owned());
        let shared = observed.clone();
        let task = tokio::task::spawn_local(async move {
            // The server ends a watch after some minutes. The next one continues at the last
            // version.
            let error = loop {
                if let Err(error) = watch(&api, &shared).await {
                    break error;
                }
            };
            shared.ended.replace(Some(error.to_string()));
            shared.changed.notify_one();
        });
        Self {
            observed,
            watch_task: task.abort_handle(),
        }
    }

    /// The changes since the last call.
    pub(crate) fn take(&self) -> Changes {
        self.observed.changes.take()
    }

    /// Waits until this many machines are reported in this phase, and prints the progress. Fails if
    /// no status changes for too long.
    pub(crate) async fn settle(
        &self,
        phase: &str,
        machines: usize,
    ) -> Result<(), BoxError> {
        let mut progress = tokio::time::interval(PROGRESS);
        progress.reset();
        let mut stall_timeout = pin!(tokio::time::sleep(STALL_TIMEOUT));
        loop {
            let there = self.in_phase(phase);
            if there == machines {
                return Ok(());
            }
            if let Some(error) = &*self.observed.ended.borrow() {
                return Err(format!("the watch has ended: {error}").into());
            }
            tokio::select! {
                () = self.observed.changed.notified() => {
                    stall_timeout.as_mut().reset(Instant::now() + STALL_TIMEOUT);
                }
                _ = progress.tick() => eprintln!("  {there} of {machines} {phase}"),
                () = &mut stall_timeout => {
                    let progress = format!("{there} of {machines} are {phase}, without progress");
                    return Err(progress.into());
                }
            }
        }
    }

    fn in_phase(&self, phase: &str) -> usize {
        let phases = self.observed.phases.borrow();
        phases.get(phase).copied().unwrap_or_default()
    }
}

/// How many of the writes only repeat what other controllers report.
pub(crate) fn repeating(changes: &Changes) -> usize {
    let those = changes.iter().filter(|(what, _)| {
        what.split(", ")
            .all(|of| REPEATED.contains(&of.trim_end_matches(" in words")))
    });
    those.map(|(_, count)| count).sum()
}

/// Runs `work` together with local background tasks.
pub(crate) async fn with_local_tasks<T>(work: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(work).await
}

async fn watch(
    api: &Api<DynamicObject>,
    observed: &ObservedMachines,
) -> Result<(), BoxError> {
    let from = observed.version.borrow().clone();
    let events = api.watch(&WatchParams::default(), &from).await?;
    let mut events = pin!(events);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                observed.object(object, true);
            }
            WatchEvent::Deleted(object) => observed.object(object, false),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(error) => return Err(error.message.into()),
        }
        observed.changed.notify_one();
    }
    Ok(())
}

impl ObservedMachines {
    /// Handles an object that was added, modified or deleted.
    fn object(&self, object: DynamicObject, is_there: bool) {
        let meta = object.metadata;
        self.version
            .replace(meta.resource_version.unwrap_or_default());
        let name = meta.name.unwrap_or_default();
        let status = is_there.then(|| object.data["status"].clone());
        let mut statuses = self.statuses.borrow_mut();
        let before = match &status {
            Some(status) => statuses.insert(name, status.clone()),
            None => statuses.remove(&name),
        };
        if let (Some(before), Some(status)) = (&before, &status)
            && let Some(what) = changed(before, status)
        {
            *self.changes.borrow_mut().entry(what).or_default() += 1;
        }
        let mut phases = self.phases.borrow_mut();
        if let Some(before) = &before
            && let Some(count) = phases.get_mut(phase(before))
        {
            *count -= 1;
        }
        if let Some(status) = &status {
            *phases.entry(phase(status).to_owned()).or_default() += 1;
        }
    }
}

/// The phase of a status. Empty if it has none.
fn phase(status: &Value) -> &str {
    status["phase"].as_str().unwrap_or_default()
}

/// Describes the difference between two statuses. `None` if there is none. If the phase differs,
/// only the phases are included, because the other changes follow from it.
fn changed(before: &Value, after: &Value) -> Option<String> {
    let (was, is) = (phase(before), phase(after));
    if was != is {
        let was = if was.is_empty() { "none" } else { was };
        return Some(format!("phase {was} to {is}"));
    }
    let mut what: Vec<String> = names(before, after)
        .into_iter()
        .filter(|name| name != "conditions" && before[name] != after[name])
        .collect();
    let (old, new) = (conditions(before), conditions(after));
    let kinds: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for kind in kinds {
        let state = |all: &BTreeMap<String, Value>| {
            let of = all.get(kind).cloned().unwrap_or_default();
            (of["status"].clone(), of["reason"].clone())
        };
        if state(&old) != state(&new) {
            what.push(kind.clone());
        } else if old.get(kind) != new.get(kind) {
            what.push(format!("{kind} in words"));
        }
    }
    (!what.is_empty()).then(|| what.join(", "))
}

fn names(before: &Value, after: &Value) -> BTreeSet<String> {
    let fields = [before, after].into_iter().filter_map(Value::as_object);
    fields.flat_map(|of| of.keys().cloned()).collect()
}

fn conditions(status: &Value) -> BTreeMap<String, Value> {
    let all = status["conditions"].as_array().into_iter().flatten();
    all.map(|of| {
        (
            of["type"].as_str().unwrap_or_default().to_owned(),
            of.clone(),
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(phase: &str, node: &str, ready: [&str; 2]) -> Value {
        let [reason, message] = ready;
        json!({"phase": phase, "nodeRef": {"name": node}, "conditions": [
            {"type": "Ready", "reason": phase},
            {"type": "MachineReady", "reason": reason, "message": message},
        ]})
    }

    #[test]
    fn a_write_is_classified_by_what_it_changed() {
        let before = status("Pending", "a", ["x", "1"]);
        let rows = [
            (status("Pending", "a", ["x", "1"]), None),
            (status("Pending", "a", ["y", "2"]), Some("MachineReady")),
            (
                status("Pending", "a", ["x", "2"]),
                Some("MachineReady in words"),
            ),
            (
                status("Pending", "b", ["y", "1"]),
                Some("nodeRef, MachineReady"),
            ),
            (
                status("Active", "b", ["y", "1"]),
                Some("phase Pending to Active"),
            ),
        ];
        for (after, expected) in rows {
            assert_eq!(changed(&before, &after).as_deref(), expected);
        }
    }

    #[test]
    fn writes_that_only_repeat_other_reports_are_counted() {
        let changes = [
            ("MachineReady", 1),
            ("MachineReady in words, NodeAccess", 2),
            ("nodeRef, NodeAccess", 4),
            ("phase Pending to Active", 8),
        ];
        let changes = changes.map(|(what, count)| (what.to_owned(), count)).into();
        assert_eq!(repeating(&changes), 3);
    }
}

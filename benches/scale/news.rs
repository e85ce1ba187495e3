//! What each write of a status changed, and which of them merely repeat what Cluster API and the
//! workload cluster report.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::Rc;

use benches::Stage;
use futures::TryStreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::task::{AbortHandle, LocalSet};

use crate::world::Failure;

/// The conditions that repeat what others report.
const REPEATED: [&str; 2] = ["MachineReady", "NodeAccess"];

/// How many writes of a status changed the same things, by what they changed.
pub(crate) type Changes = BTreeMap<String, usize>;

/// Follows the ScheduledMachines of a namespace, and counts. To be used within a
/// [`LocalSet`].
pub(crate) struct News {
    changes: Rc<RefCell<Changes>>,
    following: AbortHandle,
}

impl Drop for News {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl News {
    /// Begins to follow, before there is anything to be seen.
    pub(crate) fn follow(stage: &Stage) -> Self {
        let changes = Rc::new(RefCell::new(Changes::new()));
        let resource = ApiResource {
            group: "5spot.finos.org".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "5spot.finos.org/v1alpha1".to_owned(),
            kind: "ScheduledMachine".to_owned(),
            plural: "scheduledmachines".to_owned(),
        };
        let api =
            Api::namespaced_with(stage.client().clone(), stage.namespace(), &resource);
        let counted = changes.clone();
        let task = tokio::task::spawn_local(async move {
            let (known, version) = (RefCell::default(), RefCell::new("0".to_owned()));
            // The server ends a watch after some minutes; it goes on where it was.
            while watch(&api, (&known, &version), &counted).await.is_ok() {}
        });
        Self {
            changes,
            following: task.abort_handle(),
        }
    }

    /// The writes since this was asked last.
    pub(crate) fn take(&self) -> Changes {
        self.changes.take()
    }
}

/// How many of the writes merely repeat what others report.
pub(crate) fn repeating(changes: &Changes) -> usize {
    let those = changes.iter().filter(|(what, _)| {
        what.split(", ")
            .all(|of| REPEATED.contains(&of.trim_end_matches(" in words")))
    });
    those.map(|(_, count)| count).sum()
}

/// Runs what follows in the background as well.
pub(crate) async fn beside<T>(work: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(work).await
}

type Statuses = RefCell<BTreeMap<String, Value>>;

async fn watch(
    api: &Api<DynamicObject>,
    (known, version): (&Statuses, &RefCell<String>),
    counted: &RefCell<Changes>,
) -> Result<(), Failure> {
    let from = version.borrow().clone();
    let events = api.watch(&WatchParams::default(), &from).await?;
    let mut events = pin!(events);
    while let Some(event) = events.try_next().await? {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else {
            continue;
        };
        let meta = object.metadata;
        version.replace(meta.resource_version.unwrap_or_default());
        let status = object.data["status"].clone();
        let name = meta.name.unwrap_or_default();
        let mut known = known.borrow_mut();
        if let Some(before) = known.get(&name)
            && let Some(what) = changed(before, &status)
        {
            *counted.borrow_mut().entry(what).or_default() += 1;
        }
        known.insert(name, status);
    }
    Ok(())
}

/// What is different between two statuses; none if nothing is. Of a change of phase the rest
/// follows.
fn changed(before: &Value, after: &Value) -> Option<String> {
    let phase = |status: &Value| status["phase"].as_str().unwrap_or("none").to_owned();
    let (was, is) = (phase(before), phase(after));
    if was != is {
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
    fn a_write_is_known_by_what_it_changed() {
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
    fn what_repeats_others_alone_is_counted_as_such() {
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

//! Which status writes merely repeat what Cluster API and the workload cluster report.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
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

/// Follows the ScheduledMachines of a namespace, and counts. To be used within a
/// [`LocalSet`].
pub(crate) struct News {
    count: Rc<Cell<usize>>,
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
        let count = Rc::new(Cell::new(0));
        let resource = ApiResource {
            group: "5spot.finos.org".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "5spot.finos.org/v1alpha1".to_owned(),
            kind: "ScheduledMachine".to_owned(),
            plural: "scheduledmachines".to_owned(),
        };
        let api =
            Api::namespaced_with(stage.client().clone(), stage.namespace(), &resource);
        let counted = count.clone();
        let task = tokio::task::spawn_local(async move {
            let (known, version) = (RefCell::default(), RefCell::new("0".to_owned()));
            // The server ends a watch after some minutes; it goes on where it was.
            while watch(&api, (&known, &version), &counted).await.is_ok() {}
        });
        Self {
            count,
            following: task.abort_handle(),
        }
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }
}

/// Runs what follows in the background as well.
pub(crate) async fn beside<T>(work: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(work).await
}

type Statuses = RefCell<BTreeMap<String, Value>>;

async fn watch(
    api: &Api<DynamicObject>,
    (known, version): (&Statuses, &RefCell<String>),
    count: &Cell<usize>,
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
            && is_news(before, &status)
        {
            count.set(count.get() + 1);
        }
        known.insert(name, status);
    }
    Ok(())
}

/// Whether two statuses differ, and in nothing but what others report.
fn is_news(before: &Value, after: &Value) -> bool {
    before != after && own_words(before.clone()) == own_words(after.clone())
}

fn own_words(mut status: Value) -> Value {
    if let Some(all) = status["conditions"].as_array_mut() {
        all.retain(|condition| {
            let kind = condition["type"].as_str().unwrap_or_default();
            !REPEATED.contains(&kind)
        });
    }
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_repeats_others_is_news_and_a_phase_is_none() {
        let status = |phase: &str, ready: &str| {
            json!({"phase": phase, "conditions": [
                {"type": "Ready", "reason": phase}, {"type": "MachineReady", "reason": ready},
            ]})
        };
        let before = status("Pending", "a");
        assert!(is_news(&before, &status("Pending", "b")));
        assert!(!is_news(&before, &status("Active", "b")));
        assert!(!is_news(&before, &before));
    }
}

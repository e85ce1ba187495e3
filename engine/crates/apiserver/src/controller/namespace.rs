//! Empties namespaces that are being deleted and finalizes them (pkg/controller/namespace).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Controller;
use crate::meta;
use crate::state::State;
use crate::status::Status;
use crate::store::{Bucket, Key, Range};
use crate::trigger::namespace::is_ending;
use crate::work_queue::WorkItem;

/// Deletes the contents of a terminating namespace; finalizes the namespace when it is empty. A
/// rejected request is retried after a write that may change the outcome.
pub(super) fn reconcile(state: &mut State, name: &str) {
    if !is_ending(state, name) {
        return;
    }
    let mut remaining = RemainingContent::default();
    let pods = state.buckets.pods;
    let mut buckets = state.namespaced();
    let pods_first = state.kube.is_at_least(PODS_FIRST_SINCE);
    if pods_first {
        buckets.sort_by_key(|it| *it != pods);
    }
    for bucket in buckets {
        remaining.delete_all(state, bucket, name);
        // A network policy has to outlive the pods that it restrains.
        if pods_first && bucket == pods && !contents(state, pods, name).is_empty() {
            break;
        }
    }
    report(state, name, &remaining);
    let emptied = remaining.refusals.is_empty() && remaining.objects.is_empty();
    if !remaining.refusals.is_empty() || emptied && finalize(state, name).is_err() {
        let item = WorkItem::Namespace(name.to_owned());
        state.queue.retry_later(item);
    }
}

const CONTROLLER: Controller = Controller::Namespaces;

/// The minor version of Kubernetes since which the pods of a namespace are deleted before its
/// other objects (the feature gate `OrderedNamespaceDeletion`).
const PODS_FIRST_SINCE: u32 = 33;

/// The objects of a resource in a namespace, and whether they are being deleted.
fn contents(state: &State, bucket: Bucket, namespace: &str) -> Vec<(Key, bool)> {
    let range = Range {
        namespace: Some(namespace),
        after: None,
    };
    let found = state.store.list(bucket, &range, None);
    found
        .into_iter()
        .flatten()
        .map(|(key, it)| (key.clone(), meta::is_deleting(it)))
        .collect()
}

/// The contents of a terminating namespace.
#[derive(Debug, Default)]
struct RemainingContent {
    /// How many objects of each resource.
    objects: BTreeMap<String, u32>,
    /// How many objects wait for each finalizer.
    finalizers: BTreeMap<String, u32>,
    /// Why resources could not be deleted, one message for each.
    refusals: Vec<String>,
}

impl RemainingContent {
    /// Deletes the objects of a resource in a namespace, and counts those that remain.
    fn delete_all(&mut self, state: &mut State, bucket: Bucket, namespace: &str) {
        if contents(state, bucket, namespace)
            .iter()
            .any(|(_, deleting)| !deleting)
            && let Err(refused) = CONTROLLER.delete_all(state, bucket, namespace)
        {
            self.refusals.push(refused.to_string());
            return;
        }
        for (key, _) in contents(state, bucket, namespace) {
            self.count_object(state, bucket, &key);
        }
    }

    /// Counts the object with that key, if it still exists.
    fn count_object(&mut self, state: &State, bucket: Bucket, key: &Key) {
        let (Some(resource), Some(object)) =
            (state.stored_resource(bucket), state.get(bucket, key))
        else {
            return;
        };
        let storage = &resource.storage;
        let named = format!("{}.{}", storage.resource, storage.group);
        *self.objects.entry(named).or_default() += 1;
        for finalizer in meta::finalizers(object) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// The conditions of a terminating namespace: type, status, reason and message.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let listed = |all: &BTreeMap<String, u32>, verb: &str| {
            let all = all.iter();
            let all =
                all.map(|(it, count)| format!("{it} {verb} {count} resource instances"));
            all.collect::<Vec<_>>().join(", ")
        };
        let done =
            |kind, reason, message: &str| (kind, false, reason, message.to_owned());
        let content = if self.objects.is_empty() {
            let message = "All content successfully removed";
            done("NamespaceContentRemaining", "ContentRemoved", message)
        } else {
            let all = listed(&self.objects, "has");
            let message = format!("Some resources are remaining: {all}");
            let kind = "NamespaceContentRemaining";
            (kind, true, "SomeResourcesRemain", message)
        };
        let finalizers = if self.finalizers.is_empty() {
            let message = "All content-preserving finalizers finished";
            done(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                message,
            )
        } else {
            let all = listed(&self.finalizers, "in");
            let message =
                format!("Some content in the namespace has finalizers remaining: {all}");
            let kind = "NamespaceFinalizersRemaining";
            (kind, true, "SomeFinalizersRemain", message)
        };
        [
            done(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            done(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            self.failure(),
            content,
            finalizers,
        ]
    }

    fn failure(&self) -> (&'static str, bool, &'static str, String) {
        let kind = "NamespaceDeletionContentFailure";
        if self.refusals.is_empty() {
            let message =
                "All content successfully deleted, may be waiting on finalization";
            return (kind, false, "ContentDeleted", message.to_owned());
        }
        let mut refusals = self.refusals.clone();
        refusals.sort_unstable();
        let message = format!(
            "Failed to delete all resource types, {} remaining: {}",
            refusals.len(),
            refusals.join(", ")
        );
        (kind, true, "ContentDeletionFailed", message)
    }
}

/// Writes the conditions of a terminating namespace into its status.
fn report(state: &mut State, name: &str, remaining: &RemainingContent) {
    let bucket = state.buckets.namespaces;
    let now = state.now();
    let Some(namespace) = state.get(bucket, &Key::new("", name)) else {
        return;
    };
    let mut namespace = Value::clone(namespace);
    let previous = namespace["status"]["conditions"].clone();
    let conditions = remaining
        .conditions()
        .map(|(kind, holds, reason, message)| {
            let status = if holds { "True" } else { "False" };
            let all = previous.as_array().into_iter().flatten();
            let same = all
                .filter(|it| it["type"] == kind && it["status"] == status)
                .map(|it| it["lastTransitionTime"].clone())
                .next();
            json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": same.unwrap_or_else(|| now.as_str().into())})
        });
    let status = meta::field(meta::fields(&mut namespace), "status");
    status.insert("conditions".to_owned(), conditions.to_vec().into());
    if let Err(refused) = CONTROLLER.update_status(state, bucket, namespace) {
        tracing::debug!(%refused, name, "namespace status not updated");
    }
}

fn finalize(state: &mut State, name: &str) -> Result<(), Status> {
    let bucket = state.buckets.namespaces;
    let Some(namespace) = state.get(bucket, &Key::new("", name)) else {
        return Ok(());
    };
    let mut namespace = Value::clone(namespace);
    let spec = meta::field(meta::fields(&mut namespace), "spec");
    if let Some(all) = spec.get_mut("finalizers").and_then(Value::as_array_mut) {
        all.retain(|it| it != "kubernetes");
    }
    CONTROLLER.finalize(state, namespace)
}

//! The objects that the current reconcile has read live, updated with the responses to its own
//! writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_plan::Fact;
use serde_json::Value;

use super::node::pods::ListedPods;
use crate::observe::json_text::JsonText;
use fivespot_runtime::Key;
use fivespot_runtime::cache::Reservation;

/// Objects by the name of their cache and their key; `None` for a 404.
///
/// After a write, a reconcile continues with the response instead of reading all objects again. It
/// never deletes on that basis: before a deletion it reads again.
#[derive(Debug, Default)]
pub(crate) struct LiveReads(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<(String, Key), Option<JsonText>>,
    has_written: bool,
    pods: Option<Pods>,
    /// The shares of the objects in the memory budgets of workload clusters.
    shares: Vec<Reservation>,
}

/// The pods on a Node that were listed while the Node had that resourceVersion.
#[derive(Debug)]
struct Pods {
    node_version: String,
    listed: Arc<ListedPods>,
}

impl LiveReads {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object, if it has been read or written.
    pub(crate) fn get(&self, cache: &str, object: &Key) -> Fact<Option<Value>> {
        let id = (cache.to_owned(), object.clone());
        match self.state().objects.get(&id) {
            Some(Some(known)) => Fact::Known(Some(known.value())),
            Some(None) => Fact::Known(None),
            None => Fact::default(),
        }
    }

    /// Records that the object was read.
    pub(crate) fn record_read(&self, cache: &str, object: &Key, found: Option<&Value>) {
        let id = (cache.to_owned(), object.clone());
        self.state().objects.insert(id, found.map(JsonText::of));
    }

    /// Holds the share of an object in the memory budget of its workload cluster, if it has one,
    /// for as long as the object is kept.
    pub(crate) fn hold(&self, share: Option<Reservation>) {
        self.state().shares.extend(share);
    }

    /// Records that the object was written. Without a `response` it is read again.
    pub(crate) fn record_write(
        &self,
        cache: &str,
        object: &Key,
        response: Option<&Value>,
    ) {
        let id = (cache.to_owned(), object.clone());
        let mut state = self.state();
        state.has_written = true;
        state.pods = None;
        match response {
            Some(response) => state.objects.insert(id, Some(JsonText::of(response))),
            None => state.objects.remove(&id),
        };
    }

    /// Records the pods on the Node that were listed while it had that resourceVersion.
    pub(super) fn record_pods(&self, node_version: &str, pods: ListedPods) {
        self.state().pods = Some(Pods {
            node_version: node_version.to_owned(),
            listed: Arc::new(pods),
        });
    }

    /// The pods on the Node, if they have been listed since our last write and the Node still has
    /// that resourceVersion: it has not been uncordoned since.
    pub(super) fn pods(&self, node_version: &str) -> Option<Arc<ListedPods>> {
        let state = self.state();
        let pods = state.pods.as_ref();
        let pods = pods.filter(|pods| pods.node_version == node_version);
        pods.map(|pods| pods.listed.clone())
    }

    /// Records that pods are being removed: they are listed again.
    pub(crate) fn invalidate_pods(&self) {
        self.state().pods = None;
    }

    /// Forgets all reads except the pods that were listed since our last write.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        *state = State {
            pods: state.pods.take(),
            ..State::default()
        };
    }

    /// Whether all objects were read after our last write.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.state().has_written
    }
}

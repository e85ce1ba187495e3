//! What has been read live in the reconcile that is under way, and what our writes made of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_plan::Fact;
use serde_json::Value;

use crate::observe::json_text::JsonText;
use fivespot_runtime::Key;

/// Objects by the name of their cache and their key; none is a 404.
///
/// A reconcile that writes goes on from the answers to its own writes instead of reading everything
/// again. It never destroys anything on that ground: for that it reads anew.
#[derive(Debug, Default)]
pub(crate) struct LiveReads(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<(String, Key), Option<JsonText>>,
    has_written: bool,
    pods: Option<Pods>,
}

/// The pods on a Node that were listed while it was of that version.
#[derive(Debug)]
struct Pods {
    node_version: String,
    listed: JsonText,
}

impl LiveReads {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object, if it has been read or written.
    pub(crate) fn get(&self, cache: &str, object: &Key) -> Fact<Option<Value>> {
        let place = (cache.to_owned(), object.clone());
        match self.state().objects.get(&place) {
            Some(Some(known)) => Fact::Known(Some(known.value())),
            Some(None) => Fact::Known(None),
            None => Fact::default(),
        }
    }

    /// The object was read.
    pub(crate) fn read(&self, cache: &str, object: &Key, found: Option<&Value>) {
        let place = (cache.to_owned(), object.clone());
        self.state().objects.insert(place, found.map(JsonText::of));
    }

    /// The object was written; none as an answer means that it is to be read again.
    pub(crate) fn wrote(&self, cache: &str, object: &Key, answer: Option<&Value>) {
        let place = (cache.to_owned(), object.clone());
        let mut state = self.state();
        state.has_written = true;
        state.pods = None;
        match answer {
            Some(answer) => state.objects.insert(place, Some(JsonText::of(answer))),
            None => state.objects.remove(&place),
        };
    }

    /// The pods on the Node were listed while it was of that version.
    pub(crate) fn listed(&self, node_version: &str, pods: &Value) {
        self.state().pods = Some(Pods {
            node_version: node_version.to_owned(),
            listed: JsonText::of(pods),
        });
    }

    /// The pods on the Node, if they have been listed since our last write and the Node is still of
    /// the version that it was of then: nobody has opened it to others since.
    pub(crate) fn pods(&self, node_version: &str) -> Option<Value> {
        let state = self.state();
        let pods = state.pods.as_ref();
        let pods = pods.filter(|pods| pods.node_version == node_version);
        pods.map(|pods| pods.listed.value())
    }

    /// Pods are being removed: they are to be listed again.
    pub(crate) fn removes_pods(&self) {
        self.state().pods = None;
    }

    /// Everything is to be read again but what was listed since our last write.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        *state = State {
            pods: state.pods.take(),
            ..State::default()
        };
    }

    /// Whether all of it was read after our last write.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.state().has_written
    }
}

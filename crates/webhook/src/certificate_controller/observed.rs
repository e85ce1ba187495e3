//! The state of one object that is watched.

use kube::runtime::watcher::{self, Event};

/// One object, as last observed.
#[derive(Debug)]
pub(super) struct Observed<K> {
    state: State<K>,
    /// During a list: whether the object was in it.
    is_listed: bool,
    failure: Option<String>,
}

#[derive(Debug)]
enum State<K> {
    Unknown,
    Absent,
    Present(Box<K>),
}

impl<K> Default for Observed<K> {
    fn default() -> Self {
        Self {
            state: State::Unknown,
            is_listed: false,
            failure: None,
        }
    }
}

impl<K> Observed<K> {
    pub(super) fn take(&mut self, event: watcher::Result<Event<K>>) {
        match event {
            Ok(event) => {
                self.failure = None;
                match event {
                    Event::Init => self.is_listed = false,
                    Event::InitApply(object) => {
                        self.is_listed = true;
                        self.set(object);
                    }
                    Event::InitDone if !self.is_listed => self.state = State::Absent,
                    Event::InitDone => {}
                    Event::Apply(object) => self.set(object),
                    Event::Delete(_) => self.state = State::Absent,
                }
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
    }

    /// Takes the object from the response to a write.
    pub(super) fn set(&mut self, object: K) {
        self.state = State::Present(Box::new(object));
    }

    pub(super) fn object(&self) -> Option<&K> {
        match &self.state {
            State::Present(object) => Some(object),
            State::Unknown | State::Absent => None,
        }
    }

    /// The problem, in a sentence; `None` if there is none.
    pub(super) fn problem(&self, kind: &str, name: &str) -> Option<String> {
        match (&self.failure, &self.state) {
            (Some(failure), _) => Some(format!("watching {kind} {name}: {failure}")),
            (None, State::Absent) => Some(format!(
                "{kind} {name} not found; apply the manifests of the webhook"
            )),
            (None, State::Unknown | State::Present(_)) => None,
        }
    }
}

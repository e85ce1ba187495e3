//! What a watch of one object has told.

use kube::runtime::watcher::{self, Event};

/// One object, as far as it is known.
#[derive(Debug)]
pub(super) struct Seen<K> {
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

impl<K> Default for Seen<K> {
    fn default() -> Self {
        Self {
            state: State::Unknown,
            is_listed: false,
            failure: None,
        }
    }
}

impl<K> Seen<K> {
    pub(super) fn take(&mut self, event: watcher::Result<Event<K>>) {
        match event {
            Ok(event) => {
                self.failure = None;
                match event {
                    Event::Init => self.is_listed = false,
                    Event::InitApply(object) => {
                        self.is_listed = true;
                        self.know(object);
                    }
                    Event::InitDone if !self.is_listed => self.state = State::Absent,
                    Event::InitDone => {}
                    Event::Apply(object) => self.know(object),
                    Event::Delete(_) => self.state = State::Absent,
                }
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
    }

    /// Takes what a write was answered with.
    pub(super) fn know(&mut self, object: K) {
        self.state = State::Present(Box::new(object));
    }

    pub(super) fn object(&self) -> Option<&K> {
        match &self.state {
            State::Present(object) => Some(object),
            State::Unknown | State::Absent => None,
        }
    }

    /// What is wrong, in a sentence.
    pub(super) fn problem(&self, kind: &str, name: &str) -> Option<String> {
        match (&self.failure, &self.state) {
            (Some(failure), _) => {
                Some(format!("{kind} {name} cannot be watched: {failure}"))
            }
            (None, State::Absent) => Some(format!(
                "there is no {kind} {name}; apply the manifests of the webhook"
            )),
            (None, State::Unknown | State::Present(_)) => None,
        }
    }
}

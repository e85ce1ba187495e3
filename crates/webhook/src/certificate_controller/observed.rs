//! The state of one object that is watched.

use kube::runtime::watcher;

/// One object, as last observed.
#[derive(Debug)]
pub(super) struct Observed<K> {
    object: Option<K>,
    /// Whether it was looked for.
    is_read: bool,
    failure: Option<String>,
}

impl<K> Default for Observed<K> {
    fn default() -> Self {
        Self {
            object: None,
            is_read: false,
            failure: None,
        }
    }
}

impl<K> Observed<K> {
    /// Takes what the watch reports: the object, or `None` if there is none.
    pub(super) fn take(&mut self, reported: watcher::Result<Option<K>>) {
        match reported {
            Ok(object) => {
                *self = Self {
                    object,
                    is_read: true,
                    failure: None,
                }
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
    }

    /// Takes the object from the response to a write.
    pub(super) fn set(&mut self, object: K) {
        self.object = Some(object);
    }

    pub(super) fn object(&self) -> Option<&K> {
        self.object.as_ref()
    }

    /// The problem, in a sentence; `None` if there is none.
    pub(super) fn problem(&self, kind: &str, name: &str) -> Option<String> {
        match &self.failure {
            Some(failure) => Some(format!("watching {kind} {name}: {failure}")),
            None if self.is_read && self.object.is_none() => Some(format!(
                "{kind} {name} not found; apply the manifests of the webhook"
            )),
            None => None,
        }
    }
}

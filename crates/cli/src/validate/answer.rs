//! What is said about one object.

use super::refusal::Refusal;
use crate::document::Document;

/// One object and what the server would answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) subject: Subject,
    pub(super) warnings: Vec<String>,
    pub(super) verdict: Verdict,
}

/// Which object it is.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The file, and which of its documents.
    pub(super) origin: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    /// Empty for objects that live in none.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Whether the object is accepted.
#[derive(Debug)]
pub(super) enum Verdict {
    Valid,
    /// The server would answer with the first of these.
    Refused(Vec<Refusal>),
    /// Nobody said what such an object has to be.
    Skipped(String),
}

impl Subject {
    pub(super) fn of(document: &Document) -> Self {
        let api_version = document.text("/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let name = match document.text("/metadata/name") {
            "" => document.text("/metadata/generateName"),
            name => name,
        };
        Self {
            origin: document.origin.clone(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: document.text("/kind").to_owned(),
            namespace: document.text("/metadata/namespace").to_owned(),
            name: name.to_owned(),
        }
    }

    pub(super) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `scheduledmachine.5spot.finos.org/name`, as kubectl calls an object.
    pub(super) fn handle(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let kind = self.kind.to_lowercase();
        format!("{kind}{dot}{}/{}", self.group, self.name)
    }
}

//! What is said about one object.

use fivespot_api::lint::Remark;
use serde::Serialize;

use super::refusal::Refusal;
use crate::document::{Document, Place};

/// One object and what the server would answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) subject: Subject,
    pub(super) warnings: Vec<String>,
    pub(super) verdict: Verdict,
    /// Who was asked, in order, and what it cost.
    pub(super) steps: Vec<Step>,
    /// What is allowed and rarely meant.
    pub(super) remarks: Vec<Remark>,
}

impl Answer {
    /// An answer that nobody was asked for.
    pub(super) fn at_once(subject: Subject, verdict: Verdict) -> Self {
        Self {
            subject,
            warnings: Vec::new(),
            verdict,
            steps: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Everything that is wrong, one by one: what a server says, then what we remark.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        if let Verdict::Refused(refusals) = &self.verdict {
            all.extend(refusals.iter().flat_map(Refusal::findings));
        }
        all.extend(self.remarks.iter().map(|remark| Finding {
            rule: remark.lint.code.to_owned(),
            field: remark.field.clone(),
            message: remark.message.clone(),
            is_error: false,
        }));
        all
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The rule or the lint by its code; the reason of the refusal where it has none.
    pub(super) rule: String,
    /// The field; empty for the whole object.
    pub(super) field: String,
    pub(super) message: String,
    /// Whether a server refuses the object for it.
    pub(super) is_error: bool,
}

/// Somebody who was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    /// `decoding`, `definition` or `policy`.
    pub(super) layer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) binding: Option<String>,
    /// In the units of Kubernetes' tracker; none where nothing is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<u64>,
    /// What was found wrong.
    pub(super) refused: usize,
}

/// Which object it is.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The file, and which of its documents.
    pub(super) origin: String,
    /// Where its text is.
    pub(super) place: Option<Place>,
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
            place: document.place.clone(),
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

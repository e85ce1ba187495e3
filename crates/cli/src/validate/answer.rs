//! The result for one object.

use fivespot_api::lint::LintWarning;
use serde::Serialize;

use super::LintLevel;
use super::refusal::{self, Refusal};
use crate::document::{Document, Place};

/// One object and what the server would answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) subject: Subject,
    pub(super) warnings: Vec<String>,
    pub(super) verdict: Verdict,
    /// The validation steps, in order, and their cost.
    pub(super) steps: Vec<Step>,
    /// Lint warnings.
    pub(super) lints: Vec<LintWarning>,
}

impl Answer {
    /// A result without validation steps.
    pub(super) fn at_once(subject: Subject, verdict: Verdict) -> Self {
        Self {
            subject,
            warnings: Vec::new(),
            verdict,
            steps: Vec::new(),
            lints: Vec::new(),
        }
    }

    /// Whether the object is invalid: rejected by a server, or with a lint warning that is an error.
    pub(super) fn is_no(&self, lint: LintLevel) -> bool {
        let is_error = |it: &LintWarning| lint.level(it) == Level::Error;
        self.lints.iter().any(is_error) || matches!(self.verdict, Verdict::Refused(_))
    }

    /// What a server refuses the object for, one by one.
    pub(super) fn faults(&self) -> Vec<Finding> {
        match &self.verdict {
            Verdict::Refused(refusals) => {
                refusals.iter().flat_map(Refusal::findings).collect()
            }
            Verdict::Valid | Verdict::Skipped(_) => Vec::new(),
        }
    }

    /// The warnings of a server, then the lint warnings.
    pub(super) fn warnings_and_lints(&self, lint: LintLevel) -> Vec<Finding> {
        let warnings = self.warnings.iter().map(|warning| Finding {
            rule: refusal::rule("", warning).unwrap_or("Warning").to_owned(),
            field: String::new(),
            message: warning.clone(),
            level: Level::Warning,
        });
        let lints = self.lints.iter().map(|lint_warning| Finding {
            rule: lint_warning.lint.code.to_owned(),
            field: lint_warning.field.clone(),
            message: lint_warning.message.clone(),
            level: lint.level(lint_warning),
        });
        warnings.chain(lints).collect()
    }

    /// Everything that there is to say, one by one: why a server refuses the object or why it is
    /// not looked at, then what is said beside that.
    pub(super) fn findings(&self, lint: LintLevel) -> Vec<Finding> {
        let skipped = match &self.verdict {
            Verdict::Skipped(why) => Some(Finding {
                rule: "Skipped".to_owned(),
                field: String::new(),
                message: why.clone(),
                level: Level::Note,
            }),
            Verdict::Valid | Verdict::Refused(_) => None,
        };
        let faults = self.faults().into_iter().chain(skipped);
        faults.chain(self.warnings_and_lints(lint)).collect()
    }
}

/// One thing that there is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The rule or the lint by its code; where it has none, the reason of the refusal, `Warning`
    /// or `Skipped`.
    pub(super) rule: String,
    /// The field; empty for the whole object.
    pub(super) field: String,
    pub(super) message: String,
    pub(super) level: Level,
}

impl Finding {
    /// The field, if any, and the message.
    pub(super) fn text(&self) -> String {
        match self.field.as_str() {
            "" => self.message.clone(),
            field => format!("{field}: {}", self.message),
        }
    }
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The answer is no for it.
    Error,
    /// The answer may be yes in spite of it.
    Warning,
    /// There is no answer for it.
    Note,
}

impl Level {
    /// The word of SARIF, and of our own JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A validation step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    /// `decoding`, `CRD` or `policy`; `API server` for all of them of a built-in kind.
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
    /// There is no schema for the object.
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

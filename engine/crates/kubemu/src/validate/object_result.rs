//! The result for one object.

use kubemu_terminal::plain;
use serde::Serialize;

use super::extension::{Extension, Lint};
use super::refusal::Refusal;
use crate::document::{Document, Malformed, SourceLocation};

/// An object with the expected response of the server.
#[derive(Debug)]
pub(super) struct ObjectResult {
    pub(super) subject: Subject,
    pub(super) warnings: Vec<String>,
    pub(super) verdict: Verdict,
    /// The validation steps, in order, and their cost.
    pub(super) steps: Vec<Step>,
    /// Lint warnings.
    pub(super) lints: Vec<Lint>,
}

impl ObjectResult {
    /// A result without validation steps.
    pub(super) fn without_steps(subject: Subject, verdict: Verdict) -> Self {
        Self {
            subject,
            warnings: Vec::new(),
            verdict,
            steps: Vec::new(),
            lints: Vec::new(),
        }
    }

    /// The result for a text that contains no object.
    pub(super) fn malformed(text: &Malformed) -> Self {
        let subject = Subject {
            origin: text.file.clone(),
            location: Some(text.location()),
            group: String::new(),
            version: String::new(),
            kind: String::new(),
            namespace: String::new(),
            name: String::new(),
        };
        let refusal = Refusal::malformed(text);
        Self::without_steps(subject, Verdict::Refused(vec![refusal]))
    }

    /// Whether the object is invalid: rejected by a server, or with a lint warning of error level.
    pub(super) fn is_invalid(&self) -> bool {
        let is_error = |it: &Lint| it.level == Level::Error;
        self.lints.iter().any(is_error) || matches!(self.verdict, Verdict::Refused(_))
    }

    /// The reasons why a server refuses the object.
    pub(super) fn faults(&self, extension: &dyn Extension) -> Vec<Finding> {
        match &self.verdict {
            Verdict::Refused(refusals) => refusals
                .iter()
                .flat_map(|it| it.findings(extension))
                .collect(),
            Verdict::Valid | Verdict::Skipped(_) => Vec::new(),
        }
    }

    /// The warnings of a server, followed by the lint warnings.
    pub(super) fn warnings_and_lints(&self, extension: &dyn Extension) -> Vec<Finding> {
        let warnings = self.warnings.iter().map(|warning| Finding {
            rule: extension.rule("", warning).unwrap_or("Warning").to_owned(),
            field: String::new(),
            message: warning.clone(),
            level: Level::Warning,
        });
        let lints = self.lints.iter().map(|lint| Finding {
            rule: lint.code.to_owned(),
            field: lint.field.clone(),
            message: lint.message.clone(),
            level: lint.level,
        });
        warnings.chain(lints).collect()
    }

    /// All findings: the reasons why a server refuses the object, or why it was skipped, followed
    /// by warnings.
    pub(super) fn findings(&self, extension: &dyn Extension) -> Vec<Finding> {
        let skipped = match &self.verdict {
            Verdict::Skipped(why) => Some(Finding {
                rule: "Skipped".to_owned(),
                field: String::new(),
                message: why.clone(),
                level: Level::Note,
            }),
            Verdict::Valid | Verdict::Refused(_) => None,
        };
        let faults = self.faults(extension).into_iter().chain(skipped);
        faults.chain(self.warnings_and_lints(extension)).collect()
    }
}

/// A single finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The code of the rule or the lint. Without a code, the reason of the refusal, `Warning` or
    /// `Skipped`.
    pub(super) rule: String,
    /// The field. Empty for the whole object.
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

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The object is invalid.
    Error,
    /// The object may be valid.
    Warning,
    /// The object was not validated.
    Note,
}

impl Level {
    /// The name in SARIF and in the JSON output.
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
    /// `decoding`, `CRD` or `policy`; `API server` for all steps of a built-in kind.
    pub(super) layer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) binding: Option<String>,
    /// In units of the Kubernetes cost tracker. `None` if no cost is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<u64>,
    /// The number of violations.
    pub(super) refused: usize,
}

/// The identity of an object.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The file, and the number of the document.
    pub(super) origin: String,
    /// The location of its text.
    pub(super) location: Option<SourceLocation>,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    /// Empty for cluster-scoped objects.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Whether the object is accepted.
#[derive(Debug)]
pub(super) enum Verdict {
    Valid,
    /// Refused. The server would return the first of these.
    Refused(Vec<Refusal>),
    /// Skipped, with the reason.
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
            location: document.location.clone(),
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

    /// `deployment.apps/web`: the name that kubectl prints, on one line. Without a
    /// kind and a name, the file.
    pub(super) fn handle(&self) -> String {
        if self.kind.is_empty() && self.name.is_empty() {
            return plain::line(&self.origin).into_owned();
        }
        let dot = if self.group.is_empty() { "" } else { "." };
        let kind = self.kind.to_lowercase();
        let handle = format!("{kind}{dot}{}/{}", self.group, self.name);
        plain::line(&handle).into_owned()
    }

    /// The handle in its namespace.
    pub(super) fn full_handle(&self) -> String {
        if self.kind.is_empty() && self.name.is_empty() {
            return self.handle();
        }
        format!("{}/{}", plain::line(&self.namespace), self.handle())
    }
}

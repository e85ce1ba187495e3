//! The refusals of the API server and kubectl's way to print them.

use std::collections::HashSet;
use std::fmt::Write as _;

use fivespot_admission::field::{self, Cause};
use fivespot_admission::policy::Denial;
use fivespot_admission::{FieldError, crd::Crd};
use serde_json::{Value, json};

use super::Operation;
use super::answer::Subject;

/// One Status that refuses.
#[derive(Debug)]
pub(super) struct Refusal {
    code: u16,
    reason: String,
    message: String,
    /// `details`, without the causes.
    group: String,
    kind: String,
    name: String,
    causes: Vec<Cause>,
    /// What kubectl puts before a message that is no list of faults.
    source: String,
}

impl Refusal {
    /// The object breaks its schema or a rule in it.
    pub(super) fn invalid(subject: &Subject, errors: &[FieldError]) -> Self {
        let Subject {
            group, kind, name, ..
        } = subject;
        let dot = if group.is_empty() { "" } else { "." };
        let errors_text = field::aggregate(errors);
        Self {
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("{kind}{dot}{group} \"{name}\" is invalid: {errors_text}"),
            group: group.clone(),
            kind: kind.clone(),
            name: name.clone(),
            causes: errors.iter().map(FieldError::cause).collect(),
            source: String::new(),
        }
    }

    /// The object has fields that its schema does not know.
    pub(super) fn unknown_fields(
        subject: &Subject,
        fields: &[String],
        operation: Operation,
    ) -> Self {
        let fields: Vec<_> = fields
            .iter()
            .map(|it| format!("unknown field \"{it}\""))
            .collect();
        let Subject { kind, version, .. } = subject;
        Self {
            code: 400,
            reason: "BadRequest".to_owned(),
            message: format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict \
                 decoding error: {}",
                fields.join(", ")
            ),
            group: String::new(),
            kind: String::new(),
            name: String::new(),
            causes: Vec::new(),
            source: source(subject, operation),
        }
    }

    /// A policy refuses. The details name the resource, not the kind.
    pub(super) fn denied(
        subject: &Subject,
        crd: &Crd,
        denial: &Denial,
        operation: Operation,
    ) -> Self {
        Self {
            code: denial.code,
            reason: denial.reason.clone(),
            message: denial.message.clone(),
            group: subject.group.clone(),
            kind: crd.plural().to_owned(),
            name: subject.name.clone(),
            causes: denial.causes.clone(),
            source: source(subject, operation),
        }
    }

    /// The kind is defined, but not in this version.
    pub(super) fn not_served(subject: &Subject) -> Self {
        let Subject {
            origin, kind, name, ..
        } = subject;
        let namespace = &subject.namespace;
        let version = subject.api_version();
        Self {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!(
                "resource mapping not found for name: \"{name}\" namespace: \
                 \"{namespace}\" from \"{origin}\": no matches for kind \"{kind}\" in \
                 version \"{version}\"\nensure CRDs are installed first"
            ),
            group: String::new(),
            kind: String::new(),
            name: String::new(),
            causes: Vec::new(),
            source: String::new(),
        }
    }

    /// As kubectl prints it, with an end of line.
    pub(super) fn text(&self) -> String {
        match self.reason.as_str() {
            "Invalid" => self.faults(),
            "NotFound" => format!("error: {}\n", self.message),
            reason => format!(
                "Error from server ({reason}): {}{}\n",
                self.source, self.message
            ),
        }
    }

    /// A single fault stands in the line, several stand below it, each different one once.
    fn faults(&self) -> String {
        let mut seen = HashSet::new();
        let faults: Vec<String> = self
            .causes
            .iter()
            .map(|it| format!("{}: {}", it.field.as_deref().unwrap_or(""), it.message))
            .filter(|fault| seen.insert(fault.clone()))
            .collect();
        let mut text = format!("The {} \"{}\" is invalid: ", self.kind, self.name);
        match faults.as_slice() {
            [only] => text.push_str(only),
            several => {
                for fault in several {
                    let _ = write!(text, "\n* {fault}");
                }
            }
        }
        text.push('\n');
        text
    }

    /// The `metav1.Status` of the answer.
    pub(super) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if !self.causes.is_empty() {
            status["details"] = json!({
                "name": self.name,
                "group": self.group,
                "kind": self.kind,
                "causes": self.causes,
            });
        }
        status
    }
}

fn source(subject: &Subject, operation: Operation) -> String {
    let doing = match operation {
        Operation::Create => "creating",
        Operation::Update => "patching",
        Operation::Delete => "deleting",
    };
    format!("error when {doing} \"{}\": ", subject.origin)
}

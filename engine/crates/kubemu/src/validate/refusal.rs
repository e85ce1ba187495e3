//! Refusals of the API server, in kubectl's output format.

use std::collections::HashSet;
use std::fmt::Write as _;

use kubemu_admission::field;
use kubemu_admission::policy::Denial;
use kubemu_admission::{FieldError, crd::Crd};
use kubemu_apiserver::Cause;
use kubemu_terminal::{Failure, plain};
use serde_json::{Value, json};

use super::Operation;
use super::extension::Extension;
use super::object_result::{Finding, Level, Subject};
use crate::document::Malformed;

/// A Status of a refused request.
#[derive(Debug)]
pub(super) struct Refusal {
    code: u16,
    reason: String,
    message: String,
    /// The fields of `details`, without the causes.
    group: String,
    kind: String,
    name: String,
    causes: Vec<Cause>,
    /// The text that kubectl prints before an error message of the server. Empty for errors that
    /// kubectl reports itself.
    source: String,
}

impl Refusal {
    /// The object violates its schema or a validation rule.
    pub(super) fn invalid(subject: &Subject, errors: &[FieldError]) -> Self {
        let Subject {
            group, kind, name, ..
        } = subject;
        let dot = if group.is_empty() { "" } else { "." };
        let errors_text = field::aggregate(errors);
        Self {
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("{kind}{dot}{group} {name:?} is invalid: {errors_text}"),
            group: group.clone(),
            kind: kind.clone(),
            name: name.clone(),
            causes: errors.iter().map(|it| it.cause().into()).collect(),
            source: String::new(),
        }
    }

    /// The object has fields that its schema does not have.
    pub(super) fn unknown_fields(
        subject: &Subject,
        fields: &[String],
        operation: Operation,
    ) -> Self {
        let fields: Vec<_> = fields
            .iter()
            .map(|it| format!("unknown field {it:?}"))
            .collect();
        let Subject { kind, version, .. } = subject;
        Self {
            code: 400,
            reason: "BadRequest".to_owned(),
            message: format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: strict \
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

    /// A policy denies the request. The details contain the resource, not the kind.
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
            causes: denial.causes.iter().cloned().map(Cause::from).collect(),
            source: source(subject, operation),
        }
    }

    /// A server refuses the request with this Status.
    pub(super) fn of_server(
        subject: &Subject,
        status: &Value,
        operation: Operation,
    ) -> Self {
        let text = |of: &Value, name: &str| of[name].as_str().unwrap_or("").to_owned();
        let details = &status["details"];
        let causes = details["causes"].as_array();
        let cause = |it: &Value| Cause {
            reason: text(it, "reason"),
            message: text(it, "message"),
            field: text(it, "field"),
        };
        let code = status["code"].as_u64().and_then(|it| it.try_into().ok());
        Self {
            code: code.unwrap_or_default(),
            reason: text(status, "reason"),
            message: text(status, "message"),
            group: text(details, "group"),
            kind: text(details, "kind"),
            name: text(details, "name"),
            causes: causes.into_iter().flatten().map(cause).collect(),
            source: source(subject, operation),
        }
    }

    /// The object has no kind or no apiVersion. kubectl also prints the object. A file that is not a
    /// manifest may contain a secret, and the output may go to the log of a pipeline.
    pub(super) fn incomplete(subject: &Subject, field: &str) -> Self {
        let origin = &subject.origin;
        let line = subject.location.as_ref().map_or(1, |it| it.line);
        Self::by_kubectl(
            (400, "BadRequest"),
            format!(
                "unable to decode {origin:?}: line {line}: Object '{field}' is missing"
            ),
        )
    }

    /// The text contains no object.
    pub(super) fn malformed(text: &Malformed) -> Self {
        Self::by_kubectl((400, "BadRequest"), text.message())
    }

    /// The kind is not served, or not in this version.
    pub(super) fn not_served(subject: &Subject) -> Self {
        let Subject {
            origin, kind, name, ..
        } = subject;
        let namespace = &subject.namespace;
        let version = subject.api_version();
        Self::by_kubectl(
            (404, "NotFound"),
            format!(
                "resource mapping not found for name: {name:?} namespace: {namespace:?} from \
                 {origin:?}: no matches for kind {kind:?} in version {version:?}\nensure \
                 CRDs are installed first"
            ),
        )
    }

    /// The object was not validated, because of this failure.
    pub(super) fn failed(failure: &Failure) -> Self {
        Self::by_kubectl((400, "BadRequest"), failure.to_string())
    }

    /// An error that kubectl reports before it sends the object, with the status code that the API
    /// server would return.
    fn by_kubectl((code, reason): (u16, &str), message: String) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message,
            group: String::new(),
            kind: String::new(),
            name: String::new(),
            causes: Vec::new(),
            source: String::new(),
        }
    }

    /// The text that kubectl prints, with a line feed. No name begins a line of its own.
    pub(super) fn text(&self) -> String {
        match self.reason.as_str() {
            "Invalid" => self.faults(),
            _ if self.source.is_empty() => format!("error: {}\n", self.message),
            reason => {
                let message = format!("{}{}", self.source, self.message);
                format!("Error from server ({reason}): {}\n", on_one_line(&message))
            }
        }
    }

    /// The findings, one for each cause.
    pub(super) fn findings(&self, extension: &dyn Extension) -> Vec<Finding> {
        let finding = |field: &str, message: &str| Finding {
            rule: extension
                .rule(field, message)
                .unwrap_or(&self.reason)
                .to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
            level: Level::Error,
        };
        if self.causes.is_empty() {
            return vec![finding("", &self.message)];
        }
        self.causes
            .iter()
            .map(|cause| finding(&cause.field, &cause.message))
            .collect()
    }

    /// A single error is printed on the same line; several are on separate lines, without
    /// duplicates.
    fn faults(&self) -> String {
        let mut seen = HashSet::new();
        let faults: Vec<String> = self
            .causes
            .iter()
            .map(|it| on_one_line(&format!("{}: {}", it.field, it.message)))
            .filter(|fault| seen.insert(fault.clone()))
            .collect();
        let kind = plain::line(&self.kind);
        let mut text = format!("The {kind} {:?} is invalid: ", self.name);
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

    /// The `metav1.Status` of the response.
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
                "causes": self.causes.iter().map(cause).collect::<Vec<_>>(),
            });
        }
        status
    }
}

/// A message on one line, except that excerpts of expressions are below it: they begin with a bar.
fn on_one_line(message: &str) -> String {
    let mut shown = String::new();
    for line in message.split('\n') {
        if line.starts_with(" | ") {
            shown.push('\n');
        } else if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(&plain::line(line));
    }
    shown
}

/// A cause of a `metav1.Status`.
fn cause(cause: &Cause) -> Value {
    let Cause {
        reason,
        message,
        field,
    } = cause;
    let mut shown = json!({});
    for (name, text) in [("reason", reason), ("message", message), ("field", field)] {
        if name == "message" || !text.is_empty() {
            shown[name] = text.as_str().into();
        }
    }
    shown
}

fn source(subject: &Subject, operation: Operation) -> String {
    let doing = match operation {
        Operation::Create => "creating",
        Operation::Update => "patching",
        Operation::Delete => "deleting",
    };
    format!("error when {doing} {:?}: ", subject.origin)
}

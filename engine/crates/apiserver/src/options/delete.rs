//! The options of a delete: its `DeleteOptions`, from the body or the query.

use kubemu_admission::FieldError;
use serde_json::{Value, json};

use crate::call::{Call, Payload};
use crate::decode::{self, DecodeError};
use crate::meta;
use crate::openapi::strictness::deletion_type_error;
use crate::options::invalid;
use crate::status::Status;

/// The propagation policy for dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Dependents are deleted after the owner.
    Background,
    /// Dependents are deleted before the owner.
    Foreground,
    /// Dependents are kept.
    Orphan,
}

/// Finalizer: the owner waits until its references are removed from its dependents.
pub(crate) const ORPHAN: &str = "orphan";
/// Finalizer: the owner waits until its dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Delete options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Precondition: the uid of the object.
    pub(crate) uid: Option<String>,
    /// Precondition: the resourceVersion of the object.
    pub(crate) version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) dry_run: bool,
}

impl Options {
    /// The requested grace period; a negative one counts as one second.
    pub(crate) fn requested_grace_seconds(&self) -> Option<i64> {
        self.grace_seconds.map(|it| if it < 0 { 1 } else { it })
    }
}

/// The `DeleteOptions` of a request, from the body or else from the query, as policies see
/// them.
pub(crate) fn delete_options(call: &Call) -> Value {
    let query = &call.query;
    // At this point the options have been validated already.
    let mut options = body_of(call).unwrap_or_default();
    let is_without_body = options.is_null();
    let fields = meta::fields(&mut options);
    if is_without_body {
        if query.dry_run {
            fields.insert("dryRun".to_owned(), json!(["All"]));
        }
        if let Some(seconds) = query.grace_period_seconds {
            fields.insert("gracePeriodSeconds".to_owned(), seconds.into());
        }
        if !query.propagation_policy.is_empty() {
            let word = query.propagation_policy.as_str();
            fields.insert("propagationPolicy".to_owned(), word.into());
        }
        if let Some(orphan) = query.orphan_dependents {
            fields.insert("orphanDependents".to_owned(), orphan.into());
        }
    }
    fields.retain(|_, it| !it.is_null() && *it != json!([]));
    fields.insert("kind".to_owned(), "DeleteOptions".into());
    fields.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    options
}

/// The body of a delete; null if there is none.
fn body_of(call: &Call) -> Result<Value, Status> {
    let empty = matches!(&call.body, Payload::Bytes(bytes) if bytes.is_empty());
    if empty {
        return Ok(Value::Null);
    }
    options_body(call)
}

/// Parses the `DeleteOptions` of the body, or of the query if there is no body.
pub(crate) fn of_request(call: &Call) -> Result<Options, Status> {
    let body = body_of(call)?;
    let mut options = parse_options(&body)?;
    let query = &call.query;
    // Beside a body the query does not count, not even a dry run.
    if body.is_null() {
        options.dry_run = query.dry_run;
        options.grace_seconds = query.grace_period_seconds;
        let word = Some(query.propagation_policy.as_str()).filter(|it| !it.is_empty());
        let errors = propagation_errors(word, query.orphan_dependents);
        if !errors.is_empty() {
            return Err(invalid("DeleteOptions", &errors));
        }
        options.propagation = propagation(word, query.orphan_dependents);
    }
    Ok(options)
}

fn options_body(call: &Call) -> Result<Value, Status> {
    let body = decode::unchecked(call)?.map_err(DecodeError::bare)?.value;
    let kind = body["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "DeleteOptions") {
        let version = body["apiVersion"].as_str().unwrap_or_default();
        return Err(Status::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \
             \"pkg/runtime/scheme.go:111\""
        )));
    }
    match deletion_type_error(&body) {
        Some(why) => Err(Status::bad_request(why)),
        None => Ok(body),
    }
}

/// Parses a `DeleteOptions` object; null has no options.
pub(crate) fn parse_options(body: &Value) -> Result<Options, Status> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (word, orphan) = (
        body["propagationPolicy"].as_str(),
        body["orphanDependents"].as_bool(),
    );
    let mut errors = propagation_errors(word, orphan);
    let rehearsals = body["dryRun"].as_array();
    if rehearsals.is_some_and(|all| all.iter().any(|it| it != "All")) {
        let actual = body["dryRun"].clone();
        errors.push(FieldError::not_supported("dryRun", actual, ["All"]));
    }
    if !errors.is_empty() {
        return Err(invalid("DeleteOptions", &errors));
    }
    let preconditions = &body["preconditions"];
    Ok(Options {
        uid: text(&preconditions["uid"]),
        version: text(&preconditions["resourceVersion"]),
        propagation: propagation(word, orphan),
        grace_seconds: body["gracePeriodSeconds"].as_i64(),
        dry_run: body["dryRun"]
            .as_array()
            .is_some_and(|it| it.contains(&"All".into())),
    })
}

const PROPAGATION: &str = "propagationPolicy";

/// The words of a propagation policy.
const POLICIES: [(&str, Propagation); 3] = [
    ("Foreground", Propagation::Foreground),
    ("Background", Propagation::Background),
    ("Orphan", Propagation::Orphan),
];

/// The validation errors of a propagation policy.
fn propagation_errors(word: Option<&str>, orphan: Option<bool>) -> Vec<FieldError> {
    let Some(word) = word else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if orphan.is_some() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid(PROPAGATION, word.into(), why));
    }
    let known = POLICIES.map(|it| it.0);
    if !known.contains(&word) {
        let known = known.into_iter().chain(["nil"]);
        errors.push(FieldError::not_supported(PROPAGATION, word.into(), known));
    }
    errors
}

/// The meaning of a valid propagation policy.
fn propagation(word: Option<&str>, orphan: Option<bool>) -> Option<Propagation> {
    match (word, orphan) {
        (Some(word), _) => {
            let policy = POLICIES.into_iter().find(|it| it.0 == word);
            policy.map(|it| it.1)
        }
        (None, Some(true)) => Some(Propagation::Orphan),
        (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
    }
}

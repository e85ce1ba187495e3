//! Access reviews: evaluated and not stored.

use kubemu_admission::FieldError;
use serde_json::{Map, Value, json};

use super::action::Action;
use super::decision::{Decision, aggregate_text, decide};
use super::right::Rights;
use super::selector;
use crate::call::Call;
use crate::route::Target;
use crate::status::{Status, invalid};
use crate::user::{MASTERS, User};

/// Responds to a review of `authorization.k8s.io` by filling in its status.
///
/// # Errors
/// 422 for an invalid review, 400 for a review of another namespace.
pub(crate) fn reply(
    rights: Rights<'_>,
    call: &Call,
    target: &Target,
    review: &mut Value,
) -> Result<(), Status> {
    let kind = target.resource.kind.as_str();
    if kind == "SelfSubjectRulesReview" {
        return rules(rights, call, review);
    }
    let errors = errors(kind, review);
    if !errors.is_empty() {
        return Err(refusal(target, &errors));
    }
    if kind == "LocalSubjectAccessReview" && meta_namespace(review) != target.namespace {
        return Err(Status::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {}",
            target.namespace
        )));
    }
    let user = if kind == "SelfSubjectAccessReview" {
        call.user.clone()
    } else {
        user_of(&review["spec"])
    };
    let action = action_of(&review["spec"]).with_own_group(rights.aliases);
    let decision = decide(rights.rules, &user, &action);
    review["status"] = status(&decision);
    let error = selector::evaluation_error(&review["spec"]);
    if !error.is_empty() {
        review["status"]["evaluationError"] = error.into();
    }
    Ok(())
}

/// 422; Kubernetes omits the kind here.
fn refusal(target: &Target, errors: &[FieldError]) -> Status {
    let mut refused = invalid(&target.resource, "", errors);
    let kind = target.resource.kind.as_str();
    if let Some(rest) = refused.message.strip_prefix(kind) {
        refused.message = rest.to_owned();
    }
    if let Some(details) = &mut refused.details {
        details.kind.clear();
    }
    refused
}

/// Non-resource attributes as Kubernetes' internal type prints them.
fn shown_path(attributes: &Value) -> Value {
    let text = |field: &str| attributes[field].as_str().unwrap_or_default();
    json!({"Path": text("path"), "Verb": text("verb")})
}

fn meta_namespace(review: &Value) -> &str {
    review["metadata"]["namespace"].as_str().unwrap_or_default()
}

fn status(decision: &Decision) -> Value {
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.as_str().into();
    }
    status
}

fn user_of(spec: &Value) -> User {
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text("user"),
        uid: text("uid"),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, it)| (key.clone(), texts(it))).collect(),
    }
}

fn action_of(spec: &Value) -> Action {
    let text = |part: &str, key: &str| {
        let text = spec[part][key].as_str();
        text.unwrap_or_default().to_owned()
    };
    if spec["resourceAttributes"].is_object() {
        let text = |key| text("resourceAttributes", key);
        return Action {
            verb: text("verb"),
            namespace: text("namespace"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            name: text("name"),
            path: String::new(),
        };
    }
    let path = text("nonResourceAttributes", "path");
    Action {
        verb: text("nonResourceAttributes", "verb"),
        // A non-resource path that is empty does not make this a resource action.
        path: if path.is_empty() {
            "/".to_owned()
        } else {
            path
        },
        ..Action::default()
    }
}

/// The validation errors of a review (pkg/apis/authorization/validation).
fn errors(kind: &str, review: &Value) -> Vec<FieldError> {
    let spec = &review["spec"];
    let there = |key: &str| spec.get(key).is_some_and(Value::is_object);
    let mut errors = Vec::new();
    match (there("resourceAttributes"), there("nonResourceAttributes")) {
        (true, true) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            shown_path(&spec["nonResourceAttributes"]),
            "cannot be specified in combination with resourceAttributes",
        )),
        (false, false) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    errors.extend(selector::errors(spec));
    let groups = spec["groups"].as_array().map_or(0, Vec::len);
    let user = spec["user"].as_str().unwrap_or_default();
    if kind != "SelfSubjectAccessReview" && user.is_empty() && groups == 0 {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", json!(""), detail));
    }
    let local = kind == "LocalSubjectAccessReview";
    let meta: Map<String, Value> = review["metadata"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "managedFields" && !(local && *key == "namespace"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !meta.is_empty() {
        let detail = if local {
            "must be empty except for namespace"
        } else {
            "must be empty"
        };
        errors.push(FieldError::invalid("metadata", meta.into(), detail));
    }
    if local {
        errors.extend(local_errors(review));
    }
    errors
}

fn local_errors(review: &Value) -> Vec<FieldError> {
    let spec = &review["spec"];
    let mut errors = Vec::new();
    if spec["resourceAttributes"].is_object() {
        let value = spec["resourceAttributes"]["namespace"].as_str();
        let value = value.unwrap_or_default();
        if value != meta_namespace(review) {
            errors.push(FieldError::invalid(
                "spec.resourceAttributes.namespace",
                value.into(),
                "must match metadata.namespace",
            ));
        }
    }
    if spec["nonResourceAttributes"].is_object() {
        errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            shown_path(&spec["nonResourceAttributes"]),
            "disallowed on this kind of request",
        ));
    }
    errors
}

/// Lists the permissions of the requesting user in a namespace.
fn rules(rights: Rights<'_>, call: &Call, review: &mut Value) -> Result<(), Status> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (mut resources, mut paths, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    if call.user.is_in(MASTERS) {
        let all = json!(["*"]);
        resources.push(json!({"verbs": all, "apiGroups": all, "resources": all}));
        paths.push(json!({"verbs": all, "nonResourceURLs": all}));
    }
    for grant in rights.rules.grants(&call.user, namespace) {
        match grant {
            Err(error) => errors.push(error),
            Ok(grant) if grant.rule.paths.is_empty() => {
                resources.push(grant.rule.to_value());
            }
            Ok(grant) => paths.push(grant.rule.to_value()),
        }
    }
    let mut status = json!({
        "resourceRules": resources,
        "nonResourceRules": paths,
        "incomplete": false,
    });
    if !errors.is_empty() {
        status["evaluationError"] = aggregate_text(&errors).into();
    }
    // Kubernetes does not return the metadata and the spec of the review.
    review["metadata"] = json!({});
    review["spec"] = json!({});
    review["status"] = status;
    Ok(())
}

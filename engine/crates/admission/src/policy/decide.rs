//! Evaluates all policies with all bindings for one request.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::authorize::AuthorizerValue;
use super::binding::{Binding, Params};
use super::definition::Policy;
use super::evaluate::{EvaluationResult, FailedValidation};
use super::matching::Matched;
use super::request::Request;
use super::resolver::{ParamKind, Resolver};
use super::scope::{Inputs, NULL};
use crate::field::Cause;
use crate::quote::Quoted;

/// The maximum size in bytes of an audit annotation's value.
const MAX_ANNOTATION_BYTES: usize = 10 * 1024;
/// The audit annotation key for failures with the binding action `Audit`.
const FAILURE_KEY: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Policies and their bindings, ready to evaluate. A policy without a binding has no effect,
/// and neither has a binding without its policy.
#[derive(Debug, Default)]
pub struct Policies {
    /// Sorted by the policies' names, with their bindings sorted by name.
    bound: Vec<(Arc<Policy>, Vec<Arc<Binding>>)>,
}

/// The decision of the policies on a request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// All denials. The API server reports only the first one to the client.
    pub denials: Vec<Denial>,
    /// Sent to the client as `Warning` headers.
    pub warnings: Vec<String>,
    /// Written to the audit log.
    pub audit_annotations: BTreeMap<String, String>,
    /// The cost of every policy that was evaluated, in evaluation order.
    pub evaluations: Vec<Evaluation>,
}

/// One policy with one binding and one parameter object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evaluation {
    /// The policy.
    pub policy: String,
    /// The binding.
    pub binding: String,
    /// The total cost of its match conditions, validations, messages and audit annotations, in
    /// the units of Kubernetes' cost tracker.
    pub cost: u64,
}

impl Decision {
    /// The denial that the API server returns; `None` if the request is admitted.
    pub fn denied(&self) -> Option<&Denial> {
        self.denials.first()
    }
}

/// One denial.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// The policy that denied the request.
    pub policy: String,
    /// The binding; `None` if the policy itself is misconfigured.
    pub binding: Option<String>,
    /// The index of the validation that failed; `None` if none ran.
    pub validation: Option<usize>,
    /// The HTTP status code.
    pub code: u16,
    /// The Status reason, such as `Invalid`.
    pub reason: String,
    /// The Status message: `<plural>.<group> "<name>" is forbidden: ValidatingAdmissionPolicy
    /// '<policy>' with binding '<binding>' denied request: <why>`.
    pub message: String,
    /// The entries of `details.causes`; `details.kind` is the plural name.
    pub causes: Vec<Cause>,
}

impl Policies {
    /// Combines policies and bindings. Cheap enough to be done at each change.
    pub fn new(
        policies: impl IntoIterator<Item = Arc<Policy>>,
        bindings: impl IntoIterator<Item = Arc<Binding>>,
    ) -> Self {
        let mut by_policy: BTreeMap<String, Vec<Arc<Binding>>> = BTreeMap::new();
        for binding in bindings {
            let policy = binding.policy_name().to_owned();
            by_policy.entry(policy).or_default().push(binding);
        }
        let mut bound: Vec<_> = policies
            .into_iter()
            .filter_map(|policy| {
                let mut bindings = by_policy.remove(&policy.name)?;
                bindings.sort_by(|one, other| one.name().cmp(other.name()));
                Some((policy, bindings))
            })
            .collect();
        bound.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        Self { bound }
    }

    /// Whether there are no policies to evaluate.
    pub fn is_empty(&self) -> bool {
        self.bound.is_empty()
    }

    /// Evaluates the policies for a request, in the order of their names.
    pub fn decide(&self, request: &Request<'_>, resolver: &dyn Resolver) -> Decision {
        let mut builder = DecisionBuilder {
            request,
            resolver,
            decision: Decision::default(),
            failure: None,
        };
        if !request.is_exempt() {
            for (policy, bindings) in &self.bound {
                builder.policy(policy, bindings);
            }
        }
        builder.finish()
    }
}

struct DecisionBuilder<'a> {
    request: &'a Request<'a>,
    resolver: &'a dyn Resolver,
    decision: Decision,
    /// The failure for the audit log: the first of several.
    failure: Option<Value>,
}

impl DecisionBuilder<'_> {
    fn policy(&mut self, policy: &Policy, bindings: &[Arc<Binding>]) {
        let Some(matched) = policy.matching.matches(self.request) else {
            return;
        };
        // A policy whose parameter kind is not served fails, whatever its bindings match.
        let params = match &policy.params {
            None => None,
            Some(kind) => {
                let Some(namespaced) = self.resolver.param_is_namespaced(kind) else {
                    self.misconfigured(policy, None, &not_served(kind));
                    return;
                };
                Some(Params { kind, namespaced })
            }
        };
        let mut inputs: Option<Inputs<'_>> = None;
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings {
            let matching = binding.matching.as_ref();
            if matching.is_some_and(|matching| matching.matches(self.request).is_none()) {
                continue;
            }
            let found = match binding.params(params, self.request, self.resolver) {
                Ok(found) => found,
                Err(why) => {
                    self.misconfigured(policy, Some(binding), &why);
                    continue;
                }
            };
            let inputs = match &mut inputs {
                Some(known) => known,
                none => match inputs_of(self.request, self.resolver, matched) {
                    Ok(made) => none.insert(made),
                    Err(why) => {
                        let why = format!("failed to convert object version: {why}");
                        self.misconfigured(policy, Some(binding), &why);
                        continue;
                    }
                },
            };
            for param in &found {
                let found = policy.evaluate(inputs, param);
                self.add_evaluation(policy, binding, found, &mut annotations);
            }
        }
        for (key, values) in annotations {
            let key = format!("{}/{key}", policy.name);
            let value = values.join(", ");
            self.decision.audit_annotations.insert(key, value);
        }
    }

    /// Denies the request because a policy, or one of its bindings, is misconfigured.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if !policy.ignores_errors {
            let what = if binding.is_some() {
                "binding"
            } else {
                "policy"
            };
            let failed = FailedValidation {
                validation: 0,
                message: format!("failed to configure {what}: {why}"),
                reason: String::new(),
            };
            self.deny((policy, binding), &failed, None);
        }
    }

    fn add_evaluation(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        found: EvaluationResult,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        self.decision.evaluations.push(Evaluation {
            policy: policy.name.clone(),
            binding: binding.name().to_owned(),
            cost: found.cost,
        });
        for failed in &found.failed_validations {
            for action in &binding.actions {
                match action.as_str() {
                    "Deny" => {
                        let validation = Some(failed.validation);
                        self.deny((policy, Some(binding)), failed, validation);
                    }
                    "Warn" => self.decision.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding \
                         '{}': {}",
                        policy.name,
                        binding.name(),
                        failed.message
                    )),
                    _ => {
                        self.failure.get_or_insert_with(|| {
                            json!([{
                                "message": failed.message,
                                "policy": policy.name,
                                "binding": binding.name(),
                                "expressionIndex": failed.validation,
                                "validationActions": binding.actions,
                            }])
                        });
                    }
                }
            }
        }
        for (key, value) in found.annotations {
            let values = annotations.entry(key).or_default();
            let value = truncate(value);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for why in found.failed_annotations {
            let failed = FailedValidation {
                validation: 0,
                message: why,
                reason: String::new(),
            };
            self.deny((policy, Some(binding)), &failed, None);
        }
    }

    fn deny(
        &mut self,
        (policy, binding): (&Policy, Option<&Binding>),
        failed: &FailedValidation,
        validation: Option<usize>,
    ) {
        let with = match binding {
            Some(binding) => format!(" with binding '{}'", binding.name()),
            None => String::new(),
        };
        let why = format!(
            "ValidatingAdmissionPolicy '{}'{with} denied request: {}",
            policy.name, failed.message
        );
        let resource = self.request.resource;
        let dot = if resource.group.is_empty() { "" } else { "." };
        let reason = match failed.reason.as_str() {
            "" => "Invalid",
            reason => reason,
        };
        self.decision.denials.push(Denial {
            policy: policy.name.clone(),
            binding: binding.map(|it| it.name().to_owned()),
            validation,
            code: match reason {
                "Unauthorized" => 401,
                "Forbidden" => 403,
                "RequestEntityTooLarge" => 413,
                _ => 422,
            },
            reason: reason.to_owned(),
            message: format!(
                "{}{dot}{} {} is forbidden: {why}",
                resource.resource,
                resource.group,
                Quoted(self.request.display_name())
            ),
            causes: vec![Cause {
                reason: None,
                message: why,
                field: None,
            }],
        });
    }

    fn finish(mut self) -> Decision {
        if let Some(failure) = self.failure {
            self.decision
                .audit_annotations
                .insert(FAILURE_KEY.to_owned(), to_go_json(&failure));
        }
        self.decision
    }
}

/// The inputs of the expressions for a request.
///
/// # Errors
/// Why the object could not be converted to the version that matched.
pub(super) fn inputs_of<'a>(
    request: &'a Request<'a>,
    resolver: &dyn Resolver,
    matched: Matched<'a>,
) -> Result<Inputs<'a>, String> {
    let (_, kind) = matched;
    let in_version = |object: Option<&'a Value>| match object {
        Some(object) if kind != request.kind => {
            resolver.converted(object, kind).map(Cow::Owned)
        }
        Some(object) => Ok(Cow::Borrowed(object)),
        None => Ok(Cow::Borrowed(&NULL)),
    };
    // A request for a Namespace has no `namespaceObject`.
    let namespace = request.namespace_object.filter(|_| !request.is_namespace());
    let authorizer = resolver.authorizer();
    let authorizer =
        authorizer.map(|it| Arc::new(AuthorizerValue::new(it, request.user)));
    Ok(Inputs {
        object: in_version(request.object)?,
        old_object: in_version(request.old_object)?,
        request,
        matched,
        request_variable: OnceCell::new(),
        namespace: namespace.unwrap_or(&NULL),
        authorizer: authorizer.clone(),
        request_resource: authorizer.map(|it| Arc::new(it.about(request))),
    })
}

/// The error of a policy whose parameter kind is not served.
pub(super) fn not_served(kind: &ParamKind) -> String {
    let ParamKind { api_version, kind } = kind;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!(
        "failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'"
    )
}

/// JSON as Go prints it, with characters that are special in HTML escaped.
fn to_go_json(json: &Value) -> String {
    let mut text = String::new();
    for letter in json.to_string().chars() {
        match letter {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

/// The value, truncated to the limit.
fn truncate(mut value: String) -> String {
    if value.len() > MAX_ANNOTATION_BYTES {
        let at = (0..=MAX_ANNOTATION_BYTES)
            .rev()
            .find(|at| value.is_char_boundary(*at));
        value.truncate(at.unwrap_or(0));
    }
    value
}

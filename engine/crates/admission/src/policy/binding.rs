//! A compiled policy binding, and the parameters it selects.

use serde_json::Value;

use super::fields::Fields;
use super::matching::Matching;
use super::mutating_policy;
use super::request::{GroupVersionKind, Request};
use super::resolver::{ParamKind, Resolver};
use crate::field::Path;
use crate::object_meta::{self, NameRule, Scope};
use crate::selector::Selector;
use crate::{FieldError, name};

/// A compiled `ValidatingAdmissionPolicyBinding` or `MutatingAdmissionPolicyBinding`.
#[derive(Debug)]
pub struct Binding {
    name: String,
    policy: String,
    pub(super) matching: Option<Matching>,
    params: Option<ParamRef>,
    /// `Deny`, `Warn`, `Audit`, in the order of the manifest; empty for a mutating policy.
    pub(super) actions: Vec<String>,
}

/// The kind of a policy's parameters; it is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params<'a> {
    pub(super) kind: &'a ParamKind,
    pub(super) namespaced: bool,
}

#[derive(Debug)]
struct ParamRef {
    name: String,
    namespace: String,
    selector: Option<Selector>,
    denies_absence: bool,
}

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

impl Binding {
    /// Compiles a `ValidatingAdmissionPolicyBinding`.
    ///
    /// # Errors
    /// The API server's errors, with paths that start at `metadata` or `spec`.
    pub fn compile(binding: &Value) -> Result<Self, Vec<FieldError>> {
        Self::read(binding, actions)
    }

    /// Compiles a `MutatingAdmissionPolicyBinding`, which has no actions and does not match
    /// deletions.
    ///
    /// # Errors
    /// The API server's errors, with paths that start at `metadata` or `spec`.
    pub fn compile_mutating(binding: &Value) -> Result<Self, Vec<FieldError>> {
        Self::read(binding, |spec, errors| {
            mutating_policy::check_operations(spec, "matchResources", errors);
            Vec::new()
        })
    }

    fn read(
        binding: &Value,
        actions: impl FnOnce(Fields<'_>, &mut Vec<FieldError>) -> Vec<String>,
    ) -> Result<Self, Vec<FieldError>> {
        let metadata = binding.get("metadata");
        let rule = NameRule::DnsSubdomain;
        let mut errors = object_meta::create(metadata, rule, Scope::Cluster);
        let name = metadata
            .and_then(|it| it.get("name"))
            .and_then(Value::as_str);
        let (root, null) = (Path::Root, Value::Null);
        let path = root.field("spec");
        let spec = Fields::new(binding.get("spec").unwrap_or(&null), &path);
        let policy = spec.text("policyName", &mut errors);
        if policy.is_empty() {
            errors.push(FieldError::required(path.field("policyName"), ""));
        } else {
            for detail in name::dns_subdomain(policy) {
                let path = path.field("policyName");
                errors.push(FieldError::invalid(path, policy.into(), detail));
            }
        }
        let params = spec.get("paramRef").map(|value| {
            let path = path.field("paramRef");
            ParamRef::compile(Fields::new(value, &path), &mut errors)
        });
        let matching = spec.get("matchResources").map(|value| {
            let path = path.field("matchResources");
            Matching::compile(Fields::new(value, &path), &mut errors)
        });
        let actions = actions(spec, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self {
            name: name.unwrap_or_default().to_owned(),
            policy: policy.to_owned(),
            matching,
            params,
            actions,
        })
    }

    /// The binding's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the policy that it binds.
    pub fn policy_name(&self) -> &str {
        &self.policy
    }

    /// The parameters to evaluate the policy with, once for each; null if the policy has none.
    ///
    /// # Errors
    /// Why the parameters could not be found.
    pub(super) fn params(
        &self,
        params: Option<Params<'_>>,
        request: &Request<'_>,
        resolver: &dyn Resolver,
    ) -> Result<Vec<Value>, String> {
        let (Some(Params { kind, namespaced }), Some(reference)) = (params, &self.params)
        else {
            return Ok(vec![Value::Null]);
        };
        let namespace = match (namespaced, reference.namespace.as_str()) {
            (true, "") if request.namespace.is_empty() => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches \
                            cluster-scoped resources"
                        .to_owned(),
                );
            }
            (true, "") => request.namespace,
            (true, namespace) => namespace,
            (false, "") => "",
            (false, _) => {
                return Err(
                    "paramRef.namespace must not be provided for a cluster-scoped \
                            `paramKind`"
                        .to_owned(),
                );
            }
        };
        let found: Vec<Value> = match &reference.selector {
            None => resolver
                .param(kind, namespace, &reference.name)
                .into_iter()
                .collect(),
            Some(selector) => {
                let mut all = resolver.params(kind, namespace);
                all.retain(|it| {
                    let labels = it.get("metadata").and_then(|it| it.get("labels"));
                    selector.matches(labels)
                });
                all
            }
        };
        if found.is_empty() && reference.denies_absence {
            return Err("no params found for policy binding with `Deny` \
                        parameterNotFoundAction"
                .to_owned());
        }
        in_version_of(kind, found, resolver)
    }
}

/// The parameters in the version of the parameter kind. An informer of Kubernetes lists them in
/// that version, and is never synced if they cannot be converted.
fn in_version_of(
    kind: &ParamKind,
    found: Vec<Value>,
    resolver: &dyn Resolver,
) -> Result<Vec<Value>, String> {
    let ParamKind { api_version, kind } = kind;
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let requested = GroupVersionKind {
        group,
        version,
        kind,
    };
    let convert = |object: Value| {
        if object.get("apiVersion").is_none_or(|it| it == api_version) {
            return Ok(object);
        }
        resolver.converted(&object, requested)
    };
    // All are converted before the first error, so that a webhook receives them in one call.
    let converted: Vec<Result<Value, String>> = found.into_iter().map(convert).collect();
    let converted: Result<Vec<Value>, String> = converted.into_iter().collect();
    converted.map_err(|_| {
        format!(
            "paramKind kind `&ParamKind{{APIVersion:{api_version},Kind:{kind},}}` not yet \
             synced to use for admission"
        )
    })
}

impl ParamRef {
    fn compile(fields: Fields<'_>, errors: &mut Vec<FieldError>) -> Self {
        let name = fields.text("name", errors);
        let selector = fields.get("selector");
        let path = fields.path;
        let both = "name and selector are mutually exclusive";
        for detail in name::path_segment(name) {
            errors.push(FieldError::invalid(path.field("name"), name.into(), detail));
        }
        if !name.is_empty() && selector.is_some() {
            errors.push(FieldError::forbidden(path.field("name"), both));
        }
        let compiled = selector.map(|value| {
            let path = path.field("selector").to_string();
            Selector::compile(Some(value), &path).unwrap_or_else(|wrong| {
                errors.extend(wrong);
                Selector::default()
            })
        });
        match (name, selector) {
            ("", None) => {
                let detail = "one of name or selector must be specified";
                errors.push(FieldError::required(*path, detail));
            }
            ("", Some(_)) | (_, None) => {}
            (_, Some(_)) => {
                errors.push(FieldError::forbidden(path.field("selector"), both));
            }
        }
        let action = fields.text("parameterNotFoundAction", errors);
        let at = path.field("parameterNotFoundAction");
        match action {
            "Allow" | "Deny" => {}
            "" => errors.push(FieldError::required(at, "")),
            other => {
                let known = ["Deny", "Allow"];
                let error = FieldError::not_supported(at, other.into(), known);
                errors.push(error.of_named_type());
            }
        }
        Self {
            name: name.to_owned(),
            namespace: fields.text("namespace", errors).to_owned(),
            selector: compiled,
            denies_absence: action == "Deny",
        }
    }
}

fn actions(spec: Fields<'_>, errors: &mut Vec<FieldError>) -> Vec<String> {
    let actions = spec.texts("validationActions", errors);
    let path = spec.path.field("validationActions");
    for (at, action) in actions.iter().enumerate() {
        let path = path.index(at);
        if !ACTIONS.contains(&action.as_str()) {
            let action = action.as_str().into();
            let error = FieldError::not_supported(path, action, ACTIONS);
            errors.push(error.of_named_type());
        }
        if actions.iter().take(at).any(|earlier| earlier == action) {
            let error = FieldError::duplicate(path, action.as_str().into());
            errors.push(error.of_named_type());
        }
    }
    let has = |wanted: &str| actions.iter().any(|action| action == wanted);
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation \
                      failure information in the API response and headers serves no purpose)";
        let actions = actions.clone().into();
        errors.push(FieldError::invalid(path, actions, detail));
    }
    if actions.is_empty() {
        let detail = "at least one validation action is required";
        errors.push(FieldError::required(path, detail));
    }
    actions
}

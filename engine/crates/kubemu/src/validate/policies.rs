//! The policies that objects are validated against: the built-in ones, and those of `--policy`.

use std::sync::Arc;

use kubemu_admission::policy::{Binding, MutatingPolicy, Policies, Policy};
use kubemu_terminal::Failure;

use super::engine::{Sources, invalid};
use super::extension::Extension;
use super::object_result::{ObjectResult, Subject, Verdict};
use crate::document::Document;

/// The kinds that configure webhooks.
const WEBHOOKS: [&str; 2] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
];

/// The policies, compiled. Of several of the same kind and name, the last one.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// Those that validate.
    pub(super) validating: Policies,
    /// Whether there are others, which change objects before they are validated.
    pub(super) is_mutating: bool,
    /// The built-in policies and bindings.
    pub(super) builtin: Vec<Document>,
    /// The given policies and bindings, without configurations of webhooks.
    pub(super) given: Vec<Document>,
    /// The results for configurations of webhooks, which are not called.
    pub(super) webhooks: Vec<ObjectResult>,
}

impl Compiled {
    /// Compiles the policies.
    ///
    /// # Errors
    /// A server would refuse one, or a document has another kind.
    pub(super) fn of(
        sources: &Sources,
        extension: &dyn Extension,
    ) -> Result<Self, Failure> {
        let version = sources.version;
        let builtin = extension.policies(version).into_iter();
        let builtin: Vec<_> = builtin
            .map(|object| Document {
                origin: "the built-in policy".to_owned(),
                object,
                location: None,
            })
            .collect();
        let mut all = Self::default();
        let (mut policies, mut bindings) = (Vec::new(), Vec::new());
        for document in builtin.iter().chain(&sources.policies) {
            let (what, object) = (&document.origin, &document.object);
            match document.text("/kind") {
                "ValidatingAdmissionPolicy" => {
                    let policy = match sources.precompiled.policy(object) {
                        Some(known) => known,
                        None => Policy::compile(object, version)
                            .map(Arc::new)
                            .map_err(|it| invalid(what, &it))?,
                    };
                    policies.retain(|it: &Arc<Policy>| it.name() != policy.name());
                    policies.push(policy);
                }
                "ValidatingAdmissionPolicyBinding" => {
                    let binding = Binding::compile(object);
                    let binding = binding.map_err(|it| invalid(what, &it))?;
                    bindings.retain(|it: &Binding| it.name() != binding.name());
                    bindings.push(binding);
                }
                "MutatingAdmissionPolicy" => {
                    MutatingPolicy::compile(object, version)
                        .map_err(|it| invalid(what, &it))?;
                    all.is_mutating = true;
                }
                "MutatingAdmissionPolicyBinding" => {
                    Binding::compile_mutating(object).map_err(|it| invalid(what, &it))?;
                }
                kind if WEBHOOKS.contains(&kind) => {
                    all.webhooks.push(not_called(document));
                }
                other => return Err(not_a_policy(document, other)),
            }
        }
        let given = sources.policies.iter();
        let given = given.filter(|it| !WEBHOOKS.contains(&it.text("/kind")));
        all.given = given.map(in_served_version).collect();
        all.validating = Policies::new(policies, bindings.into_iter().map(Arc::new));
        all.builtin = builtin;
        Ok(all)
    }
}

/// The embedded server serves this version, whose fields are those of the betas.
fn in_served_version(document: &Document) -> Document {
    let mut document = document.clone();
    document.object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
    document
}

fn not_called(document: &Document) -> ObjectResult {
    let names = document.object["webhooks"].as_array().into_iter().flatten();
    let names = names.filter_map(|it| it["name"].as_str());
    let names: Vec<&str> = names.collect();
    let why = format!(
        "its webhooks are not called ({}): what they would refuse or change is not known",
        names.join(", ")
    );
    ObjectResult::without_steps(Subject::of(document), Verdict::Skipped(why))
}

fn not_a_policy(document: &Document, kind: &str) -> Failure {
    let why = format!("kind is '{kind}', not that of a policy, a binding or webhooks");
    Failure::new(format!("reading {}", document.origin), why)
        .remedy("give objects with --file")
}

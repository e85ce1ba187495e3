//! The CRDs and policies that manifests are validated against.

use std::sync::Arc;

use kubemu_admission::crd::{Crd, CustomResource};
use kubemu_admission::object_meta::Scope;
use kubemu_admission::policy::{
    Denial, Evaluation, GroupVersionKind, Operation as Verb, Policies, Request, User,
};
use kubemu_admission::{FieldError, KubeVersion, field};
use kubemu_terminal::Failure;
use serde_json::Value;

use super::builtin::Builtin;
use super::definitions::Definitions;
use super::extension::{Extension, Lint};
use super::lookup::Lookup;
use super::object_result::{ObjectResult, Step, Subject, Verdict};
use super::options::request_options;
use super::policies::Compiled;
use super::precompiled::Precompiled;
use super::prepared::Prepared;
use super::refusal::Refusal;
use super::stored::Stored;
use super::write::{Write, set_in_metadata};
use super::{Args, Operation};
use crate::document::Document;

/// The inputs of the engine.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) definitions: Vec<Document>,
    pub(super) policies: Vec<Document>,
    pub(super) params: Vec<Document>,
    pub(super) namespaces: Vec<Document>,
    /// Objects that a server has before it has the policies.
    pub(super) stored: Vec<Document>,
    /// What need not be compiled again.
    pub(super) precompiled: Arc<Precompiled>,
    /// What need not be started again.
    pub(super) prepared: Arc<Prepared>,
    pub(super) user: User,
    pub(super) version: KubeVersion,
}

/// Compiled CRDs and policies.
pub(super) struct Engine<'e> {
    extension: &'e dyn Extension,
    definitions: Vec<Arc<Crd>>,
    policies: Policies,
    /// Whether policies change objects. The server applies them.
    is_mutating: bool,
    user: User,
    lookup: Lookup,
    builtin: Builtin,
    /// The given CRDs that a server would refuse, objects of other kinds among them, and webhooks.
    unusable: Vec<ObjectResult>,
    builtin_policies: Vec<Document>,
}

impl<'e> Engine<'e> {
    /// Compiles the CRDs and the policies. `objects` are those that will be validated.
    pub(super) fn new(
        sources: &Sources,
        objects: &[&Document],
        extension: &'e dyn Extension,
    ) -> Result<Self, Failure> {
        let policies = Compiled::of(sources, extension)?;
        let is_mutating = policies.is_mutating;
        let definitions = Definitions::of((sources, objects), extension, is_mutating)?;
        let mut of_server = policies.given;
        if is_mutating {
            of_server.splice(..0, policies.builtin.iter().cloned());
        }
        let mut unusable = definitions.unusable;
        unusable.extend(policies.webhooks);
        Ok(Self {
            extension,
            lookup: Lookup::of(sources, &definitions.compiled)?,
            definitions: definitions.compiled,
            policies: policies.validating,
            is_mutating,
            user: sources.user.clone(),
            builtin: Builtin::new(Sources {
                definitions: definitions.of_server,
                policies: of_server,
                ..sources.clone()
            }),
            unusable,
            builtin_policies: policies.builtin,
        })
    }

    /// The results for the given CRDs that are not used.
    pub(super) fn take_unusable(&mut self) -> Vec<ObjectResult> {
        std::mem::take(&mut self.unusable)
    }

    /// The lints about several documents together, each with the index of its document.
    pub(super) fn lints_of_all(
        &self,
        documents: &[Document],
        namespace: &str,
    ) -> Vec<(usize, Lint)> {
        self.extension.lints_of_all(documents, namespace)
    }

    /// The policies and bindings that need not be given.
    pub(super) fn builtin_policies(&self) -> &[Document] {
        &self.builtin_policies
    }

    /// The CRDs that objects are validated against.
    pub(super) fn definitions(&self) -> &[Arc<Crd>] {
        &self.definitions
    }

    /// The response that the server would send for one object.
    pub(super) fn validate(
        &self,
        mut document: Document,
        (old, args): (&Stored, &Args),
    ) -> Result<ObjectResult, Failure> {
        self.extension.to_current_group(&mut document.object);
        let mut subject = Subject::of(&document);
        let of_kind =
            |it: &&Arc<Crd>| (it.group(), it.kind()) == (&*subject.group, &*subject.kind);
        let Some(definition) = self.definitions.iter().find(of_kind) else {
            if self.builtin.serves(&subject) {
                return self.builtin.validate(subject, document.object, (old, args));
            }
            let verdict = self.undefined(&subject);
            return Ok(ObjectResult::without_steps(subject, verdict));
        };
        if definition.scope() == Scope::Namespaced && subject.namespace.is_empty() {
            subject.namespace.clone_from(&args.namespace);
            let namespace = args.namespace.as_str().into();
            set_in_metadata(&mut document.object, "namespace", namespace);
        }
        if definition.scope() == Scope::Cluster && !subject.namespace.is_empty() {
            // A server clears it, too.
            subject.namespace.clear();
            if let Some(Value::Object(metadata)) = document.object.get_mut("metadata") {
                metadata.remove("namespace");
            }
        }
        let Some(resource) = definition.served(&subject.version) else {
            let refusal = Refusal::not_served(&subject);
            return Ok(ObjectResult::without_steps(
                subject,
                Verdict::Refused(vec![refusal]),
            ));
        };
        if self.is_mutating && args.operation != Some(Operation::Delete) {
            let lints = self.extension.lints(&document.object);
            let of_server =
                self.builtin
                    .validate(subject, document.object, (old, args))?;
            return Ok(ObjectResult { lints, ..of_server });
        }
        let stored = old.state_of(&subject, resource, args.operation)?;
        let validation = Validation {
            engine: self,
            definition,
            resource,
            all_failures: args.all_failures,
        };
        let lints = self.extension.lints(&document.object);
        let write = Write::new(document.object, stored, args.operation);
        Ok(ObjectResult {
            lints,
            ..validation.validate(subject, write)
        })
    }

    /// The verdict for an object without a CRD.
    fn undefined(&self, subject: &Subject) -> Verdict {
        let api_version = subject.api_version();
        let required = [("Kind", &subject.kind), ("apiVersion", &api_version)];
        if let Some((field, _)) = required.iter().find(|(_, text)| text.is_empty()) {
            return Verdict::Refused(vec![Refusal::incomplete(subject, field)]);
        }
        // If a CRD of the same group is given, the kind is misspelt or its CRD is missing. A server
        // refuses it in either case.
        let mut groups = self.definitions.iter().map(|it| it.group());
        if groups.any(|group| group == subject.group) {
            return Verdict::Refused(vec![Refusal::not_served(subject)]);
        }
        Verdict::Skipped(format!(
            "no schema for {} of {api_version}, give its CRD with --crd",
            subject.kind
        ))
    }
}

/// The failure of a policy or a CRD that a server would reject.
pub(super) fn invalid(what: &str, errors: &[FieldError]) -> Failure {
    Failure::new(format!("compiling {what}"), field::aggregate(errors))
        .remedy("correct it; a server would reject it too")
}

/// The validation of one object against one CRD.
struct Validation<'a> {
    engine: &'a Engine<'a>,
    definition: &'a Crd,
    resource: &'a CustomResource,
    all_failures: bool,
}

/// The results of the steps so far, for one object.
#[derive(Default)]
struct Results {
    warnings: Vec<String>,
    refusals: Vec<Refusal>,
    steps: Vec<Step>,
}

impl Validation<'_> {
    fn validate(&self, subject: Subject, mut write: Write) -> ObjectResult {
        let mut results = Results::default();
        if write.operation != Operation::Delete {
            self.validate_schema(&subject, &mut write, &mut results);
        }
        if self.continues(&results.refusals) {
            self.evaluate_policies(&subject, &write, &mut results);
        }
        let verdict = if results.refusals.is_empty() {
            Verdict::Valid
        } else {
            Verdict::Refused(results.refusals)
        };
        ObjectResult {
            subject,
            warnings: results.warnings,
            verdict,
            steps: results.steps,
            lints: Vec::new(),
        }
    }

    fn validate_schema(
        &self,
        subject: &Subject,
        write: &mut Write,
        results: &mut Results,
    ) {
        let unknown = self.resource.decode(&mut write.object);
        results.steps.push(Step {
            layer: "decoding",
            policy: None,
            binding: None,
            cost: None,
            refused: unknown.len(),
        });
        if !unknown.is_empty() {
            let operation = write.operation;
            let refusal = Refusal::unknown_fields(subject, &unknown, operation);
            results.refusals.push(refusal);
        }
        write.complete(self.resource.has_status());
        if !self.continues(&results.refusals) {
            return;
        }
        let verdict = match &write.old {
            Some(old) => self.resource.update(&write.object, old),
            None => self.resource.create(&write.object),
        };
        results.warnings.extend(verdict.warnings);
        results.steps.push(Step {
            layer: "CRD",
            policy: None,
            binding: None,
            cost: Some(verdict.cost),
            refused: verdict.errors.len(),
        });
        if !verdict.errors.is_empty() {
            results
                .refusals
                .push(Refusal::invalid(subject, &verdict.errors));
        }
    }

    fn evaluate_policies(&self, subject: &Subject, write: &Write, results: &mut Results) {
        let request = self.request(subject, write);
        let decision = self.engine.policies.decide(&request, &self.engine.lookup);
        let is_of = |denial: &&Denial, evaluation: &Evaluation| {
            denial.policy == evaluation.policy
                && denial.binding.as_ref() == Some(&evaluation.binding)
        };
        results
            .steps
            .extend(decision.evaluations.iter().map(|evaluation| {
                Step {
                    layer: "policy",
                    policy: Some(evaluation.policy.clone()),
                    binding: Some(evaluation.binding.clone()),
                    cost: Some(evaluation.cost),
                    refused: decision
                        .denials
                        .iter()
                        .filter(|it| is_of(it, evaluation))
                        .count(),
                }
            }));
        results.warnings.extend(decision.warnings);
        let limit = if self.all_failures { usize::MAX } else { 1 };
        results
            .refusals
            .extend(decision.denials.iter().take(limit).map(|denial| {
                Refusal::denied(subject, self.definition, denial, write.operation)
            }));
    }

    /// Whether validation continues: a server stops at the first refusal.
    fn continues(&self, refusals: &[Refusal]) -> bool {
        refusals.is_empty() || self.all_failures
    }

    fn request<'r>(&'r self, subject: &'r Subject, write: &'r Write) -> Request<'r> {
        let operation = match write.operation {
            Operation::Create => Verb::Create,
            Operation::Update => Verb::Update,
            Operation::Delete => Verb::Delete,
        };
        let kind = GroupVersionKind {
            group: &subject.group,
            version: &subject.version,
            kind: &subject.kind,
        };
        let mut request = Request::new(operation, kind, self.definition.plural());
        request.namespace = &subject.namespace;
        request.name = &subject.name;
        request.object = Some(&write.object).filter(|it| !it.is_null());
        request.old_object = write.old.as_ref();
        request.options = Some(request_options(write.operation));
        request.user = &self.engine.user;
        request.namespace_object = self.engine.lookup.namespace(&subject.namespace);
        request
    }
}

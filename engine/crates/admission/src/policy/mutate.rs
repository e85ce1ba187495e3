//! Evaluates all mutating policies with all bindings, and mutates the object of one request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubemu_cel::Budget;
use serde_json::Value as Json;

use super::binding::{Binding, Params};
use super::decide::{Denial, inputs_of, not_served};
use super::evaluate::{BudgetExhausted, OUT_OF_BUDGET, run};
use super::matching::Matched;
use super::mutating_policy::{MutatingPolicy, Mutation, PatchType};
use super::patch;
use super::request::{GroupVersionKind, Request};
use super::resolver::Resolver;
use super::scope::{Inputs, Scope};
use crate::field::Cause;

/// Mutating policies and their bindings. A policy without a binding has no effect, and neither
/// has a binding without its policy.
#[derive(Debug, Default)]
pub struct MutatingPolicies {
    /// Sorted by the policies' names, with their bindings sorted by name.
    bound: Vec<(Arc<MutatingPolicy>, Vec<Arc<Binding>>)>,
}

/// Applies patches to objects; the implementation has the schemas of the kinds. The engine
/// evaluates expressions to patches only, so that schemas and the structured merge stay with the
/// server, which has them for server-side apply.
///
/// Each method returns the whole object after the patch, with defaults filled in.
pub trait Patcher: Resolver {
    /// The object, of `kind`, with all fields of `configuration` set.
    ///
    /// # Errors
    /// The API server's error.
    fn applied(
        &self,
        object: &Json,
        kind: GroupVersionKind<'_>,
        configuration: &Json,
    ) -> Result<Json, PatchError>;

    /// The object, of `kind`, after the `operations` of a JSON patch. If a `test` fails, the
    /// object is unchanged.
    ///
    /// # Errors
    /// The API server's error.
    fn patched(
        &self,
        object: &Json,
        kind: GroupVersionKind<'_>,
        operations: &Json,
    ) -> Result<Json, PatchError>;

    /// The object, of `kind`, in the version and kind of the request.
    ///
    /// # Errors
    /// Why it cannot be converted.
    fn converted_to_request_kind(
        &self,
        object: Json,
        kind: GroupVersionKind<'_>,
        of_request: GroupVersionKind<'_>,
    ) -> Result<Json, PatchError>;
}

/// Why a patch is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchError {
    /// An error of the policy; its failure policy applies.
    Policy(String),
    /// An error of the API server, which returns status 500 with this message.
    Server(String),
}

/// The state kept between the invocation and the reinvocation of policies for one request
/// (`reinvocationcontext.go`).
#[derive(Clone, Debug, Default)]
pub struct Reinvocation {
    is_second: bool,
    /// Policies that have been invoked and must be reinvoked if the object changes.
    invoked: BTreeSet<Key>,
    /// Policies to reinvoke.
    to_reinvoke: BTreeSet<Key>,
    /// The object after the policies.
    output: Option<Json>,
}

/// One policy with one binding and one parameter object.
type Key = (String, String, String);

impl Reinvocation {
    /// Starts the reinvocation, for an object that may have changed.
    pub fn begin_reinvocation(&mut self, object: Option<&Json>) {
        self.is_second = true;
        if self.output.as_ref() != object {
            self.changed();
        }
    }

    fn changed(&mut self) {
        self.to_reinvoke.append(&mut self.invoked);
    }

    fn skips(&self, key: &Key) -> bool {
        self.is_second && !self.to_reinvoke.contains(key)
    }
}

/// A policy that matches a request, with one of its bindings and one parameter object.
struct Invocation<'a> {
    policy: &'a MutatingPolicy,
    binding: &'a Binding,
    matched: Matched<'a>,
    params: Json,
}

impl Invocation<'_> {
    fn key(&self) -> Key {
        let text = |field: &str| {
            let metadata = self.params.get("metadata");
            let text = metadata.and_then(|it| it.get(field)?.as_str());
            text.unwrap_or_default()
        };
        let params = format!("{}/{}", text("namespace"), text("name"));
        let (policy, binding) = (self.policy.name(), self.binding.name());
        (policy.to_owned(), binding.to_owned(), params)
    }
}

impl MutatingPolicies {
    /// Combines policies and bindings. Cheap enough to be done at each change.
    pub fn new(
        policies: impl IntoIterator<Item = Arc<MutatingPolicy>>,
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
                let mut bindings = by_policy.remove(policy.name())?;
                bindings.sort_by(|one, other| one.name().cmp(other.name()));
                Some((policy, bindings))
            })
            .collect();
        bound.sort_by(|(one, _), (other, _)| one.name().cmp(other.name()));
        Self { bound }
    }

    /// Whether there are no policies to evaluate.
    pub fn is_empty(&self) -> bool {
        self.bound.is_empty()
    }

    /// The object of the request after the policies, in the order of their names; `None` if
    /// none of them applied a patch. The original object of the request determines which
    /// policies match.
    ///
    /// # Errors
    /// The denial: a policy could not be evaluated, or its patch could not be applied.
    pub fn mutate(
        &self,
        request: &Request<'_>,
        patcher: &dyn Patcher,
        reinvocation: &mut Reinvocation,
    ) -> Result<Option<Json>, Box<Denial>> {
        let mut mutation_run = MutationRun {
            request,
            patcher,
            denials: Vec::new(),
            changed: None,
        };
        if !request.is_exempt() {
            let mut invocations = Vec::new();
            for (policy, bindings) in &self.bound {
                mutation_run.collect(policy, bindings, &mut invocations);
            }
            for invocation in &invocations {
                mutation_run
                    .invoke(invocation, reinvocation)
                    .map_err(|why| Box::new(internal(&why)))?;
            }
        }
        mutation_run.finish(reinvocation)
    }
}

struct MutationRun<'a> {
    request: &'a Request<'a>,
    patcher: &'a dyn Patcher,
    /// The denial of each failure.
    denials: Vec<Denial>,
    /// The object, if a patch has been applied.
    changed: Option<Json>,
}

/// The failure of a policy.
struct Failure<'a> {
    policy: &'a MutatingPolicy,
    /// `None` if the policy itself is misconfigured.
    binding: Option<&'a Binding>,
    reason: &'static str,
    message: String,
}

impl<'a> MutationRun<'a> {
    /// Adds the invocations of a policy that matches the request.
    fn collect(
        &mut self,
        policy: &'a MutatingPolicy,
        bindings: &'a [Arc<Binding>],
        invocations: &mut Vec<Invocation<'a>>,
    ) {
        let Some(matched) = policy.policy.matching.matches(self.request) else {
            return;
        };
        let params = match &policy.policy.params {
            None => None,
            Some(kind) => {
                let Some(namespaced) = self.patcher.param_is_namespaced(kind) else {
                    self.misconfigured(policy, None, &not_served(kind));
                    return;
                };
                Some(Params { kind, namespaced })
            }
        };
        for binding in bindings {
            let matching = binding.matching.as_ref();
            if matching.is_some_and(|matching| matching.matches(self.request).is_none()) {
                continue;
            }
            match binding.params(params, self.request, self.patcher) {
                Ok(found) => {
                    let found = found.into_iter().map(|params| Invocation {
                        policy,
                        binding,
                        matched,
                        params,
                    });
                    invocations.extend(found);
                }
                Err(why) => self.misconfigured(policy, Some(binding), &why),
            }
        }
    }

    /// Evaluates one policy and mutates the object.
    ///
    /// # Errors
    /// Errors of the API server.
    fn invoke(
        &mut self,
        invocation: &Invocation<'a>,
        reinvocation: &mut Reinvocation,
    ) -> Result<(), String> {
        let Invocation {
            policy, binding, ..
        } = *invocation;
        match self.conditions_hold(invocation) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(why) => {
                self.failed(policy, binding, why);
                return Ok(());
            }
        }
        let key = invocation.key();
        if reinvocation.skips(&key) {
            return Ok(());
        }
        let before = self.object().cloned();
        for mutation in &policy.mutations {
            if self.object().is_none() {
                break;
            }
            match self.patch(invocation, mutation) {
                Ok(object) => self.changed = Some(object),
                Err(PatchError::Policy(why)) => self.failed(policy, binding, why),
                Err(PatchError::Server(why)) => return Err(why),
            }
        }
        if before.as_ref() != self.object() {
            reinvocation.changed();
        }
        if policy.reinvokes {
            reinvocation.invoked.insert(key);
        }
        Ok(())
    }

    fn object(&self) -> Option<&Json> {
        self.changed.as_ref().or(self.request.object)
    }

    fn conditions_hold(&self, invocation: &Invocation<'_>) -> Result<bool, String> {
        let policy = &invocation.policy.policy;
        if policy.conditions.is_empty() {
            return Ok(true);
        }
        let request = self.current();
        let inputs = inputs_of(&request, self.patcher, invocation.matched)?;
        let resolved_paths = policy.paths.new_cache();
        let scope = Scope::new(
            &inputs,
            &policy.variables,
            &invocation.params,
            &resolved_paths,
        );
        let budget = &mut Budget::new(Budget::MATCH_CONDITIONS);
        policy.applies(&scope.without_namespace(), budget)
    }

    /// The request with the current object.
    fn current(&self) -> Request<'_> {
        Request {
            object: self.object(),
            ..*self.request
        }
    }

    /// The object after one mutation.
    fn patch(
        &self,
        invocation: &Invocation<'_>,
        mutation: &Mutation,
    ) -> Result<Json, PatchError> {
        let request = self.current();
        let (_, kind) = invocation.matched;
        let inputs = inputs_of(&request, self.patcher, invocation.matched)
            .map_err(PatchError::Server)?;
        let patch = evaluate(invocation, mutation, &inputs);
        let patch = patch.map_err(PatchError::Policy)?;
        let object = match mutation.kind {
            PatchType::ApplyConfiguration => {
                self.patcher.applied(&inputs.object, kind, &patch)
            }
            PatchType::JsonPatch => self.patcher.patched(&inputs.object, kind, &patch),
        }?;
        if kind == self.request.kind {
            return Ok(object);
        }
        self.patcher
            .converted_to_request_kind(object, kind, self.request.kind)
    }

    /// Records a misconfigured policy, or one of its bindings.
    fn misconfigured(
        &mut self,
        policy: &MutatingPolicy,
        binding: Option<&Binding>,
        why: &str,
    ) {
        let what = if binding.is_some() {
            "binding"
        } else {
            "policy"
        };
        self.fail(Failure {
            policy,
            binding,
            reason: "Forbidden",
            message: format!("failed to configure {what}: {why}"),
        });
    }

    fn failed(&mut self, policy: &MutatingPolicy, binding: &Binding, message: String) {
        self.fail(Failure {
            policy,
            binding: Some(binding),
            reason: "Invalid",
            message,
        });
    }

    /// Records a failure, unless the policy ignores failures.
    fn fail(&mut self, failure: Failure<'_>) {
        if !failure.policy.policy.ignores_errors {
            self.denials.push(failure.denial());
        }
    }

    fn finish(
        self,
        reinvocation: &mut Reinvocation,
    ) -> Result<Option<Json>, Box<Denial>> {
        reinvocation.output = self.object().cloned();
        if self.changed.is_some() {
            reinvocation.changed();
        }
        let causes = self.denials.iter().flat_map(|it| it.causes.clone());
        let causes: Vec<Cause> = causes.collect();
        match self.denials.into_iter().next() {
            Some(first) => Err(Box::new(Denial { causes, ..first })),
            None => Ok(self.changed),
        }
    }
}

/// The denial for an error of the API server.
fn internal(why: &str) -> Denial {
    Denial {
        policy: String::new(),
        binding: None,
        validation: None,
        code: 500,
        reason: "InternalError".to_owned(),
        message: format!("Internal error occurred: {why}"),
        causes: vec![Cause {
            reason: None,
            message: why.to_owned(),
            field: None,
        }],
    }
}

impl Failure<'_> {
    fn denial(self) -> Denial {
        let (policy, why) = (self.policy.name(), self.message);
        let binding = self.binding.map(Binding::name);
        let message = match binding {
            Some(binding) => {
                format!(
                    "policy '{policy}' with binding '{binding}' denied request: {why}"
                )
            }
            None => format!("policy {policy:?} denied request: {why}"),
        };
        Denial {
            policy: policy.to_owned(),
            binding: binding.map(str::to_owned),
            validation: None,
            code: 403,
            reason: self.reason.to_owned(),
            message: message.clone(),
            causes: vec![Cause {
                reason: None,
                message,
                field: None,
            }],
        }
    }
}

/// The patch that a mutation's expression returns.
fn evaluate(
    invocation: &Invocation<'_>,
    mutation: &Mutation,
    inputs: &Inputs<'_>,
) -> Result<Json, String> {
    if let Err(why) = &mutation.compiled {
        return Err(why.clone());
    }
    let policy = &invocation.policy.policy;
    let resolved_paths = policy.paths.new_cache();
    let scope = Scope::new(
        inputs,
        &policy.variables,
        &invocation.params,
        &resolved_paths,
    );
    let mut budget = Budget::default();
    let value = run(&mutation.compiled, &mutation.source, &scope, &mut budget);
    let value = value.map_err(|BudgetExhausted| OUT_OF_BUDGET.to_owned())??;
    patch::of(&value, mutation.kind)
}

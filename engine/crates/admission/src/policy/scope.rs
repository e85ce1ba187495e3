//! The variables of one evaluation.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use kubemu_cel::{Activation, Binding, Budget, ResolvedPaths, RunError, Value};
use serde_json::Value as Json;

use super::authorize::AuthorizerValue;
use super::definition::Expression;
use super::matching::Matched;
use super::request::Request;

/// The variables of the expressions of one policy. Composed variables are evaluated lazily, at
/// their first use.
pub(super) struct Scope<'v> {
    pub(super) inputs: &'v Inputs<'v>,
    pub(super) variables: &'v [Expression],
    pub(super) params: &'v Json,
    /// The cached targets of the policy's paths.
    pub(super) resolved_paths: &'v ResolvedPaths<'v>,
    /// Whether `namespaceObject` is set; it is not for match conditions.
    pub(super) shows_namespace: bool,
    /// Whether the authorizer is set. Kubernetes declares it for messages and audit
    /// annotations, and for variables that they use, but does not set it.
    pub(super) has_authorizer: bool,
    pub(super) known: RefCell<HashMap<&'v str, Result<Value<'v>, RunError>>>,
    /// The cost of composed variables since it was last charged.
    pub(super) cost: Cell<u64>,
}

/// The inputs that all expressions of a request share.
pub(super) struct Inputs<'a> {
    pub(super) object: Cow<'a, Json>,
    pub(super) old_object: Cow<'a, Json>,
    pub(super) request: &'a Request<'a>,
    /// The version in which the request matched.
    pub(super) matched: Matched<'a>,
    /// The variable `request`, once it has been used.
    pub(super) request_variable: OnceCell<Json>,
    pub(super) namespace: &'a Json,
    /// The variable `authorizer`.
    pub(super) authorizer: Option<Arc<AuthorizerValue>>,
    /// The variable `authorizer.requestResource`.
    pub(super) request_resource: Option<Arc<AuthorizerValue>>,
}

impl Inputs<'_> {
    fn request(&self) -> &Json {
        let (resource, kind) = self.matched;
        self.request_variable
            .get_or_init(|| self.request.variable(resource, kind))
    }
}

pub(super) static NULL: Json = Json::Null;

impl<'v> Scope<'v> {
    pub(super) fn new(
        inputs: &'v Inputs<'v>,
        variables: &'v [Expression],
        params: &'v Json,
        resolved_paths: &'v ResolvedPaths<'v>,
    ) -> Self {
        Self {
            inputs,
            variables,
            params,
            resolved_paths,
            shows_namespace: true,
            has_authorizer: true,
            known: RefCell::default(),
            cost: Cell::new(0),
        }
    }

    pub(super) fn without_namespace(self) -> Self {
        Self {
            shows_namespace: false,
            ..self
        }
    }

    pub(super) fn without_authorizer(self) -> Self {
        Self {
            has_authorizer: false,
            ..self
        }
    }

    fn compute(&self, variable: &'v Expression) -> Result<Value<'v>, RunError> {
        let name = &variable.name;
        let program = variable.compiled.as_ref().map_err(|why| {
            let text = format!("composited variable \"{name}\" fails to compile: {why}");
            RunError::Evaluation(text.into())
        })?;
        // The cost is charged to the expression that uses the variable, after its run.
        let mut budget = Budget::new(u64::MAX);
        let result = program.run(self, &mut budget);
        self.cost
            .set(self.cost.get().saturating_add(budget.spent()));
        result.map_err(|error| {
            let text =
                format!("composited variable \"{name}\" fails to evaluate: {error}");
            RunError::Evaluation(text.into())
        })
    }
}

impl<'v> Activation<'v> for Scope<'v> {
    fn variable(&self, name: &str) -> Option<Result<Binding<'v>, RunError>> {
        Some(Ok(match name {
            "object" => Binding::Json(&self.inputs.object),
            "oldObject" => Binding::Json(&self.inputs.old_object),
            "request" => Binding::Json(self.inputs.request()),
            "namespaceObject" if self.shows_namespace => {
                Binding::Json(self.inputs.namespace)
            }
            "namespaceObject" => Binding::Json(&NULL),
            "params" => Binding::Json(self.params),
            "variables" => Binding::Lazy,
            "authorizer" | "authorizer.requestResource" if !self.has_authorizer => {
                return None;
            }
            "authorizer" => authorizer_binding(self.inputs.authorizer.as_ref()?),
            "authorizer.requestResource" => {
                authorizer_binding(self.inputs.request_resource.as_ref()?)
            }
            _ => return None,
        }))
    }

    fn field(
        &self,
        variable: &str,
        field: &str,
    ) -> Option<Result<Binding<'v>, RunError>> {
        if variable != "variables" {
            return None;
        }
        let known = self.known.borrow().get(field).cloned();
        let result = if let Some(known) = known {
            known
        } else {
            // The last variable with a name is used.
            let mut named = self.variables.iter().rev();
            let variable = named.find(|variable| variable.name == field)?;
            let result = self.compute(variable);
            let mut known = self.known.borrow_mut();
            known.insert(&variable.name, result.clone());
            result
        };
        Some(result.map(Binding::Value))
    }

    fn resolved_paths(&self) -> Option<&ResolvedPaths<'v>> {
        Some(self.resolved_paths)
    }
}

fn authorizer_binding<'v>(value: &Arc<AuthorizerValue>) -> Binding<'v> {
    Binding::Value(Value::Abstract(value.clone()))
}

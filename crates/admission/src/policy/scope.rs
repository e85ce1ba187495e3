//! The variables of one evaluation.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use fivespot_cel::{Activation, Binding, Budget, Places, RunError, Value};
use serde_json::Value as Json;

use super::authorize::Asking;
use super::definition::Expression;
use super::matching::Matched;
use super::request::Request;

/// What the expressions of one policy see. Composed variables are evaluated when they are
/// first asked for.
pub(super) struct Scope<'v> {
    pub(super) inputs: &'v Inputs<'v>,
    pub(super) variables: &'v [Expression],
    pub(super) params: &'v Json,
    /// Where the paths of the policy lead.
    pub(super) places: &'v Places<'v>,
    /// Whether `namespaceObject` may be seen; match conditions may not.
    pub(super) shows_namespace: bool,
    /// Whether the authorizer may be asked. Kubernetes declares it to messages and audit
    /// annotations, or to variables that they use, and then gives them none.
    pub(super) has_authorizer: bool,
    pub(super) known: RefCell<HashMap<&'v str, Result<Value<'v>, RunError>>>,
    /// What composed variables cost since they were last charged.
    pub(super) cost: Cell<u64>,
}

/// What does not change between the expressions of a request.
pub(super) struct Inputs<'a> {
    pub(super) object: Cow<'a, Json>,
    pub(super) old_object: Cow<'a, Json>,
    pub(super) request: &'a Request<'a>,
    /// The version in which it matched.
    pub(super) matched: Matched<'a>,
    /// The variable `request`, once somebody has asked for it.
    pub(super) request_variable: OnceCell<Json>,
    pub(super) namespace: &'a Json,
    /// The variable `authorizer`.
    pub(super) authorizer: Option<Arc<Asking>>,
    /// The variable `authorizer.requestResource`.
    pub(super) request_resource: Option<Arc<Asking>>,
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
        places: &'v Places<'v>,
    ) -> Self {
        Self {
            inputs,
            variables,
            params,
            places,
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
        // Its cost is charged to the expression that asked, when that has ended.
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
            "authorizer" => asking(self.inputs.authorizer.as_ref()?),
            "authorizer.requestResource" => {
                asking(self.inputs.request_resource.as_ref()?)
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
            // The last of a name counts.
            let mut named = self.variables.iter().rev();
            let variable = named.find(|variable| variable.name == field)?;
            let result = self.compute(variable);
            let mut known = self.known.borrow_mut();
            known.insert(&variable.name, result.clone());
            result
        };
        Some(result.map(Binding::Value))
    }

    fn places(&self) -> Option<&Places<'v>> {
        Some(self.places)
    }
}

fn asking<'v>(asking: &Arc<Asking>) -> Binding<'v> {
    Binding::Value(Value::Abstract(asking.clone()))
}

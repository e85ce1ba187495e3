//! Compiled expressions.

use std::sync::Arc;

use crate::check::Tree;
use crate::plan::{Node, Plan, plan};
use crate::run::{Declared, Run, Slot};
use crate::{
    Activation, Budget, CompileErrors, Env, Paths, RunError, Type, Value, check, parser,
};

/// A compiled expression: parsed, type-checked, ready to run any number of times.
#[derive(Debug)]
pub struct Program {
    source: String,
    /// The checked expression, for the cost estimate.
    tree: Tree,
    declared: Vec<Declared>,
    plan: Plan,
    /// The paths that the numbers in the plan refer to.
    paths: Option<Paths>,
}

/// A number of slots that nearly all expressions do not exceed.
const FEW: usize = 4;

impl Program {
    /// Compiles `source` against `env`.
    ///
    /// # Errors
    /// Every syntax error, or otherwise every type error, with position and Kubernetes' text.
    pub fn compile(source: &str, env: &Env) -> Result<Self, CompileErrors> {
        let parsed = parser::parse(source, env)?;
        let tree = check::check(source, parsed, env)?;
        let plan = plan((source, &tree), env.paths())
            .map_err(|error| CompileErrors::without_position(&error, tree.summary()))?;
        let declared = plan.variables.iter().map(|name| {
            let found = env.variables().iter().find(|known| known.name == *name);
            let ty = found.map_or(Type::Dyn, |known| known.ty.clone());
            Declared {
                name: Arc::clone(name),
                ty,
            }
        });
        let declared = declared.collect();
        Ok(Self {
            source: source.to_owned(),
            tree,
            declared,
            plan,
            paths: env.paths().cloned(),
        })
    }

    /// The expression's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The type of the result, so that a caller can require `bool` or `string`.
    pub fn output_type(&self) -> &Type {
        self.tree.output()
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Whether the expression refers to a variable, such as `oldSelf`.
    pub fn uses(&self, variable: &str) -> bool {
        self.declared
            .iter()
            .any(|declared| *declared.name == *variable)
    }

    /// Runs the expression.
    ///
    /// The cost is added to `budget`, also when the run fails.
    ///
    /// # Errors
    /// Evaluation errors, and costs above the budget's limits.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general over the lifetime of a run"
    )]
    pub fn run<'v>(
        &'v self,
        activation: &dyn Activation<'v>,
        budget: &mut Budget,
    ) -> Result<Value<'v>, RunError> {
        self.run_with_slots(activation, budget, |run, root| run.eval(root))
    }

    /// [`Program::run`], returning only whether the value is `true`.
    ///
    /// # Errors
    /// As [`Program::run`].
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general over the lifetime of a run"
    )]
    pub fn holds<'v>(
        &'v self,
        activation: &dyn Activation<'v>,
        budget: &mut Budget,
    ) -> Result<bool, RunError> {
        self.run_with_slots(activation, budget, |run, root| run.is_true(root))
    }

    fn run_with_slots<'v, T>(
        &'v self,
        activation: &dyn Activation<'v>,
        budget: &mut Budget,
        start: impl FnOnce(&mut Run<'_, 'v>, &'v Node) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let resolved_paths = self.paths.as_ref().and_then(|paths| {
            let resolved_paths = activation.resolved_paths();
            resolved_paths.filter(|resolved_paths| resolved_paths.are_of(paths))
        });
        budget.begin_call();
        let root = &self.plan.root;
        let run_in = |slots: &mut [Slot<'v>]| {
            let mut run = Run {
                declared: &self.declared,
                activation,
                resolved_paths,
                budget,
                slots,
                failed: None,
            };
            start(&mut run, root)
        };
        let result = match self.plan.slots {
            0 => run_in(&mut []),
            1 => run_in(&mut [Slot::UNSET]),
            2 => run_in(&mut [Slot::UNSET; 2]),
            slots if slots <= FEW => run_in(&mut [Slot::UNSET; FEW]),
            slots => {
                let mut many = Vec::new();
                many.resize_with(slots, || Slot::UNSET);
                run_in(&mut many)
            }
        };
        match (result, budget.end_call()) {
            (Err(error @ RunError::CallLimit), _) | (_, Err(error)) => Err(error),
            (result, Ok(())) => result,
        }
    }
}

//! Compiled expressions.

use std::sync::Arc;

use crate::check::Tree;
use crate::plan::{Plan, plan};
use crate::run::{Run, Slot};
use crate::{
    Activation, Budget, CompileErrors, Env, RunError, Type, Value, check, parser,
};

/// A compiled expression: parsed, checked, ready to run any number of times.
#[derive(Debug)]
pub struct Program {
    source: String,
    /// What the cost of a run is estimated from.
    tree: Tree,
    declared: Vec<Declared>,
    plan: Plan,
}

/// As many variables of folds as nearly all expressions have.
const FEW: usize = 4;

/// A variable that the expression reads, with its declared type.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: Arc<str>,
    pub(crate) ty: Type,
}

impl Program {
    /// Compiles `source` against `env`.
    ///
    /// # Errors
    /// Every syntax error, or else every type error, with position and Kubernetes' text.
    pub fn compile(source: &str, env: &Env) -> Result<Self, CompileErrors> {
        let parsed = parser::parse(source, env.dialect())?;
        let tree = check::check(source, parsed, env)?;
        let plan = plan(&tree)
            .map_err(|error| CompileErrors::unplaced(&error, tree.summary()))?;
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
        })
    }

    /// The expression's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The type of the result, so that a caller can demand `bool` or `string`.
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
    /// What the expression itself cannot answer, and costs above the budget's limits.
    pub fn run<'v>(
        &'v self,
        activation: &dyn Activation<'v>,
        budget: &mut Budget,
    ) -> Result<Value<'v>, RunError> {
        match self.plan.slots {
            0 => self.run_in(&mut [], activation, budget),
            1 => self.run_in(&mut [Slot::Unset], activation, budget),
            slots if slots <= FEW => {
                self.run_in(&mut [const { Slot::Unset }; FEW], activation, budget)
            }
            slots => {
                let mut many = Vec::new();
                many.resize_with(slots, || Slot::Unset);
                self.run_in(&mut many, activation, budget)
            }
        }
    }

    fn run_in<'v>(
        &'v self,
        slots: &mut [Slot<'v>],
        activation: &dyn Activation<'v>,
        budget: &mut Budget,
    ) -> Result<Value<'v>, RunError> {
        budget.begin_call();
        let mut run = Run {
            declared: &self.declared,
            activation,
            budget,
            slots,
            failed: None,
        };
        let result = run.eval(&self.plan.root);
        match (result, budget.end_call()) {
            (Err(error @ RunError::CallLimit), _) | (_, Err(error)) => Err(error),
            (result, Ok(())) => result,
        }
    }
}

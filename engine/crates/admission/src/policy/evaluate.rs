//! Evaluates one policy with one binding and one parameter object for one request.

use kubemu_cel::{Budget, Program, RunError, Value};
use serde_json::Value as Json;

use super::definition::{Expression, Policy};
use super::expression::Compiled;
use super::scope::{Inputs, NULL, Scope};
use crate::crd_rules::usable_message;

/// The result of one evaluation.
#[derive(Debug, Default)]
pub(super) struct EvaluationResult {
    pub(super) failed_validations: Vec<FailedValidation>,
    pub(super) annotations: Vec<(String, String)>,
    /// Errors of audit annotations, which deny the request whatever the binding's actions are.
    pub(super) failed_annotations: Vec<String>,
    /// The total cost of all expressions.
    pub(super) cost: u64,
}

/// One validation that denies the request.
#[derive(Debug)]
pub(super) struct FailedValidation {
    /// The index of the validation in the policy; 0 if none ran.
    pub(super) validation: usize,
    pub(super) message: String,
    /// Empty if the validation could not be evaluated.
    pub(super) reason: String,
}

/// Why a validation failed: it is false, or its error.
type FailureCause = Result<(), String>;

pub(super) const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no \
                             further validation rules will be run";

impl Policy {
    pub(super) fn evaluate<'v>(
        &'v self,
        inputs: &'v Inputs<'v>,
        params: &'v Json,
    ) -> EvaluationResult {
        let mut budgets = Budgets::default();
        let resolved_paths = self.paths.new_cache();
        let scope = || Scope::new(inputs, &self.variables, params, &resolved_paths);
        let mut found = self.run_all(scope, &mut budgets);
        found.cost = budgets.spent();
        found
    }

    /// Whether the match conditions hold.
    ///
    /// # Errors
    /// The evaluation error.
    pub(super) fn conditions_hold<'v>(
        &'v self,
        inputs: &'v Inputs<'v>,
    ) -> Result<bool, String> {
        let resolved_paths = self.paths.new_cache();
        let scope = Scope::new(inputs, &self.variables, &NULL, &resolved_paths);
        let budget = &mut Budget::new(Budget::MATCH_CONDITIONS);
        self.applies(&scope.without_namespace(), budget)
    }

    fn run_all<'v>(
        &'v self,
        scope: impl Fn() -> Scope<'v>,
        budgets: &mut Budgets,
    ) -> EvaluationResult {
        match self.applies(&scope().without_namespace(), &mut budgets.conditions) {
            Ok(true) => {}
            Ok(false) => return EvaluationResult::default(),
            Err(why) => return self.failed(why),
        }
        let budget = &mut budgets.validations;
        let failures = match self.run_validations(&scope(), budget) {
            Ok(failures) => failures,
            Err(why) => return self.failed(why),
        };
        let messages = self.run_messages(&scope().without_authorizer(), budget);
        let mut found = EvaluationResult {
            failed_validations: self.failed_validations(failures, messages),
            ..EvaluationResult::default()
        };
        let scope = scope().without_authorizer();
        if let Err(why) =
            self.run_annotations(&scope, &mut budgets.annotations, &mut found)
        {
            return self.failed(why);
        }
        found
    }

    /// The result if the whole evaluation fails.
    fn failed(&self, why: String) -> EvaluationResult {
        let mut found = EvaluationResult::default();
        found.failed_validations.extend(self.error(0, why));
        found
    }

    /// The result if one validation fails with an error.
    fn error(&self, validation: usize, message: String) -> Option<FailedValidation> {
        (!self.ignores_errors).then(|| FailedValidation {
            validation,
            message,
            reason: String::new(),
        })
    }

    /// Whether all match conditions are true; one that is false takes precedence over errors.
    /// All are evaluated in any case, and an exhausted budget takes precedence over all
    /// results.
    pub(super) fn applies<'v>(
        &'v self,
        scope: &Scope<'v>,
        budget: &mut Budget,
    ) -> Result<bool, String> {
        let mut errors: Vec<String> = Vec::new();
        let mut holds = true;
        for condition in &self.conditions {
            let result = run(&condition.compiled, &condition.source, scope, budget);
            match result.map_err(|BudgetExhausted| OUT_OF_BUDGET.to_owned()) {
                // With `failurePolicy: Ignore` the policy does not apply.
                Err(_) if self.ignores_errors => return Ok(false),
                Err(why) => return Err(why),
                Ok(Err(why)) if !errors.contains(&why) => errors.push(why),
                Ok(Ok(value)) => holds &= value.as_bool() != Some(false),
                Ok(Err(_)) => {}
            }
        }
        if !holds {
            return Ok(false);
        }
        match errors.as_slice() {
            [] => Ok(true),
            _ if self.ignores_errors => Ok(false),
            [only] => Err(only.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    /// The validations that are not true, or the evaluation error.
    fn run_validations<'v>(
        &'v self,
        scope: &Scope<'v>,
        budget: &mut Budget,
    ) -> Result<Vec<(usize, FailureCause)>, String> {
        let mut failures = Vec::new();
        for (at, validation) in self.validations.iter().enumerate() {
            let named = (&validation.compiled, &*validation.source);
            let holds = run_charged(named, scope, budget, |program, budget| {
                program.holds(scope, budget)
            });
            match holds.map_err(|BudgetExhausted| OUT_OF_BUDGET.to_owned())? {
                Ok(true) => {}
                Ok(false) => failures.push((at, Ok(()))),
                Err(why) => failures.push((at, Err(why))),
            }
        }
        Ok(failures)
    }

    /// Runs every message expression, also of validations that are true: their cost counts.
    fn run_messages<'v>(
        &'v self,
        scope: &Scope<'v>,
        budget: &mut Budget,
    ) -> Result<Vec<(usize, String)>, BudgetExhausted> {
        let mut messages = Vec::new();
        for (at, validation) in self.validations.iter().enumerate() {
            let Some(compiled) = &validation.message_expression else {
                continue;
            };
            let result = run(compiled, "", scope, budget)?;
            let text = result
                .ok()
                .and_then(|it| it.as_str().and_then(usable_message));
            messages.extend(text.map(|text| (at, text)));
        }
        Ok(messages)
    }

    fn failed_validations(
        &self,
        failures: Vec<(usize, FailureCause)>,
        messages: Result<Vec<(usize, String)>, BudgetExhausted>,
    ) -> Vec<FailedValidation> {
        let Ok(mut messages) = messages else {
            return self.out_of_budget(failures);
        };
        let failed = |(at, cause): (usize, FailureCause)| {
            if let Err(why) = cause {
                return self.error(at, why);
            }
            let own = messages.iter().position(|(of, _)| *of == at);
            let message = own.map(|own| messages.swap_remove(own).1);
            self.falsified(at, message)
        };
        failures.into_iter().filter_map(failed).collect()
    }

    /// If messages cannot be evaluated, all validations fail.
    fn out_of_budget(
        &self,
        failures: Vec<(usize, FailureCause)>,
    ) -> Vec<FailedValidation> {
        let mut failures = failures.into_iter().peekable();
        let error = |at: usize| {
            let why = match failures.next_if(|(of, _)| *of == at) {
                Some((_, Err(why))) => why,
                _ => format!("failed messageExpression: {OUT_OF_BUDGET}"),
            };
            self.error(at, why)
        };
        (0..self.validations.len()).filter_map(error).collect()
    }

    fn falsified(&self, at: usize, message: Option<String>) -> Option<FailedValidation> {
        let validation = self.validations.get(at)?;
        let message = message.unwrap_or_else(|| match validation.message.as_str() {
            "" => format!("failed expression: {}", validation.source.trim()),
            message => message.to_owned(),
        });
        Some(FailedValidation {
            validation: at,
            message,
            reason: validation.reason.clone(),
        })
    }

    fn run_annotations<'v>(
        &'v self,
        scope: &Scope<'v>,
        budget: &mut Budget,
        found: &mut EvaluationResult,
    ) -> Result<(), String> {
        for Expression {
            name,
            source,
            compiled,
        } in &self.annotations
        {
            let result = run(compiled, source, scope, budget);
            match result.map_err(|BudgetExhausted| OUT_OF_BUDGET.to_owned())? {
                Err(_) if self.ignores_errors => {}
                Err(why) => found.failed_annotations.push(why),
                Ok(value) => {
                    let text = value.as_str().map(str::trim).unwrap_or_default();
                    if !text.is_empty() {
                        found.annotations.push((name.clone(), text.to_owned()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The cost budgets of the parts of one evaluation.
struct Budgets {
    conditions: Budget,
    /// Messages use the remaining budget of the validations.
    validations: Budget,
    annotations: Budget,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            conditions: Budget::new(Budget::MATCH_CONDITIONS),
            validations: Budget::default(),
            annotations: Budget::default(),
        }
    }
}

impl Budgets {
    /// The cost spent, at most the budgets.
    fn spent(&self) -> u64 {
        let capped = |budget: &Budget, most: u64| budget.spent().min(most);
        capped(&self.conditions, Budget::MATCH_CONDITIONS)
            + capped(&self.validations, Budget::PER_OBJECT)
            + capped(&self.annotations, Budget::PER_OBJECT)
    }
}

/// The budget is exhausted: nothing further is evaluated.
#[derive(Debug)]
pub(super) struct BudgetExhausted;

/// Runs an expression: its value or its error, unless the budget is exhausted.
pub(super) fn run<'v>(
    compiled: &'v Compiled,
    source: &str,
    scope: &Scope<'v>,
    budget: &mut Budget,
) -> Result<Result<Value<'v>, String>, BudgetExhausted> {
    run_charged((compiled, source), scope, budget, |program, budget| {
        program.run(scope, budget)
    })
}

/// Runs an expression with `start` and charges its full cost.
#[inline]
fn run_charged<'v, T>(
    (compiled, source): (&'v Compiled, &str),
    scope: &Scope<'v>,
    budget: &mut Budget,
    start: impl FnOnce(&'v Program, &mut Budget) -> Result<T, RunError>,
) -> Result<Result<T, String>, BudgetExhausted> {
    let program = match compiled {
        Ok(program) => program,
        Err(why) => return Ok(Err(format!("compilation error: {why}"))),
    };
    let result = start(program, budget);
    // The cost of composed variables that were evaluated during the run.
    budget
        .take(scope.cost.take())
        .map_err(|_| BudgetExhausted)?;
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(RunError::OutOfBudget) => Err(BudgetExhausted),
        Err(error) => Ok(Err(format!(
            "expression '{source}' resulted in error: {error}"
        ))),
    }
}

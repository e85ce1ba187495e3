//! Kubernetes' table of tests of validation rules.

use kubemu_cel::{Budget, Dialect, Env, Program, RunError, Type, Variables};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::{Counts, schema};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    accepted: bool,
    error_contains: String,
    object: Json,
    old_object: Json,
    root: bool,
    rule: String,
    runtime_cost: u64,
    schema: Json,
}

/// Compares verdicts, error texts and costs.
pub(crate) fn run(text: &str) -> Result<[Counts; 3], serde_json::Error> {
    let mut counts: [Counts; 3] = Default::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let case: Case = serde_json::from_str(line)?;
        let name = format!("{}: {}", case.name, case.rule);
        let (error, cost) = match verdict(&case) {
            Ok(cost) => (None, Some(cost)),
            Err((error, cost)) => (Some(error), cost),
        };
        let [verdicts, errors, costs] = &mut counts;
        verdicts.record(
            &name,
            match &error {
                None if case.accepted => Ok(()),
                Some(_) if !case.accepted => Ok(()),
                None => Err("accepted".to_owned()),
                Some(error) => Err(error.clone()),
            },
        );
        if !case.error_contains.is_empty() {
            let found = error.unwrap_or_default();
            let right = found.contains(&case.error_contains);
            let wrong = || format!("{found:?} lacks {:?}", case.error_contains);
            errors.record(&name, if right { Ok(()) } else { Err(wrong()) });
        }
        if case.runtime_cost > 0 {
            let right = cost == Some(case.runtime_cost);
            let wrong = || format!("{cost:?} instead of {}", case.runtime_cost);
            costs.record(&name, if right { Ok(()) } else { Err(wrong()) });
        }
    }
    Ok(counts)
}

/// The cost of an accepted case, or the error and the cost of a rejected one.
fn verdict(case: &Case) -> Result<u64, (String, Option<u64>)> {
    let ty = schema::declared(&case.schema, case.root).unwrap_or(Type::Dyn);
    let ty = ty.with_names("selfType");
    let env = Env::new(Dialect::NEWEST)
        .variable("self", ty.clone())
        .variable("oldSelf", ty);
    let rule = Program::compile(&case.rule, &env)
        .map_err(|errors| (format!("compile error: {}", errors.message()), None))?;
    if !matches!(rule.output_type(), Type::Bool) {
        return Err(("cel expression must evaluate to a bool".to_owned(), None));
    }
    // A transition rule does not apply if there is no old value.
    if rule.uses("oldSelf") && case.old_object.is_null() {
        return Ok(0);
    }
    let mut variables = Variables::new().json("self", &case.object);
    if !case.old_object.is_null() {
        variables = variables.json("oldSelf", &case.old_object);
    }
    let mut budget = Budget::default();
    let outcome = rule.run(&variables, &mut budget);
    let cost = budget.last_call();
    match outcome {
        Ok(value) if value.as_bool() == Some(true) => Ok(cost),
        Ok(_) => Err(("failed rule".to_owned(), Some(cost))),
        Err(error @ RunError::Evaluation(_)) if error.is_no_such_overload() => Err((
            format!(
                "'{error}': call arguments did not match a supported operator, function or \
                 macro signature for rule: {}",
                case.rule
            ),
            Some(cost),
        )),
        Err(error) => Err((
            format!("{error} evaluating rule: {}", case.rule),
            Some(cost),
        )),
    }
}

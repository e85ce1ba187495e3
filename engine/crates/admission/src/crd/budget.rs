//! The estimated cost limits of the rules of a definition: per expression, and per schema.

use crate::FieldError;
use crate::crd_rules::RuleCost;
use crate::field::Path;

/// The maximum cost of all rules of a schema together.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// The minimum cost of a rule to be reported when the sum exceeds the limit.
const MIN_REPORTED_COST: u64 = SCHEMA_LIMIT / 100;
/// The maximum number of rules reported then.
const MAX_REPORTED: usize = 4;

/// The estimated costs of the expressions of a schema.
#[derive(Default)]
pub(super) struct RuleCosts {
    total: u64,
    /// The expensive ones, in order of appearance.
    expensive: Vec<(u64, FieldError)>,
}

impl RuleCosts {
    /// Adds the cost of an expression; `what` is its name in the error text. Returns the error
    /// if the expression alone exceeds the limit.
    pub(super) fn add(
        &mut self,
        what: &str,
        path: Path<'_>,
        cost: u64,
    ) -> Option<FieldError> {
        self.total = self.total.saturating_add(cost);
        if cost >= MIN_REPORTED_COST {
            let detail = "contributed to estimated rule cost total exceeding cost limit for \
                          entire OpenAPIv3 schema";
            self.expensive
                .push((cost, FieldError::forbidden(path, detail)));
        }
        (cost > RuleCost::LIMIT).then(|| {
            let what = format!("estimated {what} cost");
            FieldError::forbidden(path, exceeded(&what, cost, RuleCost::LIMIT))
        })
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.expensive.extend(other.expensive);
    }

    /// The errors if all expressions together exceed the limit, in the schema at `path`.
    pub(super) fn errors(mut self, path: &Path<'_>) -> Vec<FieldError> {
        if self.total <= SCHEMA_LIMIT {
            return Vec::new();
        }
        self.expensive
            .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.expensive.truncate(MAX_REPORTED);
        let errors = self.expensive.into_iter().map(|(_, error)| error);
        let mut errors: Vec<_> = errors.collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 \
                    schema";
        let detail = exceeded(what, self.total, SCHEMA_LIMIT);
        errors.push(FieldError::forbidden(*path, detail));
        errors
    }
}

/// Whether an error reports that a single expression exceeds the limit.
pub(super) fn is_of_one_expression(error: &FieldError) -> bool {
    let words = error.detail.strip_prefix("estimated ");
    let after = words.and_then(|it| it.split_once(" cost exceeds budget"));
    after.is_some_and(|(what, _)| !what.contains(' '))
}

#[expect(clippy::cast_precision_loss, reason = "at most six digits are printed")]
fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        // With one digit a small excess could be printed as 1.0.
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

//! What the rules of a definition may cost: each for itself, and all of a schema together.

use crate::FieldError;
use crate::crd_rules::RuleCost;
use crate::field::Path;

/// The most that all rules of a schema may cost together.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// Rules that cost less than this are not named when all cost too much.
const WORTH_NAMING: u64 = SCHEMA_LIMIT / 100;
/// Nor are more than this many.
const MOST_NAMED: usize = 4;

/// What the expressions of a schema were found to cost.
#[derive(Default)]
pub(super) struct Spent {
    total: u64,
    /// The dear ones, in order of appearance.
    dear: Vec<(u64, FieldError)>,
}

impl Spent {
    /// Counts an expression; `what` it is, as `estimated` costs are called in errors. Says
    /// if it costs too much for itself.
    pub(super) fn add(
        &mut self,
        what: &str,
        path: Path<'_>,
        cost: u64,
    ) -> Option<FieldError> {
        self.total = self.total.saturating_add(cost);
        if cost >= WORTH_NAMING {
            let detail = "contributed to estimated rule cost total exceeding cost limit for \
                          entire OpenAPIv3 schema";
            self.dear.push((cost, FieldError::forbidden(path, detail)));
        }
        (cost > RuleCost::LIMIT).then(|| {
            let what = format!("estimated {what} cost");
            FieldError::forbidden(path, exceeded(&what, cost, RuleCost::LIMIT))
        })
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.dear.extend(other.dear);
    }

    /// What is wrong with all of them together, in the schema at `path`.
    pub(super) fn errors(mut self, path: &Path<'_>) -> Vec<FieldError> {
        if self.total <= SCHEMA_LIMIT {
            return Vec::new();
        }
        self.dear.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.dear.truncate(MOST_NAMED);
        let mut errors: Vec<_> = self.dear.into_iter().map(|(_, error)| error).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 \
                    schema";
        let detail = exceeded(what, self.total, SCHEMA_LIMIT);
        errors.push(FieldError::forbidden(*path, detail));
        errors
    }
}

/// Whether an error says that one expression costs too much for itself.
pub(super) fn is_of_one_expression(error: &FieldError) -> bool {
    let words = error.detail.strip_prefix("estimated ");
    let after = words.and_then(|it| it.split_once(" cost exceeds budget"));
    after.is_some_and(|(what, _)| !what.contains(' '))
}

#[expect(clippy::cast_precision_loss, reason = "it is printed to six digits")]
fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        // With one digit it could read as no excess at all.
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

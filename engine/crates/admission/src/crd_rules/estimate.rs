//! The estimated cost of the rules of a schema in one validation.

use kubemu_cel::Program;

use super::bounds::{BoundedSize, unsigned};
use super::{Rule, Rules};
use crate::field::Path;
use crate::schema::node::{Additional, Node};

/// The maximum cost of one expression of a definition in one validation, in the units of the
/// API server's estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCost {
    /// The path of the expression:
    /// `openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    /// The cost of one run.
    pub once: u64,
    /// The maximum number of runs: 1, or the maximum number of entries of the enclosing lists
    /// and maps.
    pub times: u64,
}

impl RuleCost {
    /// The maximum total cost of an expression of a definition that can be registered.
    pub const LIMIT: u64 = 10_000_000;

    /// The cost of all runs.
    pub const fn total(&self) -> u64 {
        self.once.saturating_mul(self.times)
    }
}

/// A compiled expression or its compile error, if there is an expression.
type Attempt = Option<Result<Program, String>>;

fn compiled(attempt: &Attempt) -> Option<&Program> {
    attempt.as_ref()?.as_ref().ok()
}

/// The estimates of a rule and its message. An expression that does not compile costs 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    once: u64,
    times: u64,
    /// The message is computed only for the first failure.
    pub(crate) message: u64,
}

impl Estimate {
    /// The cost of all runs of the rule.
    pub(crate) const fn total(self) -> u64 {
        self.once.saturating_mul(self.times)
    }

    /// Estimates a compiled rule that runs this many times, or as often as fits into a request.
    pub(super) fn of(rule: &Rule, value: &BoundedSize, times: Option<u64>) -> Self {
        let most = |program: &Attempt| {
            compiled(program).map_or(0, |program| program.estimate(&value.bounds).max)
        };
        Self {
            once: most(&rule.program),
            times: times.unwrap_or_else(|| value.fits()),
            message: most(&rule.message),
        }
    }
}

/// The maximum number of children for each value of a node; `None` if only the size of a
/// request limits it.
pub(super) fn times_within(node: &Node) -> Option<u64> {
    match (node.kind.as_str(), &node.additional) {
        ("object", Additional::Unset) => Some(1),
        ("object", _) => node.checks.max_properties.map(unsigned),
        ("array", _) => node.checks.max_items.map(unsigned),
        _ => Some(1),
    }
}

impl Rules {
    /// Lists the cost of every expression, with paths that start at `path`.
    pub(crate) fn costs(&self, path: &Path<'_>, costs: &mut Vec<RuleCost>) {
        if let Some(each) = &self.additional {
            each.costs(&path.field("additionalProperties"), costs);
        }
        let properties = path.field("properties");
        for (name, property) in &self.properties {
            property.costs(&properties.key(name), costs);
        }
        if let Some(each) = &self.items {
            each.costs(&path.field("items"), costs);
        }
        let path = path.field("x-kubernetes-validations");
        for (at, rule) in self.own.iter().enumerate() {
            let path = path.index(at);
            let Estimate {
                once,
                times,
                message,
            } = rule.estimate;
            if compiled(&rule.program).is_some() {
                costs.push(RuleCost {
                    path: path.field("rule").to_string(),
                    once,
                    times,
                });
            }
            if compiled(&rule.message).is_some() {
                costs.push(RuleCost {
                    path: path.field("messageExpression").to_string(),
                    once: message,
                    times: 1,
                });
            }
        }
    }
}

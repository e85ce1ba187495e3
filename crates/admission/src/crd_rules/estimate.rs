//! What the rules of a schema may cost at most in one validation.

use fivespot_cel::Program;

use super::bounds::{Sized, unsigned};
use super::{Rule, Rules};
use crate::field::Path;
use crate::schema::node::{Additional, Node};

/// What one expression of a definition may cost at most in one validation, in the units in
/// which the API server estimates it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCost {
    /// Where it stands: `openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule`.
    pub path: String,
    /// The cost of one run.
    pub once: u64,
    /// How often it may run: once, or as often as the lists and maps around it have room.
    pub times: u64,
}

impl RuleCost {
    /// The most that an expression may cost in total, if its definition is to be registered.
    pub const LIMIT: u64 = 10_000_000;

    /// The cost of all runs.
    pub const fn total(&self) -> u64 {
        self.once.saturating_mul(self.times)
    }
}

/// An expression, if there is one, or why it does not compile.
type Attempt = Option<Result<Program, String>>;

fn compiled(attempt: &Attempt) -> Option<&Program> {
    attempt.as_ref()?.as_ref().ok()
}

/// The estimates of a rule and its message. What does not compile costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    once: u64,
    times: u64,
    /// The message is made for the first failure only.
    pub(crate) message: u64,
}

impl Estimate {
    /// The cost of all runs of the rule.
    pub(crate) const fn total(self) -> u64 {
        self.once.saturating_mul(self.times)
    }

    /// Estimates a compiled rule that runs so many times, or as often as a request has room.
    pub(super) fn of(rule: &Rule, value: &Sized, times: Option<u64>) -> Self {
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

/// How often what is in a node may be there for each time the node is; nothing if only the
/// size of a request bounds it.
pub(super) fn times_within(node: &Node) -> Option<u64> {
    match (node.kind.as_str(), &node.additional) {
        ("object", Additional::Unset) => Some(1),
        ("object", _) => node.checks.max_properties.map(unsigned),
        ("array", _) => node.checks.max_items.map(unsigned),
        _ => Some(1),
    }
}

impl Rules {
    /// Lists what every expression may cost, with paths that start at `path`.
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

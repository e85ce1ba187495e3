//! Walks a plan and charges the cost of each node.
//!
//! Most rules follow field names into JSON, compare with null, match a short text and combine
//! booleans. On a general path most instructions move values, so these have paths of their own,
//! which create no values on the way (`boolean`, `path`, `cached_path`, `Strategy`). Each
//! charges what the general path would, in the same order: an evaluation must be aborted at the
//! same step as in the API server. Why a tree: `internals/decisions/0003-own-cel-engine.md`.

mod attribute;
mod boolean;
mod cached_path;
mod fold;
mod optional;
mod order;
mod path;
mod structure;
mod text;

use std::sync::Arc;

use crate::coverage::{Kept, Seen};
use crate::library;
use crate::plan::{Call, Node, Strategy};
use crate::value::{Entries, Map};
use crate::{Activation, Budget, ResolvedPaths, RunError, Type, Value, cost};

pub(crate) use fold::Slot;
use optional::MaybeOptional;

pub(crate) type Outcome<'v> = Result<Value<'v>, RunError>;

/// A variable that the expression reads, with its declared type.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: Arc<str>,
    pub(crate) ty: Type,
}

/// One run of one program.
pub(crate) struct Run<'r, 'v> {
    pub(crate) declared: &'v [Declared],
    pub(crate) activation: &'r dyn Activation<'v>,
    /// The cached targets of the paths numbered in the plan.
    pub(crate) resolved_paths: Option<&'r ResolvedPaths<'v>>,
    pub(crate) budget: &'r mut Budget,
    /// The variables of comprehensions; each has its own slot.
    pub(crate) slots: &'r mut [Slot<'v>],
    /// The error of [`boolean::BoolResult::Failed`]; `None` at other times.
    pub(crate) failed: Option<RunError>,
}

impl<'v> Run<'_, 'v> {
    /// The value of a node. Its cost is charged also if it is an error.
    ///
    /// The functions it calls are not inlined, so that the dispatch itself is cheap.
    pub(crate) fn eval(&mut self, node: &'v Node) -> Outcome<'v> {
        match node {
            Node::Const(value) => Ok(value.borrowed()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Call(call) => self.call(call),
            Node::And(_)
            | Node::Or(_)
            | Node::Equal { .. }
            | Node::Member { .. }
            | Node::NotFalse { .. } => self.truth_as_value(node),
            Node::Alternative { sides, unwrap } => self.alternative(sides, *unwrap),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Struct(structure) => self.structure(structure),
            Node::Fold(fold) => self.fold(fold),
            Node::Bind(bind) => self.bind(bind),
            Node::Recorded(recorded) => self.recorded(recorded),
        }
    }

    /// Evaluates a node and records the result.
    #[inline(never)]
    fn recorded(&mut self, (node, seen): &'v (Node, Arc<Seen>)) -> Outcome<'v> {
        let value = self.eval(node);
        seen.add(match &value {
            Ok(Value::Bool(true)) => Kept::True,
            Ok(Value::Bool(false)) => Kept::False,
            Ok(_) => Kept::Other,
            Err(_) => Kept::Failed,
        });
        value
    }

    fn truth_as_value(&mut self, node: &'v Node) -> Outcome<'v> {
        let result = self.eval_bool(node);
        self.outcome(result).map(Value::Bool)
    }

    /// Evaluates a node; only an error that ends the run is returned as the outer error.
    fn attempt(&mut self, node: &'v Node) -> Result<Outcome<'v>, RunError> {
        recoverable(self.eval(node))
    }

    #[inline(never)]
    fn alternative(&mut self, sides: &'v [Node; 2], unwrap: bool) -> Outcome<'v> {
        let [first, second] = sides;
        match self.eval_optional(first)? {
            MaybeOptional::Present(value) if unwrap => value.or_conversion_error(),
            MaybeOptional::Present(value) => Ok(Value::some(value)),
            MaybeOptional::Absent => self.eval(second),
            // The read of a variable has already unwrapped it.
            MaybeOptional::Plain(value) => Ok(value),
        }
    }

    #[inline(never)]
    fn list(&mut self, items: &'v [(Node, bool)]) -> Outcome<'v> {
        let list = recoverable(self.items(items))?;
        self.budget.charge(cost::LIST)?;
        list.map(Value::list)
    }

    fn items(&mut self, items: &'v [(Node, bool)]) -> Result<Vec<Value<'v>>, RunError> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match self.eval(item)? {
                Value::Optional(value) if *optional => {
                    values.extend(value.map(|value| (*value).clone()));
                }
                value if *optional => {
                    return Err(RunError::text(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        value.to_text()
                    )));
                }
                value => values.push(value),
            }
        }
        Ok(values)
    }

    #[inline(never)]
    fn map(&mut self, entries: &'v [(Node, Node, bool)]) -> Outcome<'v> {
        let map = recoverable(self.entries(entries))?;
        self.budget.charge(cost::MAP)?;
        Ok(Value::Map(Map::Owned(map?.into())))
    }

    fn entries(
        &mut self,
        entries: &'v [(Node, Node, bool)],
    ) -> Result<Entries<'v>, RunError> {
        let mut created = Entries::default();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = match self.eval(value)? {
                Value::Optional(Some(value)) if *optional => (*value).clone(),
                Value::Optional(None) if *optional => continue,
                value if *optional => {
                    return Err(RunError::text(format!(
                        "cannot initialize optional entry '{}' from non-optional value {}",
                        key.to_text(),
                        value.to_text()
                    )));
                }
                value => value,
            };
            created.set(key, value)?;
        }
        Ok(created)
    }

    fn call(&mut self, call: &'v Call) -> Outcome<'v> {
        if let Some(slot) = call.accumulator {
            return self.accumulate(call, slot);
        }
        if call.strategy.is_test() {
            let result = self.predicate(call);
            return self.outcome(result).map(Value::Bool);
        }
        match (&call.strategy, &*call.args) {
            (Strategy::Pattern { .. }, [text, Node::Const(source)]) => {
                let args = [self.eval(text)?, source.borrowed()];
                self.finish(call, &args, Ok(()))
            }
            (_, []) => self.finish(call, &[], Ok(())),
            (Strategy::Some, [value]) => self.some(call, value).map(Value::some),
            (Strategy::HasValue, [optional]) => self.has_value(call, optional),
            (Strategy::Value, [optional]) => self.value(call, optional),
            (Strategy::Size { .. }, [of]) => self.size(call, of),
            (_, [one]) => {
                let (one, ready) = split_error(self.attempt(one)?);
                self.finish(call, &[one], ready)
            }
            (_, [left, right]) => self.of_two(call, [left, right]),
            _ => self.in_order(call),
        }
    }

    #[inline(never)]
    fn of_two(&mut self, call: &'v Call, [left, right]: [&'v Node; 2]) -> Outcome<'v> {
        let left = self.attempt(left)?;
        if call.in_order && left.is_err() {
            return left;
        }
        let (right, right_ready) = split_error(self.attempt(right)?);
        let (left, left_ready) = split_error(left);
        self.finish(call, &[left, right], left_ready.and(right_ready))
    }

    /// Evaluates arguments until one is an error. The call is charged only if all arguments
    /// have been evaluated; the last one may be an error.
    #[inline(never)]
    fn in_order(&mut self, call: &'v Call) -> Outcome<'v> {
        let Some((last, others)) = call.args.split_last() else {
            return self.finish(call, &[], Ok(()));
        };
        let mut args = Vec::with_capacity(call.args.len());
        for arg in others {
            args.push(self.eval(arg)?);
        }
        let (last, ready) = split_error(self.attempt(last)?);
        args.push(last);
        self.finish(call, &args, ready)
    }

    /// Calls the function, unless an argument was an error, and charges its cost.
    fn finish(
        &mut self,
        call: &'v Call,
        args: &[Value<'v>],
        ready: Result<(), RunError>,
    ) -> Outcome<'v> {
        if ready.is_err()
            && let Some(words) = call.formula.panic_message(args)
        {
            return Err(RunError::Internal(words));
        }
        let result = ready.and_then(|()| dispatch(call, args));
        if let Err(RunError::Internal(_)) = result {
            return result;
        }
        self.budget.charge(call.cost(args, result.as_ref().ok()))?;
        result
    }
}

fn dispatch<'v>(call: &'v Call, args: &[Value<'v>]) -> Outcome<'v> {
    if let Strategy::Pattern { run, pattern, .. } = &call.strategy {
        return run(pattern, args);
    }
    library::call(&call.overloads, args)
}

/// The outcome as a value if the run continues after it; an error that ends the run is returned
/// as the outer error.
fn recoverable<T>(outcome: Result<T, RunError>) -> Result<Result<T, RunError>, RunError> {
    match outcome {
        Err(error) if error.ends_run() => Err(error),
        outcome => Ok(outcome),
    }
}

/// The value, or for an error a value of the same cost, and the error.
fn split_error(outcome: Outcome<'_>) -> (Value<'_>, Result<(), RunError>) {
    match outcome {
        Ok(value) => (value, Ok(())),
        Err(error) => (Value::Null, Err(error)),
    }
}

/// The value, or for an error a value of the same cost.
fn known<'v>(outcome: &Outcome<'v>) -> Value<'v> {
    outcome.as_ref().map_or(Value::Null, Clone::clone)
}

//! Walks a plan and charges what each step costs.

mod attribute;
mod fold;

use crate::library::{self, no_such_overload};
use crate::plan::{Call, Node};
use crate::program::Declared;
use crate::value::{Entries, Map, same};
use crate::{Activation, Budget, RunError, Value, cost};

pub(crate) use fold::Slot;

pub(crate) type Outcome<'v> = Result<Value<'v>, RunError>;

/// One run of one program.
pub(crate) struct Run<'r, 'v> {
    pub(crate) declared: &'v [Declared],
    pub(crate) activation: &'r dyn Activation<'v>,
    pub(crate) budget: &'r mut Budget,
    /// The variables of folds; each has a slot of its own.
    pub(crate) slots: Vec<Slot<'v>>,
}

impl<'v> Run<'_, 'v> {
    /// The value of a node. Its cost is charged also where it is an error.
    pub(crate) fn eval(&mut self, node: &'v Node) -> Outcome<'v> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal { sides, negated } => self.equal(sides, *negated),
            Node::Member { wanted, set } => {
                let wanted = self.eval(wanted)?;
                Ok(Value::Bool(set.contains(&wanted)))
            }
            Node::Call(call) => self.call(call),
            Node::NotFalse { argument } => self.not_false(argument),
            Node::Alternative { sides, unwrap } => self.alternative(sides, *unwrap),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// `&&` and `||`: any term that decides does so whatever the others are.
    fn logical(&mut self, terms: &'v [Node], decisive: bool) -> Outcome<'v> {
        let mut failed = None;
        for term in terms {
            let error = match self.eval(term) {
                Ok(Value::Bool(value)) if value == decisive => {
                    return Ok(Value::Bool(decisive));
                }
                Ok(Value::Bool(_)) => continue,
                Ok(_) => RunError::NO_SUCH_OVERLOAD,
                Err(error) if error.ends_run() => return Err(error),
                Err(error) => error,
            };
            failed.get_or_insert(error);
        }
        failed.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    /// Evaluates without giving up on an error that only this value has.
    fn attempt(&mut self, node: &'v Node) -> Result<Outcome<'v>, RunError> {
        carried_on(self.eval(node))
    }

    fn equal(&mut self, sides: &'v [Node; 2], negated: bool) -> Outcome<'v> {
        let [left, right] = sides;
        let (left, right) = (self.attempt(left)?, self.attempt(right)?);
        let formula = cost::Formula::Compare;
        let args = [known(&left), known(&right)];
        self.budget.charge(formula.cost(&args, None))?;
        match same(&left?, &right?) {
            Some(equal) => Ok(Value::Bool(equal != negated)),
            // What cannot be compared is at any rate not equal.
            None if negated => Ok(Value::Bool(true)),
            None => no_such_overload(),
        }
    }

    fn not_false(&mut self, argument: &'v Node) -> Outcome<'v> {
        let value = self.attempt(argument)?;
        self.budget.charge(1)?;
        Ok(match value {
            Ok(Value::Bool(value)) => Value::Bool(value),
            _ => Value::Bool(true),
        })
    }

    fn alternative(&mut self, sides: &'v [Node; 2], unwrap: bool) -> Outcome<'v> {
        let [first, second] = sides;
        match self.eval(first)? {
            Value::Optional(Some(value)) if unwrap => value.found(),
            Value::Optional(None) => self.eval(second),
            // What reading a variable has unwrapped is there.
            there => Ok(there),
        }
    }

    fn list(&mut self, items: &'v [(Node, bool)]) -> Outcome<'v> {
        let list = carried_on(self.items(items))?;
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

    fn map(&mut self, entries: &'v [(Node, Node, bool)]) -> Outcome<'v> {
        let map = carried_on(self.entries(entries))?;
        self.budget.charge(cost::MAP)?;
        Ok(Value::Map(Map::Owned(map?.into())))
    }

    fn entries(
        &mut self,
        entries: &'v [(Node, Node, bool)],
    ) -> Result<Entries<'v>, RunError> {
        let mut made = Entries::default();
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
            if made.contains(&key) {
                let key = key.to_text();
                return Err(RunError::text(format!("Failed with repeated key {key}")));
            }
            made.insert(key, value)?;
        }
        Ok(made)
    }

    fn call(&mut self, call: &'v Call) -> Outcome<'v> {
        if let Some(slot) = call.accumulator {
            return self.accumulate(call, slot);
        }
        if call.in_order {
            return self.in_order(call);
        }
        match &*call.args {
            [] => self.finish(call, &[], Ok(())),
            [one] => {
                let one = self.attempt(one)?;
                let args = [known(&one)];
                self.finish(call, &args, one.map(drop))
            }
            [left, right] => {
                let (left, right) = (self.attempt(left)?, self.attempt(right)?);
                let args = [known(&left), known(&right)];
                self.finish(call, &args, left.and(right).map(drop))
            }
            _ => self.in_order(call),
        }
    }

    /// Evaluates arguments until one is an error. The call costs something only if all have
    /// been evaluated, the last of them to whatever end.
    fn in_order(&mut self, call: &'v Call) -> Outcome<'v> {
        let Some((last, others)) = call.args.split_last() else {
            return self.finish(call, &[], Ok(()));
        };
        let mut args = Vec::with_capacity(call.args.len());
        for arg in others {
            args.push(self.eval(arg)?);
        }
        let last = self.attempt(last)?;
        args.push(known(&last));
        self.finish(call, &args, last.map(drop))
    }

    /// Calls, unless an argument was an error, and charges.
    fn finish(
        &mut self,
        call: &'v Call,
        args: &[Value<'v>],
        ready: Result<(), RunError>,
    ) -> Outcome<'v> {
        if ready.is_err()
            && let Some(words) = call.formula.trips_over(args)
        {
            return Err(RunError::Internal(words));
        }
        let result = ready.and_then(|()| dispatch(call, args));
        let cost = call.formula.cost(args, result.as_ref().ok());
        self.budget.charge(cost)?;
        result
    }
}

fn dispatch<'v>(call: &'v Call, args: &[Value<'v>]) -> Outcome<'v> {
    if let Some((run, regex)) = &call.regex {
        return run(regex, args);
    }
    library::call(&call.overloads, args)
}

/// What goes on behind it, which an error that ends the run does not.
fn carried_on<T>(outcome: Result<T, RunError>) -> Result<Result<T, RunError>, RunError> {
    match outcome {
        Err(error) if error.ends_run() => Err(error),
        outcome => Ok(outcome),
    }
}

/// The value, or for an error one that costs as little.
fn known<'v>(outcome: &Outcome<'v>) -> Value<'v> {
    outcome.as_ref().map_or(Value::Null, Clone::clone)
}

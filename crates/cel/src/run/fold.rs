//! The evaluation of comprehensions.

use std::sync::Arc;

use super::maybe::Maybe;
use super::truth::Truth;
use super::{Outcome, Run, carried_on, known};
use crate::cost::SELECT;
use crate::library::{self, no_such_overload};
use crate::plan::{Bind, Call, FoldNode, Node};
use crate::value::{List, Map};
use crate::{RunError, Value};

/// A variable of a comprehension.
#[derive(Debug)]
pub(crate) enum Slot<'v> {
    /// Out of scope.
    Unset,
    /// To be computed at the first read.
    Pending(&'v Node),
    /// Computed, with the cost to charge at the first read, in steps of 1.
    Set(Outcome<'v>, u64),
}

impl Slot<'_> {
    pub(crate) const UNSET: Self = Self::Unset;
}

/// The intermediate result of `all` and `exists`.
struct SoFar<'v> {
    /// The predicate on each item.
    said: &'v Node,
    /// The result that ends the iteration.
    decisive: Truth,
    /// `Failed` only for an error that ends the run.
    truth: Truth,
    /// The first error, which is the result unless an item decides.
    error: Option<RunError>,
}

impl<'v> Run<'_, 'v> {
    /// The value of a comprehension's variable.
    pub(super) fn local(&mut self, slot: usize) -> Outcome<'v> {
        let Some(place) = self.slots.get_mut(slot) else {
            return Err(RunError::text("no such attribute"));
        };
        match place {
            Slot::Set(value, 0) => value.clone(),
            Slot::Set(value, due) => {
                let (value, due) = (value.clone(), std::mem::take(due));
                self.budget.charge_steps(due)?;
                value
            }
            Slot::Pending(node) => {
                let node = *node;
                let value = self.eval(node);
                self.set(slot, value.clone());
                value
            }
            Slot::Unset => Err(RunError::text("no such attribute")),
        }
    }

    /// Evaluates a binding.
    #[inline(never)]
    pub(super) fn bind(&mut self, bind: &'v Bind) -> Outcome<'v> {
        if let Some(place) = self.slots.get_mut(bind.slot) {
            *place = Slot::Pending(&bind.value);
        }
        self.eval(&bind.body)
    }

    /// `x.optMap(name, body)` and `x.optFlatMap(name, body)`. `x` is computed once and charged
    /// as often as the API server computes it.
    pub(super) fn opt_map(
        &mut self,
        parts: &'v [Node; 3],
    ) -> Result<Maybe<'v>, RunError> {
        let [Node::Call(test), present, absent] = parts else {
            return no_such_overload();
        };
        let (Some(bind), [target]) = (present.bound_optional(), &*test.args) else {
            return no_such_overload();
        };
        let before = self.budget.in_call();
        let value = match self.looked_into(test, target)? {
            Maybe::Present(value) => value.found(),
            Maybe::Absent => return self.inner(absent),
            Maybe::Plain(other) => {
                return library::call(&test.overloads, &[other]).map(Maybe::Plain);
            }
        };
        let cost = self.budget.in_call().saturating_sub(before);
        if let Some(place) = self.slots.get_mut(bind.slot) {
            *place = Slot::Set(value, cost);
        }
        match present {
            Node::Call(call) => self.some(call, &bind.body).map(Maybe::Present),
            _ => self.maybe(&bind.body),
        }
    }

    fn set(&mut self, slot: usize, value: Outcome<'v>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Slot::Set(value, 0);
        }
    }

    /// `range.all(x, …)` and `range.exists(x, …)`. They need no accumulator but are charged for
    /// reading one: twice for each item, and once at the end.
    #[inline(never)]
    pub(super) fn quantified(&mut self, fold: &'v FoldNode) -> Truth {
        let Some((said, decided_by)) = fold.said() else {
            return self.fail(RunError::NO_SUCH_OVERLOAD);
        };
        let range = match self.eval(&fold.range) {
            Ok(range) => range,
            Err(error) => return self.fail(error),
        };
        let mut so_far = SoFar {
            said,
            decisive: Truth::of(decided_by),
            truth: Truth::of(!decided_by),
            error: None,
        };
        let gone_through = self.each(fold, range, |run| run.item(&mut so_far));
        if let Err(error) = gone_through {
            return self.fail(error);
        }
        if so_far.truth == Truth::Failed || !self.pay_steps(SELECT) {
            return Truth::Failed;
        }
        match so_far.error {
            Some(error) => self.fail(error),
            None => so_far.truth,
        }
    }

    /// Assigns one item after the other to the variables, until `turn` returns `false`.
    fn each(
        &mut self,
        fold: &'v FoldNode,
        range: Value<'v>,
        mut turn: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), RunError> {
        match (range, fold.var2) {
            (Value::List(list), None) => {
                for item in list.iter() {
                    self.set(fold.var, item);
                    if !turn(self) {
                        break;
                    }
                }
            }
            (Value::List(list), Some(var2)) => {
                for (index, item) in list.iter().enumerate() {
                    let index = i64::try_from(index).unwrap_or(i64::MAX);
                    self.set(fold.var, Ok(Value::Int(index)));
                    self.set(var2, item);
                    if !turn(self) {
                        break;
                    }
                }
            }
            (Value::Map(map), var2) => {
                for key in map.keys() {
                    if let Some(var2) = var2 {
                        self.set(var2, map.get(&key).unwrap_or_else(no_such_overload));
                    }
                    self.set(fold.var, Ok(key));
                    if !turn(self) {
                        break;
                    }
                }
            }
            (other, var2) => return Err(cannot_be_folded(&other, var2.is_some())),
        }
        Ok(())
    }

    /// Evaluates the predicate on one more item; returns whether to continue.
    fn item(&mut self, so_far: &mut SoFar<'v>) -> bool {
        let is_decided = so_far.truth == so_far.decisive;
        // The cost of the condition; that of `exists` also has a `!`.
        let condition = SELECT + 1 + u64::from(so_far.decisive == Truth::Yes);
        let step = if is_decided { 0 } else { SELECT };
        if !self.pay_steps(condition + step) {
            so_far.truth = Truth::Failed;
            return false;
        }
        if is_decided {
            return false;
        }
        let truth = self.truth(so_far.said);
        if truth == so_far.decisive {
            so_far.truth = truth;
            so_far.error = None;
        } else if matches!(truth, Truth::Other | Truth::Failed) {
            if !self.goes_on(truth) {
                so_far.truth = Truth::Failed;
                return false;
            }
            let error = self.error();
            so_far.error.get_or_insert(error);
        }
        true
    }

    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'v FoldNode) -> Outcome<'v> {
        if fold.decided_by.is_some() {
            let truth = self.quantified(fold);
            return self.outcome(truth).map(Value::Bool);
        }
        let range = self.eval(&fold.range)?;
        if let Some(place) = self.slots.get_mut(fold.accu) {
            *place = Slot::Pending(&fold.init);
        }
        let mut ended = Ok(());
        self.each(fold, range, |run| {
            run.turn(fold).unwrap_or_else(|error| {
                ended = Err(error);
                false
            })
        })?;
        ended?;
        self.eval(&fold.result)
    }

    /// Evaluates one item; returns whether to continue.
    fn turn(&mut self, fold: &'v FoldNode) -> Result<bool, RunError> {
        match self.truth(&fold.condition) {
            Truth::Yes => {}
            Truth::No | Truth::Other => return Ok(false),
            Truth::Failed => drop(carried_on(self.outcome(Truth::Failed))?),
        }
        let step = self.attempt(&fold.step)?;
        self.set(fold.accu, step);
        Ok(true)
    }

    /// `accumulator + [x]` and the like: the result replaces the accumulator, so the
    /// accumulator is moved and extended in place, which keeps a comprehension's time linear.
    #[inline(never)]
    pub(super) fn accumulate(&mut self, call: &'v Call, slot: usize) -> Outcome<'v> {
        let accumulator = self.local(slot);
        self.set(slot, Ok(Value::Null));
        self.budget.charge(crate::cost::SELECT)?;
        let rest = call.args.get(1..).unwrap_or_default();
        let mut args = Vec::with_capacity(rest.len());
        let accumulator = match accumulator {
            Err(error) if call.in_order || error.ends_run() => return Err(error),
            accumulator => accumulator,
        };
        let mut failed = None;
        for (at, arg) in rest.iter().enumerate() {
            let value = self.attempt(arg)?;
            args.push(known(&value));
            match value {
                Err(error) if call.in_order && at + 1 < rest.len() => return Err(error),
                Err(error) => drop(failed.get_or_insert(error)),
                Ok(_) => {}
            }
        }
        self.budget.charge(call.formula.cost(&[], None))?;
        let accumulator = accumulator?;
        match failed {
            Some(error) => Err(error),
            None => added(call, accumulator, args),
        }
    }
}

/// The error of a comprehension with two variables or one over a value that is not a list or
/// map.
fn cannot_be_folded(range: &Value<'_>, two: bool) -> RunError {
    match (range.go_type(), two) {
        (None, _) => RunError::NO_SUCH_OVERLOAD,
        (Some(name), true) => {
            RunError::text(format!("unsupported comprehension range type: {name}"))
        }
        (Some(name), false) => {
            RunError::text(format!("got '{name}', expected iterable type"))
        }
    }
}

fn added<'v>(call: &'v Call, mut to: Value<'v>, args: Vec<Value<'v>>) -> Outcome<'v> {
    match (&mut to, &*args) {
        (Value::List(List::Owned(items)), [Value::List(more)]) => {
            crate::library::grown(items.len(), more.len())?;
            Arc::make_mut(items).extend(more.held());
            Ok(to)
        }
        (Value::Map(Map::Owned(entries)), [Value::Map(more)]) => {
            let entries = Arc::make_mut(entries);
            for (key, value) in more.entries()? {
                entries.insert(key, value)?;
            }
            Ok(to)
        }
        (Value::Map(Map::Owned(entries)), [key, value]) => {
            Arc::make_mut(entries).insert(key.clone(), value.clone())?;
            Ok(to)
        }
        _ => {
            let args: Vec<_> = std::iter::once(to).chain(args).collect();
            super::dispatch(call, &args)
        }
    }
}

//! The evaluation of comprehensions.

use std::sync::Arc;

use super::boolean::BoolResult;
use super::optional::MaybeOptional;
use super::{Outcome, Run, known, recoverable};
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
struct QuantifierState<'v> {
    /// The predicate on each item.
    predicate: &'v Node,
    /// The result that ends the iteration.
    decisive: BoolResult,
    /// `Failed` only for an error that ends the run.
    result: BoolResult,
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
    ) -> Result<MaybeOptional<'v>, RunError> {
        let [Node::Call(test), present, absent] = parts else {
            return no_such_overload();
        };
        let (Some(bind), [target]) = (present.bound_optional(), &*test.args) else {
            return no_such_overload();
        };
        let before = self.budget.in_call();
        let value = match self.optional_argument(test, target)? {
            MaybeOptional::Present(value) => value.or_conversion_error(),
            MaybeOptional::Absent => return self.inner(absent),
            MaybeOptional::Plain(other) => {
                return library::call(&test.overloads, &[other])
                    .map(MaybeOptional::Plain);
            }
        };
        let cost = self.budget.in_call().saturating_sub(before);
        if let Some(place) = self.slots.get_mut(bind.slot) {
            *place = Slot::Set(value, cost);
        }
        match present {
            Node::Call(call) => self.some(call, &bind.body).map(MaybeOptional::Present),
            _ => self.eval_optional(&bind.body),
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
    pub(super) fn quantified(&mut self, fold: &'v FoldNode) -> BoolResult {
        let Some((predicate, decided_by)) = fold.predicate() else {
            return self.fail(RunError::NO_SUCH_OVERLOAD);
        };
        let range = match self.eval(&fold.range) {
            Ok(range) => range,
            Err(error) => return self.fail(error),
        };
        let mut state = QuantifierState {
            predicate,
            decisive: BoolResult::of(decided_by),
            result: BoolResult::of(!decided_by),
            error: None,
        };
        let iterated = self.each(fold, range, |run| run.item(&mut state));
        if let Err(error) = iterated {
            return self.fail(error);
        }
        if state.result == BoolResult::Failed || !self.try_charge_steps(SELECT) {
            return BoolResult::Failed;
        }
        match state.error {
            Some(error) => self.fail(error),
            None => state.result,
        }
    }

    /// Assigns one item after the other to the variables, until `visit` returns `false`.
    fn each(
        &mut self,
        fold: &'v FoldNode,
        range: Value<'v>,
        mut visit: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), RunError> {
        match (range, fold.var2) {
            (Value::List(list), None) => {
                for item in list.iter() {
                    self.set(fold.var, item);
                    if !visit(self) {
                        break;
                    }
                }
            }
            (Value::List(list), Some(var2)) => {
                for (index, item) in list.iter().enumerate() {
                    let index = i64::try_from(index).unwrap_or(i64::MAX);
                    self.set(fold.var, Ok(Value::Int(index)));
                    self.set(var2, item);
                    if !visit(self) {
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
                    if !visit(self) {
                        break;
                    }
                }
            }
            (other, var2) => return Err(cannot_be_folded(&other, var2.is_some())),
        }
        Ok(())
    }

    /// Evaluates the predicate on one more item; returns whether to continue.
    fn item(&mut self, state: &mut QuantifierState<'v>) -> bool {
        let is_decided = state.result == state.decisive;
        // The cost of the condition; that of `exists` also has a `!`.
        let condition = SELECT + 1 + u64::from(state.decisive == BoolResult::True);
        let step = if is_decided { 0 } else { SELECT };
        if !self.try_charge_steps(condition + step) {
            state.result = BoolResult::Failed;
            return false;
        }
        if is_decided {
            return false;
        }
        let result = self.eval_bool(state.predicate);
        if result == state.decisive {
            state.result = result;
            state.error = None;
        } else if matches!(result, BoolResult::NotBool | BoolResult::Failed) {
            if !self.continues_after(result) {
                state.result = BoolResult::Failed;
                return false;
            }
            let error = self.error();
            state.error.get_or_insert(error);
        }
        true
    }

    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'v FoldNode) -> Outcome<'v> {
        if fold.decided_by.is_some() {
            let result = self.quantified(fold);
            return self.outcome(result).map(Value::Bool);
        }
        let range = self.eval(&fold.range)?;
        if let Some(place) = self.slots.get_mut(fold.accu) {
            *place = Slot::Pending(&fold.init);
        }
        let mut ended = Ok(());
        self.each(fold, range, |run| {
            run.fold_item(fold).unwrap_or_else(|error| {
                ended = Err(error);
                false
            })
        })?;
        ended?;
        self.eval(&fold.result)
    }

    /// Evaluates one item; returns whether to continue.
    fn fold_item(&mut self, fold: &'v FoldNode) -> Result<bool, RunError> {
        match self.eval_bool(&fold.condition) {
            BoolResult::True => {}
            BoolResult::False | BoolResult::NotBool => return Ok(false),
            BoolResult::Failed => drop(recoverable(self.outcome(BoolResult::Failed))?),
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
            crate::library::check_list_size(items.len(), more.len())?;
            Arc::make_mut(items).extend(more.readable_items());
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

//! Boolean results: most of a rule, and cheaper to return than a value.

use std::sync::Arc;

use serde_json::Value as Json;

use super::fold::Slot;
use super::optional::MaybeOptional;
use super::text::TextOrSize;
use super::{Outcome, Run};
use crate::coverage::{Kept, Seen};
use crate::library;
use crate::paths::ResolvedPath;
use crate::plan::{Bind, Call, Node, Root, Strategy};
use crate::value::{same, untyped};
use crate::{RunError, Value, cost};

/// A boolean result. An error is stored in the run meanwhile, so this is one byte; an
/// [`Outcome`] is four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoolResult {
    False,
    True,
    /// A value of another type.
    NotBool,
    /// An error: [`Run::failed`].
    Failed,
}

impl BoolResult {
    pub(super) const fn of(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }

    const fn negated(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::True => Self::False,
            other => other,
        }
    }
}

impl<'v> Run<'_, 'v> {
    /// [`Run::eval`], if only `true` and `false` matter.
    pub(super) fn eval_bool(&mut self, node: &'v Node) -> BoolResult {
        match node {
            Node::And(terms) => self.logical(terms, BoolResult::False),
            Node::Or(terms) => self.logical(terms, BoolResult::True),
            Node::Equal { sides, negated } => {
                let [left, right] = &**sides;
                match right {
                    Node::Const(Value::Null) => self.null(left, *negated),
                    right => self.equal([left, right], *negated),
                }
            }
            Node::Member { wanted, set } => self.member(wanted, set),
            Node::NotFalse { argument } => self.not_false(argument),
            Node::Call(call) if call.strategy.is_test() => self.predicate(call),
            Node::Const(Value::Bool(value)) => BoolResult::of(*value),
            Node::Alternative { sides, unwrap } => {
                self.alternative_bool(node, sides, *unwrap)
            }
            Node::Fold(fold) if fold.decided_by.is_some() => self.quantified(fold),
            Node::Recorded(recorded) => self.recorded_bool(recorded),
            node => self.bool_of_value(node),
        }
    }

    /// Evaluates a node and records the result.
    #[inline(never)]
    fn recorded_bool(&mut self, (node, seen): &'v (Node, Arc<Seen>)) -> BoolResult {
        let result = self.eval_bool(node);
        seen.add(match result {
            BoolResult::True => Kept::True,
            BoolResult::False => Kept::False,
            BoolResult::NotBool => Kept::Other,
            BoolResult::Failed => Kept::Failed,
        });
        result
    }

    /// Whether the value is `true`.
    ///
    /// # Errors
    /// The error of the evaluation.
    pub(crate) fn is_true(&mut self, node: &'v Node) -> Result<bool, RunError> {
        match self.eval_bool(node) {
            BoolResult::True => Ok(true),
            BoolResult::False | BoolResult::NotBool => Ok(false),
            BoolResult::Failed => Err(self.error()),
        }
    }

    /// [`Run::eval_bool`] of a node that must be evaluated to a value first.
    #[inline(never)]
    fn bool_of_value(&mut self, node: &'v Node) -> BoolResult {
        if let Some(slot) = node.local()
            && let Some(Slot::Set(Ok(Value::Bool(value)), 0)) = self.slots.get(slot)
        {
            let result = BoolResult::of(*value);
            return if self.try_charge(cost::SELECT) {
                result
            } else {
                BoolResult::Failed
            };
        }
        let value = self.eval(node);
        self.bool_of(value)
    }

    pub(super) fn bool_of(&mut self, value: Outcome<'v>) -> BoolResult {
        match value {
            Ok(Value::Bool(value)) => BoolResult::of(value),
            Ok(_) => BoolResult::NotBool,
            Err(error) => self.fail(error),
        }
    }

    fn bool_of_result(&mut self, value: Result<bool, RunError>) -> BoolResult {
        match value {
            Ok(value) => BoolResult::of(value),
            Err(error) => self.fail(error),
        }
    }

    /// The result as a boolean, or the error.
    pub(super) fn outcome(&mut self, result: BoolResult) -> Result<bool, RunError> {
        match result {
            BoolResult::True => Ok(true),
            BoolResult::False => Ok(false),
            BoolResult::NotBool | BoolResult::Failed => Err(self.error()),
        }
    }

    /// The error of a failed evaluation, or that of a value of another type.
    #[cold]
    pub(super) fn error(&mut self) -> RunError {
        self.failed.take().unwrap_or(RunError::NO_SUCH_OVERLOAD)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn fail(&mut self, error: RunError) -> BoolResult {
        self.failed = Some(error);
        BoolResult::Failed
    }

    /// Charges a cost; `false` if that ends the run.
    #[inline]
    fn try_charge(&mut self, cost: u64) -> bool {
        let is_paid = self.budget.charge(cost).is_ok();
        if !is_paid {
            self.fail(RunError::CallLimit);
        }
        is_paid
    }

    /// Charges steps of 1; `false` if one of them ends the run.
    pub(super) fn try_charge_steps(&mut self, steps: u64) -> bool {
        let is_paid = self.budget.charge_steps(steps).is_ok();
        if !is_paid {
            self.fail(RunError::CallLimit);
        }
        is_paid
    }

    /// Whether the run continues after this result.
    pub(super) fn continues_after(&self, result: BoolResult) -> bool {
        result != BoolResult::Failed
            || !self.failed.as_ref().is_some_and(RunError::ends_run)
    }

    /// `&&` and `||`: a term that decides does so whatever the other terms are.
    #[inline(never)]
    fn logical(&mut self, terms: &'v [Node], decisive: BoolResult) -> BoolResult {
        for (at, term) in terms.iter().enumerate() {
            let result = self.eval_bool(term);
            if result == decisive {
                return decisive;
            }
            if matches!(result, BoolResult::NotBool | BoolResult::Failed) {
                let others = terms.get(at + 1..).unwrap_or_default();
                return self.undecided(others, decisive);
            }
        }
        decisive.negated()
    }

    /// Evaluates the terms after one that is an error: the first error is the result unless a
    /// term decides.
    #[cold]
    #[inline(never)]
    fn undecided(&mut self, others: &'v [Node], decisive: BoolResult) -> BoolResult {
        let first = self.error();
        if first.ends_run() {
            return self.fail(first);
        }
        for term in others {
            let result = self.eval_bool(term);
            if !self.continues_after(result) {
                return result;
            }
            self.failed = None;
            if result == decisive {
                return decisive;
            }
        }
        self.fail(first)
    }

    /// `x.or(y)` and `x.orValue(y)`.
    #[inline(never)]
    fn alternative_bool(
        &mut self,
        node: &'v Node,
        sides: &'v [Node; 2],
        unwrap: bool,
    ) -> BoolResult {
        match sides {
            [Node::Attribute(first), second]
                if unwrap && first.qualifiers.is_empty() && !first.test =>
            {
                if let Root::OptMap(parts) = &first.root
                    && let Some(mapped) = Mapped::of(parts)
                {
                    return self.mapped_bool(&mapped, second);
                }
            }
            _ => {}
        }
        self.bool_of_value(node)
    }

    /// `x.optMap(name, body).orValue(other)` with a boolean body.
    fn mapped_bool(&mut self, mapped: &Mapped<'v>, second: &'v Node) -> BoolResult {
        let test = mapped.test.formula.flat();
        match self.cached_json_of(mapped.target) {
            Some((Some(json), steps)) if mapped.is_optional() => {
                let steps = steps + cost::SELECT + test;
                if self.try_charge_steps(steps) {
                    self.body_bool(mapped, Ok(untyped(json)), steps)
                } else {
                    BoolResult::Failed
                }
            }
            Some((None, steps)) => {
                if self.try_charge_steps(steps + cost::SELECT + test) {
                    self.absent_bool(mapped.absent, second)
                } else {
                    BoolResult::Failed
                }
            }
            _ => self.unresolved_bool(mapped, second),
        }
    }

    #[inline(never)]
    fn unresolved_bool(&mut self, mapped: &Mapped<'v>, second: &'v Node) -> BoolResult {
        let before = self.budget.in_call();
        let value = match self.optional_argument(mapped.test, mapped.target) {
            Ok(MaybeOptional::Present(value)) => value.or_conversion_error(),
            Ok(MaybeOptional::Absent) => return self.absent_bool(mapped.absent, second),
            Ok(MaybeOptional::Plain(other)) => {
                let value = library::call(&mapped.test.overloads, &[other]);
                return self.bool_of(value);
            }
            Err(error) => return self.fail(error),
        };
        let cost = self.budget.in_call().saturating_sub(before);
        self.body_bool(mapped, value, cost)
    }

    /// Evaluates the body with a value whose cost is charged when it is read.
    #[inline]
    fn body_bool(
        &mut self,
        mapped: &Mapped<'v>,
        value: Outcome<'v>,
        cost: u64,
    ) -> BoolResult {
        if let Some(place) = self.slots.get_mut(mapped.bind.slot) {
            *place = Slot::Set(value, cost);
        }
        let result = self.eval_bool(&mapped.bind.body);
        let cost_of_some = mapped.some.formula.flat();
        if self.continues_after(result) && !self.try_charge(cost_of_some) {
            return BoolResult::Failed;
        }
        result
    }

    /// The result if the optional value is absent.
    #[inline(never)]
    fn absent_bool(&mut self, absent: &'v Node, second: &'v Node) -> BoolResult {
        if let Node::Call(call) = absent
            && matches!(call.strategy, Strategy::None)
        {
            return if self.try_charge(call.formula.flat()) {
                self.eval_bool(second)
            } else {
                BoolResult::Failed
            };
        }
        let value = match self.inner(absent) {
            Ok(MaybeOptional::Absent) => return self.eval_bool(second),
            Ok(MaybeOptional::Present(value)) => value.read_back().or_conversion_error(),
            Ok(MaybeOptional::Plain(value)) => Ok(value),
            Err(error) => Err(error),
        };
        self.bool_of(value)
    }

    #[inline(never)]
    fn member(&mut self, wanted: &'v Node, set: &'v [Value<'static>]) -> BoolResult {
        let found = self.eval(wanted).map(|wanted| set.contains(&wanted));
        self.bool_of_result(found)
    }

    #[inline(never)]
    fn equal(&mut self, sides: [&'v Node; 2], negated: bool) -> BoolResult {
        let equal = self.compare(sides, negated);
        self.bool_of_result(equal)
    }

    fn compare(
        &mut self,
        [left, right]: [&'v Node; 2],
        negated: bool,
    ) -> Result<bool, RunError> {
        let (left, right) = (self.attempt(left)?, self.attempt(right)?);
        let answer = match (&left, &right) {
            (Ok(left), Ok(right)) => same(left, right),
            _ => Ok(false),
        };
        // An error that ends the run ends it before the comparison is charged.
        if let Err(error) = &answer
            && error.ends_run()
        {
            return Err((**error).clone());
        }
        let sides = [&left, &right].map(|side| side.as_ref().unwrap_or(&Value::Null));
        self.budget.charge(cost::comparison(sides))?;
        left.and(right)?;
        match answer {
            Ok(equal) => Ok(equal != negated),
            // Values that cannot be compared are not equal.
            Err(_) if negated => Ok(true),
            Err(error) => Err(*error),
        }
    }

    /// `x == null` and `x != null`
    fn null(&mut self, value: &'v Node, negated: bool) -> BoolResult {
        match self.resolved_path(value) {
            Some((ResolvedPath::Json(json), attribute)) if !attribute.optional => {
                self.null_json((json, attribute.steps()), negated)
            }
            _ => self.null_uncached(value, negated),
        }
    }

    #[inline(never)]
    fn null_uncached(&mut self, value: &'v Node, negated: bool) -> BoolResult {
        if let Some(json) = self.untyped(value) {
            return self.null_json((json, 0), negated);
        }
        let is_null = self.null_value(value, negated);
        self.bool_of_result(is_null)
    }

    /// Whether JSON without a declared type is null, after this number of steps from a
    /// variable.
    #[inline]
    fn null_json(&mut self, (json, steps): (&'v Json, u64), negated: bool) -> BoolResult {
        let size = u64::from(!is_empty(json));
        if self.try_charge_steps(steps + cost::SELECT + size) {
            BoolResult::of(json.is_null() != negated)
        } else {
            BoolResult::Failed
        }
    }

    fn null_value(&mut self, value: &'v Node, negated: bool) -> Result<bool, RunError> {
        let value = self.attempt(value)?;
        let sides = [value.as_ref().unwrap_or(&Value::Null), &Value::Null];
        self.budget.charge(cost::comparison(sides))?;
        Ok(value?.is_null() != negated)
    }

    #[inline(never)]
    fn not_false(&mut self, argument: &'v Node) -> BoolResult {
        let result = self.eval_bool(argument);
        if !self.continues_after(result) || !self.try_charge(1) {
            return BoolResult::Failed;
        }
        self.failed = None;
        BoolResult::of(result != BoolResult::False)
    }

    /// A call whose result is a boolean that is computed without an intermediate value.
    #[inline(never)]
    pub(super) fn predicate(&mut self, call: &'v Call) -> BoolResult {
        match (&call.strategy, &*call.args) {
            (Strategy::Not, [argument]) => {
                let result = self.eval_bool(argument);
                if self.continues_after(result) && !self.try_charge(1) {
                    return BoolResult::Failed;
                }
                match result {
                    BoolResult::NotBool => self.fail(RunError::NO_SUCH_OVERLOAD),
                    result => result.negated(),
                }
            }
            (Strategy::Matches { pattern, size }, [text, _]) => {
                let text = match self.text_or_size(text) {
                    Ok(text) => text,
                    Err(error) => return self.fail(error),
                };
                if !self.try_charge(cost::pattern(text.size(), *size)) {
                    return BoolResult::Failed;
                }
                let found = text.test(|text| pattern.is_match(text));
                self.bool_of_result(found)
            }
            (Strategy::Text { test, times }, [text, Node::Const(Value::String(arg))]) => {
                let text = match self.text_or_size(text) {
                    Err(error) if error.ends_run() => return self.fail(error),
                    text => text,
                };
                let size = text.as_ref().map_or(1, TextOrSize::size);
                if !self.try_charge(cost::tenths(size).saturating_mul(*times)) {
                    return BoolResult::Failed;
                }
                let found = text.and_then(|text| text.test(|text| test(text, arg)));
                self.bool_of_result(found)
            }
            (Strategy::Order { .. }, sides) => match sides.first_chunk() {
                Some(sides) => self.ordered(call, sides),
                None => self.fail(RunError::NO_SUCH_OVERLOAD),
            },
            _ => self.fail(RunError::NO_SUCH_OVERLOAD),
        }
    }
}

/// The parts of `x.optMap(name, body)` with a boolean body.
struct Mapped<'v> {
    /// `x.hasValue()`
    test: &'v Call,
    /// `x`
    target: &'v Node,
    /// `optional.of(body)`
    some: &'v Call,
    bind: &'v Bind,
    absent: &'v Node,
}

impl<'v> Mapped<'v> {
    /// Whether the target is statically optional, and not only at run time.
    fn is_optional(&self) -> bool {
        matches!(self.target, Node::Attribute(attribute) if attribute.optional)
    }

    fn of(parts: &'v [Node; 3]) -> Option<Self> {
        let [Node::Call(test), present @ Node::Call(some), absent] = parts else {
            return None;
        };
        let bind = present.bound_optional().filter(|it| it.body.is_test())?;
        Some(Self {
            test,
            target: test.args.first()?,
            some,
            bind,
            absent,
        })
    }
}

/// Whether JSON without a declared type has size 0 for costs.
fn is_empty(json: &Json) -> bool {
    match json {
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

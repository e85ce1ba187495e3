//! Boolean results: most of a rule, and cheaper to return than a value.

use serde_json::Value as Json;

use super::fold::Slot;
use super::maybe::Maybe;
use super::text::TextOrSize;
use super::{Outcome, Run};
use crate::library;
use crate::paths::ResolvedPath;
use crate::plan::{Bind, Call, Node, Root, Strategy};
use crate::value::{same, untyped};
use crate::{RunError, Value, cost};

/// A boolean result. An error is stored in the run meanwhile, so this is one byte; an
/// [`Outcome`] is four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TruthValue {
    False,
    True,
    /// A value of another type.
    NotBool,
    /// An error: [`Run::failed`].
    Failed,
}

impl TruthValue {
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
    pub(super) fn truth(&mut self, node: &'v Node) -> TruthValue {
        match node {
            Node::And(terms) => self.logical(terms, TruthValue::False),
            Node::Or(terms) => self.logical(terms, TruthValue::True),
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
            Node::Const(Value::Bool(value)) => TruthValue::of(*value),
            Node::Alternative { sides, unwrap } => {
                self.alternative_truth(node, sides, *unwrap)
            }
            Node::Fold(fold) if fold.decided_by.is_some() => self.quantified(fold),
            node => self.truth_of_value(node),
        }
    }

    /// Whether the value is `true`.
    ///
    /// # Errors
    /// The error of the evaluation.
    pub(crate) fn is_true(&mut self, node: &'v Node) -> Result<bool, RunError> {
        match self.truth(node) {
            TruthValue::True => Ok(true),
            TruthValue::False | TruthValue::NotBool => Ok(false),
            TruthValue::Failed => Err(self.error()),
        }
    }

    /// [`Run::truth`] of a node that must be evaluated to a value first.
    #[inline(never)]
    fn truth_of_value(&mut self, node: &'v Node) -> TruthValue {
        if let Some(slot) = node.local()
            && let Some(Slot::Set(Ok(Value::Bool(value)), 0)) = self.slots.get(slot)
        {
            let truth = TruthValue::of(*value);
            return if self.try_charge(cost::SELECT) {
                truth
            } else {
                TruthValue::Failed
            };
        }
        let value = self.eval(node);
        self.truth_of(value)
    }

    pub(super) fn truth_of(&mut self, value: Outcome<'v>) -> TruthValue {
        match value {
            Ok(Value::Bool(value)) => TruthValue::of(value),
            Ok(_) => TruthValue::NotBool,
            Err(error) => self.fail(error),
        }
    }

    fn truth_of_bool(&mut self, value: Result<bool, RunError>) -> TruthValue {
        match value {
            Ok(value) => TruthValue::of(value),
            Err(error) => self.fail(error),
        }
    }

    /// The result as a boolean, or the error.
    pub(super) fn outcome(&mut self, truth: TruthValue) -> Result<bool, RunError> {
        match truth {
            TruthValue::True => Ok(true),
            TruthValue::False => Ok(false),
            TruthValue::NotBool | TruthValue::Failed => Err(self.error()),
        }
    }

    /// The error of a failed evaluation, or that of a value of another type.
    #[cold]
    pub(super) fn error(&mut self) -> RunError {
        self.failed.take().unwrap_or(RunError::NO_SUCH_OVERLOAD)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn fail(&mut self, error: RunError) -> TruthValue {
        self.failed = Some(error);
        TruthValue::Failed
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
    pub(super) fn continues_after(&self, truth: TruthValue) -> bool {
        truth != TruthValue::Failed
            || !self.failed.as_ref().is_some_and(RunError::ends_run)
    }

    /// `&&` and `||`: a term that decides does so whatever the other terms are.
    #[inline(never)]
    fn logical(&mut self, terms: &'v [Node], decisive: TruthValue) -> TruthValue {
        for (at, term) in terms.iter().enumerate() {
            let truth = self.truth(term);
            if truth == decisive {
                return decisive;
            }
            if matches!(truth, TruthValue::NotBool | TruthValue::Failed) {
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
    fn undecided(&mut self, others: &'v [Node], decisive: TruthValue) -> TruthValue {
        let first = self.error();
        if first.ends_run() {
            return self.fail(first);
        }
        for term in others {
            let truth = self.truth(term);
            if !self.continues_after(truth) {
                return truth;
            }
            self.failed = None;
            if truth == decisive {
                return decisive;
            }
        }
        self.fail(first)
    }

    /// `x.or(y)` and `x.orValue(y)`.
    #[inline(never)]
    fn alternative_truth(
        &mut self,
        node: &'v Node,
        sides: &'v [Node; 2],
        unwrap: bool,
    ) -> TruthValue {
        match sides {
            [Node::Attribute(first), second]
                if unwrap && first.qualifiers.is_empty() && !first.test =>
            {
                if let Root::OptMap(parts) = &first.root
                    && let Some(mapped) = Mapped::of(parts)
                {
                    return self.mapped_truth(&mapped, second);
                }
            }
            _ => {}
        }
        self.truth_of_value(node)
    }

    /// `x.optMap(name, body).orValue(other)` with a boolean body.
    fn mapped_truth(&mut self, mapped: &Mapped<'v>, second: &'v Node) -> TruthValue {
        let test = mapped.test.formula.flat();
        match self.cached_json_of(mapped.target) {
            Some((Some(json), steps)) if mapped.is_optional() => {
                let steps = steps + cost::SELECT + test;
                if self.try_charge_steps(steps) {
                    self.body_truth(mapped, Ok(untyped(json)), steps)
                } else {
                    TruthValue::Failed
                }
            }
            Some((None, steps)) => {
                if self.try_charge_steps(steps + cost::SELECT + test) {
                    self.absent_truth(mapped.absent, second)
                } else {
                    TruthValue::Failed
                }
            }
            _ => self.unresolved_truth(mapped, second),
        }
    }

    #[inline(never)]
    fn unresolved_truth(&mut self, mapped: &Mapped<'v>, second: &'v Node) -> TruthValue {
        let before = self.budget.in_call();
        let value = match self.optional_argument(mapped.test, mapped.target) {
            Ok(Maybe::Present(value)) => value.or_conversion_error(),
            Ok(Maybe::Absent) => return self.absent_truth(mapped.absent, second),
            Ok(Maybe::Plain(other)) => {
                let value = library::call(&mapped.test.overloads, &[other]);
                return self.truth_of(value);
            }
            Err(error) => return self.fail(error),
        };
        let cost = self.budget.in_call().saturating_sub(before);
        self.body_truth(mapped, value, cost)
    }

    /// Evaluates the body with a value whose cost is charged when it is read.
    #[inline]
    fn body_truth(
        &mut self,
        mapped: &Mapped<'v>,
        value: Outcome<'v>,
        cost: u64,
    ) -> TruthValue {
        if let Some(place) = self.slots.get_mut(mapped.bind.slot) {
            *place = Slot::Set(value, cost);
        }
        let truth = self.truth(&mapped.bind.body);
        let cost_of_some = mapped.some.formula.flat();
        if self.continues_after(truth) && !self.try_charge(cost_of_some) {
            return TruthValue::Failed;
        }
        truth
    }

    /// The result if the optional value is absent.
    #[inline(never)]
    fn absent_truth(&mut self, absent: &'v Node, second: &'v Node) -> TruthValue {
        if let Node::Call(call) = absent
            && matches!(call.strategy, Strategy::None)
        {
            return if self.try_charge(call.formula.flat()) {
                self.truth(second)
            } else {
                TruthValue::Failed
            };
        }
        let value = match self.inner(absent) {
            Ok(Maybe::Absent) => return self.truth(second),
            Ok(Maybe::Present(value)) => value.read_back().or_conversion_error(),
            Ok(Maybe::Plain(value)) => Ok(value),
            Err(error) => Err(error),
        };
        self.truth_of(value)
    }

    #[inline(never)]
    fn member(&mut self, wanted: &'v Node, set: &'v [Value<'static>]) -> TruthValue {
        let found = self.eval(wanted).map(|wanted| set.contains(&wanted));
        self.truth_of_bool(found)
    }

    #[inline(never)]
    fn equal(&mut self, sides: [&'v Node; 2], negated: bool) -> TruthValue {
        let equal = self.compare(sides, negated);
        self.truth_of_bool(equal)
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
    fn null(&mut self, value: &'v Node, negated: bool) -> TruthValue {
        match self.resolved_path(value) {
            Some((ResolvedPath::Json(json), attribute)) if !attribute.optional => {
                self.null_json((json, attribute.steps()), negated)
            }
            _ => self.null_uncached(value, negated),
        }
    }

    #[inline(never)]
    fn null_uncached(&mut self, value: &'v Node, negated: bool) -> TruthValue {
        if let Some(json) = self.untyped(value) {
            return self.null_json((json, 0), negated);
        }
        let is_null = self.null_value(value, negated);
        self.truth_of_bool(is_null)
    }

    /// Whether JSON without a declared type is null, after this number of steps from a
    /// variable.
    #[inline]
    fn null_json(&mut self, (json, steps): (&'v Json, u64), negated: bool) -> TruthValue {
        let size = u64::from(!is_empty(json));
        if self.try_charge_steps(steps + cost::SELECT + size) {
            TruthValue::of(json.is_null() != negated)
        } else {
            TruthValue::Failed
        }
    }

    fn null_value(&mut self, value: &'v Node, negated: bool) -> Result<bool, RunError> {
        let value = self.attempt(value)?;
        let sides = [value.as_ref().unwrap_or(&Value::Null), &Value::Null];
        self.budget.charge(cost::comparison(sides))?;
        Ok(value?.is_null() != negated)
    }

    #[inline(never)]
    fn not_false(&mut self, argument: &'v Node) -> TruthValue {
        let truth = self.truth(argument);
        if !self.continues_after(truth) || !self.try_charge(1) {
            return TruthValue::Failed;
        }
        self.failed = None;
        TruthValue::of(truth != TruthValue::False)
    }

    /// A call whose result is a boolean that is computed without an intermediate value.
    #[inline(never)]
    pub(super) fn predicate(&mut self, call: &'v Call) -> TruthValue {
        match (&call.strategy, &*call.args) {
            (Strategy::Not, [argument]) => {
                let truth = self.truth(argument);
                if self.continues_after(truth) && !self.try_charge(1) {
                    return TruthValue::Failed;
                }
                match truth {
                    TruthValue::NotBool => self.fail(RunError::NO_SUCH_OVERLOAD),
                    truth => truth.negated(),
                }
            }
            (Strategy::Matches { pattern, size }, [text, _]) => {
                let text = match self.text_or_size(text) {
                    Ok(text) => text,
                    Err(error) => return self.fail(error),
                };
                if !self.try_charge(cost::pattern(text.size(), *size)) {
                    return TruthValue::Failed;
                }
                let found = text.test(|text| pattern.is_match(text));
                self.truth_of_bool(found)
            }
            (Strategy::Text { test, times }, [text, Node::Const(Value::String(arg))]) => {
                let text = match self.text_or_size(text) {
                    Err(error) if error.ends_run() => return self.fail(error),
                    text => text,
                };
                let size = text.as_ref().map_or(1, TextOrSize::size);
                if !self.try_charge(cost::tenths(size).saturating_mul(*times)) {
                    return TruthValue::Failed;
                }
                let found = text.and_then(|text| text.test(|text| test(text, arg)));
                self.truth_of_bool(found)
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

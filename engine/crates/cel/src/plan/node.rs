//! The nodes of a plan.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::Value;
use crate::ast::{Expr, Kind};
use crate::cost::{self, Formula};
use crate::coverage::Seen;
use crate::library::Overloads;
use crate::library::regex::RunCompiled;
use crate::name::Name;
use crate::paths::PathNumber;
use kubemu_gostd::regexp::Pattern;

/// One node of a plan.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Value<'static>),
    Attribute(Attribute),
    And(Vec<Node>),
    Or(Vec<Node>),
    Equal {
        sides: Box<[Node; 2]>,
        negated: bool,
    },
    /// `x in [constants]`
    Member {
        wanted: Box<Node>,
        set: Vec<Value<'static>>,
    },
    Call(Call),
    /// Continues while the argument is true or an error.
    NotFalse {
        argument: Box<Node>,
    },
    /// `a.or(b)` and `a.orValue(b)`: the second operand is evaluated only if needed.
    Alternative {
        sides: Box<[Node; 2]>,
        unwrap: bool,
    },
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Struct(Box<StructNode>),
    Fold(Box<FoldNode>),
    Bind(Box<Bind>),
    /// A node whose results are recorded.
    Recorded(Box<(Node, Arc<Seen>)>),
}

/// `Name{field: value}`
#[derive(Debug)]
pub(crate) struct StructNode {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<FieldNode>,
}

/// One field of `Name{field: value}`.
#[derive(Debug)]
pub(crate) struct FieldNode {
    pub(crate) name: Arc<str>,
    pub(crate) value: Node,
    /// Whether it is written with `?`.
    pub(crate) optional: bool,
}

/// A value and the fields and indexes read from it. They are one node, as in the API server,
/// because their costs are counted together.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Whether it ends with the presence test of `has()`.
    pub(crate) test: bool,
    /// Whether any qualifier is written with `?`.
    pub(crate) optional: bool,
    /// The path's number, if its target is cached.
    pub(crate) path: Option<PathNumber>,
}

impl Attribute {
    /// An attribute of this root without qualifiers.
    pub(crate) fn of(root: Root) -> Self {
        Self {
            root,
            qualifiers: Vec::new(),
            test: false,
            optional: false,
            path: None,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Root {
    /// A variable of the activation, by its index in the program's table.
    Variable(usize),
    /// A variable of a comprehension, by its slot.
    Local(usize),
    /// Any other value.
    Value(Box<Node>),
    /// `condition ? yes : no`
    Conditional(Box<[Node; 3]>),
    /// A conditional that `optMap` or `optFlatMap` expands to, which contains its target twice.
    OptMap(Box<[Node; 3]>),
}

impl Node {
    /// The binding of the optional's value in the expansion of `optMap` and `optFlatMap`.
    pub(crate) fn bound_optional(&self) -> Option<&Bind> {
        let bound = match self {
            Node::Call(Call {
                strategy: Strategy::Some,
                args,
                ..
            }) => args.first()?,
            other => other,
        };
        match bound {
            Node::Bind(bind) => Some(bind),
            _ => None,
        }
    }

    /// Whether the result is always true, false or an error.
    pub(crate) fn is_test(&self) -> bool {
        match self {
            Node::And(_)
            | Node::Or(_)
            | Node::Equal { .. }
            | Node::Member { .. }
            | Node::NotFalse { .. } => true,
            Node::Call(call) => call.strategy.is_test(),
            Node::Fold(fold) => fold.decided_by.is_some(),
            Node::Recorded(recorded) => recorded.0.is_test(),
            _ => false,
        }
    }

    /// The slot, if the node is only a variable of a comprehension.
    pub(crate) fn local(&self) -> Option<usize> {
        match self {
            Node::Attribute(Attribute {
                root: Root::Local(slot),
                qualifiers,
                test: false,
                ..
            }) if qualifiers.is_empty() => Some(*slot),
            _ => None,
        }
    }

    /// Whether it is a variable with constant field names, which always has the same cost.
    fn is_path(&self) -> bool {
        let Node::Attribute(attribute) = self else {
            return false;
        };
        let is_name = |it: &Qualifier| matches!(it.key, Key::Name(_));
        matches!(attribute.root, Root::Variable(_) | Root::Local(_))
            && !attribute.test
            && attribute.qualifiers.iter().all(is_name)
    }
}

impl Root {
    /// A conditional, planned from these expressions.
    pub(crate) fn conditional(parts: [Node; 3], from: &[Expr]) -> Self {
        let is_opt_map = match &parts {
            [Node::Call(test), present, _] => {
                matches!(test.strategy, Strategy::HasValue)
                    && test.args.first().is_some_and(Node::is_path)
                    && present.bound_optional().is_some()
                    && is_opt_map(from)
            }
            _ => false,
        };
        if is_opt_map {
            Self::OptMap(Box::new(parts))
        } else {
            Self::Conditional(Box::new(parts))
        }
    }
}

/// Whether the parts of a conditional are `x.hasValue()` and a binding of `x.value()`, with the
/// same `x`, which only macros can copy.
fn is_opt_map(parts: &[Expr]) -> bool {
    let [test, present, _] = parts else {
        return false;
    };
    let bound = match &present.kind {
        Kind::Call { args, .. } => args.first(),
        _ => Some(present),
    };
    let Some(Kind::Fold(fold)) = bound.map(|bound| &bound.kind) else {
        return false;
    };
    let target = |expr: &Expr, wanted: &str| match &expr.kind {
        Kind::Call {
            target: Some(target),
            function,
            ..
        } if **function == *wanted => Some(target.id),
        _ => None,
    };
    let tested = target(test, "hasValue");
    tested.is_some() && tested == target(&fold.init, "value")
}

/// One field or index.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: Key,
    /// Whether it is written with `?`.
    pub(crate) optional: bool,
    /// The number of the path up to this qualifier.
    pub(crate) path: Option<PathNumber>,
}

#[derive(Debug)]
pub(crate) enum Key {
    /// A field, or a constant text index.
    Name(Name),
    /// A constant index that is not text.
    Const(Value<'static>),
    Computed(Box<Node>),
}

/// A call of one of several overloads.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) overloads: Overloads,
    pub(crate) args: Vec<Node>,
    /// Whether an argument that is an error prevents the evaluation of the following ones. In
    /// the API server that depends on how it resolves the function; one or two arguments are
    /// mostly all evaluated.
    pub(crate) in_order: bool,
    pub(crate) formula: Formula,
    pub(crate) strategy: Strategy,
    /// The slot of the accumulator that this call adds to; it is moved, not copied.
    pub(crate) accumulator: Option<usize>,
}

impl Call {
    /// Its cost; a constant pattern has its size stored in the call.
    pub(crate) fn cost(&self, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        match (self.formula, &self.strategy, args) {
            (Formula::Pattern, Strategy::Pattern { size, .. }, [text, ..]) => {
                cost::pattern(text.cost_size(), *size)
            }
            (formula, ..) => formula.cost(args, result),
        }
    }
}

/// How a call is evaluated.
#[derive(Debug)]
pub(crate) enum Strategy {
    /// By the overload that accepts the arguments.
    Overload,
    /// `optional.none()`
    None,
    /// `optional.of(x)`
    Some,
    /// `x.hasValue()`
    HasValue,
    /// `x.value()`
    Value,
    /// `!x`
    Not,
    /// `x.matches('…')`
    Matches {
        pattern: Pattern,
        /// The size of the pattern's source, for the cost.
        size: u64,
    },
    /// `x.contains('…')` and the like.
    Text {
        test: TextTest,
        /// The factor on the cost of traversing the text.
        times: u64,
    },
    /// `x.size()` or `size(x)`
    Size {
        /// Whether it accepts text.
        of_text: bool,
        /// Whether it accepts lists and maps.
        of_many: bool,
    },
    /// `x < y` and the like.
    Order {
        wanted: fn(Ordering) -> bool,
        /// Whether it accepts two integers.
        of_ints: bool,
        /// Whether it accepts two durations.
        of_spans: bool,
    },
    /// Another function with a constant pattern.
    Pattern {
        run: RunCompiled,
        pattern: Pattern,
        /// The size of the pattern's source, for the cost.
        size: u64,
    },
}

/// Tests whether a text, the first argument, has a part, the second.
pub(crate) type TextTest = fn(&str, &str) -> bool;

impl Strategy {
    /// Whether the result is a boolean that is computed without an intermediate value.
    pub(crate) fn is_test(&self) -> bool {
        matches!(
            self,
            Self::Not | Self::Matches { .. } | Self::Text { .. } | Self::Order { .. }
        )
    }
}

/// A name bound to a value, which is computed at the first read.
#[derive(Debug)]
pub(crate) struct Bind {
    pub(crate) slot: usize,
    pub(crate) value: Node,
    pub(crate) body: Node,
}

#[derive(Debug)]
pub(crate) struct FoldNode {
    pub(crate) range: Node,
    pub(crate) var: usize,
    pub(crate) var2: Option<usize>,
    pub(crate) accu: usize,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
    /// The item result that ends the iteration, if it is `all` or `exists`.
    pub(crate) decided_by: Option<bool>,
}

impl FoldNode {
    /// The item result that ends the iteration, if the macros `all` or `exists` created it.
    pub(crate) fn decision(&self) -> Option<bool> {
        let Node::Const(Value::Bool(undecided)) = self.init else {
            return None;
        };
        let is_accu = |node: &Node| node.local() == Some(self.accu);
        let (Node::NotFalse { argument }, [first, _]) = (&self.condition, self.terms()?)
        else {
            return None;
        };
        let continuing = match &**argument {
            Node::Call(Call {
                strategy: Strategy::Not,
                args,
                ..
            }) if !undecided => args.first()?,
            argument if undecided => argument,
            _ => return None,
        };
        let accus = [continuing, first, &self.result];
        let is_macro = accus.into_iter().all(is_accu)
            && matches!(self.step, Node::And(_)) == undecided;
        is_macro.then_some(!undecided)
    }

    fn terms(&self) -> Option<&[Node; 2]> {
        match &self.step {
            Node::And(terms) | Node::Or(terms) => terms.as_slice().try_into().ok(),
            _ => None,
        }
    }

    /// The predicate on each item, if it is `all` or `exists`.
    pub(crate) fn predicate(&self) -> Option<(&Node, bool)> {
        let [_, predicate] = self.terms()?;
        self.decided_by.map(|decided_by| (predicate, decided_by))
    }
}

//! The steps of an evaluation.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::Value;
use crate::ast::{Expr, Kind};
use crate::cost::Formula;
use crate::library::Overloads;
use crate::library::regex::RunCompiled;
use crate::places::Number;
use fivespot_gostd::regexp::Pattern;

use super::name::Name;

/// One step of an evaluation.
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
    /// Goes on while the argument is true or an error.
    NotFalse {
        argument: Box<Node>,
    },
    /// `a.or(b)` and `a.orValue(b)`: the second only if it is needed.
    Alternative {
        sides: Box<[Node; 2]>,
        unwrap: bool,
    },
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Struct(Box<StructNode>),
    Fold(Box<FoldNode>),
    Bind(Box<Bind>),
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
    /// Written with `?`.
    pub(crate) optional: bool,
}

/// A value and the fields and indexes read from it. They are one node, as in the API
/// server, because their costs are counted together.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Ends with the presence test of `has()`.
    pub(crate) test: bool,
    /// Whether any qualifier is written with `?`.
    pub(crate) optional: bool,
    /// Its number, if it is a path of which is kept where it leads.
    pub(crate) path: Option<Number>,
}

impl Attribute {
    /// What begins here, with nothing read from it yet.
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
    /// A variable of the activation, by its place in the program's table.
    Variable(usize),
    /// A variable of a fold, by its slot.
    Local(usize),
    /// Any other value.
    Value(Box<Node>),
    /// `condition ? yes : no`
    Conditional(Box<[Node; 3]>),
    /// A conditional that `optMap` or `optFlatMap` made of a path, which it has twice.
    OptMap(Box<[Node; 3]>),
}

impl Node {
    /// The name for the value of an optional one in what `optMap` and `optFlatMap` make
    /// where there is a value.
    pub(crate) fn bound_optional(&self) -> Option<&Bind> {
        let bound = match self {
            Node::Call(Call {
                way: Way::Some,
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

    /// Whether it is true, false or an error, and never another value.
    pub(crate) fn is_test(&self) -> bool {
        match self {
            Node::And(_)
            | Node::Or(_)
            | Node::Equal { .. }
            | Node::Member { .. }
            | Node::NotFalse { .. } => true,
            Node::Call(call) => call.way.is_test(),
            Node::Fold(fold) => fold.decided_by.is_some(),
            _ => false,
        }
    }

    /// The slot of a variable of a fold, if that is all there is.
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

    /// Whether it is a variable and fields of known names, which cost the same every time.
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
    /// A conditional, as planned from these expressions.
    pub(crate) fn conditional(parts: [Node; 3], from: &[Expr]) -> Self {
        let is_opt_map = match &parts {
            [Node::Call(test), present, _] => {
                matches!(test.way, Way::HasValue)
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

/// Whether the expressions of a conditional are `x.hasValue()` and something with a name for
/// `x.value()`, with the same `x`, which only macros can copy.
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
    /// Written with `?`.
    pub(crate) optional: bool,
    /// The number of the path up to here.
    pub(crate) path: Option<Number>,
}

#[derive(Debug)]
pub(crate) enum Key {
    /// A field, or an index that is a known text.
    Name(Name),
    /// An index that is known and no text.
    Const(Value<'static>),
    Computed(Box<Node>),
}

/// A call of one of several overloads.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) overloads: Overloads,
    pub(crate) args: Vec<Node>,
    /// Whether an argument that is an error keeps those behind it from being evaluated. In
    /// the API server that depends on how it found the function; one or two arguments are
    /// mostly evaluated whatever they are.
    pub(crate) in_order: bool,
    pub(crate) formula: Formula,
    pub(crate) way: Way,
    /// The slot of the accumulator this call adds to, which is then taken and not copied.
    pub(crate) accumulator: Option<usize>,
}

/// How a call comes to its result.
#[derive(Debug)]
pub(crate) enum Way {
    /// By the overload that fits.
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
        /// Of the source, as costs count it.
        size: u64,
    },
    /// `x.contains('…')` and the like.
    Text {
        test: TextTest,
        /// How often the cost of traversing the text is paid.
        times: u64,
    },
    /// `x.size()` or `size(x)`
    Size {
        /// Whether it takes text.
        of_text: bool,
        /// Whether it takes lists and maps.
        of_many: bool,
    },
    /// `x < y` and the like.
    Order {
        wanted: fn(Ordering) -> bool,
        /// Whether it takes two whole numbers.
        of_ints: bool,
        /// Whether it takes two spans of time.
        of_spans: bool,
    },
    /// Another function with a pattern that is a constant.
    Pattern {
        run: RunCompiled,
        pattern: Pattern,
        /// Of the source, as costs count it.
        size: u64,
    },
}

/// Looks for a part, the second, in a text.
pub(crate) type TextTest = fn(&str, &str) -> bool;

impl Way {
    /// Whether the result is a boolean that needs no other value on the way.
    pub(crate) fn is_test(&self) -> bool {
        matches!(
            self,
            Self::Not | Self::Matches { .. } | Self::Text { .. } | Self::Order { .. }
        )
    }
}

/// A name for a value, which is computed when it is first read.
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
    /// The result of the first item that decides, if it is `all` or `exists`.
    pub(crate) decided_by: Option<bool>,
}

impl FoldNode {
    /// What decides, if it is as the macros `all` and `exists` write it.
    pub(crate) fn decision(&self) -> Option<bool> {
        let Node::Const(Value::Bool(undecided)) = self.init else {
            return None;
        };
        let is_accu = |node: &Node| node.local() == Some(self.accu);
        let (Node::NotFalse { argument }, [first, _]) = (&self.condition, self.terms()?)
        else {
            return None;
        };
        let goes_on = match &**argument {
            Node::Call(Call {
                way: Way::Not,
                args,
                ..
            }) if !undecided => args.first()?,
            argument if undecided => argument,
            _ => return None,
        };
        let accus = [goes_on, first, &self.result];
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

    /// What is said of each item, if it is `all` or `exists`.
    pub(crate) fn said(&self) -> Option<(&Node, bool)> {
        let [_, said] = self.terms()?;
        self.decided_by.map(|decided_by| (said, decided_by))
    }
}

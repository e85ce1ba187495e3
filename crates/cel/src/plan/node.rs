//! The steps of an evaluation.

use crate::Value;
use crate::cost::Formula;
use crate::library::Overload;
use crate::library::regex::RunCompiled;
use crate::pattern::Pattern;

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
    Fold(Box<FoldNode>),
}

/// A value and the fields and indexes read from it. They are one node, as in the API
/// server, because their costs are counted together.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Ends with the presence test of `has()`.
    pub(crate) test: bool,
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
}

/// One field or index.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: Key,
    /// Written with `?`.
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum Key {
    Const(Value<'static>),
    Computed(Node),
}

/// A call of one of several overloads.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) overloads: Vec<&'static Overload>,
    pub(crate) args: Vec<Node>,
    /// Whether an argument that is an error keeps those behind it from being evaluated. In
    /// the API server that depends on how it found the function; one or two arguments are
    /// mostly evaluated whatever they are.
    pub(crate) in_order: bool,
    pub(crate) formula: Formula,
    /// The pattern, where it is a constant.
    pub(crate) regex: Option<(RunCompiled, Pattern)>,
    /// The slot of the accumulator this call adds to, which is then taken and not copied.
    pub(crate) accumulator: Option<usize>,
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
}

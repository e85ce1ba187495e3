//! Turns checked expressions into what the evaluator walks.

use std::sync::Arc;

use regex::Regex;

use crate::ast::{Expr, Fold, Kind, operator};
use crate::check::{Checked, Reference};
use crate::cost::Formula;
use crate::library::Overload;
use crate::library::regex::{RunCompiled, compiled};
use crate::value::{Entries, Map};
use crate::{RunError, Value, pattern};

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
    pub(crate) formula: Formula,
    /// The pattern, where it is a constant.
    pub(crate) regex: Option<(RunCompiled, Regex)>,
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

/// A plan with the variables it reads and the slots it needs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    pub(crate) variables: Vec<Arc<str>>,
    pub(crate) slots: usize,
}

/// Plans a checked expression.
///
/// # Errors
/// If a constant cannot be computed, such as `int('x')`.
pub(crate) fn plan(root: &Expr, checked: &Checked) -> Result<Plan, RunError> {
    let mut planner = Planner {
        checked,
        variables: Vec::new(),
        scopes: Vec::new(),
        slots: 0,
    };
    let root = planner.node(root)?;
    Ok(Plan {
        root,
        variables: planner.variables,
        slots: planner.slots,
    })
}

struct Planner<'c> {
    checked: &'c Checked,
    variables: Vec<Arc<str>>,
    scopes: Vec<(Arc<str>, usize)>,
    slots: usize,
}

type Planned<T> = Result<T, RunError>;

impl Planner<'_> {
    fn node(&mut self, expr: &Expr) -> Planned<Node> {
        Ok(match &expr.kind {
            Kind::Literal(value) => Node::Const(value.clone()),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select {
                operand,
                field,
                test,
            } => {
                if let Some(Reference::Variable(_) | Reference::Type(_)) =
                    self.checked.references.get(&expr.id)
                {
                    return Ok(self.ident(expr, field));
                }
                let operand = self.node(operand)?;
                let key = Key::Const(Value::String(Arc::clone(field).into()));
                let mut attribute = qualified(
                    operand,
                    Qualifier {
                        key,
                        optional: false,
                    },
                );
                attribute.test = *test;
                Node::Attribute(attribute)
            }
            Kind::Call {
                target,
                function,
                args,
            } => self.call(expr, target.as_deref(), function, args)?,
            Kind::List(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                for item in items {
                    nodes.push((self.node(&item.value)?, item.optional));
                }
                constant_list(nodes)
            }
            Kind::Map(entries) => {
                let mut nodes = Vec::with_capacity(entries.len());
                for entry in entries {
                    let (key, value) = (self.node(&entry.key)?, self.node(&entry.value)?);
                    nodes.push((key, value, entry.optional));
                }
                constant_map(nodes)
            }
            // The checker refuses them.
            Kind::Struct { .. } => Node::Const(Value::Null),
            Kind::Fold(fold) => Node::Fold(Box::new(self.fold(fold)?)),
        })
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Node {
        let local = self.scopes.iter().rev().find(|(known, _)| **known == *name);
        let reference = self.checked.references.get(&expr.id);
        let root = match (reference, local) {
            (Some(Reference::Type(name)), _) => {
                return Node::Const(Value::Type(Arc::from(*name)));
            }
            (Some(Reference::Variable(name)), _) => Root::Variable(self.variable(name)),
            (_, Some((_, slot))) => Root::Local(*slot),
            _ => Root::Variable(self.variable(&Arc::from(name))),
        };
        Node::Attribute(Attribute {
            root,
            qualifiers: Vec::new(),
            test: false,
        })
    }

    fn variable(&mut self, name: &Arc<str>) -> usize {
        if let Some(known) = self.variables.iter().position(|known| known == name) {
            return known;
        }
        self.variables.push(Arc::clone(name));
        self.variables.len() - 1
    }

    fn call(
        &mut self,
        expr: &Expr,
        target: Option<&Expr>,
        function: &str,
        args: &[Expr],
    ) -> Planned<Node> {
        let (overloads, receiver) = match self.checked.references.get(&expr.id) {
            Some(Reference::Call {
                overloads,
                receiver,
            }) => (overloads.clone(), *receiver),
            _ => (Vec::new(), false),
        };
        let mut nodes = Vec::with_capacity(args.len() + 1);
        for arg in target.filter(|_| receiver).into_iter().chain(args) {
            nodes.push(self.node(arg)?);
        }
        match function {
            operator::AND => return Ok(Node::And(nodes)),
            operator::OR => return Ok(Node::Or(nodes)),
            _ => {}
        }
        if function == operator::CONDITIONAL {
            return Ok(match <[Node; 3]>::try_from(nodes) {
                Ok(parts) => Node::Attribute(Attribute {
                    root: Root::Conditional(Box::new(parts)),
                    qualifiers: Vec::new(),
                    test: false,
                }),
                Err(_) => Node::Const(Value::Null),
            });
        }
        match <[Node; 2]>::try_from(nodes) {
            Ok(sides) => self.binary(function, overloads, sides),
            Err(nodes) => self.function(function, overloads, nodes),
        }
    }

    fn binary(
        &mut self,
        function: &str,
        overloads: Vec<&'static Overload>,
        sides: [Node; 2],
    ) -> Planned<Node> {
        let overload = single(&overloads);
        Ok(match function {
            operator::EQUALS | operator::NOT_EQUALS => {
                let negated = function == operator::NOT_EQUALS;
                Node::Equal {
                    sides: Box::new(sides),
                    negated,
                }
            }
            operator::INDEX | operator::OPTIONAL_INDEX | operator::OPTIONAL_SELECT => {
                let optional = function != operator::INDEX;
                let [operand, index] = sides;
                let key = match index {
                    Node::Const(value) => Key::Const(value),
                    other => Key::Computed(other),
                };
                Node::Attribute(qualified(operand, Qualifier { key, optional }))
            }
            "or" | "orValue" => Node::Alternative {
                sides: Box::new(sides),
                unwrap: function == "orValue",
            },
            operator::IN if overload == Some("in_list") => member(overloads, sides),
            _ => self.function(function, overloads, sides.into())?,
        })
    }

    fn function(
        &mut self,
        function: &str,
        overloads: Vec<&'static Overload>,
        mut args: Vec<Node>,
    ) -> Planned<Node> {
        if function == operator::NOT_STRICTLY_FALSE
            && let Some(argument) = args.pop()
        {
            return Ok(Node::NotFalse {
                argument: Box::new(argument),
            });
        }
        if let ([overload], [Node::Const(value)]) = (&*overloads, &*args)
            && is_conversion(overload.function)
        {
            return (overload.run)(std::slice::from_ref(value)).map(Node::Const);
        }
        let name = overloads
            .first()
            .map_or(function, |overload| overload.function);
        let formula = Formula::of(name, single(&overloads));
        let regex = match args.get(1) {
            Some(Node::Const(Value::String(source))) => match compiled(name) {
                Some(run) => {
                    Some((run, pattern::compile(source).map_err(RunError::text)?))
                }
                None => None,
            },
            _ => None,
        };
        let adds = matches!(function, operator::ADD | operator::MAP_INSERT);
        let accumulator = match args.first() {
            Some(Node::Attribute(Attribute {
                root: Root::Local(slot),
                qualifiers,
                ..
            })) if adds && qualifiers.is_empty() && self.is_accumulator(*slot) => {
                Some(*slot)
            }
            _ => None,
        };
        Ok(Node::Call(Call {
            overloads,
            args,
            formula,
            regex,
            accumulator,
        }))
    }

    /// Whether a slot holds what a macro accumulates, which no source can name.
    fn is_accumulator(&self, slot: usize) -> bool {
        self.scopes
            .iter()
            .any(|(name, known)| *known == slot && name.starts_with('@'))
    }

    fn fold(&mut self, fold: &Fold) -> Planned<FoldNode> {
        let init = self.node(&fold.init)?;
        let range = self.node(&fold.range)?;
        let outer = self.scopes.len();
        let accu = self.slot(&fold.accu);
        let var = self.slot(&fold.var);
        let var2 = fold.var2.as_ref().map(|var2| self.slot(var2));
        let condition = self.node(&fold.condition)?;
        let step = self.node(&fold.step)?;
        self.scopes.truncate(outer + 1);
        let result = self.node(&fold.result)?;
        self.scopes.truncate(outer);
        Ok(FoldNode {
            range,
            var,
            var2,
            accu,
            init,
            condition,
            step,
            result,
        })
    }

    /// A slot that no other variable of the program has.
    fn slot(&mut self, name: &Arc<str>) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.scopes.push((Arc::clone(name), slot));
        slot
    }
}

fn single(overloads: &[&'static Overload]) -> Option<&'static str> {
    match overloads {
        [overload] => Some(overload.id),
        _ => None,
    }
}

/// Adds a field or index to what is read from `operand`.
fn qualified(operand: Node, qualifier: Qualifier) -> Attribute {
    let mut attribute = match operand {
        Node::Attribute(attribute) if !attribute.test => attribute,
        other => Attribute {
            root: Root::Value(Box::new(other)),
            qualifiers: Vec::new(),
            test: false,
        },
    };
    attribute.qualifiers.push(qualifier);
    attribute
}

/// `x in [1, 2]` is looked up at no cost, if all items are plain.
fn member(overloads: Vec<&'static Overload>, sides: [Node; 2]) -> Node {
    let [wanted, list] = sides;
    if let Node::Const(Value::List(list)) = &list {
        let items: Vec<_> = list.iter().filter_map(Result::ok).collect();
        if items.is_empty() {
            return Node::Const(Value::Bool(false));
        }
        if items.iter().all(is_plain) {
            return Node::Member {
                wanted: Box::new(wanted),
                set: items,
            };
        }
    }
    Node::Call(Call {
        overloads,
        args: vec![wanted, list],
        formula: Formula::of(operator::IN, Some("in_list")),
        regex: None,
        accumulator: None,
    })
}

fn is_plain(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
    )
}

fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

fn constant_list(nodes: Vec<(Node, bool)>) -> Node {
    let mut values = Vec::with_capacity(nodes.len());
    for (node, optional) in &nodes {
        match node {
            Node::Const(value) if !optional => values.push(value.clone()),
            _ => return Node::List(nodes),
        }
    }
    Node::Const(Value::list(values))
}

fn constant_map(nodes: Vec<(Node, Node, bool)>) -> Node {
    let mut entries = Entries::default();
    for node in &nodes {
        let (Node::Const(key), Node::Const(value), false) = node else {
            return Node::Map(nodes);
        };
        if entries.insert(key.clone(), value.clone()).is_err() {
            return Node::Map(nodes);
        }
    }
    Node::Const(Value::Map(Map::Owned(entries.into())))
}

//! Compiles checked expressions to plans, which the evaluator walks.

mod constant;
mod node;
mod structure;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::ast::{Expr, Fold, Kind, operator};
use crate::check::{Reference, Tree};
use crate::cost::Formula;
use crate::coverage::Recorder;
use crate::library::regex::compiled;
use crate::library::{self, Overload, Overloads};
use crate::name::Name;
use crate::{Paths, RunError, Type, Value, cost};
use kubemu_gostd::regexp::Pattern;

use constant::{
    constant_list, constant_map, is_conversion, is_dispatched, member, qualified, single,
};
pub(crate) use node::{
    Attribute, Bind, Call, FieldNode, FoldNode, Key, Node, Qualifier, Root, Strategy,
    StructNode, TextTest,
};

/// A plan with the variables it reads and the number of slots it needs.
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
pub(crate) fn plan(
    (source, tree): (&str, &Tree),
    paths: Option<&Paths>,
) -> Result<Plan, RunError> {
    let mut planner = Planner {
        tree,
        paths,
        recorder: Recorder::of(source),
        variables: Vec::new(),
        scopes: Vec::new(),
        slots: 0,
    };
    let root = planner.node(&tree.root)?;
    let root = match &planner.recorder {
        Some(recorder) => recorder.whole(root),
        None => root,
    };
    Ok(Plan {
        root,
        variables: planner.variables,
        slots: planner.slots,
    })
}

struct Planner<'t> {
    tree: &'t Tree,
    paths: Option<&'t Paths>,
    /// For the coverage, if it is recorded.
    recorder: Option<Recorder<'t>>,
    variables: Vec<Arc<str>>,
    scopes: Vec<(Arc<str>, usize)>,
    slots: usize,
}

type Planned<T> = Result<T, RunError>;

impl Planner<'_> {
    fn node(&mut self, expr: &Expr) -> Planned<Node> {
        Ok(match &expr.kind {
            Kind::Literal(value) => Node::Const(value.clone()),
            Kind::Ident(name) => {
                self.check_type(expr)?;
                self.ident(expr, name)
            }
            Kind::Select {
                operand,
                field,
                test,
            } => {
                if let Some(Reference::Variable(_) | Reference::Type(_)) =
                    self.tree.references.get(expr.id)
                {
                    self.check_type(expr)?;
                    return Ok(self.ident(expr, field));
                }
                let operand = self.node(operand)?;
                let key = Key::Name(Name::new(Arc::clone(field)));
                let mut attribute = qualified(operand, (key, false), self.paths);
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
            Kind::Struct { name, fields } => self.structure(name, fields)?,
            Kind::Fold(fold) => self.fold(fold)?,
        })
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Node {
        let local = self.scopes.iter().rev().find(|(known, _)| **known == *name);
        let reference = self.tree.references.get(expr.id);
        let root = match (reference, local) {
            (Some(Reference::Type(name)), _) => {
                return Node::Const(Value::Type(Arc::clone(name)));
            }
            (Some(Reference::Variable(name)), _) => Root::Variable(self.variable(name)),
            (_, Some((_, slot))) => Root::Local(*slot),
            _ => Root::Variable(self.variable(&Arc::from(name))),
        };
        let mut attribute = Attribute::of(root);
        if let (Root::Variable(variable), Some(paths)) = (&attribute.root, self.paths) {
            let name = self.variables.get(*variable);
            attribute.path = name.and_then(|name| paths.variable(name));
        }
        Node::Attribute(attribute)
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
        let (overloads, receiver) = match self.tree.references.get(expr.id) {
            Some(Reference::Call {
                overloads,
                receiver,
            }) => (overloads.clone(), *receiver),
            _ => (Overloads::default(), false),
        };
        let target = target.filter(|_| receiver);
        match (function, args) {
            (operator::AND, _) => return Ok(Node::And(self.terms(target, args)?)),
            (operator::OR, _) => return Ok(Node::Or(self.terms(target, args)?)),
            (operator::CONDITIONAL, [condition, yes, no]) => {
                let parts = [self.node(condition)?, self.node(yes)?, self.node(no)?];
                let mut conditional = Root::conditional(parts, args);
                // That of a macro is no part of the source.
                if let Root::Conditional(parts) = &mut conditional {
                    let [test, ..] = &mut **parts;
                    let node = std::mem::replace(test, Node::Const(Value::Null));
                    *test = self.part(condition, node);
                }
                return Ok(Node::Attribute(Attribute::of(conditional)));
            }
            (operator::NOT_STRICTLY_FALSE, [argument]) => {
                let argument = Box::new(self.node(argument)?);
                return Ok(Node::NotFalse { argument });
            }
            _ => {}
        }
        let sides = match (target, args) {
            (Some(left), [right]) | (None, [left, right]) => Some((left, right)),
            _ => None,
        };
        if let Some((left, right)) = sides.filter(|_| is_paired(function)) {
            if is_lookup(function)
                && let Kind::Literal(Value::String(name)) = &right.kind
            {
                let key = Key::Name(Name::new(name.clone()));
                let optional = function != operator::INDEX;
                let operand = self.node(left)?;
                let attribute = qualified(operand, (key, optional), self.paths);
                return Ok(Node::Attribute(attribute));
            }
            let sides = [self.node(left)?, self.node(right)?];
            if is_lookup(function) && !is_dynamic(right) {
                let [_, index] = &sides;
                refuse_qualifier(index)?;
            }
            return self.binary(function, overloads, sides);
        }
        let nodes = self.nodes(target, args)?;
        let known = args.last().and_then(|last| self.tree.pattern(last));
        self.function((function, known), overloads, nodes)
    }

    /// The operands of `&&` and `||`.
    fn terms(&mut self, target: Option<&Expr>, args: &[Expr]) -> Planned<Vec<Node>> {
        let mut nodes = self.nodes(target, args)?;
        for (node, expr) in nodes.iter_mut().zip(target.into_iter().chain(args)) {
            let planned = std::mem::replace(node, Node::Const(Value::Null));
            *node = self.part(expr, planned);
        }
        Ok(nodes)
    }

    fn part(&self, expr: &Expr, node: Node) -> Node {
        match &self.recorder {
            Some(recorder) => recorder.part(expr, node),
            None => node,
        }
    }

    fn nodes(&mut self, target: Option<&Expr>, args: &[Expr]) -> Planned<Vec<Node>> {
        let mut nodes = Vec::with_capacity(args.len() + usize::from(target.is_some()));
        for expr in target.into_iter().chain(args) {
            nodes.push(self.node(expr)?);
        }
        Ok(nodes)
    }

    fn binary(
        &mut self,
        function: &str,
        overloads: Overloads,
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
            lookup if is_lookup(lookup) => {
                let optional = function != operator::INDEX;
                let [operand, index] = sides;
                let key = match index {
                    Node::Const(Value::String(name)) => Key::Name(Name::new(name)),
                    Node::Const(value) => Key::Const(value),
                    other => Key::Computed(Box::new(other)),
                };
                Node::Attribute(qualified(operand, (key, optional), self.paths))
            }
            "or" | "orValue" => Node::Alternative {
                sides: Box::new(sides),
                unwrap: function == "orValue",
            },
            operator::IN if overload == Some("in_list") => member(overloads, sides),
            _ => self.function((function, None), overloads, sides.into())?,
        })
    }

    /// `known` is the compiled pattern of the last argument, if the checker compiled it.
    fn function(
        &mut self,
        (function, known): (&str, Option<&Pattern>),
        overloads: Overloads,
        args: Vec<Node>,
    ) -> Planned<Node> {
        if let ([first, ..], [Node::Const(value)]) = (&*overloads, &*args)
            && is_conversion(first.function)
        {
            let value = std::slice::from_ref(value);
            return library::call(&overloads, value).map(Node::Const);
        }
        let name = overloads
            .first()
            .map_or(function, |overload| overload.function);
        let formula = Formula::of(name, single(&overloads));
        let how = strategy((name, formula, known), &overloads, &args)?;
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
        let in_order = args.len() > 2
            || matches!(how, Strategy::Pattern { .. } | Strategy::Matches { .. })
            || is_dispatched(name, &overloads);
        Ok(Node::Call(Call {
            overloads,
            args,
            in_order,
            formula,
            strategy: how,
            accumulator,
        }))
    }

    /// Whether a slot is the accumulator of a macro, which no source can name.
    fn is_accumulator(&self, slot: usize) -> bool {
        self.scopes
            .iter()
            .any(|(name, known)| *known == slot && name.starts_with('@'))
    }

    fn fold(&mut self, fold: &Fold) -> Planned<Node> {
        let init = self.node(&fold.init)?;
        let outer = self.scopes.len();
        if fold.is_bind() {
            let slot = self.slot(&fold.accu);
            let body = self.node(&fold.result)?;
            self.scopes.truncate(outer);
            let value = init;
            return Ok(Node::Bind(Box::new(Bind { slot, value, body })));
        }
        let range = self.node(&fold.range)?;
        let accu = self.slot(&fold.accu);
        let var = self.slot(&fold.var);
        let var2 = fold.var2.as_ref().map(|var2| self.slot(var2));
        let condition = self.node(&fold.condition)?;
        let step = self.node(&fold.step)?;
        self.scopes.truncate(outer + 1);
        let result = self.node(&fold.result)?;
        self.scopes.truncate(outer);
        let mut fold = FoldNode {
            range,
            var,
            var2,
            accu,
            init,
            condition,
            step,
            result,
            decided_by: None,
        };
        fold.decided_by = fold.decision();
        Ok(Node::Fold(Box::new(fold)))
    }

    /// A slot that no other variable of the program uses.
    fn slot(&mut self, name: &Arc<str>) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.scopes.push((Arc::clone(name), slot));
        slot
    }
}

/// How a call of these overloads is evaluated.
fn strategy(
    (function, formula, known): (&str, Formula, Option<&Pattern>),
    overloads: &[&'static Overload],
    args: &[Node],
) -> Planned<Strategy> {
    if let (Some(run), Some(Node::Const(source @ Value::String(text)))) =
        (compiled(function), args.get(1))
    {
        let pattern = match known.filter(|_| args.len() == 2) {
            Some(known) => known.clone(),
            None => Pattern::new(text).map_err(RunError::text)?,
        };
        let size = source.cost_size();
        return Ok(match (function, formula, args) {
            ("matches", Formula::Pattern, [_, _]) => Strategy::Matches { pattern, size },
            _ => Strategy::Pattern { run, pattern, size },
        });
    }
    if let [_, Node::Const(Value::String(part))] = args
        && let Some(test) = text_test(single(overloads))
    {
        let times = cost::search_times(formula, part);
        return Ok(Strategy::Text { test, times });
    }
    if formula == Formula::Fixed(1)
        && let Some(strategy) = sized_or_ordered(function, overloads, args)
    {
        return Ok(strategy);
    }
    Ok(match single(overloads) {
        Some("logical_not") if args.len() == 1 => Strategy::Not,
        Some("optional_none") if args.is_empty() => Strategy::None,
        Some("optional_of") => Strategy::Some,
        Some("optional_hasValue") => Strategy::HasValue,
        Some("optional_value") => Strategy::Value,
        _ => Strategy::Overload,
    })
}

/// The strategy of `size` and of the comparison operators, for calls of cost 1.
fn sized_or_ordered(
    function: &str,
    overloads: &[&'static Overload],
    args: &[Node],
) -> Option<Strategy> {
    let takes = |is_it: fn(&Type) -> bool| {
        let mut all = overloads.iter();
        all.any(|it| it.params.iter().all(is_it))
    };
    if function == "size" && args.len() == 1 {
        return Some(Strategy::Size {
            of_text: takes(|ty| matches!(ty, Type::String)),
            of_many: takes(|ty| matches!(ty, Type::List(_)))
                && takes(|ty| matches!(ty, Type::Map(_))),
        });
    }
    let wanted = match function {
        operator::LESS => Ordering::is_lt,
        operator::LESS_EQUALS => Ordering::is_le,
        operator::GREATER => Ordering::is_gt,
        operator::GREATER_EQUALS => Ordering::is_ge,
        _ => return None,
    };
    (args.len() == 2).then(|| Strategy::Order {
        wanted,
        of_ints: takes(|ty| matches!(ty, Type::Int)),
        of_spans: takes(|ty| matches!(ty, Type::Duration)),
    })
}

/// The test of text for a constant part, if the overload is one.
fn text_test(overload: Option<&str>) -> Option<TextTest> {
    let test: TextTest = match overload? {
        "contains_string" => |text, part| text.contains(part),
        "starts_with_string" => |text, part| text.starts_with(part),
        "ends_with_string" => |text, part| text.ends_with(part),
        _ => return None,
    };
    Some(test)
}

/// Whether a call of the function with two operands may become a node of another kind.
fn is_paired(function: &str) -> bool {
    let others = [operator::EQUALS, operator::NOT_EQUALS, operator::IN];
    is_lookup(function)
        || others.contains(&function)
        || matches!(function, "or" | "orValue")
}

fn is_lookup(function: &str) -> bool {
    matches!(
        function,
        operator::INDEX | operator::OPTIONAL_INDEX | operator::OPTIONAL_SELECT
    )
}

/// Whether it is `dyn(x)`, which hides the type from the compiler: the language's own tests
/// expect no compile error in that case.
fn is_dynamic(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Call { function, .. } if **function == *"dyn")
}

/// Rejects a constant index of a type that cannot be an index.
fn refuse_qualifier(index: &Node) -> Planned<()> {
    match index {
        Node::Const(value) => value.as_qualifier(),
        _ => Ok(()),
    }
}

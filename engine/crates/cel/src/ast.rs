//! Parsed expressions, with macros expanded.

use std::ops::Deref;
use std::sync::Arc;

use crate::Value;

/// One node. `id` numbers the nodes of one source without gaps.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: usize,
    /// The position in errors: the offset in code points of the node's operator, dot or
    /// bracket.
    pub(crate) at: usize,
    /// The height of the tree below, at least 1; bounded by the parser.
    pub(crate) depth: usize,
    /// The number of nodes of the tree; bounded by the parser, because macros copy.
    pub(crate) size: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Value<'static>),
    /// A name; a leading dot is dropped because there is no container to resolve against.
    Ident(Arc<str>),
    Select {
        operand: Box<Expr>,
        field: Arc<str>,
        /// Whether this is the presence test of `has()`.
        test: bool,
    },
    Call {
        /// Shared if a macro uses it twice.
        target: Option<Arc<Expr>>,
        function: Function,
        args: Vec<Expr>,
    },
    List(Vec<Item>),
    Map(Vec<Entry>),
    /// `Name{field: value}`
    Struct {
        name: Arc<str>,
        fields: Vec<FieldEntry>,
    },
    Fold(Box<Fold>),
}

/// The name of a function.
#[derive(Clone, Debug)]
pub(crate) enum Function {
    /// A function that exists in some Kubernetes version.
    Known(&'static str),
    /// Any other name.
    Written(Arc<str>),
}

impl Deref for Function {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Written(name) => name,
        }
    }
}

impl From<&'static str> for Function {
    fn from(name: &'static str) -> Self {
        Self::Known(name)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// One field of `Name{field: value}`.
#[derive(Clone, Debug)]
pub(crate) struct FieldEntry {
    pub(crate) name: Arc<str>,
    /// The position in errors: the field's colon.
    pub(crate) at: usize,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A comprehension: the expansion of a macro over a list or map.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    pub(crate) var: Arc<str>,
    /// The second iteration variable of the two-variable forms.
    pub(crate) var2: Option<Arc<str>>,
    pub(crate) accu: Arc<str>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// The iteration variable of a comprehension over an empty list; no source can name it.
pub(crate) const UNUSED: &str = "#unused";

impl Fold {
    /// Whether it only binds a value to the accumulator's name and iterates over nothing.
    pub(crate) fn is_bind(&self) -> bool {
        *self.var == *UNUSED
    }
}

impl Kind {
    /// The height of the highest child and the number of nodes of all children.
    pub(crate) fn extent_below(&self) -> (usize, usize) {
        let mut extent = (0, 0);
        self.for_children(&mut |child| {
            extent = (extent.0.max(child.depth), extent.1 + child.size);
        });
        extent
    }

    fn for_children(&self, each: &mut impl FnMut(&Expr)) {
        match self {
            Self::Literal(_) | Self::Ident(_) => {}
            Self::Select { operand, .. } => each(operand),
            Self::Call { target, args, .. } => {
                target.as_deref().into_iter().chain(args).for_each(each);
            }
            Self::List(items) => items.iter().for_each(|item| each(&item.value)),
            Self::Map(entries) => entries.iter().for_each(|entry| {
                each(&entry.key);
                each(&entry.value);
            }),
            Self::Struct { fields, .. } => {
                for field in fields {
                    each(&field.value);
                }
            }
            Self::Fold(fold) => {
                let Fold {
                    range,
                    init,
                    condition,
                    step,
                    result,
                    ..
                } = &**fold;
                [range, init, condition, step, result]
                    .into_iter()
                    .for_each(each);
            }
        }
    }
}

impl Expr {
    /// Visits every direct child.
    pub(crate) fn for_children(&self, each: &mut impl FnMut(&Expr)) {
        self.kind.for_children(each);
    }

    /// `a` if the expression is `a.b.c`, only names and dots.
    pub(crate) fn first_name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            Kind::Select {
                operand,
                test: false,
                ..
            } => operand.first_name(),
            _ => None,
        }
    }

    /// `a.b.c` if the expression consists only of names and dots.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select {
                operand,
                field,
                test: false,
            } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }
}

/// The functions behind operators.
pub(crate) mod operator {
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const NOT_EQUALS: &str = "_!=_";
    pub(crate) const LESS: &str = "_<_";
    pub(crate) const LESS_EQUALS: &str = "_<=_";
    pub(crate) const GREATER: &str = "_>_";
    pub(crate) const GREATER_EQUALS: &str = "_>=_";
    pub(crate) const IN: &str = "@in";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const SUBTRACT: &str = "_-_";
    pub(crate) const MULTIPLY: &str = "_*_";
    pub(crate) const DIVIDE: &str = "_/_";
    pub(crate) const MODULO: &str = "_%_";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPTIONAL_INDEX: &str = "_[?_]";
    pub(crate) const OPTIONAL_SELECT: &str = "_?._";
    /// Continues a comprehension while its accumulator is true or an error.
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    /// Inserts an entry into the map that a comprehension builds.
    pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
}

//! Expands macros.

use std::sync::{Arc, LazyLock};

use crate::ast::{Expr, Fold, Kind, UNUSED, operator};
use crate::library::{self, list_ext};
use crate::parser::{Builder, Parse, SyntaxError};
use crate::{Dialect, Value};

/// The accumulator variable of every comprehension; no source can name it.
static ACCUMULATOR: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("@result"));

/// cel-go's former name of the accumulator, which it still rejects as a variable name.
const FORMER_ACCUMULATOR: &str = "__result__";

/// The iteration variable of a binding.
static NO_VARIABLE: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(UNUSED));

/// Optional values and their syntax exist from Kubernetes 1.28 on.
pub(crate) fn has_optionals(dialect: Dialect) -> bool {
    dialect.minor() >= 28
}

/// Comprehensions with two variables, an index or key and a value, exist from Kubernetes 1.32
/// on.
fn has_two_variables(dialect: Dialect) -> bool {
    dialect.minor() >= 32
}

/// `sortBy` exists from Kubernetes 1.34 on.
fn has_sort_by(dialect: Dialect) -> bool {
    dialect.minor() >= 34
}

/// A global call: `has(a.b)`, or a function.
pub(crate) fn global(
    builder: &mut Builder,
    at: usize,
    name: &str,
    mut args: Vec<Expr>,
) -> Parse<Expr> {
    if name != "has" || args.len() != 1 {
        return builder.call(at, library::function(name), args);
    }
    let argument = args.pop();
    let argument_at = argument.as_ref().map_or(at, |it| it.at);
    match argument.map(|it| it.kind) {
        Some(Kind::Select {
            operand,
            field,
            test: false,
        }) => builder.node(
            at,
            Kind::Select {
                operand,
                field,
                test: true,
            },
        ),
        _ => Err(SyntaxError {
            at: argument_at,
            message: "invalid argument to has() macro".to_owned(),
        }),
    }
}

/// A call on a receiver, before macro expansion.
pub(crate) struct MemberCall<'m> {
    pub(crate) at: usize,
    pub(crate) target: Expr,
    pub(crate) name: &'m str,
    pub(crate) args: Vec<Expr>,
}

/// A call on a receiver: one of the macros over lists, maps and optionals, or a method.
pub(crate) fn member(builder: &mut Builder, call: MemberCall<'_>) -> Parse<Expr> {
    let MemberCall {
        at,
        target,
        name,
        args,
    } = call;
    let is_bind = name == "bind" && args.len() == 3 && builder.has_bindings;
    if is_bind && matches!(&target.kind, Kind::Ident(namespace) if &**namespace == "cel")
    {
        return binding(builder, at, args);
    }
    let Some(count) = variables(builder.dialect, name, args.len()) else {
        let (target, function) = (Some(Arc::new(target)), library::function(name));
        return builder.node(
            at,
            Kind::Call {
                target,
                function,
                args,
            },
        );
    };
    let mut args = args.into_iter();
    let names = args.by_ref().take(count).map(|arg| match &arg.kind {
        // The variable's name includes the leading dot, and no expression resolves to it.
        Kind::Ident(name) if builder.is_rooted(&arg) => Expr {
            kind: Kind::Ident(format!(".{name}").into()),
            ..arg
        },
        _ => arg,
    });
    let is_fold = !matches!(name, "optMap" | "optFlatMap");
    let (var, var2) = variable_names(at, names.collect(), IsComprehension(is_fold))?;
    let args: Vec<Expr> = args.collect();
    let macro_call = MacroCall {
        at,
        name,
        target,
        var,
        var2,
    };
    match name {
        "optMap" | "optFlatMap" => macro_call.optional(builder, args),
        "sortBy" => macro_call.sort_by(builder, args),
        "map" | "filter" | "transformList" => macro_call.list(builder, args),
        "transformMap" | "transformMapEntry" => macro_call.map(builder, args),
        _ => macro_call.quantifier(builder, args),
    }
}

/// The number of variables that the macro of this name and number of arguments binds; `None` if
/// there is no such macro.
fn variables(dialect: Dialect, name: &str, args: usize) -> Option<usize> {
    match (name, args) {
        ("all" | "exists" | "exists_one" | "filter", 2) | ("map", 2 | 3) => Some(1),
        ("sortBy", 2) if has_sort_by(dialect) => Some(1),
        ("optMap" | "optFlatMap", 2) if has_optionals(dialect) => Some(1),
        ("all" | "exists" | "exists_one" | "existsOne", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4)
            if has_two_variables(dialect) =>
        {
            Some(2)
        }
        _ => None,
    }
}

/// Whether a macro iterates over a list or map.
struct IsComprehension(bool);

/// The names of a macro's variables, from its first arguments. None may be the former name of
/// the accumulator.
fn variable_names(
    at: usize,
    args: Vec<Expr>,
    IsComprehension(is_fold): IsComprehension,
) -> Parse<(Arc<str>, Option<Arc<str>>)> {
    let wrong = |at, message: &str| SyntaxError {
        at,
        message: message.to_owned(),
    };
    let mut names = Vec::with_capacity(args.len());
    for arg in args {
        let Kind::Ident(name) = arg.kind else {
            return Err(wrong(arg.at, "argument must be a simple name"));
        };
        names.push((arg.at, name));
    }
    let mut names = names.into_iter();
    let Some((first_at, var)) = names.next() else {
        return Err(wrong(at, "argument must be a simple name"));
    };
    let second = names.next();
    if let Some((second_at, var2)) = &second
        && *var2 == var
    {
        let message = format!("duplicate variable name: {var}");
        return Err(wrong(*second_at, &message));
    }
    let all = [Some((first_at, var.clone())), second.clone()];
    for (at, name) in all.into_iter().flatten() {
        if is_fold && &*name == FORMER_ACCUMULATOR {
            let message = "iteration variable overwrites accumulator variable";
            return Err(wrong(at, message));
        }
    }
    Ok((var, second.map(|(_, name)| name)))
}

struct MacroCall<'m> {
    at: usize,
    name: &'m str,
    target: Expr,
    var: Arc<str>,
    var2: Option<Arc<str>>,
}

impl MacroCall<'_> {
    fn accumulator(&self, builder: &mut Builder) -> Parse<Expr> {
        builder.ident(self.at, &ACCUMULATOR)
    }

    fn fold(
        self,
        builder: &mut Builder,
        init: Expr,
        [condition, step, result]: [Expr; 3],
    ) -> Parse<Expr> {
        let Self {
            at,
            target,
            var,
            var2,
            ..
        } = self;
        let accu = Arc::clone(&ACCUMULATOR);
        builder.fold(
            at,
            Fold {
                range: target,
                var,
                var2,
                accu,
                init,
                condition,
                step,
                result,
            },
        )
    }

    /// `all`, `exists`, `exists_one`.
    fn quantifier(self, builder: &mut Builder, mut args: Vec<Expr>) -> Parse<Expr> {
        let Some(predicate) = args.pop() else {
            return Ok(self.target);
        };
        let at = self.at;
        let accu = self.accumulator(builder)?;
        match self.name {
            "all" => {
                let init = builder.literal(at, Value::Bool(true))?;
                let loop_condition =
                    builder.call(at, operator::NOT_STRICTLY_FALSE, vec![accu])?;
                let accu = self.accumulator(builder)?;
                let step = builder.call(at, operator::AND, vec![accu, predicate])?;
                let result = self.accumulator(builder)?;
                self.fold(builder, init, [loop_condition, step, result])
            }
            "exists" => {
                let init = builder.literal(at, Value::Bool(false))?;
                let not_yet = builder.call(at, operator::NOT, vec![accu])?;
                let loop_condition =
                    builder.call(at, operator::NOT_STRICTLY_FALSE, vec![not_yet])?;
                let accu = self.accumulator(builder)?;
                let step = builder.call(at, operator::OR, vec![accu, predicate])?;
                let result = self.accumulator(builder)?;
                self.fold(builder, init, [loop_condition, step, result])
            }
            _ => {
                let init = builder.literal(at, Value::Int(0))?;
                let loop_condition = builder.literal(at, Value::Bool(true))?;
                let one = builder.literal(at, Value::Int(1))?;
                let more = builder.call(at, operator::ADD, vec![accu, one])?;
                let accu = self.accumulator(builder)?;
                let step = builder.call(
                    at,
                    operator::CONDITIONAL,
                    vec![predicate, more, accu],
                )?;
                let one = builder.literal(at, Value::Int(1))?;
                let accu = self.accumulator(builder)?;
                let result = builder.call(at, operator::EQUALS, vec![accu, one])?;
                self.fold(builder, init, [loop_condition, step, result])
            }
        }
    }

    /// `map`, `filter` and `transformList`, with or without a condition.
    fn list(self, builder: &mut Builder, args: Vec<Expr>) -> Parse<Expr> {
        let at = self.at;
        let mut args = args.into_iter();
        let first = args.next();
        let (condition, item) = match (self.name, first, args.next()) {
            ("filter", Some(condition), _) => {
                (Some(condition), builder.ident(at, &self.var)?)
            }
            (_, Some(condition), Some(item)) => (Some(condition), item),
            (_, Some(item), None) => (None, item),
            (_, None, _) => return Ok(self.target),
        };
        let init = builder.list(at, Vec::new())?;
        let loop_condition = builder.literal(at, Value::Bool(true))?;
        let item = builder.list(at, vec![item])?;
        let accu = self.accumulator(builder)?;
        let step = builder.call(at, operator::ADD, vec![accu, item])?;
        let step = self.guarded(builder, condition, step)?;
        let result = self.accumulator(builder)?;
        self.fold(builder, init, [loop_condition, step, result])
    }

    /// `transformMap` and `transformMapEntry`.
    fn map(self, builder: &mut Builder, args: Vec<Expr>) -> Parse<Expr> {
        let at = self.at;
        let mut args = args.into_iter();
        let (condition, entry) = match (args.next(), args.next()) {
            (Some(condition), Some(entry)) => (Some(condition), entry),
            (Some(entry), None) => (None, entry),
            (None, _) => return Ok(self.target),
        };
        let init = builder.node(at, Kind::Map(Vec::new()))?;
        let loop_condition = builder.literal(at, Value::Bool(true))?;
        let accu = self.accumulator(builder)?;
        let mut inserted = vec![accu];
        if self.name == "transformMap" {
            inserted.push(builder.ident(at, &self.var)?);
        }
        inserted.push(entry);
        let step = builder.call(at, operator::MAP_INSERT, inserted)?;
        let step = self.guarded(builder, condition, step)?;
        let result = self.accumulator(builder)?;
        self.fold(builder, init, [loop_condition, step, result])
    }

    /// `condition ? step : accumulator`.
    fn guarded(
        &self,
        builder: &mut Builder,
        condition: Option<Expr>,
        step: Expr,
    ) -> Parse<Expr> {
        let Some(condition) = condition else {
            return Ok(step);
        };
        let accu = self.accumulator(builder)?;
        builder.call(self.at, operator::CONDITIONAL, vec![condition, step, accu])
    }

    /// `target.sortBy(var, key)`: the target, bound to a name, sorted by the list of keys.
    fn sort_by(self, builder: &mut Builder, args: Vec<Expr>) -> Parse<Expr> {
        const INPUT: &str = "@__sortBy_input__";
        let Self {
            at, target, var, ..
        } = self;
        let name: Arc<str> = Arc::from(INPUT);
        let input = builder.ident(at, &name)?;
        let mapped = MacroCall {
            at,
            name: "map",
            target: input,
            var,
            var2: None,
        };
        let keys = mapped.list(builder, args)?;
        let input = Some(Arc::new(builder.ident(at, &name)?));
        let function = list_ext::SORT_BY_KEYS.into();
        let sorted = builder.node(
            at,
            Kind::Call {
                target: input,
                function,
                args: vec![keys],
            },
        )?;
        bind(builder, at, (name, target), sorted)
    }

    /// `target.optMap(var, expr)`: `target.hasValue() ? optional.of(expr) : optional.none()`
    /// with `var` bound to `target.value()`.
    fn optional(self, builder: &mut Builder, mut args: Vec<Expr>) -> Parse<Expr> {
        let Some(body) = args.pop() else {
            return Ok(self.target);
        };
        let at = self.at;
        let target = Arc::new(self.target);
        let method = |builder: &mut Builder, name: &'static str| {
            let target = Some(Arc::clone(&target));
            builder.node(
                at,
                Kind::Call {
                    target,
                    function: name.into(),
                    args: Vec::new(),
                },
            )
        };
        let present = method(builder, "hasValue")?;
        let value = method(builder, "value")?;
        let bound = bind(builder, at, (self.var, value), body)?;
        let some = match self.name {
            "optMap" => builder.call(at, "optional.of", vec![bound])?,
            _ => bound,
        };
        let none = builder.call(at, "optional.none", Vec::new())?;
        builder.call(at, operator::CONDITIONAL, vec![present, some, none])
    }
}

/// `cel.bind(name, value, body)`.
fn binding(builder: &mut Builder, at: usize, args: Vec<Expr>) -> Parse<Expr> {
    let message = "cel.bind() variable names must be simple identifiers";
    let wrong = |at| SyntaxError {
        at,
        message: message.to_owned(),
    };
    let Ok([name, value, body]) = <[Expr; 3]>::try_from(args) else {
        return Err(wrong(at));
    };
    match name.kind {
        Kind::Ident(name) => bind(builder, at, (name, value), body),
        _ => Err(wrong(name.at)),
    }
}

/// `body` with a name bound to a value: a comprehension over an empty list, whose accumulator
/// is the name.
fn bind(
    builder: &mut Builder,
    at: usize,
    (name, value): (Arc<str>, Expr),
    body: Expr,
) -> Parse<Expr> {
    let condition = builder.literal(at, Value::Bool(false))?;
    let step = builder.ident(at, &name)?;
    let range = builder.list(at, Vec::new())?;
    let fold = Fold {
        range,
        var: Arc::clone(&NO_VARIABLE),
        var2: None,
        accu: name,
        init: value,
        condition,
        step,
        result: body,
    };
    builder.fold(at, fold)
}

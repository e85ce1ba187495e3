//! Literals whose text must make sense: durations, timestamps and patterns.

use crate::ast::{Expr, Fold, Kind};
use crate::time::{Duration, Timestamp};
use crate::{Value, pattern};

/// Reports every literal argument that its function would refuse.
pub(super) fn check(expr: &Expr, errors: &mut Vec<(usize, String)>) {
    if let Kind::Call {
        target,
        function,
        args,
    } = &expr.kind
    {
        let argument = match (&**function, &**args) {
            ("matches", [.., argument]) => Some(argument),
            ("duration" | "timestamp", [argument]) if target.is_none() => Some(argument),
            _ => None,
        };
        if let Some(argument) = argument
            && let Kind::Literal(Value::String(text)) = &argument.kind
            && !makes_sense(function, text)
        {
            errors.push((argument.at, format!("invalid {function} argument")));
        }
    }
    for_children(expr, &mut |child| check(child, errors));
}

fn makes_sense(function: &str, text: &str) -> bool {
    match function {
        "matches" => pattern::compile(text).is_ok(),
        "duration" => Duration::parse(text).is_some(),
        _ => Timestamp::parse(text).is_some(),
    }
}

fn for_children(expr: &Expr, each: &mut impl FnMut(&Expr)) {
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select { operand, .. } => each(operand),
        Kind::Call { target, args, .. } => {
            target.as_deref().into_iter().chain(args).for_each(each)
        }
        Kind::List(items) => items.iter().for_each(|item| each(&item.value)),
        Kind::Map(entries) => entries.iter().for_each(|entry| {
            each(&entry.key);
            each(&entry.value);
        }),
        Kind::Struct { fields, .. } => fields.iter().for_each(each),
        Kind::Fold(fold) => {
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

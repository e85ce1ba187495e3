//! The functions that an expression may call: one file for each library.
//!
//! A library is a table of overloads with their signatures, and the Kubernetes versions that
//! have them.

mod arithmetic;
mod authz;
mod cidr;
mod comparison;
mod conversion;
mod format;
pub(crate) mod format_text;
mod ip;
mod json_patch;
pub(crate) mod list_ext;
mod lists;
mod optionals;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
pub(crate) mod standard;
mod strings;
mod time;
mod url;

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

pub use format::mask_trailing_dash;

use crate::ast::{Function, operator};
use crate::fnv::FnvMap;
use crate::ty::signature;
use crate::{Env, RunError, Type, Value};

/// Computes a call from its arguments; a method's receiver is the first.
pub(crate) type Run = for<'v> fn(&[Value<'v>]) -> Result<Value<'v>, RunError>;

/// One overload as a library declares it.
struct Row {
    function: &'static str,
    id: &'static str,
    /// `string, int -> bool`; a capital letter is a type parameter.
    signature: &'static str,
    member: bool,
    run: Run,
}

/// A function called as `f(x)`.
const fn global(
    function: &'static str,
    id: &'static str,
    signature: &'static str,
    run: Run,
) -> Row {
    Row {
        function,
        id,
        signature,
        member: false,
        run,
    }
}

/// A function called as `x.f()`.
const fn member(
    function: &'static str,
    id: &'static str,
    signature: &'static str,
    run: Run,
) -> Row {
    Row {
        function,
        id,
        signature,
        member: true,
        run,
    }
}

/// Overloads that the same versions have.
struct Library {
    /// The first minor version that has it; 0 for all.
    since: u32,
    rows: &'static [Row],
}

const LIBRARIES: &[Library] = &[
    Library {
        since: 0,
        rows: standard::ROWS,
    },
    Library {
        since: 0,
        rows: arithmetic::ROWS,
    },
    Library {
        since: 0,
        rows: comparison::ROWS,
    },
    Library {
        since: 28,
        rows: comparison::CROSS_TYPE_ROWS,
    },
    Library {
        since: 0,
        rows: conversion::ROWS,
    },
    Library {
        since: 0,
        rows: time::ROWS,
    },
    Library {
        since: 0,
        rows: strings::ROWS,
    },
    Library {
        since: 29,
        rows: strings::ROWS_OF_1_29,
    },
    Library {
        since: 0,
        rows: regex::ROWS,
    },
    Library {
        since: 0,
        rows: lists::ROWS,
    },
    Library {
        since: 0,
        rows: url::ROWS,
    },
    Library {
        since: 27,
        rows: authz::ROWS,
    },
    Library {
        since: 31,
        rows: authz::SELECTOR_ROWS,
    },
    Library {
        since: 28,
        rows: quantity::ROWS,
    },
    Library {
        since: 30,
        rows: ip::ROWS,
    },
    Library {
        since: 30,
        rows: cidr::ROWS,
    },
    Library {
        since: 31,
        rows: format::ROWS,
    },
    Library {
        since: 33,
        rows: semver::ROWS,
    },
    Library {
        since: 28,
        rows: optionals::ROWS,
    },
    Library {
        since: 33,
        rows: optionals::ROWS_OF_1_33,
    },
    Library {
        since: 29,
        rows: sets::ROWS,
    },
    Library {
        since: 32,
        rows: standard::MAP_INSERT_ROWS,
    },
    Library {
        since: 34,
        rows: list_ext::ROWS,
    },
    Library {
        since: 37,
        rows: lists::ROWS_OF_1_37,
    },
];

/// One overload of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) function: &'static str,
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    /// The parameter types; a method's receiver comes first.
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    /// The names of the type parameters, in order of first appearance.
    pub(crate) type_params: Vec<Arc<str>>,
    since: u32,
    /// Whether the overload exists only in environments with patches.
    of_patches: bool,
    pub(crate) run: Run,
}

/// The overloads that a call may resolve to, nearly always one.
#[derive(Clone, Debug, Default)]
pub(crate) enum Overloads {
    #[default]
    None,
    One([&'static Overload; 1]),
    Several(Vec<&'static Overload>),
}

impl Overloads {
    pub(crate) fn push(&mut self, another: &'static Overload) {
        match self {
            Self::None => *self = Self::One([another]),
            Self::One([one]) => *self = Self::Several(vec![one, another]),
            Self::Several(all) => all.push(another),
        }
    }
}

impl Deref for Overloads {
    type Target = [&'static Overload];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Several(all) => all,
        }
    }
}

impl Overload {
    /// Whether values of these types may be passed, judged by their kinds.
    pub(crate) fn accepts(&self, args: &[Value<'_>]) -> bool {
        self.params.len() == args.len()
            && self
                .params
                .iter()
                .zip(args)
                .all(|(param, arg)| arg.may_be(param))
    }
}

impl Overload {
    /// Whether the function checks its arguments itself, for a call with this number of
    /// arguments.
    fn is_unguarded(&self, args: usize) -> bool {
        matches!(self.function, "distinct" | "flatten" | "sort")
            && self.params.len() == args
    }

    /// Whether the API server has one implementation for all overloads of the function, or does
    /// not check the types before it calls one.
    pub(crate) fn has_single_implementation(&self) -> bool {
        self.function.starts_with(['_', '@', '!', '-'])
            || matches!(
                self.function,
                "contains"
                    | "dyn"
                    | "endsWith"
                    | "matches"
                    | "size"
                    | "startsWith"
                    | "type"
            )
    }
}

static FUNCTIONS: LazyLock<FnvMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: FnvMap<&'static str, Vec<Overload>> = FnvMap::default();
    let of_patches = Library {
        since: 0,
        rows: json_patch::ROWS,
    };
    for library in LIBRARIES.iter().chain([&of_patches]) {
        for row in library.rows {
            let (params, result) = signature(row.signature);
            let mut type_params = Vec::new();
            for ty in params.iter().chain([&result]) {
                ty.name_params(&mut type_params);
            }
            functions.entry(row.function).or_default().push(Overload {
                function: row.function,
                id: row.id,
                member: row.member,
                params,
                result,
                type_params,
                since: library.since,
                of_patches: std::ptr::eq(library, &raw const of_patches),
                run: row.run,
            });
        }
    }
    functions
});

/// The overloads of a function that `env` has, in order of declaration.
pub(crate) fn overloads(
    function: &str,
    env: &Env,
) -> impl Iterator<Item = &'static Overload> {
    let all = FUNCTIONS
        .get(function)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let (minor, patches) = (env.dialect().minor(), env.has_patches());
    all.iter()
        .filter(move |it| it.since <= minor && (patches || !it.of_patches))
}

/// The function of this name in a source.
pub(crate) fn function(name: &str) -> Function {
    match FUNCTIONS.get_key_value(name) {
        Some((known, _)) => Function::Known(known),
        None => Function::Written(Arc::from(name)),
    }
}

/// The first parts of the function names that contain dots.
static NAMESPACES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = FUNCTIONS.keys().filter_map(|name| name.split_once('.'));
    let mut names: Vec<&str> = names.map(|(first, _)| first).collect();
    names.sort_unstable();
    names.dedup();
    names
});

/// Whether function names start with this name and a dot.
pub(crate) fn is_namespace(name: &str) -> bool {
    NAMESPACES.binary_search(&name).is_ok()
}

/// Calls the first overload that accepts the arguments.
///
/// # Errors
/// The error of the call, or that no overload accepts the arguments; most functions then report
/// their types.
pub(crate) fn call<'v>(
    overloads: &[&'static Overload],
    args: &[Value<'v>],
) -> Result<Value<'v>, RunError> {
    let takes = |it: &&&Overload| it.accepts(args) || it.is_unguarded(args.len());
    if let Some(overload) = overloads.iter().find(takes) {
        return (overload.run)(args);
    }
    let Some(first) = overloads.first() else {
        return no_such_overload();
    };
    if first.has_single_implementation() {
        return Err(no_overload_error(first.function, args));
    }
    let types: Vec<_> = args.iter().map(Value::type_name).collect();
    let types = types.join(", ");
    Err(RunError::text(format!(
        "no such overload: {}({types})",
        first.function
    )))
}

/// The error of an operator, or of a function with one implementation for all types. It
/// contains the function's name if the first argument's type does not implement the operation,
/// unless that type has methods, which the API server then searches without success.
fn no_overload_error(function: &'static str, args: &[Value<'_>]) -> RunError {
    use Value::{Bool, Bytes, Double, Duration, Int, List, Map, String, Timestamp, Uint};
    let Some(first) = args.first() else {
        return RunError::NO_SUCH_OVERLOAD;
    };
    let has_methods = matches!(first, String(_) | Duration(_) | Timestamp(_));
    let is_known = match function {
        "size" => matches!(first, Bytes(_) | List(_) | Map(_)),
        operator::ADD => {
            matches!(first, Int(_) | Uint(_) | Double(_) | Bytes(_) | List(_))
        }
        operator::SUBTRACT | operator::MULTIPLY | operator::DIVIDE => {
            matches!(first, Int(_) | Uint(_) | Double(_))
        }
        operator::MODULO => matches!(first, Int(_) | Uint(_)),
        operator::NEGATE => matches!(first, Int(_) | Double(_) | Bool(_)),
        operator::LESS
        | operator::LESS_EQUALS
        | operator::GREATER
        | operator::GREATER_EQUALS => {
            matches!(first, Int(_) | Uint(_) | Double(_) | Bytes(_) | Bool(_))
        }
        _ => true,
    };
    if is_known || has_methods {
        return RunError::NO_SUCH_OVERLOAD;
    }
    RunError::text(format!("no such overload: {function}"))
}

/// The maximum size of lists and texts that a function creates, in items and bytes. Only
/// functions whose cost does not bound their result check it; no evaluation that an API server
/// would finish reaches it.
const MAX_LIST_LENGTH: usize = 4_000_000;
const MAX_TEXT_SIZE: usize = 64 << 20;

/// Rejects a result larger than `largest`.
fn within(size: usize, largest: usize) -> Result<(), RunError> {
    if size <= largest {
        return Ok(());
    }
    Err(RunError::text(format!(
        "result is too large: {size}, the maximum is {largest}"
    )))
}

/// Rejects a list that would grow too long.
pub(crate) fn check_list_size(items: usize, more: usize) -> Result<(), RunError> {
    within(items.saturating_add(more), MAX_LIST_LENGTH)
}

/// The error of a call that no overload accepts.
pub(crate) fn no_such_overload<T>() -> Result<T, RunError> {
    Err(RunError::NO_SUCH_OVERLOAD)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_overload_has_a_unique_id() {
        let mut seen = HashSet::new();
        for overload in FUNCTIONS.values().flatten() {
            assert!(seen.insert(overload.id), "{}", overload.id);
        }
    }
}

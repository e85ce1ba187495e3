//! Checks literals: the elements of lists and maps are of one type, and durations, timestamps
//! and patterns are valid.

use crate::ast::{Expr, Kind};
use crate::library::format_text::{self, Part};
use crate::{Dialect, RunError, Type, Value};
use kubemu_gostd::regexp::Pattern;

/// Reports every literal that Kubernetes rejects, given the types of all expressions by id.
/// Returns the compiled patterns of literals, by id.
pub(super) fn check(
    root: &Expr,
    types: &[Type],
    dialect: Dialect,
    errors: &mut Vec<(usize, String)>,
) -> Vec<(usize, Pattern)> {
    let mut validator = Validator {
        types,
        arguments: dialect.minor() >= 29,
        errors,
        patterns: Vec::new(),
    };
    validator.visit(root, false);
    validator.patterns
}

struct Validator<'v> {
    types: &'v [Type],
    /// Whether arguments are checked.
    arguments: bool,
    errors: &'v mut Vec<(usize, String)>,
    patterns: Vec<(usize, Pattern)>,
}

impl Validator<'_> {
    /// Arguments of `format` may be of mixed types.
    fn visit(&mut self, expr: &Expr, formatted: bool) {
        let mut formatted = formatted;
        match &expr.kind {
            Kind::Call {
                target,
                function,
                args,
            } => match &**function {
                "format" => {
                    if self.arguments {
                        self.format(expr.at, target.as_deref(), args);
                    }
                    formatted = true;
                }
                "matches" | "duration" | "timestamp" if self.arguments => {
                    self.argument(function, target.is_some(), args);
                }
                _ => {}
            },
            Kind::List(items) if !formatted => {
                let items = items.iter().map(|item| (&item.value, item.optional));
                let first = self.others(items).into_iter().next();
                self.errors.extend(first);
            }
            Kind::Map(entries) if !formatted => {
                let keys = entries.iter().map(|entry| (&entry.key, false));
                let values = entries.iter().map(|entry| (&entry.value, entry.optional));
                let (keys, values) = (self.others(keys), self.others(values));
                self.errors.extend(keys.into_iter().chain(values));
            }
            _ => {}
        }
        expr.for_children(&mut |child| self.visit(child, formatted));
    }

    /// The errors of all values whose type differs from that of the first one. The caller
    /// reports only the first error for a list, and every error for a map.
    fn others<'e>(
        &self,
        values: impl Iterator<Item = (&'e Expr, bool)>,
    ) -> Vec<(usize, String)> {
        let mut first: Option<&Type> = None;
        let mut found = Vec::new();
        for (value, optional) in values {
            let ty = match self.types.get(value.id) {
                Some(Type::Optional(inner)) if optional => inner,
                Some(ty) => ty,
                None => continue,
            };
            match first {
                None => first = Some(ty),
                Some(first) if first == ty => {}
                Some(first) => {
                    let text = format!("expected type '{first}' but found '{ty}'");
                    found.push((value.at, text));
                }
            }
        }
        found
    }

    fn argument(&mut self, function: &str, member: bool, args: &[Expr]) {
        let argument = match (function, args) {
            ("matches", [.., argument]) => argument,
            ("duration" | "timestamp", [argument]) if !member => argument,
            _ => return,
        };
        let Kind::Literal(value) = &argument.kind else {
            return;
        };
        let makes_sense = match (function, value) {
            ("matches", Value::String(text)) => match Pattern::new(text) {
                Ok(pattern) => {
                    self.patterns.push((argument.id, pattern));
                    true
                }
                Err(_) => false,
            },
            ("duration", value) => value.to_duration().is_ok(),
            ("timestamp", value) => value.to_timestamp().is_ok(),
            _ => true,
        };
        if !makes_sense {
            self.errors
                .push((argument.at, format!("invalid {function} argument")));
        }
    }

    /// `'...'.format([...])` with a literal template and list: every clause must fit its
    /// argument.
    fn format(&mut self, at: usize, target: Option<&Expr>, args: &[Expr]) {
        let Some(Kind::Literal(Value::String(template))) =
            target.map(|target| &target.kind)
        else {
            return;
        };
        let [
            Expr {
                kind: Kind::List(items),
                ..
            },
        ] = args
        else {
            return;
        };
        let mut next = 0;
        for part in format_text::parts(template) {
            let wrong = match part {
                Ok(Part::Text(_)) => continue,
                Ok(Part::Clause(verb, _)) => {
                    let item = items.get(next);
                    next += 1;
                    match item {
                        None => Some((at, format_text::out_of_range(next - 1))),
                        Some(_) if !format_text::is_verb(verb) => {
                            Some((at, format_text::refused(verb, "")))
                        }
                        Some(item) => self.clause(verb, &item.value),
                    }
                }
                Ok(Part::End) => Some((at, format_text::unexpected_end())),
                Err(_) if next >= items.len() => {
                    Some((at, format_text::out_of_range(next)))
                }
                Err(error) => Some((at, error)),
            };
            if let Some((at, error)) = wrong {
                return self.errors.push((at, error.to_string()));
            }
        }
        if items.len() > next {
            let given = items.len();
            let text = format!(
                "too many arguments supplied to string.format (expected {next}, got {given})"
            );
            self.errors.push((at, text));
        }
    }

    /// Where and why an argument does not fit its clause.
    fn clause(&self, verb: char, argument: &Expr) -> Option<(usize, RunError)> {
        let ty = self.types.get(argument.id)?;
        let fits = match (verb, ty) {
            ('s', ty) => {
                !matches!(ty, Type::Optional(_) | Type::Abstract(_) | Type::Object(_))
            }
            (_, Type::Dyn | Type::Error | Type::Param(_))
            | ('d' | 'o' | 'b' | 'x' | 'X', Type::Int | Type::Uint)
            | ('b', Type::Bool)
            | ('x' | 'X', Type::String | Type::Bytes)
            | ('f' | 'e', Type::Double | Type::String) => true,
            _ => false,
        };
        if !fits {
            return Some((argument.at, format_text::refused(verb, &runtime_name(ty))));
        }
        // With `%s`, every part of a list or map must be printable.
        match &argument.kind {
            Kind::List(items) if verb == 's' => {
                items.iter().find_map(|item| self.clause(verb, &item.value))
            }
            Kind::Map(entries) if verb == 's' => entries.iter().find_map(|entry| {
                let key = self.clause(verb, &entry.key);
                key.or_else(|| self.clause(verb, &entry.value))
            }),
            _ => None,
        }
    }
}

/// The name that `type(x)` returns for a value of this type.
fn runtime_name(ty: &Type) -> String {
    match ty {
        Type::Null => "null_type".to_owned(),
        Type::Any => "google.protobuf.Any".to_owned(),
        Type::Timestamp | Type::Date => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(_) => "map".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Type(_) => "type".to_owned(),
        other => other.to_string(),
    }
}

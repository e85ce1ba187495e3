//! Small changes of expressions, as someone might make them by mistake.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lexer::{Sign, TokenKind};
use crate::outline::{Outline, Role};

/// A changed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mutation {
    /// The bytes of the source that are changed.
    pub bytes: Range<usize>,
    /// What is there instead. Empty if they are left out.
    pub replacement: String,
    /// The changed source.
    pub source: String,
}

/// The changes of an expression, each of a single place: of operators, bounds, texts, negations, names
/// of fields, quantifiers and conditions, and without each operand of `&&` and `||`, such as a guard
/// with `has()`. The changed sources need not compile. No two are the same.
pub fn mutations(source: &str) -> Vec<Mutation> {
    let outline = Outline::of(source);
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for part in &outline.parts {
        let bytes = outline.bytes_of(part);
        match &part.role {
            Role::Operand { left_out } => {
                changes.push((outline.bytes(left_out), String::new()));
            }
            Role::Condition | Role::Whole => {
                for constant in ["true", "false"] {
                    changes.push((bytes.clone(), constant.to_owned()));
                }
            }
            Role::Predicate => {}
        }
    }
    for index in 0..outline.tokens().len() {
        changes.extend(of_token(&outline, index));
    }
    changes.sort_by_key(|(bytes, _)| (bytes.start, bytes.end));
    let mut seen = BTreeSet::from([source.to_owned()]);
    let mutated = changes.into_iter().filter_map(|(bytes, replacement)| {
        let mut changed = source.to_owned();
        changed.replace_range(bytes.clone(), &replacement);
        seen.insert(changed.clone()).then_some(Mutation {
            bytes,
            replacement,
            source: changed,
        })
    });
    mutated.collect()
}

/// The changes of one token.
fn of_token(outline: &Outline<'_>, index: usize) -> Vec<(Range<usize>, String)> {
    let Some(token) = outline.tokens().get(index) else {
        return Vec::new();
    };
    let text = outline.text(index);
    let instead: Vec<String> = match token.kind {
        TokenKind::Sign(sign) => of_sign(outline, (index, sign)),
        TokenKind::Int => match text.parse::<i64>() {
            Ok(number) => [number.checked_add(1), number.checked_sub(1)]
                .into_iter()
                .flatten()
                .map(|it| it.to_string())
                .collect(),
            Err(_) => Vec::new(),
        },
        TokenKind::String => of_text(text).into_iter().collect(),
        TokenKind::Ident => of_name(outline, index),
        _ => Vec::new(),
    };
    let bytes = token.bytes();
    instead.into_iter().map(|it| (bytes.clone(), it)).collect()
}

fn of_sign(outline: &Outline<'_>, (index, sign): (usize, Sign)) -> Vec<String> {
    let before = index.checked_sub(1).and_then(|it| outline.kind(it));
    let instead: &[&str] = match sign {
        Sign::And => &["||"],
        Sign::Or => &["&&"],
        Sign::Equals => &["!="],
        Sign::NotEquals => &["=="],
        Sign::Less => &["<=", ">="],
        Sign::LessEquals => &["<", ">"],
        Sign::Greater => &[">=", "<="],
        Sign::GreaterEquals => &[">", "<"],
        Sign::Plus => &["-"],
        // A sign of a number is no operator.
        Sign::Minus if before.is_some_and(ends_value) => &["+"],
        Sign::Star => &["/"],
        Sign::Slash => &["*"],
        Sign::Not => &[""],
        Sign::True => &["false"],
        Sign::False => &["true"],
        _ => &[],
    };
    instead.iter().map(|it| (*it).to_owned()).collect()
}

fn ends_value(kind: TokenKind) -> bool {
    use Sign::{RightBrace, RightBracket, RightParen};
    match kind {
        TokenKind::Sign(sign) => matches!(sign, RightParen | RightBracket | RightBrace),
        TokenKind::End => false,
        _ => true,
    }
}

/// The text with another character at its end.
fn of_text(text: &str) -> Option<String> {
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let quote = quotes.into_iter().find(|it| text.ends_with(it))?;
    let inner = text.strip_suffix(quote)?;
    Some(format!("{inner}x{quote}"))
}

/// Another quantifier, the old object in place of the new one, or another field of the expression.
fn of_name(outline: &Outline<'_>, index: usize) -> Vec<String> {
    let name = outline.text(index);
    let is_member =
        index.checked_sub(1).and_then(|it| outline.sign(it)) == Some(Sign::Dot);
    let is_called = outline.sign(index + 1) == Some(Sign::LeftParen);
    let instead = match (name, is_member, is_called) {
        ("all" | "exists_one", true, true) => "exists",
        ("exists", true, true) => "all",
        ("startsWith", true, true) => "endsWith",
        ("endsWith", true, true) => "startsWith",
        ("self", false, false) => "oldSelf",
        ("oldSelf", false, false) => "self",
        ("object", false, false) => "oldObject",
        ("oldObject", false, false) => "object",
        (_, true, false) => match other_field(outline, name) {
            Some(other) => other,
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    vec![instead.to_owned()]
}

/// The field of the expression after this one.
fn other_field<'s>(outline: &Outline<'s>, name: &str) -> Option<&'s str> {
    let mut fields: Vec<&'s str> = Vec::new();
    for index in 1..outline.tokens().len() {
        let is_member = outline.sign(index - 1) == Some(Sign::Dot);
        let is_called = outline.sign(index + 1) == Some(Sign::LeftParen);
        let is_name = outline.kind(index) == Some(TokenKind::Ident);
        let field = outline.text(index);
        if is_member && is_name && !is_called && !fields.contains(&field) {
            fields.push(field);
        }
    }
    let at = fields.iter().position(|it| *it == name)?;
    let others = fields.iter().cycle().skip(at + 1);
    others.copied().next().filter(|it| *it != name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(source: &str) -> Vec<String> {
        mutations(source).into_iter().map(|it| it.source).collect()
    }

    #[test]
    fn operators_bounds_and_negations_are_changed() {
        assert_eq!(
            sources("!a.b <= 10"),
            [
                "a.b <= 10",
                "true",
                "false",
                "!a.b < 10",
                "!a.b > 10",
                "!a.b <= 11",
                "!a.b <= 9"
            ]
        );
    }

    #[test]
    fn a_guard_is_left_out() {
        let found = sources("!has(self.a) || self.a > self.b");
        for wanted in [
            " self.a > self.b",
            "!has(self.a) ",
            "!has(self.a) && self.a > self.b",
            "has(self.a) || self.a > self.b",
            "!has(self.b) || self.a > self.b",
            "!has(self.a) || self.b > self.b",
            "!has(self.a) || self.a > self.a",
            "!has(self.a) || oldSelf.a > self.b",
        ] {
            assert!(found.iter().any(|it| it == wanted), "{wanted}: {found:#?}");
        }
    }

    #[test]
    fn texts_quantifiers_and_conditions_are_changed() {
        let found = sources("a.all(x, x ? x.startsWith('b') : -1 - 2 < 3)");
        for wanted in [
            "a.exists(x, x ? x.startsWith('b') : -1 - 2 < 3)",
            "a.all(x, true ? x.startsWith('b') : -1 - 2 < 3)",
            "a.all(x, x ? x.endsWith('b') : -1 - 2 < 3)",
            "a.all(x, x ? x.startsWith('bx') : -1 - 2 < 3)",
            "a.all(x, x ? x.startsWith('b') : -1 + 2 < 3)",
        ] {
            assert!(found.iter().any(|it| it == wanted), "{wanted}: {found:#?}");
        }
        assert!(!found.iter().any(|it| it.contains("+1")), "{found:#?}");
    }

    #[test]
    fn no_change_leaves_the_source_as_it_is_and_none_is_there_twice() {
        for source in ["", "true", "a && a", "\u{e9} == '\u{e9}'", "((", "a ? b"] {
            let found = sources(source);
            let distinct: BTreeSet<&String> = found.iter().collect();
            assert_eq!(distinct.len(), found.len(), "{found:?}");
            assert!(!found.contains(&source.to_owned()));
        }
    }
}

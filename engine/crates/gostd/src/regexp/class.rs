//! Character classes: in brackets, with a backslash, and by name.

use super::escape::{self, Point, push_range};
use super::{syntax_error, unicode};

/// The names of POSIX classes, as in `[:alpha:]`.
const NAMED: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
    "punct", "space", "upper", "word", "xdigit",
];

/// The ASCII members of `\d`, `\s` and `\w`, as written inside brackets.
const PERL: &[(char, &str)] = &[('d', "0-9"), ('s', r"\t\n\x0c\r "), ('w', "0-9A-Za-z_")];

/// Parses a class such as `\d` or `\pN` at the start of `at`, adds it to `out` and returns the
/// rest; `None` if there is no class. `inside` is whether the class is inside brackets.
///
/// # Errors
/// Go's error.
pub(super) fn escaped<'p>(
    at: &'p str,
    out: &mut String,
    inside: bool,
) -> Result<Option<&'p str>, String> {
    let Some(after) = at.strip_prefix('\\') else {
        return Ok(None);
    };
    let mut chars = after.chars();
    let Some(letter) = chars.next() else {
        return Ok(None);
    };
    if matches!(letter, 'p' | 'P') {
        return by_name(at, out).map(Some);
    }
    let small = letter.to_ascii_lowercase();
    let Some((_, members)) = PERL.iter().find(|(letter, _)| *letter == small) else {
        return Ok(None);
    };
    match (letter == small, inside) {
        (true, true) => out.push_str(members),
        (true, false) => out.extend(["[", members, "]"]),
        (false, _) => out.extend(["[^", members, "]"]),
    }
    Ok(Some(chars.as_str()))
}

/// `\pN`, `\p{Greek}`, `\P{Greek}`, `\p{^Greek}`.
fn by_name<'p>(at: &'p str, out: &mut String) -> Result<&'p str, String> {
    let (letter, after) = at.split_at(2.min(at.len()));
    let mut negated = letter == r"\P";
    let (mut name, rest) = if let Some(inner) = after.strip_prefix('{') {
        let unclosed = || syntax_error("invalid character class range", at);
        inner.split_once('}').ok_or_else(unclosed)?
    } else {
        let size = after.chars().next().map_or(0, char::len_utf8);
        after.split_at(size)
    };
    if let Some(positive) = name.strip_prefix('^') {
        (negated, name) = (!negated, positive);
    }
    let Some(class) = unicode::class(name) else {
        let read = at.get(..at.len() - rest.len()).unwrap_or(at);
        return Err(syntax_error("invalid character class range", read));
    };
    if negated {
        out.extend(["[^", &class, "]"]);
    } else {
        out.push_str(&class);
    }
    Ok(rest)
}

/// Parses the bracketed class at the start of `at`, adds it to `out` and returns the rest.
///
/// # Errors
/// Go's error.
pub(super) fn in_brackets<'p>(at: &'p str, out: &mut String) -> Result<&'p str, String> {
    let mut rest = at.strip_prefix('[').unwrap_or(at);
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut is_first = true;
    while is_first || !rest.starts_with(']') {
        is_first = false;
        rest = match named(rest, out)? {
            Some(after) => after,
            None => match escaped(rest, out, true)? {
                Some(after) => after,
                None => range(rest, out, at)?,
            },
        };
    }
    out.push(']');
    Ok(rest.strip_prefix(']').unwrap_or(rest))
}

/// `[:alpha:]` and the like.
fn named<'p>(at: &'p str, out: &mut String) -> Result<Option<&'p str>, String> {
    let inner = at.strip_prefix("[:").and_then(|it| it.split_once(":]"));
    let Some((name, rest)) = inner else {
        return Ok(None);
    };
    let read = at.get(..at.len() - rest.len()).unwrap_or(at);
    if !NAMED.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(syntax_error("invalid character class range", read));
    }
    out.push_str(read);
    Ok(Some(rest))
}

/// Parses a character or a range; `whole` is the text from the opening bracket.
fn range<'p>(at: &'p str, out: &mut String, whole: &str) -> Result<&'p str, String> {
    let (first, mut rest) = member(at, whole)?;
    let mut last = first;
    if let Some(after) = rest.strip_prefix('-')
        && !after.is_empty()
        && !after.starts_with(']')
    {
        (last, rest) = member(after, whole)?;
        if last.0 < first.0 {
            let read = at.get(..at.len() - rest.len()).unwrap_or(at);
            return Err(syntax_error("invalid character class range", read));
        }
    }
    push_range(out, first, last);
    Ok(rest)
}

fn member<'p>(at: &'p str, whole: &str) -> Result<(Point, &'p str), String> {
    if at.starts_with('\\') {
        return escape::escaped(at);
    }
    let mut chars = at.chars();
    match chars.next() {
        Some(c) => Ok((Point(c.into()), chars.as_str())),
        None => Err(syntax_error("missing closing ]", whole)),
    }
}

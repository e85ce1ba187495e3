//! Parses patterns like Go's `regexp/syntax` (1.26), and translates them to the syntax of the
//! `regex` crate.

use super::escape::{self, Point, push_literal};
use super::{class, syntax_error};

/// Maximum repetition count of RE2, as in `a{1000}` and, for the product of nested ones,
/// `(a{50}){20}`.
const MAX_REPEATS: u64 = 1000;
/// Maximum number of steps of a pattern in Go: 128 MiB of them.
const MAX_INSTRUCTIONS: u64 = (128 << 20) / 40;

/// The pattern in the syntax of the `regex` crate.
///
/// # Errors
/// Go's message for a pattern that it would not compile.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        level: Level::default(),
        outer: Vec::new(),
        operator: None,
    };
    while !translator.rest.is_empty() {
        translator.step()?;
    }
    if translator.outer.is_empty() {
        Ok(translator.out)
    } else {
        Err(syntax_error("missing closing )", pattern))
    }
}

struct Translator<'p> {
    whole: &'p str,
    rest: &'p str,
    out: String,
    /// The innermost open group, or the whole pattern.
    level: Level,
    outer: Vec<Level>,
    /// The start of the repetition operator that immediately precedes.
    operator: Option<&'p str>,
}

/// The parsed part of a group.
#[derive(Default)]
struct Level {
    /// Its start in the output.
    start: usize,
    captures: bool,
    /// The weight of all items except the last.
    weight: Weight,
    last: Option<Item>,
}

/// An item that can be repeated.
#[derive(Clone, Copy)]
struct Item {
    /// Its start in the output.
    start: usize,
    end: usize,
    is_repeated: bool,
    weight: Weight,
}

/// The size of an item in Go.
#[derive(Clone, Copy)]
struct Weight {
    /// The number of steps.
    size: u64,
    /// The product of nested repetition counts.
    repeats: u64,
}

impl Default for Weight {
    fn default() -> Self {
        Self {
            size: 0,
            repeats: 1,
        }
    }
}

impl Level {
    /// The weight of all items.
    fn sum(&self) -> Weight {
        let last = self.last.map(|last| last.weight).unwrap_or_default();
        Weight {
            size: self.weight.size.saturating_add(last.size),
            repeats: self.weight.repeats.max(last.repeats),
        }
    }

    /// Starts another alternative.
    fn branch(&mut self) {
        self.weight = self.sum();
        self.weight.size = self.weight.size.saturating_add(1);
        self.last = None;
    }
}

impl<'p> Translator<'p> {
    fn step(&mut self) -> Result<(), String> {
        let at = self.rest;
        let Some(c) = self.next() else {
            return Ok(());
        };
        let mut operator = None;
        match c {
            '(' => self.open(at)?,
            '|' => {
                self.out.push('|');
                self.level.branch();
            }
            ')' => self.close()?,
            '^' | '$' | '.' => {
                let start = self.out.len();
                self.out.push(c);
                self.add(start, 1);
            }
            '[' => {
                let start = self.out.len();
                self.rest = class::in_brackets(at, &mut self.out)?;
                self.add(start, 1);
            }
            '*' | '+' | '?' => {
                let (least, most) = match c {
                    '*' => (0, None),
                    '+' => (1, None),
                    _ => (0, Some(1)),
                };
                self.repeat(at, least, most)?;
                operator = Some(at);
            }
            '{' => match counted(at) {
                Some((least, most, rest)) => {
                    self.rest = rest;
                    self.count(at, least, most)?;
                    operator = Some(at);
                }
                None => self.literal(Point(c.into())),
            },
            '\\' => self.escape(at)?,
            c => self.literal(Point(c.into())),
        }
        self.operator = operator;
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    /// The text parsed since `at`.
    fn since(&self, at: &'p str) -> &'p str {
        at.get(..at.len() - self.rest.len()).unwrap_or(at)
    }

    /// Records the output since `start` as one item.
    fn add(&mut self, start: usize, size: u64) {
        self.add_item(start, Weight { size, repeats: 1 });
    }

    fn add_item(&mut self, start: usize, weight: Weight) {
        self.level.weight = self.level.sum();
        self.level.last = Some(Item {
            start,
            end: self.out.len(),
            is_repeated: false,
            weight,
        });
    }

    fn literal(&mut self, point: Point) {
        let start = self.out.len();
        push_literal(&mut self.out, point);
        self.add(start, 1);
    }

    /// Parses an escape outside a class.
    fn escape(&mut self, at: &'p str) -> Result<(), String> {
        let start = self.out.len();
        let letter = self.rest.chars().next();
        let assertion = match letter {
            Some('A') => Some(r"\A"),
            Some('z') => Some(r"\z"),
            Some('b') => Some(r"(?-u:\b)"),
            Some('B') => Some(r"(?-u:\B)"),
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.next();
            self.out.push_str(assertion);
            self.add(start, 1);
        } else if letter == Some('Q') {
            let inner = self.rest.strip_prefix('Q').unwrap_or_default();
            let (quoted, rest) = inner.split_once(r"\E").unwrap_or((inner, ""));
            self.rest = rest;
            for c in quoted.chars() {
                self.literal(Point(c.into()));
            }
        } else if let Some(rest) = class::escaped(at, &mut self.out, false)? {
            self.rest = rest;
            self.add(start, 1);
        } else {
            let (point, rest) = escape::escaped(at)?;
            self.rest = rest;
            self.literal(point);
        }
        Ok(())
    }

    /// Parses `{n}`, `{n,}` or `{n,m}`.
    fn count(
        &mut self,
        at: &'p str,
        least: u64,
        most: Option<u64>,
    ) -> Result<(), String> {
        let upper = most.unwrap_or(least);
        if least > upper || upper > MAX_REPEATS {
            return Err(syntax_error("invalid repeat count", self.since(at)));
        }
        let counted = self.repeat(at, least, most)?;
        if counted > MAX_REPEATS && upper >= 2 {
            return Err(syntax_error("invalid repeat count", self.since(at)));
        }
        Ok(())
    }

    /// Repeats the last item with the operator parsed since `at`; returns the product of
    /// nested repetition counts.
    fn repeat(
        &mut self,
        at: &'p str,
        least: u64,
        most: Option<u64>,
    ) -> Result<u64, String> {
        if let Some(after) = self.rest.strip_prefix('?') {
            self.rest = after;
        }
        if let Some(from) = self.operator {
            let both = self.since(from);
            return Err(syntax_error("invalid nested repetition operator", both));
        }
        let operator = self.since(at);
        let Some(item) = self.level.last else {
            return Err(syntax_error(
                "missing argument to repetition operator",
                operator,
            ));
        };
        let (mut end, once) = (item.end, item.weight);
        if item.is_repeated {
            // A group keeps the two operators apart.
            self.out.insert(end, ')');
            self.out.insert_str(item.start, "(?:");
            end += 4;
        }
        self.out.insert_str(end, operator);
        let is_counted = operator.starts_with('{');
        let times = most.unwrap_or(least);
        let size = match most {
            Some(most) => once.size.saturating_mul(most).saturating_add(most - least),
            None if least == 0 => once.size.saturating_add(2),
            None => once.size.saturating_mul(least).saturating_add(1),
        };
        let repeats = match times {
            0 if most == Some(0) => 1,
            times if is_counted => once.repeats.saturating_mul(times.max(1)),
            _ => once.repeats,
        };
        let weight = Weight { size, repeats };
        self.level.last = Some(Item {
            start: item.start,
            end: end + operator.len(),
            is_repeated: true,
            weight,
        });
        if self.level.sum().size > MAX_INSTRUCTIONS {
            return Err(syntax_error("expression too large", self.whole));
        }
        Ok(repeats)
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(outer) = self.outer.pop() else {
            return Err(syntax_error("unexpected )", self.whole));
        };
        self.out.push(')');
        let inner = std::mem::replace(&mut self.level, outer);
        let mut weight = inner.sum();
        weight.size = weight.size.max(1) + if inner.captures { 2 } else { 0 };
        self.add_item(inner.start, weight);
        Ok(())
    }

    /// Parses the start of a group, or flags for the rest of the open group.
    fn open(&mut self, at: &'p str) -> Result<(), String> {
        let start = self.out.len();
        let Some(inner) = self.rest.strip_prefix('?') else {
            self.out.push('(');
            self.enter(start, true);
            return Ok(());
        };
        let name = inner.strip_prefix("P<").or_else(|| inner.strip_prefix('<'));
        // Go requires text after the bracket.
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return self.open_named(at, name);
        }
        self.rest = inner;
        let flags = self.flags(at)?;
        if self.since(at).ends_with(')') {
            if !flags.is_empty() {
                self.out.extend(["(?", &flags, ")"]);
            }
        } else {
            self.out.extend(["(?", &flags, ":"]);
            self.enter(start, false);
        }
        Ok(())
    }

    fn enter(&mut self, start: usize, captures: bool) {
        let level = Level {
            start,
            captures,
            ..Level::default()
        };
        self.outer.push(std::mem::replace(&mut self.level, level));
    }

    /// Parses the start of a named group; the name is not used.
    fn open_named(&mut self, at: &'p str, name: &'p str) -> Result<(), String> {
        let what = "invalid named capture";
        let Some((name, rest)) = name.split_once('>') else {
            return Err(syntax_error(what, at));
        };
        self.rest = rest;
        let is_inner = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || !name.chars().all(is_inner) {
            return Err(syntax_error(what, self.since(at)));
        }
        let start = self.out.len();
        self.out.push('(');
        self.enter(start, true);
        Ok(())
    }

    /// Parses flags up to and including the terminating colon or parenthesis; each occurs once
    /// in the result.
    fn flags(&mut self, at: &'p str) -> Result<String, String> {
        let (mut on, mut off) = (String::new(), String::new());
        let (mut negated, mut is_open) = (false, false);
        while let Some(c) = self.next() {
            match c {
                'i' | 'm' | 's' | 'U' => {
                    on.retain(|flag| flag != c);
                    off.retain(|flag| flag != c);
                    if negated { &mut off } else { &mut on }.push(c);
                    is_open = false;
                }
                '-' if !negated => (negated, is_open) = (true, true),
                ':' | ')' if !is_open => {
                    let minus = if off.is_empty() { "" } else { "-" };
                    return Ok([on.as_str(), minus, &off].concat());
                }
                _ => break,
            }
        }
        let what = "invalid or unsupported Perl syntax";
        Err(syntax_error(what, self.since(at)))
    }
}

/// Parses `{n}`, `{n,}` or `{n,m}` at the start of `at`; returns the bounds and the rest. The
/// second bound is `None` if there is no upper bound. `None` if the brace is literal.
fn counted(at: &str) -> Option<(u64, Option<u64>, &str)> {
    let (least, rest) = number(at.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => number(rest).map(|(most, rest)| (Some(most), rest))?,
    };
    Some((least, most, rest.strip_prefix('}')?))
}

/// Parses a number without leading zeros; saturates at the maximum.
fn number(at: &str) -> Option<(u64, &str)> {
    let rest = at.trim_start_matches(|c: char| c.is_ascii_digit());
    let (digits, _) = at.split_at(at.len() - rest.len());
    let is_number = digits == "0" || !digits.is_empty() && !digits.starts_with('0');
    is_number.then(|| (digits.parse().unwrap_or(u64::MAX), rest))
}

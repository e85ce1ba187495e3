//! What no case reaches of the expressions.

use std::io::{self, Write};

use kubemu_cel::{Coverage, Part};
use kubemu_terminal::plain;
use serde::Serialize;

use super::rule::{Role, Rule};

/// How many results of expressions the cases reach, and which not.
///
/// A part that is true or false has two results: a rule, a condition, and in them each operand of `&&`
/// and `||`, each condition of `?:` and each predicate of a macro. A message or another value has one.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Covered {
    expressions: usize,
    results: usize,
    reached: usize,
    pub(super) missing: Vec<Missing>,
}

/// A result that no case reaches.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Missing {
    pub(super) file: String,
    pub(super) line: usize,
    expression: String,
    /// `is not reached`, `is never true` or `is never false`.
    what: &'static str,
}

impl Missing {
    /// The expression on one line, and what no case reaches of it.
    pub(super) fn text(&self) -> String {
        let words: Vec<&str> = self.expression.split_whitespace().collect();
        format!("{} {}", plain::line(&words.join(" ")), self.what)
    }
}

impl Covered {
    /// Adds the expressions of one suite.
    pub(super) fn add(&mut self, rules: &[Rule], coverage: &Coverage) {
        for rule in rules {
            self.expressions += 1;
            let parts = coverage.parts(&rule.source);
            if parts.is_empty() {
                self.results += 1;
                self.miss(rule, 0..rule.source.len(), "is not reached");
            }
            let mut unreached = 0;
            for (at, part) in parts.iter().enumerate() {
                let is_inner = part.bytes.start < unreached;
                let what = self.count(part, at == 0 && rule.role != Role::Decision);
                // What is in a part that is not reached is not reached either.
                if is_inner {
                    continue;
                }
                if what == Some("is not reached") {
                    unreached = part.bytes.end;
                }
                if let Some(what) = what {
                    self.miss(rule, part.bytes.clone(), what);
                }
            }
        }
    }

    /// Counts the results of a part, and says what is missing.
    fn count(&mut self, part: &Part, is_value: bool) -> Option<&'static str> {
        let results = if is_value { 1 } else { 2 };
        self.results += results;
        if !part.is_reached() {
            return Some("is not reached");
        }
        // A value of a dynamic type need not be a bool.
        if is_value || part.was_other {
            self.reached += results;
            return None;
        }
        self.reached += usize::from(part.was_true) + usize::from(part.was_false);
        match (part.was_true, part.was_false) {
            (true, true) => None,
            (true, false) => Some("is never false"),
            (false, true) => Some("is never true"),
            (false, false) => Some("is never true or false, but an error"),
        }
    }

    fn miss(&mut self, rule: &Rule, bytes: std::ops::Range<usize>, what: &'static str) {
        let expression = rule.source.get(bytes.clone()).unwrap_or_default();
        self.missing.push(Missing {
            file: rule.file.clone(),
            line: rule.line_of(bytes.start),
            expression: expression.to_owned(),
            what,
        });
    }

    /// Prints the numbers and what is missing.
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self {
            expressions,
            results,
            reached,
            missing,
        } = self;
        writeln!(
            out,
            "coverage: {reached} of {results} results of {expressions} expressions"
        )?;
        for it in missing {
            let place = format!("{}:{}", it.file, it.line);
            writeln!(out, "  {}: {}", plain::line(&place), it.text())?;
        }
        Ok(())
    }
}

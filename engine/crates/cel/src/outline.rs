//! The parts of a source that decide: the operands of `&&` and `||`, the conditions of `?:`, and the
//! predicates of macros.
//!
//! They are found among the tokens, because a parsed expression has no texts, and its macros are
//! expanded.

use std::ops::Range;

use crate::lexer::{Sign, Token, TokenKind, tokens};

/// The tokens of a source, and its parts.
#[derive(Debug)]
pub(crate) struct Outline<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    pub(crate) parts: Vec<Part>,
}

/// A part of a source.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) role: Role,
    /// Its tokens.
    tokens: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// The whole source.
    Whole,
    /// An operand; with the tokens to leave out so that the others remain.
    Operand { left_out: Range<usize> },
    /// The condition of `?:`.
    Condition,
    /// The predicate of a macro, for each item.
    Predicate,
}

/// The deepest nesting that is entered. The parser does not accept more.
const MAX_DEPTH: usize = 300;

impl<'s> Outline<'s> {
    pub(crate) fn of(source: &'s str) -> Self {
        let (tokens, _) = tokens(source);
        let end = tokens.len().saturating_sub(1);
        let mut outline = Self {
            source,
            tokens,
            parts: Vec::new(),
        };
        outline.add(Role::Whole, 0..end);
        outline.expression(0..end, 0);
        outline
    }

    /// The smallest part with the node at this position, in code points.
    pub(crate) fn part_at(&self, at: usize) -> Option<&Part> {
        let position =
            |index: usize| self.tokens.get(index).map_or(usize::MAX, |it| it.at());
        let holds =
            |it: &&Part| position(it.tokens.start) <= at && at < position(it.tokens.end);
        let parts = self.parts.iter().filter(holds);
        parts.min_by_key(|it| it.tokens.len())
    }

    /// The bytes of these tokens.
    pub(crate) fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        let of = |index: usize| self.tokens.get(index).map(|it| it.bytes());
        let start = of(tokens.start).map_or(self.source.len(), |it| it.start);
        let last = tokens.end.checked_sub(1).and_then(of);
        start..last.map_or(start, |it| it.end).max(start)
    }

    pub(crate) fn bytes_of(&self, part: &Part) -> Range<usize> {
        self.bytes(&part.tokens)
    }

    /// The tokens, without that of the end.
    pub(crate) fn tokens(&self) -> &[Token] {
        let end = self.tokens.len().saturating_sub(1);
        self.tokens.get(..end).unwrap_or_default()
    }

    /// The sign at an index.
    pub(crate) fn sign(&self, index: usize) -> Option<Sign> {
        match self.tokens.get(index)?.kind {
            TokenKind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    pub(crate) fn kind(&self, index: usize) -> Option<TokenKind> {
        self.tokens.get(index).map(|it| it.kind)
    }

    /// The text of a token.
    pub(crate) fn text(&self, index: usize) -> &'s str {
        self.tokens.get(index).map_or("", |it| it.text(self.source))
    }

    fn add(&mut self, role: Role, tokens: Range<usize>) {
        if !tokens.is_empty() {
            self.parts.push(Part { role, tokens });
        }
    }

    /// The indexes in a range that are not in a bracket of it.
    fn outer(&self, range: Range<usize>) -> Vec<usize> {
        let mut depth = 0_usize;
        let mut found = Vec::new();
        for index in range {
            match self.sign(index) {
                Some(Sign::LeftParen | Sign::LeftBracket | Sign::LeftBrace) => {
                    if depth == 0 {
                        found.push(index);
                    }
                    depth += 1;
                }
                Some(Sign::RightParen | Sign::RightBracket | Sign::RightBrace) => {
                    depth = depth.saturating_sub(1);
                }
                _ if depth == 0 => found.push(index),
                _ => {}
            }
        }
        found
    }

    fn expression(&mut self, range: Range<usize>, depth: usize) {
        if depth > MAX_DEPTH || range.is_empty() {
            return;
        }
        let outer = self.outer(range.clone());
        if let Some((question, colon)) = self.conditional(&outer, range.start) {
            self.add(Role::Condition, range.start..question);
            for part in [
                range.start..question,
                question + 1..colon,
                colon + 1..range.end,
            ] {
                self.expression(part, depth + 1);
            }
            return;
        }
        for operator in [Sign::Or, Sign::And] {
            let operators = outer.iter().copied();
            let operators: Vec<usize> = operators
                .filter(|it| self.sign(*it) == Some(operator))
                .collect();
            if !operators.is_empty() {
                self.operands(&operators, range, depth);
                return;
            }
        }
        for open in outer {
            if let Some(close) = self.closing(open, range.end) {
                self.bracket(open, close, depth);
            }
        }
    }

    /// The `?` and the `:` of the outermost conditional. `?` is part of another operator before a
    /// dot and at the start of an index, an item or an entry.
    fn conditional(&self, outer: &[usize], start: usize) -> Option<(usize, usize)> {
        let mut question = None;
        let mut open = 0_usize;
        for index in outer.iter().copied() {
            match self.sign(index) {
                Some(Sign::Question) if index != start && !self.is_optional(index) => {
                    question.get_or_insert(index);
                    open += 1;
                }
                Some(Sign::Colon) if open > 0 => {
                    open -= 1;
                    if open == 0 {
                        return Some((question?, index));
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn is_optional(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|it| self.sign(it));
        before == Some(Sign::Dot)
    }

    fn operands(&mut self, operators: &[usize], range: Range<usize>, depth: usize) {
        let starts =
            std::iter::once(range.start).chain(operators.iter().map(|it| it + 1));
        let ends = operators.iter().copied().chain([range.end]);
        let operands: Vec<Range<usize>> = starts.zip(ends).map(|(a, b)| a..b).collect();
        for operand in operands {
            let left_out = if operand.start == range.start {
                operand.start..operand.end + 1
            } else {
                operand.start - 1..operand.end
            };
            self.add(Role::Operand { left_out }, operand.clone());
            self.expression(operand, depth + 1);
        }
    }

    fn closing(&self, open: usize, end: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for index in open..end {
            match self.sign(index) {
                Some(Sign::LeftParen | Sign::LeftBracket | Sign::LeftBrace) => depth += 1,
                Some(Sign::RightParen | Sign::RightBracket | Sign::RightBrace) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(index);
                    }
                }
                _ if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// The arguments, items or entries in a bracket.
    fn bracket(&mut self, open: usize, close: usize, depth: usize) {
        let inner = open + 1..close;
        let commas = self.outer(inner.clone()).into_iter();
        let commas: Vec<usize> = commas
            .filter(|it| self.sign(*it) == Some(Sign::Comma))
            .collect();
        let starts = std::iter::once(inner.start).chain(commas.iter().map(|it| it + 1));
        let ends = commas.iter().copied().chain([inner.end]);
        let segments: Vec<Range<usize>> = starts.zip(ends).map(|(a, b)| a..b).collect();
        let predicate = self.predicate(open, segments.len());
        for (at, segment) in segments.into_iter().enumerate() {
            if predicate == Some(at) {
                self.add(Role::Predicate, segment.clone());
            }
            let colon = self.outer(segment.clone()).into_iter();
            let mut colon = colon.filter(|it| self.sign(*it) == Some(Sign::Colon));
            match colon.next() {
                Some(colon) if self.sign(open) == Some(Sign::LeftBrace) => {
                    self.expression(segment.start..colon, depth + 1);
                    self.expression(colon + 1..segment.end, depth + 1);
                }
                _ => self.expression(segment, depth + 1),
            }
        }
    }

    /// Which argument of a macro is its predicate.
    fn predicate(&self, open: usize, arguments: usize) -> Option<usize> {
        let name = open.checked_sub(1)?;
        let is_member = name.checked_sub(1).and_then(|it| self.sign(it));
        if is_member != Some(Sign::Dot) || self.sign(open) != Some(Sign::LeftParen) {
            return None;
        }
        match (self.text(name), arguments) {
            ("all" | "exists" | "exists_one" | "existsOne" | "filter", 2..=3) => {
                Some(arguments - 1)
            }
            ("map", 3) => Some(1),
            ("transformList" | "transformMap" | "transformMapEntry", 4) => Some(2),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(source: &str) -> Vec<&str> {
        let outline = Outline::of(source);
        let parts = outline.parts.iter();
        let texts = parts.map(|it| source.get(outline.bytes_of(it)).unwrap());
        texts.collect()
    }

    #[test]
    fn the_operands_the_conditions_and_the_predicates_are_parts() {
        let source =
            "a ? (b && !c) || d : e.all(x, x > f[?0].?g.orValue(1) && {h: i ? j : k}[h])";
        assert_eq!(
            parts(source),
            [
                source,
                "a",
                "(b && !c)",
                "b",
                "!c",
                "d",
                "x > f[?0].?g.orValue(1) && {h: i ? j : k}[h]",
                "x > f[?0].?g.orValue(1)",
                "{h: i ? j : k}[h]",
                "i",
            ]
        );
    }

    #[test]
    fn text_that_is_no_expression_has_an_outline() {
        for source in [
            "",
            "&&",
            "? :",
            "((",
            "))",
            "a ? b",
            "[,]",
            "x.all(",
            "\u{1f600} && a",
        ] {
            let outline = Outline::of(source);
            for part in &outline.parts {
                assert!(source.get(outline.bytes_of(part)).is_some(), "{source}");
            }
        }
    }

    #[test]
    fn a_node_is_in_the_smallest_part_around_it() {
        let source = "(a == 1 && b) || c";
        let outline = Outline::of(source);
        let text = |at| {
            source
                .get(outline.bytes_of(outline.part_at(at).unwrap()))
                .unwrap()
        };
        assert_eq!(text(3), "a == 1");
        assert_eq!(text(8), "(a == 1 && b)");
        assert_eq!(text(14), source);
    }
}

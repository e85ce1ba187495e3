//! Binary operators.

use super::builder::{MAX_NESTING, check_height, too_deep};
use super::{Parse, Parser};
use crate::ast::{Expr, Kind, operator};
use crate::lexer::{Sign, TokenKind};

/// The function behind a binary operator, and its precedence, 0 being the lowest.
const fn binary_operator(sign: Sign) -> Option<(usize, &'static str)> {
    Some(match sign {
        Sign::Or => (0, operator::OR),
        Sign::And => (1, operator::AND),
        Sign::Equals => (2, operator::EQUALS),
        Sign::NotEquals => (2, operator::NOT_EQUALS),
        Sign::Less => (2, operator::LESS),
        Sign::LessEquals => (2, operator::LESS_EQUALS),
        Sign::Greater => (2, operator::GREATER),
        Sign::GreaterEquals => (2, operator::GREATER_EQUALS),
        Sign::In => (2, operator::IN),
        Sign::Plus => (3, operator::ADD),
        Sign::Minus => (3, operator::SUBTRACT),
        Sign::Star => (4, operator::MULTIPLY),
        Sign::Slash => (4, operator::DIVIDE),
        Sign::Percent => (4, operator::MODULO),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Operators of `level` and of higher precedence, by precedence climbing.
    pub(super) fn binary(&mut self, level: usize) -> Parse<Expr> {
        // The API server's grammar has a rule for comparisons and one for arithmetic. It enters
        // them for each operand and counts the nesting of each.
        let outside = (self.comparisons, self.sums);
        self.comparisons += usize::from(level <= 3);
        self.sums += 1;
        let inside = (self.comparisons, self.sums);
        if inside.0.max(inside.1) > MAX_NESTING {
            return Err(too_deep(self.at()));
        }
        let mut left = self.unary()?;
        while let Some((found, function)) = self.operator(level) {
            let at = self.advance();
            (self.comparisons, self.sums) = match found {
                0 | 1 => outside,
                2 => (inside.0, outside.1),
                _ => inside,
            };
            let right = self.binary(found + 1)?;
            (self.comparisons, self.sums) = inside;
            left = match left.kind {
                // One node for `a && b && c` keeps long chains flat.
                Kind::Call {
                    target: None,
                    function: ref known,
                    ..
                } if found < 2 && **known == *function && left.at < at => {
                    Self::append(left, right)?
                }
                _ => self.builder.call(at, function, vec![left, right])?,
            };
        }
        (self.comparisons, self.sums) = outside;
        Ok(left)
    }

    fn append(mut chain: Expr, right: Expr) -> Parse<Expr> {
        if let Kind::Call { args, .. } = &mut chain.kind {
            chain.depth = chain.depth.max(right.depth + 1);
            chain.size += right.size;
            args.push(right);
        }
        check_height(chain.at, chain.depth)?;
        Ok(chain)
    }

    /// The next operator, if its precedence is at least `level`.
    fn operator(&self, level: usize) -> Option<(usize, &'static str)> {
        let TokenKind::Sign(sign) = self.kind() else {
            return None;
        };
        binary_operator(sign).filter(|(found, _)| *found >= level)
    }
}

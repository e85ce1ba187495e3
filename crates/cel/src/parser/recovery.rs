//! What the parser says of tokens that it did not expect, and how it goes on: as the API
//! server's does, leaving out one token or taking one for granted. What that cannot mend
//! ends the parse; the API server's tries further, so that it may say more.

use super::{EXPRESSION_STARTS, Parse, Parser, SyntaxError};
use crate::lexer::{Sign, Token, TokenKind};

/// Whether the sign begins an expression.
const fn starts(sign: Sign) -> bool {
    matches!(
        sign,
        Sign::LeftBracket
            | Sign::LeftBrace
            | Sign::LeftParen
            | Sign::Dot
            | Sign::Minus
            | Sign::Not
            | Sign::True
            | Sign::False
            | Sign::Null
    )
}

/// Whether the sign goes on with one.
const fn continues(sign: Sign) -> bool {
    matches!(
        sign,
        Sign::Star
            | Sign::Slash
            | Sign::Percent
            | Sign::Plus
            | Sign::Minus
            | Sign::Less
            | Sign::LessEquals
            | Sign::Greater
            | Sign::GreaterEquals
            | Sign::Equals
            | Sign::NotEquals
            | Sign::In
            | Sign::And
            | Sign::Or
            | Sign::Question
            | Sign::Dot
            | Sign::LeftBracket
            | Sign::LeftBrace
    )
}

/// What may come where something has been opened.
pub(super) struct Opening {
    /// Signs beside those that begin an expression.
    pub(super) signs: &'static [Sign],
    /// All of it, as the API server lists it.
    pub(super) listed: &'static str,
}

pub(super) const ARGUMENTS: Opening = Opening {
    signs: &[Sign::RightParen],
    listed: "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
             NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
};
pub(super) const INDEX: Opening = Opening {
    signs: &[Sign::Question],
    listed: "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, \
             NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
};
pub(super) const LIST: Opening = Opening {
    signs: &[Sign::RightBracket, Sign::Comma, Sign::Question],
    listed: "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', \
             NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
};
pub(super) const MAP: Opening = Opening {
    signs: &[Sign::RightBrace, Sign::Comma, Sign::Question],
    listed: "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', \
             NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
};
const EXPRESSION: Opening = Opening {
    signs: &[],
    listed: EXPRESSION_STARTS,
};

impl Parser<'_> {
    fn token_at(&self, ahead: usize) -> Option<Token> {
        self.tokens.get(self.next + ahead).copied()
    }

    fn is_sign_at(&self, ahead: usize, signs: &[Sign]) -> bool {
        match self.token_at(ahead).map(|token| token.kind) {
            Some(TokenKind::Sign(sign)) => signs.contains(&sign),
            _ => false,
        }
    }

    fn starts_at(&self, ahead: usize) -> bool {
        let Some(token) = self.token_at(ahead) else {
            return false;
        };
        match token.kind {
            TokenKind::End | TokenKind::Backticks => false,
            TokenKind::Sign(sign) => starts(sign),
            _ => true,
        }
    }

    /// Notes an error that the parse goes on behind. One behind a sign that was taken for
    /// granted is not reported.
    fn note(&mut self, error: SyntaxError) {
        if !self.quiet {
            self.errors.push(error);
        }
    }

    /// The last error, if it is to be reported.
    pub(super) fn end_with(&mut self, error: SyntaxError) {
        self.note(error);
    }

    /// Leaves out a token that is one too many, if `fits` says so of the one behind it.
    fn leave_out(&mut self, wanted: &str, fits: bool) -> Parse<()> {
        if !fits {
            return Err(self.unexpected(wanted, false));
        }
        let error = self.unexpected(wanted, true);
        self.note(error);
        self.advance();
        Ok(())
    }

    /// Makes sure that an expression comes next.
    pub(super) fn expression_starts(&mut self) -> Parse<()> {
        self.opened(&EXPRESSION)
    }

    /// Makes sure that what comes next may be behind what has been opened.
    pub(super) fn opened(&mut self, opening: &Opening) -> Parse<()> {
        if self.starts_at(0) || self.is_sign_at(0, opening.signs) {
            return Ok(());
        }
        let fits = self.starts_at(1) || self.is_sign_at(1, opening.signs);
        self.leave_out(opening.listed, fits)
    }

    /// Makes sure that one of two signs comes next.
    pub(super) fn either(&mut self, signs: [Sign; 2]) -> Parse<()> {
        if self.is_sign_at(0, &signs) {
            return Ok(());
        }
        let [first, second] = signs.map(Sign::text);
        let fits = self.is_sign_at(1, &signs);
        self.leave_out(&format!("{{'{first}', '{second}'}}"), fits)
    }

    /// Moves past a sign and returns where it stood, or should have stood.
    pub(super) fn expect(&mut self, sign: Sign) -> Parse<usize> {
        if self.is(sign) {
            return Ok(self.advance());
        }
        let wanted = format!("'{}'", sign.text());
        if self.is_sign_at(1, &[sign]) {
            self.leave_out(&wanted, true)?;
            return Ok(self.advance());
        }
        let may_follow = if sign == Sign::Colon {
            self.starts_at(0)
        } else {
            self.continues() || self.closes()
        };
        if !may_follow {
            return Err(self.unexpected(&wanted, false));
        }
        let at = self.at();
        let found = self.found();
        self.note(SyntaxError {
            at,
            message: format!("Syntax error: missing {wanted} at '{found}'"),
        });
        self.quiet = true;
        Ok(at)
    }

    /// Whether no further item comes: there is no comma, or nothing behind it.
    pub(super) fn is_last(&self) -> bool {
        !self.is(Sign::Comma)
            || !(self.starts_at(1) || self.is_sign_at(1, &[Sign::Question]))
    }

    /// Whether what comes next may go on with an expression.
    fn continues(&self) -> bool {
        matches!(self.kind(), TokenKind::Sign(sign) if continues(sign))
    }

    /// Whether what comes next may end the expression around.
    fn closes(&self) -> bool {
        match self.closers.last() {
            Some(closers) => self.is_sign_at(0, closers),
            None => self.kind() == TokenKind::End,
        }
    }

    /// Makes sure that a dot is followed by a name.
    pub(super) fn dotted(&self, dot: usize) -> Parse<()> {
        let is_name = matches!(self.kind(), TokenKind::Ident | TokenKind::Backticks);
        if is_name || self.is(Sign::Question) {
            return Ok(());
        }
        if self.is_sign_at(0, &[Sign::True, Sign::False, Sign::Null]) {
            return Err(self.unexpected("IDENTIFIER", false));
        }
        Err(self.no_name(dot))
    }

    /// The error of a dot that no name follows.
    pub(super) fn no_name(&self, dot: usize) -> SyntaxError {
        let token = self.token();
        let end = token.filter(|token| token.kind != TokenKind::End);
        let end = end.map_or(usize::MAX, |token| {
            token.at() + token.text(self.source).chars().count()
        });
        let rest = self.source.chars().skip(dot);
        let text: String = rest.take(end.saturating_sub(dot)).collect();
        SyntaxError {
            at: self.at(),
            message: format!("Syntax error: no viable alternative at input '{text}'"),
        }
    }
}

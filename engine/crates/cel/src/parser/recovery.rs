//! Errors for unexpected tokens, and error recovery as in the API server's parser: by deleting
//! one token or assuming a missing one. Other errors end the parse; the API server's parser
//! tries further, so it may report more errors.

use super::{EXPRESSION_STARTS, Parse, Parser, SyntaxError};
use crate::lexer::{Sign, Token, TokenKind};

/// Whether the token starts an expression.
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

/// Whether the token continues an expression.
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

/// The tokens that may follow an opening token.
pub(super) struct Opening {
    /// The tokens allowed in addition to those that start an expression.
    pub(super) signs: &'static [Sign],
    /// The full list, in the API server's notation.
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

    /// Records an error from which the parser recovers. An error directly after an assumed
    /// token is not reported.
    fn record_error(&mut self, error: SyntaxError) {
        if !self.quiet {
            self.errors.push(error);
        }
    }

    /// Records the last error, unless it directly follows an assumed token.
    pub(super) fn end_with(&mut self, error: SyntaxError) {
        self.record_error(error);
    }

    /// Deletes an extraneous token if `fits`, which is whether the token after it is valid
    /// here.
    fn skip_extraneous(&mut self, wanted: &str, fits: bool) -> Parse<()> {
        if !fits {
            return Err(self.unexpected(wanted, false));
        }
        let error = self.unexpected(wanted, true);
        self.record_error(error);
        self.advance();
        Ok(())
    }

    /// Ensures that an expression starts here.
    pub(super) fn expression_starts(&mut self) -> Parse<()> {
        self.opened(&EXPRESSION)
    }

    /// Ensures that the next token may follow the opening token.
    pub(super) fn opened(&mut self, opening: &Opening) -> Parse<()> {
        if self.starts_at(0) || self.is_sign_at(0, opening.signs) {
            return Ok(());
        }
        let fits = self.starts_at(1) || self.is_sign_at(1, opening.signs);
        self.skip_extraneous(opening.listed, fits)
    }

    /// Ensures that one of two tokens is next.
    pub(super) fn either(&mut self, signs: [Sign; 2]) -> Parse<()> {
        if self.is_sign_at(0, &signs) {
            return Ok(());
        }
        let [first, second] = signs.map(Sign::text);
        let fits = self.is_sign_at(1, &signs);
        self.skip_extraneous(&format!("{{'{first}', '{second}'}}"), fits)
    }

    /// Moves past a token and returns its position, or the position where it is missing.
    pub(super) fn expect(&mut self, sign: Sign) -> Parse<usize> {
        if self.is(sign) {
            return Ok(self.advance());
        }
        let wanted = format!("'{}'", sign.text());
        if self.is_sign_at(1, &[sign]) {
            self.skip_extraneous(&wanted, true)?;
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
        self.record_error(SyntaxError {
            at,
            message: format!("Syntax error: missing {wanted} at '{found}'"),
        });
        self.quiet = true;
        Ok(at)
    }

    /// Whether no further item follows: there is no comma, or no item after it.
    pub(super) fn is_last(&self) -> bool {
        !self.is(Sign::Comma)
            || !(self.starts_at(1) || self.is_sign_at(1, &[Sign::Question]))
    }

    /// Whether the next token may continue an expression.
    fn continues(&self) -> bool {
        matches!(self.kind(), TokenKind::Sign(sign) if continues(sign))
    }

    /// Whether the next token may end the enclosing expression.
    fn closes(&self) -> bool {
        match self.closers.last() {
            Some(closers) => self.is_sign_at(0, closers),
            None => self.kind() == TokenKind::End,
        }
    }

    /// Ensures that a name follows a dot.
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

    /// The error of a dot without a name after it.
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

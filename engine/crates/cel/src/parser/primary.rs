//! Primary expressions: names, literals, lists and maps.

use std::sync::Arc;

use super::{EXPRESSION_STARTS, Parse, Parser, SyntaxError, recovery};
use crate::ast::{Entry, Expr, FieldEntry, Item, Kind};
use crate::escape::is_reserved_identifier;
use crate::lexer::{Sign, TokenKind};
use crate::{Value, library, literal, macros};

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parse<Expr> {
        let at = self.at();
        match self.kind() {
            TokenKind::Ident => self.ident(false),
            TokenKind::Sign(sign) => self.signed_primary(at, sign),
            TokenKind::End | TokenKind::Backticks => {
                Err(self.unexpected(EXPRESSION_STARTS, false))
            }
            _ => self.number_or_text(at, false),
        }
    }

    fn signed_primary(&mut self, at: usize, sign: Sign) -> Parse<Expr> {
        match sign {
            Sign::LeftParen => {
                self.advance();
                let inner = self.inside(&[Sign::RightParen])?;
                self.expect(Sign::RightParen)?;
                Ok(inner)
            }
            Sign::LeftBracket => self.list(),
            Sign::LeftBrace => self.map(),
            Sign::Dot => {
                self.advance();
                if self.kind() != TokenKind::Ident {
                    return Err(self.no_name(at));
                }
                self.ident(true)
            }
            Sign::Minus => {
                self.advance();
                self.number_or_text(at, true)
            }
            Sign::True | Sign::False => {
                self.advance();
                self.builder.literal(at, Value::Bool(sign == Sign::True))
            }
            Sign::Null => {
                self.advance();
                self.builder.literal(at, Value::Null)
            }
            _ => Err(self.unexpected(EXPRESSION_STARTS, false)),
        }
    }

    fn number_or_text(&mut self, at: usize, negative: bool) -> Parse<Expr> {
        let text = self.text();
        let value = match self.kind() {
            TokenKind::Int => literal::int(text, negative).map(Value::Int),
            TokenKind::Uint if !negative => literal::uint(text).map(Value::Uint),
            TokenKind::Double => literal::double(text, negative).map(Value::Double),
            TokenKind::String => {
                literal::string(text).map(|text| Value::String(text.into()))
            }
            TokenKind::Bytes => {
                literal::bytes(text).map(|bytes| Value::Bytes(bytes.into()))
            }
            _ => return Err(self.unexpected(EXPRESSION_STARTS, false)),
        };
        self.advance();
        let value = value.map_err(|reason| SyntaxError {
            at,
            message: reason.to_owned(),
        })?;
        self.builder.literal(at, value)
    }

    /// A name, or a call of a global function or macro; after a leading dot it is not a macro.
    fn ident(&mut self, rooted: bool) -> Parse<Expr> {
        let at = self.at();
        let name = self.name();
        if is_reserved_identifier(name) {
            return Err(SyntaxError {
                at,
                message: format!("reserved identifier: {name}"),
            });
        }
        let Some(open) = self.eat(Sign::LeftParen) else {
            let name = self.shared(name);
            let ident = self.builder.node(at, Kind::Ident(name))?;
            if rooted {
                self.builder.root(&ident);
            }
            return Ok(ident);
        };
        let args = self.arguments()?;
        if rooted {
            let call = self.builder.call(open, library::function(name), args)?;
            self.builder.root(&call);
            return Ok(call);
        }
        macros::global(&mut self.builder, open, name, args)
    }

    fn list(&mut self) -> Parse<Expr> {
        let at = self.expect(Sign::LeftBracket)?;
        let mut items = Vec::new();
        self.opened(&recovery::LIST)?;
        while !self.is(Sign::RightBracket) && !self.is(Sign::Comma) {
            let optional = self.optional_sign()?;
            let value = self.inside(&[Sign::RightBracket, Sign::Comma])?;
            items.push(Item { value, optional });
            self.either([Sign::RightBracket, Sign::Comma])?;
            if self.is_last() {
                break;
            }
            self.eat(Sign::Comma);
        }
        self.eat(Sign::Comma);
        self.expect(Sign::RightBracket)?;
        self.builder.node(at, Kind::List(items))
    }

    fn map(&mut self) -> Parse<Expr> {
        let at = self.expect(Sign::LeftBrace)?;
        let mut entries = Vec::new();
        self.opened(&recovery::MAP)?;
        while !self.is(Sign::RightBrace) && !self.is(Sign::Comma) {
            let optional = self.optional_sign()?;
            let key = self.inside(&[Sign::Colon])?;
            self.expect(Sign::Colon)?;
            let value = self.inside(&[Sign::RightBrace, Sign::Comma])?;
            entries.push(Entry {
                key,
                value,
                optional,
            });
            self.either([Sign::RightBrace, Sign::Comma])?;
            if self.is_last() {
                break;
            }
            self.eat(Sign::Comma);
        }
        self.eat(Sign::Comma);
        self.expect(Sign::RightBrace)?;
        self.builder.node(at, Kind::Map(entries))
    }

    /// `Name{field: value}`.
    pub(super) fn structure(&mut self, name: &Expr) -> Parse<Expr> {
        let at = self.expect(Sign::LeftBrace)?;
        let mut fields = Vec::new();
        while !self.is(Sign::RightBrace) {
            let optional = self.optional_sign()?;
            if self.kind() != TokenKind::Ident {
                return Err(self.unexpected("IDENTIFIER", false));
            }
            let name = Arc::from(self.name());
            let at = self.expect(Sign::Colon)?;
            let value = self.inside(&[Sign::RightBrace, Sign::Comma])?;
            fields.push(FieldEntry {
                name,
                at,
                value,
                optional,
            });
            if self.eat(Sign::Comma).is_none() {
                break;
            }
        }
        self.expect(Sign::RightBrace)?;
        let name = Arc::from(name.qualified_name().unwrap_or_default());
        self.builder.node(at, Kind::Struct { name, fields })
    }
}

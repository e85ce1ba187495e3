//! Parses source text into expressions.

mod builder;
mod operators;
mod primary;
mod recovery;

use std::sync::Arc;

use crate::ast::{Expr, Kind, operator};
use crate::error::CompileErrors;
use crate::lexer::{self, Sign, Token, TokenKind};
use crate::{Env, Value, macros};

pub(crate) use builder::{Builder, Parse, SyntaxError, located};
use builder::{MAX_NESTING, too_deep};

/// The maximum length of a source, in code points.
const MAX_CODE_POINTS: usize = 100_000;

/// The tokens that may start an expression, in the API server's notation.
const EXPRESSION_STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', \
     NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// A parsed source.
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    /// The number of ids assigned.
    pub(crate) ids: usize,
    /// The nodes whose names follow a leading dot.
    pub(crate) rooted: Vec<usize>,
}

/// Parses `source` in the dialect of `env`.
///
/// # Errors
/// The syntax errors.
pub(crate) fn parse(source: &str, env: &Env) -> Result<Parsed, CompileErrors> {
    let failed = |errors: Vec<(usize, String)>| {
        let errors = errors
            .into_iter()
            .map(|(at, message)| located(source, at, message));
        CompileErrors {
            source: source.to_owned(),
            errors: errors.collect(),
            checked: None,
        }
    };
    // There are never more code points than bytes.
    if source.len() > MAX_CODE_POINTS {
        let size = source.chars().count();
        if size > MAX_CODE_POINTS {
            let message = format!(
                "expression code point size exceeds limit: size: {size}, limit \
                 {MAX_CODE_POINTS}"
            );
            return Err(failed(vec![(0, message)]));
        }
    }
    let (tokens, wrong) = lexer::tokens(source);
    let mut parser = Parser {
        source,
        tokens,
        next: 0,
        nesting: 0,
        comparisons: 0,
        sums: 0,
        closers: Vec::new(),
        errors: Vec::new(),
        quiet: false,
        names: Vec::with_capacity(MAX_LOOKAHEAD_NAMES / 2),
        env,
        builder: Builder::new(env.dialect(), env.has_bindings()),
    };
    let root = match parser.whole() {
        Ok(root) => Some(root),
        Err(error) => {
            parser.end_with(error);
            None
        }
    };
    if let Some(root) = root
        && wrong.is_empty()
        && parser.errors.is_empty()
    {
        let (ids, rooted) = (parser.builder.ids(), parser.builder.rooted());
        return Ok(Parsed { root, ids, rooted });
    }
    let word = |text| format!("Syntax error: token recognition error at: '{text}'");
    let wrong = wrong.into_iter().map(|wrong| (wrong.at, word(wrong.text)));
    let errors = parser.errors.into_iter();
    let errors = errors.map(|error| (error.at, error.message));
    let mut errors: Vec<_> = wrong.chain(errors).collect();
    errors.sort_by_key(|(at, _)| *at);
    Err(failed(errors))
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    next: usize,
    nesting: usize,
    /// The nesting of comparisons and their operands.
    comparisons: usize,
    /// The nesting of arithmetic and its right operands.
    sums: usize,
    /// The tokens that may end the open expressions; empty if only the end of the source may.
    closers: Vec<&'static [Sign]>,
    /// The errors that the parser recovered from.
    errors: Vec<SyntaxError>,
    /// Whether a missing token was assumed and none has been consumed since.
    quiet: bool,
    /// Names read so far, the latest last.
    names: Vec<Arc<str>>,
    env: &'s Env,
    builder: Builder,
}

/// The number of latest names that are searched for a repeated one.
const MAX_LOOKAHEAD_NAMES: usize = 16;

impl<'s> Parser<'s> {
    fn whole(&mut self) -> Parse<Expr> {
        let root = self.expression()?;
        if self.kind() == TokenKind::End {
            return Ok(root);
        }
        // The API server's parser reports a single extraneous token, otherwise the missing one.
        let after = self.tokens.get(self.next + 1);
        let last = after.is_some_and(|token| token.kind == TokenKind::End);
        Err(self.unexpected("<EOF>", last))
    }

    // --- tokens

    #[inline]
    fn token(&self) -> Option<Token> {
        self.tokens.get(self.next).or(self.tokens.last()).copied()
    }

    #[inline]
    fn kind(&self) -> TokenKind {
        self.token().map_or(TokenKind::End, |token| token.kind)
    }

    /// The token's source text.
    fn text(&self) -> &'s str {
        self.token().map_or("", |token| token.text(self.source))
    }

    fn at(&self) -> usize {
        self.token().map_or(0, Token::at)
    }

    #[inline]
    fn is(&self, sign: Sign) -> bool {
        self.kind() == TokenKind::Sign(sign)
    }

    /// A shared copy of a name: expressions have few different names and repeat them often.
    fn shared(&mut self, name: &str) -> Arc<str> {
        let mut latest = self.names.iter().rev().take(MAX_LOOKAHEAD_NAMES);
        if let Some(known) = latest.find(|known| ***known == *name) {
            return Arc::clone(known);
        }
        let mut variables = self.env.variables().iter();
        let declared = variables.find(|variable| *variable.name == *name);
        let new = declared.map_or_else(|| name.into(), |it| Arc::clone(&it.name));
        self.names.push(Arc::clone(&new));
        new
    }

    /// Moves past the token and returns its position.
    fn advance(&mut self) -> usize {
        let at = self.at();
        self.next += 1;
        self.quiet = false;
        at
    }

    #[inline]
    fn eat(&mut self, sign: Sign) -> Option<usize> {
        self.is(sign).then(|| self.advance())
    }

    fn unexpected(&self, wanted: &str, extraneous: bool) -> SyntaxError {
        let found = self.found();
        let what = if extraneous {
            "extraneous"
        } else {
            "mismatched"
        };
        let message = format!("Syntax error: {what} input '{found}' expecting {wanted}");
        SyntaxError {
            at: self.at(),
            message,
        }
    }

    /// The token's text in errors.
    fn found(&self) -> &'s str {
        match self.token() {
            Some(token) if token.kind != TokenKind::End => token.text(self.source),
            _ => "<EOF>",
        }
    }

    // --- expressions

    /// An expression that ends before one of `closers`.
    fn inside(&mut self, closers: &'static [Sign]) -> Parse<Expr> {
        self.closers.push(closers);
        let inner = self.expression();
        self.closers.pop();
        inner
    }

    /// `condition ? yes : no`, or an expression of higher precedence.
    fn expression(&mut self) -> Parse<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(too_deep(self.at()));
        }
        let condition = self.binary(0)?;
        let whole = match self.eat(Sign::Question) {
            None => condition,
            Some(at) => {
                self.closers.push(&[Sign::Colon]);
                let yes = self.binary(0);
                self.closers.pop();
                let yes = yes?;
                self.expect(Sign::Colon)?;
                let no = self.expression()?;
                self.builder
                    .call(at, operator::CONDITIONAL, vec![condition, yes, no])?
            }
        };
        self.nesting -= 1;
        Ok(whole)
    }

    fn unary(&mut self) -> Parse<Expr> {
        self.expression_starts()?;
        let TokenKind::Sign(sign @ (Sign::Not | Sign::Minus)) = self.kind() else {
            return self.member();
        };
        if sign == Sign::Minus {
            let number = self.tokens.get(self.next + 1).map(|token| token.kind);
            if matches!(number, Some(TokenKind::Int | TokenKind::Double)) {
                return self.member();
            }
        }
        let at = self.at();
        let mut count = 0;
        while self.eat(sign).is_some() {
            count += 1;
        }
        // Only a member expression may follow: `!-x` is a syntax error.
        let operand = self.member()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let function = if sign == Sign::Not {
            operator::NOT
        } else {
            operator::NEGATE
        };
        self.builder.call(at, function, vec![operand])
    }

    /// A primary expression with its selections, calls and indexes.
    fn member(&mut self) -> Parse<Expr> {
        let mut expr = self.primary()?;
        loop {
            if let Some(at) = self.eat(Sign::Dot) {
                expr = self.select(at, expr)?;
            } else if let Some(at) = self.eat(Sign::LeftBracket) {
                self.opened(&recovery::INDEX)?;
                let optional = self.optional_sign()?;
                let index = self.inside(&[Sign::RightBracket])?;
                self.expect(Sign::RightBracket)?;
                let function = if optional {
                    operator::OPTIONAL_INDEX
                } else {
                    operator::INDEX
                };
                expr = self.builder.call(at, function, vec![expr, index])?;
            } else if self.is(Sign::LeftBrace) && expr.qualified_name().is_some() {
                expr = self.structure(&expr)?;
            } else {
                return Ok(expr);
            }
        }
    }

    /// `?`, where the grammar allows optional syntax.
    fn optional_sign(&mut self) -> Parse<bool> {
        let Some(at) = self.eat(Sign::Question) else {
            return Ok(false);
        };
        if macros::has_optionals(self.builder.dialect) {
            return Ok(true);
        }
        Err(SyntaxError {
            at,
            message: "unsupported syntax '?'".to_owned(),
        })
    }

    /// The part after a dot: a field or a method call.
    fn select(&mut self, at: usize, operand: Expr) -> Parse<Expr> {
        self.dotted(at)?;
        let optional = self.optional_sign()?;
        if self.kind() == TokenKind::Backticks {
            return Err(SyntaxError {
                at: self.at(),
                message: "unsupported syntax: '`'".to_owned(),
            });
        }
        if self.kind() != TokenKind::Ident {
            let error = self.unexpected("{IDENTIFIER, ESC_IDENTIFIER}", false);
            let at = self.at();
            self.end_with(error);
            let message = "unsupported ident kind".to_owned();
            return Err(SyntaxError { at, message });
        }
        let field = self.name();
        if optional {
            let field_at = at + 1;
            let name = Value::String(self.shared(field).into());
            let field = self.builder.literal(field_at, name)?;
            return self.builder.call(
                at,
                operator::OPTIONAL_SELECT,
                vec![operand, field],
            );
        }
        let Some(open) = self.eat(Sign::LeftParen) else {
            let (operand, field) = (Box::new(operand), self.shared(field));
            return self.builder.node(
                at,
                Kind::Select {
                    operand,
                    field,
                    test: false,
                },
            );
        };
        let args = self.arguments()?;
        let call = macros::MemberCall {
            at: open,
            target: operand,
            name: field,
            args,
        };
        macros::member(&mut self.builder, call)
    }

    /// Returns the token's source text and moves past it.
    fn name(&mut self) -> &'s str {
        let name = self.text();
        self.advance();
        name
    }

    /// The arguments after an opening parenthesis, up to the closing one.
    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        self.opened(&recovery::ARGUMENTS)?;
        if self.eat(Sign::RightParen).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.inside(&[Sign::RightParen, Sign::Comma])?);
            if self.eat(Sign::Comma).is_none() {
                break;
            }
        }
        self.expect(Sign::RightParen)?;
        Ok(args)
    }
}

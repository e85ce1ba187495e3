//! Splits source text into tokens.

mod sign;

use std::ops::Range;

pub(crate) use sign::Sign;

/// A token and its position. Sources are bounded, so that a token fits into a few bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Code points before the token.
    at: u32,
    /// Bytes before the token, and before the following one.
    start: u32,
    end: u32,
}

impl Token {
    /// Code points before the token.
    pub(crate) fn at(self) -> usize {
        self.at as usize
    }

    /// Its bytes in the source.
    pub(crate) fn bytes(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The token's text in `source`; empty at the end.
    pub(crate) fn text(self, source: &str) -> &str {
        source.get(self.bytes()).unwrap_or_default()
    }
}

/// A position in a source; sources are too short to exceed the type.
fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Ident,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    /// A name in backticks, which Kubernetes does not support.
    Backticks,
    Sign(Sign),
    End,
}

/// Source text that is not a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unrecognized {
    pub(crate) at: usize,
    pub(crate) text: String,
}

/// All tokens, the last of kind [`TokenKind::End`], and all unrecognized text.
pub(crate) fn tokens(source: &str) -> (Vec<Token>, Vec<Unrecognized>) {
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
        counter: CodePointCounter::of(source),
        errors: Vec::new(),
    };
    // The average length of a token with the space after it.
    let mut tokens = Vec::with_capacity(source.len() / 4 + 4);
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        let at = lexer.counter.at(source, start);
        let Some(kind) = lexer.token() else { continue };
        tokens.push(Token {
            kind,
            at: to_u32(at),
            start: to_u32(start),
            end: to_u32(lexer.at),
        });
        if kind == TokenKind::End {
            break;
        }
    }
    (tokens, lexer.errors)
}

/// The number of code points before a position, for positions from left to right.
struct CodePointCounter {
    is_ascii: bool,
    byte: usize,
    points: usize,
}

impl CodePointCounter {
    fn of(source: &str) -> Self {
        Self {
            is_ascii: source.is_ascii(),
            byte: 0,
            points: 0,
        }
    }

    fn at(&mut self, source: &str, byte: usize) -> usize {
        if self.is_ascii {
            return byte;
        }
        let passed = source.get(self.byte..byte).unwrap_or_default();
        self.points += passed.chars().count();
        self.byte = byte;
        self.points
    }
}

/// Iterates over bytes: all significant characters are ASCII.
struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    counter: CodePointCounter,
    errors: Vec<Unrecognized>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_blank(&mut self) {
        loop {
            self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0xc));
            if self.peek(0) != Some(b'/') || self.peek(1) != Some(b'/') {
                break;
            }
            self.skip_while(|byte| byte != b'\n');
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| !wanted(*byte));
        self.at += end.unwrap_or(rest.len());
    }

    /// Moves past one token; records an error and returns `None` if there is none here.
    fn token(&mut self) -> Option<TokenKind> {
        let Some(first) = self.peek(0) else {
            return Some(TokenKind::End);
        };
        let may_open = matches!(first, b'b' | b'B' | b'r' | b'R' | b'"' | b'\'');
        if may_open && let Some(kind) = self.quoted() {
            return Some(kind);
        }
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Some(self.word()),
            b'0'..=b'9' => Some(self.number()),
            b'.' if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => {
                Some(self.number())
            }
            _ => self.sign(first),
        }
    }

    fn sign(&mut self, first: u8) -> Option<TokenKind> {
        let two = self.peek(1).and_then(|second| Sign::of_two(first, second));
        if let Some(sign) = two {
            self.at += 2;
            return Some(TokenKind::Sign(sign));
        }
        if let Some(sign) = Sign::of_one(first) {
            self.at += 1;
            return Some(TokenKind::Sign(sign));
        }
        let read = match first {
            b'`' => match self.backticks() {
                Ok(()) => return Some(TokenKind::Backticks),
                Err(read) => read,
            },
            b'=' | b'&' | b'|' => 1,
            b'"' | b'\'' => self.open(first),
            _ => 0,
        };
        self.unrecognized(read);
        None
    }

    /// Records an unrecognized token: the bytes read might start one, and the next character
    /// shows that they do not. Like the API server's lexer, it continues after that character.
    fn unrecognized(&mut self, read: usize) {
        let mut end = self.at + read + 1;
        while end < self.source.len() && !self.source.is_char_boundary(end) {
            end += 1;
        }
        let end = end.min(self.source.len());
        let text = self.source.get(self.at..end).unwrap_or_default();
        self.errors.push(Unrecognized {
            at: self.counter.at(self.source, self.at),
            text: text.to_owned(),
        });
        self.at = end;
    }

    /// Moves past a name in backticks, or returns how many bytes of one there are.
    fn backticks(&mut self) -> Result<(), usize> {
        let is_part = |byte: u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'.' | b'-' | b'/' | b' ')
        };
        let mut ahead = 1;
        while self.peek(ahead).is_some_and(is_part) {
            ahead += 1;
        }
        if ahead > 1 && self.peek(ahead) == Some(b'`') {
            self.at += ahead + 1;
            return Ok(());
        }
        Err(ahead)
    }

    /// The number of bytes of a literal that starts here and is not terminated.
    fn open(&self, quote: u8) -> usize {
        let is_open = |ahead: usize| self.peek(ahead) == Some(quote);
        let length = if is_open(1) && is_open(2) { 3 } else { 1 };
        match self.closing(length, quote, length, false) {
            Ok(end) | Err(end) => end,
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        Sign::of_word(word).map_or(TokenKind::Ident, TokenKind::Sign)
    }

    fn number(&mut self) -> TokenKind {
        let is_hex = self.peek(0) == Some(b'0')
            && self.peek(1) == Some(b'x')
            && self.peek(2).is_some_and(|byte| byte.is_ascii_hexdigit());
        if is_hex {
            self.at += 2;
            self.skip_while(|byte| byte.is_ascii_hexdigit());
            return self.unsigned_suffix();
        }
        self.skip_while(|byte| byte.is_ascii_digit());
        let mut is_double = false;
        if self.peek(0) == Some(b'.')
            && self.peek(1).is_some_and(|byte| byte.is_ascii_digit())
        {
            is_double = true;
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if self
                .peek(1 + signed)
                .is_some_and(|byte| byte.is_ascii_digit())
            {
                is_double = true;
                self.at += 1 + signed;
                self.skip_while(|byte| byte.is_ascii_digit());
            }
        }
        if is_double {
            TokenKind::Double
        } else {
            self.unsigned_suffix()
        }
    }

    fn unsigned_suffix(&mut self) -> TokenKind {
        if matches!(self.peek(0), Some(b'u' | b'U')) {
            self.at += 1;
            return TokenKind::Uint;
        }
        TokenKind::Int
    }

    /// A string or bytes literal, with its prefixes.
    fn quoted(&mut self) -> Option<TokenKind> {
        let mut ahead = 0;
        let (mut bytes, mut raw) = (false, false);
        loop {
            match self.peek(ahead)? {
                b'b' | b'B' if !bytes && !raw => bytes = true,
                b'r' | b'R' if !raw => raw = true,
                b'"' | b'\'' => break,
                _ => return None,
            }
            ahead += 1;
        }
        let quote = self.peek(ahead)?;
        let triple = (1..3).all(|more| self.peek(ahead + more) == Some(quote));
        let length = if triple { 3 } else { 1 };
        let mut end = self.closing(ahead + length, quote, length, raw);
        if end.is_err() && triple {
            // It is an empty literal, followed by something else.
            end = Ok(ahead + 2);
        }
        self.at += end.ok()?;
        Some(if bytes {
            TokenKind::Bytes
        } else {
            TokenKind::String
        })
    }

    /// The end of the literal that is open at `ahead`, or the position where it becomes
    /// invalid.
    fn closing(
        &self,
        mut ahead: usize,
        quote: u8,
        length: usize,
        raw: bool,
    ) -> Result<usize, usize> {
        loop {
            ahead += self.plain(ahead, quote);
            let byte = self.peek(ahead).ok_or(ahead)?;
            if byte == quote && (0..length).all(|n| self.peek(ahead + n) == Some(quote)) {
                return Ok(ahead + length);
            }
            if length == 1 && matches!(byte, b'\n' | b'\r') {
                return Err(ahead);
            }
            ahead = if byte == b'\\' && !raw {
                self.escape(ahead + 1)?
            } else {
                ahead + 1
            };
        }
    }

    /// The number of bytes from `ahead` on without a special meaning in a literal.
    fn plain(&self, ahead: usize, quote: u8) -> usize {
        let rest = self.bytes.get(self.at + ahead..).unwrap_or_default();
        let is_plain = |byte: u8| byte != quote && !matches!(byte, b'\\' | b'\n' | b'\r');
        let end = rest.iter().position(|byte| !is_plain(*byte));
        end.unwrap_or(rest.len())
    }

    /// The end of the escape sequence whose backslash is before `ahead`, or the position where
    /// it becomes invalid.
    fn escape(&self, ahead: usize) -> Result<usize, usize> {
        let digits = |from: usize, count: usize, is_digit: fn(u8) -> bool| {
            let errors =
                (from..from + count).find(|at| !self.peek(*at).is_some_and(is_digit));
            errors.map_or(Ok(from + count), Err)
        };
        let is_hex = |byte: u8| byte.is_ascii_hexdigit();
        match self.peek(ahead).ok_or(ahead)? {
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\'
            | b'?' | b'`' => Ok(ahead + 1),
            b'x' | b'X' => digits(ahead + 1, 2, is_hex),
            b'u' => digits(ahead + 1, 4, is_hex),
            b'U' => digits(ahead + 1, 8, is_hex),
            b'0'..=b'3' => digits(ahead + 1, 2, |byte| matches!(byte, b'0'..=b'7')),
            _ => Err(ahead),
        }
    }
}

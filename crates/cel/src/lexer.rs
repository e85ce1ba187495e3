//! Splits source text into tokens.

/// A token and where it stands, in code points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) at: usize,
    /// As written; empty at the end.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Ident,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    /// A name in backticks, which Kubernetes has not.
    Backticks,
    /// An operator, bracket or one of `in`, `true`, `false`, `null`.
    Sign,
    End,
}

/// Where the lexer found something that starts no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unrecognized {
    pub(crate) at: usize,
    pub(crate) text: String,
}

const SIGNS_OF_TWO: [[char; 2]; 6] = [
    ['=', '='],
    ['!', '='],
    ['<', '='],
    ['>', '='],
    ['&', '&'],
    ['|', '|'],
];
const SIGNS: &str = "<>+-*/%!?:.,()[]{}";
const WORDS: [&str; 4] = ["in", "true", "false", "null"];

/// All tokens, the last of kind [`TokenKind::End`], and every place that starts none.
pub(crate) fn tokens(source: &[char]) -> (Vec<Token>, Vec<Unrecognized>) {
    let mut lexer = Lexer {
        source,
        at: 0,
        wrong: Vec::new(),
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let at = lexer.at;
        let Some(kind) = lexer.token() else { continue };
        let end = lexer.at.min(source.len());
        let written = source.get(at..end).unwrap_or_default();
        let mut text = String::with_capacity(written.len());
        text.extend(written);
        tokens.push(Token { kind, at, text });
        if kind == TokenKind::End {
            break;
        }
    }
    (tokens, lexer.wrong)
}

struct Lexer<'s> {
    source: &'s [char],
    at: usize,
    wrong: Vec<Unrecognized>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.source.get(self.at + ahead).copied()
    }

    fn skip_blank(&mut self) {
        while let Some(char) = self.peek(0) {
            match char {
                ' ' | '\t' | '\r' | '\n' | '\u{c}' => self.at += 1,
                '/' if self.peek(1) == Some('/') => {
                    self.skip_while(|char| char != '\n');
                }
                _ => break,
            }
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    /// Moves past one token; `None` if there is none here, which is noted.
    fn token(&mut self) -> Option<TokenKind> {
        let Some(first) = self.peek(0) else {
            return Some(TokenKind::End);
        };
        if let Some(kind) = self.quoted() {
            return Some(kind);
        }
        match first {
            'a'..='z' | 'A'..='Z' | '_' => Some(self.word()),
            '0'..='9' => Some(self.number()),
            '.' if self.peek(1).is_some_and(|char| char.is_ascii_digit()) => {
                Some(self.number())
            }
            _ => self.sign(first),
        }
    }

    fn sign(&mut self, first: char) -> Option<TokenKind> {
        if self
            .peek(1)
            .is_some_and(|second| SIGNS_OF_TWO.contains(&[first, second]))
        {
            self.at += 2;
            return Some(TokenKind::Sign);
        }
        if SIGNS.contains(first) {
            self.at += 1;
            return Some(TokenKind::Sign);
        }
        let read = match first {
            '`' => match self.backticks() {
                Ok(()) => return Some(TokenKind::Backticks),
                Err(read) => read,
            },
            '=' | '&' | '|' => 1,
            '"' | '\'' => self.open(first),
            _ => 0,
        };
        self.unrecognized(read);
        None
    }

    /// Notes what starts no token: so many characters might have, and the next one shows
    /// that they do not. The API server's lexer goes on behind that one.
    fn unrecognized(&mut self, read: usize) {
        let end = (self.at + read + 1).min(self.source.len());
        let text = self.source.get(self.at..end).unwrap_or_default();
        self.wrong.push(Unrecognized {
            at: self.at,
            text: text.iter().collect(),
        });
        self.at = end;
    }

    /// Moves past a name in backticks, or says how much of one there is.
    fn backticks(&mut self) -> Result<(), usize> {
        let is_part = |char: char| {
            char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-' | '/' | ' ')
        };
        let mut ahead = 1;
        while self.peek(ahead).is_some_and(is_part) {
            ahead += 1;
        }
        if ahead > 1 && self.peek(ahead) == Some('`') {
            self.at += ahead + 1;
            return Ok(());
        }
        Err(ahead)
    }

    /// How much of a literal there is that is opened here and does not end as it should.
    fn open(&self, quote: char) -> usize {
        let is_open = |ahead: usize| self.peek(ahead) == Some(quote);
        let length = if is_open(1) && is_open(2) { 3 } else { 1 };
        match self.closing(length, quote, length, false) {
            Ok(end) | Err(end) => end,
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.skip_while(|char| char.is_ascii_alphanumeric() || char == '_');
        let word = self.source.get(start..self.at).unwrap_or_default();
        let is = |known: &&str| word.iter().copied().eq(known.chars());
        if word.len() <= 5 && WORDS.iter().any(is) {
            TokenKind::Sign
        } else {
            TokenKind::Ident
        }
    }

    fn number(&mut self) -> TokenKind {
        let is_hex = self.peek(0) == Some('0')
            && self.peek(1) == Some('x')
            && self.peek(2).is_some_and(|char| char.is_ascii_hexdigit());
        if is_hex {
            self.at += 2;
            self.skip_while(|char| char.is_ascii_hexdigit());
            return self.unsigned_suffix();
        }
        self.skip_while(|char| char.is_ascii_digit());
        let mut is_double = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            is_double = true;
            self.at += 1;
            self.skip_while(|char| char.is_ascii_digit());
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let signed = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self
                .peek(1 + signed)
                .is_some_and(|char| char.is_ascii_digit())
            {
                is_double = true;
                self.at += 1 + signed;
                self.skip_while(|char| char.is_ascii_digit());
            }
        }
        if is_double {
            TokenKind::Double
        } else {
            self.unsigned_suffix()
        }
    }

    fn unsigned_suffix(&mut self) -> TokenKind {
        if matches!(self.peek(0), Some('u' | 'U')) {
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
                'b' | 'B' if !bytes && !raw => bytes = true,
                'r' | 'R' if !raw => raw = true,
                '"' | '\'' => break,
                _ => return None,
            }
            ahead += 1;
        }
        let quote = self.peek(ahead)?;
        let triple = (1..3).all(|more| self.peek(ahead + more) == Some(quote));
        let length = if triple { 3 } else { 1 };
        let mut end = self.closing(ahead + length, quote, length, raw);
        if end.is_err() && triple {
            // Then it is an empty one, and something else behind it.
            end = Ok(ahead + 2);
        }
        self.at += end.ok()?;
        Some(if bytes {
            TokenKind::Bytes
        } else {
            TokenKind::String
        })
    }

    /// How far ahead the literal that is open at `ahead` ends, or else where it breaks off.
    fn closing(
        &self,
        mut ahead: usize,
        quote: char,
        length: usize,
        raw: bool,
    ) -> Result<usize, usize> {
        loop {
            let char = self.peek(ahead).ok_or(ahead)?;
            if char == quote && (0..length).all(|n| self.peek(ahead + n) == Some(quote)) {
                return Ok(ahead + length);
            }
            if length == 1 && matches!(char, '\n' | '\r') {
                return Err(ahead);
            }
            ahead = if char == '\\' && !raw {
                self.escape(ahead + 1)?
            } else {
                ahead + 1
            };
        }
    }

    /// Where the escape ends whose backslash is before `ahead`, or else where it breaks off.
    fn escape(&self, ahead: usize) -> Result<usize, usize> {
        let digits = |from: usize, count: usize, is_digit: fn(char) -> bool| {
            let wrong =
                (from..from + count).find(|at| !self.peek(*at).is_some_and(is_digit));
            wrong.map_or(Ok(from + count), Err)
        };
        let is_hex = |char: char| char.is_ascii_hexdigit();
        match self.peek(ahead).ok_or(ahead)? {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => {
                Ok(ahead + 1)
            }
            'x' | 'X' => digits(ahead + 1, 2, is_hex),
            'u' => digits(ahead + 1, 4, is_hex),
            'U' => digits(ahead + 1, 8, is_hex),
            '0'..='3' => digits(ahead + 1, 2, |char| matches!(char, '0'..='7')),
            _ => Err(ahead),
        }
    }
}

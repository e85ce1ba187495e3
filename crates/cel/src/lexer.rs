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

const SIGNS_OF_TWO: [&str; 6] = ["==", "!=", "<=", ">=", "&&", "||"];
const SIGNS: &str = "<>+-*/%!?:.,()[]{}";
const WORDS: [&str; 4] = ["in", "true", "false", "null"];

/// All tokens, the last of kind [`TokenKind::End`], or every place that starts none.
pub(crate) fn tokens(source: &[char]) -> Result<Vec<Token>, Vec<Unrecognized>> {
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
        let text = source.get(at..end).unwrap_or_default().iter().collect();
        tokens.push(Token { kind, at, text });
        if kind == TokenKind::End {
            break;
        }
    }
    if lexer.wrong.is_empty() {
        Ok(tokens)
    } else {
        Err(lexer.wrong)
    }
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
        let two = [Some(first), self.peek(1)];
        let is = |sign: &&str| two.iter().flatten().copied().eq(sign.chars());
        if SIGNS_OF_TWO.iter().any(is) {
            self.at += 2;
            return Some(TokenKind::Sign);
        }
        if SIGNS.contains(first) {
            self.at += 1;
            return Some(TokenKind::Sign);
        }
        self.wrong.push(Unrecognized {
            at: self.at,
            text: first.to_string(),
        });
        self.at += 1;
        None
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.skip_while(|char| char.is_ascii_alphanumeric() || char == '_');
        let word: String = self
            .source
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect();
        if WORDS.contains(&word.as_str()) {
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
        let end = self.closing(ahead + length, quote, length, raw)?;
        self.at += end;
        Some(if bytes {
            TokenKind::Bytes
        } else {
            TokenKind::String
        })
    }

    /// How far ahead the literal that is open at `ahead` ends.
    fn closing(
        &self,
        mut ahead: usize,
        quote: char,
        length: usize,
        raw: bool,
    ) -> Option<usize> {
        loop {
            let char = self.peek(ahead)?;
            if char == quote && (0..length).all(|n| self.peek(ahead + n) == Some(quote)) {
                return Some(ahead + length);
            }
            if length == 1 && matches!(char, '\n' | '\r') {
                return None;
            }
            ahead += if char == '\\' && !raw { 2 } else { 1 };
        }
    }
}

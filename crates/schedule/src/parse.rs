//! Parsing short texts piece by piece, with the position of the first error.

/// The position of the first error in a text, and what was expected there.
///
/// # Example
/// ```
/// let error = "mon-fry".parse::<fivespot_schedule::Days>().unwrap_err();
/// assert_eq!(error.offset(), 4);
/// assert_eq!(
///     error.to_string(),
///     "expected a day (mon, tue, wed, thu, fri, sat or sun) at byte 4, found 'fry'",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}{}, found {found}", place(*offset))]
pub struct ParseError {
    offset: usize,
    expected: &'static str,
    found: String,
}

fn place(offset: usize) -> String {
    match offset {
        0 => String::new(),
        offset => format!(" at byte {offset}"),
    }
}

impl ParseError {
    /// The byte offset of the unexpected token; the text's length if the text ended too early.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What was expected, as words that follow "expected".
    pub fn expected(&self) -> &'static str {
        self.expected
    }

    /// What was found instead: quoted and cut to 32 characters, or `nothing`.
    pub fn found(&self) -> &str {
        &self.found
    }
}

/// A part of a text with its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'t> {
    pub(crate) text: &'t str,
    pub(crate) offset: usize,
}

impl<'t> Token<'t> {
    /// The whole text as a token.
    pub(crate) fn whole(text: &'t str) -> Self {
        Self { text, offset: 0 }
    }

    /// The tokens between separators; one token if there is no separator.
    pub(crate) fn split(self, separator: char) -> impl Iterator<Item = Token<'t>> {
        let mut offset = self.offset;
        self.text.split(separator).map(move |text| {
            let token = Token { text, offset };
            offset += text.len() + separator.len_utf8();
            token
        })
    }

    /// The token before the first separator, and the token after it.
    pub(crate) fn split_once(self, separator: char) -> (Token<'t>, Option<Token<'t>>) {
        match self.text.split_once(separator) {
            None => (self, None),
            Some((before, after)) => {
                let offset = self.offset + before.len() + separator.len_utf8();
                let before = Token {
                    text: before,
                    offset: self.offset,
                };
                (
                    before,
                    Some(Token {
                        text: after,
                        offset,
                    }),
                )
            }
        }
    }

    /// The tokens between white space. White space may have any length and surround the text.
    pub(crate) fn words(self) -> impl Iterator<Item = Token<'t>> {
        self.split(' ')
            .flat_map(|token| token.split('\t'))
            .flat_map(|token| token.split('\n'))
            .filter(|token| !token.text.is_empty())
    }

    /// Decimal digits as a number; a number too large for a `u32` saturates.
    pub(crate) fn number(self) -> Option<u32> {
        let is_number =
            !self.text.is_empty() && self.text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| self.text.parse().unwrap_or(u32::MAX))
    }

    /// The error that this token is not what was `expected`.
    pub(crate) fn error(self, expected: &'static str) -> ParseError {
        const MAX_QUOTED: usize = 32;
        let mut found = match self.text {
            "" => "nothing".to_owned(),
            text => {
                let shown: String = text.chars().take(MAX_QUOTED).collect();
                format!("'{}'", shown.escape_debug())
            }
        };
        if self.text.chars().nth(MAX_QUOTED).is_some() {
            found.push('…');
        }
        ParseError {
            offset: self.offset,
            expected,
            found,
        }
    }
}

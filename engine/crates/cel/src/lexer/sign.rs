//! Operators, brackets and keywords.

/// An operator, a bracket, or one of `in`, `true`, `false` and `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    And,
    Or,
    Equals,
    NotEquals,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    In,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Not,
    Question,
    Colon,
    Dot,
    Comma,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    True,
    False,
    Null,
}

impl Sign {
    /// The operator or bracket of a single character.
    pub(super) const fn of_one(byte: u8) -> Option<Self> {
        Some(match byte {
            b'<' => Self::Less,
            b'>' => Self::Greater,
            b'+' => Self::Plus,
            b'-' => Self::Minus,
            b'*' => Self::Star,
            b'/' => Self::Slash,
            b'%' => Self::Percent,
            b'!' => Self::Not,
            b'?' => Self::Question,
            b':' => Self::Colon,
            b'.' => Self::Dot,
            b',' => Self::Comma,
            b'(' => Self::LeftParen,
            b')' => Self::RightParen,
            b'[' => Self::LeftBracket,
            b']' => Self::RightBracket,
            b'{' => Self::LeftBrace,
            b'}' => Self::RightBrace,
            _ => return None,
        })
    }

    /// The operator of two characters.
    pub(super) const fn of_two(first: u8, second: u8) -> Option<Self> {
        Some(match (first, second) {
            (b'=', b'=') => Self::Equals,
            (b'!', b'=') => Self::NotEquals,
            (b'<', b'=') => Self::LessEquals,
            (b'>', b'=') => Self::GreaterEquals,
            (b'&', b'&') => Self::And,
            (b'|', b'|') => Self::Or,
            _ => return None,
        })
    }

    /// The keyword.
    pub(super) const fn of_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"in" => Self::In,
            b"true" => Self::True,
            b"false" => Self::False,
            b"null" => Self::Null,
            _ => return None,
        })
    }

    /// The source text.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::And => "&&",
            Self::Or => "||",
            Self::Equals => "==",
            Self::NotEquals => "!=",
            Self::Less => "<",
            Self::LessEquals => "<=",
            Self::Greater => ">",
            Self::GreaterEquals => ">=",
            Self::In => "in",
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Star => "*",
            Self::Slash => "/",
            Self::Percent => "%",
            Self::Not => "!",
            Self::Question => "?",
            Self::Colon => ":",
            Self::Dot => ".",
            Self::Comma => ",",
            Self::LeftParen => "(",
            Self::RightParen => ")",
            Self::LeftBracket => "[",
            Self::RightBracket => "]",
            Self::LeftBrace => "{",
            Self::RightBrace => "}",
            Self::True => "true",
            Self::False => "false",
            Self::Null => "null",
        }
    }
}

//! E-mail addresses, parsed as in Go's `net/mail` (RFC 5322, with some obsolete forms).

use std::net::IpAddr;

/// Whether `text` is one address: `a@b`, `Name <a@b>`, or a group with only one. Cannot fail.
pub(super) fn is_email(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.address(true) == Some(1)
        && parser.skip_comments().is_some()
        && parser.rest.is_empty()
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn eat(&mut self, wanted: char) -> bool {
        let after = self.rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Skips spaces and comments. `None` if a comment is not terminated.
    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.eat('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    /// The rest of a comment, which may contain nested comments.
    fn comment(&mut self) -> Option<&'t str> {
        let start = self.rest;
        let mut depth = 1_usize;
        let mut chars = start.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                // A backslash at the end of the text is literal.
                '\\' => drop(chars.next()),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = chars.as_str();
                return start.get(..at);
            }
        }
        None
    }

    /// The number of addresses in an address or group; `None` if it is neither.
    fn address(&mut self, may_be_group: bool) -> Option<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest;
        if self.plain_address().is_some() {
            self.skip_space();
            if self.eat('(') {
                self.comment()?
                    .split([' ', '\t'])
                    .all(is_readable_word)
                    .then_some(())?;
            }
            return Some(1);
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if may_be_group && self.eat(':') {
            return self.group();
        }
        if !self.eat('<') {
            return None;
        }
        self.plain_address()?;
        self.eat('>').then_some(1)
    }

    /// The part after the colon of a group.
    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        let mut count = 0;
        if self.eat(';') {
            self.skip_comments()?;
            return Some(count);
        }
        loop {
            count += self.address(false)?;
            self.skip_comments()?;
            if self.eat(';') {
                self.skip_comments()?;
                return Some(count);
            }
            if !self.eat(',') {
                return None;
            }
        }
    }

    /// `local@domain`
    fn plain_address(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted().filter(|is_empty| !is_empty)?;
        } else {
            self.strict_atom()?;
        }
        if !self.eat('@') {
            return None;
        }
        self.skip_space();
        if !self.eat('[') {
            return self.strict_atom();
        }
        let (literal, rest) = self.rest.split_once(']')?;
        self.rest = rest;
        literal.parse::<IpAddr>().ok().map(drop)
    }

    /// An atom in which dots are only between other characters.
    fn strict_atom(&mut self) -> Option<()> {
        let atom = self.atom()?;
        atom.split('.').all(|part| !part.is_empty()).then_some(())
    }

    fn atom(&mut self) -> Option<&'t str> {
        let is_inner = |c: char| is_visible(c) && !r#"()<>[]:;@\,""#.contains(c);
        let after = self.rest.trim_start_matches(is_inner);
        let atom = self.rest.get(..self.rest.len() - after.len());
        self.rest = after;
        atom.filter(|atom| !atom.is_empty())
    }

    /// A quoted string; returns whether it is empty.
    fn quoted(&mut self) -> Option<bool> {
        let inner = self.rest.strip_prefix('"')?;
        let mut chars = inner.char_indices();
        while let Some((at, c)) = chars.next() {
            let c = match c {
                '"' => {
                    self.rest = chars.as_str();
                    return Some(at == 0);
                }
                '\\' => chars.next()?.1,
                c => c,
            };
            if !is_visible(c) && !matches!(c, ' ' | '\t') {
                return None;
            }
        }
        None
    }

    /// A display name: words, of which the first must be valid, ending before the next invalid
    /// one.
    fn phrase(&mut self) -> Option<()> {
        self.word()?;
        loop {
            self.skip_comments()?;
            if self.word().is_none() {
                return Some(());
            }
        }
    }

    fn word(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            return self.quoted().map(drop);
        }
        self.atom().filter(|word| is_readable_word(word)).map(drop)
    }
}

/// Visible ASCII, and all non-ASCII characters.
fn is_visible(c: char) -> bool {
    c.is_ascii_graphic() || !c.is_ascii()
}

/// Whether a word is not an encoded word (RFC 2047) in a character set that Go does not
/// support.
fn is_readable_word(word: &str) -> bool {
    let inner = word.strip_prefix("=?").and_then(|it| it.strip_suffix("?="));
    let parts: Vec<_> = inner.into_iter().flat_map(|it| it.split('?')).collect();
    let [set, encoding, text] = parts.as_slice() else {
        return true;
    };
    let is_decodable = match *encoding {
        "B" | "b" => text.is_empty() || super::is_base64(text),
        "Q" | "q" => is_q_encoded(text),
        _ => false,
    };
    let known = ["utf-8", "iso-8859-1", "us-ascii"];
    set.is_empty()
        || !is_decodable
        || known.iter().any(|known| set.eq_ignore_ascii_case(known))
}

fn is_q_encoded(text: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'=' if is_hex(after.first()) && is_hex(after.get(1)) => {
                rest = after.get(2..).unwrap_or_default();
            }
            b'=' => return false,
            b' '..=b'~' | b'\n' | b'\r' | b'\t' => {}
            _ => return false,
        }
    }
    true
}

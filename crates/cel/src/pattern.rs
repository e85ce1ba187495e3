//! Regular expressions as Go's `regexp` (RE2) understands them.
//!
//! The `regex` crate shares the syntax but not all meanings: here `\d`, `\w`, `\s` and `\b`
//! are ASCII, `\Q…\E` quotes, and a `[`, `&&`, `--` or `~~` inside a class is nothing
//! special. Patterns are translated once, when the
//! expression or schema that holds them is compiled.

mod compiled;
mod plain;
mod table;

pub use compiled::Pattern;

/// Most repetitions that RE2 counts, as in `a{1000}`.
const MOST_REPEATS: u32 = 1000;

/// The same pattern in the syntax of the `regex` crate.
fn translate(pattern: &str) -> Result<String, String> {
    Translator::new(pattern).run()
}

fn go_words(pattern: &str, rust: &str) -> String {
    let reason = if rust.contains("unclosed group") {
        format!("missing closing ): `{pattern}`")
    } else if rust.contains("unopened group") {
        format!("unexpected ): `{pattern}`")
    } else if rust.contains("repetition operator missing expression") {
        "missing argument to repetition operator".to_owned()
    } else if rust.contains("unclosed character class") {
        format!("missing closing ]: `{pattern}`")
    } else {
        format!("invalid syntax: `{pattern}`")
    };
    format!("error parsing regexp: {reason}")
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Translator<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            rest: pattern,
            out: String::with_capacity(pattern.len() + 16),
        }
    }

    fn run(mut self) -> Result<String, String> {
        // Where the repetition operator starts that directly precedes.
        let mut operator: Option<&'a str> = None;
        while let Some(c) = self.rest.chars().next() {
            let at = self.rest;
            self.rest = &self.rest[c.len_utf8()..];
            let mut next = None;
            match c {
                '\\' => self.escape(at)?,
                '[' => self.class(at)?,
                '(' => self.group(at)?,
                '*' | '+' | '?' => {
                    // `a+?` is one operator: as few as possible.
                    let is_lazy = c == '?' && operator.is_some();
                    if !is_lazy {
                        nested(operator, self.rest)?;
                        next = Some(at);
                    }
                    self.out.push(c);
                }
                '{' => match counted(at) {
                    Some(counted) => {
                        self.rest = &at[counted.len()..];
                        nested(operator, self.rest)?;
                        bounded(counted)?;
                        next = Some(at);
                        self.out.push_str(counted);
                    }
                    None => self.out.push_str(r"\{"),
                },
                '}' => self.out.push_str(r"\}"),
                c => self.out.push(c),
            }
            operator = next;
        }
        Ok(self.out)
    }

    /// A group; only the flags that RE2 knows may be set.
    fn group(&mut self, at: &str) -> Result<(), String> {
        self.out.push('(');
        let Some(inner) = self.rest.strip_prefix('?') else {
            return Ok(());
        };
        if inner.starts_with("P<") || inner.starts_with('<') {
            let is_look_behind = inner.starts_with("<=") || inner.starts_with("<!");
            return if is_look_behind {
                Err(syntax("invalid or unsupported Perl syntax", &at[..4]))
            } else {
                Ok(())
            };
        }
        let flags = inner.find([':', ')']).unwrap_or(inner.len());
        let known = |c: char| matches!(c, 'i' | 'm' | 's' | 'U' | '-');
        if inner[..flags].chars().all(known) {
            return Ok(());
        }
        let shown = at.chars().take(3).map(char::len_utf8).sum();
        Err(syntax("invalid or unsupported Perl syntax", &at[..shown]))
    }

    /// An escape outside of a class; `at` starts with the backslash.
    fn escape(&mut self, at: &str) -> Result<(), String> {
        let Some(c) = self.rest.chars().next() else {
            return Err(
                "error parsing regexp: trailing backslash at end of expression: ``"
                    .to_owned(),
            );
        };
        self.rest = &self.rest[c.len_utf8()..];
        match c {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str(r"[\t\n\x0c\r ]"),
            'S' => self.out.push_str(r"[^\t\n\x0c\r ]"),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'B' => self.out.push_str(r"(?-u:\B)"),
            'A' | 'z' => self.pair(c),
            'Q' => {
                let (quoted, rest) =
                    self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex::escape(quoted));
                self.rest = rest;
            }
            c => self.literal_escape(c, at)?,
        }
        Ok(())
    }

    /// An escape that stands for one character or a Unicode class, in or out of a class.
    fn literal_escape(&mut self, c: char, at: &str) -> Result<(), String> {
        match c {
            'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | 'p' | 'P' => self.pair(c),
            '0' => self.octal(c),
            '1'..='7' if self.rest.starts_with(|c: char| c.is_digit(8)) => self.octal(c),
            c if c.is_ascii_punctuation() => {
                if c != '_' && c != '<' && c != '>' {
                    self.out.push('\\');
                }
                self.out.push(c);
            }
            _ => return Err(syntax("invalid escape sequence", &at[..=c.len_utf8()])),
        }
        Ok(())
    }

    fn pair(&mut self, c: char) {
        self.out.push('\\');
        self.out.push(c);
    }

    fn octal(&mut self, first: char) {
        let more = self
            .rest
            .bytes()
            .take(2)
            .take_while(|byte| (b'0'..=b'7').contains(byte))
            .count();
        let digits = &self.rest[..more];
        let value = u32::from_str_radix(&format!("{first}{digits}"), 8).unwrap_or(0);
        self.out.extend(["\\x{", &format!("{value:x}"), "}"]);
        self.rest = &self.rest[more..];
    }

    /// A class; `at` starts with the bracket.
    fn class(&mut self, at: &str) -> Result<(), String> {
        let missing = || Err(syntax("missing closing ]", at));
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.out.push('^');
            self.rest = rest;
        }
        let mut first = true;
        loop {
            let Some(c) = self.rest.chars().next() else {
                return missing();
            };
            let here = self.rest;
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if here.starts_with("[:") && here.contains(":]") => {
                    let end = here.find(":]").map_or(here.len(), |end| end + 2);
                    self.out.push_str(&here[..end]);
                    self.rest = &here[end..];
                }
                '\\' => self.class_escape(here)?,
                '[' | ']' | '&' | '~' => self.pair(c),
                '-' => self.hyphen(first),
                c => self.out.push(c),
            }
            first = false;
        }
    }

    /// A hyphen at either end of a class is itself, between two characters it is a range.
    fn hyphen(&mut self, first: bool) {
        if first || self.rest.starts_with(']') {
            self.pair('-');
        } else {
            self.out.push('-');
            // `a--` is a range that ends with a hyphen, not a set difference.
            if let Some(rest) = self.rest.strip_prefix('-') {
                self.pair('-');
                self.rest = rest;
            }
        }
    }

    fn class_escape(&mut self, at: &str) -> Result<(), String> {
        let Some(c) = self.rest.chars().next() else {
            return Err(syntax("missing closing ]", at));
        };
        self.rest = &self.rest[c.len_utf8()..];
        match c {
            'd' => self.out.push_str("0-9"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("0-9A-Za-z_"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str(r"\t\n\x0c\r "),
            'S' => self.out.push_str(r"[^\t\n\x0c\r ]"),
            c => self.literal_escape(c, at)?,
        }
        Ok(())
    }
}

fn syntax(what: &str, part: &str) -> String {
    format!("error parsing regexp: {what}: `{part}`")
}

/// Refuses an operator that ends where `rest` starts, if another directly precedes it.
fn nested(operator: Option<&str>, rest: &str) -> Result<(), String> {
    let Some(from) = operator else {
        return Ok(());
    };
    let both = &from[..from.len() - rest.len()];
    Err(syntax("invalid nested repetition operator", both))
}

/// `{n}`, `{n,}` or `{n,m}` at the start of `at`; other braces are themselves.
fn counted(at: &str) -> Option<&str> {
    let end = at.find('}')?;
    let inner = at.get(1..end)?;
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && digits(least) && digits(most)).then(|| &at[..=end])
}

fn bounded(counted: &str) -> Result<(), String> {
    let inner = counted.trim_matches(['{', '}']);
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let number = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<u32>().ok().filter(|n| *n <= MOST_REPEATS),
    };
    match (number(least), number(most)) {
        (Some(least), Some(high)) if most.is_empty() || least <= high => Ok(()),
        _ => Err(syntax("invalid repeat count", counted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_match(text)
    }

    #[test]
    fn perl_classes_are_ascii() {
        assert!(matches(r"^\d+[smh]$", "5m"));
        assert!(!matches(r"^\d+[smh]$", "٣m"));
        assert!(!matches(r"^[\w]$", "é"));
        assert!(matches(r"^[^\D]$", "7"));
        assert!(!matches(r"^\s$", "\u{a0}"));
    }

    #[test]
    fn brackets_and_doubled_signs_in_a_class_are_themselves() {
        assert!(matches("^[[]$", "["));
        assert!(matches("^[a&&b]$", "&"));
        assert!(matches("^[A-Za-z0-9._-]*$", "a-b"));
        assert!(matches("^[[:alpha:]]$", "a"));
        assert!(!matches("^[[:alpha:]]$", ":"));
        assert!(matches("^[]a]$", "]"));
    }

    #[test]
    fn quoting_and_plain_braces_are_understood() {
        assert!(matches(r"^\Qa.b\E$", "a.b"));
        assert!(!matches(r"^\Qa.b\E$", "axb"));
        assert!(matches("^a{,2}$", "a{,2}"));
        assert!(matches("^a{2}$", "aa"));
    }

    #[test]
    fn what_grows_too_large_is_refused_before_it_meets_text() {
        let why = Pattern::new(r"\pL{1000}").unwrap_err();
        assert_eq!(why, r"error parsing regexp: invalid syntax: `\pL{1000}`");
    }

    #[test]
    fn a_pattern_that_is_built_late_matches_like_any_other() {
        assert!(matches("^([^/]{1,253}/)?[^/]+$", "a.b/é"));
        assert!(!matches("^([^/]{1,253}/)?[^/]+$", "a/b/c"));
    }

    #[test]
    fn a_pattern_answers_alike_however_often_it_is_asked_and_however_long_the_text_is() {
        // The last two get no table.
        let patterns = ["^[a-z]+$", "b*", "^([^/]{1,253}/)?[^/]+$", r"a\b"];
        for pattern in patterns {
            let pattern = Pattern::new(pattern).unwrap();
            let wanted = regex::Regex::new(pattern.as_str()).unwrap();
            for round in 0..50 {
                for text in ["a", "A", "a/b", "é", "a/a/a", &"a".repeat(300 + round)] {
                    let found = pattern.is_match(text);
                    assert_eq!(found, wanted.is_match(text), "{pattern:?} in {text:?}");
                }
            }
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        let rows = [
            ("(", "error parsing regexp: missing closing ): `(`"),
            ("[a", "error parsing regexp: missing closing ]: `[a`"),
            (
                "a**",
                "error parsing regexp: invalid nested repetition operator: `**`",
            ),
            (
                "a{0,1001}",
                "error parsing regexp: invalid repeat count: `{0,1001}`",
            ),
            (
                "(?=a)",
                "error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
            ),
            (
                "(?x)a",
                "error parsing regexp: invalid or unsupported Perl syntax: `(?x`",
            ),
            (
                r"\1",
                r"error parsing regexp: invalid escape sequence: `\1`",
            ),
            (
                r"\y",
                r"error parsing regexp: invalid escape sequence: `\y`",
            ),
        ];
        for (pattern, why) in rows {
            assert_eq!(Pattern::new(pattern).unwrap_err(), why, "{pattern}");
        }
    }
}

//! A fast validity check for simple patterns. Most patterns are simple, and parsing them with
//! the `regex` crate takes longer than compiling the expression that contains them.

use super::compiled::PARTS_OF_RANGE;

/// Maximum nesting of groups; the parser of the `regex` crate allows 250 levels, of which each
/// group takes at most four.
const MAX_GROUPS: usize = 32;
/// The number of parts of a list of alternatives or of a sequence, without its items.
const LIST: usize = 4;

/// The number of parts of `k` and `s` in either case, one of which is not ASCII.
const FOLDED: usize = 4 * PARTS_OF_RANGE;

/// The maximum number of parts of the automaton of a translated pattern, if it contains only
/// ASCII characters, simple classes, groups, repetitions and anchors, all well formed; `None`
/// if only a parser can decide.
pub(super) fn parts(translated: &str) -> Option<usize> {
    let either_case = translated.strip_prefix("(?i)");
    let mut scan = Scan {
        rest: either_case.unwrap_or(translated).as_bytes(),
        either_case: either_case.is_some(),
        groups: Vec::new(),
        parts: LIST,
        last: None,
    };
    while let Some(byte) = scan.next() {
        scan.step(byte)?;
    }
    scan.groups.is_empty().then_some(scan.parts)
}

struct Scan<'p> {
    rest: &'p [u8],
    /// Whether letters match case-insensitively.
    either_case: bool,
    /// The number of parts before each open group.
    groups: Vec<usize>,
    /// The number of parts since the innermost group was opened.
    parts: usize,
    /// The number of parts of the item that a repetition would repeat.
    last: Option<usize>,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let is_next = self.rest.first() == Some(&wanted);
        if is_next {
            self.next();
        }
        is_next
    }

    fn step(&mut self, byte: u8) -> Option<()> {
        match byte {
            b'^' | b'$' => {
                self.add(1);
                self.last = None;
            }
            b'|' => {
                self.add(LIST);
                self.last = None;
            }
            b'.' => self.add(2 * PARTS_OF_RANGE + 1),
            b'[' => self.class()?,
            b'(' => self.open()?,
            b')' => self.close()?,
            b'*' | b'?' => self.repeat(1)?,
            b'+' => self.repeat(2)?,
            b'{' => self.counted()?,
            b'\\' => {
                self.escaped()?;
                self.add(1);
            }
            b'k' | b'K' | b's' | b'S' if self.either_case => self.add(FOLDED),
            _ if byte == b'-' || is_itself(byte) => {
                self.add(if self.either_case { 3 } else { 1 });
            }
            _ => return None,
        }
        Some(())
    }

    fn add(&mut self, parts: usize) {
        self.parts = self.parts.saturating_add(parts).saturating_add(1);
        self.last = Some(parts);
    }

    /// Repeats the last item at most `most` times.
    fn repeat(&mut self, most: usize) -> Option<()> {
        let once = self.last.take()?;
        let all = once.saturating_add(2).saturating_mul(most);
        self.parts = self.parts.saturating_add(all);
        // A lazy repetition.
        self.eat(b'?');
        Some(())
    }

    /// Parses `{n}`, `{n,}` or `{n,m}`, whose bounds were checked when it was translated.
    fn counted(&mut self) -> Option<()> {
        let least = self.number()?;
        let most = if self.eat(b',') && self.rest.first() != Some(&b'}') {
            self.number()?
        } else {
            least.checked_add(1)?
        };
        if !self.eat(b'}') || least > most {
            return None;
        }
        self.repeat(most)
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit());
        let (digits, rest) = self.rest.split_at_checked(digits.count())?;
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn open(&mut self) -> Option<()> {
        if self.groups.len() == MAX_GROUPS || (self.eat(b'?') && !self.eat(b':')) {
            return None;
        }
        self.groups.push(self.parts);
        self.parts = LIST;
        self.last = None;
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        let inside = self.parts;
        self.parts = self.groups.pop()?;
        self.add(inside.saturating_add(LIST));
        Some(())
    }

    /// Parses an escaped punctuation character, which is literal.
    fn escaped(&mut self) -> Option<u8> {
        self.next()
            .filter(|byte| b".+*?()|[]{}^$\\-/".contains(byte))
    }

    /// Parses a class of single characters and ranges.
    fn class(&mut self) -> Option<()> {
        let is_negated = self.eat(b'^');
        let (mut ranges, mut is_folded) = (0, false);
        while !self.eat(b']') {
            let first = self.member()?;
            let mut last = first;
            if self.rest.first() == Some(&b'-') {
                self.next();
                last = self.member()?;
                if first > last {
                    return None;
                }
            }
            is_folded |= b"KSks".iter().any(|byte| (first..=last).contains(byte));
            ranges += 1;
        }
        if ranges == 0 {
            return None;
        }
        // The other cases of a range's letters add at most two ranges.
        let ranges = if self.either_case { 3 * ranges } else { ranges };
        let parts = if is_negated || (self.either_case && is_folded) {
            (ranges + 3) * PARTS_OF_RANGE
        } else {
            ranges + 1
        };
        self.add(parts);
        Some(())
    }

    fn member(&mut self) -> Option<u8> {
        match self.next()? {
            b'\\' => self.escaped(),
            byte if is_itself(byte) || b".*+?".contains(&byte) => Some(byte),
            _ => None,
        }
    }
}

/// Whether the character is literal, in a class or not.
const fn is_itself(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b' ' | b'_' | b'/' | b':' | b',' | b'@' | b'=' | b'%')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::regexp::compiled;

    #[test]
    fn common_patterns_are_plain() {
        let rows = [
            "^[0-9]+[smh]$",
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            r"^([a-z]+\.)*[a-z]{2,63}$",
            "^(?:mon|tue)(-(?:mon|tue))?$",
            "(?i)^[*](/0*[1-9][0-9]*)? [^ ]+$",
        ];
        for row in rows {
            let translated = crate::regexp::translate(row).expect(row);
            assert!(parts(&translated).is_some(), "{row}");
        }
    }

    #[test]
    fn patterns_that_only_a_parser_can_decide_are_not_plain() {
        let rows = [
            "(",
            ")",
            "[z-a]",
            "[]",
            "a**",
            "*",
            "a(?i)b",
            "[[:alpha:]]",
            "é",
            r"\pL",
        ];
        for row in rows {
            assert_eq!(parts(row), None, "{row}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_plain_pattern_is_valid_and_at_most_as_large_as_estimated(
            pattern in r"(\(\?i\))?([aks0.^$|*+?(){},\[\]\\-]|\(\?:|\{[0-9],?[0-9]?\}|\[\^?[hik*]-?[js+]\]){0,12}"
        ) {
            if let Ok(translated) = crate::regexp::translate(&pattern)
                && let Some(most) = parts(&translated)
            {
                let parsed = regex_syntax::parse(&translated);
                prop_assert!(parsed.is_ok(), "{translated}");
                if let Ok(parsed) = parsed {
                    prop_assert!(compiled::parts(&parsed) <= most);
                }
            }
        }
    }
}

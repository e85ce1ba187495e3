//! Sets of characters by their Unicode properties, after Go's `unicode`, whose tables are those
//! of Unicode 15.0.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, Hir, HirKind};

/// A set of characters.
struct Characters(Vec<(char, char)>);

impl Characters {
    /// The characters of a class in the syntax of the `regex` crate, as far as Unicode 15.0
    /// has them, which is the version that Go has. Empty if it is no class.
    fn of(class: &str) -> Self {
        let class = format!(r"[{class}&&\p{{age=15.0}}]");
        let parsed = regex_syntax::parse(&class).ok();
        let ranges = match parsed.as_ref().map(Hir::kind) {
            Some(HirKind::Class(Class::Unicode(class))) => {
                let ranges = class.ranges().iter();
                ranges.map(|range| (range.start(), range.end())).collect()
            }
            _ => Vec::new(),
        };
        Self(ranges)
    }

    /// Whether the set has `c`.
    fn contains(&self, c: char) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= c);
        let range = after.checked_sub(1).and_then(|at| self.0.get(at));
        range.is_some_and(|(_, last)| c <= *last)
    }
}

static PRINTABLE: LazyLock<Characters> =
    LazyLock::new(|| Characters::of(r"[ \p{L}\p{M}\p{N}\p{P}\p{S}]"));

/// `\p{L}` and `\p{S}`.
static LETTERS_AND_SYMBOLS: LazyLock<Characters> =
    LazyLock::new(|| Characters::of(r"[\p{L}\p{S}]"));

/// `\p{L}`.
static LETTERS: LazyLock<Characters> = LazyLock::new(|| Characters::of(r"\p{L}"));

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space. Cannot
/// fail.
pub fn is_printable(c: char) -> bool {
    PRINTABLE.contains(c)
}

/// `unicode.IsLetter`: whether Unicode has `c` among its letters (category L). Cannot fail.
pub fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || !c.is_ascii() && LETTERS.contains(c)
}

/// `unicode.IsLetter` or `unicode.IsSymbol`: whether Unicode has `c` among its letters or symbols (categories L and
/// S; `$` and `+` are symbols). Cannot fail.
pub fn is_letter_or_symbol(c: char) -> bool {
    LETTERS_AND_SYMBOLS.contains(c)
}

/// `strings.ToLower`: each letter by itself, so that there are as many characters afterwards.
///
/// ```
/// use fivespot_gostd::unicode::to_lower;
/// assert_eq!(to_lower("WİΣ"), "wiσ");
/// ```
pub fn to_lower(text: &str) -> String {
    let letters = text.chars();
    letters
        .map(|c| c.to_lowercase().next().unwrap_or(c))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_found_by_their_properties() {
        for c in ['a', ' ', '~', 'é', '日', '\u{301}', '€', '😀'] {
            assert!(PRINTABLE.contains(c), "{c:?}");
        }
        // A control, spaces, a format character, one that is not assigned, private use.
        for c in [
            '\n', '\u{a0}', '\u{2028}', '\u{200b}', '\u{378}', '\u{e000}',
        ] {
            assert!(!PRINTABLE.contains(c), "{c:?}");
        }
        assert!(is_letter('日') && is_letter('z') && !is_letter('1'));
        assert!(is_letter_or_symbol('+') && is_letter_or_symbol('€'));
        assert!(!is_letter_or_symbol('-') && !is_letter_or_symbol('٣'));
    }
}

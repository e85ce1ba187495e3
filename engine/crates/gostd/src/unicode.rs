//! Sets of characters by their Unicode properties, after Go's `unicode`, whose tables are those
//! of Unicode 15.0.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, Hir, HirKind};

/// A set of characters.
struct Characters(Vec<(char, char)>);

impl Characters {
    /// The characters of a class in the syntax of the `regex` crate that are in Unicode 15.0,
    /// which is Go's version. Empty if the class is invalid.
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

    /// Whether the set contains `c`.
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

/// Same as `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII
/// space. Cannot fail.
pub fn is_printable(c: char) -> bool {
    PRINTABLE.contains(c)
}

/// Same as `unicode.IsLetter`: whether `c` is a letter in Unicode (category L). Cannot fail.
pub fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || !c.is_ascii() && LETTERS.contains(c)
}

/// Same as `unicode.IsLetter` or `unicode.IsSymbol`: whether `c` is a letter or symbol in
/// Unicode (categories L and S; `$` and `+` are symbols). Cannot fail.
pub fn is_letter_or_symbol(c: char) -> bool {
    LETTERS_AND_SYMBOLS.contains(c)
}

/// Same as `strings.ToLower`: maps each character separately, so that the number of characters
/// stays the same.
///
/// ```
/// use kubemu_gostd::unicode::to_lower;
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
        // A control character, spaces, a format character, an unassigned one, private use.
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

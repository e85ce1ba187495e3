//! Regular expressions, after Go's `regexp` (RE2; src/regexp/syntax).
//!
//! The `regex` crate shares the syntax but not all semantics. In Go `\d`, `\w`, `\s` and `\b`
//! are ASCII, `\Q…\E` quotes, a `[`, `&&`, `--` or `~~` inside a class is literal, and Unicode
//! classes are those of Unicode 15.0 under the names that Go supports. Patterns are translated
//! once, when the expression or schema that contains them is compiled.

mod class;
mod compiled;
mod escape;
mod quick_check;
mod table;
mod translate;
mod unicode;

pub use compiled::Pattern;
use translate::translate;

/// Go's error for a part of a pattern.
fn syntax_error(what: &str, part: &str) -> String {
    format!("error parsing regexp: {what}: `{part}`")
}

/// The error for a pattern that Go would compile, but that is too large here.
fn too_large(pattern: &str, error: &str) -> String {
    if error.contains("nest") {
        syntax_error("expression nests too deeply", pattern)
    } else {
        syntax_error("expression too large", pattern)
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
    fn brackets_and_doubled_signs_in_a_class_are_literal() {
        assert!(matches("^[[]$", "["));
        assert!(matches("^[a&&b]$", "&"));
        assert!(matches("^[A-Za-z0-9._-]*$", "a-b"));
        assert!(matches("^[[:alpha:]]$", "a"));
        assert!(!matches("^[[:alpha:]]$", ":"));
        assert!(matches("^[]a]$", "]"));
    }

    #[test]
    fn quoting_and_literal_braces_are_supported() {
        assert!(matches(r"^\Qa.b\E$", "a.b"));
        assert!(!matches(r"^\Qa.b\E$", "axb"));
        assert!(matches("^a{,2}$", "a{,2}"));
        assert!(matches("^a{2}$", "aa"));
    }

    #[test]
    fn a_pattern_that_is_too_large_is_rejected_when_compiled() {
        let why = Pattern::new(r"\pL{1000}").unwrap_err();
        assert_eq!(
            why,
            r"error parsing regexp: expression too large: `\pL{1000}`"
        );
    }

    #[test]
    fn a_lazily_built_pattern_matches_like_any_other() {
        assert!(matches("^([^/]{1,253}/)?[^/]+$", "a.b/é"));
        assert!(!matches("^([^/]{1,253}/)?[^/]+$", "a/b/c"));
    }

    #[test]
    fn a_pattern_matches_the_same_at_every_use_and_text_length() {
        // No table is built for the last two.
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
    fn patterns_that_go_rejects_are_rejected() {
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

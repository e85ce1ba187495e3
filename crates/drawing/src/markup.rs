//! Helpers for XML: escaped text and short numbers.

/// Escapes text for the content of an element or an attribute in double quotes.
///
/// Line breaks and tabs become spaces. Other control characters, which XML does not allow, and
/// characters that change the direction of text are replaced by U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => escaped.push(' '),
            disallowed if is_disallowed(disallowed) => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

fn is_disallowed(letter: char) -> bool {
    let is_bidi = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_bidi || letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}')
}

/// A length in pixels with at most one decimal: `12`, `12.5`.
pub(crate) fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// `text` with at most `max_chars` characters. The middle of a longer text is left out.
pub(crate) fn shortened(text: &str, max_chars: usize) -> String {
    let length = text.chars().count();
    if length <= max_chars {
        return text.to_owned();
    }
    let (head, tail) = (
        max_chars.saturating_sub(1).div_ceil(2),
        max_chars.saturating_sub(1) / 2,
    );
    let head: String = text.chars().take(head).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_escaped() {
        assert_eq!(
            escape("<script>\"a\" & 'b'\u{1b}[31m\u{202e}\u{61c}\n\u{2028}"),
            "&lt;script&gt;&quot;a&quot; &amp; 'b'\u{fffd}[31m\u{fffd}\u{fffd}  "
        );
    }

    #[test]
    fn lengths_are_short() {
        assert_eq!(
            [12.0, 12.34, -0.01, 0.5].map(px),
            ["12", "12.3", "0", "0.5"]
        );
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(shortened("desk-042", 8), "desk-042");
        assert_eq!(shortened("machine-of-team-a-042", 9), "mach…-042");
        assert_eq!(shortened("Zürich", 0).chars().count(), 1);
    }
}

//! Sanitizes text from API servers for a terminal.
//!
//! Names, messages and reasons come from a server, and users who may write objects there can choose
//! some of them. A terminal interprets control characters: they could change the screen, the
//! window's title, or the text that is pasted next.

use std::borrow::Cow;

/// Whether a terminal or a browser could act on the character instead of showing it: controls (C0,
/// DEL, C1), line separators, and characters that change the direction of the text after them.
///
/// # Example
/// ```
/// use kubemu_terminal::is_active_character;
/// assert!(is_active_character('\u{1b}') && is_active_character('\u{202e}'));
/// assert!(!is_active_character('é'));
/// ```
pub fn is_active_character(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

/// `text` on one line. Line breaks and tabs become single spaces; any other character that a
/// terminal could interpret is shown as its escape, such as `\u{1b}`.
pub fn line(text: &str) -> Cow<'_, str> {
    replace_active(text, |found, out| match found {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        }
        other => out.extend(other.escape_unicode()),
    })
}

/// The same for text of several lines, with its line breaks and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    replace_active(text, |found, out| match found {
        '\n' | '\t' => out.push(found),
        other => out.extend(other.escape_unicode()),
    })
}

fn replace_active(text: &str, show: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(is_active_character) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_active_character(character) {
            show(character, &mut out);
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_controls_is_unchanged() {
        for text in ["", "worker-1", "Zürich, 東京", "a\u{301}", "😀"] {
            assert!(matches!(line(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(lines(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn what_a_terminal_could_act_on_is_shown_as_its_escape() {
        for (text, one, several) in [
            (
                "\u{1b}]0;pwned\u{7}",
                r"\u{1b}]0;pwned\u{7}",
                r"\u{1b}]0;pwned\u{7}",
            ),
            ("\u{1b}[31mred", r"\u{1b}[31mred", r"\u{1b}[31mred"),
            ("over\rwritten", "over written", r"over\u{d}written"),
            ("two\r\n\tlines", "two lines", "two\\u{d}\n\tlines"),
            (
                "C1 \u{9b}31m \u{9d}0;x",
                r"C1 \u{9b}31m \u{9d}0;x",
                r"C1 \u{9b}31m \u{9d}0;x",
            ),
            ("\u{202e}gnp.exe", r"\u{202e}gnp.exe", r"\u{202e}gnp.exe"),
            (
                "\u{2066}x\u{2069}",
                r"\u{2066}x\u{2069}",
                r"\u{2066}x\u{2069}",
            ),
            ("a\u{2028}b", "a b", r"a\u{2028}b"),
            ("del\u{7f}\u{0}", r"del\u{7f}\u{0}", r"del\u{7f}\u{0}"),
        ] {
            assert_eq!(line(text), one, "{text:?}");
            assert_eq!(lines(text), several, "{text:?}");
        }
    }
}

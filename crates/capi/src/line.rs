//! Formats text of other authors as one short line.

/// The maximum number of characters that are kept.
const MAX_LENGTH: usize = 256;

/// The text as one line of at most 256 characters. [Active characters](is_active_character) become
/// single spaces.
///
/// # Example
/// ```
/// use fivespot_capi::one_line;
/// assert_eq!(one_line("first\n\tsecond"), "first second");
/// ```
pub fn one_line(text: &str) -> String {
    one_line_within(text, MAX_LENGTH)
}

/// The same with at most `longest` characters.
pub fn one_line_within(text: &str, longest: usize) -> String {
    let parts = text.split(is_active_character).map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    shortened(&parts.join(" "), longest)
}

/// The text if it has at most `longest` characters; else as many whole words as fit, and `…`. A
/// word that takes more than half of the space is cut.
///
/// # Example
/// ```
/// use fivespot_capi::shortened;
/// assert_eq!(shortened("exceeded quota: machines", 18), "exceeded quota:…");
/// ```
pub fn shortened(text: &str, longest: usize) -> String {
    if text.chars().nth(longest).is_none() {
        return text.to_owned();
    }
    let Some(room) = longest.checked_sub(1) else {
        return String::new();
    };
    let kept: String = text.chars().take(room).collect();
    let is_whole = text[kept.len()..].starts_with(char::is_whitespace);
    let end = match kept.rfind(char::is_whitespace) {
        Some(space) if !is_whole && space > kept.len() / 2 => space,
        Some(_) | None => kept.len(),
    };
    format!("{}…", kept[..end].trim_end())
}

/// Whether a terminal or a browser could act on the character instead of showing it: controls (C0,
/// DEL, C1), line separators, and characters that change the direction of the text after them.
///
/// # Example
/// ```
/// use fivespot_capi::is_active_character;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_change_the_text_around_it_becomes_one_space() {
        for active in [
            "\u{61c}", "\u{200f}", "\u{2028}", "\u{202e}", "\u{2069}", "\r\n", "\u{9b}",
        ] {
            let line = one_line(&format!("one{active} two{active}"));
            assert_eq!(line, "one two", "{active:?}");
        }
    }

    #[test]
    fn a_long_text_ends_with_a_whole_word_and_an_ellipsis() {
        let rows = [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two…"),
            ("one two three", 8, "one two…"),
            ("one two   three", 9, "one two…"),
            ("one twenty-three", 12, "one twenty-…"),
            ("one twenty-three", 7, "one tw…"),
            ("four twenty-three", 7, "four…"),
            ("onetwothree", 4, "one…"),
            ("éèà ôîû äöü", 8, "éèà ôîû…"),
            ("one", 0, ""),
            ("", 0, ""),
        ];
        for (text, longest, expected) in rows {
            let short = shortened(text, longest);
            assert_eq!(short, expected, "{text} {longest}");
            assert!(short.chars().count() <= longest, "{text} {longest}");
            assert_eq!(shortened(&short, longest), short, "{text} {longest}");
        }
    }
}

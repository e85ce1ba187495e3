//! Texts that others have written, as one short line.

/// How many characters of such a text are repeated.
const LONGEST: usize = 256;

/// The text in one line of at most 256 characters. Control characters, line separators and marks
/// that change the direction of writing become single spaces.
///
/// # Example
/// ```
/// use fivespot_capi::one_line;
/// assert_eq!(one_line("first\n\tsecond"), "first second");
/// ```
pub fn one_line(text: &str) -> String {
    let parts = text.split(is_unfit).map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(" ").chars().take(LONGEST).collect()
}

/// Whether a character breaks the line, or makes a terminal show the line otherwise.
fn is_unfit(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{2028}'
                | '\u{2029}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

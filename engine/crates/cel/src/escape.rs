//! Escapes property names that are not identifiers.

use std::borrow::Cow;

/// Whether `name` is a keyword or a reserved word of the language, and so cannot be an
/// identifier.
///
/// ```
/// use kubemu_cel::is_reserved;
/// assert!(is_reserved("in") && is_reserved("namespace"));
/// assert!(!is_reserved("inner"));
/// ```
pub fn is_reserved(name: &str) -> bool {
    matches!(name, "true" | "false" | "null" | "in") || is_reserved_identifier(name)
}

/// Whether the word is reserved and cannot name a variable.
pub(crate) fn is_reserved_identifier(word: &str) -> bool {
    matches!(
        word,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "for"
            | "function"
            | "if"
            | "import"
            | "let"
            | "loop"
            | "package"
            | "namespace"
            | "return"
            | "var"
            | "void"
            | "while"
    )
}

/// The name of the property `name` in a rule, or `None` if rules cannot access it.
///
/// `__`, `.`, `-` and `/` become `__underscores__`, `__dot__`, `__dash__` and `__slash__`,
/// reserved words are enclosed in double underscores, and a property whose escaped name is
/// still not an identifier cannot be accessed. Kubernetes calls this property name escaping.
///
/// ```
/// use kubemu_cel::escape;
/// assert_eq!(escape("a-b").as_deref(), Some("a__dash__b"));
/// assert_eq!(escape("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(escape("snake_case").as_deref(), Some("snake_case"));
/// assert_eq!(escape(".hidden").as_deref(), Some("__dot__hidden"));
/// assert_eq!(escape("1st"), None);
/// ```
pub fn escape(name: &str) -> Option<String> {
    escaped(name).map(Cow::into_owned)
}

/// The name in JSON of an escaped name. `None` if it has another word between double underscores
/// than those of [`escape`], as a property `__x__` has.
pub(crate) fn unescaped(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, word, after)) = split_at_word(rest) {
        plain.push_str(before);
        plain.push_str(match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            _ if is_reserved(word) && before.is_empty() && after.is_empty() => word,
            _ => return None,
        });
        rest = after;
    }
    plain.push_str(rest);
    Some(Cow::Owned(plain))
}

/// The text before the first word that double underscores enclose, the word, and the rest.
fn split_at_word(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find("__")?;
        let inside = text.get(start + 2..)?;
        let (word, after) = inside.split_at(inside.find('_')?);
        match after.strip_prefix("__") {
            Some(after) if !word.is_empty() => {
                return Some((text.get(..start)?, word, after));
            }
            _ => from = start + 1,
        }
    }
}

/// [`escape`] without an allocation for names that need no escaping.
pub(crate) fn escaped(name: &str) -> Option<Cow<'_, str>> {
    if is_reserved(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Some(Cow::Borrowed(name));
    }
    let mut chars = name.chars().peekable();
    let mut escaped = String::with_capacity(name.len());
    while let Some(char) = chars.next() {
        match char {
            '_' if chars.next_if_eq(&'_').is_some() => {
                escaped.push_str("__underscores__");
            }
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            '_' => escaped.push('_'),
            other if other.is_ascii_alphanumeric() => escaped.push(other),
            _ => return None,
        }
    }
    Some(Cow::Owned(escaped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unescaping_restores_every_name_that_can_be_escaped() {
        for name in [
            "a",
            "a-b",
            "a__b",
            ".x/y",
            "namespace",
            "_a_",
            "a___b",
            "in",
        ] {
            let escaped = escape(name).unwrap();
            assert_eq!(unescaped(&escaped).as_deref(), Some(name), "{escaped}");
        }
    }

    #[test]
    fn other_words_between_double_underscores_cannot_be_unescaped() {
        for (name, plain) in [
            ("__x__", None),
            ("a__x__b", None),
            ("__é__", None),
            ("a__in__", None),
            ("__in__", Some("in")),
            ("__dot____dash__", Some(".-")),
            ("___dot__", Some("_.")),
            ("____", Some("____")),
            ("a__", Some("a__")),
            ("__a", Some("__a")),
            ("é", Some("é")),
        ] {
            assert_eq!(unescaped(name).as_deref(), plain, "{name}");
        }
    }
}

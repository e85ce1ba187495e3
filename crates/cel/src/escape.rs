//! Escapes property names that are not identifiers.

use std::borrow::Cow;

use crate::parser;

/// Whether `name` is a keyword or a reserved word of the language, and so cannot be an
/// identifier.
///
/// ```
/// use fivespot_cel::is_reserved;
/// assert!(is_reserved("in") && is_reserved("namespace"));
/// assert!(!is_reserved("inner"));
/// ```
pub fn is_reserved(name: &str) -> bool {
    matches!(name, "true" | "false" | "null" | "in") || parser::is_reserved(name)
}

/// The name of the property `name` in a rule, or `None` if rules cannot access it.
///
/// `__`, `.`, `-` and `/` become `__underscores__`, `__dot__`, `__dash__` and `__slash__`,
/// reserved words are enclosed in double underscores, and a property whose escaped name is
/// still not an identifier cannot be accessed. Kubernetes calls this property name escaping.
///
/// ```
/// use fivespot_cel::escape;
/// assert_eq!(escape("a-b").as_deref(), Some("a__dash__b"));
/// assert_eq!(escape("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(escape("snake_case").as_deref(), Some("snake_case"));
/// assert_eq!(escape(".hidden").as_deref(), Some("__dot__hidden"));
/// assert_eq!(escape("1st"), None);
/// ```
pub fn escape(name: &str) -> Option<String> {
    escaped(name).map(Cow::into_owned)
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

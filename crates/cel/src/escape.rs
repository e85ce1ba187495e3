//! How names that are no identifiers are written in a rule.

use std::borrow::Cow;

use crate::parser;

/// Whether `name` is a word of the language or kept for other languages, and so names nothing.
///
/// ```
/// use fivespot_cel::is_reserved;
/// assert!(is_reserved("in") && is_reserved("namespace"));
/// assert!(!is_reserved("inner"));
/// ```
pub fn is_reserved(name: &str) -> bool {
    matches!(name, "true" | "false" | "null" | "in") || parser::is_reserved(name)
}

/// The name under which a rule sees the property `name`, or `None` if it cannot.
///
/// `__`, `.`, `-` and `/` become `__underscores__`, `__dot__`, `__dash__` and `__slash__`,
/// words of the language are put between double underscores, and a name that is then no
/// identifier cannot be accessed. Kubernetes calls this property name escaping.
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

/// [`escape`], which leaves most names as they are.
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

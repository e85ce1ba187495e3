//! Text, borrowed from the input if possible.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Text: borrowed, or shared by all clones of the value.
#[derive(Clone)]
pub enum Text<'v> {
    /// A part of the input.
    Borrowed(&'v str),
    /// Computed.
    Shared(Arc<str>),
}

/// The number of characters of a text. ASCII text, the most common case, is detected faster
/// than characters are counted.
pub(crate) fn characters(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<'v> From<&'v str> for Text<'v> {
    fn from(text: &'v str) -> Self {
        Self::Borrowed(text)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Shared(Arc::from(text))
    }
}

impl From<Arc<str>> for Text<'_> {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

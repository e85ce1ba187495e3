//! Objects that are kept while a reconcile waits.

use serde_json::Value;

/// A value as text, which takes a fraction of the memory: at an edge many reconciles wait for answers
/// at the same time, and few of them look at what they keep once more.
#[derive(Clone, Debug)]
pub(crate) struct JsonText(Box<str>);

impl JsonText {
    /// The text of a value.
    pub(crate) fn of(value: &Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }

    /// The value again. Cannot fail: the text was printed from one, so that it always parses.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

//! Objects that are kept while a reconcile waits.

use serde_json::Value;

/// A value as JSON text, which takes a fraction of the memory. At an edge many reconciles wait for
/// responses at the same time, and few of them read again what they keep.
#[derive(Clone, Debug)]
pub(crate) struct JsonText(Box<str>);

impl JsonText {
    /// The text of a value.
    pub(crate) fn of(value: &Value) -> Self {
        Self(value.to_string().into_boxed_str())
    }

    /// Parses the text. Cannot fail, because the text was printed from a value.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

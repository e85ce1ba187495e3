//! Label selectors of the form that API objects use.

use serde_json::Value;

use crate::FieldError;

/// A compiled `metav1.LabelSelector`.
#[derive(Clone, Debug, Default)]
pub struct Selector {}

impl Selector {
    /// Compiles the JSON of a label selector; null and absent select everything.
    ///
    /// # Errors
    /// Malformed keys, values and operators, with paths that start at `path`.
    pub fn compile(
        selector: Option<&Value>,
        path: &str,
    ) -> Result<Self, Vec<FieldError>> {
        let _ = (selector, path);
        Ok(Self {})
    }

    /// Whether `labels`, a JSON object of strings, are selected. Absent labels are as good
    /// as none.
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        let _ = labels;
        true
    }

    /// Whether every object is selected.
    pub fn is_empty(&self) -> bool {
        true
    }
}

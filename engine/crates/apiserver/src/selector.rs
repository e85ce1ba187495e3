//! Label and field selectors of a list, a watch or a collection deletion.

mod field;
mod label;

use serde_json::Value;

pub(crate) use field::Fields;
pub(crate) use label::{Labels, matches_label_selector};

/// The label and field selectors of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) labels: Labels,
    pub(crate) fields: Fields,
}

impl Filter {
    /// Whether the stored `object` is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.fields.matches(object) && self.labels.matches(object)
    }

    /// Whether every object is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.labels.is_empty()
    }
}

//! What admission notes about a request that it lets pass.

use std::collections::BTreeMap;

/// The warnings and audit annotations of an admitted request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// For `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// For the audit log.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Notes {
    /// Adds the warnings and annotations of `further`.
    pub(crate) fn extend(&mut self, further: Self) {
        self.warnings.extend(further.warnings);
        self.annotations.extend(further.annotations);
    }
}

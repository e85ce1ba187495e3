//! A class as it is kept for all its machines.

use fivespot_api::PreparedClass;
use fivespot_plan::Specs;

/// A class in one version.
pub(crate) struct ReadClass {
    pub(crate) prepared: PreparedClass,
    /// Where its provider specs are.
    pub(crate) specs: Specs,
}

//! The chain of enabled plugins.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Plugin};
use crate::kind::BuiltinKind;
use crate::note::Notes;
use crate::state::State;
use crate::status::Status;

/// The enabled plugins, in order.
#[derive(Clone, Debug)]
pub(crate) struct Chain(pub(super) Arc<[Arc<dyn Plugin>]>);

impl Chain {
    /// The kinds that are served because their plugins are enabled.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Arc<dyn BuiltinKind>> {
        self.0.iter().flat_map(|it| it.kinds())
    }

    /// Calls `admit` of the plugins; `object` is the written object, if any. Returns the warnings
    /// and audit annotations. All plugins are called once more if a webhook has changed an object
    /// that others had already admitted (`reinvocation.go`).
    ///
    /// # Errors
    /// The first rejection.
    pub(crate) fn admit(
        &self,
        state: &mut State,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
    ) -> Result<Notes, Status> {
        let mut is_required = true;
        while is_required {
            for plugin in &*self.0 {
                plugin
                    .admit(state, attributes, object.as_deref_mut())
                    .map_err(|refused| with_warnings(refused, attributes))?;
            }
            // At most one reinvocation, whatever its result.
            let mut reinvocation = attributes.reinvocation();
            is_required = reinvocation.is_required && !reinvocation.is_second;
            reinvocation.is_second = true;
        }
        Ok(attributes.take_notes())
    }

    /// Calls `validate` of the plugins. Returns the warnings and audit annotations.
    ///
    /// # Errors
    /// The first rejection.
    pub(crate) fn validate(
        &self,
        state: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Notes, Status> {
        for plugin in &*self.0 {
            plugin
                .validate(state, attributes, object)
                .map_err(|refused| with_warnings(refused, attributes))?;
        }
        Ok(attributes.take_notes())
    }
}

/// Adds the warnings of the request to a rejection.
fn with_warnings(mut refused: Status, attributes: &Attributes<'_>) -> Status {
    refused.warnings.extend(attributes.take_notes().warnings);
    refused
}

//! The hash of what a machine is made from.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::scheduled_machine::ScheduledMachineSpec;

/// SHA-256, in lower-case hex, of the RFC 8785 JSON of
/// `{bootstrapSpec, infrastructureSpec, machineTemplate}`.
///
/// Two specs have the same hash exactly if they ask for the same three objects: the order of keys,
/// the spelling of numbers and fields left at their default make no difference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpecHash(String);

impl SpecHash {
    /// The hash of a spec. Never fails.
    pub fn of(spec: &ScheduledMachineSpec) -> Self {
        let asked = serde_json::json!({
            "bootstrapSpec": spec.bootstrap_spec,
            "infrastructureSpec": spec.infrastructure_spec,
            "machineTemplate": spec.machine_template,
        });
        let digest = Sha256::digest(canonical::json(&asked).as_bytes());
        Self(format!("{digest:x}"))
    }

    /// The 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SpecHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

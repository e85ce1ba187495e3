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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::SpecHash;

    fn hash(bootstrap: &Value, machine_template: &Value) -> SpecHash {
        let spec = json!({
            "schedule": {},
            "clusterName": "prod",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig",
                "spec": bootstrap,
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine",
                "spec": {},
            },
            "machineTemplate": machine_template,
        });
        SpecHash::of(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn the_hash_is_that_of_the_canonical_text() {
        // Computed with Python's json.dumps(sort_keys=True, separators=(',', ':')) and hashlib.
        let hash = hash(
            &json!({"b": 1, "a": [true, null, 0.5]}),
            &json!({"labels": {"team": "a"}}),
        );
        assert_eq!(
            hash.as_str(),
            "941f16eea856ab8d7dde06076198c3dd9e0840ada2ec80dcd87eda1fa8232390"
        );
    }

    #[test]
    fn spelling_makes_no_difference_and_meaning_does() {
        let template = json!({});
        let plain = hash(&json!({"a": 1, "b": 2}), &template);
        assert_eq!(plain, hash(&json!({"b": 2.0, "a": 1e0}), &Value::Null));
        assert_eq!(
            plain,
            hash(&json!({"a": 1, "b": 2}), &json!({"labels": {}}))
        );
        assert_ne!(plain, hash(&json!({"a": 1, "b": "2"}), &template));
        for asked in [
            json!({"labels": {"b": "2"}}),
            json!({"version": "v1.31.2"}),
            json!({"failureDomain": "zone-1"}),
        ] {
            assert_ne!(plain, hash(&json!({"a": 1, "b": 2}), &asked), "{asked}");
        }
    }
}

//! The differences of the two simulated contract versions of Cluster API.
//!
//! Source: the `Machine` and `Cluster` types of Cluster API 1.10 (v1beta1) and 1.11 and
//! later (v1beta2).

use fivespot_capi::Contract;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::crd::CapiResources;
use crate::object::{list, text};

/// The desired condition of a step, before its transition time is set.
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) holds: bool,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl CapiResources {
    /// How long the drain of a Machine's Node may take; `None` means no limit.
    pub(crate) fn drain_timeout(self, machine: &Value) -> Option<SignedDuration> {
        let span = match self.contract {
            Contract::V1Beta1 => {
                let written = text(machine, "/spec/nodeDrainTimeout")?;
                written.parse::<SignedDuration>().ok()?
            }
            Contract::V1Beta2 => SignedDuration::from_secs(
                machine
                    .pointer("/spec/deletion/nodeDrainTimeoutSeconds")?
                    .as_i64()?,
            ),
        };
        (!span.is_zero()).then_some(span)
    }

    /// The API group of a reference of a Machine.
    pub(crate) fn group_of(self, reference: &Value) -> Option<&str> {
        match self.contract {
            Contract::V1Beta1 => text(reference, "/apiVersion")?
                .split_once('/')
                .map(|(group, _)| group),
            Contract::V1Beta2 => text(reference, "/apiGroup"),
        }
    }

    /// How a Machine refers to its Node.
    pub(crate) fn node_ref(self, node: &Value) -> Value {
        let (name, uid) = (crate::object::name(node), crate::object::uid(node));
        match self.contract {
            Contract::V1Beta1 => {
                json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid})
            }
            Contract::V1Beta2 => json!({"name": name}),
        }
    }

    /// Whether a Cluster's infrastructure and control plane are initialized.
    pub(crate) fn is_initialised(self, cluster: &Value) -> bool {
        let (infrastructure, control_plane) = match self.contract {
            Contract::V1Beta1 => {
                ("/status/infrastructureReady", "/status/controlPlaneReady")
            }
            Contract::V1Beta2 => (
                "/status/initialization/infrastructureProvisioned",
                "/status/initialization/controlPlaneInitialized",
            ),
        };
        crate::object::is_true(cluster, infrastructure)
            && crate::object::is_true(cluster, control_plane)
    }

    /// Merges `wanted` into the conditions of `object`. A condition whose status is unchanged
    /// keeps its transition time.
    pub(crate) fn conditions(
        self,
        object: &Value,
        requested: &[Condition<'_>],
        now: Timestamp,
    ) -> Value {
        let old = list(object, "/status/conditions");
        let of_kind = |kind: &str| old.iter().find(|c| text(c, "/type") == Some(kind));
        let changed = requested.iter().map(|condition| {
            let status = if condition.holds { "True" } else { "False" };
            let since = of_kind(condition.kind)
                .filter(|old| text(old, "/status") == Some(status))
                .and_then(|old| text(old, "/lastTransitionTime"))
                .map_or_else(|| seconds(now), str::to_owned);
            self.condition(condition, status, &since)
        });
        let untouched = old.iter().filter(|old| {
            !requested
                .iter()
                .any(|requested| text(old, "/type") == Some(requested.kind))
        });
        changed.chain(untouched.cloned()).collect()
    }

    fn condition(self, condition: &Condition<'_>, status: &str, since: &str) -> Value {
        let mut shape = json!({
            "type": condition.kind,
            "status": status,
            "lastTransitionTime": since,
        });
        match self.contract {
            Contract::V1Beta1 => {
                if !condition.holds {
                    shape["reason"] = json!(condition.reason);
                    shape["message"] = json!(condition.message);
                    shape["severity"] = json!("Info");
                }
            }
            Contract::V1Beta2 => {
                shape["reason"] = json!(condition.reason);
                shape["message"] = json!(condition.message);
            }
        }
        shape
    }
}

/// An instant as Kubernetes writes it: RFC 3339, whole seconds, UTC.
pub(crate) fn seconds(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: CapiResources = CapiResources {
        contract: Contract::V1Beta1,
    };
    const NEW: CapiResources = CapiResources {
        contract: Contract::V1Beta2,
    };

    #[test]
    fn a_timeout_of_zero_means_no_limit_in_both_versions() {
        let old = json!({"spec": {"nodeDrainTimeout": "0s"}});
        let new = json!({"spec": {"deletion": {"nodeDrainTimeoutSeconds": 0}}});
        assert_eq!(OLD.drain_timeout(&old), None);
        assert_eq!(NEW.drain_timeout(&new), None);
        let old = json!({"spec": {"nodeDrainTimeout": "5m"}});
        assert_eq!(OLD.drain_timeout(&old), Some(SignedDuration::from_mins(5)));
    }

    #[test]
    fn an_unchanged_condition_keeps_its_transition_time() {
        let now: Timestamp = "2026-03-06T23:00:00Z".parse().unwrap();
        let object = json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-06T21:30:00Z"},
            {"type": "Other", "status": "True"},
        ]}});
        let ready = |holds| {
            let requested = [Condition {
                kind: "Ready",
                holds,
                reason: "R",
                message: "",
            }];
            NEW.conditions(&object, &requested, now)
        };
        assert_eq!(ready(true)[0]["lastTransitionTime"], "2026-03-06T21:30:00Z");
        assert_eq!(
            ready(false)[0]["lastTransitionTime"],
            "2026-03-06T23:00:00Z"
        );
        assert_eq!(ready(false)[1]["type"], "Other");
    }
}

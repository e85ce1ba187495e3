//! The hash of what a machine is created from.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::scheduled_machine::{
    InlineObject, MachineTemplate, ScheduledMachineSpec, null_is_default,
};

/// What a machine is created from: these fields of a ScheduledMachine, or of its class.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineParts {
    bootstrap_spec: InlineObject,
    infrastructure_spec: InlineObject,
    #[serde(default, deserialize_with = "null_is_default")]
    machine_template: MachineTemplate,
}

impl From<&ScheduledMachineSpec> for MachineParts {
    fn from(spec: &ScheduledMachineSpec) -> Self {
        Self {
            bootstrap_spec: spec.bootstrap_spec.clone(),
            infrastructure_spec: spec.infrastructure_spec.clone(),
            machine_template: spec.machine_template.clone(),
        }
    }
}

/// SHA-256, in lower-case hex, of the RFC 8785 JSON of
/// `{bootstrapSpec, infrastructureSpec, machineTemplate}`.
///
/// Two specs have the same hash exactly if they request the same three objects: the order of
/// keys, the spelling of numbers and fields left at their default make no difference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpecHash(String);

impl SpecHash {
    /// The hash of a spec. Never fails.
    pub fn of(spec: &ScheduledMachineSpec) -> Self {
        let bootstrap = canonical::json(&json!(spec.bootstrap_spec.spec));
        let infrastructure = canonical::json(&json!(spec.infrastructure_spec.spec));
        Self::of_canonical(&spec.into(), [bootstrap, infrastructure])
    }

    /// The hash of parts that were read without the provider specs. They are given as JSON
    /// texts, and the values in their place in `parts` are ignored. The texts are parsed one
    /// after the other.
    ///
    /// # Errors
    /// A text is not a JSON object.
    pub fn of_texts(
        parts: &MachineParts,
        [bootstrap, infrastructure]: [&str; 2],
    ) -> serde_json::Result<Self> {
        let canonical = |text| {
            let object: Map<String, Value> = serde_json::from_str(text)?;
            Ok::<_, serde_json::Error>(canonical::json(&Value::Object(object)))
        };
        let bootstrap = canonical(bootstrap)?;
        Ok(Self::of_canonical(
            parts,
            [bootstrap, canonical(infrastructure)?],
        ))
    }

    /// The hash, given the canonical texts of the two provider specs. The fields are hashed in
    /// the order of the canonical form.
    fn of_canonical(
        parts: &MachineParts,
        [bootstrap, infrastructure]: [String; 2],
    ) -> Self {
        let mut hash = Sha256::new();
        hash.update(r#"{"bootstrapSpec":"#);
        update(&mut hash, &parts.bootstrap_spec, &bootstrap);
        hash.update(r#","infrastructureSpec":"#);
        update(&mut hash, &parts.infrastructure_spec, &infrastructure);
        hash.update(r#","machineTemplate":"#);
        hash.update(canonical::json(&json!(parts.machine_template)));
        hash.update("}");
        Self(format!("{:x}", hash.finalize()))
    }

    /// A hash from its [hex digits](Self::as_str).
    pub fn from_hex(hash: &str) -> Self {
        Self(hash.to_owned())
    }

    /// The hash of the same with this merge patch on the infrastructure spec, that of a host; `self`
    /// if the patch is empty.
    #[must_use]
    pub fn on_host(self, patch: &Map<String, Value>) -> Self {
        if patch.is_empty() {
            return self;
        }
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(canonical::json(&json!(patch)));
        Self(format!("{:x}", hash.finalize()))
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

/// Adds the canonical text of an inline object, given that of its spec.
fn update(hash: &mut Sha256, object: &InlineObject, spec: &str) {
    let mut others = json!({"apiVersion": object.api_version, "kind": object.kind});
    if let Some(metadata) = &object.metadata
        && !(metadata.labels.is_empty() && metadata.annotations.is_empty())
    {
        others["metadata"] =
            json!({"labels": metadata.labels, "annotations": metadata.annotations});
    }
    if let Some(namespace) = &object.namespace {
        others["namespace"] = json!(namespace);
    }
    // `spec` is the last of the five names in canonical order.
    let others = canonical::json(&others);
    hash.update(others.strip_suffix('}').unwrap_or(&others));
    hash.update(r#","spec":"#);
    hash.update(spec);
    hash.update("}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduled_machine::InlineMetadata;

    fn spec(bootstrap: &Value, machine_template: &Value) -> ScheduledMachineSpec {
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
        serde_json::from_value(spec).unwrap()
    }

    fn hash(bootstrap: &Value, machine_template: &Value) -> SpecHash {
        SpecHash::of(&spec(bootstrap, machine_template))
    }

    #[test]
    fn the_hash_from_texts_is_that_of_the_whole_spec() {
        let bootstrap = json!({"b": 1.0, "a": [true, null, {"\u{e9}": "\n"}]});
        let mut whole = spec(&bootstrap, &json!({"labels": {"team": "a"}}));
        let metadata = json!({"labels": {"rack": "7"}, "annotations": {"note": "n"}});
        let metadata: InlineMetadata = serde_json::from_value(metadata).unwrap();
        for (namespace, metadata) in
            [(None, None), (Some("default".to_owned()), Some(metadata))]
        {
            whole.infrastructure_spec.namespace = namespace;
            whole.infrastructure_spec.metadata = metadata;
            let mut without = whole.clone();
            without.bootstrap_spec.spec.clear();
            let text = serde_json::to_string_pretty(&bootstrap).unwrap();
            let hash =
                SpecHash::of_texts(&MachineParts::from(&without), [&text, "{}"]).unwrap();
            assert_eq!(hash, SpecHash::of(&whole));
            // The reference: the hash of the canonical text of all three.
            let all = json!({
                "bootstrapSpec": whole.bootstrap_spec,
                "infrastructureSpec": whole.infrastructure_spec,
                "machineTemplate": whole.machine_template,
            });
            let digest = Sha256::digest(canonical::json(&all).as_bytes());
            assert_eq!(hash.as_str(), format!("{digest:x}"));
        }
        assert!(SpecHash::of_texts(&MachineParts::from(&whole), ["[]", "{}"]).is_err());
        assert!(SpecHash::of_texts(&MachineParts::from(&whole), ["{}", "{"]).is_err());
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
    fn the_hash_depends_on_the_values_and_not_on_their_spelling() {
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

    #[test]
    fn what_differs_on_a_host_counts() {
        let plain = hash(&json!({}), &Value::Null);
        let on_host = |patch: Value| plain.clone().on_host(patch.as_object().unwrap());
        assert_eq!(on_host(json!({})), plain);
        let seventh = on_host(json!({"address": "10.0.0.7", "port": 22}));
        assert_ne!(seventh, plain);
        assert_ne!(seventh, on_host(json!({"address": "10.0.0.8", "port": 22})));
        assert_eq!(
            seventh,
            on_host(json!({"port": 22.0, "address": "10.0.0.7"}))
        );
    }

    #[test]
    fn metadata_of_a_provider_object_counts_unless_it_is_empty() {
        let with = |metadata: &Value| {
            let mut spec = spec(&json!({}), &Value::Null);
            spec.bootstrap_spec.metadata =
                serde_json::from_value(metadata.clone()).unwrap();
            SpecHash::of(&spec)
        };
        let plain = with(&Value::Null);
        for empty in [json!({}), json!({"labels": {}, "annotations": null})] {
            assert_eq!(with(&empty), plain, "{empty}");
        }
        let label = with(&json!({"labels": {"rack": "7"}}));
        assert_ne!(label, plain);
        assert_ne!(with(&json!({"labels": {"rack": "8"}})), label);
        assert_ne!(with(&json!({"annotations": {"rack": "7"}})), label);
    }
}

//! How lists and maps are merged, read from k8s-openapi's generated `DeepMerge` code.
//!
//! That code was itself generated from the `x-kubernetes-list-type`, `x-kubernetes-map-type` and
//! `x-kubernetes-patch-*` extensions of Kubernetes' published OpenAPI; what it does not contain is
//! in the tables of this file.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// How a field is merged, by definition and JSON name of the field.
pub type Merges = BTreeMap<(String, String), Merge>;

/// How a list or map is merged.
#[derive(Debug)]
pub enum Merge {
    /// A list replaced as a whole.
    Atomic,
    /// A list of distinct scalars.
    Set,
    /// A list of objects distinguished by a field.
    Map(String),
    /// A map replaced as a whole.
    AtomicMap,
}

/// Lists with more keys for server-side apply than for strategic merge patch.
const FURTHER_KEYS: [(&str, &str, &str); 7] = [
    ("Container", "ports", "protocol"),
    ("EphemeralContainer", "ports", "protocol"),
    ("PodSpec", "topologySpreadConstraints", "whenUnsatisfiable"),
    ("ResourceClaimStatus", "devices", "device"),
    ("ResourceClaimStatus", "devices", "pool"),
    ("ResourceClaimStatus", "devices", "shareID"),
    ("ServiceSpec", "ports", "protocol"),
];

/// Lists whose entries drop the fields that a strategic merge patch does not contain.
const RETAIN_KEYS: [(&str, &str); 3] = [
    ("PodSpec", "volumes"),
    ("PodSpec", "resourceClaims"),
    ("PodStatus", "resourceClaimStatuses"),
];

/// Lists that server-side apply merges and a strategic merge patch replaces.
const REPLACED: [(&str, &str); 7] = [
    ("AllocatedDeviceStatus", "conditions"),
    ("CertificateSigningRequestStatus", "conditions"),
    ("CustomResourceDefinitionStatus", "conditions"),
    ("ResourceClaimStatus", "devices"),
    ("ResourceRequirements", "claims"),
    ("ResourceStatus", "resources"),
    ("ValidatingAdmissionPolicyStatus", "conditions"),
];

/// Sets that a strategic merge patch merges too.
const MERGED_SETS: [(&str, &str); 2] =
    [("ObjectMeta", "finalizers"), ("NodeSpec", "podCIDRs")];

/// Lists that a strategic merge patch merges and that are atomic for server-side apply.
const MERGED: [(&str, &str, &str); 2] = [
    ("JobStatus", "conditions", "type"),
    ("PodStatus", "hostIPs", "ip"),
];

/// Keys with a default value for entries without the key (`+default`).
const KEY_DEFAULTS: [(&str, &str, &str); 2] = [
    ("ContainerPort", "protocol", "TCP"),
    ("ServicePort", "protocol", "TCP"),
];

/// Reads every `DeepMerge` implementation below `root`.
pub fn read(root: &Path) -> Result<Merges, Box<dyn Error>> {
    let mut merges = Merges::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                read_source(&fs::read_to_string(path)?, &mut merges);
            }
        }
    }
    Ok(merges)
}

/// A generated source file contains one definition.
fn read_source(source: &str, merges: &mut Merges) {
    let Some(definition) = between(source, "// Generated from definition ", "\n") else {
        return;
    };
    let mut rest = source;
    while let Some(at) = rest.find("crate::merge_strategies::") {
        rest = &rest[at + "crate::merge_strategies::".len()..];
        let Some(field) = between(rest, "&mut self.", ",") else {
            continue;
        };
        let merge = if rest.starts_with("list::atomic(") {
            Merge::Atomic
        } else if rest.starts_with("list::set(") {
            Merge::Set
        } else if rest.starts_with("list::map(") {
            let key = between(rest, "|lhs, rhs| lhs.", " ==").unwrap_or_default();
            Merge::Map(camel_case(key))
        } else if rest.starts_with("map::atomic(") {
            Merge::AtomicMap
        } else {
            continue;
        };
        let arrow = format!("\" => Field::Key_{field},");
        let Some(end) = source.find(&arrow) else {
            continue;
        };
        let start = source[..end].rfind('"').map_or(0, |it| it + 1);
        let name = source[start..end].to_owned();
        merges.insert((definition.to_owned(), name), merge);
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let end = text[start..].find(after)? + start;
    Some(&text[start..end])
}

/// The JSON name of a field: `mount_path` is `mountPath`, `type_` is `type`, `resource_id` is
/// `resourceID`.
fn camel_case(field: &str) -> String {
    let mut words = field.trim_end_matches('_').split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        if word == "id" {
            name.push_str("ID");
        } else if let Some(first) = word.get(..1) {
            name.push_str(&first.to_uppercase());
            name.push_str(&word[1..]);
        }
    }
    name
}

/// Adds the extensions of Kubernetes' OpenAPI to the fields of one definition.
pub fn annotate(definition: &str, schema: &mut Value, merges: &Merges) {
    let short = definition.rsplit('.').next().unwrap_or_default();
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, field) in fields {
        if let Some((.., value)) =
            KEY_DEFAULTS.iter().find(|it| (it.0, it.1) == (short, name))
        {
            field["default"] = (*value).into();
        }
        let Some(merge) = merges.get(&(definition.to_owned(), name.clone())) else {
            continue;
        };
        if let Some((.., key)) = MERGED.iter().find(|it| (it.0, it.1) == (short, name)) {
            field["x-kubernetes-list-type"] = "atomic".into();
            patch(field, "merge", Some(key));
            continue;
        }
        match merge {
            // Kubernetes merges no list by a field of the entries' metadata.
            Merge::Map(key) if key.contains('.') => {
                field["x-kubernetes-list-type"] = "atomic".into();
            }
            Merge::Atomic => field["x-kubernetes-list-type"] = "atomic".into(),
            Merge::AtomicMap => field["x-kubernetes-map-type"] = "atomic".into(),
            Merge::Set => {
                field["x-kubernetes-list-type"] = "set".into();
                if MERGED_SETS.contains(&(short, name)) {
                    patch(field, "merge", None);
                }
            }
            Merge::Map(key) => {
                let mut keys = vec![key.as_str()];
                keys.extend(
                    FURTHER_KEYS
                        .iter()
                        .filter(|it| (it.0, it.1) == (short, name))
                        .map(|it| it.2),
                );
                field["x-kubernetes-list-type"] = "map".into();
                field["x-kubernetes-list-map-keys"] = json!(keys);
                if RETAIN_KEYS.contains(&(short, name)) {
                    patch(field, "merge,retainKeys", Some(key));
                } else if !REPLACED.contains(&(short, name)) {
                    patch(field, "merge", Some(key));
                }
            }
        }
    }
    if short == "PodDisruptionBudgetSpec" {
        patch(&mut schema["properties"]["selector"], "replace", None);
    }
    if short == "PersistentVolumeSpec" {
        schema["properties"]["claimRef"]["x-kubernetes-map-type"] = "granular".into();
    }
    if short == "DeploymentSpec" {
        patch(&mut schema["properties"]["strategy"], "retainKeys", None);
    }
}

fn patch(field: &mut Value, strategy: &str, key: Option<&str>) {
    field["x-kubernetes-patch-strategy"] = strategy.into();
    if let Some(key) = key {
        field["x-kubernetes-patch-merge-key"] = key.into();
    }
}

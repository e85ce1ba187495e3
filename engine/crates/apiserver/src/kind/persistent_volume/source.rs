//! Defaulting and validation of a persistent volume's source.

use kubemu_admission::FieldError;
use serde_json::{Map, Value, json};

use crate::kind::field::{Errors, Field};
use crate::kind::pod_spec::default::fill;
use crate::kind::pod_spec::{storage_network, volume_source};
use crate::kind::rule;

/// The fields of the sources, in the order of Kubernetes' checks.
pub(super) const NAMES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Defaults the fields of a source (pkg/apis/core/v1/defaults.go).
pub(super) fn default(spec: &mut Map<String, Value>) {
    let mut fill_in = |source: &str, fields: &[(&str, Value)]| {
        if let Some(Value::Object(source)) = spec.get_mut(source) {
            for (name, value) in fields {
                fill(source, name, value.clone());
            }
        }
    };
    fill_in("hostPath", &[("type", json!(""))]);
    fill_in("iscsi", &[("iscsiInterface", json!("default"))]);
    let rados = [
        ("pool", json!("rbd")),
        ("user", json!("admin")),
        ("keyring", json!("/etc/ceph/keyring")),
    ];
    fill_in("rbd", &rados);
    let scale = [
        ("storageMode", json!("ThinProvisioned")),
        ("fsType", json!("xfs")),
    ];
    fill_in("scaleIO", &scale);
    let azure = [
        ("cachingMode", json!("ReadWrite")),
        ("kind", json!("Shared")),
        ("fsType", json!("ext4")),
        ("readOnly", json!(false)),
    ];
    fill_in("azureDisk", &azure);
}

/// Validates that the volume has one source, in the order of Kubernetes' checks. `name` is the name
/// of the volume.
pub(super) fn errors(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let set = NAMES.iter().filter(|it| spec.child(it).is_set());
    let mut count = 0;
    for kind in set {
        count += 1;
        // Kubernetes does not count a flexVolume among the others.
        if count > 1 && *kind != "flexVolume" {
            let refused = if *kind == "cephfs" { "cephFS" } else { kind };
            let why = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(spec.path_of(refused), why));
        } else {
            source((kind, name), spec, errors);
        }
    }
    if count == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
    let root = spec.child("hostPath.path").text();
    let is_root = spec.child("hostPath").is_set() && is_root(root);
    let policy = spec.child("persistentVolumeReclaimPolicy");
    if is_root && policy.text() == "Recycle" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(policy.forbidden(why));
    }
}

/// Validates a source of the named volume. Those of cloud providers, whose in-tree drivers are
/// removed, are not checked.
fn source((kind, name): (&str, &str), spec: &Field<'_>, errors: &mut Errors) {
    let source = spec.child(kind);
    match kind {
        "hostPath" => volume_source::host_path(&source, errors),
        "nfs" => volume_source::nfs(&source, errors),
        "local" => {
            let path = source.child("path");
            if path.text().is_empty() {
                errors.push(path.required(""));
            } else {
                rule::path_without_parent(&path, errors);
            }
            let affinity = spec.child("nodeAffinity");
            if !affinity.is_set() {
                errors.push(affinity.required("Local volume requires node affinity"));
            }
        }
        "csi" => csi(&source, errors),
        "iscsi" => storage_network::persistent_iscsi(&source, name, errors),
        "fc" => storage_network::fibre_channel(&source, errors),
        "flexVolume" => volume_source::required(&source, &["driver"], errors),
        _ => {}
    }
}

fn csi(source: &Field<'_>, errors: &mut Errors) {
    volume_source::driver(&source.child("driver"), errors);
    volume_source::required(source, &["volumeHandle"], errors);
    for name in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = source.child(name);
        if secret.is_set() {
            missing_or(&secret.child("name"), rule::dns_subdomain, errors);
            missing_or(&secret.child("namespace"), rule::dns_label, errors);
        }
    }
}

/// Requires a string that satisfies a rule.
fn missing_or(
    field: &Field<'_>,
    rule: impl Fn(&Field<'_>, &mut Errors),
    errors: &mut Errors,
) {
    if field.text().is_empty() {
        errors.push(field.required(""));
    } else {
        rule(field, errors);
    }
}

/// Whether a path is the root directory after cleaning (`path.Clean`).
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
}

//! PersistentVolumes: stored and validated, with nobody who provisions or attaches them.

use fivespot_admission::{FieldError, name};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::fill;
use super::pod_spec::volume_source;
use super::{
    BuiltinKind, Write, column, go_struct, pod_spec, resource_name, rule, text, volume,
};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `persistentvolumes` of `v1`.
#[derive(Debug)]
pub(super) struct PersistentVolume;

/// The fields of a spec that say what a volume is made of, in the order of Kubernetes' checks.
const SOURCES: [&str; 22] = [
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

const RECLAIM: &str = "persistentVolumeReclaimPolicy defines what happens to a persistent volume \
     when released from its claim. Valid options are Retain (default for manually created \
     PersistentVolumes), Delete (default for dynamically provisioned PersistentVolumes), and Recycle \
     (deprecated). Recycle must be supported by the volume plugin underlying this PersistentVolume.";

impl BuiltinKind for PersistentVolume {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "PersistentVolume", "persistentvolumes")
            .in_the_cluster()
            .with_short_names(&["pv"])
            .without_generation()
            .with_subresources(&[Subresource::Status])
            .with_columns(columns())
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        for (field, word) in [
            ("persistentVolumeReclaimPolicy", "Retain"),
            ("volumeMode", "Filesystem"),
        ] {
            spec.entry(field).or_insert_with(|| json!(word));
        }
        if let Some(capacity) = spec.get_mut("capacity").and_then(Value::as_object_mut) {
            resource_name::canonical(capacity);
        }
        default_source(spec);
        let status = meta::field(meta::fields(object), "status");
        fill(status, "phase", "Pending");
    }

    fn prepare_create(&self, object: &mut Value) {
        let now = object["metadata"]["creationTimestamp"].clone();
        let status = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn prepare_subresource(
        &self,
        _subresource: &str,
        object: &mut Value,
        old: &Value,
        now: &str,
    ) {
        const TIME: &str = "lastPhaseTransitionTime";
        let same_phase = object["status"]["phase"] == old["status"]["phase"];
        let (said, had) = (&object["status"][TIME], &old["status"][TIME]);
        let since = match (same_phase, said.is_null()) {
            (true, true) => had.clone(),
            (false, true) => now.into(),
            (false, false) if said == had => now.into(),
            _ => return,
        };
        if !since.is_null() {
            let status = meta::field(meta::fields(object), "status");
            status.insert(TIME.to_owned(), since);
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if write.subresource == "status" {
            return Vec::new();
        }
        let mut errors = spec_errors(&write.object["spec"]);
        mount_options(write.object, &mut errors);
        if let Some(old) = write.old {
            changes(&write.object["spec"], &old["spec"], &mut errors);
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        if write.subresource == "status" {
            return Vec::new();
        }
        warnings(write.object)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let phase = if meta::is_deleting(object) {
            "Terminating"
        } else {
            text(status, "phase")
        };
        let claim = &spec["claimRef"];
        let claim = if claim.is_object() {
            format!("{}/{}", text(claim, "namespace"), text(claim, "name"))
        } else {
            String::new()
        };
        vec![
            column::name(object),
            volume::storage(&spec["capacity"]),
            volume::modes(&spec["accessModes"]),
            column::string(&spec["persistentVolumeReclaimPolicy"]),
            phase.into(),
            claim.into(),
            column::string(&spec["storageClassName"]),
            volume::or_unset(&spec["volumeAttributesClassName"]),
            column::string(&status["reason"]),
            column::age(object, now),
            volume::or_unset(&spec["volumeMode"]),
        ]
    }
}

fn columns() -> Vec<Column> {
    let more =
        "More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes";
    let column = |name: &str, text: &str| Column::new(name, "string", text);
    vec![
                column(
                    "Capacity",
                    &format!(
                        "capacity is the description of the persistent volume's resources and \
                         capacity. {more}#capacity"
                    ),
                ),
                column(
                    "Access Modes",
                    &format!(
                        "accessModes contains all ways the volume can be mounted. \
                         {more}#access-modes"
                    ),
                ),
                column("Reclaim Policy", &format!("{RECLAIM} {more}#reclaiming")),
                column(
                    "Status",
                    &format!(
                        "phase indicates if a volume is available, bound to a claim, or \
                         released by a claim. {more}#phase"
                    ),
                ),
                column(
                    "Claim",
                    &format!(
                        "claimRef is part of a bi-directional binding between PersistentVolume \
                         and PersistentVolumeClaim. Expected to be non-nil when bound. \
                         claim.VolumeName is the authoritative bind between PV and PVC. \
                         {more}#binding"
                    ),
                ),
                column("StorageClass", "StorageClass of the pv"),
                column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
                column(
                    "Reason",
                    "reason is a brief CamelCase string that describes any failure and is meant \
                     for machine parsing and tidy display in the CLI.",
                ),
                Column::age(),
                column(
                    "VolumeMode",
                    "volumeMode defines if a volume is intended to be used with a formatted \
                     filesystem or to remain in raw block state. Value of Filesystem is implied \
                     when not included in spec.",
                )
                .wide(),
            ]
}

/// What a source leaves out (pkg/apis/core/v1/defaults.go).
fn default_source(spec: &mut Map<String, Value>) {
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

/// Sources that are mounted with options.
const MOUNTED: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

/// The annotation with options, of a volume that is not mounted with any.
fn mount_options(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let is_said = object["metadata"]["annotations"]
        .get(MOUNT_OPTIONS)
        .is_some();
    if is_said && MOUNTED.iter().all(|it| spec[*it].is_null()) {
        let path = format!("metadata.annotations.{MOUNT_OPTIONS}");
        let why = "may not specify mount options for this volume type";
        errors.push(FieldError::forbidden(path, why));
    }
}

/// What an update may not change (`ValidatePersistentVolumeUpdate`). Kubernetes shows the
/// difference behind the first sentence.
fn changes(spec: &Value, old: &Value, errors: &mut Errors) {
    const SECRET: &str = "controllerExpandSecretRef";
    let source = |name: &str| {
        let mut source = spec[name].clone();
        // It may be added.
        if name == "csi" && old["csi"].is_object() && old["csi"][SECRET].is_null() {
            let fields = source.as_object_mut();
            fields.map(|it| it.shift_remove(SECRET));
        }
        source
    };
    if SOURCES.iter().any(|it| source(it) != old[*it]) {
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", why));
    }
    let [mode, affinity, class] =
        ["volumeMode", "nodeAffinity", "volumeAttributesClassName"];
    if spec[mode] != old[mode] {
        let said = spec[mode].clone();
        errors.push(FieldError::invalid(mode, said, "field is immutable"));
    }
    if !old[affinity].is_null() && spec[affinity] != old[affinity] {
        let why = "field is immutable, except for updating from beta label to GA";
        let shown = affinity_text(&spec[affinity]);
        let at = Field::of(spec, affinity);
        errors.push(go_struct::invalid(&at, &shown, why));
    }
    if !old[class].is_null() && spec[class].is_null() {
        let why = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(format!("spec.{class}"), why));
    }
}

/// An affinity as the Go struct that it is.
fn affinity_text(affinity: &Value) -> String {
    const EXPRESSION: go_struct::Names = &["Key", "Operator", "Values"];
    let expressions = |value: &Value| match value {
        Value::Array(all) => {
            let all = all.iter().map(|it| go_struct::shape(it, EXPRESSION));
            Value::Array(all.collect())
        }
        _ => Value::Null,
    };
    if affinity.is_null() {
        return "null".to_owned();
    }
    let required = &affinity["required"];
    if required.is_null() {
        return json!({"Required": null}).to_string();
    }
    let terms = required["nodeSelectorTerms"].as_array();
    let terms = terms.map(|all| {
        let all = all.iter().map(|term| {
            json!({"MatchExpressions": expressions(&term["matchExpressions"]),
                "MatchFields": expressions(&term["matchFields"])})
        });
        all.collect::<Vec<_>>()
    });
    json!({"Required": {"NodeSelectorTerms": terms}}).to_string()
}

/// What the writer of a volume is warned of (pkg/api/persistentvolume).
fn warnings(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let deprecated = [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            MOUNT_OPTIONS,
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];
    for (key, why) in deprecated {
        if object["metadata"]["annotations"].get(key).is_some() {
            found.push(format!("metadata.annotations[{key}]: {why}"));
        }
    }
    let spec = &object["spec"];
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        found.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms =
        Field::of(object, "spec").child("nodeAffinity.required.nodeSelectorTerms");
    for term in terms.items() {
        pod_spec::warning::node::term(&term, false, &mut found);
    }
    let gone = [
        ("cephfs", "cephfs", "v1.28", "v1.31"),
        (
            "photonPersistentDisk",
            "photonPersistentDisk",
            "v1.11",
            "v1.16",
        ),
        ("scaleIO", "scaleIO", "v1.16", "v1.22"),
        ("storageos", "storageOS", "v1.22", "v1.25"),
        ("glusterfs", "glusterfs", "v1.25", "v1.26"),
        ("rbd", "rbd", "v1.28", "v1.31"),
    ];
    for (name, shown, deprecated, gone) in gone {
        if !spec[name].is_null() {
            found.push(format!(
                "spec.{shown}: deprecated in {deprecated}, non-functional in {gone}+"
            ));
        }
    }
    found
}

fn spec_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors = volume::mode_errors(spec);
    let (path, capacity) = ("spec.capacity", &spec["capacity"]);
    if column::count(capacity) == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if capacity["storage"].is_null() || column::count(capacity) > 1 {
        let said = capacity.clone();
        errors.push(FieldError::not_supported(path, said, ["storage"]));
    }
    for (resource, amount) in resource_name::amounts(capacity) {
        let at = format!("{path}[{resource}]");
        if amount.value() < 0 {
            let why = "must be a valid resource quantity";
            errors.push(FieldError::invalid(&*at, amount.value().into(), why));
        }
        if amount.signum() <= 0 {
            let why = "must be greater than zero";
            errors.push(FieldError::invalid(at, amount.to_string().into(), why));
        }
    }
    let (field, known) = (
        "persistentVolumeReclaimPolicy",
        ["Delete", "Recycle", "Retain"],
    );
    let policy = text(spec, field);
    if !known.contains(&policy) {
        let at = format!("spec.{field}");
        errors.push(FieldError::not_supported(at, policy.into(), known));
    }
    let at = Field {
        path: "spec".to_owned(),
        value: spec,
    };
    let affinity = at.child("nodeAffinity");
    if affinity.is_set() {
        node_affinity(&affinity.child("required"), &mut errors);
    }
    sources(&at, &mut errors);
    let (classes, path) = (name::dns_subdomain, "storageClassName");
    rule::text_if_set(&at.child(path), classes, &mut errors);
    errors.extend(volume::volume_mode_errors(spec));
    attributes_class(&at, &mut errors);
    errors
}

fn node_affinity(required: &Field<'_>, errors: &mut Errors) {
    if required.is_set() {
        pod_spec::node_selector(required, errors);
    } else {
        errors.push(required.required("must specify required node constraints"));
    }
}

/// What the volume is made of: one source, in the order of Kubernetes' checks.
fn sources(spec: &Field<'_>, errors: &mut Errors) {
    let set = SOURCES.iter().filter(|it| spec.child(it).is_set());
    let mut count = 0;
    for name in set {
        count += 1;
        // Kubernetes forgets to count a flexVolume among the others.
        if count > 1 && *name != "flexVolume" {
            let refused = if *name == "cephfs" { "cephFS" } else { name };
            let why = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(spec.path_of(refused), why));
        } else {
            source(name, spec, errors);
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

/// One source. Those of clouds, whose drivers are gone, are not checked.
fn source(name: &str, spec: &Field<'_>, errors: &mut Errors) {
    let source = spec.child(name);
    match name {
        "hostPath" => volume_source::host_path(&source, errors),
        "nfs" => volume_source::nfs(&source, errors),
        "local" => {
            let path = source.child("path");
            if path.text().is_empty() {
                errors.push(path.required(""));
            } else {
                rule::path_without_backsteps(&path, errors);
            }
            let affinity = spec.child("nodeAffinity");
            if !affinity.is_set() {
                errors.push(affinity.required("Local volume requires node affinity"));
            }
        }
        "csi" => csi(&source, errors),
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

/// A text that has to be there and to keep a rule.
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

/// Whether a path means the root of a file system (`path.Clean`).
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

fn attributes_class(spec: &Field<'_>, errors: &mut Errors) {
    let class = spec.child("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.text().is_empty() {
        errors.push(class.required("an empty string is disallowed"));
    } else {
        rule::dns_subdomain(&class, errors);
    }
    let csi = spec.child("csi");
    if !csi.is_set() {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(csi.required(why));
    }
}

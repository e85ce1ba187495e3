//! VolumeAttachments: the requests to attach a volume to a node.

use jiff::Timestamp;
use kubemu_admission::object_meta::{self, Scope};
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::go_struct;
use super::{BuiltinKind, StatusMetadata, Write, column, csi_node, rule, workload};
use crate::resource::{Column, Resource, Subresource};

/// `volumeattachments` of `storage.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct VolumeAttachment;

/// The maximum size of the metadata of an attachment in bytes.
const MAX_METADATA: usize = 256 * 1024;
/// The maximum size of a message in bytes.
const MAX_MESSAGE: usize = 1024;

impl BuiltinKind for VolumeAttachment {
    fn resource(&self) -> Resource {
        let column = |name: &str, kind: &str, of: &str, field: &str| {
            let of = format!("storage.v1.VolumeAttachment{of}");
            column::described(name, kind, &of, field)
        };
        let attacher = column("Attacher", "string", "Spec", "attacher");
        Resource::new(
            "storage.k8s.io",
            "v1",
            "VolumeAttachment",
            "volumeattachments",
        )
        .cluster_scoped()
        .returned_when_deleted()
        .without_generation()
        .require_resource_version()
        .with_subresources(&[Subresource::Status])
        .with_columns(vec![
            Column {
                format: "name".to_owned(),
                ..attacher
            },
            column("PV", "string", "Source", "persistentVolumeName"),
            column("Node", "string", "Spec", "nodeName"),
            column("Attached", "boolean", "Status", "attached"),
            Column::age(),
        ])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({"attached": false}));
    }

    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::RESET
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let spec = Field::of(write.object, "spec");
        csi_node::driver_name(&spec.child("attacher"), &mut errors);
        source(&spec.child("source"), &mut errors);
        rule::dns_subdomain(&spec.child("nodeName"), &mut errors);
        status(&Field::of(write.object, "status"), &mut errors);
        if write.subresource == "status" {
            // Its name is validated as for a new object by both kinds of updates.
            let metadata = write.object.get("metadata");
            let mut names =
                object_meta::create(metadata, self.name_rule(), Scope::Cluster);
            names.retain(|it| it.path == "metadata.generateName");
            errors.extend(names);
        }
        let volume = spec.child("source").child("persistentVolumeName");
        if volume.is_set() {
            rule::text(&volume, name::dns_subdomain, &mut errors);
        }
        if write.old.is_some_and(|it| it["spec"] != *spec.value) {
            let shown = go_struct::text(spec.value, "storage.v1.VolumeAttachmentSpec");
            let why = "field is immutable";
            errors.push(go_struct::invalid(&spec, &shown, why));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        vec![
            column::name(object),
            column::string(&spec["attacher"]),
            column::string(&spec["source"]["persistentVolumeName"]),
            column::string(&spec["nodeName"]),
            (object["status"]["attached"] == true).into(),
            column::age(object, now),
        ]
    }
}

/// Validates that the source is one volume.
fn source(field: &Field<'_>, errors: &mut Errors) {
    let (named, inline) = (
        field.child("persistentVolumeName"),
        field.child("inlineVolumeSpec"),
    );
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), named.is_set()) {
        (false, false) => errors.push(field.required(why)),
        (true, true) => errors.push(field.forbidden(why)),
        (false, true) if named.text().is_empty() => {
            errors.push(named.required("must specify non empty persistentVolumeName"));
        }
        (false, true) => {}
        (true, false) => inline_volume(&inline, errors),
    }
}

/// Validates the spec of a volume that is written into a pod: that of a driver, without what only
/// a PersistentVolume has.
fn inline_volume(field: &Field<'_>, errors: &mut Errors) {
    let why = "may not be specified in the context of inline volumes";
    for part in ["claimRef", "capacity"] {
        let part = field.child(part);
        if part.is_set() {
            errors.push(part.forbidden(why));
        }
    }
    if !field.child("csi").is_set() {
        let why = "has to be specified in the context of inline volumes";
        errors.push(field.child("csi").required(why));
    }
    let modes = field.child("accessModes");
    if modes.len() == 0 {
        errors.push(modes.required(""));
    }
    let affinity = field.child("nodeAffinity");
    if affinity.is_set() {
        errors.push(affinity.forbidden(why));
    }
    if !field.child("csi").is_set() {
        errors.push(field.required("must specify a volume type"));
    }
}

fn status(field: &Field<'_>, errors: &mut Errors) {
    let metadata = field.child("attachmentMetadata");
    let size = |(key, value): (&str, Field<'_>)| key.len() + value.text().len();
    if metadata.entries().map(size).sum::<usize>() > MAX_METADATA {
        errors.push(FieldError::too_long(metadata.path, MAX_METADATA as u64));
    }
    for error in ["attachError", "detachError"] {
        let error = field.child(error);
        let message = error.child("message");
        // Kubernetes names the bound of the metadata in the error about a message.
        if message.text().len() > MAX_MESSAGE {
            errors.push(FieldError::too_long(message.path, MAX_METADATA as u64));
        }
        let code = error.child("errorCode");
        if code.is_set() {
            rule::between(&code, 0..=i64::from(i32::MAX), errors);
        }
    }
}

//! Volume sources.

use kubemu_admission::FieldError;

use super::{Owner, claim, projected, storage_network};
use crate::kind::field::{Errors, Field};
use crate::kind::pod_spec::{container, env};
use crate::kind::rule;

/// Every source, in the order of Kubernetes' checks, with its name in the error for a second
/// source.
const SOURCES: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// Validates that a volume has one source.
pub(super) fn source(volume: &Field<'_>, owner: Owner, errors: &mut Errors) {
    let set = SOURCES
        .iter()
        .filter(|(name, _)| volume.child(name).is_set());
    let mut count = 0;
    for (name, refused) in set {
        count += 1;
        if count > 1 {
            let why = "may not specify more than 1 volume type";
            let at = volume.at(volume.path_of(refused));
            errors.push(at.forbidden(why));
        } else {
            checked(name, &volume.child(name), owner, errors);
        }
    }
    if count == 0 {
        errors.push(volume.required("must specify a volume type"));
    }
}

/// Validates a source. For those of cloud providers, whose in-tree drivers are removed, only the
/// required fields are checked.
fn checked(name: &str, source: &Field<'_>, owner: Owner, errors: &mut Errors) {
    match name {
        "emptyDir" => empty_dir(source, errors),
        "hostPath" => host_path(source, errors),
        "gitRepo" => {
            required(source, &["repository"], errors);
            rule::local_path(&source.child("directory"), errors);
        }
        "awsElasticBlockStore" | "cinder" => required(source, &["volumeID"], errors),
        "gcePersistentDisk" => required(source, &["pdName"], errors),
        "secret" => {
            required(source, &["secretName"], errors);
            files(source, errors);
        }
        "configMap" => {
            required(source, &["name"], errors);
            files(source, errors);
        }
        "nfs" => nfs(source, errors),
        "iscsi" => storage_network::iscsi(source, errors),
        "fc" => storage_network::fibre_channel(source, errors),
        "persistentVolumeClaim" => required(source, &["claimName"], errors),
        "rbd" => {
            let monitors = source.child("monitors");
            errors.extend((monitors.len() == 0).then(|| monitors.required("")));
            required(source, &["image"], errors);
        }
        "glusterfs" => required(source, &["endpoints", "path"], errors),
        "azureFile" => required(source, &["secretName", "shareName"], errors),
        "azureDisk" => required(source, &["diskName", "diskURI"], errors),
        "vsphereVolume" => required(source, &["volumePath"], errors),
        "downwardAPI" => downward(source, errors),
        "projected" => projected::projected(source, errors),
        "csi" => driver(&source.child("driver"), errors),
        "ephemeral" => claim::template(&source.child("volumeClaimTemplate"), errors),
        "image" => {
            if owner.is_pod() {
                required(source, &["reference"], errors);
            }
            container::pull_policy(&source.child("pullPolicy"), errors);
        }
        _ => {}
    }
}

/// Requires that the strings are set.
pub(in crate::kind) fn required(
    source: &Field<'_>,
    fields: &[&str],
    errors: &mut Errors,
) {
    let missing = fields.iter().map(|it| source.child(it));
    let missing = missing.filter(|it| it.text().is_empty());
    errors.extend(missing.map(|it| it.required("")));
}

fn empty_dir(source: &Field<'_>, errors: &mut Errors) {
    let limit = source.child("sizeLimit");
    let amount = crate::kind::resource_name::quantity(limit.value);
    if amount.is_some_and(|it| it.signum() < 0) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

/// Validates a path of the node.
pub(in crate::kind) fn host_path(source: &Field<'_>, errors: &mut Errors) {
    const TYPES: &[&str] = &[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    let path = source.child("path");
    if path.text().is_empty() {
        errors.push(path.required(""));
        return;
    }
    rule::path_without_parent(&path, errors);
    rule::one_of_if_set(&source.child("type"), TYPES, errors);
}

/// Validates an NFS export.
pub(in crate::kind) fn nfs(source: &Field<'_>, errors: &mut Errors) {
    required(source, &["server", "path"], errors);
    let path = source.child("path");
    if !path.text().starts_with('/') {
        errors.push(path.invalid_text("must be an absolute path"));
    }
}

/// Validates the name of a CSI driver.
pub(in crate::kind) fn driver(name: &Field<'_>, errors: &mut Errors) {
    if name.text().is_empty() {
        errors.push(name.required(""));
        return;
    }
    if name.text().len() > 63 {
        let error = FieldError::too_long(name.path.clone(), 63);
        errors.push(error);
    }
    let lower = |it: &str| kubemu_admission::name::dns_subdomain(&it.to_lowercase());
    rule::text(name, lower, errors);
}

/// Validates the mode of files, and the keys that they are created from.
fn files(source: &Field<'_>, errors: &mut Errors) {
    rule::file_mode(&source.child("defaultMode"), errors);
    for item in source.child("items").items() {
        key_to_path(&item, errors);
    }
}

/// Validates a key of a secret or of a config map, and the path of its file.
pub(super) fn key_to_path(item: &Field<'_>, errors: &mut Errors) {
    required(item, &["key", "path"], errors);
    rule::local_file(&item.child("path"), errors);
    rule::file_mode(&item.child("mode"), errors);
}

fn downward(source: &Field<'_>, errors: &mut Errors) {
    rule::file_mode(&source.child("defaultMode"), errors);
    for item in source.child("items").items() {
        downward_file(&item.at(source.path.clone()), errors);
    }
}

/// Validates a file with a field of the pod. The paths of errors have no index, as in Kubernetes.
pub(super) fn downward_file(item: &Field<'_>, errors: &mut Errors) {
    const FIELDS: &[&str] = &[
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    ];
    required(item, &["path"], errors);
    rule::local_file(&item.child("path"), errors);
    let (field, resource) = (item.child("fieldRef"), item.child("resourceFieldRef"));
    if field.is_set() {
        env::field_reference(&field, FIELDS, errors);
        if resource.is_set() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            let path = item.path.clone();
            let value = "resource".into();
            errors.push(FieldError::invalid(path, value, why));
        }
    } else if resource.is_set() {
        env::resource_of_container(&resource, errors);
    } else {
        let why = "one of fieldRef and resourceFieldRef is required";
        errors.push(item.required(why));
    }
    rule::file_mode(&item.child("mode"), errors);
}

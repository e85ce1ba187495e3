//! Volume mounts and volume devices of a container.

use std::collections::BTreeSet;

use super::Spec;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Validates the mounts of a container. The paths of some errors have no index, as in Kubernetes.
pub(super) fn mounts(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    let list = container.child("volumeMounts");
    let devices = container.child("volumeDevices");
    let mut paths = BTreeSet::new();
    for mount in list.items() {
        let (name, path) = (mount.child("name"), mount.child("mountPath"));
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if !spec.volumes.has(name.text()) {
            errors.push(not_found(&name));
        }
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if !paths.insert(path.text()) {
            errors.push(path.invalid_text("must be unique"));
        }
        if has(&devices, "name", name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if has(&devices, "devicePath", path.text()) {
            let why = "must not already exist as a path in volumeDevices";
            errors.push(path.invalid(why));
        }
        sub_path(&list, &mount, errors);
        propagation(&list, &mount, container, errors);
        recursive_read_only(&list, &mount, errors);
    }
}

fn not_found(name: &Field<'_>) -> kubemu_admission::FieldError {
    kubemu_admission::FieldError::not_found(name.path.clone(), name.text().into())
}

/// Whether an item of the list has this value in a field.
fn has(list: &Field<'_>, field: &str, text: &str) -> bool {
    list.items().any(|it| it.child(field).text() == text)
}

fn sub_path(list: &Field<'_>, mount: &Field<'_>, errors: &mut Errors) {
    let (path, expression) = (mount.child("subPath"), mount.child("subPathExpr"));
    if !path.text().is_empty() {
        rule::local_path(&path.at(list.path_of("subPath")), errors);
    }
    if expression.text().is_empty() {
        return;
    }
    if !path.text().is_empty() {
        let why = "subPathExpr and subPath are mutually exclusive";
        errors.push(expression.invalid(why));
    }
    rule::local_path(&expression.at(list.path_of("subPathExpr")), errors);
}

fn propagation(
    list: &Field<'_>,
    mount: &Field<'_>,
    container: &Field<'_>,
    errors: &mut Errors,
) {
    let field = mount.child("mountPropagation");
    let field = field.at(list.path_of("mountPropagation"));
    let known = ["Bidirectional", "HostToContainer", "None"];
    rule::one_of_if_set(&field, &known, errors);
    let is_privileged = container.child("securityContext.privileged").is_true();
    if field.text() == "Bidirectional" && !is_privileged {
        let why =
            "Bidirectional mount propagation is available only to privileged containers";
        errors.push(field.forbidden(why));
    }
}

fn recursive_read_only(list: &Field<'_>, mount: &Field<'_>, errors: &mut Errors) {
    let field = mount.child("recursiveReadOnly");
    let field = field.at(list.path_of("recursiveReadOnly"));
    let known = ["Disabled", "Enabled", "IfPossible"];
    rule::one_of_if_set(&field, &known, errors);
    if !matches!(field.text(), "Enabled" | "IfPossible") {
        return;
    }
    if !mount.child("readOnly").is_true() {
        let why = "may only be specified when readOnly is true";
        errors.push(field.forbidden(why));
    }
    if !matches!(mount.child("mountPropagation").text(), "" | "None") {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.push(field.forbidden(why));
    }
}

/// Validates the raw block devices of a container.
pub(super) fn devices(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    let mounts = container.child("volumeMounts");
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.child("volumeDevices").items() {
        let (name, path) = (device.child("name"), device.child("devicePath"));
        if name.text().is_empty() {
            errors.push(name.required(""));
        }
        if names.contains(name.text()) {
            errors.push(name.invalid("must be unique"));
        }
        if !spec.volumes.has(name.text()) {
            errors.push(not_found(&name));
        } else if !spec.volumes.is_claim(name.text()) {
            let why = "can only use volume source type of PersistentVolumeClaim or \
                 Ephemeral for block mode";
            errors.push(name.invalid(why));
        }
        if path.text().is_empty() {
            errors.push(path.required(""));
        }
        if paths.contains(path.text()) {
            errors.push(path.invalid_text("must be unique"));
        }
        if rule::has_parent_step(path.text()) {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            paths.insert(path.text());
        }
        if has(&mounts, "name", name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if has(&mounts, "mountPath", path.text()) {
            let why = "must not already exist as a path in volumeMounts";
            errors.push(path.invalid(why));
        }
        if !name.text().is_empty() {
            names.insert(name.text());
        }
    }
}

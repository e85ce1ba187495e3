//! Security contexts of pods and containers.

use std::collections::BTreeSet;

use kubemu_admission::FieldError;
use serde_json::json;

use super::Spec;
use crate::kind::field::{Errors, Field};
use crate::kind::go_struct;
use crate::kind::rule;

/// Validates the security context of a container. kube-apiserver is assumed to allow privileged
/// containers (`--allow-privileged`).
pub(super) fn of_container(
    context: &Field<'_>,
    shares_host_users: bool,
    errors: &mut Errors,
) {
    if !context.is_set() {
        return;
    }
    rule::id(&context.child("runAsUser"), errors);
    rule::id(&context.child("runAsGroup"), errors);
    let mount = context.child("procMount");
    rule::one_of_if_set(&mount, &["Default", "Unmasked"], errors);
    if shares_host_users && mount.text() == "Unmasked" {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    seccomp(&context.child("seccompProfile"), errors);
    escalation(context, errors);
    app_armor(&context.child("appArmorProfile"), errors);
}

/// The errors if `allowPrivilegeEscalation` is false for a privileged container.
fn escalation(context: &Field<'_>, errors: &mut Errors) {
    if *context.child("allowPrivilegeEscalation").value != false {
        return;
    }
    let mut refuse = |why: &str| {
        let shown = go_struct::text(context.value, "core.v1.SecurityContext");
        errors.push(go_struct::invalid(context, &shown, why));
    };
    if context.child("privileged").is_true() {
        refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    for capability in context.child("capabilities.add").items() {
        if capability.text() == "CAP_SYS_ADMIN" {
            refuse(
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                 CAP_SYS_ADMIN",
            );
        }
    }
}

/// Validates the seccomp profile.
fn seccomp(profile: &Field<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let kind = profile.child("type");
    if kind.text().is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else {
        let known = ["Localhost", "RuntimeDefault", "Unconfined"];
        rule::one_of(&kind, &known, errors);
    }
    let local = profile.child("localhostProfile");
    if kind.text() != "Localhost" {
        if local.is_set() {
            let shown = go_struct::text(profile.value, "core.v1.SeccompProfile");
            let why = "can only be set when seccomp type is Localhost";
            errors.push(go_struct::invalid(&local, &shown, why));
        }
    } else if local.is_set() {
        rule::local_path(&local, errors);
    } else {
        errors.push(local.required("must be set when seccomp type is Localhost"));
    }
}

/// Validates the AppArmor profile.
fn app_armor(profile: &Field<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, local) = (profile.child("type"), profile.child("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let text = local.text();
            if text.trim().is_empty() {
                errors
                    .push(local.required("must be set when AppArmor type is Localhost"));
            } else if text.trim() != text {
                errors.push(local.invalid("must not be padded with whitespace"));
            }
            if text.len() > 4095 {
                errors.push(FieldError::too_long(local.path, 4095));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if local.is_set() {
                let why = "can only be set when AppArmor type is Localhost";
                errors.push(local.invalid(why));
            }
        }
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => {
            let known = ["Localhost", "RuntimeDefault", "Unconfined"];
            errors.push(kind.not_supported(&known));
        }
    }
}

/// Validates the security context of a pod.
pub(super) fn of_pod(spec: &Spec<'_>, errors: &mut Errors) {
    let context = spec.child("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        rule::id(&context.child(field), errors);
    }
    for group in context.child("supplementalGroups").items() {
        rule::id(&group, errors);
    }
    let shares = spec.child("shareProcessNamespace");
    if shares.is_true() && spec.child("hostPID").is_true() {
        let path = context.path_of("shareProcessNamespace");
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(path, json!(true), why));
    }
    sysctls(&context.child("sysctls"), errors);
    let policy = context.child("fsGroupChangePolicy");
    rule::one_of_if_set(&policy, &["Always", "OnRootMismatch"], errors);
    seccomp(&context.child("seccompProfile"), errors);
    app_armor(&context.child("appArmorProfile"), errors);
    let policy = context.child("supplementalGroupsPolicy");
    rule::one_of_if_set(&policy, &["Merge", "Strict"], errors);
    let policy = context.child("seLinuxChangePolicy");
    rule::one_of_if_set(&policy, &["MountOption", "Recursive"], errors);
}

/// Validates the sysctls.
fn sysctls(list: &Field<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for item in list.items() {
        let name = item.child("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(name.text()) {
            let why = "must have at most 253 characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(name.invalid(why));
        } else if names.contains(name.text()) {
            errors.push(name.duplicate());
        }
        names.insert(name.text());
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_end = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|it| is_end(*it))
            && bytes.last().is_some_and(|it| is_end(*it))
            && bytes.iter().all(|it| is_end(*it) || b"-_".contains(it))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_part)
}

/// The errors if a pod with its own user namespace shares host namespaces or devices.
pub(super) fn host_users(spec: &Spec<'_>, errors: &mut Errors) {
    if spec.shares_host_users() {
        return;
    }
    let why = "when `hostUsers` is false";
    for (field, path) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.child(field).is_true() {
            errors.push(FieldError::forbidden(spec.field.path_of(path), why));
        }
    }
    for container in spec.containers() {
        let devices = container.child("volumeDevices");
        if devices.len() > 0 {
            errors.push(devices.forbidden(why));
        }
    }
}

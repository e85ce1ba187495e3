//! Validation of the operating system and of Windows options.

use kubemu_admission::FieldError;

use super::Spec;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

const FORBIDDEN: &str = "cannot be set for a windows pod";

/// Validates the operating system of a pod.
pub(super) fn operating_system(spec: &Spec<'_>, errors: &mut Errors) {
    let os = spec.child("os");
    if !os.is_set() {
        return;
    }
    let name = os.child("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
        return;
    }
    let mut wrong = Errors::new();
    let known = ["linux", "windows"];
    rule::one_of(&name.at(os.path.clone()), &known, &mut wrong);
    match (wrong.is_empty(), name.text()) {
        (false, _) => errors.extend(wrong),
        (true, "linux") => on_linux(spec, errors),
        _ => on_windows(spec, errors),
    }
}

/// Rejects each of the fields that is set.
fn refuse(at: &Field<'_>, fields: &[&str], why: &str, errors: &mut Errors) {
    let set = fields.iter().map(|it| at.child(it));
    let set = set.filter(|it| it.is_set() && *it.value != false);
    errors.extend(set.map(|it| it.forbidden(why)));
}

fn on_linux(spec: &Spec<'_>, errors: &mut Errors) {
    let why = "windows options cannot be set for a linux pod";
    for part in std::iter::once(spec.field.clone()).chain(spec.containers()) {
        refuse(&part, &["securityContext.windowsOptions"], why, errors);
    }
}

fn on_windows(spec: &Spec<'_>, errors: &mut Errors) {
    const OF_POD: &[&str] = &[
        "securityContext.appArmorProfile",
        "securityContext.seLinuxOptions",
    ];
    const OF_HOST: &[&str] = &["hostPID", "hostIPC"];
    const MORE_OF_POD: &[&str] = &[
        "securityContext.seccompProfile",
        "securityContext.fsGroup",
        "securityContext.fsGroupChangePolicy",
        "securityContext.sysctls",
        "shareProcessNamespace",
        "securityContext.runAsUser",
        "securityContext.runAsGroup",
        "securityContext.supplementalGroups",
        "securityContext.supplementalGroupsPolicy",
        "securityContext.seLinuxChangePolicy",
    ];
    const OF_CONTAINER: &[&str] = &[
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    refuse(&spec.field, OF_POD, FORBIDDEN, errors);
    let users = spec.child("hostUsers");
    if users.is_set() {
        errors.push(users.forbidden(FORBIDDEN));
    }
    refuse(&spec.field, OF_HOST, FORBIDDEN, errors);
    refuse(&spec.field, MORE_OF_POD, FORBIDDEN, errors);
    for container in spec.containers() {
        let context = container.child("securityContext");
        for field in OF_CONTAINER.iter().map(|it| context.child(it)) {
            if field.is_set() {
                errors.push(field.forbidden(FORBIDDEN));
            }
        }
    }
}

/// Validates that all containers are host processes, or none.
pub(super) fn host_processes(spec: &Spec<'_>, errors: &mut Errors) {
    const FIELD: &str = "securityContext.windowsOptions.hostProcess";
    let of_pod = spec.child(FIELD).value.as_bool();
    let (mut all, mut on_host) = (0, 0);
    for container in spec.containers() {
        all += 1;
        let own = container.child(FIELD);
        let actual = own.value.as_bool();
        if let (Some(of_pod), Some(actual)) = (of_pod, actual)
            && of_pod != actual
        {
            let why = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            errors.push(own.invalid(why));
        }
        on_host += i32::from(actual.or(of_pod).unwrap_or_default());
    }
    if on_host == 0 {
        return;
    }
    let path = spec.field.path.clone();
    if on_host != all {
        let why = "If pod contains any hostProcess containers then all containers must be \
             HostProcess containers";
        errors.push(FieldError::invalid(path, "".into(), why));
    }
    if !spec.shares_host_network() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        let path = spec.field.path_of("hostNetwork");
        errors.push(FieldError::invalid(path, false.into(), why));
    }
}

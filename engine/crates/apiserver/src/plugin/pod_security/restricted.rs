//! The checks of the restricted level, which require hardened pods.

use serde_json::Value;

use super::baseline::{any_proc_mount, explicit_seccomp};
use super::check::{
    Violation, containers, containers_text, distinct, has_own_users, is_windows, named,
    plural, quoted, subject_text,
};
use crate::plugin::pod::{list, text};

/// The allowed volume sources.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
/// Other sources, in the order in which Kubernetes checks them.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn privilege_escalation(pod: &Value, minor: u32) -> Option<Violation> {
    let wrong = |it: &Value| it["securityContext"]["allowPrivilegeEscalation"] != false;
    let bad = named(pod, wrong);
    (!bad.is_empty() && !is_windows(pod, minor)).then(|| {
        let detail = format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            containers_text(&bad)
        );
        Violation::new("allowPrivilegeEscalation != false", detail)
    })
}

pub(super) fn capabilities(pod: &Value, minor: u32) -> Option<Violation> {
    if is_windows(pod, minor) {
        return None;
    }
    let own = |it: &'_ Value, field: &str| -> Vec<String> {
        let own = list(&it["securityContext"]["capabilities"], field).iter();
        let own = own.filter_map(Value::as_str);
        own.map(str::to_owned).collect()
    };
    let added = |it: &Value| {
        let mut added = own(it, "add");
        added.retain(|it| it != "NET_BIND_SERVICE");
        added
    };
    let mut details = Vec::new();
    let missing = named(pod, |it| !own(it, "drop").iter().any(|it| it == "ALL"));
    if !missing.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers_text(&missing)
        ));
    }
    let adding = named(pod, |it| !added(it).is_empty());
    if !adding.is_empty() {
        let found: Vec<String> = containers(pod).flat_map(added).collect();
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers_text(&adding),
            quoted(&distinct(found.iter().map(String::as_str)))
        ));
    }
    (!details.is_empty())
        .then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

pub(super) fn proc_mount(pod: &Value, _minor: u32) -> Option<Violation> {
    any_proc_mount(pod)
}

pub(super) fn volumes(pod: &Value, _minor: u32) -> Option<Violation> {
    let volumes = list(&pod["spec"], "volumes").iter();
    let bad = volumes.filter(|it| !VOLUMES.iter().any(|kind| it[kind].is_object()));
    let bad: Vec<&Value> = bad.collect();
    let kinds = bad.iter().map(|it| {
        let found = OTHER_VOLUMES.into_iter().find(|kind| it[*kind].is_object());
        found.unwrap_or("unknown")
    });
    let kinds = distinct(kinds);
    let names: Vec<&str> = bad.iter().map(|it| text(it, "name")).collect();
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names),
            plural("uses", "use", names.len()),
            plural(
                "restricted volume type",
                "restricted volume types",
                kinds.len()
            ),
            quoted(&kinds)
        );
        Violation::new("restricted volume types", detail)
    })
}

pub(super) fn run_as_non_root(pod: &Value, minor: u32) -> Option<Violation> {
    if has_own_users(pod, minor) {
        return None;
    }
    let reason = "runAsNonRoot != true";
    let value = |it: &Value| it["securityContext"]["runAsNonRoot"].as_bool();
    let of_pod = value(&pod["spec"]);
    let explicit = named(pod, |it| value(it) == Some(false));
    if of_pod == Some(false) || !explicit.is_empty() {
        let who = subject_text(of_pod == Some(false), &explicit);
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(reason, detail));
    }
    let implicit = named(pod, |it| value(it).is_none() && of_pod != Some(true));
    (!implicit.is_empty()).then(|| {
        let detail = format!(
            "pod or {} must set securityContext.runAsNonRoot=true",
            containers_text(&implicit)
        );
        Violation::new(reason, detail)
    })
}

pub(super) fn run_as_user(pod: &Value, minor: u32) -> Option<Violation> {
    if has_own_users(pod, minor) {
        return None;
    }
    let wrong = |it: &Value| it["securityContext"]["runAsUser"] == 0;
    let (of_pod, bad) = (wrong(&pod["spec"]), named(pod, wrong));
    (of_pod || !bad.is_empty()).then(|| {
        let detail = format!("{} must not set runAsUser=0", subject_text(of_pod, &bad));
        Violation::new("runAsUser=0", detail)
    })
}

pub(super) fn seccomp_profile(pod: &Value, minor: u32) -> Option<Violation> {
    if is_windows(pod, minor) {
        return None;
    }
    let explicit = explicit_seccomp(pod);
    let is_set = |it: &Value| it["securityContext"]["seccompProfile"].is_object();
    let of_pod = is_set(&pod["spec"]);
    let implicit = named(pod, |it| !is_set(it) && !of_pod);
    explicit.or_else(|| {
        (!implicit.is_empty()).then(|| {
            let detail = format!(
                "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" \
                 or \"Localhost\"",
                containers_text(&implicit)
            );
            Violation::new("seccompProfile", detail)
        })
    })
}

//! The violations of a policy by a pod (`ValidatePod` in pkg/security/podsecuritypolicy).

use kubemu_admission::FieldError;
use serde_json::Value;

use super::container;
use super::identity::{group_errors, selinux_errors};
use crate::plugin::pod::{containers, list, text};

/// Sysctls that every policy allows.
const SAFE_SYSCTLS: [&str; 5] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
];

/// The violations of `policy` by a pod.
pub(super) fn errors(policy: &Value, pod: &Value) -> Vec<FieldError> {
    let spec = &pod["spec"];
    let context = &spec["securityContext"];
    let at = "spec.securityContext";
    let group: Vec<i64> = context["fsGroup"].as_i64().into_iter().collect();
    let path = format!("{at}.fsGroup");
    let mut errors = group_errors(&policy["fsGroup"], &path, &group);
    let groups = list(context, "supplementalGroups").iter();
    let groups: Vec<i64> = groups.filter_map(Value::as_i64).collect();
    let path = format!("{at}.supplementalGroups");
    errors.extend(group_errors(&policy["supplementalGroups"], &path, &groups));
    let path = format!("{at}.seLinuxOptions");
    let options = &context["seLinuxOptions"];
    errors.extend(selinux_errors(&policy["seLinux"], &path, options));
    for (field, words) in [
        ("hostNetwork", "Host network is not allowed to be used"),
        ("hostPID", "Host PID is not allowed to be used"),
        ("hostIPC", "Host IPC is not allowed to be used"),
    ] {
        if spec[field] == true && policy[field] != true {
            let path = format!("{at}.{field}");
            errors.push(FieldError::invalid(path, true.into(), words));
        }
    }
    errors.extend(sysctl_errors(policy, context));
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("spec.volumes[{index}]");
        errors.extend(volume_errors(policy, spec, volume, &path));
    }
    errors.extend(runtime_class_error(policy, spec));
    for (path, container) in containers(spec) {
        let context = container::ContainerContext {
            policy,
            of_pod: context,
            path: &path,
        };
        errors.extend(context.errors(container));
    }
    errors
}

fn sysctl_errors(policy: &Value, context: &Value) -> Vec<FieldError> {
    let matches = |field: &str, name: &str| {
        let mut patterns = list(policy, field).iter().filter_map(Value::as_str);
        patterns.any(|it| match it.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => it == name,
        })
    };
    let all = list(context, "sysctls").iter().enumerate();
    let wrong = all.filter_map(|(index, sysctl)| {
        let name = text(sysctl, "name");
        let why = if matches("forbiddenSysctls", name) {
            format!("sysctl {name:?} is not allowed")
        } else if SAFE_SYSCTLS.contains(&name) || matches("allowedUnsafeSysctls", name) {
            return None;
        } else {
            format!("unsafe sysctl {name:?} is not allowed")
        };
        let path = format!("spec.securityContext.sysctls[{index}]");
        Some(FieldError::forbidden(path, why))
    });
    wrong.collect()
}

/// The source of a volume, with its name in policies.
fn source(volume: &Value) -> &str {
    let fields = volume.as_object().into_iter().flatten();
    let mut fields = fields.map(|(key, _)| key.as_str());
    match fields.find(|it| *it != "name").unwrap_or_default() {
        "cephfs" => "cephFS",
        found => found,
    }
}

/// Whether a projected volume has only the sources that every pod gets: the token of its service
/// account, the CA certificate of the server, and its namespace.
fn has_only_token(projected: &Value) -> bool {
    list(projected, "sources").iter().all(|source| {
        let (token, map) = (&source["serviceAccountToken"], &source["configMap"]);
        let items = list(&source["downwardAPI"], "items");
        if token.is_object() {
            text(token, "path") == "token" && text(token, "audience").is_empty()
        } else if map.is_object() {
            text(map, "name") == "kube-root-ca.crt"
        } else {
            let is_namespace = |it: &Value| {
                text(it, "path") == "namespace"
                    && text(&it["fieldRef"], "fieldPath") == "metadata.namespace"
            };
            !items.is_empty() && items.iter().all(is_namespace)
        }
    })
}

fn volume_errors(
    policy: &Value,
    spec: &Value,
    volume: &Value,
    path: &str,
) -> Vec<FieldError> {
    let kind = source(volume);
    let names = |field: &str, key: &str, name: &str| {
        let all = list(policy, field);
        all.is_empty() || all.iter().any(|it| text(it, key) == name)
    };
    let types = list(policy, "volumes");
    let allows = |name: &str| types.iter().any(|it| it == name);
    let is_token = kind == "projected" && has_only_token(&volume[kind]);
    let is_allowed = allows("*") || allows(kind) || is_token && allows("secret");
    if !is_allowed {
        let why = format!("{kind} volumes are not allowed to be used");
        return vec![FieldError::invalid(path, kind.into(), why)];
    }
    let driver = text(&volume[kind], "driver");
    match kind {
        "hostPath" => host_path_errors(policy, spec, volume, path),
        "flexVolume" if !names("allowedFlexVolumes", "driver", driver) => {
            let why = "Flexvolume driver is not allowed to be used";
            let path = format!("{path}.driver");
            vec![FieldError::invalid(path, driver.into(), why)]
        }
        "csi" if !names("allowedCSIDrivers", "name", driver) => {
            let why = "Inline CSI driver is not allowed to be used";
            let path = format!("{path}.csi.driver");
            vec![FieldError::invalid(path, driver.into(), why)]
        }
        _ => Vec::new(),
    }
}

fn host_path_errors(
    policy: &Value,
    spec: &Value,
    volume: &Value,
    path: &str,
) -> Vec<FieldError> {
    let allowed = list(policy, "allowedHostPaths");
    if allowed.is_empty() {
        return Vec::new();
    }
    let host = text(&volume["hostPath"], "path");
    let mut fitting = allowed
        .iter()
        .filter(|it| is_below(host, text(it, "pathPrefix")))
        .peekable();
    if fitting.peek().is_none() {
        let why = "is not allowed to be used";
        let path = format!("{path}.hostPath.pathPrefix");
        return vec![FieldError::invalid(path, host.into(), why)];
    }
    if fitting.any(|it| it["readOnly"] != true) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (at, container) in containers(spec) {
        for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
            if mount["name"] == volume["name"] && mount["readOnly"] != true {
                let path = format!("{at}.volumeMounts[{index}].readOnly");
                let why = "must be read-only";
                errors.push(FieldError::invalid(path, false.into(), why));
            }
        }
    }
    errors
}

/// Whether a path is the directory `prefix` or below it.
fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    let path = path.trim_end_matches('/');
    path == prefix
        || path
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with('/'))
}

fn runtime_class_error(policy: &Value, spec: &Value) -> Option<FieldError> {
    let strategy = &policy["runtimeClass"];
    let class = spec["runtimeClassName"].as_str()?;
    if !strategy.is_object() {
        return None;
    }
    let allowed = list(strategy, "allowedRuntimeClassNames").iter();
    let allowed: Vec<&str> = allowed.filter_map(Value::as_str).collect();
    let is_allowed = allowed.iter().any(|it| *it == "*" || *it == class);
    let path = "spec.runtimeClassName";
    (!is_allowed).then(|| FieldError::not_supported(path, class.into(), allowed))
}

//! The violations of a policy by a container (`validateContainer` in
//! pkg/security/podsecuritypolicy).

use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::identity::{group_errors, selinux_errors, user_errors};
use crate::plugin::pod::list;

/// The path of a container, with the policy and the security context of its pod.
pub(super) struct ContainerContext<'a> {
    pub(super) policy: &'a Value,
    /// The security context of the pod.
    pub(super) of_pod: &'a Value,
    /// The path of the container.
    pub(super) path: &'a str,
}

impl ContainerContext<'_> {
    /// The violations of the policy.
    pub(super) fn errors(&self, container: &Value) -> Vec<FieldError> {
        let policy = self.policy;
        let own = &container["securityContext"];
        // The values of the pod are the defaults of its containers.
        let effective = |key: &str| match &own[key] {
            Value::Null => &self.of_pod[key],
            found => found,
        };
        let at = format!("{}.securityContext", self.path);
        let strategy = &policy["runAsUser"];
        let (user, non_root) = (effective("runAsUser"), effective("runAsNonRoot"));
        let mut errors = user_errors(strategy, &at, user, non_root);
        if policy["runAsGroup"].is_object() {
            let groups: Vec<i64> = effective("runAsGroup").as_i64().into_iter().collect();
            errors.extend(group_errors(&policy["runAsGroup"], &at, &groups));
        }
        let path = format!("{at}.seLinuxOptions");
        let options = effective("seLinuxOptions");
        errors.extend(selinux_errors(&policy["seLinux"], &path, options));
        if own["privileged"] == true && policy["privileged"] != true {
            let why = "Privileged containers are not allowed";
            let path = format!("{at}.privileged");
            errors.push(FieldError::invalid(path, true.into(), why));
        }
        let mount = own["procMount"].as_str().unwrap_or("Default");
        let mut allowed = list(policy, "allowedProcMountTypes").iter();
        if !allowed.any(|it| it == mount) && mount != "Default" {
            let path = format!("{at}.procMount");
            let why = "ProcMountType is not allowed";
            errors.push(FieldError::invalid(path, mount.into(), why));
        }
        errors.extend(capability_errors(policy, &at, &own["capabilities"]));
        errors.extend(self.port_errors(container));
        errors.extend(flag_errors(policy, &at, own));
        errors
    }

    fn port_errors(&self, container: &Value) -> Vec<FieldError> {
        let ranges = list(self.policy, "hostPorts").iter().map(|it| {
            let end = |name: &str| it[name].as_i64().unwrap_or_default();
            (end("min"), end("max"))
        });
        let ranges: Vec<(i64, i64)> = ranges.collect();
        let shown = ranges.iter().map(|(min, max)| {
            if min == max {
                min.to_string()
            } else {
                format!("{min}-{max}")
            }
        });
        let shown = shown.collect::<Vec<_>>().join(",");
        let ports = list(container, "ports").iter();
        let ports = ports.filter_map(|it| it["hostPort"].as_i64());
        let wrong = ports.filter(|port| {
            let mut all = ranges.iter();
            *port > 0 && !all.any(|(min, max)| (min..=max).contains(&port))
        });
        wrong
            .map(|port| {
                let path = format!("{}.hostPort", self.path);
                let why = format!(
                    "Host port {port} is not allowed to be used. Allowed ports: [{shown}]"
                );
                FieldError::invalid(path, port.into(), why)
            })
            .collect()
    }
}

fn flag_errors(policy: &Value, at: &str, own: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let key = "readOnlyRootFilesystem";
    if policy[key] == true && own[key] != true {
        let why = if own[key].is_null() {
            "ReadOnlyRootFilesystem may not be nil and must be set to true"
        } else {
            "ReadOnlyRootFilesystem must be set to true"
        };
        let path = format!("{at}.{key}");
        errors.push(FieldError::invalid(path, own[key].clone(), why));
    }
    let key = "allowPrivilegeEscalation";
    if policy[key] == false && own[key] != false {
        let why = "Allowing privilege escalation for containers is not allowed";
        let path = format!("{at}.{key}");
        errors.push(FieldError::invalid(path, own[key].clone(), why));
    }
    errors
}

fn capability_errors(policy: &Value, at: &str, own: &Value) -> Vec<FieldError> {
    let names = |value: &Value, field: &str| -> Vec<String> {
        let all = list(value, field).iter().filter_map(Value::as_str);
        all.map(str::to_owned).collect()
    };
    let default = names(policy, "defaultAddCapabilities");
    let required = names(policy, "requiredDropCapabilities");
    let allowed = names(policy, "allowedCapabilities");
    let path = format!("{at}.capabilities");
    if !own.is_object() {
        if default.is_empty() && required.is_empty() {
            return Vec::new();
        }
        let why = "required capabilities are not set on the securityContext";
        return vec![FieldError::invalid(path, Value::Null, why)];
    }
    if allowed.iter().any(|it| it == "*") {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for capability in names(own, "add") {
        if !default.contains(&capability) && !allowed.contains(&capability) {
            let path = format!("{path}.add");
            let why = "capability may not be added";
            errors.push(FieldError::invalid(path, capability.into(), why));
        }
    }
    let dropped = names(own, "drop");
    for capability in required.iter().filter(|it| !dropped.contains(it)) {
        let path = format!("{path}.drop");
        let why = format!("{capability} is required to be dropped but was not found");
        errors.push(FieldError::invalid(path, json!(dropped), why));
    }
    errors
}

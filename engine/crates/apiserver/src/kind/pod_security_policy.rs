//! PodSecurityPolicies, which Kubernetes 1.25 removed; served while the plugin PodSecurityPolicy is
//! enabled (pkg/apis/policy/validation in Kubernetes 1.24).
//!
//! The alpha and beta annotations for seccomp and AppArmor are rejected.

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `podsecuritypolicies` of `policy/v1beta1`.
#[derive(Debug)]
pub(crate) struct PodSecurityPolicy;

/// Volumes that a policy can allow, by the names of their fields.
const VOLUMES: [&str; 30] = [
    "*",
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephFS",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "iscsi",
    "nfs",
    "none",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
];

impl BuiltinKind for PodSecurityPolicy {
    fn resource(&self) -> Resource {
        let column = |name: &str| Column::new(name, "string", "");
        let kind = "PodSecurityPolicy";
        Resource::new("policy", "v1beta1", kind, "podsecuritypolicies")
            .cluster_scoped()
            .without_generation()
            .with_short_names(&["psp"])
            .with_columns(vec![
                column("Priv"),
                column("Caps"),
                column("Selinux"),
                column("RunAsUser"),
                column("FsGroup"),
                column("SupGroup"),
                column("ReadOnlyRootFs"),
                column("Volumes"),
            ])
            .with_schema(json!({"type": "object", "properties": {"spec": schema()}}))
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        let allows = spec.entry("allowPrivilegeEscalation");
        allows.or_insert(Value::Bool(true));
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let annotations = write.object["metadata"]["annotations"].as_object();
        for (key, _) in annotations.into_iter().flatten() {
            if key.starts_with("seccomp.security.") || key.starts_with("apparmor.") {
                let path = format!("metadata.annotations[{key}]");
                let why = "profiles in annotations are not supported";
                errors.push(FieldError::forbidden(path, why));
            }
        }
        spec_errors(&Field::of(write.object, "spec"), &mut errors);
        errors
    }

    fn warnings(&self, _write: &Write<'_>) -> Vec<String> {
        let text = "policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+";
        vec![text.to_owned()]
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        let parse_bool = |name: &str| Value::from((spec[name] == true).to_string());
        let rule = |name: &str| column::string(&spec[name]["rule"]);
        let joined = |name: &str| {
            let all = column::list(&spec[name]).iter().filter_map(Value::as_str);
            Value::from(all.collect::<Vec<_>>().join(","))
        };
        vec![
            column::name(object),
            parse_bool("privileged"),
            joined("allowedCapabilities"),
            rule("seLinux"),
            rule("runAsUser"),
            rule("fsGroup"),
            rule("supplementalGroups"),
            parse_bool("readOnlyRootFilesystem"),
            joined("volumes"),
        ]
    }
}

fn schema() -> Value {
    let (text, parse_bool) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let texts = json!({"type": "array", "items": text});
    let range = json!({"type": "array", "items": {"type": "object", "properties": {
        "min": {"type": "integer", "format": "int64"},
        "max": {"type": "integer", "format": "int64"}}}});
    let ids = json!({"type": "object", "properties": {"rule": text, "ranges": range}});
    let selinux = json!({"type": "object", "properties": {
        "user": text, "role": text, "type": text, "level": text}});
    let list = |properties: Value| {
        let items = json!({"type": "object", "properties": properties});
        json!({"type": "array", "items": items})
    };
    let mut properties = json!({
        "seLinux": {"type": "object", "properties": {
            "rule": text, "seLinuxOptions": selinux}},
        "hostPorts": range,
        "allowedHostPaths": list(json!({"pathPrefix": text, "readOnly": parse_bool})),
        "allowedFlexVolumes": list(json!({"driver": text})),
        "allowedCSIDrivers": list(json!({"name": text})),
        "runtimeClass": {"type": "object", "properties": {
            "allowedRuntimeClassNames": texts, "defaultRuntimeClassName": text}},
    });
    for name in ["runAsUser", "runAsGroup", "supplementalGroups", "fsGroup"] {
        properties[name] = ids.clone();
    }
    for name in [
        "privileged",
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "readOnlyRootFilesystem",
        "defaultAllowPrivilegeEscalation",
        "allowPrivilegeEscalation",
    ] {
        properties[name] = parse_bool.clone();
    }
    for name in [
        "defaultAddCapabilities",
        "requiredDropCapabilities",
        "allowedCapabilities",
        "volumes",
        "allowedUnsafeSysctls",
        "forbiddenSysctls",
        "allowedProcMountTypes",
    ] {
        properties[name] = texts.clone();
    }
    json!({"type": "object", "properties": properties})
}

fn spec_errors(spec: &Field<'_>, errors: &mut Errors) {
    let run_as = ["MustRunAs", "MustRunAsNonRoot", "RunAsAny"];
    identities(&spec.child("runAsUser"), &run_as, errors);
    let groups = ["MayRunAs", "MustRunAs", "RunAsAny"];
    if spec.child("runAsGroup").is_set() {
        identities(&spec.child("runAsGroup"), &groups, errors);
    }
    one_of(
        &spec.child("seLinux.rule"),
        &["MustRunAs", "RunAsAny"],
        errors,
    );
    identities(&spec.child("supplementalGroups"), &groups, errors);
    identities(&spec.child("fsGroup"), &groups, errors);
    for volume in spec.child("volumes").items() {
        one_of(&volume, &VOLUMES, errors);
    }
    capabilities(spec, errors);
    if spec.child("defaultAllowPrivilegeEscalation").is_true()
        && !spec.child("allowPrivilegeEscalation").is_true()
    {
        let why = "Cannot set DefaultAllowPrivilegeEscalation to true without also setting \
             AllowPrivilegeEscalation to true";
        let field = spec.child("defaultAllowPrivilegeEscalation");
        errors.push(field.invalid(why));
    }
    for path in spec.child("allowedHostPaths").items() {
        let prefix = path.child("pathPrefix");
        if prefix.text().is_empty() {
            errors.push(prefix.required("is required"));
        }
        rule::path_without_parent(&prefix, errors);
    }
    for driver in spec.child("allowedFlexVolumes").items() {
        if driver.child("driver").text().is_empty() {
            let why = "must specify a driver";
            errors.push(driver.child("driver").required(why));
        }
    }
    for driver in spec.child("allowedCSIDrivers").items() {
        rule::text(&driver.child("name"), name::dns_subdomain, errors);
    }
    for class in spec.child("runtimeClass.allowedRuntimeClassNames").items() {
        if class.text() != "*" {
            rule::dns_subdomain(&class, errors);
        }
    }
    sysctls(spec, errors);
}

/// Validates that a string is one of the known values, also if it is absent.
fn one_of(field: &Field<'_>, known: &[&str], errors: &mut Errors) {
    if !known.contains(&field.text()) {
        errors.push(field.not_supported(known));
    }
}

/// Validates a rule for user or group IDs with its ranges.
fn identities(field: &Field<'_>, known: &[&str], errors: &mut Errors) {
    one_of(&field.child("rule"), known, errors);
    for range in field.child("ranges").items() {
        let (min, max) = (range.child("min"), range.child("max"));
        for end in [&min, &max] {
            if end.count() < 0 {
                errors.push(end.invalid(format!("{} cannot be negative", last(end))));
            }
        }
        if min.count() > max.count() {
            errors.push(min.invalid("min cannot be greater than max"));
        }
    }
}

fn last(field: &Field<'_>) -> String {
    let path = field.path.to_string();
    path.rsplit('.').next().unwrap_or_default().to_owned()
}

/// Validates that no dropped capability is added or allowed.
fn capabilities(spec: &Field<'_>, errors: &mut Errors) {
    let dropped: Vec<&str> = spec
        .child("requiredDropCapabilities")
        .items()
        .map(|it| it.text())
        .collect();
    for list in ["defaultAddCapabilities", "allowedCapabilities"] {
        let field = spec.child(list);
        let both = field.items().filter(|it| dropped.contains(&it.text()));
        for capability in both {
            let why =
                format!("capability is listed in {list} and requiredDropCapabilities");
            let value = capability.text().into();
            errors.push(FieldError::invalid(field.path.clone(), value, why));
        }
    }
}

fn sysctls(spec: &Field<'_>, errors: &mut Errors) {
    let forbidden: Vec<&str> = spec
        .child("forbiddenSysctls")
        .items()
        .map(|it| it.text())
        .collect();
    for list in ["forbiddenSysctls", "allowedUnsafeSysctls"] {
        for sysctl in spec.child(list).items() {
            let text = sysctl.text();
            if text.is_empty() {
                errors.push(sysctl.invalid_text("empty sysctl not allowed"));
            } else if list == "allowedUnsafeSysctls" && forbidden.contains(&text) {
                let why = format!("sysctl overlaps with {text}");
                errors.push(sysctl.invalid(why));
            }
        }
    }
}

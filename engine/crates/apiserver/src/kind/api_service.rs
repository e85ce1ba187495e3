//! APIServices: stored. Those of other servers are not called: this one serves no groups of theirs.

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::{fill, part};
use super::{
    BuiltinKind, FinalizerRule, NameRule, StatusMetadata, Write, column, rule, text,
    workload,
};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `apiservices` of `apiregistration.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ApiService;

/// The highest priority of a group.
const MAX_GROUP_PRIORITY: i64 = 20_000;
/// The highest priority of a version in its group.
const MAX_VERSION_PRIORITY: i64 = 1000;

impl BuiltinKind for ApiService {
    fn resource(&self) -> Resource {
        let service = "The reference to the service that hosts this API endpoint.";
        let available = "Whether this service is available.";
        Resource::new("apiregistration.k8s.io", "v1", "APIService", "apiservices")
            .cluster_scoped()
            .with_category("api-extensions")
            .without_generation()
            .require_resource_version()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                Column::new("Service", "string", service),
                Column::new("Available", "string", available),
                Column::age(),
            ])
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        if let Some(service) = part(spec, "service") {
            fill(service, "port", 443);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let mut status = json!({});
        if object["spec"]["service"].is_null() {
            let now = &object["metadata"]["creationTimestamp"];
            status["conditions"] = json!([{"type": "Available", "status": "True",
                "lastTransitionTime": now, "reason": "Local",
                "message": "Local APIServices are always available"}]);
        }
        workload::begin(object, status);
    }

    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::Unowned(&[
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
        ])
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.subresource == "status" {
            let status = Field::of(write.object, "status");
            for condition in status.child("conditions").items() {
                let status = condition.child("status");
                let known = ["True", "False", "Unknown"];
                if !known.contains(&status.text()) {
                    errors.push(status.not_supported(&known));
                }
            }
            return errors;
        }
        let spec = Field::of(write.object, "spec");
        let (group, version) = (spec.child("group"), spec.child("version"));
        let expected = format!("{}.{}", version.text(), group.text());
        let actual = Field::of(write.object, "metadata").child("name");
        if actual.text() != expected {
            let why = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
            errors.push(actual.invalid_text(why));
        }
        if group.text().is_empty() && version.text() != "v1" {
            let why = "only v1 may have an empty group and it better be legacy kube";
            errors.push(group.required(why));
        }
        rule::text_if_set(&group, name::dns_subdomain, &mut errors);
        rule::text(&version, name::dns_1035_label, &mut errors);
        priority(
            &spec,
            "groupPriorityMinimum",
            MAX_GROUP_PRIORITY,
            &mut errors,
        );
        priority(&spec, "versionPriority", MAX_VERSION_PRIORITY, &mut errors);
        service(&spec, &mut errors);
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let service = &write.object["spec"]["service"];
        if !service.is_object() || write.is_spec_unchanged() {
            return Vec::new();
        }
        let warning = "spec.service: this server does not call other API servers; their groups \
                       are not served";
        vec![warning.to_owned()]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let service = &object["spec"]["service"];
        let service = if service.is_object() {
            format!("{}/{}", text(service, "namespace"), text(service, "name"))
        } else {
            "Local".to_owned()
        };
        let mut conditions = column::list(&object["status"]["conditions"]).iter();
        let found = conditions.find(|it| it["type"] == "Available");
        let available = found.map_or_else(
            || "Unknown".to_owned(),
            |it| match (text(it, "status"), text(it, "reason")) {
                (status, reason) if status == "True" || reason.is_empty() => {
                    status.to_owned()
                }
                (status, reason) => format!("{status} ({reason})"),
            },
        );
        vec![
            column::name(object),
            service.into(),
            available.into(),
            column::age(object, now),
        ]
    }
}

fn priority(spec: &Field<'_>, name: &str, most: i64, errors: &mut Errors) {
    let field = spec.child(name);
    if !(1..=most).contains(&field.count()) {
        let value = field.count().into();
        let why = format!("must be positive and less than {most}");
        errors.push(FieldError::invalid(field.path, value, why));
    }
}

fn service(spec: &Field<'_>, errors: &mut Errors) {
    let service = spec.child("service");
    let [bundle, insecure] =
        ["caBundle", "insecureSkipTLSVerify"].map(|it| spec.child(it));
    let has_bundle = !bundle.text().is_empty();
    if !service.is_set() {
        if has_bundle {
            let size = kubemu_gostd::base64::decode_std(bundle.text().as_bytes())
                .map_or(0, |it| it.len());
            let value = format!("{size} bytes").into();
            let why = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(bundle.path, value, why));
        }
        if insecure.is_true() {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(insecure.invalid(why));
        }
        return;
    }
    for field in ["namespace", "name"] {
        let field = service.child(field);
        if field.text().is_empty() {
            errors.push(field.required(""));
        }
    }
    let port = service.child("port");
    if !(1..=65535).contains(&port.count()) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(port.path, port.value.clone(), why));
    }
    if insecure.is_true() && has_bundle {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
}

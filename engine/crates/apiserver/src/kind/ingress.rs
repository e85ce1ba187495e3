//! Ingresses: validated and stored; no controller serves them.

use std::net::IpAddr;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, load_balancer, rule, workload};
use crate::resource::{Column, Resource, Subresource};

/// `ingresses` of `networking.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct Ingress;

/// The deprecated annotation for the field `ingressClassName`.
const CLASS: &str = "kubernetes.io/ingress.class";

impl BuiltinKind for Ingress {
    fn resource(&self) -> Resource {
        let column = |name: &str, text: &str| Column::new(name, "string", text);
        Resource::new("networking.k8s.io", "v1", "Ingress", "ingresses")
            .with_short_names(&["ing"])
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                column(
                    "Class",
                    "The name of the IngressClass resource that should be used for additional \
                     configuration",
                ),
                column(
                    "Hosts",
                    "Hosts that incoming requests are matched against before the ingress rule",
                ),
                column(
                    "Address",
                    "Address is a list containing ingress points for the load-balancer",
                ),
                column("Ports", "Ports of TLS configurations that open"),
                Column::age(),
            ])
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({"loadBalancer": {}}));
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            let status = Field::of(write.object, "status").child("loadBalancer");
            load_balancer::addresses(&status, &mut errors);
            return errors;
        }
        let spec = Field::of(write.object, "spec");
        self::spec(&spec, &mut errors);
        let value = write.object["metadata"]["annotations"][CLASS].as_str();
        let class = spec.child("ingressClassName");
        if let Some(value) = value.filter(|it| class.is_set() && *it != class.text())
            && write.old.is_none()
        {
            let why = "must match `ingressClassName` when both are specified";
            let path = format!("annotations.{CLASS}");
            errors.push(FieldError::invalid(path, value.into(), why));
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let object = write.object;
        let by_annotation = object["metadata"]["annotations"][CLASS].is_string()
            && object["spec"]["ingressClassName"].is_null()
            && write.old.is_none();
        let warning = format!(
            "annotation \"{CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
        );
        by_annotation.then_some(warning).into_iter().collect()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        let ports = if column::count(&spec["tls"]) > 0 {
            "80, 443"
        } else {
            "80"
        };
        vec![
            column::name(object),
            spec["ingressClassName"].as_str().unwrap_or("<none>").into(),
            hosts(&spec["rules"]).into(),
            load_balancer::addresses_text(&object["status"]["loadBalancer"]).into(),
            ports.into(),
            column::age(object, now),
        ]
    }
}

/// The first three hosts of the rules.
fn hosts(rules: &Value) -> String {
    const MAX_SHOWN: usize = 3;
    let rules = column::list(rules);
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == MAX_SHOWN;
        let host = rule["host"].as_str().unwrap_or_default();
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => {
            format!("{} + {} more...", shown.join(","), rules.len() - MAX_SHOWN)
        }
    }
}

fn spec(spec: &Field<'_>, errors: &mut Errors) {
    let (rules, default) = (spec.child("rules"), spec.child("defaultBackend"));
    if rules.len() == 0 && !default.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(
            spec.path.clone(),
            rules.value.clone(),
            why,
        ));
    }
    if default.is_set() {
        backend(&default, errors);
    }
    for rule in rules.items() {
        let host = rule.child("host");
        if host.text().parse::<IpAddr>().is_ok() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
        if !host.text().is_empty() {
            host_name(&host, errors);
        }
        let http = rule.child("http");
        if http.is_set() {
            paths(&http.child("paths"), errors);
        }
    }
    for tls in spec.child("tls").items() {
        for host in tls.child("hosts").items() {
            host_name(&host, errors);
        }
        rule::text_if_set(&tls.child("secretName"), name::dns_subdomain, errors);
    }
    let class = spec.child("ingressClassName");
    if class.is_set() {
        rule::dns_subdomain(&class, errors);
    }
}

/// Validates a host name, whose first label may be a wildcard.
fn host_name(host: &Field<'_>, errors: &mut Errors) {
    let text = host.text();
    if !text.contains('*') {
        rule::dns_subdomain(host, errors);
        return;
    }
    let rest = text.strip_prefix("*.").unwrap_or_default();
    if text.len() > 253 {
        errors.push(host.invalid("must be no more than 253 characters"));
    }
    if !name::dns_subdomain(rest).is_empty() {
        errors.push(host.invalid(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
             subdomain, which must consist of lower case alphanumeric characters, '-' or '.' \
             and end with an alphanumeric character (e.g. '*.example.com', regex used for \
             validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ));
    }
}

fn paths(list: &Field<'_>, errors: &mut Errors) {
    if list.len() == 0 {
        errors.push(list.required(""));
    }
    for each in list.items() {
        let kind = each.child("pathType");
        if !kind.is_set() {
            errors.push(kind.required("pathType must be specified"));
            continue;
        }
        match kind.text() {
            "Exact" | "Prefix" => plain_path(&each.child("path"), errors),
            "ImplementationSpecific" => {
                let path = each.child("path");
                if !path.text().is_empty() {
                    absolute(&path, errors);
                }
            }
            _ => {
                let known = ["Exact", "ImplementationSpecific", "Prefix"];
                errors.push(kind.not_supported(&known));
            }
        }
        backend(&each.child("backend"), errors);
    }
}

fn absolute(path: &Field<'_>, errors: &mut Errors) {
    if !path.text().starts_with('/') {
        errors.push(path.invalid_text("must be an absolute path"));
    }
}

fn plain_path(path: &Field<'_>, errors: &mut Errors) {
    absolute(path, errors);
    for part in ["//", "/./", "/../", "%2f", "%2F"] {
        if path.text().contains(part) {
            errors.push(path.invalid(format!("must not contain '{part}'")));
        }
    }
    for end in ["/..", "/."] {
        if path.text().ends_with(end) {
            errors.push(path.invalid(format!("cannot end with '{end}'")));
        }
    }
}

fn backend(backend: &Field<'_>, errors: &mut Errors) {
    let (resource, service) = (backend.child("resource"), backend.child("service"));
    let at_backend =
        |why: &str| FieldError::invalid(backend.path.clone(), "".into(), why);
    match (resource.is_set(), service.is_set()) {
        (true, true) => {
            errors.push(at_backend("cannot set both resource and service backends"));
        }
        (true, false) => reference(&resource, errors),
        (false, true) => service_backend(backend, &service, errors),
        (false, false) => {
            errors.push(at_backend("resource or service backend is required"));
        }
    }
}

fn service_backend(backend: &Field<'_>, service: &Field<'_>, errors: &mut Errors) {
    let name = service.child("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        rule::dns_label(&name, errors);
    }
    let (name, number) = (service.child("port.name"), service.child("port.number"));
    match (!name.text().is_empty(), number.count() != 0) {
        (true, true) => {
            let why = "cannot set both port name & port number";
            errors.push(FieldError::invalid(backend.path.clone(), "".into(), why));
        }
        (true, false) => rule::text(&name, rule::port_name, errors),
        (false, true) => rule::port(&number, errors),
        (false, false) => {
            errors.push(backend.required("port name or number is required"));
        }
    }
}

/// Validates a reference to an object of the same namespace.
fn reference(resource: &Field<'_>, errors: &mut Errors) {
    let group = resource.child("apiGroup");
    if group.is_set() {
        rule::dns_subdomain(&group, errors);
    }
    for field in ["kind", "name"] {
        let field = resource.child(field);
        if field.text().is_empty() {
            errors.push(field.required(""));
        } else {
            rule::text(&field, name::path_segment, errors);
        }
    }
}

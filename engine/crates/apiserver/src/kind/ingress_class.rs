//! IngressClasses.

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::Field;
use super::{BuiltinKind, Write, column, rule, text};
use crate::meta;
use crate::resource::{Column, Resource};

/// `ingressclasses` of `networking.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct IngressClass;

/// The annotation that makes a class the default one.
const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
/// The maximum size of a controller's name in bytes.
const MAX_CONTROLLER_LENGTH: usize = 250;

/// Whether the class is the default for Ingresses without a class.
pub(crate) fn is_default(class: &Value) -> bool {
    class["metadata"]["annotations"][DEFAULT] == "true"
}

impl BuiltinKind for IngressClass {
    fn resource(&self) -> Resource {
        let controller = "Controller that is responsible for handling this class";
        let parameters = "A reference to a resource with additional parameters";
        Resource::new("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
            .cluster_scoped()
            .with_columns(vec![
                Column::new("Controller", "string", controller),
                Column::new("Parameters", "string", parameters),
                Column::age(),
            ])
    }

    fn default(&self, object: &mut Value) {
        let parameters = object.pointer_mut("/spec/parameters");
        let parameters = parameters.and_then(Value::as_object_mut);
        // Go writes an absent scope as null.
        if let Some(parameters) = parameters
            && parameters.get("scope").is_none_or(Value::is_null)
        {
            parameters.insert("scope".to_owned(), json!("Cluster"));
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let spec = &write.object["spec"];
        let mut errors = Vec::new();
        if let Some(old) = write.old
            && old["spec"]["controller"] != spec["controller"]
        {
            let value = text(spec, "controller").into();
            let why = "field is immutable";
            errors.push(FieldError::invalid("spec.controller", value, why));
        }
        errors.extend(controller_errors(text(spec, "controller")));
        if spec["parameters"].is_object() {
            errors.extend(parameter_errors(&spec["parameters"]));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mark = if is_default(object) { " (default)" } else { "" };
        let parameters = &object["spec"]["parameters"];
        let group = parameters["apiGroup"].as_str().map(|it| format!(".{it}"));
        let shown = if parameters.is_object() {
            let (kind, group) = (text(parameters, "kind"), group.unwrap_or_default());
            format!("{kind}{group}/{}", text(parameters, "name"))
        } else {
            "<none>".to_owned()
        };
        vec![
            format!("{}{mark}", meta::name(object)).into(),
            column::string(&object["spec"]["controller"]),
            shown.into(),
            column::age(object, now),
        ]
    }
}

fn controller_errors(controller: &str) -> Vec<FieldError> {
    let path = "spec.controller";
    let mut errors = Vec::new();
    if controller.len() > MAX_CONTROLLER_LENGTH {
        errors.push(FieldError::too_long(path, MAX_CONTROLLER_LENGTH as u64));
    }
    if controller.is_empty() {
        errors.push(FieldError::required(path, ""));
        return errors;
    }
    match controller.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            let wrong = name::dns_subdomain(host).into_iter();
            errors.extend(wrong.map(|it| FieldError::invalid(path, host.into(), it)));
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, controller.into(), why));
        }
    }
    errors
}

fn parameter_errors(parameters: &Value) -> Vec<FieldError> {
    let path = "spec.parameters";
    let mut errors = Vec::new();
    let of = Field {
        path: path.into(),
        value: parameters,
    };
    let group = of.child("apiGroup");
    if group.is_set() {
        rule::dns_subdomain(&group, &mut errors);
    }
    for field in ["kind", "name"] {
        let field = of.child(field);
        if field.text().is_empty() {
            errors.push(field.required(""));
        } else {
            rule::text(&field, name::path_segment, &mut errors);
        }
    }
    let scope = text(parameters, "scope");
    let at = format!("{path}.namespace");
    let has_namespace = parameters["namespace"].is_string();
    match scope {
        "Namespace" if !has_namespace => {
            let why = "`parameters.scope` is set to 'Namespace'";
            errors.push(FieldError::required(at, why));
        }
        "Cluster" if has_namespace => {
            let why = "`parameters.scope` is set to 'Cluster'";
            errors.push(FieldError::forbidden(at, why));
        }
        "Namespace" => rule::dns_label(&of.child("namespace"), &mut errors),
        "Cluster" => {}
        _ => {
            let known = ["Cluster", "Namespace"];
            let at = format!("{path}.scope");
            errors.push(FieldError::not_supported(at, scope.into(), known));
        }
    }
    errors
}

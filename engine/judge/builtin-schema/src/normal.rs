//! Converts schemas from the form of schemars to the form that a Kubernetes server publishes.

use serde_json::{Value, json};

/// Definitions that accept any JSON, whatever their declared type is.
const ANY: [&str; 5] = [
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
];

/// Definitions that are atomic for server-side apply (`+structType=atomic` in k8s.io/api,
/// k8s.io/apimachinery).
const ATOMIC: [&str; 27] = [
    "io.k8s.api.admissionregistration.v1.MatchResources",
    "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations",
    "io.k8s.api.admissionregistration.v1.ParamKind",
    "io.k8s.api.admissionregistration.v1.ParamRef",
    "io.k8s.api.admissionregistration.v1.Variable",
    "io.k8s.api.autoscaling.v1.CrossVersionObjectReference",
    "io.k8s.api.core.v1.ConfigMapKeySelector",
    "io.k8s.api.core.v1.EndpointAddress",
    "io.k8s.api.core.v1.EndpointPort",
    "io.k8s.api.core.v1.FileKeySelector",
    "io.k8s.api.core.v1.LocalObjectReference",
    "io.k8s.api.core.v1.NodeSelector",
    "io.k8s.api.core.v1.NodeSelectorTerm",
    "io.k8s.api.core.v1.ObjectFieldSelector",
    "io.k8s.api.core.v1.ObjectReference",
    "io.k8s.api.core.v1.ResourceFieldSelector",
    "io.k8s.api.core.v1.ScopeSelector",
    "io.k8s.api.core.v1.SecretKeySelector",
    "io.k8s.api.core.v1.SecretReference",
    "io.k8s.api.core.v1.TopologySelectorTerm",
    "io.k8s.api.core.v1.TypedLocalObjectReference",
    "io.k8s.api.discovery.v1.EndpointPort",
    "io.k8s.api.networking.v1.ServiceBackendPort",
    "io.k8s.api.rbac.v1.RoleRef",
    "io.k8s.api.rbac.v1.Subject",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
];

/// Rewrites one definition.
pub fn definition(name: &str, schema: &mut Value) {
    references(schema);
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    // k8s-openapi requires `metadata` of every kind; Kubernetes does not.
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|it| it != "metadata");
        if required.is_empty() {
            fields.remove("required");
        }
    }
    if ANY.contains(&name) {
        fields.remove("type");
    }
    if ATOMIC.contains(&name) {
        fields.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    if name == "io.k8s.apimachinery.pkg.api.resource.Quantity" {
        fields.remove("type");
        fields.insert(
            "oneOf".into(),
            json!([{"type": "string"}, {"type": "number"}]),
        );
    }
    if fields.remove("x-kubernetes-int-or-string").is_some() {
        fields.insert("format".into(), "int-or-string".into());
        fields.insert(
            "oneOf".into(),
            json!([{"type": "integer"}, {"type": "string"}]),
        );
    }
}

/// OpenAPI 3.0 ignores all keywords next to `$ref`; Kubernetes wraps the reference in `allOf`.
fn references(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.len() > 1
                && fields.get("$ref").is_some_and(Value::is_string)
                && let Some(target) = fields.remove("$ref")
            {
                fields.insert("allOf".into(), json!([{"$ref": target}]));
            }
            fields.values_mut().for_each(references);
        }
        Value::Array(items) => items.iter_mut().for_each(references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

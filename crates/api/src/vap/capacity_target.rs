//! The policy about who may write a ScheduledCapacity: the operator changes its target for them,
//! with its own rights.

use serde_json::{Value, json};

use crate::name;

/// The key of the ConfigMap with the kinds whose objects have no namespace.
pub const CLUSTER_SCOPED: &str = "clusterScoped";

/// The name of the policy, its binding and the ConfigMap with the kinds, of an operator in the
/// namespace [`name::SYSTEM_NAMESPACE`].
pub fn policy_name() -> String {
    format!("{}-targets", name::CAPACITY_CONTROLLER)
}

/// The `spec` of the binding of an operator in this namespace. Without the ConfigMap, everything is
/// refused.
pub fn binding_spec(name: &str, namespace: &str) -> Value {
    json!({
        "policyName": name,
        "validationActions": ["Deny"],
        "paramRef": {
            "name": name,
            "namespace": namespace,
            "parameterNotFoundAction": "Deny",
        },
    })
}

/// The `spec` of the policy. Its parameters are a ConfigMap with the plural of each kind that may
/// be a target, by `Kind` or `Kind.group`.
///
/// Whoever may change a stored object may switch it off, also where its kind is none of these: its
/// inactive values are those that its author, who was asked, has chosen. Everything else that
/// changes is asked about, and so is switching it on again.
pub fn spec() -> Value {
    let validation = |expression: &str, field: &str, message: &str| {
        json!({
            "expression": expression,
            "message": format!("{field}: you may not write this target yourself"),
            "messageExpression": format!("'{field}: ' + {message}"),
            "reason": "Forbidden",
        })
    };
    json!({
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": super::constraints(name::GROUP, &["*"], name::CAPACITY_PLURAL),
        "matchConditions": super::conditions(true),
        "variables": variables(),
        "validations": [
            validation(
                "variables.plural != ''",
                "spec.target",
                "variables.key + ' is none of the kinds that the operator may change; \
                 name it with --capacity-target, or capacity.targets of the chart, and then write \
                 the object again'",
            ),
            validation(
                "variables.plural == '' || variables.target.check('patch').allowed()",
                "spec.target",
                "'you may not patch ' + variables.plural + ' yourself'",
            ),
            validation(
                "variables.plural == '' || !has(object.spec.template) || \
                 authorizer.group(variables.group).resource(variables.plural)\
                 .namespace(object.metadata.namespace).check('create').allowed()",
                "spec.template",
                "'you may not create ' + variables.plural + ' yourself'",
            ),
        ],
    })
}

/// The kind of the target, and what the person may do with it.
fn variables() -> Value {
    let variable =
        |name: &str, expression: &str| json!({"name": name, "expression": expression});
    json!([
        variable(
            "group",
            "object.spec.target.apiVersion.contains('/') ? \
                 object.spec.target.apiVersion.split('/')[0] : ''",
        ),
        variable(
            "key",
            "object.spec.target.kind + (variables.group == '' ? '' : '.' + variables.group)",
        ),
        variable("plural", "params.?data[?variables.key].orValue('')"),
        variable(
            "isClusterScoped",
            "params.?data.?clusterScoped.orValue('').split(',').exists(kind, \
                 kind == variables.key)",
        ),
        variable(
            "target",
            "authorizer.group(variables.group).resource(variables.plural)\
                 .subresource(object.spec.target.?subresource.orValue(''))\
                 .namespace(variables.isClusterScoped ? '' : object.metadata.namespace)\
                 .name(object.spec.target.?name.orValue(object.metadata.name))",
        ),
    ])
}

//! The policy about who may write a ScheduledCapacity: the operator changes its target for them,
//! with its own rights.

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::name;
use serde_json::{Value, json};

use crate::capacity_target::CapacityTarget;
use crate::role::{NamespaceScope, Rights, metadata};

const VERSION: &str = "admissionregistration.k8s.io/v1";

/// The key of the ConfigMap with the kinds whose objects have no namespace.
const CLUSTER_SCOPED: &str = "clusterScoped";

/// The name of the policy, its binding and the ConfigMap with the kinds.
fn policy_name() -> String {
    format!("{}-targets", name::CAPACITY_CONTROLLER)
}

impl Rights {
    /// The policy, its binding, and the ConfigMap with the kinds that may be targets. Empty if there
    /// are none, so that the operator may not change anything.
    pub fn capacity_policy(&self) -> Vec<Value> {
        if !self.is_capacity_apart() {
            return Vec::new();
        }
        let kinds = kinds(&self.capacity_targets);
        let mut all = self.policy_with(json!(kinds));
        if let (NamespaceScope::Only(namespaces), Some(policy)) =
            (&self.namespaces, all.first_mut())
        {
            policy["spec"]["matchConstraints"]["namespaceSelector"] = json!({
                "matchExpressions": [{
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": namespaces,
                }],
            });
        }
        self.named_after_namespace(all)
    }

    /// The same for every namespace, with the data of the ConfigMap, under the names for the
    /// operator's own namespace.
    pub(crate) fn policy_with(&self, kinds: Value) -> Vec<Value> {
        let name = policy_name();
        let object = |version: &str, kind: &str, rest: Value| {
            let mut object = json!({
                "apiVersion": version,
                "kind": kind,
                "metadata": metadata(&name, None),
            });
            if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
                object.extend(rest);
            }
            object
        };
        let mut data = object("v1", "ConfigMap", json!({"data": kinds}));
        data["metadata"] = metadata(&name, Some(&self.namespace));
        let binding = json!({"spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "paramRef": {
                "name": name,
                "namespace": self.namespace,
                "parameterNotFoundAction": "Deny",
            },
        }});
        vec![
            object(
                VERSION,
                "ValidatingAdmissionPolicy",
                json!({"spec": spec()}),
            ),
            object(VERSION, "ValidatingAdmissionPolicyBinding", binding),
            data,
        ]
    }
}

/// The plurals by kind and group, and which kinds have no namespace.
fn kinds(targets: &BTreeSet<CapacityTarget>) -> BTreeMap<String, String> {
    let pair = |it: &CapacityTarget| (it.kind_and_group(), it.plural.clone());
    let mut kinds: BTreeMap<String, String> = targets.iter().map(pair).collect();
    let clustered = targets.iter().filter(|it| it.is_cluster_scoped);
    let clustered: BTreeSet<String> =
        clustered.map(CapacityTarget::kind_and_group).collect();
    let clustered = clustered.into_iter().collect::<Vec<_>>().join(",");
    kinds.insert(CLUSTER_SCOPED.to_owned(), clustered);
    kinds
}

fn spec() -> Value {
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
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [name::GROUP],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": [name::CAPACITY_PLURAL],
        }]},
        "matchConditions": [
            {
                "name": "not-being-deleted",
                "expression": "!has(object.metadata.deletionTimestamp)",
            },
            {
                "name": "created-or-spec-changed",
                "expression": "oldObject == null || object.?spec != oldObject.?spec",
            },
        ],
        "variables": variables(),
        "validations": [
            validation(
                "variables.plural != ''",
                "spec.target",
                "variables.key + ' is none of the kinds that the operator may change \
                 (--capacity-target)'",
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

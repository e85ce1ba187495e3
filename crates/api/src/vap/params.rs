//! The policy with the allowed providers as its parameters, so that a cluster, or each of its
//! namespaces, can allow fewer of them without another policy.

use serde_json::{Value, json};

use crate::name;
use crate::rules::{RULES, Rule};

/// The rules about the groups of providers, each with its key in the parameters.
const LISTS: [(&str, &str); 2] = [
    ("SM009", "bootstrapGroups"),
    ("SM012", "infrastructureGroups"),
];

/// The kinds of provider objects, each with the key of the parameters that may restrict them.
const KINDS: [(&str, &str); 2] = [
    ("spec.bootstrapSpec.kind", "bootstrapKinds"),
    ("spec.infrastructureSpec.kind", "infrastructureKinds"),
];
/// The key of the parameters that may restrict the labels of Machines.
const LABEL_PREFIXES: &str = "labelPrefixes";

/// The policy that reads the allowed providers from its parameters. Cannot fail.
///
/// Each list is one comma-separated text. Without a list of groups no group is allowed. Without
/// a list of kinds every kind is allowed; without a list of label prefixes every label, within
/// the rules. The CRD allows only the groups that the operator supports, whatever the
/// parameters are.
pub fn policy() -> Value {
    let mut policy = super::policy();
    policy["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    for (rule, validation) in RULES.iter().zip(validations(&mut policy)) {
        let of_rule = LISTS.iter().find(|(id, _)| *id == rule.id);
        if let Some((_, key)) = of_rule {
            *validation = asking(rule, key);
        }
    }
    if let Some(validations) = policy["spec"]["validations"].as_array_mut() {
        validations.extend(KINDS.map(|(path, key)| kind_in(path, key)));
        validations.push(label_prefixes());
    }
    policy
}

/// The kind must be in the list, if there is a list.
fn kind_in(path: &str, key: &str) -> Value {
    let lens = super::lens(path);
    let holds = format!(
        "params.?data.?{key}.optMap(kinds, kinds.split(',').exists(kind, kind.trim() == self))\
         .orValue(true)"
    );
    bounded(path, key, (&lens, &holds, "must be an allowed kind"))
}

/// Each label must start with one of the prefixes in the list, if there is a list.
fn label_prefixes() -> Value {
    let path = "spec.machineTemplate.labels";
    let lens = super::lens(path);
    let holds = format!(
        "params.?data.?{LABEL_PREFIXES}.optMap(prefixes, self.all(key, \
         prefixes.split(',').exists(prefix, prefix.trim() != '' && \
         key.startsWith(prefix.trim())))).orValue(true)"
    );
    let words = "keys must begin with an allowed prefix";
    bounded(path, LABEL_PREFIXES, (&lens, &holds, words))
}

/// A validation for the list `key` of the parameters, unless an update leaves the value
/// unchanged.
fn bounded(path: &str, key: &str, (lens, holds, words): (&str, &str, &str)) -> Value {
    let unchanged = super::unchanged(lens, &[]);
    json!({
        "expression":
            format!("{unchanged}\n|| object{lens}.optMap(self, {holds}).orValue(true)"),
        "message": format!("{path}: {words}"),
        "messageExpression":
            format!("'{path}: {words}: ' + params.?data.?{key}.orValue('')"),
    })
}

/// The binding of the policy for all namespaces, with the parameters of [`allowlist`]. Cannot
/// fail.
pub fn binding() -> Value {
    let mut binding = super::binding(super::Action::Deny);
    binding["spec"]["paramRef"] = json!({
        "name": name::PROVIDERS,
        "namespace": name::PARAMETER_NAMESPACE,
        "parameterNotFoundAction": "Deny",
    });
    binding
}

/// The namespace of [`allowlist`]. Cannot fail.
pub fn namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name::PARAMETER_NAMESPACE},
    })
}

/// The parameters that allow the same as the policy without parameters. Cannot fail.
pub fn allowlist() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name::PROVIDERS, "namespace": name::PARAMETER_NAMESPACE},
        "data": {
            "bootstrapGroups": name::BOOTSTRAP_GROUPS.join(","),
            "infrastructureGroups": name::INFRASTRUCTURE_GROUPS.join(","),
        },
    })
}

fn validations(policy: &mut Value) -> impl Iterator<Item = &mut Value> {
    let list = policy["spec"]["validations"].as_array_mut();
    list.into_iter().flatten()
}

fn asking(rule: &Rule, key: &str) -> Value {
    let lens = super::lens(rule.path);
    let unchanged = super::unchanged(&lens, rule.requirement.inputs);
    let allowed = format!("params.?data.?{key}.orValue('')");
    let holds = format!(
        "!self.contains('/') || {allowed}.split(',').exists(group, group.trim() != '' && \
         self.startsWith(group.trim() + '/'))"
    );
    let (field, all) = (rule.field(), "must be from an allowed group");
    json!({
        "expression":
            format!("{unchanged}\n|| object{lens}.optMap(self, {holds}).orValue(true)"),
        "message": rule.full_message(),
        "messageExpression": format!("'{field}: {all}: ' + {allowed}"),
    })
}

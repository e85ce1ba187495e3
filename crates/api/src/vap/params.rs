//! The policy with the providers that are allowed as its parameters, so that a cluster, or each
//! of its namespaces, can allow fewer of them without another policy.

use serde_json::{Value, json};

use crate::name;
use crate::rules::{RULES, Rule};

/// The rules about the groups of providers, each with the key of the parameters that decides.
const LISTS: [(&str, &str); 2] = [
    ("SM009", "bootstrapGroups"),
    ("SM012", "infrastructureGroups"),
];

/// The policy, asking its parameters which groups are allowed. Cannot fail.
///
/// Each list is one text, groups divided by commas; without it, nothing is allowed. The
/// definition allows the groups that the operator knows, whatever the parameters say.
pub fn policy() -> Value {
    let mut policy = super::policy();
    policy["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    for (rule, validation) in RULES.iter().zip(validations(&mut policy)) {
        let of_rule = LISTS.iter().find(|(id, _)| *id == rule.id);
        if let Some((_, key)) = of_rule {
            *validation = asking(rule, key);
        }
    }
    policy
}

/// The binding that puts it in force in all namespaces, with the parameters of
/// [`allowlist`]. Cannot fail.
pub fn binding() -> Value {
    let mut binding = super::binding(super::Action::Deny);
    binding["spec"]["paramRef"] = json!({
        "name": name::PROVIDERS,
        "namespace": name::SYSTEM_NAMESPACE,
        "parameterNotFoundAction": "Deny",
    });
    binding
}

/// The parameters that allow what the policy without them allows. Cannot fail.
pub fn allowlist() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name::PROVIDERS, "namespace": name::SYSTEM_NAMESPACE},
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
    let unchanged = super::unchanged(&lens, rule.inputs);
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

//! The ValidatingAdmissionPolicies and their bindings, rendered from the rules.
//!
//! The policy is the second layer: the CRD's rules run before it and name the field. The policy
//! repeats them, and adds the rules that a CRD cannot evaluate. It reads an untyped object, so
//! that every selection is optional: an absent field breaks no rule.

pub mod capacity_target;
pub mod class;
pub mod params;

use serde_json::{Value, json};

use crate::resource::{Resource, SCHEDULED_MACHINE};
use crate::rules::{Layer, Requirement, Rule};

/// The longest list whose items an update compares with their previous values. Each item is
/// searched for in the whole list.
const MAX_COMPARED: u64 = 64;

/// Whether an update does more than to set the kill switch or to disable the schedule.
///
/// That no rule's input changes is not enough: a CustomResourceDefinition of an earlier release
/// prunes fields, such as windows, from what a client sends. So fields may be missing, but none may
/// be new or different, and nothing else passes with the switch.
const NOT_ONLY_SWITCHED_OFF: &str = "\
oldObject == null
|| !(object.?spec.?killSwitch == optional.of(true) && oldObject.?spec.?killSwitch != optional.of(true)
  || object.?spec.?enabled == optional.of(false) && oldObject.?spec.?enabled != optional.of(false)
  || object.?spec.?schedule.?enabled == optional.of(false) && oldObject.?spec.?schedule.?enabled != optional.of(false))
|| !object.spec.all(field, field in ['enabled', 'killSwitch', 'schedule']
  || oldObject.spec[?field] == optional.of(object.spec[field]))
|| !object.spec.schedule.all(field, field == 'enabled'
  || oldObject.spec.schedule[?field] == optional.of(object.spec.schedule[field]))";

const BINDING: &str = "ValidatingAdmissionPolicyBinding";

/// What a binding does with an object that violates a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The object is rejected.
    Deny,
    /// The object is admitted, and the violation is recorded in the audit log.
    Audit,
    /// The object is rejected, and the violation is recorded in the audit log.
    AuditAndDeny,
}

/// The policy of ScheduledMachine; see [`policy_of`].
pub fn policy() -> Value {
    policy_of(SCHEDULED_MACHINE)
}

/// The policy of a kind. Cannot fail.
///
/// It does not match an object that is being deleted, so that its finalizers can be removed.
/// Nor does it match an update that leaves the spec unchanged, so that labels can be edited on
/// an object that was stored before the rules were in force. A ScheduledMachine can always be
/// switched off, see [`NOT_ONLY_SWITCHED_OFF`].
pub fn policy_of(resource: &Resource) -> Value {
    let schema = (resource.schema)();
    let rules = resource.rules().iter();
    let validations: Vec<Value> = rules
        .map(|rule| {
            json!({
                "expression": expression(&schema, rule),
                "message": rule.full_message(),
            })
        })
        .collect();
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": constraints(resource.group, resource.versions, resource.plural),
        "matchConditions": conditions(resource.kind == SCHEDULED_MACHINE.kind),
        "validations": validations,
    });
    named("ValidatingAdmissionPolicy", resource.policy, &spec)
}

fn named(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// Objects of a kind that are created or updated.
fn constraints(group: &str, versions: &[&str], plural: &str) -> Value {
    json!({"resourceRules": [{
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }]})
}

/// Not an object that is being deleted, nor an update that leaves the spec unchanged; nor one that
/// only switches off what can be.
fn conditions(can_be_switched_off: bool) -> Vec<Value> {
    let mut conditions = vec![
        json!({
            "name": "not-being-deleted",
            "expression": "!has(object.metadata.deletionTimestamp)",
        }),
        json!({
            "name": "created-or-spec-changed",
            "expression": "oldObject == null || object.?spec != oldObject.?spec",
        }),
    ];
    if can_be_switched_off {
        conditions.push(json!({
            "name": "not-only-switched-off",
            "expression": NOT_ONLY_SWITCHED_OFF,
        }));
    }
    conditions
}

/// The binding of the policy of ScheduledMachine; see [`binding_of`].
pub fn binding(action: Action) -> Value {
    binding_of(SCHEDULED_MACHINE, action)
}

/// The binding of the policy of a kind, for all namespaces. Cannot fail.
///
/// All forms have the same name: applying one replaces another.
pub fn binding_of(resource: &Resource, action: Action) -> Value {
    let actions = match action {
        Action::Deny => json!(["Deny"]),
        Action::Audit => json!(["Audit"]),
        Action::AuditAndDeny => json!(["Deny", "Audit"]),
    };
    let spec = json!({"policyName": resource.policy, "validationActions": actions});
    named(BINDING, resource.policy_binding, &spec)
}

/// The expression of a rule in the policy. The API server checks the types of a policy's expressions
/// and knows no field whose schema has no type: what leads to such a field has no type, either.
fn expression(schema: &Value, rule: &Rule) -> String {
    let typed = typed_expression(schema, rule);
    let members = rule.node_path().replace('.', "/properties/");
    let pointer = format!("/properties/{}", members.replace("[]", "/items"));
    let node = schema.pointer(&pointer);
    if node.is_none_or(|node| node.get("type").is_some()) {
        return typed;
    }
    typed
        .replace("oldObject.?", "dyn(oldObject).?")
        .replace("object.?", "dyn(object).?")
}

/// The expression of a rule in the policy: the rule is true, or its inputs are unchanged.
///
/// It contains the expression of the rule unchanged, with `self` bound to the node.
fn typed_expression(schema: &Value, rule: &Rule) -> String {
    let Requirement {
        cel, inputs, layer, ..
    } = rule.requirement;
    if layer == Layer::Change {
        let cel = cel
            .replace("oldSelf", "oldObject")
            .replace("self", "object");
        return format!("oldObject == null || {cel}");
    }
    let Some((list, member)) = rule.node_path().split_once("[]") else {
        let node = lens(rule.node_path());
        let unchanged = unchanged(&node, inputs);
        return format!("{unchanged}\n|| object{node}.optMap(self, {cel}).orValue(true)");
    };
    let identity = identity(schema, list);
    let list = lens(list);
    let member = member.trim_start_matches('.');
    let before = |variable: &str, inputs: &[String]| {
        let equal = |path: &String| format!("was{path} == {variable}{path}");
        let same: Vec<_> = identity.iter().chain(inputs).map(equal).collect();
        format!(
            "oldObject != null && oldObject{list}.orValue([]).exists(was, {})",
            same.join(" && ")
        )
    };
    match (member, identity.is_empty()) {
        ("", true) => {
            let unchanged = unchanged(&list, &[]);
            format!("{unchanged}\n|| object{list}.orValue([]).all(self, {cel})")
        }
        ("", false) => {
            let inputs: Vec<_> = inputs.iter().map(|input| lens(input)).collect();
            format!(
                "object{list}.orValue([]).all(self,\n  {}\n  || {})",
                before("self", &inputs),
                cel
            )
        }
        (member, is_long) => {
            let member = lens(member);
            let asked = format!("item{member}.optMap(self, {cel}).orValue(true)");
            if is_long {
                let unchanged = unchanged(&list, &[]);
                return format!(
                    "{unchanged}\n|| object{list}.orValue([]).all(item, {asked})"
                );
            }
            format!(
                "object{list}.orValue([]).all(item,\n  {}\n  || {asked})",
                before("item", &[member]),
            )
        }
    }
}

/// The members that identify an item of a list before and after an update, as steps. Empty if
/// items have no identity, or if the list is too long to search for each item.
fn identity(schema: &Value, list: &str) -> Vec<String> {
    let pointer = format!("/properties/{}", list.replace('.', "/properties/"));
    let Some(list) = schema.pointer(&pointer) else {
        return Vec::new();
    };
    let is_compared = list["maxItems"]
        .as_u64()
        .is_some_and(|most| most <= MAX_COMPARED);
    let keys = list["x-kubernetes-list-map-keys"].as_array();
    keys.filter(|_| is_compared)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(lens)
        .collect()
}

/// Optional steps down a path: `.?spec.?clusterName`.
fn lens(path: &str) -> String {
    format!(".?{}", path.replace('.', ".?"))
}

/// A CEL expression: whether this is an update that leaves the inputs unchanged.
fn unchanged(lens: &str, inputs: &[&str]) -> String {
    let steps = match inputs {
        [] => vec![lens.to_owned()],
        inputs => inputs
            .iter()
            .map(|input| format!("{lens}.?{}", input.replace('.', ".?")))
            .collect(),
    };
    let same: Vec<_> = steps
        .iter()
        .map(|steps| format!("oldObject{steps} == object{steps}"))
        .collect();
    format!("oldObject != null && {}", same.join(" && "))
}

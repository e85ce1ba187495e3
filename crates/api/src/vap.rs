//! The ValidatingAdmissionPolicy and its bindings, rendered from the rules.
//!
//! The policy is the second layer: the CRD's rules run before it and name the field. It says the
//! same on its own, and in addition what a CRD cannot see. It looks at an untyped object, so that
//! every step down is an optional one: a field that is not there breaks no rule.

pub mod params;

use serde_json::{Value, json};

use crate::name;
use crate::rules::{Layer, RULES, Rule};

/// The members that make an entry of a list of taints the same entry before and after an update.
const TAINT_IDENTITY: [&str; 2] = ["key", "effect"];

/// What a binding does with an object that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is refused.
    Deny,
    /// It is admitted, and the audit log tells.
    Audit,
    /// It is refused, and the audit log tells.
    AuditAndDeny,
}

/// The policy. Cannot fail.
///
/// An object that is being deleted is not asked about, so that its finalizers can go; nor is an
/// update that leaves the spec alone, so that labels can be edited on an object that was stored
/// before the rules were in force.
pub fn policy() -> Value {
    let validations: Vec<Value> = RULES
        .iter()
        .map(|rule| json!({"expression": expression(rule), "message": rule.full_message()}))
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name::POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [name::GROUP],
                    "apiVersions": [name::VERSION],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [name::PLURAL],
                }],
            },
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
            "validations": validations,
        },
    })
}

/// The binding of the policy to all namespaces. Cannot fail.
///
/// All forms have the same name: applying one replaces the other.
pub fn binding(action: Action) -> Value {
    let actions = match action {
        Action::Deny => json!(["Deny"]),
        Action::Audit => json!(["Audit"]),
        Action::AuditAndDeny => json!(["Deny", "Audit"]),
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name::POLICY_BINDING},
        "spec": {
            "policyName": name::POLICY,
            "validationActions": actions,
        },
    })
}

/// A rule as the policy asks it: it holds, or its inputs are what they were.
///
/// The expression of the rule itself stands there unchanged, with `self` bound to the node.
fn expression(rule: &Rule) -> String {
    if rule.layer == Layer::Change {
        let cel = rule
            .cel
            .replace("oldSelf", "oldObject")
            .replace("self", "object");
        return format!("oldObject == null || {cel}");
    }
    match rule.path.split_once("[]") {
        None => {
            let unchanged = unchanged(&lens(rule.path), rule.inputs);
            format!(
                "{unchanged}\n|| object{}.optMap(self, {}).orValue(true)",
                lens(rule.path),
                rule.cel
            )
        }
        Some((list, "")) => {
            let list = lens(list);
            let unchanged = unchanged(&list, rule.inputs);
            format!(
                "{unchanged}\n|| object{list}.orValue([]).all(self, {})",
                rule.cel
            )
        }
        Some((list, member)) => {
            let (list, member) = (lens(list), lens(member.trim_start_matches('.')));
            let same = TAINT_IDENTITY.map(|key| format!("was.?{key} == item.?{key}"));
            let same = same.join(" && ");
            format!(
                "object{list}.orValue([]).all(item,\n  oldObject != null && \
                 oldObject{list}.orValue([]).exists(was, {same} && was{member} == item{member})\n  \
                 || item{member}.optMap(self, {}).orValue(true))",
                rule.cel
            )
        }
    }
}

/// Optional steps down a path: `.?spec.?clusterName`.
fn lens(path: &str) -> String {
    format!(".?{}", path.replace('.', ".?"))
}

/// Whether this is an update that leaves the inputs alone.
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

//! The policies about who may name a class, and where machines are made from classes only.

use serde_json::{Value, json};

use crate::name;
use crate::resource::{Resource, SCHEDULED_MACHINE, SCHEDULED_MACHINE_SET};

/// The name of the policy about who may name a class.
pub const USE: &str = "scheduledmachine-class-use";
/// The name of the policy about who may name the class of a set: its machines are created by the
/// operator, whom the other policy asks about.
pub const USE_BY_SET: &str = "scheduledmachineset-class-use";
/// The name of the policy of namespaces with the label [`name::CLASS_ONLY_LABEL`].
pub const ONLY: &str = "scheduledmachine-class-only";

/// All policies, each followed by its binding. Cannot fail.
pub fn policies() -> Vec<Value> {
    let mut all = vec![policy(USE, &use_spec()), binding(USE)];
    all.extend([policy(USE_BY_SET, &use_by_set_spec()), binding(USE_BY_SET)]);
    all.extend(only());
    all
}

/// The policy that asks nothing about its user, with its binding. Cannot fail.
pub fn only() -> [Value; 2] {
    let mut binding = binding(ONLY);
    binding["spec"]["matchResources"] = json!({
        "namespaceSelector": {"matchLabels": {name::CLASS_ONLY_LABEL: "true"}},
    });
    [policy(ONLY, &only_spec()), binding]
}

/// The `spec` of the policy about who may name a class. Cannot fail.
pub fn use_spec() -> Value {
    spec(
        SCHEDULED_MACHINE,
        "!has(object.spec.classRef) || oldObject != null && has(oldObject.spec.classRef) && \
         oldObject.spec.classRef == object.spec.classRef || \
         authorizer.group('5spot.finos.org').resource('scheduledmachineclasses')\
         .name(object.spec.classRef.name).check('use').allowed()",
        "spec.classRef.name: you may not use this class; its name and the verb use must be in a \
         role of yours, such as 5spot-class-user",
    )
}

/// The `spec` of the policy about who may name the class of a set. Cannot fail.
pub fn use_by_set_spec() -> Value {
    spec(
        SCHEDULED_MACHINE_SET,
        "oldObject != null && oldObject.spec.template.spec.classRef == \
         object.spec.template.spec.classRef || \
         authorizer.group('5spot.finos.org').resource('scheduledmachineclasses')\
         .name(object.spec.template.spec.classRef.name).check('use').allowed()",
        "spec.template.spec.classRef.name: you may not use this class; its name and the verb use \
         must be in a role of yours, such as 5spot-class-user",
    )
}

fn only_spec() -> Value {
    spec(
        SCHEDULED_MACHINE,
        // A machine that has its own objects can still be switched off, killed and released.
        "has(object.spec.classRef) || oldObject != null && \
         object.spec.?bootstrapSpec == oldObject.spec.?bootstrapSpec && \
         object.spec.?infrastructureSpec == oldObject.spec.?infrastructureSpec",
        "spec.classRef: in this namespace machines are made from classes only: name one in place \
         of bootstrapSpec and infrastructureSpec",
    )
}

/// What a policy requires of objects of a kind that are created or whose spec changes.
fn spec(resource: &Resource, expression: &str, message: &str) -> Value {
    json!({
        "failurePolicy": "Fail",
        "matchConstraints":
            super::constraints(name::GROUP, resource.versions, resource.plural),
        "matchConditions": super::conditions(false),
        "validations": [{
            "expression": expression,
            "message": message,
            "reason": "Forbidden",
        }],
    })
}

fn policy(name: &str, spec: &Value) -> Value {
    super::named("ValidatingAdmissionPolicy", name, spec)
}

fn binding(name: &str) -> Value {
    super::named(super::BINDING, name, &binding_spec(name))
}

/// The `spec` of a binding for all namespaces. Cannot fail.
pub fn binding_spec(name: &str) -> Value {
    json!({"policyName": name, "validationActions": ["Deny"]})
}

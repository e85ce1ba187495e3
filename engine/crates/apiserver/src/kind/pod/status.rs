//! The status of a pod: the fields that an update keeps, and its validation
//! (`ValidatePodStatusUpdate`).

use serde_json::{Value, json};

use crate::kind::field::{Errors, Field};
use crate::kind::pod_spec::default::Fields;
use crate::kind::{items, rule};
use crate::meta;

/// Condition types of Kubernetes, which have no prefix.
const SYSTEM: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

/// Restores the fields that a kubelet may omit from the status that it writes.
pub(super) fn prepare(object: &mut Value, old: &Value) {
    let previous = &old["status"];
    let status = meta::field(meta::fields(object), "status");
    for name in ["qosClass", "observedGeneration"] {
        let missing = match status.get(name) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(it) => *it == 0,
        };
        if missing && !previous[name].is_null() {
            status.insert(name.to_owned(), previous[name].clone());
        }
    }
    let mut generations: Vec<&Value> =
        items(previous, "conditions").map(|(_, it)| it).collect();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let Some(condition) = condition.as_object_mut() else {
            continue;
        };
        let kind = condition.get("type").cloned();
        let before = generations
            .iter()
            .position(|it| Some(&it["type"]) == kind.as_ref());
        let before =
            before.map(|it| generations.remove(it)["observedGeneration"].clone());
        restore_generation(condition, before);
    }
}

fn restore_generation(condition: &mut Fields, before: Option<Value>) {
    const FIELD: &str = "observedGeneration";
    let value = condition.get(FIELD).and_then(Value::as_i64).unwrap_or(0);
    if let Some(before) = before.filter(|it| value == 0 && !it.is_null()) {
        condition.insert(FIELD.to_owned(), before);
    }
}

/// The validation errors of a new status.
pub(super) fn errors(object: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let (status, previous) = (Field::of(object, "status"), Field::of(old, "status"));
    conditions(&status, &mut errors);
    let node = status.child("nominatedNodeName");
    if node.value != previous.child("nominatedNodeName").value && !node.text().is_empty()
    {
        rule::dns_subdomain(&node, &mut errors);
        if !old["spec"]["nodeName"].is_null() {
            let why = "may not be set on pods that are already bound to a node";
            errors.push(node.forbidden(why));
        }
    }
    let generation = status.child("observedGeneration");
    if generation.count() < 0 {
        errors.push(generation.invalid("must be a non-negative integer"));
    }
    rule::immutable(
        &status.child("qosClass"),
        &previous.child("qosClass"),
        &mut errors,
    );
    for (list, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        let (new, before) = (status.child(list), previous.child(list));
        transitions(&new, &before, (&old["spec"], containers), &mut errors);
    }
    addresses(&status, &previous, "podIPs", &mut errors);
    let host = status.child("hostIPs");
    if let Some(first) = host.items().next().map(|it| it.child("ip"))
        && first.text() != status.child("hostIP").text()
    {
        errors.push(first.invalid_text("must be equal to `hostIP`"));
    }
    addresses(&status, &previous, "hostIPs", &mut errors);
    errors
}

fn conditions(status: &Field<'_>, errors: &mut Errors) {
    for condition in status.child("conditions").items() {
        let generation = condition.child("observedGeneration");
        if generation.count() < 0 {
            errors.push(generation.invalid("must be a non-negative integer"));
        }
        let kind = condition.child("type").at(condition.path_of("Type"));
        if !SYSTEM.contains(&kind.text()) {
            rule::qualified_name(&kind, errors);
        }
    }
}

/// A terminated container may only leave that state if it can be restarted.
fn transitions(
    new: &Field<'_>,
    old: &Field<'_>,
    (spec, containers): (&Value, &str),
    errors: &mut Errors,
) {
    for (index, before) in old.items().enumerate() {
        let ended = before.child("state.terminated");
        if !ended.is_set() {
            continue;
        }
        let name = before.child("name").text();
        let now = new.items().find(|it| {
            it.child("name").text() == name && !it.child("state.terminated").is_set()
        });
        let container = items(spec, containers).find(|(_, it)| it["name"] == name);
        let may_restart = container
            .is_some_and(|(_, it)| restarts(it, spec, ended.child("exitCode").count()));
        if now.is_some() && !may_restart {
            let path = format!("{}[{index}].state", new.path);
            let why = "may not be transitioned to non-terminated state";
            errors.push(new.at(path).forbidden(why));
        }
    }
}

/// Whether a container is restarted after it terminated with this exit code
/// (`ContainerShouldRestart`).
fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    for (_, rule) in items(container, "restartPolicyRules") {
        let codes = &rule["exitCodes"];
        let listed = codes["values"].as_array();
        let is_listed = listed.is_some_and(|all| all.contains(&json!(code)));
        let applies = match codes["operator"].as_str() {
            Some("In") => is_listed,
            Some("NotIn") => !is_listed,
            _ => false,
        };
        if applies {
            return matches!(
                rule["action"].as_str(),
                Some("Restart" | "RestartAllContainers")
            );
        }
    }
    let policy = &container["restartPolicy"];
    let policy = if policy.is_null() {
        &spec["restartPolicy"]
    } else {
        policy
    };
    match policy.as_str() {
        Some("Never") => false,
        Some("OnFailure") => code != 0,
        _ => true,
    }
}

/// Validates addresses: at most one of each family. Unchanged ones are not validated again.
fn addresses(status: &Field<'_>, old: &Field<'_>, name: &str, errors: &mut Errors) {
    let list = status.child(name);
    let before: Vec<&str> = old
        .child(name)
        .items()
        .map(|it| it.child("ip").text())
        .collect();
    let mut found = Vec::new();
    let mut broken = None;
    for address in list.items() {
        let value = address.child("ip").at(address.path.clone());
        let mut wrong = Errors::new();
        match rule::address(&value, &mut wrong) {
            Some(address) => found.push(address),
            None => broken = broken.or(Some(value.text())),
        }
        if !before.contains(&value.text()) {
            errors.extend(wrong);
        }
    }
    if list.len() < 2 {
        return;
    }
    if let Some(text) = broken {
        let why = format!(
            "failed to check for dual stack with error:invalid ip {text} in addresses"
        );
        errors.push(kubemu_admission::FieldError::internal(
            list.path.clone(),
            why,
        ));
    }
    let families = [true, false].map(|four| found.iter().any(|it| it.is_ipv4() == four));
    if families != [true, true] || broken.is_some() || list.len() > 2 {
        let why = "may specify no more than one IP for each IP family";
        let shown = list.items().map(|it| json!({"IP": it.child("ip").text()}));
        let shown = Value::Array(shown.collect()).to_string();
        errors.push(crate::kind::go_struct::invalid(&list, &shown, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminated_container_that_cannot_restart_stays_terminated() {
        let pod = |policy: &str, state: Value| {
            json!({"spec": {"restartPolicy": policy, "containers": [{"name": "c"}]},
                "status": {"containerStatuses": [{"name": "c", "state": state}]}})
        };
        let ended = json!({"terminated": {"exitCode": 1}});
        let paths = |policy: &str| {
            let (new, old) = (pod(policy, json!({})), pod(policy, ended.clone()));
            let found = errors(&new, &old).into_iter().map(|it| it.path);
            found.collect::<Vec<_>>()
        };
        assert_eq!(paths("Never"), ["status.containerStatuses[0].state"]);
        assert_eq!(paths("OnFailure"), Vec::<String>::new());
        assert_eq!(paths("Always"), Vec::<String>::new());
    }

    #[test]
    fn fields_that_a_kubelet_omits_are_kept() {
        let old = json!({"status": {"qosClass": "Burstable", "observedGeneration": 3,
            "conditions": [{"type": "A", "observedGeneration": 2}]}});
        let mut new = json!({"status": {"conditions": [{"type": "A"}, {"type": "B"}]}});
        prepare(&mut new, &old);
        let expected = json!({"status": {"qosClass": "Burstable", "observedGeneration": 3,
            "conditions": [{"type": "A", "observedGeneration": 2}, {"type": "B"}]}});
        assert_eq!(new, expected);
    }
}

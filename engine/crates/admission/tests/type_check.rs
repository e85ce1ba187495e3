//! The exact content of `status.typeChecking` of a policy in Kubernetes 1.36.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::Crd;
use kubemu_admission::policy::Policy;
use serde_json::{Value, json};

fn warnings(validations: Value, rule: Value) -> Vec<(String, String)> {
    let path = format!(
        "{}/tests/sample/definition.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let definition: Value = serde_saphyr::from_str(&text).unwrap();
    let version = KubeVersion::default();
    let definition = Crd::compile(&definition, version).unwrap();
    let policy = json!({
        "metadata": {"name": "misfit"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": "schedule", "expression": "object.spec.schedule"}],
            "validations": validations,
        },
    });
    assert!(Policy::compile(&policy, version).is_ok());
    let warnings = Policy::type_check(&policy, &[&definition], &[], version);
    let shown = warnings.iter().map(|it| (it.field(), it.warning.clone()));
    shown.collect()
}

fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": [version], "resources": [resource],
        "operations": ["CREATE"]})
}

fn ours() -> Value {
    rule("5spot.finos.org", "v1alpha1", "scheduledmachines")
}

#[test]
fn an_expression_that_does_not_fit_is_reported_with_the_kind_and_the_field() {
    let validations = json!([
        {"expression": "object.metadata.labels['team'] == object.spec.clusterName && \
                        object.metadata.ownerReferences[0].controller"},
        {"expression": "object.spec.replicas > 1",
            "messageExpression": "'at ' + object.metadata.creationTimestamp"},
        // Variables that are objects are dynamic.
        {"expression": "variables.schedule.crn == 'x'"},
        {"expression": "object.metadata.managedFields[0].fieldsV1.x == 'a'"},
    ]);
    let warning_of = |field: &str, warning: &str| {
        let kind = "5spot.finos.org/v1alpha1, Kind=ScheduledMachine";
        (field.to_owned(), format!("{kind}: {warning}\n"))
    };
    let expected = [
        warning_of(
            "spec.validations[1].expression",
            "ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > 1\n \
             | ...........^",
        ),
        warning_of(
            "spec.validations[1].messageExpression",
            "ERROR: <input>:1:7: found no matching overload for '_+_' applied to '(string, \
             timestamp)'\n | 'at ' + object.metadata.creationTimestamp\n | ......^",
        ),
        warning_of(
            "spec.validations[3].expression",
            "ERROR: <input>:1:42: undefined field 'x'\n | \
             object.metadata.managedFields[0].fieldsV1.x == 'a'\n | \
             .........................................^",
        ),
    ];
    assert_eq!(warnings(validations, ours()), expected);
}

#[test]
fn wildcards_and_other_kinds_are_not_checked() {
    let misfit = json!([{"expression": "object.spec.replicas > 1"}]);
    let is_silent = |rule: Value| warnings(misfit.clone(), rule).is_empty();
    assert!(!is_silent(ours()));
    assert!(is_silent(rule("*", "v1alpha1", "scheduledmachines")));
    assert!(is_silent(rule("5spot.finos.org", "*", "scheduledmachines")));
    assert!(is_silent(rule("5spot.finos.org", "v1alpha1", "*")));
    assert!(is_silent(rule(
        "5spot.finos.org",
        "v1alpha1",
        "scheduledmachines/status"
    )));
    assert!(is_silent(rule(
        "example.com",
        "v1alpha1",
        "scheduledmachines"
    )));
}

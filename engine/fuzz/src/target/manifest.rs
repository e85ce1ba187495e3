//! CustomResourceDefinitions and policies.

use std::sync::Arc;

use kubemu_admission::crd::Crd;
use kubemu_admission::policy::{Binding, GroupVersionKind, Policies, Policy, Request};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};

use super::sample;

pub(super) const DEFINITION_WORDS: &[&str] = &[
    "\"type\":\"object\"",
    "\"type\":\"array\"",
    "\"type\":\"string\"",
    "\"properties\":{",
    "\"items\":{",
    "\"additionalProperties\":{",
    "\"required\":[\"a\"]",
    "\"pattern\":\"[\"",
    "\"format\":\"date-time\"",
    "\"maxItems\":3",
    "\"maxLength\":-1",
    "\"minimum\":1e400",
    "\"enum\":[1]",
    "\"default\":{}",
    "\"default\":[null]",
    "\"nullable\":true",
    "\"x-kubernetes-int-or-string\":true",
    "\"x-kubernetes-preserve-unknown-fields\":true",
    "\"x-kubernetes-embedded-resource\":true",
    "\"x-kubernetes-list-type\":\"map\"",
    "\"x-kubernetes-list-map-keys\":[\"a\"]",
    "\"x-kubernetes-validations\":[{\"rule\":\"",
    "\"allOf\":[{",
    "\"not\":{",
    "\"messageExpression\":\"",
    "\"fieldPath\":\".a[0]\"",
    "\"optionalOldSelf\":true",
    "\"oldSelf\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "true",
    "\"",
    "-1",
    "1.5",
    "self.all(i, i == oldSelf)",
];

pub(super) const POLICY_WORDS: &[&str] = &[
    "\n",
    "  ",
    "- ",
    ": ",
    "expression: ",
    "message: ",
    "messageExpression: ",
    "validations:",
    "variables:",
    "matchConditions:",
    "matchConstraints:",
    "paramKind:",
    "apiVersion: v1",
    "kind: ConfigMap",
    "resourceRules:",
    "operations: ['*']",
    "apiGroups: ['*']",
    "resources: ['*/*']",
    "namespaceSelector: {matchLabels: {a: b}}",
    "failurePolicy: Ignore",
    "auditAnnotations:",
    "key: a",
    "valueExpression: 'a'",
    "reason: Forbidden",
    "object.spec",
    "oldObject",
    "params",
    "request.userInfo",
    "namespaceObject",
    "authorizer",
    "variables.a",
    "|-",
    ">-",
    "&a",
    "*a",
    "!!str",
    "---",
    "{",
    "}",
    "[",
    "]",
    "'",
    "\"",
    "null",
    "~",
    "#",
];

/// A real CustomResourceDefinition, and a small one with many features.
pub(super) fn definitions() -> Vec<Vec<u8>> {
    let small = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList",
                "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "a": {"type": "string", "maxLength": 9, "pattern": "^a+$",
                            "default": "a"},
                        "b": {"type": "array", "maxItems": 9,
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["k"],
                            "items": {"type": "object", "required": ["k"], "properties": {
                                "k": {"type": "string", "maxLength": 9},
                                "n": {"x-kubernetes-int-or-string": true}}}},
                        "c": {"type": "object", "maxProperties": 9,
                            "additionalProperties": {"type": "integer", "minimum": 1}}},
                    "x-kubernetes-validations": [{"rule": "self.a != 'b' || has(self.c)",
                        "message": "no"}]}}}}}],
        },
    });
    [small, sample::definition()]
        .map(|it| it.to_string().into_bytes())
        .into()
}

/// Real policies and a small one, as YAML.
pub(super) fn policies() -> Vec<Vec<u8>> {
    let small = "metadata: {name: small}\nspec:\n  matchConstraints:\n    resourceRules:\n    \
                 - {apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: \
                 ['*']}\n  variables:\n  - {name: a, expression: object.spec}\n  validations:\n  \
                 - expression: has(variables.a.schedule)\n    messageExpression: \"'no'\"\n  \
                 auditAnnotations:\n  - {key: a, valueExpression: request.operation}\n";
    let all = std::iter::once(small).chain(sample::policies());
    all.map(|it| it.as_bytes().to_vec()).collect()
}

fn first_error(errors: &[FieldError]) -> String {
    errors.first().map(ToString::to_string).unwrap_or_default()
}

/// An object that was pruned and defaulted is not changed by pruning and defaulting it again.
pub(super) fn define(bytes: &[u8]) -> String {
    let Ok(manifest) = serde_json::from_slice::<Value>(bytes) else {
        return "not JSON".to_owned();
    };
    let definition = match Crd::compile(&manifest, KubeVersion::default()) {
        Ok(definition) => definition,
        Err(errors) => return first_error(&errors),
    };
    let mut text = String::new();
    for version in definition.versions() {
        let mut object = json!({
            "apiVersion": format!("{}/{}", definition.group(), version.name()),
            "kind": definition.kind(),
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"a": "b", "b": [{"k": "1", "n": 2}, {"k": "1"}], "c": {"d": 0}, "e": 1},
        });
        version.decode(&mut object);
        let mut again = object.clone();
        let unknown = version.decode(&mut again);
        assert_eq!(
            (unknown, &again),
            (Vec::new(), &object),
            "a second decoding changes the object"
        );
        text.push_str(&first_error(&version.create(&object).errors));
        text.push_str(&first_error(&version.update(&object, &object).errors));
    }
    text
}

/// A policy that compiles gives the same decision each time.
pub(super) fn decide(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let Ok(manifest) = serde_saphyr::from_str::<Value>(&text) else {
        return "not YAML".to_owned();
    };
    let policy = match Policy::compile(&manifest, KubeVersion::default()) {
        Ok(policy) => policy,
        Err(errors) => return first_error(&errors),
    };
    let binding = Binding::compile(&json!({
        "metadata": {"name": "everywhere"},
        "spec": {"policyName": policy.name(), "validationActions": ["Deny", "Audit"]},
    }));
    let Ok(binding) = binding else {
        return "the binding is invalid".to_owned();
    };
    let policies = Policies::new([Arc::new(policy)], [Arc::new(binding)]);
    let object = sample::invalid_object();
    let kind = GroupVersionKind {
        group: "5spot.finos.org",
        version: "v1alpha1",
        kind: "ScheduledMachine",
    };
    let request = Request::create(kind, "scheduledmachines", &object);
    let (first, second) = (
        policies.decide(&request, &()),
        policies.decide(&request, &()),
    );
    assert_eq!(first, second, "two decisions differ");
    let denied = first.denied().map(|it| it.message.clone());
    denied.unwrap_or_else(|| format!("{:?}", first.audit_annotations))
}

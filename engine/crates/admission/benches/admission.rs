//! Admission time: one object through all checks, and compilation of all manifests.

#![allow(missing_docs, reason = "criterion's macros generate public functions")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use kubemu_admission::KubeVersion;
use kubemu_admission::crd::Crd;
use kubemu_admission::policy::{
    Binding, GroupVersionKind, Policies, Policy, Request, User,
};
use serde_json::{Value, json};

/// A definition with rules of all usual kinds.
fn definition() -> Value {
    let text = json!({"type": "string", "maxLength": 64, "x-kubernetes-validations": [
        {"rule": "self.matches('^[0-9]+[smh]$')", "message": "must be a duration"}]});
    let days = json!({"type": "array", "maxItems": 32, "default": [], "items": {
        "type": "string", "maxLength": 64, "x-kubernetes-validations": [
            {"rule": "self.matches('^(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?$')",
                "message": "must be days"}]}});
    let reference = json!({"type": "object", "required": ["apiVersion", "kind"],
    "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "apiVersion": {"type": "string", "maxLength": 128, "x-kubernetes-validations": [
            {"rule": "self.contains('/')", "message": "must have a group"},
            {"rule": "self.startsWith('example.com/') || self.startsWith('example.org/')",
                "message": "must be of a known group"}]},
        "kind": {"type": "string", "maxLength": 63},
    }});
    let taints = json!({"type": "array", "maxItems": 64, "default": [],
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key", "effect"],
        "items": {"type": "object", "required": ["key", "effect"], "properties": {
            "key": {"type": "string", "maxLength": 317},
            "value": {"type": "string", "maxLength": 63},
            "effect": {"type": "string", "enum": ["NoSchedule", "NoExecute"]}}}});
    let properties = json!({
        "name": {"type": "string", "maxLength": 63, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},
        "grace": text, "drain": text, "days": days,
        "cron": {"type": "string", "maxLength": 128},
        "bootstrap": reference, "machine": reference,
        "priority": {"type": "integer", "minimum": 0, "maximum": 255, "default": 50},
        "taints": taints,
    });
    let spec = json!({"type": "object", "required": ["name", "bootstrap", "machine"],
        "properties": properties,
        "x-kubernetes-validations": [
            {"rule": "!has(self.cron) || size(self.days) == 0",
                "message": "cron excludes days"},
            {"rule": "has(self.cron) || size(self.days) > 0",
                "message": "days must be set"}]});
    let root =
        json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": root}}],
        },
    })
}

/// The same rules as a policy.
fn policy() -> Value {
    json!({
        "metadata": {"name": "widgets"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"],
                "apiVersions": ["v1"], "resources": ["widgets"],
                "operations": ["CREATE", "UPDATE"]}]},
            "matchConditions": [{"name": "not-deleted",
                "expression": "!has(object.metadata.deletionTimestamp)"}],
            "variables": [{"name": "spec", "expression": "object.spec"}],
            "validations": [
                {"expression": "variables.spec.name != ''", "message": "name must be set"},
                {"expression": "variables.spec.grace.matches('^[0-9]+[smh]$')",
                    "message": "grace must be a duration"},
                {"expression": "variables.spec.drain.matches('^[0-9]+[smh]$')",
                    "message": "drain must be a duration"},
                {"expression": "!has(variables.spec.cron) || size(variables.spec.days) == 0",
                    "message": "cron excludes days"},
                {"expression": "variables.spec.days.all(d, d.matches('^[a-z]{3}(-[a-z]{3})?$'))",
                    "message": "days must be days"},
                {"expression": "variables.spec.bootstrap.apiVersion.contains('/')",
                    "message": "bootstrap must have a group"},
                {"expression": "!('evil.io/x' in object.metadata.?labels.orValue({}))",
                    "message": "evil"},
            ],
        },
    })
}

fn object() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}},
        "spec": {
            "name": "production", "grace": "5m", "drain": "10m", "days": ["mon-fri", "sat"],
            "bootstrap": {"apiVersion": "example.com/v1", "kind": "Config",
                "spec": {"files": [{"path": "/etc/a", "content": "b"}]}},
            "machine": {"apiVersion": "example.org/v1", "kind": "Remote",
                "spec": {"address": "10.0.0.1", "port": 22}},
            "taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "l", "effect": "NoExecute"}],
        },
    })
}

fn compile() -> (Crd, Policies) {
    let version = KubeVersion::default();
    let crd = Crd::compile(&definition(), version).expect("it is valid");
    let policy = Policy::compile(&policy(), version).expect("it is valid");
    let binding = json!({"metadata": {"name": "everywhere"},
        "spec": {"policyName": "widgets", "validationActions": ["Deny"]}});
    let binding = Binding::compile(&binding).expect("it is valid");
    (crd, Policies::new([Arc::new(policy)], [Arc::new(binding)]))
}

const WIDGET: GroupVersionKind<'static> = GroupVersionKind {
    group: "example.com",
    version: "v1",
    kind: "Widget",
};

fn admission(bench: &mut Criterion) {
    let (crd, policies) = compile();
    let resource = crd.served("v1").expect("it is served");
    let (object, user) = (object(), User::default());
    bench.bench_function("admission/one", |bench| {
        bench.iter(|| {
            let mut object = black_box(&object).clone();
            let unknown = resource.decode(&mut object);
            let result = resource.create(&object);
            let mut request = Request::create(WIDGET, "widgets", &object);
            request.namespace = "b";
            request.name = "a";
            request.user = &user;
            let decision = policies.decide(&request, &());
            assert!(unknown.is_empty() && result.errors.is_empty());
            assert!(decision.denied().is_none());
        });
    });
    bench.bench_function("admission/compile", |bench| bench.iter(compile));
}

criterion_group!(benches, admission);
criterion_main!(benches);

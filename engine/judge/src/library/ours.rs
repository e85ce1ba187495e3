//! The answers of our engine to a question, in the form of the oracle's answers.

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kubemu_admission::crd::Crd;
use kubemu_admission::policy::{
    Binding, Decision, GroupVersionKind, MutatingPolicies, MutatingPolicy, PatchError,
    Patcher, Policies, Policy, Reinvocation, Request, Resolver,
};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Map, Value, json};

use super::resolver::{PolicyRequest, TestResolver};

/// The longest time for a question. The engine must bound all its work.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Returns the answer to a question.
///
/// # Errors
/// The engine takes too long, which is a bug, or panics.
pub(super) fn answer_in_time(question: &Value) -> Result<Value, Box<dyn Error>> {
    let question = question.clone();
    let (given, taken) = mpsc::channel();
    thread::spawn(move || given.send(answer(&question)));
    taken.recv_timeout(TIME_LIMIT).map_err(|why| match why {
        RecvTimeoutError::Timeout => {
            format!("the engine has not answered within {TIME_LIMIT:?}").into()
        }
        RecvTimeoutError::Disconnected => "the engine panicked".into(),
    })
}

fn answer(question: &Value) -> Value {
    let version = KubeVersion::default();
    let mut answer = Map::new();
    let mut put = |name: &str, value: Value| {
        answer.insert(name.to_owned(), value);
    };
    let given = &question["definition"];
    let registered = given.is_object().then(|| {
        let crd = match &question["oldDefinition"] {
            Value::Null => Crd::compile(given, version),
            old => Crd::replace(given, old, version),
        };
        put("definition", json!({"errors": texts(crd.as_ref().err())}));
        if let Ok(crd) = &crd {
            put("costs", costs(crd));
            let writes = list(&question["writes"]).iter();
            put("writes", writes.map(|it| write(crd, it)).collect());
        }
        crd
    });
    let (mut policies, mut bindings) = (Vec::new(), Vec::new());
    let mut said = Vec::new();
    for policy in list(&question["policies"]) {
        let compiled = Policy::compile(policy, version);
        said.push(json!({"errors": texts(compiled.as_ref().err())}));
        // A stored policy is compiled again, in the newer dialect.
        let stored = compiled.and_then(|_| Policy::stored(policy, version));
        policies.extend(stored.ok().map(Arc::new));
    }
    put("policies", Value::Array(said));
    for policy in list(&question["storedPolicies"]) {
        match Policy::stored(policy, version) {
            Ok(policy) => policies.push(Arc::new(policy)),
            // A server that has stored it does not start.
            Err(errors) => put("refusesToStart", json!(texts(Some(&errors)))),
        }
    }
    if let (Some(Ok(crd)), Value::Bool(true)) = (&registered, &question["typeCheck"]) {
        put("typeChecks", type_checks(question, crd));
    }
    let mut said = Vec::new();
    for binding in list(&question["bindings"]) {
        let compiled = Binding::compile(binding);
        said.push(json!({"errors": texts(compiled.as_ref().err())}));
        bindings.extend(compiled.ok().map(Arc::new));
    }
    put("bindings", Value::Array(said));
    let policies = Policies::new(policies, bindings);
    let resolver = TestResolver::new(question);
    let decisions = list(&question["requests"]).iter().map(|request| {
        let policy_request = PolicyRequest::new(request, question);
        let equivalents = policy_request.equivalents();
        decision(&policies.decide(&policy_request.request(&equivalents), &resolver))
    });
    put("decisions", decisions.collect());
    let mutations = list(&question["mutations"]).iter();
    put("mutated", mutations.map(mutated).collect());
    Value::Object(answer)
}

/// Whether a mutation compiles, and why its expression cannot be evaluated.
fn mutated(mutation: &Value) -> Value {
    let field = match mutation["patchType"].as_str() {
        Some("JSONPatch") => "jsonPatch",
        _ => "applyConfiguration",
    };
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
            "operations": ["CREATE"], "resources": ["*"]}]},
        "mutations": [{"patchType": mutation["patchType"],
            field: {"expression": mutation["expression"]}}],
    }});
    let Ok(policy) = MutatingPolicy::compile(&policy, KubeVersion::default()) else {
        return json!({"compiles": false});
    };
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    let binding = Binding::compile_mutating(&binding).ok().map(Arc::new);
    let policies = MutatingPolicies::new([Arc::new(policy)], binding);
    let object = &mutation["object"];
    let text = |value: &'static str| object[value].as_str().unwrap_or_default();
    let (group, version) = match text("apiVersion").split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", text("apiVersion")),
    };
    let kind = GroupVersionKind {
        group,
        version,
        kind: text("kind"),
    };
    let resource = format!("{}s", kind.kind.to_lowercase());
    let mut request = Request::create(kind, &resource, object);
    request.namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let result = policies.mutate(&request, &Unpatched, &mut Reinvocation::default());
    match result {
        Ok(_) => json!({"compiles": true}),
        Err(denial) => json!({"compiles": true, "error": denial.message}),
    }
}

/// A host that leaves every object as it is.
struct Unpatched;

impl Resolver for Unpatched {}

impl Patcher for Unpatched {
    fn applied(
        &self,
        object: &Value,
        _: GroupVersionKind<'_>,
        _: &Value,
    ) -> Result<Value, PatchError> {
        Ok(object.clone())
    }

    fn patched(
        &self,
        object: &Value,
        _: GroupVersionKind<'_>,
        _: &Value,
    ) -> Result<Value, PatchError> {
        Ok(object.clone())
    }

    fn converted_to_request_kind(
        &self,
        object: Value,
        _: GroupVersionKind<'_>,
        _: GroupVersionKind<'_>,
    ) -> Result<Value, PatchError> {
        Ok(object)
    }
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The type-checking warnings of each policy that could be registered.
fn type_checks(question: &Value, crd: &Crd) -> Value {
    let version = KubeVersion::default();
    let policies = list(&question["policies"]).iter();
    let registered = policies.filter(|it| Policy::compile(it, version).is_ok());
    let warnings = registered.map(|policy| -> Value {
        let warnings = Policy::type_check(policy, &[crd], &[], version);
        let shown = warnings
            .iter()
            .map(|it| json!({"field": it.field(), "warning": it.warning}));
        shown.collect()
    });
    warnings.collect()
}

fn texts(errors: Option<&Vec<FieldError>>) -> Vec<String> {
    errors
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect()
}

/// The cost estimates of the first version, by path.
fn costs(crd: &Crd) -> Value {
    let costs = crd
        .versions()
        .first()
        .map(kubemu_admission::crd::CustomResource::rule_costs);
    costs
        .into_iter()
        .flatten()
        .map(|cost| json!({"path": cost.path, "once": cost.once, "total": cost.total()}))
        .collect()
}

fn write(crd: &Crd, write: &Value) -> Value {
    let mut object = write["object"].clone();
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let version = version.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(resource) = crd.versions().iter().find(|it| it.name() == version) else {
        return json!({"undecodable": "no such version"});
    };
    let unknown = resource.decode(&mut object);
    let old = &write["oldObject"];
    let result = match write["operation"].as_str() {
        Some("UPDATE") => resource.update(&object, old),
        Some("STATUS") => resource.update_status(&object, old),
        _ => resource.create(&object),
    };
    json!({"unknown": unknown, "object": object, "errors": texts(Some(&result.errors)),
        "warnings": result.warnings, "cost": result.cost})
}

fn decision(decision: &Decision) -> Value {
    let spent: Vec<_> = decision
        .evaluations
        .iter()
        .map(|it| json!({"policy": it.policy, "cost": it.cost}))
        .collect();
    let mut answer = json!({"denied": false, "warnings": decision.warnings,
        "auditAnnotations": decision.audit_annotations, "spent": spent});
    if let Some(denial) = decision.denied() {
        let causes: Vec<_> = denial
            .causes
            .iter()
            .map(|cause| cause.message.clone())
            .collect();
        answer["denied"] = json!(true);
        answer["code"] = json!(denial.code);
        answer["reason"] = json!(denial.reason);
        answer["message"] = json!(denial.message);
        answer["causes"] = json!(causes);
    }
    answer
}

//! Type-checks the expressions of policies against the registered definitions
//! (pkg/controller/validatingadmissionpolicystatus).

use kubemu_admission::crd::Crd;
use kubemu_admission::policy::Policy;
use serde_json::{Value, json};

use crate::apply::{self, Configuration, OnConflict, Writer};
use crate::decode;
use crate::meta;
use crate::openapi;
use crate::state::State;
use crate::store::Key;

/// Writes the type-check warnings into a policy's status, once for each of its generations.
pub(super) fn reconcile(state: &mut State, key: &Key) {
    let bucket = state.buckets.policies;
    let Some(policy) = state.get(bucket, key) else {
        return;
    };
    let generation = meta::generation(policy);
    if policy["status"]["observedGeneration"].as_i64() >= Some(generation) {
        return;
    }
    let policy = Value::clone(policy);
    let definitions: Vec<&Crd> = state.definitions.values().map(|it| &**it).collect();
    let all: Vec<_> = state.registry.all().cloned().collect();
    let known: Vec<_> = all
        .iter()
        .filter_map(|it| openapi::known_kind(it))
        .collect();
    let warnings = Policy::type_check(&policy, &definitions, &known, state.kube);
    let warnings = warnings
        .iter()
        .map(|it| json!({"fieldRef": it.field(), "warning": it.warning}));
    let warnings: Vec<Value> = warnings.collect();
    let mut status = json!({"observedGeneration": generation, "typeChecking": {}});
    if !warnings.is_empty() {
        status["typeChecking"]["expressionWarnings"] = warnings.into();
    }
    let Some(resource) = state.stored_resource(bucket).cloned() else {
        return;
    };
    let config = json!({"apiVersion": resource.api_version(), "kind": resource.kind,
        "metadata": {"name": &*key.name}, "status": status});
    let config = Configuration {
        object: &config,
        on_conflict: OnConflict::Force,
    };
    let writer = Writer {
        manager: "validatingadmissionpolicy-status",
        subresource: "status",
        now: state.clock.now(),
    };
    if let Ok(mut policy) = apply::applied(&resource, Some(&policy), &config, &writer) {
        decode::complete(&state.definitions, &resource, &mut policy);
        state.put(bucket, policy);
    }
}

//! The engine on a policy, a definition and an object that are shipped, compared with the `cel`
//! crate on those rules of the policy that it supports.
//!
//! Prints allocations first, then times. The `cel` crate gets patterns that are compiled once,
//! like the engine's: without them it spends nine tenths of its time compiling patterns.

#![allow(missing_docs, reason = "criterion's macros generate public functions")]

use std::alloc::System;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kubemu_admission::KubeVersion;
use kubemu_admission::crd::{Crd, CustomResource};
use kubemu_admission::policy::{
    Binding, GroupVersionKind, Policies, Policy, Request, User,
};
use regex::Regex;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const GROUP: &str = "5spot.finos.org";

/// The first document of a file: that of ScheduledMachines.
fn sample(path: &str) -> Value {
    let path = format!("{}/tests/sample/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).expect("it is in the repository");
    let mut documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).expect("it is YAML");
    documents.swap_remove(0)
}

/// The manifests to compile.
struct Manifests {
    definition: Value,
    policy: Value,
    binding: Value,
}

/// The compiled definition and policies that objects are checked with.
struct Engine {
    crd: Crd,
    policies: Policies,
    user: User,
}

impl Manifests {
    fn read() -> Self {
        Self {
            definition: sample("definition.yaml"),
            policy: sample("policy.yaml"),
            binding: sample("binding.yaml"),
        }
    }

    fn compile(&self) -> Engine {
        let version = KubeVersion::default();
        let policy = Policy::compile(&self.policy, version).expect("it is valid");
        let binding = Binding::compile(&self.binding).expect("it is valid");
        Engine {
            crd: Crd::compile(&self.definition, version).expect("it is valid"),
            policies: Policies::new([Arc::new(policy)], [Arc::new(binding)]),
            user: User::default(),
        }
    }
}

fn object() -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": "worker-1", "namespace": "machines", "labels": {"team": "a"}},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"],
                "timezone": "Europe/Amsterdam", "enabled": true},
            "clusterName": "production",
            "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig", "spec": {"version": "v1.30.0+k0s.0"}},
            "infrastructureSpec": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine", "spec": {"address": "10.0.0.1", "port": 22}},
            "machineTemplate": {"labels": {"role": "worker"}, "annotations": {}},
            "priority": 50, "gracefulShutdownTimeout": "5m", "nodeDrainTimeout": "10m",
            "killSwitch": false,
            "nodeTaints": [{"key": "example.com/spot", "effect": "NoSchedule"}],
        },
    })
}

impl Engine {
    /// The served version.
    fn resource(&self) -> &CustomResource {
        self.crd.served("v1alpha1").expect("it is served")
    }

    /// All steps of a write; returns whether it was accepted.
    fn admit(&self, resource: &CustomResource, object: &mut Value) -> bool {
        let unknown = resource.decode(object);
        let result = resource.create(object);
        unknown.is_empty() && result.errors.is_empty() && decide(self, object)
    }
}

/// `matches` with patterns that are compiled once.
fn matches_cached(text: &str, pattern: &str) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Regex>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(regex) = known.get(pattern) {
            return regex.is_match(text);
        }
        let regex = Regex::new(pattern).expect("the rules are valid");
        let found = regex.is_match(text);
        known.insert(pattern.to_owned(), regex);
        found
    })
}

/// Only the expressions of the policy that the `cel` crate compiles and runs.
struct CelCratePolicy {
    /// With optional values, which the rules require.
    env: Arc<cel::Env>,
    programs: Vec<cel::Program>,
    expressions: Vec<String>,
}

impl CelCratePolicy {
    fn new(policy: &Value, object: &Value) -> Self {
        let mut cel_crate_policy = Self {
            env: Arc::new(cel::Env::stdlib()),
            programs: Vec::new(),
            expressions: Vec::new(),
        };
        let context = cel_crate_policy.context(object);
        for validation in policy["spec"]["validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let source = validation["expression"].as_str().unwrap_or_default();
            let Ok(program) = cel_crate_policy.env.compile(source) else {
                continue;
            };
            if program.execute(&context).is_ok() {
                cel_crate_policy.programs.push(program);
                cel_crate_policy.expressions.push(source.to_owned());
            }
        }
        cel_crate_policy
    }

    fn context(&self, object: &Value) -> cel::Context<'static, 'static> {
        let mut context = cel::Context::with_env(Arc::clone(&self.env));
        let value = cel::to_value(object).expect("it is plain JSON");
        context.add_variable_from_value("object", value);
        context.add_variable_from_value("oldObject", cel::Value::Null);
        let _ = context.add_function(
            "matches",
            |cel::extractors::This(text): cel::extractors::This<Arc<String>>,
             pattern: Arc<String>| matches_cached(&text, &pattern),
        );
        context
    }

    fn run(&self, object: &Value) -> usize {
        let context = self.context(object);
        let holds = self.programs.iter().filter(|program| {
            program
                .execute(&context)
                .is_ok_and(|value| value == true.into())
        });
        holds.count()
    }
}

/// The same rules as a separate policy, for this engine.
fn same_rules(policy: &Value, expressions: &[String]) -> Value {
    let mut policy = policy.clone();
    let rules: Vec<Value> = expressions
        .iter()
        .map(|expression| json!({"expression": expression}))
        .collect();
    policy["spec"]["validations"] = rules.into();
    policy["spec"]["matchConditions"] = json!([]);
    policy["spec"]["variables"] = json!([]);
    policy
}

fn engine(bench: &mut Criterion) {
    let manifests = Manifests::read();
    let engine = manifests.compile();
    let (resource, object) = (engine.resource(), object());
    let mut decoded = object.clone();
    assert!(engine.admit(resource, &mut decoded), "the object is valid");
    // Lazily built tables of patterns exist after some uses.
    for _ in 0..100 {
        engine.admit(resource, &mut object.clone());
    }
    let mut sent = object.clone();
    let region = Region::new(ALLOCATOR);
    engine.admit(resource, &mut sent);
    let used = region.change();
    println!(
        "one object: {} allocations, {} bytes",
        used.allocations, used.bytes_allocated
    );
    let cel_crate_policy = CelCratePolicy::new(&manifests.policy, &object);
    let region = Region::new(ALLOCATOR);
    cel_crate_policy.run(&object);
    let used = region.change();
    let all = manifests.policy["spec"]["validations"]
        .as_array()
        .map_or(0, Vec::len);
    println!(
        "the cel crate on {} of the policy's {all} rules: {} allocations, {} bytes",
        cel_crate_policy.programs.len(),
        used.allocations,
        used.bytes_allocated
    );
    let rules = Manifests {
        policy: same_rules(&manifests.policy, &cel_crate_policy.expressions),
        definition: manifests.definition.clone(),
        binding: manifests.binding.clone(),
    };
    let same = rules.compile();
    bench.bench_function("engine/one object through everything", |bench| {
        let admit = |mut object: Value| {
            assert!(engine.admit(resource, black_box(&mut object)));
            object
        };
        bench.iter_batched(|| object.clone(), admit, BatchSize::SmallInput);
    });
    bench.bench_function("engine/the same rules alone", |bench| {
        bench.iter(|| decide(&same, black_box(&object)));
    });
    bench.bench_function("engine/the same rules in the cel crate", |bench| {
        bench.iter(|| cel_crate_policy.run(black_box(&object)));
    });
    // Compilation reuses patterns that are in use; it must find none.
    drop((engine, same, cel_crate_policy));
    bench.bench_function("engine/compile definition and policy", |bench| {
        bench.iter(|| manifests.compile());
    });
}

/// Evaluates only the policy.
fn decide(engine: &Engine, object: &Value) -> bool {
    let kind = GroupVersionKind {
        group: GROUP,
        version: "v1alpha1",
        kind: "ScheduledMachine",
    };
    let mut request = Request::create(kind, "scheduledmachines", object);
    request.namespace = "machines";
    request.name = "worker-1";
    request.user = &engine.user;
    engine.policies.decide(&request, &()).denied().is_none()
}

criterion_group!(benches, engine);
criterion_main!(benches);

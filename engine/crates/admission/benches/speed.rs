//! How long the engine takes to compile a definition and a policy, and to check objects with them,
//! and what that costs. Time is that of the processor, which other programs do not make longer.
//!
//! `cargo judge speed` gives the manifests in the file `SPEED_QUESTION`, and the same to a program with
//! Kubernetes' libraries.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kubemu_admission::KubeVersion;
use kubemu_admission::crd::{Crd, CustomResource};
use kubemu_admission::policy::{
    Binding, GroupVersionKind, Policies, Policy, Request, User,
};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many seconds the measured loop of a sample takes at least: long beside the clock's resolution, and
/// beside the pauses of a program that collects garbage.
const SAMPLE: f64 = 0.01;
const SAMPLES: usize = 30;
const WARM_UP: f64 = 0.2;

#[derive(Deserialize)]
struct Question {
    definition: String,
    policies: BTreeMap<String, String>,
    binding: Value,
    objects: BTreeMap<String, Value>,
}

#[derive(Default, Serialize)]
struct Results {
    /// Nanoseconds.
    times: BTreeMap<String, f64>,
    /// In units of the cost limits.
    costs: BTreeMap<String, u64>,
}

/// The time in seconds that all threads of this process have run on a processor.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let part = u64::try_from(time.tv_nsec).unwrap_or_default();
    (Duration::from_secs(seconds) + Duration::from_nanos(part)).as_secs_f64()
}

/// The median time of `run`, in nanoseconds, with an input of its own each time.
fn measure<T>(mut input: impl FnMut() -> T, mut run: impl FnMut(&mut T)) -> f64 {
    let mut sample = |times: u32| {
        let mut inputs: Vec<T> = (0..times).map(|_| input()).collect();
        let begun = processor_seconds();
        for input in &mut inputs {
            run(black_box(input));
        }
        processor_seconds() - begun
    };
    let mut times = 1;
    let begun = processor_seconds();
    while processor_seconds() - begun < WARM_UP || sample(times) < SAMPLE {
        if sample(times) < SAMPLE {
            times *= 2;
        }
    }
    let mut each: Vec<f64> = (0..SAMPLES)
        .map(|_| sample(times) * 1e9 / f64::from(times))
        .collect();
    each.sort_by(f64::total_cmp);
    each[SAMPLES / 2]
}

fn decide(policies: &Policies, object: &Value, user: &User) -> u64 {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or_default();
    let kind = GroupVersionKind {
        group,
        version,
        kind: text("/kind"),
    };
    let mut request = Request::create(kind, "scheduledmachines", object);
    request.namespace = text("/metadata/namespace");
    request.name = text("/metadata/name");
    request.user = user;
    let decision = policies.decide(&request, &());
    assert!(decision.denied().is_none(), "{:?}", decision.denied());
    decision.evaluations.iter().map(|it| it.cost).sum()
}

fn bound(policy: &str, binding: &Value) -> Policies {
    let policy = serde_json::from_str(policy).expect("it is JSON");
    let policy = Policy::stored(&policy, KubeVersion::default()).expect("it is valid");
    let binding = Binding::compile(binding).expect("it is valid");
    Policies::new([Arc::new(policy)], [Arc::new(binding)])
}

/// Decodes and validates a new object, and returns what its rules cost.
fn create(resource: &CustomResource, object: &mut Value) -> u64 {
    let unknown = resource.decode(object);
    let result = resource.create(object);
    assert!(
        unknown.is_empty() && result.errors.is_empty(),
        "{:?}",
        result.errors
    );
    result.cost
}

fn results(question: &Question) -> Result<Results, Box<dyn Error>> {
    let version = KubeVersion::default();
    let mut found = Results::default();
    let define = |text: &String| {
        let manifest = serde_json::from_str(text).expect("it is JSON");
        Crd::compile(&manifest, version).expect("it is valid")
    };
    // Compilation reuses patterns that are in use; it must find none.
    let time = measure(|| question.definition.clone(), |text| drop(define(text)));
    found.times.insert("register definition".to_owned(), time);
    for (name, text) in &question.policies {
        let register = |text: &mut String| {
            let manifest = serde_json::from_str(text).expect("it is JSON");
            Policy::compile(&manifest, version).expect("it is valid");
        };
        let time = measure(|| text.clone(), register);
        found.times.insert(format!("register {name}"), time);
        let manifest: Value = serde_json::from_str(text)?;
        let compile = |manifest: &mut &Value| {
            Policy::stored(manifest, version).expect("it is valid");
        };
        let time = measure(|| &manifest, compile);
        found.times.insert(format!("compile {name}"), time);
    }
    let definition = define(&question.definition);
    let user = User::default();
    for (object_name, object) in &question.objects {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let version_name = api_version.rsplit('/').next().unwrap_or_default();
        let resource = definition.served(version_name).ok_or("it is not served")?;
        let name = format!("{object_name} definition");
        let cost = create(resource, &mut object.clone());
        found.costs.insert(name.clone(), cost);
        let check = |object: &mut Value| assert_eq!(create(resource, object), cost);
        found.times.insert(name, measure(|| object.clone(), check));
        for (policy_name, text) in &question.policies {
            let policies = bound(text, &question.binding);
            let mut decoded = object.clone();
            resource.decode(&mut decoded);
            let name = format!("{object_name} {policy_name}");
            let cost = decide(&policies, &decoded, &user);
            found.costs.insert(name.clone(), cost);
            let check =
                |object: &mut Value| assert_eq!(decide(&policies, object, &user), cost);
            found.times.insert(name, measure(|| decoded.clone(), check));
        }
    }
    Ok(found)
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some(question) = env::var_os("SPEED_QUESTION") else {
        println!("`cargo judge speed` gives the manifests and the objects");
        return Ok(());
    };
    let question = serde_json::from_str(&fs::read_to_string(question)?)?;
    println!("{}", serde_json::to_string(&results(&question)?)?);
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

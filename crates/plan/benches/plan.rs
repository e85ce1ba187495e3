//! Measures a decision: one step of the planner, a whole status, and an unchanged one.

#![allow(missing_docs, reason = "criterion's macros write public functions")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fivespot_api::{ScheduledMachine, name};
use fivespot_capi::{Cluster, Contract, Reference};
use fivespot_plan::{Fact, Freshness, Locations, Lookup, Memory, Observed, plan};
use jiff::Timestamp;
use serde_json::json;

fn scheduled_machine() -> ScheduledMachine {
    let object = json!({
        "apiVersion": name::API_VERSION, "kind": name::KIND,
        "metadata": {
            "name": "worker", "namespace": "default", "uid": "sm-1",
            "resourceVersion": "1", "generation": 1, "finalizers": [name::FINALIZER],
        },
        "spec": {
            "schedule": {
                "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"],
                "timezone": "America/New_York",
            },
            "clusterName": "prod",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfig",
                "spec": { "version": "v1.30.0+k0s.0" },
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
                "spec": { "address": "192.0.2.7" },
            },
        },
    });
    serde_json::from_value(object).expect("it is well formed")
}

/// A Cluster that machines can join, without a machine, read live.
fn observed(object: &ScheduledMachine) -> Observed {
    let contract = Contract::V1Beta2;
    let cluster = json!({
        "apiVersion": contract.api_version(), "kind": "Cluster",
        "metadata": { "name": "prod", "namespace": "default", "uid": "cluster-1" },
        "spec": {},
        "status": { "initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": true,
        }},
    });
    let locations = Locations::of(object, None);
    let absent = |locations: Vec<Reference>| {
        let lookup = |reference| Lookup {
            reference,
            found: Fact::Known(None),
        };
        locations.into_iter().map(lookup).collect()
    };
    Observed {
        freshness: Freshness::Live,
        contract: Fact::Known(contract),
        cluster: Fact::Known(Cluster::read(&cluster).ok()),
        machine: Fact::Known(None),
        bootstrap: absent(locations.bootstrap),
        infrastructure: absent(locations.infrastructure),
        ..Observed::default()
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("it is an instant")
}

/// The same object with the planner's status at `now`.
fn reported(object: &ScheduledMachine, now: Timestamp) -> ScheduledMachine {
    let next = plan(object, &observed(object), &Memory::default(), now);
    ScheduledMachine {
        status: next.status.or_else(|| object.status.clone()),
        ..object.clone()
    }
}

fn step(bench: &mut Criterion) {
    let object = scheduled_machine();
    let open = at("2026-03-06T15:00:00Z");
    let observed = observed(&object);
    let memory = Memory::default();
    let first = plan(&object, &observed, &memory, open);
    assert!(!first.is_idle(), "a window that opens is something to do");
    bench.bench_function("plan: a window has opened", |bench| {
        bench.iter(|| plan(black_box(&object), &observed, &memory, open));
    });
}

fn unchanged(bench: &mut Criterion) {
    let closed = at("2026-03-06T03:00:00Z");
    let object = reported(&scheduled_machine(), closed);
    let observed = observed(&object);
    let memory = Memory::default();
    let next = plan(&object, &observed, &memory, closed);
    assert!(
        next.is_idle(),
        "what has been reported is not reported again"
    );
    bench.bench_function("plan: nothing is to be done, the status stays", |bench| {
        bench.iter(|| plan(black_box(&object), &observed, &memory, closed));
    });
    let status = object.status.clone().expect("it was reported");
    let other = status.clone();
    bench.bench_function("status: compared with an equal one", |bench| {
        bench.iter(|| black_box(&status) == black_box(&other));
    });
}

criterion_group!(plans, step, unchanged);
criterion_main!(plans);

//! How long the creation of a Pod takes, from the request to the reply, through the default
//! plugins: in this process, and where `KUBECONFIG` names a real server, on that too.

#![allow(missing_docs, reason = "criterion's macros write public functions")]

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use fivespot_apiserver::{Client, Delete, InProcess, Options, Server};
use fivespot_clock::Clock;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// What a Deployment of an ordinary web application makes.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", "tier": "front"}},
        "spec": {"containers": [{
            "name": "web",
            "image": "registry.example/web:1.2",
            "ports": [{"containerPort": 8080}],
            "env": [{"name": "MODE", "value": "production"}],
            "resources": {
                "requests": {"cpu": "100m", "memory": "64Mi"},
                "limits": {"memory": "128Mi"},
            },
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
        }]},
    })
}

/// A server on which the account of the Pods exists.
async fn server() -> Server {
    let server = Server::new(Options::new(Clock::system())).expect("the defaults start");
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
    });
    let path = "/api/v1/namespaces/default/serviceaccounts";
    // The server's own controller may have been first.
    let _ = server.client().create(path, account).await;
    server
}

/// Removes what was created, so that every creation finds the same server.
async fn remove(client: &Client, name: &str) {
    let now = Delete {
        grace_seconds: Some(0),
        ..Delete::default()
    };
    let path = format!("{PODS}/{name}");
    client.delete(&path, &now).await.expect("the Pod exists");
}

/// Times creations of a Pod, each of which `create` begins and ends.
fn time(runtime: &Runtime, times: u64, create: impl AsyncFn(&Server, Value)) -> Duration {
    runtime.block_on(async {
        let server = server().await;
        let client = server.client();
        let mut spent = Duration::ZERO;
        for _ in 0..times {
            let pod = pod("web");
            let begun = Instant::now();
            create(&server, pod).await;
            spent += begun.elapsed();
            remove(&client, "web").await;
        }
        spent
    })
}

async fn send(service: InProcess, body: Bytes) -> Response<Bytes> {
    let request = Request::post(PODS)
        .header("content-type", "application/json")
        .body(Full::<Bytes>::new(body))
        .expect("a valid request");
    let answered: Result<_, Infallible> = service.oneshot(request).await;
    let (head, body) = answered.expect("infallible").into_parts();
    let body = body.collect().await.expect("infallible").to_bytes();
    Response::from_parts(head, body)
}

fn create(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let mut group = criterion.benchmark_group("create-pod");
    group.bench_function("value", |bencher| {
        bencher.iter_custom(|times| {
            time(&runtime, times, async |server, pod| {
                let created = server.client().create(PODS, pod).await;
                created.expect("the Pod is admitted");
            })
        });
    });
    group.bench_function("json", |bencher| {
        bencher.iter_custom(|times| {
            time(&runtime, times, async |server, pod| {
                let reply = send(server.in_process(), pod.to_string().into()).await;
                assert_eq!(reply.status(), 201);
            })
        });
    });
    group.finish();
}

criterion_group!(benches, create);
criterion_main!(benches);

//! Measures the creation of a Pod with the default plugins, from the request to the response: in
//! this process and through a socket with TLS. If `KUBECONFIG` is set, also through a socket of
//! that server. `cargo judge creation` records the times.

#![allow(missing_docs, reason = "criterion's macros generate public functions")]

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubemu_apiserver::{Client, Credentials, Delete, InProcess, Options, Server};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A Pod as the Deployment of a typical web application creates it.
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

/// A server with the service account of the Pods.
async fn server() -> Server {
    let server = Server::new(Options::new(Clock::system())).expect("the defaults start");
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
    });
    let path = "/api/v1/namespaces/default/serviceaccounts";
    // The controller of the server may have created it already.
    let _ = server.client().create(path, account).await;
    server
}

/// Deletes the Pod, so that the server is in the same state for every creation.
async fn remove(client: &Client, name: &str) {
    let now = Delete {
        grace_seconds: Some(0),
        ..Delete::default()
    };
    let path = format!("{PODS}/{name}");
    client.delete(&path, &now).await.expect("the Pod exists");
}

/// Measures the time of `create` for a number of Pods.
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

/// Measures creations through a socket of the server of a kubeconfig.
async fn time_through_socket(kubeconfig: Kubeconfig, times: u64) -> Duration {
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.expect("a readable kubeconfig");
    let client = kube::Client::try_from(config).expect("a client");
    let mut spent = Duration::ZERO;
    for _ in 0..times {
        let body = pod("web").to_string().into_bytes();
        let request = Request::post(PODS).header("content-type", "application/json");
        let request = request.body(body).expect("a valid request");
        let begun = Instant::now();
        let created = client.request::<Value>(request).await;
        spent += begun.elapsed();
        created.expect("the Pod is admitted");
        let path = format!("{PODS}/web?gracePeriodSeconds=0");
        let request = Request::delete(path).body(Vec::new());
        let request = request.expect("a valid request");
        let removed = client.request::<Value>(request).await;
        removed.expect("the Pod exists");
    }
    spent
}

/// Measures creations through a socket of the embedded server.
async fn time_embedded(times: u64) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let credentials = Credentials::generate().expect("credentials");
    let kubeconfig = credentials.kubeconfig(address, "create");
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).expect("a kubeconfig");
    let server = server().await;
    let serving = tokio::spawn(async move {
        let never = std::future::pending::<()>();
        server.serve(listener, &credentials, never).await
    });
    let spent = time_through_socket(kubeconfig, times).await;
    serving.abort();
    spent
}

fn create(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let mut group = criterion.benchmark_group("create-pod");
    group.bench_function("embedded", |bencher| {
        bencher.iter_custom(|times| runtime.block_on(time_embedded(times)));
    });
    if let Ok(path) = std::env::var("KUBECONFIG") {
        group.bench_function("kubernetes", |bencher| {
            bencher.iter_custom(|times| {
                let kubeconfig = Kubeconfig::read_from(&path).expect("a kubeconfig");
                runtime.block_on(time_through_socket(kubeconfig, times))
            });
        });
    }
    // Last, when the controllers of a new cluster are idle.
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

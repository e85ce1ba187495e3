//! An in-process cluster, and the stand-in for Cluster API.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, Options, run};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kubemu_apiserver::{
    Audit, AuditEvent, Client, Delete, Options as ServerOptions, Patch, Server,
};
use kubemu_apiserver::{Selector, Status};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::{BoxError, ServiceExt as _, service_fn};

pub(crate) const OWNED: [&str; 3] = [
    "/apis/bootstrap.cluster.x-k8s.io/v1beta1/namespaces/default/k0sworkerconfigs",
    "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/remotemachines",
    "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines",
];
pub(crate) const SCHEDULED: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";
const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) struct TestCluster {
    pub(crate) clock: Clock,
    pub(crate) client: Client,
    pub(crate) server: Server,
    request_log: Arc<Mutex<Vec<String>>>,
    writes: Arc<Mutex<Vec<String>>>,
    faults: Faults,
    delays: Delays,
    is_silent: Arc<AtomicBool>,
}

/// For requests of the operator with this method and path prefix: the delay, by the operator's
/// clock.
pub(crate) type Delays = Arc<Mutex<Vec<(String, SignedDuration)>>>;

/// Responses to the operator that replace those of the server: how often, for which method (or
/// `WATCH`) and path, and with which status and body.
pub(crate) type Faults = Arc<Mutex<Vec<(usize, String, u16, String)>>>;

/// Stops the controller when it is dropped.
pub(crate) struct RunningController(JoinHandle<()>);

impl Drop for RunningController {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connects every kubeconfig to the in-process server, except for two tokens: one server rejects
/// every request, one never responds.
struct InProcess(Connection);

/// The state of the connection between the operator and the server.
#[derive(Clone)]
struct Connection {
    server: Server,
    clock: Clock,
    faults: Faults,
    delays: Delays,
    is_silent: Arc<AtomicBool>,
}

impl Connect for InProcess {
    fn connect(&self, access: &Access) -> Result<kube::Client, kube::Error> {
        let credential = serde_json::to_value(access.auth_info()).unwrap_or_default();
        Ok(match credential["token"].as_str() {
            Some("refused") => kube::Client::new(service_fn(refuse), "default"),
            Some("silent") => kube::Client::new(service_fn(time_out), "default"),
            _ => faulty(&self.0),
        })
    }
}

/// A client of the server with the faults and the delays.
fn faulty(connection: &Connection) -> kube::Client {
    let connection = connection.clone();
    let response = move |request: Request<Body>| {
        let uri = request.uri();
        let is_watch = uri
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let verb = if is_watch {
            "WATCH"
        } else {
            request.method().as_str()
        };
        let line = format!("{verb} {}", uri.path());
        let fault = fault(&connection.faults, &line);
        let delay = delay(&connection.delays, &line);
        let is_silent = connection.is_silent.load(Ordering::Relaxed);
        let (server, clock) = (connection.server.clone(), connection.clock.clone());
        async move {
            if let Some(delay) = delay {
                clock.sleep(delay).await;
            }
            if is_silent {
                return Err("connection refused".into());
            }
            if let Some((code, body)) = fault {
                if code == 0 {
                    return Err(body.into());
                }
                let body = Full::from(body).map_err(BoxError::from);
                let response = Response::builder().status(code);
                return Ok(response.body(body.boxed_unsync())?);
            }
            forward(server, request).await
        }
    };
    kube::Client::new(service_fn(response), "default")
}

fn delay(delays: &Delays, line: &str) -> Option<SignedDuration> {
    let delays = delays.lock().unwrap();
    let hit = delays.iter().find(|(slow, _)| line.starts_with(slow));
    hit.map(|(_, span)| *span)
}

/// The response of the server itself.
pub(crate) async fn forward(
    server: Server,
    request: Request<Body>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    let response = server.in_process().oneshot(request).await?;
    Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
}

fn fault(faults: &Faults, line: &str) -> Option<(u16, String)> {
    let mut faults = faults.lock().unwrap();
    let hit = faults
        .iter_mut()
        .find(|fault| fault.0 > 0 && line == fault.1)?;
    hit.0 -= 1;
    Some((hit.2, hit.3.clone()))
}

async fn refuse(_: Request<Body>) -> Result<Response<Body>, BoxError> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": 401, "reason": "Unauthorized", "message": "Unauthorized",
    });
    let response = Response::builder().status(401);
    Ok(response.body(Body::from(status.to_string().into_bytes()))?)
}

async fn time_out(_: Request<Body>) -> Result<Response<Body>, BoxError> {
    Err("connection timed out".into())
}

impl TestCluster {
    /// The API server with our definitions, at an instant.
    pub(crate) async fn at(start: &str) -> Self {
        let _ = tracing_subscriber::fmt()
            .with_test_writer()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .try_init();
        let clock = Clock::stopped_at(instant(start));
        let (request_log, writes) = (Arc::default(), Arc::default());
        let mut options = ServerOptions::new(clock.clone());
        // Tests set the Ready condition of a Node without removing its taint.
        options
            .disable_plugins
            .push("TaintNodesByCondition".to_owned());
        options.audit = Some(recorder(&request_log, &writes));
        let server = Server::new(options).unwrap();
        let client = server.client();
        let cluster = Self {
            clock,
            client,
            server,
            request_log,
            writes,
            faults: Faults::default(),
            delays: Delays::default(),
            is_silent: Arc::default(),
        };
        for resource in &fivespot_api::RESOURCES {
            let definition = fivespot_api::crd::render_of(resource, 36);
            cluster
                .client
                .create(DEFINITIONS, definition)
                .await
                .unwrap();
        }
        cluster.clock.wait_until_idle().await;
        cluster
    }

    /// The same with Cluster API and a Cluster.
    pub(crate) async fn with_cluster_api(start: &str) -> Self {
        let cluster = Self::at(start).await;
        cluster.install_cluster_api().await;
        cluster.create_cluster().await;
        cluster
    }

    /// A kubeconfig with this user, and a ScheduledMachine in its schedule.
    pub(crate) async fn create_wanted_machine(&self, user: &Value) {
        self.create_kubeconfig(user).await;
        self.create_scheduled_machine("worker").await;
    }

    /// Creates a wanted machine whose kubeconfig has that token, and runs a controller until its
    /// Node `worker` has joined, at 15:01. It runs until the result is dropped.
    pub(crate) async fn run_until_joined(&self, token: &str) -> RunningController {
        self.create_wanted_machine(&json!({"token": token})).await;
        let running = self.run(|client, clock| self.options(client, clock));
        self.advance_to("2026-03-06T15:01:00Z").await;
        self.join("worker").await;
        running
    }

    /// Advances the clock to that instant.
    pub(crate) async fn advance_to(&self, then: &str) {
        self.clock.advance_to(instant(then)).await;
    }

    /// Runs a controller until the result is dropped.
    pub(crate) fn run(
        &self,
        options: impl Fn(kube::Client, Clock) -> Options,
    ) -> RunningController {
        let client = faulty(&self.connection());
        let running = run(options(client, self.clock.clone()));
        RunningController(tokio::spawn(async move { match running.await {} }))
    }

    /// A client whose requests for the path `held` wait until the server has received `line` once
    /// more, and other tasks have had time to act on it.
    pub(crate) fn client_held_until(&self, held: &str, line: &str) -> kube::Client {
        let (server, request_log) = (self.server.clone(), self.request_log.clone());
        let (held, line) = (held.to_owned(), line.to_owned());
        let times = move || {
            let request_log = request_log.lock().unwrap();
            request_log
                .iter()
                .filter(|printed| **printed == line)
                .count()
        };
        let before = times();
        let response = move |request: Request<Body>| {
            let is_held = request.uri().path() == held;
            let (server, times) = (server.clone(), times.clone());
            async move {
                if is_held {
                    while times() == before {
                        tokio::task::yield_now().await;
                    }
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                }
                forward(server, request).await
            }
        };
        kube::Client::new(service_fn(response), "default")
    }

    /// Options that connect workload clusters to this same server.
    pub(crate) fn options(&self, client: kube::Client, clock: Clock) -> Options {
        let mut options = Options::new(client, clock);
        options.connect = Arc::new(InProcess(self.connection()));
        options
    }

    fn connection(&self) -> Connection {
        Connection {
            server: self.server.clone(),
            clock: self.clock.clone(),
            faults: self.faults.clone(),
            delays: self.delays.clone(),
            is_silent: self.is_silent.clone(),
        }
    }

    /// Sets whether requests of the operator fail without a response.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::Relaxed);
    }

    /// Delays later requests with this method and path prefix.
    pub(crate) fn delay_requests(&self, request: &str, span: SignedDuration) {
        let delay = (request.to_owned(), span);
        self.delays.lock().unwrap().push(delay);
    }

    /// Ends [`delay_requests`](Self::delay_requests) for later requests.
    pub(crate) fn clear_delays(&self) {
        self.delays.lock().unwrap().clear();
    }

    /// Replaces the responses to the next `times` requests with that method and path; code 0 fails
    /// without a response.
    pub(crate) fn inject_fault(
        &self,
        times: usize,
        request: &str,
        (code, body): (u16, &str),
    ) {
        let fault = (times, request.to_owned(), code, body.to_owned());
        self.faults.lock().unwrap().push(fault);
    }

    /// How many more responses to that request are replaced.
    pub(crate) fn faults_left(&self, request: &str) -> usize {
        let faults = self.faults.lock().unwrap();
        let of_request = faults.iter().filter(|fault| fault.1 == request);
        of_request.map(|fault| fault.0).sum()
    }

    pub(crate) fn clear_faults(&self) {
        self.faults.lock().unwrap().clear();
    }

    pub(crate) async fn install_cluster_api(&self) {
        let kinds = [
            ("cluster.x-k8s.io", "v1beta2", "Cluster"),
            ("cluster.x-k8s.io", "v1beta2", "Machine"),
            ("bootstrap.cluster.x-k8s.io", "v1beta1", "K0sWorkerConfig"),
            (
                "infrastructure.cluster.x-k8s.io",
                "v1beta1",
                "RemoteMachine",
            ),
        ];
        for (group, version, kind) in kinds {
            let definition = definition(group, version, kind);
            self.client.create(DEFINITIONS, definition).await.unwrap();
        }
    }

    /// Creates a Cluster that Machines can join.
    pub(crate) async fn create_cluster(&self) {
        self.create_cluster_in("default").await;
    }

    /// The same in another namespace, which exists.
    pub(crate) async fn create_cluster_in(&self, namespace: &str) {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "prod"},
            "spec": {},
        });
        let clusters = CLUSTERS.replace("default", namespace);
        self.client.create(&clusters, cluster).await.unwrap();
        let status = json!({"status": {"initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": true,
        }}});
        self.merge(&format!("{clusters}/prod/status"), status).await;
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        let namespaces = "/api/v1/namespaces";
        self.client.create(namespaces, namespace).await.unwrap();
    }

    /// Creates a ScheduledMachine that is active on weekdays from 09:00 to 18:00 in New York.
    pub(crate) async fn create_scheduled_machine(&self, name: &str) {
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "clusterName": "prod",
                "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"],
                             "timezone": "America/New_York"},
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                    "kind": "K0sWorkerConfig", "spec": {},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "RemoteMachine", "spec": {"address": "10.0.0.1"},
                },
            },
        });
        self.client.create(SCHEDULED, object).await.unwrap();
    }

    /// Creates the workload cluster's kubeconfig with this user; the token `abc` is valid.
    pub(crate) async fn create_kubeconfig(&self, user: &Value) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": "prod-kubeconfig", "namespace": "default",
                         "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
            "data": {"value": kubeconfig(WORKLOAD, user)},
        });
        self.client.create(SECRETS, secret).await.unwrap();
    }

    pub(crate) async fn rotate_kubeconfig(&self, user: &Value) {
        let patch = json!({"data": {"value": kubeconfig(WORKLOAD, user)}});
        let secret = format!("{SECRETS}/prod-kubeconfig");
        self.merge(&secret, patch).await;
    }

    /// Changes the server in the kubeconfig.
    pub(crate) async fn serve_kubeconfig_at(&self, server: &str, user: &Value) {
        let patch = json!({"data": {"value": kubeconfig(server, user)}});
        self.merge(&format!("{SECRETS}/prod-kubeconfig"), patch)
            .await;
    }

    /// Creates a Node for the Machine, which is not ready yet.
    pub(crate) async fn join(&self, name: &str) {
        let provider_id = format!("sim://{name}");
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"providerID": provider_id},
        });
        self.client.create("/api/v1/nodes", node).await.unwrap();
        let machine = format!("{}/{name}", OWNED[2]);
        let spec = json!({"spec": {"providerID": provider_id}});
        self.merge(&machine, spec).await;
        let status = json!({"status": {"phase": "Running", "nodeRef": {"name": name}}});
        self.merge(&format!("{machine}/status"), status).await;
    }

    /// Creates a pod on the Node.
    pub(crate) async fn bind_pod(&self, name: &str, node: &str) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        });
        let pods = "/api/v1/namespaces/default/pods";
        self.client.create(pods, pod).await.unwrap();
    }

    pub(crate) async fn ready(&self, node: &str, is_ready: bool) {
        let ready = if is_ready { "True" } else { "False" };
        let status =
            json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        self.merge(&format!("/api/v1/nodes/{node}/status"), status)
            .await;
    }

    pub(crate) async fn merge(&self, path: &str, patch: Value) {
        self.client.patch(path, Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.client.delete(path, &Delete::default()).await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Status> {
        self.client
            .get(path)
            .await
            .map(|found| Value::clone(&found))
    }

    pub(crate) async fn status(&self, name: &str) -> Value {
        let found = self.get(&format!("{SCHEDULED}/{name}")).await.unwrap();
        found["status"].clone()
    }

    pub(crate) fn condition(status: &Value, kind: &str) -> Value {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut found = conditions.filter(|condition| condition["type"] == kind);
        found.next().cloned().unwrap_or_default()
    }

    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        let all = self.client.list(path, &Selector::default()).await.unwrap();
        all.items.iter().map(|item| Value::clone(item)).collect()
    }

    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        let all = self.items(path).await;
        let names = all.iter().map(|item| item["metadata"]["name"].as_str());
        names
            .map(|name| name.unwrap_or_default().to_owned())
            .collect()
    }

    /// All requests so far except the start of watches, which end by themselves.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.request_log.lock().unwrap().clone()
    }

    /// All writes so far.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }
}

fn recorder(
    request_log: &Arc<Mutex<Vec<String>>>,
    writes: &Arc<Mutex<Vec<String>>>,
) -> Audit {
    let (request_log, writes) = (request_log.clone(), writes.clone());
    Audit::new(move |event: &AuditEvent| {
        let line = format!("{} {} {}", event.verb, event.path, event.code);
        if event.is_write() {
            writes.lock().unwrap().push(line.clone());
        }
        if event.verb != "watch" {
            request_log.lock().unwrap().push(line);
        }
    })
}

fn definition(group: &str, version: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// The workload cluster's URL.
const WORKLOAD: &str = "https://workload:6443";

/// A kubeconfig for that server with that user, as base64.
fn kubeconfig(server: &str, user: &Value) -> String {
    let authority = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
    let kubeconfig = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {
            "server": server,
            "certificate-authority-data": base64(&authority.cert.pem()),
        }}],
        "users": [{"name": "u", "user": user}],
    });
    base64(&kubeconfig.to_string())
}

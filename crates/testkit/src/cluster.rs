//! A whole cluster in the process: API server, simulated Cluster API, operator, on a
//! virtual clock.

use std::sync::{Arc, Mutex, PoisonError};

use fivespot_apiserver::{Audit, AuditEvent, Credentials, Server, User};
use fivespot_clock::Clock;
use fivespot_controller::kubeconfig::Access;
use fivespot_controller::{Connect, Options, run};
use fivespot_sim::Contract;
use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::crash::{Crash, Tally};

/// Who the operator is in the audit log.
const OPERATOR: &str = "system:serviceaccount:5spot-system:5spot-controller";

/// Who the simulated Cluster API is in the audit log.
const SIMULATOR: &str = "system:serviceaccount:capi-system:capi-manager";

/// Where the workload cluster says that it is; nothing listens there.
const ADDRESS: &str = "127.0.0.1:6443";

/// An embedded cluster with the ScheduledMachine definition, its policy and binding, and a
/// simulated Cluster API, on a virtual clock. Everything in it ends when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    clock: Clock,
    log: Arc<Mutex<Vec<AuditEvent>>>,
    contract: Contract,
    simulator: JoinHandle<()>,
}

/// A running operator. Dropping it stops it dead, wherever it is.
#[derive(Debug)]
pub struct Operator(JoinHandle<()>);

impl Drop for Operator {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.simulator.abort();
    }
}

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "what goes wrong in a test's own cluster ends the test"
)]
impl Cluster {
    /// A cluster whose clock stands at `now`, with Cluster API's newer contract.
    pub async fn start(now: Timestamp) -> Self {
        Self::with_contract(now, Contract::V1Beta2).await
    }

    /// The same, with a contract of choice.
    pub async fn with_contract(now: Timestamp, contract: Contract) -> Self {
        let clock = Clock::stopped_at(now);
        let log: Arc<Mutex<Vec<AuditEvent>>> = Arc::default();
        let heard = log.clone();
        let mut options = fivespot_apiserver::Options::new(clock.clone());
        options.audit = Some(Audit::new(move |event| {
            heard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event.clone());
        }));
        let server = Server::new(options).expect("the default plugins are known");
        let credentials = Credentials::generate().expect("credentials");
        let address = ADDRESS.parse().expect("an address");
        let simulation = fivespot_sim::Options {
            client: server.client_as(User::new(SIMULATOR, &["system:masters"])),
            clock: clock.clone(),
            contract,
            kubeconfig: Some(credentials.kubeconfig(address, "workload")),
        };
        fivespot_sim::install(&simulation)
            .await
            .expect("the simulated resources");
        let simulator = tokio::spawn(fivespot_sim::run(simulation));
        let cluster = Self {
            server,
            clock,
            log,
            contract,
            simulator,
        };
        let kube = fivespot_apiserver::KubeVersion::default();
        for object in fivespot_api::manifest::installed(kube.minor()) {
            cluster.apply(&object).await;
        }
        cluster.clock.quiet().await;
        cluster
    }

    /// The clock of everything in the cluster.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The embedded API server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The contract version of the simulated Cluster API.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    /// A client with every right.
    pub fn client(&self) -> Client {
        Client::new(self.server.in_process(), "default")
    }

    /// Starts an operator.
    pub fn operator(&self) -> Operator {
        self.operator_through(Tally::default())
    }

    /// Starts an operator whose writes are counted; it dies with the tally, if that has a
    /// limit.
    pub fn operator_through(&self, tally: Tally) -> Operator {
        let service = self
            .server
            .in_process_as(User::new(OPERATOR, &["system:masters"]));
        let service = Crash::new(service, tally);
        let client = Client::new(service.clone(), "default");
        let mut options = Options::new(client.clone(), self.clock.clone());
        options.connect = Arc::new(InProcess(client));
        Operator(tokio::spawn(async move { match run(options).await {} }))
    }

    /// Creates or changes an object as `kubectl apply --server-side` does.
    pub async fn apply(&self, object: &Value) {
        if let Err(error) = self.try_apply(object).await {
            panic!("{object}: {error}");
        }
    }

    /// The same; the server's refusal is an answer.
    ///
    /// # Errors
    /// The refusal.
    pub async fn try_apply(&self, object: &Value) -> Result<Value, kube::Error> {
        let path = format!("{}?fieldManager=test&force=true", path_of(object));
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", object)
            .await
    }

    /// Applies every document of a YAML text, in order.
    pub async fn apply_yaml(&self, text: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
        for object in documents.iter().filter(|object| !object.is_null()) {
            self.apply(object).await;
        }
    }

    /// Creates an object as `kubectl create` does.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn create(&self, object: &Value) -> Result<Value, kube::Error> {
        let path = path_of(object);
        let collection = path
            .rsplit_once('/')
            .map_or("", |(collection, _)| collection);
        self.send(Method::POST, collection, "application/json", object)
            .await
    }

    /// Creates the object of a YAML text.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn try_create_yaml(&self, text: &str) -> Result<Value, kube::Error> {
        let object = serde_saphyr::from_str(text).expect("YAML");
        self.create(&object).await
    }

    /// Asks whether an object would be created.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn dry_run(&self, object: &Value) -> Result<Value, kube::Error> {
        let path = path_of(object);
        let collection = path
            .rsplit_once('/')
            .map_or("", |(collection, _)| collection);
        let path = format!("{collection}?dryRun=All");
        self.send(Method::POST, &path, "application/json", object)
            .await
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, path: &str, patch: &Value) -> Value {
        self.try_patch(path, patch)
            .await
            .expect("the patch is accepted")
    }

    /// The same; the server's refusal is an answer.
    ///
    /// # Errors
    /// The refusal.
    pub async fn try_patch(
        &self,
        path: &str,
        patch: &Value,
    ) -> Result<Value, kube::Error> {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch)
            .await
    }

    /// Deletes the object at `path`.
    pub async fn delete(&self, path: &str) {
        self.delete_with(path, &Value::Null).await;
    }

    /// Deletes the object at `path` with `options`, the fields of a DeleteOptions.
    pub async fn delete_with(&self, path: &str, options: &Value) {
        self.send(Method::DELETE, path, "application/json", options)
            .await
            .expect("the deletion is accepted");
    }

    /// The items of the list at `path`; none where the resource is not served.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.unwrap_or(Value::Null);
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// The object or list at `path`, if it is there.
    pub async fn get(&self, path: &str) -> Option<Value> {
        self.send(Method::GET, path, "application/json", &Value::Null)
            .await
            .ok()
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(body)
            .expect("a request");
        self.client().request(request).await
    }

    /// Lets time pass until `to`; everything that falls due on the way is done on time.
    pub async fn pass_until(&self, to: Timestamp) {
        self.clock.advance_to(to).await;
    }

    /// Lets time pass until `holds` of the object at `path` (`null` while it is not
    /// there), and returns the object.
    ///
    /// Panics with the object when that has not come true by `limit`.
    pub async fn wait_for(
        &self,
        path: &str,
        limit: Timestamp,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        loop {
            self.clock.quiet().await;
            let object = self.get(path).await.unwrap_or(Value::Null);
            if holds(&object) {
                return object;
            }
            let moved = self.clock.advance_to_next(limit).await;
            assert!(moved.is_some(), "{path} by {limit}: {object:#}");
        }
    }

    /// Waits until there is nothing at `path`.
    pub async fn wait_until_gone(&self, path: &str, limit: Timestamp) {
        self.wait_for(path, limit, Value::is_null).await;
    }

    /// Waits for a phase of the ScheduledMachine `name` in namespace `default`.
    pub async fn wait_for_phase(
        &self,
        name: &str,
        phase: &str,
        limit: Timestamp,
    ) -> Value {
        let path = machine_path(name);
        self.wait_for(&path, limit, |object| object["status"]["phase"] == phase)
            .await
    }

    /// Where the bootstrap object, the infrastructure object and the Machine of the
    /// ScheduledMachine `name` in namespace `default` are, if they have the kinds of
    /// [`scheduled_machine`](crate::scheduled_machine).
    pub fn triple(&self, name: &str) -> [String; 3] {
        let machines = format!("cluster.x-k8s.io/{}", self.contract.version());
        [
            ("bootstrap.cluster.x-k8s.io/v1beta1", "k0sworkerconfigs"),
            ("infrastructure.cluster.x-k8s.io/v1beta1", "remotemachines"),
            (&machines, "machines"),
        ]
        .map(|(version, plural)| {
            format!("/apis/{version}/namespaces/default/{plural}/{name}")
        })
    }

    /// Every request so far, in the order of the answers.
    pub fn requests(&self) -> Vec<AuditEvent> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Every write that the operator has asked for so far, events of Kubernetes aside.
    pub fn operator_writes(&self) -> Vec<AuditEvent> {
        self.requests_of(OPERATOR, |event| {
            event.is_write() && event.resource != "events"
        })
    }

    /// What the operator has asked for so far of `resource` (`pods/eviction`, `machines`):
    /// `<time> <verb> <name> <code>`, in order.
    pub fn operator_told(&self, resource: &str) -> Vec<String> {
        let of = |event: &AuditEvent| match event.subresource.as_str() {
            "" => event.resource.clone(),
            subresource => format!("{}/{subresource}", event.resource),
        };
        self.requests_of(OPERATOR, |event| event.is_write() && of(event) == resource)
            .iter()
            .map(|event| {
                format!("{} {} {} {}", event.at, event.verb, event.name, event.code)
            })
            .collect()
    }

    /// Every request of the operator so far.
    pub fn operator_requests(&self) -> Vec<AuditEvent> {
        self.requests_of(OPERATOR, |_| true)
    }

    fn requests_of(
        &self,
        user: &str,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Vec<AuditEvent> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter()
            .filter(|event| event.user == user && wanted(event))
            .cloned()
            .collect()
    }
}

/// The path of the ScheduledMachine `name` in namespace `default`.
pub fn machine_path(name: &str) -> String {
    format!("/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines/{name}")
}

/// Where an object of one of the kinds that tests use is found.
pub fn path_of(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let kind = text("/kind").to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    let root = match text("/apiVersion").split_once('/') {
        Some((group, version)) => format!("/apis/{group}/{version}"),
        None => format!("/api/{}", text("/apiVersion")),
    };
    let cluster_wide = matches!(
        kind.as_str(),
        "node"
            | "namespace"
            | "customresourcedefinition"
            | "validatingadmissionpolicy"
            | "validatingadmissionpolicybinding"
    );
    let name = text("/metadata/name");
    match text("/metadata/namespace") {
        _ if cluster_wide => format!("{root}/{plural}/{name}"),
        "" => format!("{root}/namespaces/default/{plural}/{name}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
    }
}

/// Reaches the one cluster that there is, whatever address its kubeconfig names.
struct InProcess(Client);

impl Connect for InProcess {
    fn connect(&self, _: &Access) -> Result<Client, kube::Error> {
        Ok(self.0.clone())
    }
}

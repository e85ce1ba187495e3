//! A whole cluster with Cluster API, and an operator on a clock that the test advances.

use std::fmt;

use fivespot_sim::Contract;
use http::Method;
use jiff::Timestamp;
use kube::Client;
use kubemu_apiserver::{AuditEvent, Server};
use kubemu_clock::Clock;
use serde_json::Value;

use crate::backend::Backend;
use crate::embedded::Embedded;
use crate::name_mapping::NameMapping;
use crate::operator::WORKLOAD;
use crate::path::{machine_path, path_of};
use crate::request::{self, Form};
use crate::rights::OPERATOR;
use crate::shared_cluster::{MAX_POLLS, POLL_INTERVAL, SharedCluster};
use crate::traffic::Traffic;
use crate::workload;

/// A cluster with the ScheduledMachine CRD, its policy and binding, and a Cluster API, on the
/// [`Backend`] of the run. The test's own part ends when it is dropped.
///
/// On a real cluster, Nodes and the objects on them are on a separate server. A test does not
/// need to distinguish the servers, unless it needs an object there whose kind both have: see
/// [`apply_to_workload`](Self::apply_to_workload).
///
/// On every backend, a test uses the namespace `default`, and names Nodes like their Machines.
/// Requests are translated to the actual names. Responses are not translated.
pub struct Cluster {
    clock: Clock,
    contract: Contract,
    kube_minor: u32,
    client: Client,
    /// The client for the workload cluster.
    workload: Client,
    names: NameMapping,
    backend: BackendState,
}

#[derive(Debug)]
pub(crate) enum BackendState {
    Embedded(Embedded),
    Kubernetes(KubernetesBackend),
}

/// The test's own part of a real cluster.
pub(crate) struct KubernetesBackend {
    pub(crate) traffic: Traffic,
    /// A client with the operator's rights.
    pub(crate) operator: Client,
}

impl fmt::Debug for KubernetesBackend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.traffic.fmt(formatter)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Cluster")
            .field("clock", &self.clock)
            .field("contract", &self.contract)
            .field("names", &self.names)
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a panic fails the test"
)]
impl Cluster {
    /// A cluster whose operator's clock is stopped at `now`, with the newest contract of
    /// Cluster API that the backend supports.
    pub async fn start(now: Timestamp) -> Self {
        Self::with_contract(now, Contract::V1Beta2).await
    }

    /// As [`start`](Self::start), with a given contract where it can be chosen: a real Cluster
    /// API determines its own.
    pub async fn with_contract(now: Timestamp, contract: Contract) -> Self {
        let clock = Clock::stopped_at(now);
        match Backend::chosen() {
            Backend::Embedded => Self::on_embedded(clock, contract, 0).await,
            Backend::Kubernetes => Self::kubernetes(clock).await,
        }
    }

    /// An embedded cluster whose uids and generated names are derived from `seed`.
    pub async fn seeded(now: Timestamp, seed: u64) -> Self {
        Self::on_embedded(Clock::stopped_at(now), Contract::V1Beta2, seed).await
    }

    async fn on_embedded(clock: Clock, contract: Contract, seed: u64) -> Self {
        let embedded = Embedded::start(&clock, contract, seed).await;
        let client = Client::new(embedded.server.in_process(), "default");
        Self {
            workload: client.clone(),
            client,
            clock,
            contract,
            kube_minor: kubemu_apiserver::KubeVersion::default().minor(),
            names: NameMapping::default(),
            backend: BackendState::Embedded(embedded),
        }
    }

    /// The real cluster, whatever the backend of the run, with the system clock for the
    /// operator: for programs that measure. Functions that wait by advancing the clock do not
    /// work on it.
    pub async fn live() -> Self {
        Self::kubernetes(Clock::system()).await
    }

    async fn kubernetes(clock: Clock) -> Self {
        let shared = SharedCluster::get().await;
        let client = shared.management().admin();
        let namespace = shared.add_namespace(&client, "e2e").await;
        let names = NameMapping::in_namespace(&namespace, shared.providers());
        Self {
            backend: BackendState::Kubernetes(KubernetesBackend {
                traffic: Traffic::new(clock.clone(), names.suffix().to_owned()),
                operator: shared.operator(),
            }),
            clock,
            contract: shared.contract(),
            kube_minor: shared.kube_minor(),
            client,
            workload: shared.workload().admin(),
            names,
        }
    }

    /// Another cluster, for use as the workload cluster of this one: an embedded server on the
    /// same clock, whatever the backend.
    pub async fn another(&self) -> Self {
        let contract = Contract::V1Beta2;
        Self::on_embedded(self.clock.clone(), contract, 0).await
    }

    /// Creates the namespace with the test's name `name`. Call it before the operator that
    /// handles it is started.
    pub async fn add_namespace(&self, name: &str) {
        match &self.backend {
            BackendState::Embedded(_) => {
                let object = serde_json::json!({
                    "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
                });
                self.apply(&object).await;
            }
            BackendState::Kubernetes(_) => {
                let shared = SharedCluster::get().await;
                let prefix = self.names.namespace("default");
                let namespace = shared.add_namespace(&self.client, &prefix).await;
                self.names.add_namespace(name, &namespace);
            }
        }
    }

    /// The clock of the operator, and of all else in this process.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The embedded API server.
    ///
    /// # Panics
    /// On another backend.
    pub fn server(&self) -> &Server {
        match &self.backend {
            BackendState::Embedded(embedded) => &embedded.server,
            BackendState::Kubernetes(_) => panic!("this needs the embedded server"),
        }
    }

    /// The contract version of the Cluster API.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    pub(crate) fn backend(&self) -> &BackendState {
        &self.backend
    }

    pub(crate) fn names(&self) -> &NameMapping {
        &self.names
    }

    /// A client with all permissions.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client with all permissions in the workload cluster.
    pub(crate) fn workload(&self) -> &Client {
        &self.workload
    }

    /// The client for the objects at `path`.
    fn client_at(&self, path: &str) -> &Client {
        if workload::is_workload_path(path) {
            &self.workload
        } else {
            &self.client
        }
    }

    /// Creates or updates an object as `kubectl apply --server-side` does.
    pub async fn apply(&self, object: &Value) {
        if let Err(error) = self.try_apply(object).await {
            panic!("{object}: {error}");
        }
    }

    /// As [`apply`](Self::apply), but returns a rejection.
    ///
    /// # Errors
    /// The server rejects the object.
    pub async fn try_apply(&self, object: &Value) -> Result<Value, kube::Error> {
        let object = self.names.object(object);
        request::apply(self.client_at(&path_of(&object)), &object).await
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
    /// The server rejects the object.
    pub async fn create(&self, object: &Value) -> Result<Value, kube::Error> {
        self.post(object, "").await
    }

    /// Creates the object of a YAML text.
    ///
    /// # Errors
    /// The server rejects the object.
    pub async fn try_create_yaml(&self, text: &str) -> Result<Value, kube::Error> {
        let object = serde_saphyr::from_str(text).expect("YAML");
        self.create(&object).await
    }

    /// Sends a create as a dry run.
    ///
    /// # Errors
    /// The server rejects the object.
    pub async fn dry_run(&self, object: &Value) -> Result<Value, kube::Error> {
        self.post(object, "?dryRun=All").await
    }

    async fn post(&self, object: &Value, query: &str) -> Result<Value, kube::Error> {
        let object = self.names.object(object);
        let path = path_of(&object);
        let collection = path
            .rsplit_once('/')
            .map_or("", |(collection, _)| collection);
        let path = format!("{collection}{query}");
        let client = self.client_at(&path);
        request::send(client, Method::POST, &path, (Form::Json, &object)).await
    }

    /// Updates an object by a merge patch.
    pub async fn patch(&self, path: &str, patch: &Value) -> Value {
        self.try_patch(path, patch)
            .await
            .expect("the patch is accepted")
    }

    /// As [`patch`](Self::patch), but returns a rejection.
    ///
    /// # Errors
    /// The server rejects the patch.
    pub async fn try_patch(
        &self,
        path: &str,
        patch: &Value,
    ) -> Result<Value, kube::Error> {
        self.send(Method::PATCH, path, (Form::Merge, patch)).await
    }

    /// As [`patch`](Self::patch), retried until it is accepted: a change of the admission of a
    /// real server takes effect with a delay.
    pub async fn patch_once_admitted(&self, path: &str, patch: &Value) {
        let is_accepted = async || self.try_patch(path, patch).await.is_ok();
        self.eventually(is_accepted).await;
    }

    /// Polls until `holds` is true, without advancing the operator's clock.
    pub async fn eventually(&self, holds: impl AsyncFn() -> bool) {
        for _ in 0..MAX_POLLS {
            if holds().await {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        panic!("the expected state was not reached");
    }

    /// The minor version of the API server's Kubernetes 1.
    pub fn kube_minor(&self) -> u32 {
        self.kube_minor
    }

    /// Deletes the object at `path`.
    pub async fn delete(&self, path: &str) {
        self.delete_with(path, &Value::Null).await;
    }

    /// Deletes the object at `path` with `options`, the fields of a DeleteOptions.
    pub async fn delete_with(&self, path: &str, options: &Value) {
        self.send(Method::DELETE, path, (Form::Json, options))
            .await
            .expect("the deletion is accepted");
    }

    /// The items of the list at `path`; empty if the resource is not served.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.unwrap_or(Value::Null);
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// The object or list at `path`, if it exists.
    pub async fn get(&self, path: &str) -> Option<Value> {
        match self
            .send(Method::GET, path, (Form::Json, &Value::Null))
            .await
        {
            Ok(found) => Some(found),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// The table of the objects at `path`, as `kubectl get` shows it.
    ///
    /// # Errors
    /// The server rejects the request.
    pub async fn table(&self, path: &str) -> Result<Value, kube::Error> {
        let path = self.names.path(path);
        request::table(self.client_at(&path), &path).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: (Form, &Value),
    ) -> Result<Value, kube::Error> {
        let path = self.names.path(path);
        request::send(self.client_at(&path), method, &path, body).await
    }

    /// Waits until the cluster is idle, so that the clock may be advanced.
    ///
    /// In this process that is exact. For a real cluster only its traffic with the operator is
    /// observed, so there it means that there was none for a while. Wait for expected changes
    /// with [`wait_for`](Self::wait_for); the absence of a change may be checked after this
    /// returns.
    pub async fn settle(&self) {
        match &self.backend {
            BackendState::Embedded(_) => self.clock.wait_until_idle().await,
            BackendState::Kubernetes(real) => real.traffic.settle().await,
        }
    }

    /// Advances the clock until `to`; all that is due on the way runs on time.
    pub async fn advance_until(&self, to: Timestamp) {
        loop {
            self.settle().await;
            if self.clock.advance_to_next(to).await.is_none() {
                break;
            }
        }
        self.clock.advance_to(to).await;
        self.settle().await;
    }

    /// Advances the clock until `holds` is true for the object at `path` (`null` while it does
    /// not exist), and returns the object. The clock is advanced only while the cluster is
    /// idle.
    ///
    /// Panics with the object if that is not the case by `limit`.
    pub async fn wait_for(
        &self,
        path: &str,
        limit: Timestamp,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut polls = 0;
        loop {
            self.clock.wait_until_idle().await;
            let object = self.get(path).await.unwrap_or(Value::Null);
            if holds(&object) {
                return object;
            }
            let has_moved = match &self.backend {
                BackendState::Kubernetes(real) if !real.traffic.is_settled() => false,
                _ => self.clock.advance_to_next(limit).await.is_some(),
            };
            polls = if has_moved { 0 } else { polls + 1 };
            match &self.backend {
                BackendState::Embedded(_) => {
                    assert!(has_moved, "{path} by {limit}: {object:#}");
                }
                BackendState::Kubernetes(_) => {
                    assert!(polls < MAX_POLLS, "{path} by {limit}: {object:#}");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    /// Waits until there is no object at `path`.
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

    /// The paths of the bootstrap object, the infrastructure object and the Machine of the
    /// ScheduledMachine `name` in namespace `default`, if they have the kinds of
    /// [`scheduled_machine`](crate::scheduled_machine).
    pub fn owned_paths(&self, name: &str) -> [String; 3] {
        let machines = self.contract.api_version();
        [
            ("bootstrap.cluster.x-k8s.io/v1beta1", "k0sworkerconfigs"),
            ("infrastructure.cluster.x-k8s.io/v1beta1", "remotemachines"),
            (machines, "machines"),
        ]
        .map(|(version, plural)| {
            format!("/apis/{version}/namespaces/default/{plural}/{name}")
        })
    }

    /// Every request so far, in the order of the responses; on a real cluster only those of the
    /// operator.
    pub fn requests(&self) -> Vec<AuditEvent> {
        match &self.backend {
            BackendState::Embedded(embedded) => embedded.requests(),
            BackendState::Kubernetes(real) => {
                self.names.providers().own_requests(real.traffic.events())
            }
        }
    }

    /// The audit log of a real API server for the operator in this test's namespaces, one audit
    /// event each. Empty on the embedded backend, where [`requests`](Self::requests) returns
    /// them.
    pub async fn audit(&self) -> Vec<Value> {
        match &self.backend {
            BackendState::Embedded(_) => Vec::new(),
            BackendState::Kubernetes(_) => SharedCluster::get()
                .await
                .audit(OPERATOR, &self.names.namespaces()),
        }
    }

    /// Every write request of the operator so far, except those for Events.
    pub fn operator_writes(&self) -> Vec<AuditEvent> {
        self.requests_of_operator(|event| event.is_write() && event.resource != "events")
    }

    /// The write requests of the operator so far for `resource` (`pods/eviction`, `machines`):
    /// `<time> <verb> <name> <code>`, in order.
    pub fn operator_writes_to(&self, resource: &str) -> Vec<String> {
        let of = |event: &AuditEvent| match event.subresource.as_str() {
            "" => event.resource.clone(),
            subresource => format!("{}/{subresource}", event.resource),
        };
        self.requests_of_operator(|event| event.is_write() && of(event) == resource)
            .iter()
            .map(|event| {
                let name = self.names.test_name(&event.name);
                format!("{} {} {name} {}", event.at, event.verb, event.code)
            })
            .collect()
    }

    /// Every request of the operator so far.
    pub fn operator_requests(&self) -> Vec<AuditEvent> {
        self.requests_of_operator(|_| true)
    }

    fn requests_of_operator(
        &self,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Vec<AuditEvent> {
        self.requests()
            .into_iter()
            .filter(|event| [OPERATOR, WORKLOAD].contains(&event.user.as_str()))
            .filter(wanted)
            .collect()
    }
}

//! A namespace of the real cluster, with an operator that looks after it alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fivespot_clock::Clock;
use fivespot_controller::{Namespaces, Options, run};
use fivespot_testkit::{BEFORE_CLOSING, instant, path_of};
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Real time between two looks at the cluster; the operator's clock moves as far.
const TICK: Duration = Duration::from_millis(100);
/// How many looks something may take to come true: two minutes.
const PATIENCE: u32 = 1200;

/// A namespace of its own in the real cluster. Its name is also that of the
/// ScheduledMachine in it, because Nodes have no namespace.
pub(crate) struct Real {
    client: Client,
    clock: Clock,
    namespace: String,
    operator: JoinHandle<()>,
}

impl Drop for Real {
    fn drop(&mut self) {
        self.operator.abort();
    }
}

impl Real {
    /// Makes a namespace with a Cluster in it that is up, and starts an operator whose
    /// clock stands shortly before the closing of the usual window.
    pub(crate) async fn start() -> Self {
        let client = client().await;
        install(&client).await;
        let named = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "e2e-"}});
        let named = send(&client, Method::POST, "/api/v1/namespaces", &named)
            .await
            .expect("a namespace");
        let namespace = named["metadata"]["name"].as_str().unwrap_or_default();
        let clock = Clock::stopped_at(instant(BEFORE_CLOSING));
        let mut options = Options::new(client.clone(), clock.clone());
        options.namespaces = Namespaces::Only(BTreeSet::from([namespace.to_owned()]));
        let operator = tokio::spawn(async move { match run(options).await {} });
        let real = Self {
            client,
            clock,
            namespace: namespace.to_owned(),
            operator,
        };
        real.create(&json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "production-cluster"},
            "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}}},
        }))
        .await;
        real
    }

    /// The namespace, and the name of the ScheduledMachine in it.
    pub(crate) fn name(&self) -> &str {
        &self.namespace
    }

    /// Where an object of this namespace is, by its kind in lower case.
    pub(crate) fn path(&self, api_version: &str, kind: &str, name: &str) -> String {
        path_of(&json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
        }))
    }

    /// The ScheduledMachine of this namespace.
    pub(crate) fn machine_path(&self) -> String {
        let name = self.name();
        self.path("5spot.finos.org/v1alpha1", "ScheduledMachine", name)
    }

    /// Bootstrap object, infrastructure object, Machine, and the Node.
    pub(crate) fn children(&self) -> [String; 4] {
        let name = self.name();
        [
            ("bootstrap.cluster.x-k8s.io/v1beta1", "K0sWorkerConfig"),
            ("infrastructure.cluster.x-k8s.io/v1beta1", "RemoteMachine"),
            ("cluster.x-k8s.io/v1beta2", "Machine"),
            ("v1", "Node"),
        ]
        .map(|(version, kind)| self.path(version, kind, name))
    }

    /// Creates an object in this namespace. What the server's own controllers put into a
    /// namespace may still be on its way, so a refusal is waited out.
    pub(crate) async fn create(&self, object: &Value) {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(self.namespace);
        let path = path_of(&object);
        let collection = path
            .rsplit_once('/')
            .map_or("", |(collection, _)| collection);
        let mut refused = None;
        for _ in 0..PATIENCE {
            match send(&self.client, Method::POST, collection, &object).await {
                Ok(_) => return,
                Err(error) => refused = Some(error),
            }
            self.tick().await;
        }
        panic!("{path}: {refused:?}");
    }

    /// Changes the object at `path` by a merge patch.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) {
        send(&self.client, Method::PATCH, path, patch)
            .await
            .expect("the patch is accepted");
    }

    /// Deletes the object at `path` with `options`, the fields of a DeleteOptions.
    pub(crate) async fn delete(&self, path: &str, options: &Value) {
        send(&self.client, Method::DELETE, path, options)
            .await
            .expect("the deletion is accepted");
    }

    /// The object at `path`; `null` where there is none.
    pub(crate) async fn get(&self, path: &str) -> Value {
        match send(&self.client, Method::GET, path, &Value::Null).await {
            Ok(object) => object,
            Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Lets the operator's clock pass to `to` at once; what is due is done.
    pub(crate) async fn pass_to(&self, to: Timestamp) {
        self.clock.advance_to(to).await;
    }

    /// Waits until `holds` of the object at `path` (`null` while it is not there).
    pub(crate) async fn wait_for(
        &self,
        path: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut object = Value::Null;
        for _ in 0..PATIENCE {
            object = self.get(path).await;
            if holds(&object) {
                return object;
            }
            self.tick().await;
        }
        panic!("{path}: {object:#}");
    }

    pub(crate) async fn wait_for_phase(&self, phase: &str) -> Value {
        let path = self.machine_path();
        self.wait_for(&path, |object| object["status"]["phase"] == phase)
            .await
    }

    pub(crate) async fn wait_until_gone(&self, path: &str) {
        self.wait_for(path, Value::is_null).await;
    }

    /// Lets real time and the operator's clock pass together.
    async fn tick(&self) {
        tokio::time::sleep(TICK).await;
        let tick = SignedDuration::try_from(TICK).unwrap_or_default();
        let to = self.clock.now().saturating_add(tick);
        self.clock.advance_to(to.expect("a time in range")).await;
    }
}

/// A client for the cluster that the project's own task started: never for one that a
/// person's environment names, because promises delete things.
async fn client() -> Client {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), PathBuf::from);
    let path = target.join("cluster/run/admin.kubeconfig");
    let kubeconfig = Kubeconfig::read_from(&path)
        .expect("a running cluster; `cargo xtask cluster up` starts one");
    let choice = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &choice)
        .await
        .expect("a kubeconfig that names one cluster");
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

/// Applies what a production cluster is given: the definition, its policy and the binding.
async fn install(client: &Client) {
    let objects = [
        fivespot_api::crd::render(36),
        fivespot_api::vap::policy(),
        fivespot_api::vap::binding(fivespot_api::vap::Action::Deny),
    ];
    for object in objects {
        let path = format!("{}?fieldManager=e2e&force=true", path_of(&object));
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(path)
            .header("content-type", "application/apply-patch+yaml")
            .body(object.to_string().into_bytes())
            .expect("a request");
        let applied: Value = client.request(request).await.expect("is applied");
        assert_eq!(applied["metadata"]["name"], object["metadata"]["name"]);
    }
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let content = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
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
    client.request(request).await
}

//! The real cluster that all tests of a run share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fivespot_sim::Contract;
use http::Method;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::Providers;
use crate::request::{self, Form};
use crate::rights::{self, OPERATOR};

/// The real time between two polls.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of polls.
pub(crate) const MAX_POLLS: u32 = 1_800;

static SHARED_CLUSTER: OnceCell<SharedCluster> = OnceCell::const_new();

/// An API server of the real cluster.
#[derive(Debug)]
pub(crate) struct Server {
    admin: Config,
    /// The text of the kubeconfig of `admin`.
    kubeconfig: String,
}

#[expect(clippy::expect_used, reason = "a panic fails the test")]
impl Server {
    /// The server of an administrator's kubeconfig.
    async fn of(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .expect("a running cluster; `cargo xtask cluster up` starts one");
        let kubeconfig = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
        let choice = KubeConfigOptions::default();
        let mut admin = Config::from_custom_kubeconfig(kubeconfig, &choice)
            .await
            .expect("a kubeconfig that names one cluster");
        admin.default_retry = false;
        Self {
            admin,
            kubeconfig: text,
        }
    }

    /// The text of a kubeconfig with all permissions.
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A client with all permissions.
    pub(crate) fn admin(&self) -> Client {
        Client::try_from(self.admin.clone()).expect("a client")
    }

    /// A client with the permissions of a token, and no others.
    pub(crate) fn with_token(&self, token: &str) -> Client {
        let mut config = self.admin.clone();
        config.auth_info = AuthInfo {
            token: Some(token.to_owned().into()),
            ..AuthInfo::default()
        };
        Client::try_from(config).expect("a client")
    }
}

/// The properties of the real cluster, determined once.
#[derive(Debug)]
pub struct SharedCluster {
    /// The server of ScheduledMachines and Machines.
    management: Server,
    /// The server of Nodes.
    workload: Server,
    /// The operator's token.
    operator: String,
    audit: PathBuf,
    contract: Contract,
    kube_minor: u32,
    kubernetes: String,
    cluster_api: String,
    providers: Providers,
}

#[expect(clippy::expect_used, reason = "a panic fails the test")]
impl SharedCluster {
    /// The running cluster that `cargo xtask cluster up` has started, with the CRD, its policy
    /// and binding applied. It never uses the kubeconfig of the environment, because tests
    /// delete objects.
    ///
    /// # Panics
    /// If none runs, or if it rejects the manifests.
    pub async fn get() -> &'static Self {
        SHARED_CLUSTER.get_or_init(Self::prepare).await
    }

    async fn prepare() -> Self {
        let run = run_directory();
        let management = Server::of(&run.join("admin.kubeconfig")).await;
        let client = management.admin();
        let version = get(&client, "/version").await;
        let minor = version["minor"]
            .as_str()
            .and_then(|minor| minor.parse().ok());
        let minor = minor.expect("the server's minor version");
        install(&client, minor).await;
        let group = get(&client, "/apis/cluster.x-k8s.io").await;
        let served = group["versions"].as_array().into_iter().flatten();
        let served = served.filter_map(|of| of["version"].as_str());
        let contract = Contract::choose(served).expect("a Cluster API");
        let versions =
            std::fs::read_to_string(run.join("versions.json")).expect("versions");
        let versions: Value = serde_json::from_str(&versions).expect("JSON");
        let named = |what: &str| versions[what].as_str().unwrap_or_default().to_owned();
        let providers = Providers::called(&named("providers"));
        let operator = Self::register_operator(&client, providers).await;
        Self {
            management,
            workload: Server::of(&run.join("workload-admin.kubeconfig")).await,
            operator,
            audit: run.join("audit.log"),
            kube_minor: minor,
            contract,
            kubernetes: named("kubernetes"),
            cluster_api: named("clusterAPI"),
            providers,
        }
    }

    /// Creates the operator's ServiceAccount and its cluster-wide roles, and requests a token.
    async fn register_operator(client: &Client, providers: Providers) -> String {
        for object in rights::account()
            .into_iter()
            .chain(rights::in_namespaces(&[], providers))
        {
            request::apply(client, &object).await.expect("is accepted");
        }
        let home = fivespot_api::name::SYSTEM_NAMESPACE;
        let account = fivespot_api::name::CONTROLLER;
        let path = format!("/api/v1/namespaces/{home}/serviceaccounts/{account}/token");
        let token_request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        });
        let response =
            request::send(client, Method::POST, &path, (Form::Json, &token_request))
                .await;
        let response = response.expect("a token");
        let token = response["status"]["token"].as_str().unwrap_or_default();
        token.to_owned()
    }

    /// The audit events of a user in some namespaces.
    pub(crate) fn audit(&self, user: &str, namespaces: &[String]) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.audit).expect("an audit log");
        log.lines()
            .filter(|line| line.contains(user))
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["user"]["username"] == user)
            .filter(|event| {
                let namespace = event["objectRef"]["namespace"].as_str();
                namespace.is_none_or(|it| namespaces.iter().any(|own| own == it))
            })
            .collect()
    }

    /// The server of ScheduledMachines and Machines.
    pub(crate) fn management(&self) -> &Server {
        &self.management
    }

    /// The server of Nodes.
    pub(crate) fn workload(&self) -> &Server {
        &self.workload
    }

    /// A client with the operator's permissions.
    pub(crate) fn operator(&self) -> Client {
        self.management.with_token(&self.operator)
    }

    /// The contract version that is used: the newest that Cluster API serves.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    /// Applies the CRD, its policy and binding again after a test has changed them.
    pub async fn restore(&self) {
        install(&self.management.admin(), self.kube_minor).await;
    }

    /// The minor version of Kubernetes 1.
    pub(crate) fn kube_minor(&self) -> u32 {
        self.kube_minor
    }

    /// The minor version of Kubernetes, such as `1.36`.
    pub fn kubernetes(&self) -> &str {
        &self.kubernetes
    }

    /// The providers that create machines.
    pub fn providers(&self) -> Providers {
        self.providers
    }

    /// The minor version of Cluster API, such as `1.14`.
    pub fn cluster_api(&self) -> &str {
        &self.cluster_api
    }

    /// Waits until the operator's permissions in a namespace are in effect.
    async fn wait_for_rights(&self, client: &Client, namespace: &str) {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        for (group, resource) in [
            ("5spot.finos.org", "scheduledmachines"),
            ("cluster.x-k8s.io", "machines"),
            (
                "bootstrap.cluster.x-k8s.io",
                self.providers.plural("k0sworkerconfigs"),
            ),
            ("", "secrets"),
        ] {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": OPERATOR, "resourceAttributes": {
                    "group": group, "resource": resource, "verb": "watch", "namespace": namespace,
                }},
            });
            let mut polls = 0;
            let is_allowed = |response: Value| response["status"]["allowed"] == true;
            while !request::send(client, Method::POST, path, (Form::Json, &review))
                .await
                .is_ok_and(is_allowed)
            {
                polls += 1;
                assert!(polls < MAX_POLLS, "{OPERATOR} may not watch {resource}");
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// Creates a namespace with a new name and the operator's permissions in it, and one of the
    /// same name on the server of Nodes. Waits until pods can run in it.
    pub(crate) async fn add_namespace(&self, client: &Client, prefix: &str) -> String {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"generateName": format!("{prefix}-")},
        });
        let created = loop {
            let body = (Form::Json, &object);
            let path = "/api/v1/namespaces";
            match request::send(client, Method::POST, path, body).await {
                // Five generated letters may collide, and an older server does not retry.
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                created => break created.expect("a namespace"),
            }
        };
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        let workload = self.workload.admin();
        let same = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        request::apply(&workload, &same).await.expect("is accepted");
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        poll_until(&workload, &account, |account| !account.is_null()).await;
        for object in rights::in_namespaces(&[name.to_owned()], self.providers) {
            if object["metadata"]["namespace"] == name {
                request::apply(client, &object).await.expect("is accepted");
            }
        }
        self.wait_for_rights(client, name).await;
        name.to_owned()
    }
}

/// The lifetime of the operator's token: longer than any run.
const TOKEN_SECONDS: u32 = 6 * 60 * 60;

/// The state directory of the running cluster: that of the cluster in `E2E_CLUSTER`, else that
/// of the one without a name.
fn run_directory() -> PathBuf {
    let name = std::env::var("E2E_CLUSTER").ok();
    cluster_directory(name.as_deref().filter(|name| !name.is_empty()))
}

/// The state directory of the cluster of that name, or of the one without a name, of
/// `cargo xtask cluster up`. It exists once that has run.
pub fn cluster_directory(name: Option<&str>) -> PathBuf {
    target_directory().join(match name {
        Some(name) => format!("cluster/run-{name}"),
        None => "cluster/run".to_owned(),
    })
}

/// The folder of what Cargo builds.
pub fn target_directory() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), |target| workspace.join(target))
}

/// Applies the CRD, its policy and binding, and waits until all are in force.
#[expect(clippy::panic, reason = "a panic fails the test")]
async fn install(client: &Client, minor: u32) {
    for object in fivespot_api::manifest::installed(minor) {
        let applied = request::apply(client, &object).await;
        applied.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    // The CRD rejects the first object, only the policy the second.
    let collection =
        "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines?dryRun=All";
    let mut wrong = crate::scheduled_machine("wrong");
    wrong["spec"]["nodeDrainTimeout"] = json!("soon");
    let mut elsewhere = crate::scheduled_machine("elsewhere");
    elsewhere["spec"]["bootstrapSpec"]["namespace"] = json!("elsewhere");
    for object in [wrong, elsewhere] {
        let mut polls = 0;
        let body = (Form::Json, &object);
        while !matches!(
            request::send(client, Method::POST, collection, body).await,
            Err(kube::Error::Api(status)) if status.code == 422
        ) {
            polls += 1;
            assert!(polls < MAX_POLLS, "{object} is admitted");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

async fn get(client: &Client, path: &str) -> Value {
    let response =
        request::send(client, Method::GET, path, (Form::Json, &Value::Null)).await;
    response.unwrap_or(Value::Null)
}

/// Polls `path` until `holds` is true for the object.
#[expect(clippy::panic, reason = "a panic fails the test")]
async fn poll_until(client: &Client, path: &str, holds: impl Fn(&Value) -> bool) {
    let mut object = Value::Null;
    for _ in 0..MAX_POLLS {
        object = get(client, path).await;
        if holds(&object) {
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    panic!("{path}: {object:#}");
}

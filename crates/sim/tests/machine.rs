//! The life cycle of a stand-alone Machine according to Cluster API, in both contract versions.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use fivespot_sim::{Contract, install};
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::{Client, Delete, Options, Server, Status};
use kubemu_clock::Clock;
use serde_json::{Value, json};

const NAMESPACE: &str = "/apis/cluster.x-k8s.io";

struct TestCluster {
    clock: Clock,
    client: Client,
    contract: Contract,
}

impl TestCluster {
    async fn start(contract: Contract) -> Self {
        let now: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
        let clock = Clock::stopped_at(now);
        let server = Server::new(Options {
            // The simulated kubelets report their nodes ready at once.
            disable_plugins: vec!["TaintNodesByCondition".to_owned()],
            ..Options::new(clock.clone())
        });
        let server = server.unwrap();
        let options = fivespot_sim::Options {
            client: server.client(),
            clock: clock.clone(),
            contract,
            kubeconfig: Some("kubeconfig".to_owned()),
        };
        install(&options).await.unwrap();
        tokio::spawn(fivespot_sim::run(options));
        let cluster = Self {
            clock,
            client: server.client(),
            contract,
        };
        let object = json!({
            "apiVersion": cluster.api_version(), "kind": "Cluster",
            "metadata": {"name": "c"}, "spec": {},
        });
        cluster
            .client
            .create(&cluster.path("clusters", ""), object)
            .await
            .unwrap();
        cluster
    }

    fn api_version(&self) -> String {
        self.contract.api_version().to_owned()
    }

    fn path(&self, plural: &str, name: &str) -> String {
        let root = match plural {
            "k0sworkerconfigs" => "/apis/bootstrap.cluster.x-k8s.io/v1beta1".to_owned(),
            "remotemachines" => {
                "/apis/infrastructure.cluster.x-k8s.io/v1beta1".to_owned()
            }
            "pods" => "/api/v1".to_owned(),
            "nodes" => return format!("/api/v1/nodes/{name}"),
            _ => format!("{NAMESPACE}/{}", self.contract.name()),
        };
        let path = format!("{root}/namespaces/default/{plural}/{name}");
        path.trim_end_matches('/').to_owned()
    }

    async fn get(&self, plural: &str, name: &str) -> Result<Value, Status> {
        Ok((*self.client.get(&self.path(plural, name)).await?).clone())
    }

    async fn create_providers(&self, owner: &Value) {
        for (plural, kind, group) in [
            (
                "k0sworkerconfigs",
                "K0sWorkerConfig",
                "bootstrap.cluster.x-k8s.io",
            ),
            (
                "remotemachines",
                "RemoteMachine",
                "infrastructure.cluster.x-k8s.io",
            ),
        ] {
            let object = json!({
                "apiVersion": format!("{group}/v1beta1"),
                "kind": kind,
                "metadata": {"name": "m", "ownerReferences": owner},
                "spec": {"address": "10.0.0.1"},
            });
            self.client
                .create(&self.path(plural, ""), object)
                .await
                .unwrap();
        }
    }

    async fn create_machine(&self) {
        let reference = |kind: &str, group: &str| match self.contract {
            Contract::V1Beta1 => json!({
                "apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": "m",
            }),
            Contract::V1Beta2 => json!({"apiGroup": group, "kind": kind, "name": "m"}),
        };
        let machine = json!({
            "apiVersion": self.api_version(),
            "kind": "Machine",
            "metadata": {"name": "m"},
            "spec": {
                "clusterName": "c",
                "bootstrap": {
                    "configRef": reference("K0sWorkerConfig", "bootstrap.cluster.x-k8s.io"),
                },
                "infrastructureRef": reference("RemoteMachine", "infrastructure.cluster.x-k8s.io"),
            },
        });
        self.client
            .create(&self.path("machines", ""), machine)
            .await
            .unwrap();
    }

    async fn pass(&self, seconds: i64) {
        let to = self.clock.now() + SignedDuration::from_secs(seconds);
        self.clock.advance_to(to).await;
    }
}

#[tokio::test]
async fn a_machine_is_created_with_its_node_and_removed_in_order() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let cluster = TestCluster::start(contract).await;
        cluster.create_providers(&json!([])).await;
        cluster.create_machine().await;
        cluster.pass(60).await;

        let machine = cluster.get("machines", "m").await.unwrap();
        assert_eq!(machine["status"]["phase"], "Running", "{machine:#}");
        assert_eq!(machine["status"]["nodeRef"]["name"], "m");
        assert_eq!(
            machine["spec"]["providerID"],
            "remote-machine://10.0.0.1:22"
        );
        let has_uid = machine["status"]["nodeRef"].get("uid").is_some();
        assert_eq!(has_uid, contract == Contract::V1Beta1);

        cluster
            .client
            .delete(&cluster.path("machines", "m"), &Delete::default())
            .await
            .unwrap();
        cluster.pass(60).await;
        for plural in ["machines", "remotemachines", "k0sworkerconfigs", "nodes"] {
            assert_eq!(
                cluster.get(plural, "m").await.unwrap_err().code,
                404,
                "{plural}"
            );
        }
    }
}

#[tokio::test]
async fn a_machine_that_is_deleted_before_it_has_bootstrap_data_is_removed() {
    let cluster = TestCluster::start(Contract::V1Beta2).await;
    cluster.create_providers(&json!([])).await;
    cluster.create_machine().await;
    // The Machine owns it, and it is not bootstrapped yet.
    cluster.clock.wait_until_idle().await;
    cluster
        .client
        .delete(&cluster.path("machines", "m"), &Delete::default())
        .await
        .unwrap();
    let deleted = cluster.get("machines", "m").await.unwrap();
    assert_eq!(deleted["spec"]["bootstrap"].get("dataSecretName"), None);
    cluster.pass(60).await;
    for plural in ["machines", "remotemachines", "k0sworkerconfigs"] {
        let answer = cluster.get(plural, "m").await.unwrap_err();
        assert_eq!(answer.code, 404, "{plural}");
    }
}

#[tokio::test]
async fn a_bootstrap_object_with_another_controller_blocks_its_machine() {
    let cluster = TestCluster::start(Contract::V1Beta2).await;
    let foreign = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": true,
    }]);
    cluster.create_providers(&foreign).await;
    cluster.create_machine().await;
    cluster.pass(60).await;
    let machine = cluster.get("machines", "m").await.unwrap();
    assert_ne!(machine["status"]["phase"], "Running");
    cluster
        .client
        .delete(&cluster.path("machines", "m"), &Delete::default())
        .await
        .unwrap();
    cluster.pass(600).await;
    assert!(
        cluster.get("machines", "m").await.is_ok(),
        "it cannot be deleted either"
    );
}

#[tokio::test]
async fn an_infrastructure_object_without_a_machine_is_never_removed() {
    let cluster = TestCluster::start(Contract::V1Beta2).await;
    cluster.create_providers(&json!([])).await;
    cluster.pass(60).await;
    let path = cluster.path("remotemachines", "m");
    cluster
        .client
        .delete(&path, &Delete::default())
        .await
        .unwrap();
    cluster.pass(3600).await;
    assert!(cluster.get("remotemachines", "m").await.is_ok());
}

#[tokio::test]
async fn a_paused_cluster_stops_everything() {
    let cluster = TestCluster::start(Contract::V1Beta2).await;
    let path = cluster.path("clusters", "c");
    let paused = kubemu_apiserver::Patch::Merge(json!({"spec": {"paused": true}}));
    cluster.client.patch(&path, paused).await.unwrap();
    cluster.create_providers(&json!([])).await;
    cluster.create_machine().await;
    cluster.pass(60).await;
    let machine = cluster.get("machines", "m").await.unwrap();
    assert_eq!(machine["status"].get("phase"), None);
    let resumed = kubemu_apiserver::Patch::Merge(json!({"spec": {"paused": false}}));
    cluster.client.patch(&path, resumed).await.unwrap();
    cluster.pass(60).await;
    assert_eq!(
        cluster.get("machines", "m").await.unwrap()["status"]["phase"],
        "Running"
    );
}

#[tokio::test]
async fn deleting_a_cluster_deletes_its_machines() {
    let cluster = TestCluster::start(Contract::V1Beta2).await;
    cluster.create_providers(&json!([])).await;
    cluster.create_machine().await;
    cluster.pass(60).await;
    cluster
        .client
        .delete(&cluster.path("clusters", "c"), &Delete::default())
        .await
        .unwrap();
    cluster.pass(120).await;
    assert_eq!(cluster.get("machines", "m").await.unwrap_err().code, 404);
    assert_eq!(cluster.get("clusters", "c").await.unwrap_err().code, 404);
}

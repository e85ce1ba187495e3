//! The agent of emergency reclaim, with the shipped rights and the token of its pod, can write only
//! its annotations of its own Node.

use fivespot_agent::node::{
    Attempt, DesiredAnnotations, Identity, OwnNode, ReclaimRequest, ReportState,
};
use fivespot_api::reclaim::Report;
use fivespot_install::agent::Settings;
use fivespot_testkit::{Cluster, instant, node_path};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(its_own_node_is_annotated_with_the_token_of_its_pod),
    promise!(another_node_is_rejected_whatever_identity_the_agent_claims),
    promise!(a_token_that_names_no_node_writes_to_none),
    promise!(nothing_of_a_node_but_its_own_annotations_is_changed),
    promise!(its_configuration_can_be_read_and_not_written),
    promise!(it_finds_out_whether_it_is_kept_to_its_node),
    promise!(annotations_of_5spot_on_nodes_are_for_those_who_need_them),
];

const ACCOUNT: (&str, &str) = ("5spot-reclaim-agent", "5spot-reclaim-agent");

/// A cluster with the agent's shipped objects, two Nodes, and a pod of the agent on the first Node.
struct AgentFixture {
    cluster: Cluster,
    pod: Value,
}

impl AgentFixture {
    async fn create() -> Self {
        let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
        for document in Settings::default().documents() {
            // Neither backend has a kubelet that runs its image.
            if document["kind"] != "DaemonSet" {
                cluster.apply_to_workload(&document).await;
            }
        }
        for name in ["own", "other"] {
            let node =
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
            cluster.apply(&node).await;
            let status = json!({"status": {"nodeInfo": {"machineID": name}}});
            let path = format!("{}/status", node_path(name));
            cluster.patch(&path, &status).await;
        }
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                // On a shared cluster, the Node belongs to this test only.
                "name": cluster.node_name("agent"),
                "namespace": ACCOUNT.0,
            },
            "spec": {
                "nodeName": "own",
                "serviceAccountName": ACCOUNT.1,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "agent", "image": "5spot-reclaim-agent"}],
            },
        });
        cluster.apply(&pod).await;
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}",
            ACCOUNT.0,
            cluster.node_name("agent")
        );
        let pod = cluster.get(&path).await.expect("the pod");
        let fixture = Self { cluster, pod };
        // A real server takes a moment until a policy is in force.
        let client = fixture.client().await;
        fixture
            .cluster
            .eventually(async || fixture.try_change(&client, labelled()).await.is_err())
            .await;
        fixture
    }

    /// A client with the token of the pod.
    async fn client(&self) -> Client {
        self.cluster.client_of(ACCOUNT, Some(&self.pod)).await
    }

    /// The agent on the Node with this name in the test.
    async fn agent(&self, name: &str) -> OwnNode {
        OwnNode {
            client: self.client().await,
            name: self.cluster.node_name(name),
            identity: Identity::Unchecked,
        }
    }

    /// A dry-run change of the first Node with the rights of `client`.
    async fn try_change(
        &self,
        client: &Client,
        change: Value,
    ) -> Result<Node, kube::Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        let name = self.cluster.node_name("own");
        let params = PatchParams::default().dry_run();
        nodes.patch(&name, &params, &Patch::Merge(change)).await
    }

    async fn end(self) {
        let options = json!({"gracePeriodSeconds": 0});
        let name = self.cluster.node_name("agent");
        let path = format!("/api/v1/namespaces/{}/pods/{name}", ACCOUNT.0);
        self.cluster.delete_with(&path, &options).await;
        for name in ["own", "other"] {
            self.cluster.delete(&node_path(name)).await;
        }
    }
}

fn labelled() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}})
}

fn wanted() -> DesiredAnnotations {
    DesiredAnnotations {
        report: ReportState::Report(Report::accepted("c0ffee")),
        request: Some(ReclaimRequest {
            reason: "process-match: steam".to_owned(),
            at: instant("2026-03-06T15:00:00Z"),
        }),
        account: None,
    }
}

/// The server's message of a refusal, with the Node's name in the test.
fn words(fixture: &AgentFixture, error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    for name in ["own", "other"] {
        text = text.replace(&fixture.cluster.node_name(name), name);
    }
    text
}

async fn its_own_node_is_annotated_with_the_token_of_its_pod() {
    let fixture = AgentFixture::create().await;
    fixture
        .agent("own")
        .await
        .write(&wanted())
        .await
        .expect("annotated");
    let node = fixture
        .cluster
        .get(&node_path("own"))
        .await
        .expect("the Node");
    let annotations = &node["metadata"]["annotations"];
    for (key, value) in [
        ("reclaim-agent", "c0ffee ok"),
        ("reclaim-requested", "true"),
        ("reclaim-reason", "process-match: steam"),
        ("reclaim-requested-at", "2026-03-06T15:00:00.000Z"),
    ] {
        assert_eq!(
            annotations[format!("5spot.finos.org/{key}")],
            value,
            "{key}"
        );
    }
    fixture.end().await;
}

async fn another_node_is_rejected_whatever_identity_the_agent_claims() {
    let fixture = AgentFixture::create().await;
    let refusal = fixture.agent("other").await.write(&wanted()).await;
    insta::assert_snapshot!(
        words(&fixture, &refusal.expect_err("refused")),
        @"nodes \"other\" is forbidden: ValidatingAdmissionPolicy '5spot-reclaim-agent-own-node' with binding '5spot-reclaim-agent-own-node' denied request: the reclaim agent may only annotate the Node that its token names: Forbidden"
    );
    fixture.end().await;
}

async fn a_token_that_names_no_node_writes_to_none() {
    let fixture = AgentFixture::create().await;
    let mut agent = fixture.agent("own").await;
    agent.client = fixture.cluster.client_of(ACCOUNT, None).await;
    let refusal = agent.write(&wanted()).await.expect_err("refused");
    let refusal = words(&fixture, &refusal);
    assert!(
        refusal.contains("may only annotate the Node that its token names"),
        "{refusal}"
    );
    fixture.end().await;
}

async fn nothing_of_a_node_but_its_own_annotations_is_changed() {
    let fixture = AgentFixture::create().await;
    let client = fixture.client().await;
    let taint = json!([{"key": "a", "effect": "NoSchedule"}]);
    let long = "x".repeat(2049);
    for (change, refusal) in [
        (labelled(), "may only change annotations of a Node"),
        (
            json!({"spec": {"unschedulable": true}}),
            "may only change annotations of a Node",
        ),
        (
            json!({"spec": {"taints": taint}}),
            "may only change annotations of a Node",
        ),
        (
            json!({"metadata": {"finalizers": ["a.example/b"]}}),
            "may only change annotations of a Node",
        ),
        (
            json!({"metadata": {"annotations": {"5spot.finos.org/cordoned": "x"}}}),
            "may only change the annotations 5spot.finos.org/reclaim-agent",
        ),
        (
            json!({"metadata": {"annotations": {"5spot.finos.org/reclaim-reason": long}}}),
            "must be at most 2048 characters",
        ),
    ] {
        let error = fixture.try_change(&client, change.clone()).await;
        let error = words(&fixture, &error.expect_err("refused"));
        assert!(error.contains(refusal), "{change}: {error}");
    }
    // An annotation of another owner cannot be removed.
    let foreign = json!({"metadata": {"annotations": {"a.example/b": "c"}}});
    fixture.cluster.patch(&node_path("own"), &foreign).await;
    let away = json!({"metadata": {"annotations": {"a.example/b": null}}});
    let error = fixture
        .try_change(&client, away)
        .await
        .expect_err("refused");
    assert!(words(&fixture, &error).contains("may only change the annotations"));
    // Other users, such as the operator, may make changes that the agent's policy rejects.
    fixture.cluster.patch(&node_path("own"), &labelled()).await;
    // No role allows to delete Nodes or to write their status.
    let nodes: Api<Node> = Api::all(client);
    let own = fixture.cluster.node_name("own");
    let deleted = nodes.delete(&own, &DeleteParams::default()).await;
    assert!(words(&fixture, &deleted.expect_err("refused")).contains("cannot delete"));
    let status = json!({"status": {"nodeInfo": {"machineID": "forged"}}});
    let written = nodes
        .patch_status(&own, &PatchParams::default(), &Patch::Merge(status))
        .await;
    assert!(words(&fixture, &written.expect_err("refused")).contains("nodes/status"));
    fixture.end().await;
}

async fn its_configuration_can_be_read_and_not_written() {
    let fixture = AgentFixture::create().await;
    let client = fixture.client().await;
    let configurations: Api<ConfigMap> =
        Api::namespaced(client.clone(), fivespot_api::name::SYSTEM_NAMESPACE);
    configurations
        .list(&ListParams::default())
        .await
        .expect("read");
    let name = format!("reclaim-agent-{}", fixture.cluster.node_name("own"));
    let config_map = ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some(name),
            ..Default::default()
        },
        ..ConfigMap::default()
    };
    let made = configurations
        .create(&PostParams::default(), &config_map)
        .await;
    assert!(words(&fixture, &made.expect_err("refused")).contains("cannot create"));
    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "kube-system");
    let read = elsewhere.list(&ListParams::default()).await;
    assert!(words(&fixture, &read.expect_err("refused")).contains("cannot list"));
    fixture.end().await;
}

async fn it_finds_out_whether_it_is_kept_to_its_node() {
    let fixture = AgentFixture::create().await;
    let agent = fixture.agent("own").await;
    assert_eq!(agent.try_another().await.expect("asked"), Attempt::Rejected);
    fixture.end().await;
}

/// A user with a role to write Nodes, as a kubelet may write its own.
const KUBELET: (&str, &str) = ("5spot-reclaim-agent", "kubelet");

async fn annotations_of_5spot_on_nodes_are_for_those_who_need_them() {
    let fixture = AgentFixture::create().await;
    for document in kubelet() {
        fixture.cluster.apply_to_workload(&document).await;
    }
    let client = fixture.cluster.client_of(KUBELET, None).await;
    let annotated =
        |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    let is_written = async || {
        let change = annotated("a.example/b", json!("c"));
        fixture.try_change(&client, change).await.is_ok()
    };
    fixture.cluster.eventually(is_written).await;
    let kept = annotated("5spot.finos.org/cordoned", json!("uid"));
    fixture.cluster.patch(&node_path("own"), &kept).await;
    // Annotations of other owners are not restricted, also on a Node with the operator's.
    assert!(is_written().await);
    let is_in_force = async || {
        let change = annotated("5spot.finos.org/applied-taints", json!("[]"));
        fixture.try_change(&client, change).await.is_err()
    };
    fixture.cluster.eventually(is_in_force).await;
    for (key, value) in [
        ("5spot.finos.org/applied-taints", json!("[]")),
        ("5spot.finos.org/reclaim-requested", json!("true")),
        ("5spot.finos.org/cordoned", json!("another")),
        ("5spot.finos.org/cordoned", Value::Null),
    ] {
        let refused = fixture.try_change(&client, annotated(key, value)).await;
        let refused = words(&fixture, &refused.expect_err("refused"));
        assert!(
            refused.contains("by the operator, its agent and cluster administrators"),
            "{key}: {refused}"
        );
    }
    let nodes: Api<Node> = Api::all(client);
    let name = fixture.cluster.node_name("own");
    let status = Patch::Merge(annotated("5spot.finos.org/cordoned", Value::Null));
    let params = PatchParams::default().dry_run();
    let refused = nodes.patch_status(&name, &params, &status).await;
    let refused = words(&fixture, &refused.expect_err("refused"));
    assert!(refused.contains("5spot-node-annotations"), "{refused}");
    for kind in ["clusterrolebindings", "clusterroles"] {
        let path = "/apis/rbac.authorization.k8s.io/v1";
        let path = format!("{path}/{kind}/5spot-test-kubelet");
        fixture.cluster.delete_from_workload(&path).await;
    }
    fixture.end().await;
}

/// A service account with a role to write every Node.
fn kubelet() -> [Value; 3] {
    let rbac = "rbac.authorization.k8s.io";
    let version = "rbac.authorization.k8s.io/v1";
    let name = json!({"name": "5spot-test-kubelet"});
    [
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"namespace": KUBELET.0, "name": KUBELET.1},
        }),
        json!({
            "apiVersion": version,
            "kind": "ClusterRole",
            "metadata": name,
            "rules": [{
                "apiGroups": [""],
                "resources": ["nodes", "nodes/status"],
                "verbs": ["get", "patch"],
            }],
        }),
        json!({
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name["name"]},
            "subjects": [{
                "kind": "ServiceAccount",
                "namespace": KUBELET.0,
                "name": KUBELET.1,
            }],
        }),
    ]
}

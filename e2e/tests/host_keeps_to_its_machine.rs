//! What a thief of a host's kubeconfig can do: annotate the ScheduledMachine and the Node of that
//! host, and nothing else.

use fivespot_agent::node::{Attempt, Identity, OwnNode};
use fivespot_api::name::{
    HOST_FREE_ANNOTATION, HOST_POLICY, RECLAIM_REQUESTED_ANNOTATION,
};
use fivespot_install::agent::Settings;
use fivespot_install::agent::host::{Host, Part, policy};
use fivespot_testkit::{Cluster, instant, machine_path, node_path, scheduled_machine};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_thief_of_its_kubeconfig_can_annotate_its_two_objects),
    promise!(a_thief_of_its_kubeconfig_can_do_nothing_else),
    promise!(a_thief_of_its_kubeconfig_is_refused_every_resource_of_both_clusters),
    promise!(the_records_of_the_operator_do_not_depend_on_the_policy_of_hosts),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const FORGERY: &str = "forge the operator's record";
/// The bodies of requests other than patches.
const NOTHING: Value = Value::Null;

/// The host of a machine, beside another machine and another Node, and its stolen tokens.
struct Theft {
    cluster: Cluster,
    /// For the cluster of the ScheduledMachine.
    management: Client,
    /// For the cluster of the Node.
    workload: Client,
}

impl Theft {
    async fn begin() -> Self {
        let cluster = Cluster::start(instant(IN_WINDOW)).await;
        for document in policy() {
            cluster.apply(&document).await;
            cluster.apply_to_workload(&document).await;
        }
        let theft = Self::in_cluster(cluster).await;
        // A real server takes a moment until a policy is in force.
        let paused = annotated("cluster.x-k8s.io/paused", "true");
        for (client, path) in [
            (&theft.management, machine_path("worker")),
            (&theft.workload, node_path("worker")),
        ] {
            let is_in_force = async || {
                let path = format!("{path}?dryRun=All");
                let refused = theft.ask(client, Method::PATCH, &path, &paused).await;
                refused.contains("5spot-host")
            };
            theft.cluster.eventually(is_in_force).await;
        }
        theft
    }

    /// Does not add the policy of hosts.
    async fn in_cluster(cluster: Cluster) -> Self {
        for document in Settings::default().documents() {
            let is_policy = document["metadata"]["name"] == HOST_POLICY;
            if document["kind"] != "DaemonSet" && !is_policy {
                cluster.apply_to_workload(&document).await;
            }
        }
        for name in ["worker", "other"] {
            cluster.apply(&scheduled_machine(name)).await;
            let node =
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
            cluster.apply(&node).await;
        }
        let mut host = host(&cluster, Part::Management);
        for document in host.documents() {
            cluster.apply(&document).await;
        }
        host.part = Part::Workload;
        for document in host.documents() {
            cluster.apply_to_workload(&document).await;
        }
        let account = (host.namespace.as_str(), &*host.account());
        Self {
            management: cluster.management_client_of(account).await,
            workload: cluster.client_of(account, None).await,
            cluster,
        }
    }

    /// What the server says to a request, with the names of the test.
    async fn ask(
        &self,
        client: &Client,
        method: Method,
        path: &str,
        body: &Value,
    ) -> String {
        let namespace = self.cluster.namespace("default");
        let mut path =
            path.replace("/namespaces/default", &format!("/namespaces/{namespace}"));
        for name in ["worker", "other"] {
            let node = self.cluster.node_name(name);
            path = path.replace(&format!("/nodes/{name}"), &format!("/nodes/{node}"));
            let own = format!("reclaim-agent-{name}");
            path = path.replace(&own, &format!("reclaim-agent-{node}"));
        }
        let kind = if path.contains("fieldManager=") {
            "application/apply-patch+yaml"
        } else if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .body(body)
            .expect("a request");
        let mut text = match client.request::<Value>(request).await {
            Ok(_) => return "allowed".to_owned(),
            Err(kube::Error::Api(status)) => status.message,
            Err(error) => panic!("{error}"),
        };
        // The name of a Node may contain that of the namespace.
        text = text.replace(&self.cluster.node_name("other"), "other");
        for (own, named) in self.cluster.own_names() {
            text = text.replace(&own, &named);
        }
        text
    }

    async fn end(self) {
        for name in ["worker", "other"] {
            self.cluster.delete(&node_path(name)).await;
        }
        let name = format!("5spot-host:{}:worker", self.cluster.namespace("default"));
        for kind in ["clusterrolebindings", "clusterroles"] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{name}");
            self.cluster.delete_from_workload(&path).await;
        }
    }
}

fn host(cluster: &Cluster, part: Part) -> Host {
    Host {
        namespace: cluster.namespace("default"),
        machine: "worker".to_owned(),
        node: cluster.node_name("worker"),
        part,
    }
}

fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

async fn a_thief_of_its_kubeconfig_can_annotate_its_two_objects() {
    let theft = Theft::begin().await;
    let free = annotated(
        HOST_FREE_ANNOTATION,
        "2026-03-06T14:00:00Z 2026-03-06T15:00:00Z",
    );
    let requested = annotated(RECLAIM_REQUESTED_ANNOTATION, "true");
    let named = "?fieldSelector=metadata.name%3D";
    let machines = machine_path("worker");
    let machines = machines.trim_end_matches("/worker");
    let node = theft.cluster.node_name("worker");
    let configurations = "/api/v1/namespaces/5spot-system/configmaps";
    let rows = [
        (
            &theft.management,
            Method::GET,
            machine_path("worker"),
            &NOTHING,
        ),
        (
            &theft.management,
            Method::GET,
            format!("{machines}{named}worker"),
            &NOTHING,
        ),
        (
            &theft.management,
            Method::PATCH,
            machine_path("worker"),
            &free,
        ),
        (&theft.workload, Method::GET, node_path("worker"), &NOTHING),
        (
            &theft.workload,
            Method::GET,
            format!("/api/v1/nodes{named}{node}"),
            &NOTHING,
        ),
        (
            &theft.workload,
            Method::PATCH,
            node_path("worker"),
            &requested,
        ),
        (
            &theft.workload,
            Method::GET,
            format!("{configurations}{named}reclaim-agent-worker"),
            &NOTHING,
        ),
    ];
    for (client, method, path, body) in rows {
        let words = theft.ask(client, method.clone(), &path, body).await;
        assert_eq!(words, "allowed", "{method} {path}");
    }
    // The agent with this identity finds out that it is kept to its Node, whether that exists or not.
    let agent = OwnNode {
        client: theft.workload.clone(),
        name: node,
        identity: Identity::Unchecked,
    };
    assert_eq!(agent.try_another().await.expect("asked"), Attempt::Rejected);
    theft.end().await;
}

async fn a_thief_of_its_kubeconfig_can_do_nothing_else() {
    let theft = Theft::begin().await;
    let (machine, other) = (machine_path("worker"), machine_path("other"));
    let machines = machine.trim_end_matches("/worker");
    let node = node_path("worker");
    let free = annotated(
        HOST_FREE_ANNOTATION,
        "2026-03-06T14:00:00Z 2026-03-06T15:00:00Z",
    );
    let requested = annotated(RECLAIM_REQUESTED_ANNOTATION, "true");
    let spec = json!({"spec": {"killSwitch": true}});
    let status = json!({"status": {"phase": "Active"}});
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let owner = json!({"metadata": {"finalizers": ["a.example/b"]}});
    let owned = json!({"metadata": {"managedFields": [{
        "manager": "gitops", "operation": "Apply",
        "apiVersion": "5spot.finos.org/v1alpha1", "time": IN_WINDOW,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:killSwitch": {}}},
    }]}});
    // Its value is the present one, so that nothing changes but who owns it.
    let applied = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": "worker"},
        "spec": {"clusterName": scheduled_machine("worker")["spec"]["clusterName"]},
    });
    let long = annotated(RECLAIM_REQUESTED_ANNOTATION, &"x".repeat(2049));
    let overriding = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": "run"},
        "spec": {"mode": "Run", "endTime": "2026-03-06T20:00:00Z",
                 "target": {"names": ["worker"]}},
    });
    let namespaced = "/api/v1/namespaces/default";
    let account = format!("{namespaced}/serviceaccounts/5spot-host-worker/token");
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                       "spec": {"expirationSeconds": 3600}});
    let (at, of) = (&theft.management, &theft.workload);
    let rows = [
        ("change its spec", at, Method::PATCH, machine.clone(), &spec),
        (
            "pause it",
            at,
            Method::PATCH,
            machine.clone(),
            &annotated("cluster.x-k8s.io/paused", "true"),
        ),
        ("label it", at, Method::PATCH, machine.clone(), &label),
        (
            "keep it from being deleted",
            at,
            Method::PATCH,
            machine.clone(),
            &owner,
        ),
        (
            "give its fields to another manager",
            at,
            Method::PATCH,
            machine.clone(),
            &owned,
        ),
        (
            "apply its spec as another manager",
            at,
            Method::PATCH,
            format!("{machine}?fieldManager=gitops&force=true"),
            &applied,
        ),
        (
            "write its status",
            at,
            Method::PATCH,
            format!("{machine}/status"),
            &status,
        ),
        ("delete it", at, Method::DELETE, machine.clone(), &NOTHING),
        (
            "read another machine",
            at,
            Method::GET,
            other.clone(),
            &NOTHING,
        ),
        (
            "report for another machine",
            at,
            Method::PATCH,
            other,
            &free,
        ),
        (
            "list all machines",
            at,
            Method::GET,
            machines.to_owned(),
            &NOTHING,
        ),
        (
            "run it by an override",
            at,
            Method::POST,
            machines.replace("scheduledmachines", "scheduleoverrides"),
            &overriding,
        ),
        (
            "read Secrets",
            at,
            Method::GET,
            format!("{namespaced}/secrets"),
            &NOTHING,
        ),
        ("renew its token", at, Method::POST, account, &token),
        (
            "reclaim another Node",
            of,
            Method::PATCH,
            node_path("other"),
            &requested,
        ),
        ("label its Node", of, Method::PATCH, node.clone(), &label),
        (
            "taint its Node",
            of,
            Method::PATCH,
            node.clone(),
            &json!({"spec": {"unschedulable": true}}),
        ),
        (
            FORGERY,
            of,
            Method::PATCH,
            node.clone(),
            &annotated("5spot.finos.org/cordoned", "uid"),
        ),
        ("fill its Node", of, Method::PATCH, node.clone(), &long),
        (
            "write the status of its Node",
            of,
            Method::PATCH,
            format!("{node}/status"),
            &status,
        ),
        ("delete its Node", of, Method::DELETE, node, &NOTHING),
        (
            "list all Nodes",
            of,
            Method::GET,
            "/api/v1/nodes".to_owned(),
            &NOTHING,
        ),
        (
            "read pods",
            of,
            Method::GET,
            "/api/v1/pods".to_owned(),
            &NOTHING,
        ),
        (
            "read the commands of another host",
            of,
            Method::GET,
            "/api/v1/namespaces/5spot-system/configmaps/reclaim-agent-other".to_owned(),
            &NOTHING,
        ),
    ];
    let mut answers = Vec::new();
    for (what, client, method, path, body) in rows {
        let words = theft.ask(client, method, &path, body).await;
        if what == FORGERY {
            // Two policies refuse it, and a server names the one that was faster.
            assert!(words.contains("denied request: "), "{words}");
            continue;
        }
        answers.push(format!("{what}: {words}"));
    }
    insta::assert_snapshot!(answers.join("\n"));
    theft.end().await;
}

/// What every user may ask about themselves.
const ABOUT_ONESELF: [&str; 3] = [
    "selfsubjectreviews",
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
];

/// A request for each verb that a resource has, except for watches, with the verb.
fn requests(version: &str, resource: &Value) -> Vec<(String, Method, String)> {
    let text = |field: &str| resource[field].as_str().unwrap_or_default();
    let (plural, part) = text("name").split_once('/').unwrap_or((text("name"), ""));
    let root = match version {
        "v1" => "/api/v1".to_owned(),
        _ => format!("/apis/{version}"),
    };
    let namespace = match resource["namespaced"].as_bool() {
        Some(true) => "/namespaces/default",
        _ => "",
    };
    let all = format!("{root}{namespace}/{plural}");
    let one = match part {
        "" => format!("{all}/nobody"),
        part => format!("{all}/nobody/{part}"),
    };
    let created = if part.is_empty() { &all } else { &one };
    let requests = [
        ("list", Method::GET, &all),
        ("deletecollection", Method::DELETE, &all),
        ("create", Method::POST, created),
        ("get", Method::GET, &one),
        ("update", Method::PUT, &one),
        ("patch", Method::PATCH, &one),
        ("delete", Method::DELETE, &one),
    ];
    let verbs = resource["verbs"].as_array().cloned().unwrap_or_default();
    requests
        .into_iter()
        .filter(|(verb, ..)| verbs.iter().any(|it| it == verb))
        .map(|(verb, method, path)| (verb.to_owned(), method, path.clone()))
        .collect()
}

/// The resources that a server has, each with its group and version.
async fn resources(client: &Client) -> Vec<(String, Value)> {
    let read = async |path: String| {
        let request = http::Request::get(path)
            .body(Vec::new())
            .expect("a request");
        client.request::<Value>(request).await.expect("discovery")
    };
    let groups = read("/apis".to_owned()).await;
    let groups = groups["groups"].as_array().cloned().unwrap_or_default();
    let versions = groups
        .iter()
        .filter_map(|group| group["versions"].as_array());
    let versions = versions.flatten().map(|it| it["groupVersion"].clone());
    let versions = versions.filter_map(|it| it.as_str().map(str::to_owned));
    let mut found = Vec::new();
    for version in std::iter::once("v1".to_owned()).chain(versions) {
        let path = match version.as_str() {
            "v1" => "/api/v1".to_owned(),
            version => format!("/apis/{version}"),
        };
        let listed = read(path).await;
        let all = listed["resources"].as_array().cloned().unwrap_or_default();
        found.extend(all.into_iter().map(|it| (version.clone(), it)));
    }
    found
}

async fn a_thief_of_its_kubeconfig_is_refused_every_resource_of_both_clusters() {
    let theft = Theft::begin().await;
    let body = json!({});
    let mut refused = 0;
    for client in [&theft.management, &theft.workload] {
        for (version, resource) in resources(client).await {
            let name = resource["name"].as_str().unwrap_or_default();
            if ABOUT_ONESELF.contains(&name) {
                continue;
            }
            for (verb, method, path) in requests(&version, &resource) {
                let words = theft.ask(client, method, &path, &body).await;
                let wanted = format!(
                    "User \"system:serviceaccount:default:5spot-host-worker\" cannot {verb} \
                     resource \"{name}\""
                );
                assert!(words.contains(&wanted), "{verb} {path}: {words}");
                refused += 1;
            }
        }
    }
    assert!(refused > 500, "{refused}");
    theft.end().await;
}

async fn the_records_of_the_operator_do_not_depend_on_the_policy_of_hosts() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let theft = Theft::in_cluster(cluster).await;
    let path = node_path("worker");
    let requested = annotated(RECLAIM_REQUESTED_ANNOTATION, "true");
    let client = &theft.workload;
    let words = theft.ask(client, Method::PATCH, &path, &requested).await;
    assert_eq!(words, "allowed");
    let forged = annotated("5spot.finos.org/cordoned", "uid");
    let is_refused = async || {
        let words = theft.ask(client, Method::PATCH, &path, &forged).await;
        words.contains("denied request")
    };
    theft.cluster.eventually(is_refused).await;
    theft.end().await;
}

//! The objects that exist when a server has started.

use kubemu_apiserver::{Client, Options, Selector, Server};
use kubemu_clock::Clock;
use serde_json::{Value, json};

use crate::fixture::{options, server};

async fn names(client: &Client, path: &str) -> Vec<String> {
    let list = client.list(path, &Selector::default()).await.unwrap();
    let items = list.items.iter();
    items
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_configuration_of_priority_and_fairness_is_that_of_kubernetes() {
    let server = server();
    let client = server.client();
    let group = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let schemas = names(&client, &format!("{group}/flowschemas")).await;
    assert_eq!(
        schemas.join(" "),
        "catch-all exempt global-default kube-controller-manager kube-scheduler \
         kube-system-service-accounts probes service-accounts system-leader-election \
         system-node-high system-nodes"
    );
    let levels = names(&client, &format!("{group}/prioritylevelconfigurations")).await;
    assert_eq!(
        levels.join(" "),
        "catch-all exempt global-default leader-election node-high system workload-high \
         workload-low"
    );
    for schema in schemas {
        let path = format!("{group}/flowschemas/{schema}");
        let schema = client.get(&path).await.unwrap();
        let level = &schema["spec"]["priorityLevelConfiguration"]["name"];
        assert!(levels.iter().any(|it| level == it.as_str()), "{schema}");
        assert_eq!(schema["status"]["conditions"][0]["status"], "False");
        // What is there satisfies the rules of its kind, and lacks no default.
        let updated = client.update(&path, Value::clone(&schema)).await.unwrap();
        assert_eq!(updated, schema);
    }
}

#[tokio::test]
async fn an_api_service_stands_for_each_version_of_the_built_in_groups() {
    let server = server();
    let client = server.client();
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let services = names(&client, path).await;
    assert_eq!(services.len(), 21, "{services:?}");
    for (name, priorities) in [
        ("v1.", [18_000, 1]),
        ("v1.apps", [17_800, 15]),
        ("v2.autoscaling", [17_500, 30]),
        ("v1.flowcontrol.apiserver.k8s.io", [16_100, 21]),
    ] {
        let service = client.get(&format!("{path}/{name}")).await.unwrap();
        let spec = &service["spec"];
        let found = json!([spec["groupPriorityMinimum"], spec["versionPriority"]]);
        assert_eq!(found, json!(priorities), "{name}");
        assert_eq!(service["status"]["conditions"][0]["reason"], "Local");
    }
}

#[tokio::test]
async fn the_service_of_the_server_has_endpoints_that_nobody_listens_at() {
    let server = server();
    let client = server.client();
    let of = |group: &str, plural: &str| {
        format!("{group}/namespaces/default/{plural}/kubernetes")
    };
    let endpoints = client.get(&of("/api/v1", "endpoints")).await.unwrap();
    assert_eq!(
        endpoints["subsets"],
        json!([{"addresses": [{"ip": "192.0.2.1"}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}])
    );
    let path = of("/apis/discovery.k8s.io/v1", "endpointslices");
    let slice = client.get(&path).await.unwrap();
    assert_eq!(
        slice["endpoints"],
        json!([{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}])
    );
    let path = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
    let network = client.get(path).await.unwrap();
    assert_eq!(network["spec"], json!({"cidrs": ["10.0.0.0/24"]}));
    assert_eq!(network["status"]["conditions"][0]["status"], "True");
}

#[tokio::test]
async fn the_system_priority_classes_exist() {
    let server = server();
    let client = server.client();
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    assert_eq!(
        names(&client, path).await,
        ["system-cluster-critical", "system-node-critical"]
    );
    let path = format!("{path}/system-node-critical");
    assert_eq!(client.get(&path).await.unwrap()["value"], 2_000_001_000);
}

#[tokio::test]
async fn bare_namespaces_have_no_objects_that_a_controller_creates() {
    let mut options = Options::new(Clock::system());
    options.authority = Some("certificate".to_owned());
    options.bare_namespaces = true;
    let server = Server::new(options).unwrap();
    let client = server.client();
    for plural in ["serviceaccounts", "configmaps"] {
        let path = format!("/api/v1/namespaces/default/{plural}");
        assert_eq!(names(&client, &path).await, Vec::<String>::new());
    }
    let service = "/api/v1/namespaces/default/services/kubernetes";
    client.get(service).await.unwrap();
}

#[tokio::test]
async fn servers_that_extend_this_one_find_the_authority_of_client_certificates() {
    let path =
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let missing = server().client().get(path).await.unwrap_err();
    assert_eq!(missing.code, 404);
    let mut options = Options::new(Clock::system());
    options.client_authority = Some("certificate".to_owned());
    let server = Server::new(options).unwrap();
    let found = server.client().get(path).await.unwrap();
    assert_eq!(found["data"], json!({"client-ca-file": "certificate"}));
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

#[tokio::test]
async fn every_role_of_a_new_kubernetes_exists_and_is_bound() {
    let server = server();
    let client = server.client();
    for (plural, count) in [
        ("clusterroles", 69),
        ("clusterrolebindings", 50),
        ("roles", 7),
        ("rolebindings", 7),
    ] {
        let found = names(&client, &format!("{RBAC}/{plural}")).await;
        assert_eq!(found.len(), count, "{plural}: {found:?}");
    }
}

#[tokio::test]
async fn components_of_kubernetes_have_the_rights_of_their_roles_and_no_others() {
    let server = server();
    let client = server.client();
    let account = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    for (user, verb, group, resource, allowed) in [
        ("system:kube-scheduler", "create", "", "pods/binding", true),
        ("system:kube-scheduler", "delete", "", "nodes", false),
        (
            &account("deployment-controller"),
            "update",
            "apps",
            "replicasets",
            true,
        ),
        (
            &account("deployment-controller"),
            "get",
            "",
            "secrets",
            false,
        ),
        (&account("job-controller"), "create", "", "pods", true),
        (&account("unknown"), "create", "", "pods", false),
    ] {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({"apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview", "metadata": {}, "spec": {"user": user,
                "resourceAttributes": {"verb": verb, "group": group, "resource": resource,
                    "subresource": subresource, "namespace": "default"}}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = client.create(path, review).await.unwrap();
        assert_eq!(
            answer["status"]["allowed"], allowed,
            "{user} {verb} {resource}"
        );
    }
}

#[tokio::test]
async fn the_day_from_which_token_secrets_are_tracked_is_that_of_the_start() {
    let start = "2026-03-02T09:00:00Z".parse().unwrap();
    let server = Server::new(Options {
        clock: Clock::stopped_at(start),
        ..options()
    })
    .unwrap();
    let path = "/api/v1/namespaces/kube-system/configmaps/\
                kube-apiserver-legacy-service-account-token-tracking";
    let tracking = server.client().get(path).await.unwrap();
    assert_eq!(tracking["data"], json!({"since": "2026-03-02"}));
}

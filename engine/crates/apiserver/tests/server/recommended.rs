//! The recommended list of the document about admission controllers: the effect of each of its ten
//! plugins with this list, and its absence when only that plugin is disabled.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_apiserver::{Options, Server};
use serde_json::{Value, json};

use crate::fixture::{MAPS, PODS, map, options};
use crate::webhook_server::WebhookServer;

const LINE: [&str; 10] = [
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionWebhook",
    "Priority",
    "ResourceQuota",
    "PodSecurityPolicy",
];

/// A server with the recommended list, without a disabled plugin.
fn server(off: Option<&str>) -> Server {
    let on = LINE.iter().filter(|it| Some(**it) != off);
    let options = Options {
        enable_plugins: on.map(|it| (*it).to_owned()).collect(),
        disable_plugins: off.map(str::to_owned).into_iter().collect(),
        removed_plugins: true,
        ..options()
    };
    Server::new(options).unwrap()
}

/// A pod without fields that a plugin sets.
fn pod(spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}]}});
    json_patch::merge(&mut pod["spec"], &spec);
    pod
}

/// Registers a webhook for config maps that responds with `response`.
async fn hook(server: &Server, kind: &str, response: Value) -> WebhookServer {
    let hook = WebhookServer::start(move |review: &Value| {
        let mut response = response.clone();
        response["uid"] = review["request"]["uid"].clone();
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": response})
    })
    .await;
    let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [{
        "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": hook.by_url("/"),
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"]}]}]});
    let group = "/apis/admissionregistration.k8s.io/v1";
    let path = format!("{group}/{kind}webhookconfigurations");
    server.client().create(&path, configuration).await.unwrap();
    hook
}

/// Sends a request that the plugin affects. Returns whether it was rejected or mutated.
async fn has_effect(server: &Server, plugin: &str) -> bool {
    let client = server.client();
    let create = async |path: &str, object: Value| client.create(path, object).await;
    // Pods require an allowing policy if PodSecurityPolicy is enabled.
    let policies = "/apis/policy/v1beta1/podsecuritypolicies";
    let any = json!({"rule": "RunAsAny"});
    let policy = json!({"metadata": {"name": "all"}, "spec": {"volumes": ["*"],
        "runAsUser": any, "seLinux": any, "fsGroup": any, "supplementalGroups": any}});
    if plugin != "PodSecurityPolicy" {
        create(policies, policy).await.unwrap();
    }
    match plugin {
        "NamespaceLifecycle" => {
            let maps = "/api/v1/namespaces/missing/configmaps";
            create(maps, map("x")).await.is_err()
        }
        "LimitRanger" => {
            let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [
                {"type": "Container", "defaultRequest": {"cpu": "250m"}}]}});
            let ranges = "/api/v1/namespaces/default/limitranges";
            create(ranges, range).await.unwrap();
            let created = create(PODS, pod(json!({}))).await.unwrap();
            created["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "250m"
        }
        "ServiceAccount" => {
            let created = create(PODS, pod(json!({}))).await.unwrap();
            created["spec"]["serviceAccountName"] == "default"
        }
        "DefaultStorageClass" => {
            let class = json!({"metadata": {"name": "fast", "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "example.com/d"});
            let classes = "/apis/storage.k8s.io/v1/storageclasses";
            create(classes, class).await.unwrap();
            let claim = json!({"metadata": {"name": "v"}, "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}});
            let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
            let created = create(claims, claim).await.unwrap();
            created["spec"]["storageClassName"] == "fast"
        }
        "DefaultTolerationSeconds" => {
            let created = create(PODS, pod(json!({}))).await.unwrap();
            created["spec"]["tolerations"][0]["tolerationSeconds"] == 300
        }
        "MutatingAdmissionWebhook" => {
            let patch = json!([{"op": "add", "path": "/data/b", "value": "2"}]);
            let patch = STANDARD.encode(patch.to_string());
            let response =
                json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"});
            let hook = hook(server, "mutating", response).await;
            let created = create(MAPS, map("x")).await.unwrap();
            hook.calls() == 1 && created["data"]["b"] == "2"
        }
        "ValidatingAdmissionWebhook" => {
            let hook = hook(server, "validating", json!({"allowed": false})).await;
            create(MAPS, map("x")).await.is_err() && hook.calls() == 1
        }
        "Priority" => {
            let pod = pod(json!({"priorityClassName": "system-cluster-critical"}));
            let created = create(PODS, pod).await.unwrap();
            created["spec"]["priority"] == 2_000_000_000
        }
        "ResourceQuota" => {
            let quota =
                json!({"metadata": {"name": "q"}, "spec": {"hard": {"services": "0"}}});
            let quotas = "/api/v1/namespaces/default/resourcequotas";
            create(quotas, quota).await.unwrap();
            server.clock().wait_until_idle().await;
            let service =
                json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
            let services = "/api/v1/namespaces/default/services";
            create(services, service).await.is_err()
        }
        "PodSecurityPolicy" => create(PODS, pod(json!({}))).await.is_err(),
        _ => false,
    }
}

#[tokio::test]
async fn each_plugin_of_the_recommended_list_rejects_or_mutates_a_request() {
    for plugin in LINE {
        assert!(
            has_effect(&server(None), plugin).await,
            "{plugin} does nothing"
        );
        let without = server(Some(plugin));
        assert!(
            !has_effect(&without, plugin).await,
            "not {plugin} does that"
        );
    }
}

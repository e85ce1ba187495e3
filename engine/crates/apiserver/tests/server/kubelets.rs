//! What kubelets may create: mirror pods, tokens and certificate requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_apiserver::{Client, Options, Server, User};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use crate::fixture::{PODS, options, pod};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const NODES: &str = "/api/v1/nodes";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Clients of a server with NodeRestriction and the node `a`: the administrator, and the kubelet
/// of the node.
async fn clients(release: &str) -> (Client, Client) {
    let server = Server::new(Options {
        enable_plugins: vec!["NodeRestriction".to_owned()],
        kube: release.parse().unwrap(),
        ..options()
    })
    .unwrap();
    let admin = server.client();
    let node = json!({"metadata": {"name": "a"}});
    admin.create(NODES, node).await.unwrap();
    let rules = json!([{"verbs": ["create"], "apiGroups": ["", "certificates.k8s.io"],
        "resources": ["pods", "serviceaccounts/token", "certificatesigningrequests"]}]);
    allow(&admin, "kubelets", rules).await;
    let kubelet = User::new("system:node:a", &["system:nodes", "system:authenticated"]);
    (admin, server.client_as(kubelet))
}

/// Allows kubelets the actions of `rules`.
async fn allow(admin: &Client, name: &str, rules: Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let roles = format!("{RBAC}/clusterroles");
    admin.create(&roles, role).await.unwrap();
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": name},
        "subjects": [{"kind": "Group", "name": "system:nodes"}]});
    let bindings = format!("{RBAC}/clusterrolebindings");
    admin.create(&bindings, binding).await.unwrap();
}

/// A mirror pod of the node `a`, whose spec has further fields.
async fn mirror_pod(admin: &Client, change: Value) -> Value {
    let node = admin.get(&format!("{NODES}/a")).await.unwrap();
    let mut pod = pod("static-a", "a", "x");
    pod["metadata"]["annotations"] = json!({MIRROR: "hash"});
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node",
        "name": "a", "uid": node["metadata"]["uid"], "controller": true}]);
    json_patch::merge(&mut pod["spec"], &change);
    pod
}

async fn rejection(client: &Client, path: &str, object: Value) -> (u16, String) {
    let refused = client.create(path, object).await.unwrap_err();
    (refused.code, refused.message)
}

fn volume(source: Value) -> Value {
    let mut volume = source;
    volume["name"] = "v".into();
    json!({ "volumes": [volume] })
}

fn projected(source: Value) -> Value {
    volume(json!({"projected": {"sources": [source]}}))
}

#[tokio::test]
async fn a_mirror_pod_is_stored_without_a_service_account() {
    let (admin, kubelet) = clients("1.36").await;
    let pod = mirror_pod(&admin, json!({})).await;
    let created = kubelet.create(PODS, pod).await.unwrap();
    let spec = &created["spec"];
    for field in ["serviceAccountName", "serviceAccount", "volumes"] {
        assert_eq!(spec[field], Value::Null, "{field}");
    }
    assert_eq!(spec["containers"][0]["volumeMounts"], Value::Null);
}

#[tokio::test]
async fn a_mirror_pod_of_any_user_references_no_service_account_and_no_secret() {
    let (admin, _) = clients("1.36").await;
    let container = json!([{"name": "c", "image": "i",
        "envFrom": [{"secretRef": {"name": "s"}}]}]);
    let token = json!({"serviceAccountToken": {"path": "token"}});
    let rows = [
        (
            json!({"serviceAccountName": "default"}),
            "a mirror pod may not reference service accounts",
        ),
        (
            json!({"containers": container}),
            "a mirror pod may not reference secrets",
        ),
        (
            volume(json!({"azureFile": {"secretName": "s", "shareName": "x"}})),
            "a mirror pod may not reference secrets",
        ),
        (
            projected(token),
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ];
    for (change, why) in rows {
        let pod = mirror_pod(&admin, change).await;
        let expected = format!("pods \"static-a\" is forbidden: {why}");
        assert_eq!(rejection(&admin, PODS, pod).await, (403, expected));
    }
}

#[tokio::test]
async fn a_mirror_pod_of_a_kubelet_references_no_api_object() {
    let (admin, kubelet) = clients("1.36").await;
    let template = json!({"spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let bundle = json!({"clusterTrustBundle": {"name": "b", "path": "ca"}});
    let certificate = json!({"podCertificate":
        {"signerName": "example.com/s", "keyType": "ED25519", "credentialBundlePath": "c"}});
    let claim = json!({"persistentVolumeClaim": {"claimName": "c"}});
    let rows = [
        (projected(json!({"configMap": {"name": "m"}})), "configmaps"),
        (
            volume(json!({"csi": {"driver": "example.com"}})),
            "csidrivers (via CSI volumes)",
        ),
        (
            volume(json!({"glusterfs": {"endpoints": "e", "path": "p"}})),
            "endpoints (via glusterFS volumes)",
        ),
        (volume(claim), "persistentvolumeclaims"),
        (
            volume(json!({"ephemeral": {"volumeClaimTemplate": template}})),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (projected(bundle), "clustertrustbundles"),
        (projected(certificate), "podcertificates"),
    ];
    for (change, what) in rows {
        let pod = mirror_pod(&admin, change).await;
        let expected = format!(
            "pods \"static-a\" is forbidden: node \"a\" can not create pods that reference \
             {what}"
        );
        assert_eq!(rejection(&kubelet, PODS, pod).await, (403, expected));
    }
    let path = json!({"fieldRef": {"fieldPath": "metadata.name"}, "path": "name"});
    let harmless = projected(json!({"downwardAPI": {"items": [path]}}));
    let pod = mirror_pod(&admin, harmless).await;
    kubelet.create(PODS, pod).await.unwrap();
}

/// A certificate request for a user name.
fn certificate_request(signer: &str, name: &str) -> Value {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, name);
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({"metadata": {"generateName": "csr-"}, "spec": {"request": STANDARD.encode(pem),
        "signerName": signer, "usages": ["client auth"]}})
}

#[tokio::test]
async fn a_kubelet_requests_node_certificates_only_for_its_own_name() {
    let client = "kubernetes.io/kube-apiserver-client-kubelet";
    let own = "system:node:a";
    let other = "system:node:b";
    let (_, kubelet) = clients("1.36").await;
    let expected = "certificatesigningrequests.certificates.k8s.io \"csr-\" is forbidden: can \
                    only create a node CSR with CN=system:node:a";
    for signer in [client, "kubernetes.io/kubelet-serving"] {
        let request = certificate_request(signer, other);
        let (code, message) = rejection(&kubelet, REQUESTS, request).await;
        assert_eq!((code, message.as_str()), (403, expected));
    }
    let allowed = [
        certificate_request(client, own),
        certificate_request("example.com/signer", other),
    ];
    for request in allowed {
        kubelet.create(REQUESTS, request).await.unwrap();
    }
    let (_, kubelet) = clients("1.30").await;
    let request = certificate_request(client, other);
    kubelet.create(REQUESTS, request).await.unwrap();
}

/// A request for a token that is bound to a pod.
fn token_request(pod: &Value, audiences: &[&str]) -> Value {
    json!({"spec": {"audiences": audiences, "boundObjectRef": {"apiVersion": "v1",
        "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}})
}

#[tokio::test]
async fn a_kubelet_requests_tokens_only_for_the_audiences_of_the_pod() {
    let (admin, kubelet) = clients("1.36").await;
    let mut plain = pod("p", "a", "x");
    plain["spec"]["volumes"] = json!([{"name": "v", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "audience": "database"}}]}}]);
    let pod = admin.create(PODS, plain).await.unwrap();
    let start = "serviceaccounts \"default\" is forbidden";
    let refused = rejection(&kubelet, TOKENS, token_request(&pod, &["vault"])).await;
    let expected = format!(
        "{start}: audience \"vault\" not found in pod spec volume, system:node:a is not \
         authorized to request tokens for this audience"
    );
    assert_eq!(refused, (403, expected));
    let both = token_request(&pod, &["vault", "database"]);
    let expected = format!("{start}: node may only request 0 or 1 audiences");
    assert_eq!(rejection(&kubelet, TOKENS, both).await, (403, expected));
    // The token of the API server is mounted in every pod.
    for audiences in [&["database"][..], &[]] {
        let request = token_request(&pod, audiences);
        kubelet.create(TOKENS, request).await.unwrap();
    }
    let rules = json!([{"verbs": ["request-serviceaccounts-token-audience"],
        "apiGroups": [""], "resources": ["vault"], "resourceNames": ["default"]}]);
    allow(&admin, "vault", rules).await;
    let request = token_request(&pod, &["vault"]);
    kubelet.create(TOKENS, request).await.unwrap();
}

#[tokio::test]
async fn before_1_33_a_kubelet_requests_tokens_for_any_audience() {
    let (admin, kubelet) = clients("1.32").await;
    let pod = admin.create(PODS, pod("p", "a", "x")).await.unwrap();
    let request = token_request(&pod, &["vault"]);
    kubelet.create(TOKENS, request).await.unwrap();
}

#[tokio::test]
async fn the_driver_of_a_csi_volume_must_exist_to_request_a_token_for_it() {
    let (admin, kubelet) = clients("1.36").await;
    let mut plain = pod("p", "a", "x");
    plain["spec"]["volumes"] =
        json!([{"name": "v", "csi": {"driver": "store.example.com"}}]);
    let pod = admin.create(PODS, plain).await.unwrap();
    let request = token_request(&pod, &["vault"]);
    let expected = "serviceaccounts \"default\" is forbidden: error validating audience \
                    \"vault\": csidriver.storage.k8s.io \"store.example.com\" not found";
    let (code, message) = rejection(&kubelet, TOKENS, request).await;
    assert_eq!((code, message.as_str()), (403, expected));
}

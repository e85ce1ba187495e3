//! CertificateSigningRequests: the requesting user, and the permissions to approve and sign.

use kubemu_apiserver::{Patch, Server, User};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::fixture::server;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A certificate signing request with a new key.
fn request(name: &str) -> Value {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "jane");
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({"metadata": {"name": name}, "spec": {
        "request": STANDARD.encode(pem), "signerName": "example.com/own",
        "usages": ["client auth"], "username": "somebody-else"}})
}

fn jane() -> User {
    let mut user = User::new("jane", &["team", "system:authenticated"]);
    "u-1".clone_into(&mut user.uid);
    user
}

/// Allows jane all actions on requests, and the actions of these rules on signers.
async fn allow(server: &Server, signers: Value) {
    let requests = json!({"apiGroups": ["certificates.k8s.io"], "verbs": ["*"], "resources":
        ["certificatesigningrequests", "certificatesigningrequests/approval",
         "certificatesigningrequests/status"]});
    let role = json!({"metadata": {"name": "requests"}, "rules": [requests, signers]});
    let client = server.client();
    client
        .create(&format!("{RBAC}/clusterroles"), role)
        .await
        .unwrap();
    let binding = json!({"metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "requests"},
        "subjects": [{"kind": "User", "name": "jane",
            "apiGroup": "rbac.authorization.k8s.io"}]});
    let path = format!("{RBAC}/clusterrolebindings");
    client.create(&path, binding).await.unwrap();
}

fn signers(name: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
        "resourceNames": [name], "verbs": verbs})
}

fn decision(kind: &str) -> Patch {
    let condition = json!({"type": kind, "status": "True", "reason": "Tested"});
    Patch::Merge(json!({"status": {"conditions": [condition]}}))
}

#[tokio::test]
async fn a_request_records_the_requesting_user() {
    let server = server();
    allow(&server, signers("none.example.com/x", &["approve"])).await;
    let client = server.client_as(jane());
    let created = client.create(REQUESTS, request("r")).await.unwrap();
    assert_eq!(created["spec"]["username"], "jane");
    assert_eq!(created["spec"]["uid"], "u-1");
    assert_eq!(
        created["spec"]["groups"],
        json!(["team", "system:authenticated"])
    );
    let change = Patch::Merge(json!({"spec": {"username": "other"}}));
    let same = client
        .patch(&format!("{REQUESTS}/r"), change)
        .await
        .unwrap();
    assert_eq!(same["spec"], created["spec"]);
}

#[tokio::test]
async fn permission_for_a_signer_domain_allows_approving_and_signing() {
    let server = server();
    allow(&server, signers("example.com/*", &["approve", "sign"])).await;
    let client = server.client_as(jane());
    client.create(REQUESTS, request("r")).await.unwrap();
    let approval = format!("{REQUESTS}/r/approval");
    let approved = client.patch(&approval, decision("Approved")).await.unwrap();
    let condition = &approved["status"]["conditions"][0];
    assert_eq!(condition["lastUpdateTime"], "2026-03-06T21:30:00Z");
    assert_eq!(condition["lastTransitionTime"], "2026-03-06T21:30:00Z");
    let refused = client
        .patch(&approval, decision("Denied"))
        .await
        .unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(
        refused
            .message
            .contains("may not remove a condition of type \"Approved\"")
    );
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::default()
        .self_signed(&key)
        .unwrap()
        .pem();
    let signed =
        Patch::Merge(json!({"status": {"certificate": STANDARD.encode(certificate)}}));
    let status = format!("{REQUESTS}/r/status");
    let signed = client.patch(&status, signed).await.unwrap();
    assert_eq!(signed["status"]["conditions"][0]["type"], "Approved");
    assert!(signed["status"]["certificate"].is_string());
}

#[tokio::test]
async fn approving_and_signing_require_permission_for_the_signer() {
    let server = server();
    allow(
        &server,
        signers("other.example.com/*", &["approve", "sign"]),
    )
    .await;
    let client = server.client_as(jane());
    client.create(REQUESTS, request("r")).await.unwrap();
    for (subresource, kind, verb) in [
        ("approval", "Approved", "approve"),
        ("status", "Failed", "sign"),
    ] {
        let path = format!("{REQUESTS}/r/{subresource}");
        let refused = client.patch(&path, decision(kind)).await.unwrap_err();
        assert_eq!(
            refused.message,
            format!(
                "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not \
                 permitted to {verb} requests with signerName \"example.com/own\""
            )
        );
    }
}

//! Tokens of service accounts: issued, authenticated, reviewed, and invalid once their bound object
//! is deleted.

use http::Request;
use http_body_util::Full;
use kubemu_apiserver::{Client, Delete, Options, Reason, Server, TokenKey};
use kubemu_clock::Clock;
use serde_json::{Value, json};

use crate::fixture::{MAPS, map, options, read, send, server};

const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn request(client: &Client, spec: Value) -> Value {
    let path = format!("{ACCOUNT}/token");
    let answer = client.create(&path, json!({ "spec": spec })).await;
    Value::clone(&answer.unwrap())
}

async fn token(client: &Client, spec: Value) -> String {
    let answer = request(client, spec).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// A server with a node, and a token of the default service account that is bound to it.
async fn on_a_node() -> (Server, String) {
    let server = server();
    let client = server.client();
    let node = json!({"metadata": {"name": "n1"}});
    client.create("/api/v1/nodes", node).await.unwrap();
    let bound =
        json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": "n1"}});
    let token = token(&client, bound).await;
    (server, token)
}

#[tokio::test]
async fn every_namespace_has_a_default_service_account() {
    let server = server();
    let client = server.client();
    client.get(ACCOUNT).await.unwrap();
    let space = json!({"metadata": {"name": "new"}});
    client.create("/api/v1/namespaces", space).await.unwrap();
    server.clock().wait_until_idle().await;
    let path = "/api/v1/namespaces/new/serviceaccounts/default";
    client.get(path).await.unwrap();
    client.delete(path, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    client.get(path).await.unwrap();
    client
        .delete("/api/v1/namespaces/new", &Delete::default())
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(path).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn every_namespace_has_the_ca_certificate_of_the_options() {
    let server = Server::new(Options {
        authority: Some("PEM".to_owned()),
        ..options()
    })
    .unwrap();
    let path = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt";
    let map = server.client().get(path).await.unwrap();
    assert_eq!(map["data"]["ca.crt"], "PEM");
}

#[tokio::test]
async fn a_token_authenticates_as_its_service_account() {
    let server = server();
    let requested = json!({"audiences": [], "expirationSeconds": 600});
    let answer = request(&server.client(), requested).await;
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer["metadata"]["name"], "default");
    assert_eq!(
        answer["status"]["expirationTimestamp"],
        "2026-03-06T21:40:00Z"
    );
    let token = answer["status"]["token"].as_str().unwrap();
    let user = server.authenticate(token).unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:default");
    assert_eq!(user.uid, answer["metadata"]["uid"]);
    assert_eq!(
        user.groups,
        [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ]
    );
    let refused = server.client_as(user).create(MAPS, map("x")).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Forbidden);
}

#[tokio::test]
async fn a_request_with_a_token_has_the_user_of_the_token() {
    let (server, token) = on_a_node().await;
    let send_json = |token: String| {
        Request::builder()
            .method("POST")
            .uri("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("authorization", format!("Bearer {token}"))
            .body(Full::new("{}".into()))
            .unwrap()
    };
    let (code, text) = read(send(&server, send_json(token)).await).await;
    assert_eq!(code, 201);
    let review: Value = serde_json::from_str(&text).unwrap();
    let info = &review["status"]["userInfo"];
    assert_eq!(info["username"], "system:serviceaccount:default:default");
    let extra = &info["extra"];
    assert_eq!(
        extra["authentication.kubernetes.io/node-name"],
        json!(["n1"])
    );
    assert!(extra["authentication.kubernetes.io/node-uid"][0].is_string());
    let (code, _) = read(send(&server, send_json("x".to_owned())).await).await;
    assert_eq!(code, 401);
}

#[tokio::test]
async fn the_user_info_of_a_policy_has_the_node_of_a_bound_token() {
    let (server, token) = on_a_node().await;
    let admin = server.client();
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let expression = "request.userInfo.extra[?'authentication.kubernetes.io/node-name']\
                      .orValue([]) == [object.data.node]";
    let policy = json!({
        "metadata": {"name": "own-node"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": expression}],
        },
    });
    let path = format!("{admission}/validatingadmissionpolicies");
    admin.create(&path, policy).await.unwrap();
    let binding = json!({"metadata": {"name": "b"},
        "spec": {"policyName": "own-node", "validationActions": ["Deny"]}});
    let path = format!("{admission}/validatingadmissionpolicybindings");
    admin.create(&path, binding).await.unwrap();
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let edit = json!({
        "metadata": {"name": "edit"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "default"}],
    });
    admin.create(bindings, edit).await.unwrap();
    let client = server.client_as(server.authenticate(&token).unwrap());
    for (node, admitted) in [("n1", true), ("n2", false)] {
        let mut map = map(node);
        map["data"]["node"] = node.into();
        let answer = client.create(MAPS, map).await;
        assert_eq!(answer.is_ok(), admitted, "{node}: {answer:?}");
    }
}

#[tokio::test]
async fn a_token_is_invalid_after_its_bound_object_is_deleted() {
    let (server, token) = on_a_node().await;
    server.authenticate(&token).unwrap();
    let client = server.client();
    client
        .delete("/api/v1/nodes/n1", &Delete::default())
        .await
        .unwrap();
    assert_eq!(server.authenticate(&token).unwrap_err().code, 401);
}

#[tokio::test]
async fn a_token_expires_by_the_clock_of_the_server() {
    let server = server();
    let token = token(&server.client(), json!({"expirationSeconds": 600})).await;
    let clock: &Clock = server.clock();
    clock
        .advance_to("2026-03-06T21:40:30Z".parse().unwrap())
        .await;
    server.authenticate(&token).unwrap();
    clock
        .advance_to("2026-03-06T21:41:01Z".parse().unwrap())
        .await;
    server.authenticate(&token).unwrap_err();
}

#[tokio::test]
async fn an_invalid_token_request_is_rejected() {
    let client = server().client();
    let path = format!("{ACCOUNT}/token");
    let rows = [
        (
            json!({"expirationSeconds": 5}),
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: \
             Invalid value: 5: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": "n"}}),
            "nodes \"n\" not found",
        ),
        (
            json!({"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "n"}}),
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
    ];
    for (spec, answer) in rows {
        let refused = client.create(&path, json!({ "spec": spec })).await;
        assert_eq!(refused.unwrap_err().message, answer);
    }
}

#[tokio::test]
async fn a_token_review_returns_the_user() {
    let server = server();
    let client = server.client();
    let token = token(&client, json!({"audiences": ["vault"]})).await;
    let review = async |token: &str, audiences: Value| {
        let spec = json!({"token": token, "audiences": audiences});
        let answer = client.create(REVIEWS, json!({ "spec": spec })).await;
        answer.unwrap()["status"].clone()
    };
    let status = review(&token, json!(["vault", "other"])).await;
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!(["vault"]));
    assert_eq!(
        status["user"]["username"],
        "system:serviceaccount:default:default"
    );
    assert_eq!(
        review(&token, json!([])).await,
        json!({"user": {}, "error": "[invalid bearer token, token audiences [\"vault\"] is \
            invalid for the target audiences \
            [\"https://kubernetes.default.svc.cluster.local\"]]"})
    );
    assert_eq!(
        review("x", json!([])).await,
        json!({"user": {}, "error": "invalid bearer token"})
    );
    // A token for another audience does not authenticate with this server.
    server.authenticate(&token).unwrap_err();
}

#[tokio::test]
async fn tokens_are_accepted_by_a_server_with_the_same_key() {
    let key = TokenKey::generate().unwrap();
    let with = |key: &TokenKey| {
        Server::new(Options {
            token_key: Some(key.clone()),
            seed: Some(1),
            ..options()
        })
        .unwrap()
    };
    let first = with(&key);
    let token = token(&first.client(), json!({})).await;
    // The same seed results in the same uid of the service account.
    let retained = TokenKey::from_pkcs8(key.pkcs8().unwrap()).unwrap();
    with(&retained).authenticate(&token).unwrap();
    server().authenticate(&token).unwrap_err();
}

#[tokio::test]
async fn the_keys_that_verify_tokens_are_published() {
    let client = server().client();
    let issuer = client
        .get("/.well-known/openid-configuration")
        .await
        .unwrap();
    assert_eq!(
        issuer["issuer"],
        "https://kubernetes.default.svc.cluster.local"
    );
    let keys = client.get("/openid/v1/jwks").await.unwrap();
    assert_eq!(keys["keys"][0]["crv"], "P-256");
}

/// A bootstrap token's Secret, with changed fields of a valid one.
fn bootstrap_secret(changes: &Value) -> Value {
    let mut fields = json!({"token-id": "abc123", "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true", "expiration": "2026-03-07T00:00:00Z",
        "auth-extra-groups": "system:bootstrappers:workers"});
    for (name, value) in changes.as_object().unwrap() {
        fields[name] = value.clone();
    }
    json!({"metadata": {"name": "bootstrap-token-abc123"},
        "type": "bootstrap.kubernetes.io/token", "stringData": fields})
}

const SYSTEM_SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const BOOTSTRAP: &str = "abc123.0123456789abcdef";

#[tokio::test]
async fn a_bootstrap_token_authenticates_a_new_node() {
    let server = server();
    server.authenticate(BOOTSTRAP).unwrap_err();
    let client = server.client();
    let secret = bootstrap_secret(&json!({}));
    client.create(SYSTEM_SECRETS, secret).await.unwrap();
    let user = server.authenticate(BOOTSTRAP).unwrap();
    assert_eq!(user.name, "system:bootstrap:abc123");
    let groups = [
        "system:bootstrappers",
        "system:bootstrappers:workers",
        "system:authenticated",
    ];
    assert_eq!(user.groups, groups);
    server.authenticate("abc123.0123456789abcdeg").unwrap_err();
    let path = format!("{SYSTEM_SECRETS}/bootstrap-token-abc123");
    client.delete(&path, &Delete::default()).await.unwrap();
    server.authenticate(BOOTSTRAP).unwrap_err();
}

#[tokio::test]
async fn a_bootstrap_token_is_valid_until_it_expires_and_for_its_usage() {
    let rows = [
        json!({"expiration": "2026-03-06T21:30:00Z"}),
        json!({"expiration": "soon"}),
        json!({"usage-bootstrap-authentication": "false"}),
        json!({"token-id": "abc124"}),
        json!({"auth-extra-groups": "system:masters"}),
    ];
    for changes in rows {
        let server = server();
        let secret = bootstrap_secret(&changes);
        server
            .client()
            .create(SYSTEM_SECRETS, secret)
            .await
            .unwrap();
        server.authenticate(BOOTSTRAP).unwrap_err();
    }
}

#[tokio::test]
async fn the_answer_to_a_token_review_has_the_manager_of_its_fields() {
    let client = server().client();
    let review = json!({"spec": {"token": "t"}});
    let answer = client.create(REVIEWS, review).await.unwrap();
    let fields = &answer["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(*fields, json!({"f:spec": {"f:token": {}}}));
}

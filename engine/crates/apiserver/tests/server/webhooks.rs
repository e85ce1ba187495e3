//! Admission webhooks are called, and their responses apply.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_apiserver::{Client, Delete, Options, Patch, Selector, Server};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::fixture::{
    MAPS, PODS, at, definition, map, next, options, pod, read, request, send, send_json,
    server,
};
use crate::webhook_server::{WebhookServer, authority};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The response to a review.
fn review_response(review: &Value, response: Value) -> Value {
    let mut response = response;
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": response})
}

fn allowed(review: &Value) -> Value {
    review_response(review, json!({"allowed": true}))
}

/// A response with a patch.
fn patched(review: &Value, patch: Value) -> Value {
    let patch = STANDARD.encode(patch.to_string());
    let response = json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"});
    review_response(review, response)
}

/// A webhook for config maps, changed by a merge patch.
fn webhook(name: &str, client: Value, change: Value) -> Value {
    let mut hook = json!({"name": format!("{name}.example.com"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": client,
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"]}]});
    json_patch::merge(&mut hook, &change);
    hook
}

async fn register(client: &Client, kind: &str, webhooks: Vec<Value>) {
    let path = format!("{ADMISSION}/{}configurations", kind.to_lowercase());
    let configuration = json!({"kind": format!("{kind}Configuration"),
        "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "hooks"}, "webhooks": webhooks});
    client.create(&path, configuration).await.unwrap();
}

async fn validating(client: &Client, webhooks: Vec<Value>) {
    register(client, "ValidatingWebhook", webhooks).await;
}

async fn mutating(client: &Client, webhooks: Vec<Value>) {
    register(client, "MutatingWebhook", webhooks).await;
}

#[tokio::test]
async fn a_webhook_rejects_with_its_message_and_warns() {
    let hook = WebhookServer::start(|review| {
        let object = &review["request"]["object"];
        let allowed = object["data"]["a"] == "1";
        review_response(
            review,
            json!({"allowed": allowed, "warnings": ["mind the a"],
                "status": {"message": "a has to be 1", "code": 422, "reason": "Invalid"}}),
        )
    })
    .await;
    let server = server();
    let client = server.client();
    validating(&client, vec![webhook("v", hook.by_url("/v"), json!({}))]).await;
    let response = send(&server, request("POST", MAPS, &map("x"))).await;
    assert_eq!(
        response.headers().get("warning").unwrap(),
        "299 - \"mind the a\""
    );
    assert_eq!(read(response).await.0, 201);
    let wrong = Patch::Merge(json!({"data": {"a": "2"}}));
    let refused = client.patch(&at("x"), wrong).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            422,
            "admission webhook \"v.example.com\" denied the request: a has to be 1"
        )
    );
    assert_eq!(client.get(&at("x")).await.unwrap()["data"]["a"], "1");
}

#[tokio::test]
async fn a_webhook_is_sent_the_whole_request() {
    let hook = WebhookServer::start(allowed).await;
    let server = server();
    let client = server.client();
    validating(&client, vec![webhook("v", hook.by_url("/v"), json!({}))]).await;
    client.create(MAPS, map("x")).await.unwrap();
    client.delete(&at("x"), &Delete::default()).await.unwrap();
    let reviews = hook.reviews.lock().unwrap().clone();
    let requested = &reviews[0]["request"];
    assert_eq!(
        requested["kind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    assert_eq!(
        requested["requestResource"],
        json!({"group": "", "version": "v1", "resource": "configmaps"})
    );
    let texts =
        ["name", "namespace", "operation"].map(|it| requested[it].as_str().unwrap());
    assert_eq!(texts, ["x", "default", "CREATE"]);
    assert_eq!(requested["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(
        (&requested["oldObject"], &requested["dryRun"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(requested["options"]["kind"], "CreateOptions");
    assert_eq!(requested["object"]["data"], json!({"a": "1"}));
    let ended = &reviews[1]["request"];
    assert_eq!(ended["operation"], "DELETE");
    assert_eq!(
        (&ended["object"], &ended["oldObject"]["kind"]),
        (&Value::Null, &json!("ConfigMap"))
    );
    assert_ne!(requested["uid"], ended["uid"]);
}

#[tokio::test]
async fn the_path_of_a_webhook_is_called_without_empty_and_relative_segments() {
    let server = server();
    let client = server.client();
    for path in ["//v", "/u/.././v", "/v/"] {
        let client_config = json!({"url": format!("https://127.0.0.1:1{path}")});
        let hook = webhook("v", client_config, json!({"timeoutSeconds": 1}));
        validating(&client, vec![hook]).await;
        let refused = client.create(MAPS, map("x")).await.unwrap_err();
        let called = "Post \"https://127.0.0.1:1/v?timeout=1s\":";
        assert!(refused.message.contains(called), "{path}: {refused:?}");
        let path = format!("{ADMISSION}/validatingwebhookconfigurations/hooks");
        client.delete(&path, &Delete::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_failed_call_rejects_the_request_unless_failures_are_ignored() {
    let server = server();
    let client = server.client();
    let nobody = json!({"url": "https://127.0.0.1:1/v"});
    let fails = webhook("v", nobody.clone(), json!({"timeoutSeconds": 1}));
    validating(&client, vec![fails]).await;
    let refused = client.create(MAPS, map("x")).await.unwrap_err();
    let start = "Internal error occurred: failed calling webhook \"v.example.com\": failed to \
         call webhook: Post \"https://127.0.0.1:1/v?timeout=1s\": dial tcp 127.0.0.1:1: \
         connect: connection refused";
    assert_eq!((refused.code, refused.message.as_str()), (500, start));
    let path = format!("{ADMISSION}/validatingwebhookconfigurations/hooks");
    let ignore = Patch::Json(
        json!([{"op": "replace", "path": "/webhooks/0/failurePolicy",
        "value": "Ignore"}]),
    );
    client.patch(&path, ignore).await.unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    client.delete(&path, &Delete::default()).await.unwrap();
    let gone = json!({"service": {"name": "none", "namespace": "tools", "path": "/v"}});
    validating(&client, vec![webhook("v", gone, json!({}))]).await;
    let refused = client.create(MAPS, map("y")).await.unwrap_err();
    assert_eq!(
        refused.message,
        "Internal error occurred: failed calling webhook \"v.example.com\": failed to call \
         webhook: Post \"https://none.tools.svc:443/v?timeout=10s\": service \"none\" not found"
    );
}

/// What a create answers whose webhook has this certificate, which is its own `caBundle`.
async fn created_through(certificate: CertificateParams) -> Result<usize, String> {
    let hook = WebhookServer::start_with(certificate, allowed).await;
    let client = server().client();
    validating(&client, vec![webhook("v", hook.by_url("/v"), json!({}))]).await;
    let created = client.create(MAPS, map("x")).await;
    created.map(|_| hook.calls()).map_err(|it| it.message)
}

#[tokio::test]
async fn a_webhook_with_a_ca_certificate_that_is_its_own_bundle_is_called() {
    assert_eq!(created_through(authority()).await, Ok(1));
    let mut for_servers = authority();
    for_servers.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    assert_eq!(created_through(for_servers).await, Ok(1));
    let mut for_anything = authority();
    for_anything.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any];
    assert_eq!(created_through(for_anything).await, Ok(1));
}

#[tokio::test]
async fn a_certificate_that_is_its_own_bundle_needs_the_name_a_valid_time_and_the_usage()
{
    let mut elsewhere = authority();
    elsewhere.subject_alt_names.truncate(0);
    let why = created_through(elsewhere).await.unwrap_err();
    assert!(why.contains("not valid for name"), "{why}");
    let mut expired = authority();
    expired.not_before = rcgen::date_time_ymd(2020, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2020, 1, 2);
    let why = created_through(expired).await.unwrap_err();
    let expected = "x509: certificate has expired or is not yet valid";
    assert!(why.contains(expected), "{why}");
    let mut for_clients = authority();
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let why = created_through(for_clients).await.unwrap_err();
    let expected = "x509: certificate specifies an incompatible key usage";
    assert!(why.contains(expected), "{why}");
}

#[tokio::test]
async fn another_ca_certificate_than_that_of_the_bundle_is_refused() {
    let hook = WebhookServer::start_with(authority(), allowed).await;
    let other = WebhookServer::start_with(authority(), allowed).await;
    let client = server().client();
    let mut config = hook.by_url("/v");
    config["caBundle"] = other.bundle.clone().into();
    validating(&client, vec![webhook("v", config, json!({}))]).await;
    let refused = client.create(MAPS, map("x")).await.unwrap_err();
    assert!(
        refused
            .message
            .contains("tls: failed to verify certificate: x509: "),
        "{refused}"
    );
    assert_eq!(hook.calls(), 0);
}

#[tokio::test]
async fn a_request_ends_with_the_timeout_that_it_asks_for() {
    let hook = WebhookServer::start(|_| Value::Null).await;
    let server = server();
    let client = server.client();
    validating(&client, vec![webhook("v", hook.by_url("/v"), json!({}))]).await;
    let path = format!("{MAPS}?timeout=20ms");
    let (code, refused) = send_json(&server, "POST", &path, map("x")).await;
    assert_eq!((code, &refused["reason"]), (504, &json!("Timeout")));
    let expected = "Timeout: request did not complete within the allotted timeout";
    assert_eq!(refused["message"], expected);
    assert_eq!(client.get(&at("x")).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_call_without_a_response_times_out() {
    let hook = WebhookServer::start(|_| Value::Null).await;
    let client = server().client();
    let slow = webhook("v", hook.by_url("/v"), json!({"timeoutSeconds": 1}));
    validating(&client, vec![slow]).await;
    let refused = client.create(MAPS, map("x")).await.unwrap_err();
    assert!(
        refused.message.ends_with("context deadline exceeded"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_invalid_response_is_reported() {
    let hook = WebhookServer::start(|review| match review["request"]["name"].as_str() {
        Some("absent") => json!({"kind": "AdmissionReview"}),
        Some("other") => json!({"apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview", "response": {"uid": "other", "allowed": true}}),
        _ => patched(review, json!([])),
    })
    .await;
    let client = server().client();
    validating(&client, vec![webhook("v", hook.by_url("/v"), json!({}))]).await;
    for (name, expected) in [
        ("absent", "webhook response was absent"),
        ("other", "got \"other\""),
        ("patch", "validating webhook may not return response.patch"),
    ] {
        let refused = client.create(MAPS, map(name)).await.unwrap_err();
        let start = "Internal error occurred: failed calling webhook \"v.example.com\": received \
             invalid webhook response: ";
        assert!(refused.message.starts_with(start), "{refused}");
        assert!(refused.message.ends_with(expected), "{refused}");
    }
}

#[tokio::test]
async fn a_dry_run_does_not_call_a_webhook_with_side_effects() {
    let hook = WebhookServer::start(allowed).await;
    let server = server();
    let client = server.client();
    let path = format!("{ADMISSION}/validatingwebhookconfigurations");
    let effects = webhook("v", hook.by_url("/v"), json!({"sideEffects": "Some"}));
    let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [effects]});
    let refused = client.create(&path, configuration).await.unwrap_err();
    assert!(
        refused
            .message
            .contains("sideEffects: Unsupported value: \"Some\""),
        "{refused}"
    );
    let quiet = webhook(
        "v",
        hook.by_url("/v"),
        json!({"sideEffects": "NoneOnDryRun"}),
    );
    validating(&client, vec![quiet]).await;
    let rehearsal = format!("{MAPS}?dryRun=All");
    let (code, _) = send_json(&server, "POST", &rehearsal, map("x")).await;
    assert_eq!(code, 201);
    assert_eq!(hook.reviews.lock().unwrap()[0]["request"]["dryRun"], true);
}

#[tokio::test]
async fn selectors_conditions_and_rules_select_the_requests_of_a_webhook() {
    let hook = WebhookServer::start(|review| {
        review_response(
            review,
            json!({"allowed": false, "status": {"message": "no"}}),
        )
    })
    .await;
    let client = server().client();
    let url = hook.by_url("/v");
    let changes = [
        json!({"objectSelector": {"matchLabels": {"seen": "yes"}}}),
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}}),
        json!({"matchConditions": [{"name": "c",
            "expression": "request.userInfo.username == 'nobody'"}]}),
        json!({"rules": [{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"]}]}),
        json!({"rules": [{"operations": ["CREATE"], "apiGroups": ["apps"],
            "apiVersions": ["v1"], "resources": ["*"]}]}),
    ];
    let all = changes.into_iter().enumerate();
    let all = all.map(|(at, it)| webhook(&format!("v{at}"), url.clone(), it));
    validating(&client, all.collect()).await;
    client.create(MAPS, map("x")).await.unwrap();
    assert_eq!(hook.calls(), 0);
    let mut seen = map("y");
    seen["metadata"]["labels"] = json!({"seen": "yes"});
    let refused = client.create(MAPS, seen).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            400,
            "admission webhook \"v0.example.com\" denied the request: no"
        )
    );
    let refused = client
        .delete(&at("x"), &Delete::default())
        .await
        .unwrap_err();
    assert!(refused.message.contains("v3.example.com"), "{refused}");
}

#[tokio::test]
async fn an_invalid_match_condition_is_rejected() {
    let client = server().client();
    let wrong = json!({"matchConditions": [{"name": "c", "expression": "1 +"}]});
    let hook = webhook("v", json!({"url": "https://example.com/"}), wrong);
    let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [hook]});
    let path = format!("{ADMISSION}/mutatingwebhookconfigurations");
    let refused = client.create(&path, configuration).await.unwrap_err();
    assert!(
        refused
            .message
            .contains("webhooks[0].matchConditions[0].expression: Invalid value"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_webhook_mutates_the_stored_object() {
    let hook = WebhookServer::start(|review| {
        let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}},
            {"op": "add", "path": "/spec/containers/0/ports",
                "value": [{"containerPort": 80}]},
            {"op": "add", "path": "/spec/nonsense", "value": 1}]);
        patched(review, patch)
    })
    .await;
    let server = server();
    let client = server.client();
    let of_pods = json!({"rules": [{"operations": ["CREATE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["pods"]}]});
    mutating(&client, vec![webhook("m", hook.by_url("/m"), of_pods)]).await;
    let created = client.create(PODS, pod("p", "", "a")).await.unwrap();
    assert_eq!(created["metadata"]["labels"], json!({"by": "hook"}));
    let ports = &created["spec"]["containers"][0]["ports"];
    assert_eq!(
        *ports,
        json!([{"containerPort": 80, "protocol": "TCP"}]),
        "it is defaulted"
    );
    assert_eq!(created["spec"].get("nonsense"), None, "it is pruned");
    assert_eq!(hook.calls(), 1);
}

#[tokio::test]
async fn the_patch_of_a_webhook_has_lenient_semantics() {
    // A replaced key may be absent, and an index may count from the end.
    let hook = WebhookServer::start(|review| {
        let name = review["request"]["name"].as_str().unwrap_or_default();
        patched(
            review,
            match name {
                "replaced" => json!([{"op": "replace", "path": "/data/b", "value": "2"}]),
                "from-the-end" => json!([
                    {"op": "add", "path": "/metadata/finalizers", "value": ["a.com/a", "a.com/b"]},
                    {"op": "replace", "path": "/metadata/finalizers/-1", "value": "a.com/c"},
                ]),
                "tested" => json!([{"op": "test", "path": "/data/a", "value": "2"}]),
                "missing" => json!([{"op": "remove", "path": "/data/b"}]),
                _ => json!(["no operation"]),
            },
        )
    })
    .await;
    let client = server().client();
    mutating(&client, vec![webhook("m", hook.by_url("/m"), json!({}))]).await;
    for (name, why) in [
        ("tested", "testing value /data/a failed: test failed"),
        (
            "missing",
            "error in remove for path: '/data/b': Unable to remove nonexistent key: b: missing \
             value",
        ),
        (
            "odd",
            "failed calling webhook \"m.example.com\": received undecodable patch in webhook \
             response: json: cannot unmarshal string into Go value of type jsonpatch.Operation",
        ),
    ] {
        let refused = client.create(MAPS, map(name)).await.unwrap_err();
        assert!(refused.message.ends_with(why), "{name}: {refused}");
    }
    let created = client.create(MAPS, map("replaced")).await.unwrap();
    assert_eq!(created["data"]["b"], "2");
    let created = client.create(MAPS, map("from-the-end")).await.unwrap();
    let expected = json!(["a.com/a", "a.com/c"]);
    assert_eq!(created["metadata"]["finalizers"], expected);
}

#[tokio::test]
async fn the_object_of_a_webhook_is_validated() {
    let hook = WebhookServer::start(|review| {
        let patch = json!([{"op": "replace", "path": "/data", "value": {"a b": "c"}}]);
        patched(review, patch)
    })
    .await;
    let client = server().client();
    mutating(&client, vec![webhook("m", hook.by_url("/m"), json!({}))]).await;
    let refused = client.create(MAPS, map("x")).await.unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("data[a b]"), "{refused}");
}

/// Counts in an annotation how often the webhook was called for an object that another one has
/// changed.
fn counting(review: &Value) -> Value {
    let data = &review["request"]["object"]["data"];
    if data["late"].is_null() {
        return allowed(review);
    }
    let patch = json!([{"op": "add", "path": "/data/seen", "value": "late"}]);
    patched(review, patch)
}

#[tokio::test]
async fn a_webhook_with_reinvocation_is_called_again_after_later_changes() {
    let late = |review: &Value| {
        let patch = json!([{"op": "add", "path": "/data/late", "value": "1"}]);
        patched(review, patch)
    };
    for (policy, expected) in [("Never", Value::Null), ("IfNeeded", json!("late"))] {
        let (first, second) = (
            WebhookServer::start(counting).await,
            WebhookServer::start(late).await,
        );
        let client = server().client();
        let wish = json!({"reinvocationPolicy": policy});
        let hooks = vec![
            webhook("a", first.by_url("/a"), wish),
            webhook("b", second.by_url("/b"), json!({})),
        ];
        mutating(&client, hooks).await;
        let created = client.create(MAPS, map("x")).await.unwrap();
        assert_eq!(created["data"]["seen"], expected, "{policy}");
        assert_eq!(second.calls(), 1);
    }
}

#[tokio::test]
async fn validating_webhooks_are_called_concurrently_and_mutating_ones_in_order() {
    let hooks = [
        WebhookServer::start(allowed).await,
        WebhookServer::start(allowed).await,
    ];
    let client = server().client();
    let all = hooks.iter().enumerate();
    let all = all.map(|(at, it)| webhook(&format!("v{at}"), it.by_url("/v"), json!({})));
    validating(&client, all.collect()).await;
    client.create(MAPS, map("x")).await.unwrap();
    assert_eq!(hooks.each_ref().map(WebhookServer::calls), [1, 1]);
    let selected = client.list(MAPS, &Selector::default()).await.unwrap();
    assert_eq!(selected.items.len(), 1);
    client
        .delete_collection(MAPS, &Selector::default())
        .await
        .unwrap();
    assert_eq!(hooks.each_ref().map(WebhookServer::calls), [2, 2]);
}

#[tokio::test]
async fn a_mutating_webhook_is_called_for_each_object_of_a_deleted_collection() {
    let hook = WebhookServer::start(allowed).await;
    let client = server().client();
    let of_deletes = json!({"rules": [{"operations": ["DELETE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["configmaps"]}]});
    mutating(&client, vec![webhook("v", hook.by_url("/v"), of_deletes)]).await;
    for name in ["x", "y"] {
        client.create(MAPS, map(name)).await.unwrap();
    }
    client
        .delete_collection(MAPS, &Selector::default())
        .await
        .unwrap();
    let reviews = hook.reviews.lock().unwrap();
    let mut names: Vec<&Value> = reviews
        .iter()
        .map(|it| &it["request"]["oldObject"]["metadata"]["name"])
        .collect();
    names.sort_unstable_by_key(ToString::to_string);
    assert_eq!(names, ["x", "y"]);
}

/// A config map whose name is generated.
fn unnamed() -> Value {
    json!({"metadata": {"generateName": "x-"}, "data": {"a": "1"}})
}

#[tokio::test]
async fn concurrent_creates_are_each_reviewed_once() {
    for kind in ["MutatingWebhook", "ValidatingWebhook"] {
        let hook = WebhookServer::start(allowed).await;
        let client = server().client();
        let hooks = vec![webhook("v", hook.by_url("/v"), json!({}))];
        register(&client, kind, hooks).await;
        let creates = (0..20).map(|_| client.create(MAPS, unnamed()));
        let created = futures::future::try_join_all(creates).await.unwrap();
        assert_eq!(hook.calls(), 20, "{kind}");
        for field in ["uid", "name"] {
            let values: HashSet<String> = created
                .iter()
                .map(|it| it["metadata"][field].to_string())
                .collect();
            assert_eq!(values.len(), 20, "each {field} is given once");
        }
    }
}

#[tokio::test]
async fn the_review_of_a_token_secret_is_the_same_in_each_attempt() {
    let hook = WebhookServer::start(allowed).await;
    let server = server();
    let client = server.client();
    let of_updates = json!({"rules": [{"operations": ["UPDATE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["secrets"]}]});
    mutating(&client, vec![webhook("v", hook.by_url("/v"), of_updates)]).await;
    let secret = json!({"type": "kubernetes.io/service-account-token",
        "metadata": {"name": "token",
            "annotations": {"kubernetes.io/service-account.name": "default"}}});
    let secrets = "/api/v1/namespaces/default/secrets";
    client.create(secrets, secret).await.unwrap();
    server.clock().wait_until_idle().await;
    let filled = client.get(&format!("{secrets}/token")).await.unwrap();
    assert!(filled["data"]["token"].is_string());
    assert_eq!(hook.calls(), 1);
}

#[tokio::test]
async fn a_pod_and_the_service_account_that_it_requires_have_different_uids() {
    let hook = WebhookServer::start(allowed).await;
    let client = server().client();
    let of_pods = json!({"rules": [{"operations": ["CREATE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["pods"]}]});
    mutating(&client, vec![webhook("v", hook.by_url("/v"), of_pods)]).await;
    let space = json!({"metadata": {"name": "new"}});
    client.create("/api/v1/namespaces", space).await.unwrap();
    let pods = "/api/v1/namespaces/new/pods";
    let created = client.create(pods, pod("p", "n", "a")).await.unwrap();
    let path = "/api/v1/namespaces/new/serviceaccounts/default";
    let account = client.get(path).await.unwrap();
    assert_eq!(hook.calls(), 1);
    assert_ne!(created["metadata"]["uid"], account["metadata"]["uid"]);
}

#[tokio::test]
async fn requests_of_controllers_call_webhooks() {
    let hook = WebhookServer::start(allowed).await;
    let server: Server = server();
    let client = server.client();
    let of_deletions = json!({"rules": [{"operations": ["DELETE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["configmaps"]}]});
    validating(&client, vec![webhook("v", hook.by_url("/v"), of_deletions)]).await;
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    let mut owned = map("owned");
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "owner", "uid": owner["metadata"]["uid"]}]);
    client.create(MAPS, owned).await.unwrap();
    client
        .delete(&at("owner"), &Delete::default())
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&at("owned")).await.unwrap_err().code, 404);
    let users: Vec<Value> = hook
        .reviews
        .lock()
        .unwrap()
        .iter()
        .map(|it| it["request"]["userInfo"]["username"].clone())
        .collect();
    assert_eq!(
        users,
        [
            "kubernetes-admin",
            "system:serviceaccount:kube-system:generic-garbage-collector"
        ]
    );
}

#[tokio::test]
async fn a_webhook_for_another_version_receives_that_version() {
    let hook = WebhookServer::start(allowed).await;
    let server = server();
    let client = server.client();
    let mut two = definition();
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    two["spec"]["versions"].as_array_mut().unwrap().push(second);
    client
        .create(crate::fixture::DEFINITIONS, two)
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    let rule = |policy: &str| {
        json!({"matchPolicy": policy, "rules": [{"operations": ["CREATE"],
            "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["things"]}]})
    };
    let hooks = vec![
        webhook("exact", hook.by_url("/e"), rule("Exact")),
        webhook("any", hook.by_url("/a"), rule("Equivalent")),
    ];
    validating(&client, hooks).await;
    let thing = crate::fixture::thing("x");
    client.create(crate::fixture::THINGS, thing).await.unwrap();
    let reviews = hook.reviews.lock().unwrap().clone();
    assert_eq!(reviews.len(), 1);
    let requested = &reviews[0]["request"];
    assert_eq!(requested["kind"]["version"], "v2");
    assert_eq!(requested["requestKind"]["version"], "v1");
    assert_eq!(requested["object"]["apiVersion"], "example.com/v2");
}

/// A server whose ImagePolicyWebhook calls `hook`.
fn image_policy_server(hook: &WebhookServer, settings: Value) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backend.yaml");
    let kubeconfig = json!({
        "clusters": [{"name": "images", "cluster": {
            "server": format!("https://{}/images", hook.address),
            "certificate-authority-data": hook.bundle}}],
        "users": [{"name": "server", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "images", "user": "server"}}],
        "current-context": "c",
    });
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let mut policy = settings;
    policy["kubeConfigFile"] = path.to_str().unwrap().into();
    let name = || "ImagePolicyWebhook".to_owned();
    Server::new(Options {
        enable_plugins: vec![name()],
        plugin_configurations: [(name(), json!({"imagePolicy": policy}))].into(),
        ..options()
    })
    .unwrap()
}

/// The response of a backend in the document about admission controllers.
const ALLOWED: &str = r#"{
  "apiVersion": "imagepolicy.k8s.io/v1alpha1",
  "kind": "ImageReview",
  "status": {
    "allowed": true
  }
}"#;

/// The same for an image that is not allowed.
const DISALLOWED: &str = r#"{
  "apiVersion": "imagepolicy.k8s.io/v1alpha1",
  "kind": "ImageReview",
  "status": {
    "allowed": false,
    "reason": "image currently blacklisted"
  }
}"#;

#[tokio::test]
async fn the_response_for_images_is_cached() {
    let hook = WebhookServer::start(|review| {
        let is_bad = review["spec"]["containers"][0]["image"] == "bad";
        let answer = if is_bad { DISALLOWED } else { ALLOWED };
        serde_json::from_str(answer).unwrap()
    })
    .await;
    let client = image_policy_server(&hook, json!({})).client();
    client.create(PODS, pod("a", "", "x")).await.unwrap();
    client.create(PODS, pod("b", "", "x")).await.unwrap();
    assert_eq!(hook.calls(), 1, "the second response was cached");
    let review = hook.reviews.lock().unwrap()[0].clone();
    assert_eq!(
        review["spec"],
        json!({"containers": [{"image": "i"}], "namespace": "default"})
    );
    let mut bad = pod("c", "", "x");
    bad["spec"]["containers"][0]["image"] = "bad".into();
    let refused = client.create(PODS, bad).await.unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"c\" is forbidden: image policy webhook backend denied one or more images: image \
         currently blacklisted"
    );
}

#[tokio::test]
async fn without_a_backend_the_default_of_the_configuration_applies() {
    let hook = WebhookServer::start(|_| json!("no review")).await;
    let gone = WebhookServer {
        address: "127.0.0.1:1".parse().unwrap(),
        ..hook
    };
    for (allow, expected) in [(true, true), (false, false)] {
        let settings = json!({"defaultAllow": allow, "retryBackoff": 1});
        let client = image_policy_server(&gone, settings).client();
        let created = client.create(PODS, pod("a", "", "x")).await;
        assert_eq!(created.is_ok(), expected);
    }
}

#[test]
fn an_invalid_duration_and_a_missing_kubeconfig_prevent_the_start() {
    let why = |policy: Value| {
        let name = || "ImagePolicyWebhook".to_owned();
        let refused = Server::new(Options {
            enable_plugins: vec![name()],
            plugin_configurations: [(name(), json!({"imagePolicy": policy}))].into(),
            ..options()
        });
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        why(json!({"retryBackoff": 300_001})),
        "configuration of admission plugin 'ImagePolicyWebhook': imagePolicy.retryBackoff: valid \
         value is between 1 and 300000, got 300001"
    );
    let missing = why(json!({"kubeConfigFile": "/none"}));
    assert!(
        missing.contains("imagePolicy.kubeConfigFile: /none: No such file"),
        "{missing}"
    );
}

/// The change to a webhook that limits it to the deletion of config maps.
fn of_deletions() -> Value {
    json!({"rules": [{"operations": ["DELETE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["configmaps"]}]})
}

/// Creates a namespace with a config map, and deletes it.
async fn delete_namespace(client: &Client, name: &str) {
    let space = json!({"metadata": {"name": name}});
    client.create("/api/v1/namespaces", space).await.unwrap();
    let path = format!("/api/v1/namespaces/{name}");
    let maps = format!("{path}/configmaps");
    client.create(&maps, map("x")).await.unwrap();
    client.delete(&path, &Delete::default()).await.unwrap();
}

#[tokio::test]
async fn a_webhook_that_does_not_respond_delays_only_what_it_is_called_for() {
    let hook = WebhookServer::start(|_| Value::Null).await;
    let client = server().client();
    let mut change = of_deletions();
    change["timeoutSeconds"] = 30.into();
    validating(&client, vec![webhook("v", hook.by_url("/v"), change)]).await;
    delete_namespace(&client, "stuck").await;
    let space = json!({"metadata": {"name": "other"}});
    client.create("/api/v1/namespaces", space).await.unwrap();
    let accounts = "/api/v1/namespaces/other/serviceaccounts";
    let mut watch = client.watch(accounts, &Selector::default(), "").unwrap();
    let account = timeout(Duration::from_secs(10), next(&mut watch)).await;
    assert_eq!(account.unwrap().object["metadata"]["name"], "default");
    delete_namespace(&client, "third").await;
    while hook.calls() < 2 {
        tokio::task::yield_now().await;
    }
    let stuck = client.get("/api/v1/namespaces/stuck").await.unwrap();
    assert_eq!(stuck["status"]["phase"], "Terminating");
}

/// A listener that drops each connection after a while, and the largest number of connections
/// that were open at the same time.
async fn counting_listener() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let result = most.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = open.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(count, Ordering::SeqCst);
            let open = open.clone();
            tokio::spawn(async move {
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                open.fetch_sub(1, Ordering::SeqCst);
                drop(stream);
            });
        }
    });
    (url, result)
}

#[tokio::test]
async fn the_deletion_of_a_collection_calls_webhooks_for_a_few_objects_at_a_time() {
    let (url, most) = counting_listener().await;
    let client = server().client();
    for number in 0..60 {
        client
            .create(MAPS, map(&format!("x{number}")))
            .await
            .unwrap();
    }
    let mut change = of_deletions();
    change["failurePolicy"] = "Ignore".into();
    validating(&client, vec![webhook("v", json!({ "url": url }), change)]).await;
    client
        .delete_collection(MAPS, &Selector::default())
        .await
        .unwrap();
    let left = client.list(MAPS, &Selector::default()).await.unwrap();
    assert_eq!(left.items.len(), 0);
    assert_eq!(most.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn namespaces_whose_deletion_is_refused_in_other_words_each_time_are_not_retried_at_once()
 {
    let count = Arc::new(AtomicUsize::new(0));
    let hook = WebhookServer::start(move |review| {
        let count = count.fetch_add(1, Ordering::SeqCst);
        let status = json!({"message": format!("refusal {count}")});
        review_response(review, json!({"allowed": false, "status": status}))
    })
    .await;
    let server = server();
    let client = server.client();
    validating(
        &client,
        vec![webhook("v", hook.by_url("/v"), of_deletions())],
    )
    .await;
    delete_namespace(&client, "one").await;
    delete_namespace(&client, "two").await;
    let idle = server.clock().wait_until_idle();
    assert!(timeout(Duration::from_secs(10), idle).await.is_ok());
    let one = client.get("/api/v1/namespaces/one").await.unwrap();
    assert!(one.to_string().contains("refusal"), "{one}");
    // What may change the verdict is a reason to try again.
    let calls = hook.calls();
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    client.patch("/api/v1/namespaces/one", label).await.unwrap();
    let idle = server.clock().wait_until_idle();
    assert!(timeout(Duration::from_secs(10), idle).await.is_ok());
    assert!(hook.calls() > calls);
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

#[test]
fn what_waits_for_a_webhook_goes_on_after_the_end_of_its_runtime() {
    let server = server();
    let client = server.client();
    runtime().block_on(async {
        let hook = WebhookServer::start(|_| Value::Null).await;
        let mut change = of_deletions();
        change["failurePolicy"] = "Ignore".into();
        change["timeoutSeconds"] = 30.into();
        validating(&client, vec![webhook("v", hook.by_url("/v"), change)]).await;
        delete_namespace(&client, "blue").await;
        while hook.calls() == 0 {
            tokio::task::yield_now().await;
        }
    });
    // The webhook has ended, too, so that it is ignored.
    runtime().block_on(async {
        client.create(MAPS, map("x")).await.unwrap();
        let idle = server.clock().wait_until_idle();
        timeout(Duration::from_secs(10), idle).await.unwrap();
        let blue = client.get("/api/v1/namespaces/blue").await;
        assert_eq!(blue.unwrap_err().code, 404);
    });
}

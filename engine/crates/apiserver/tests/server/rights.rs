//! RBAC authorization by roles and bindings, with Kubernetes' messages.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, stream};
use http::Request;
use http::request::Builder;
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use kubemu_apiserver::{Client, Patch, Reason, Selector, Server, Status, User};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::fixture::{MAPS, at, map, server};
use crate::persistence::TestDirectory;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const LOCAL_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const LOCAL_BINDINGS: &str =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

fn alice() -> User {
    User::new("alice", &["team", "system:authenticated"])
}

fn role(name: &str, rules: Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn rule(verbs: &[&str], resource: &str) -> Value {
    json!({"verbs": verbs, "apiGroups": [""], "resources": [resource]})
}

fn binding(name: &str, kind: &str, role: &str, subject: Value) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [subject],
    })
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

/// Allows all members of a group the actions of `rules` in all namespaces.
async fn grant(server: &Server, to: &str, rules: Value) {
    let admin = server.client();
    let name = format!("for-{to}");
    admin.create(ROLES, role(&name, rules)).await.unwrap();
    let bound = binding(&name, "ClusterRole", &name, group(to));
    admin.create(BINDINGS, bound).await.unwrap();
}

async fn refused(client: &Client, path: &str) -> Status {
    client.list(path, &Selector::default()).await.unwrap_err()
}

#[tokio::test]
async fn a_user_without_a_role_is_forbidden_with_the_missing_permission() {
    let client = server().client_as(alice());
    let error = refused(&client, MAPS).await;
    assert_eq!((error.code, error.reason), (403, Reason::Forbidden));
    assert_eq!(
        error.message,
        "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API \
         group \"\" in the namespace \"default\""
    );
    let error = refused(&client, "/apis/example.com/v1/things").await;
    assert_eq!(
        error.message,
        "things.example.com is forbidden: User \"alice\" cannot list resource \"things\" in \
         API group \"example.com\" at the cluster scope"
    );
    let error = client.get("/api/v1/nodes/a/status").await.unwrap_err();
    assert_eq!(
        error.message,
        "nodes \"a\" is forbidden: User \"alice\" cannot get resource \"nodes/status\" in API \
         group \"\" at the cluster scope"
    );
    let error = client.get("/metrics").await.unwrap_err();
    assert_eq!(
        error.message,
        "forbidden: User \"alice\" cannot get path \"/metrics\""
    );
    assert_eq!(error.details, Some(Box::default()));
}

#[tokio::test]
async fn discovery_is_for_authenticated_users_and_version_for_all() {
    let server = server();
    server.client_as(alice()).get("/apis").await.unwrap();
    let nobody =
        server.client_as(User::new("system:anonymous", &["system:unauthenticated"]));
    nobody.get("/version").await.unwrap();
    assert_eq!(
        nobody.get("/apis").await.unwrap_err().message,
        "forbidden: User \"system:anonymous\" cannot get path \"/apis\""
    );
}

#[tokio::test]
async fn a_role_bound_in_a_namespace_applies_in_that_namespace() {
    let server = server();
    let admin = server.client();
    let reader = role("reader", json!([rule(&["list"], "configmaps")]));
    admin.create(LOCAL_ROLES, reader).await.unwrap();
    let account = json!({"kind": "ServiceAccount", "name": "bot"});
    let bound = binding("bots", "Role", "reader", account);
    admin.create(LOCAL_BINDINGS, bound).await.unwrap();
    let bot = server.client_as(User::service_account("default", "bot"));
    bot.list(MAPS, &Selector::default()).await.unwrap();
    refused(&bot, "/api/v1/configmaps").await;
    refused(&bot, "/api/v1/namespaces/kube-system/configmaps").await;
    let other = server.client_as(User::service_account("kube-system", "bot"));
    refused(&other, MAPS).await;
    admin
        .delete(
            &format!("{LOCAL_BINDINGS}/bots"),
            &kubemu_apiserver::Delete::default(),
        )
        .await
        .unwrap();
    refused(&bot, MAPS).await;
}

#[tokio::test]
async fn a_rule_with_resource_names_allows_only_those_objects() {
    let server = server();
    let admin = server.client();
    for name in ["a", "b"] {
        admin.create(MAPS, map(name)).await.unwrap();
    }
    let mut one = rule(&["get", "list", "watch"], "configmaps");
    one["resourceNames"] = json!(["a"]);
    grant(&server, "team", json!([one])).await;
    let client = server.client_as(alice());
    client.get(&at("a")).await.unwrap();
    assert_eq!(client.get(&at("b")).await.unwrap_err().code, 403);
    refused(&client, MAPS).await;
    let chosen = client
        .list(MAPS, &Selector::fields("metadata.name=a"))
        .await;
    assert_eq!(chosen.unwrap().items.len(), 1);
}

#[tokio::test]
async fn applying_a_missing_object_requires_permission_to_create() {
    let server = server();
    grant(&server, "team", json!([rule(&["patch"], "configmaps")])).await;
    let client = server.client_as(alice());
    let apply = || Patch::Apply {
        body: map("x"),
        manager: "m".to_owned(),
        force: false,
    };
    let error = client.patch(&at("x"), apply()).await.unwrap_err();
    assert_eq!(
        error.message,
        "configmaps \"x\" is forbidden: User \"alice\" cannot create resource \"configmaps\" \
         in API group \"\" in the namespace \"default\""
    );
    server.client().create(MAPS, map("x")).await.unwrap();
    client.patch(&at("x"), apply()).await.unwrap();
}

#[tokio::test]
async fn a_binding_to_a_missing_role_is_in_the_forbidden_message() {
    let server = server();
    let bound = binding("b", "ClusterRole", "gone", user("alice"));
    server.client().create(BINDINGS, bound).await.unwrap();
    let error = refused(&server.client_as(alice()), MAPS).await;
    assert_eq!(
        error.message,
        "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API \
         group \"\" in the namespace \"default\": RBAC: \
         clusterrole.rbac.authorization.k8s.io \"gone\" not found"
    );
}

#[tokio::test]
async fn users_cannot_grant_permissions_that_they_lack() {
    let server = server();
    let rbac = json!({"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["*"], "resourceNames": []});
    let mut held = rbac.clone();
    held["verbs"] = json!(["create", "update", "patch", "get"]);
    grant(&server, "team", json!([held, rule(&["get"], "pods")])).await;
    let client = server.client_as(alice());
    let within = role("within", json!([rule(&["get"], "pods")]));
    client.create(ROLES, within).await.unwrap();
    let beyond = role(
        "beyond",
        json!([
            rule(&["get", "list", "watch"], "pods"),
            rule(&["get"], "secrets")
        ]),
    );
    let error = client.create(ROLES, beyond).await.unwrap_err();
    assert_eq!(
        error.message,
        "clusterroles.rbac.authorization.k8s.io \"beyond\" is forbidden: user \"alice\" \
         (groups=[\"team\" \"system:authenticated\"]) is attempting to grant RBAC \
         permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
    );
    let wide = Patch::Merge(json!({"rules": [rule(&["get"], "secrets")]}));
    let error = client.patch(&format!("{ROLES}/within"), wide).await;
    assert_eq!(error.unwrap_err().code, 403);
    let bound = binding("b", "ClusterRole", "view", user("alice"));
    let error = client.create(BINDINGS, bound).await.unwrap_err();
    assert!(
        error.message.starts_with(
            "clusterrolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \
             \"alice\" (groups="
        ),
        "{}",
        error.message
    );
    let bound = binding("b", "ClusterRole", "gone", user("alice"));
    let error = client.create(BINDINGS, bound).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            404,
            "clusterrolebindings.rbac.authorization.k8s.io \"gone\" not found"
        )
    );
}

#[tokio::test]
async fn the_verbs_bind_and_escalate_allow_granting_more() {
    let server = server();
    let rbac = json!({"verbs": ["create", "bind", "escalate"],
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]});
    grant(&server, "team", json!([rbac])).await;
    let client = server.client_as(alice());
    let wide = role("wide", json!([rule(&["*"], "secrets")]));
    client.create(ROLES, wide).await.unwrap();
    let bound = binding("b", "ClusterRole", "wide", user("alice"));
    client.create(BINDINGS, bound).await.unwrap();
    client
        .list("/api/v1/secrets", &Selector::default())
        .await
        .unwrap();
}

/// The status code for a request whose body does not come, or `None` if the server waits for it.
fn code_without_body(server: &Server, user: User, head: Builder) -> Option<u16> {
    let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let service = server.in_process_as(user);
    let response = service.oneshot(head.body(body).unwrap()).now_or_never()?;
    Some(response.unwrap().status().as_u16())
}

#[tokio::test]
async fn a_forbidden_request_is_refused_before_its_body_is_read() {
    let server = server();
    let post = |accept| Request::post(MAPS).header("accept", accept);
    let json = "application/json";
    let wrong = "application/xml";
    assert_eq!(code_without_body(&server, alice(), post(json)), Some(403));
    assert_eq!(code_without_body(&server, alice(), post(wrong)), Some(403));
    let as_other = post(json).header("impersonate-user", "other");
    assert_eq!(code_without_body(&server, alice(), as_other), Some(403));
    assert_eq!(
        code_without_body(&server, User::admin(), post(wrong)),
        Some(406)
    );
    assert_eq!(code_without_body(&server, User::admin(), post(json)), None);
    let large = Full::new(Bytes::from(vec![b'x'; 4 * 1024 * 1024]));
    let large = post(json).body(large).unwrap();
    let refused = server.in_process_as(alice()).oneshot(large).await.unwrap();
    assert_eq!(refused.status().as_u16(), 403);
}

#[tokio::test]
async fn a_request_that_reads_is_answered_without_its_body() {
    let get = Request::get(MAPS);
    assert_eq!(code_without_body(&server(), User::admin(), get), Some(200));
}

#[tokio::test]
async fn a_role_of_more_permissions_than_can_be_compared_is_forbidden() {
    let server = server();
    let write = json!({"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"]});
    grant(&server, "team", json!([write])).await;
    let wide = |length: usize| {
        let all: Vec<String> = (0..length).map(|it| format!("x{it}")).collect();
        role(
            "wide",
            json!([{"verbs": all, "apiGroups": all, "resources": all}]),
        )
    };
    let client = server.client_as(alice());
    for length in [50, 10_000] {
        let refused = client.create(ROLES, wide(length)).await.unwrap_err();
        let number = length * length * length;
        let expected = format!(
            "clusterroles.rbac.authorization.k8s.io \"wide\" is forbidden: the rules have \
             {number} combinations of an API group, a resource, a verb and a name; only a user \
             with the verbs escalate and bind can grant more than 100000"
        );
        assert_eq!((refused.code, refused.message), (403, expected));
    }
    let refused = client.create(ROLES, wide(3)).await.unwrap_err();
    assert!(
        refused.message.contains("not currently held"),
        "{refused:?}"
    );
    server.client().create(ROLES, wide(10_000)).await.unwrap();
}

#[tokio::test]
async fn escalate_with_a_name_does_not_apply_to_a_role_that_is_created() {
    let server = server();
    let group = ["rbac.authorization.k8s.io"];
    let write =
        json!({"verbs": ["create", "update"], "apiGroups": group, "resources": ["*"]});
    let escalate = json!({"verbs": ["escalate"], "apiGroups": group,
        "resources": ["clusterroles"], "resourceNames": ["wide"]});
    grant(&server, "team", json!([write, escalate])).await;
    let client = server.client_as(alice());
    let wide = role("wide", json!([rule(&["*"], "secrets")]));
    let refused = client.create(ROLES, wide.clone()).await.unwrap_err();
    assert_eq!(refused.code, 403, "a POST has no name in its path");
    let narrow = role("wide", json!([]));
    server.client().create(ROLES, narrow).await.unwrap();
    client.update(&format!("{ROLES}/wide"), wide).await.unwrap();
}

#[tokio::test]
async fn roles_are_aggregated_by_their_labels() {
    let server = server();
    let admin = server.client();
    let view = admin.get(&format!("{ROLES}/view")).await.unwrap();
    assert!(view["rules"].to_string().contains("configmaps"));
    let admins = admin.get(&format!("{ROLES}/admin")).await.unwrap();
    for part in ["configmaps", "secrets", "rolebindings"] {
        assert!(admins["rules"].to_string().contains(part), "{part}");
    }
    let mut things = role("things", json!([rule(&["get"], "things")]));
    things["metadata"]["labels"] =
        json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    admin.create(ROLES, things).await.unwrap();
    server.clock().wait_until_idle().await;
    let admins = admin.get(&format!("{ROLES}/admin")).await.unwrap();
    assert!(admins["rules"].to_string().contains("things"));
}

/// A role that aggregates the roles with the label `in: FROM` and has the label `in: OWN`.
fn aggregated(own: &str, from: &str, rules: Value) -> Value {
    let mut role = role(own, rules);
    role["metadata"]["labels"] = json!({ "in": own });
    role["aggregationRule"] =
        json!({"clusterRoleSelectors": [{"matchLabels": {"in": from}}]});
    role
}

/// Waits until the controllers have no more work. Panics if they go on.
async fn settle(server: &Server) {
    let idle = server.clock().wait_until_idle();
    let ended = tokio::time::timeout(Duration::from_secs(20), idle).await;
    ended.expect("the controllers must come to an end");
}

#[tokio::test]
async fn two_roles_that_aggregate_each_other_settle_on_the_same_rules() {
    let server = server();
    let admin = server.client();
    let pods = json!([rule(&["get"], "pods")]);
    admin
        .create(ROLES, aggregated("a", "b", json!([])))
        .await
        .unwrap();
    admin
        .create(ROLES, aggregated("b", "a", pods.clone()))
        .await
        .unwrap();
    settle(&server).await;
    for name in ["a", "b"] {
        let role = admin.get(&format!("{ROLES}/{name}")).await.unwrap();
        assert_eq!(role["rules"], pods, "{name}");
    }
}

#[tokio::test]
async fn a_server_starts_with_roles_that_pass_their_rules_round_for_ever() {
    let directory = TestDirectory::new();
    let server = Server::new(directory.options()).unwrap();
    let admin = server.client();
    let pods = json!([rule(&["get"], "pods")]);
    for role in [
        aggregated("a", "b", json!([])),
        aggregated("b", "c", json!([])),
        aggregated("c", "a", pods),
    ] {
        admin.create(ROLES, role).await.unwrap();
    }
    settle(&server).await;
    drop((server, admin));
    let server = Server::new(directory.options()).unwrap();
    settle(&server).await;
}

/// The status of a review that `client` posts.
async fn review(client: &Client, plural: &str, spec: Value) -> Value {
    let path = format!("{REVIEWS}/{plural}");
    let answer = client.create(&path, json!({ "spec": spec })).await.unwrap();
    answer["status"].clone()
}

#[tokio::test]
async fn access_reviews_return_decision_and_reason() {
    let server = server();
    grant(&server, "team", json!([rule(&["get"], "pods")])).await;
    let client = server.client_as(alice());
    let may = |verb: &str| json!({"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "a"}});
    let why = "RBAC: allowed by ClusterRoleBinding \"for-team\" of ClusterRole \"for-team\" \
               to Group \"team\"";
    let own = "selfsubjectaccessreviews";
    assert_eq!(
        review(&client, own, may("get")).await,
        json!({"allowed": true, "reason": why})
    );
    assert_eq!(
        review(&client, own, may("list")).await,
        json!({"allowed": false})
    );
    assert_eq!(
        review(&server.client(), own, may("list")).await,
        json!({"allowed": true})
    );
    let mut of_others = may("get");
    of_others["user"] = "bob".into();
    of_others["groups"] = json!(["team"]);
    let error = review(&server.client(), "subjectaccessreviews", of_others.clone()).await;
    assert_eq!(error["allowed"], true);
    let path = format!("{REVIEWS}/subjectaccessreviews");
    let error = client.create(&path, json!({"spec": of_others})).await;
    assert_eq!(error.unwrap_err().code, 403);
    let nothing = json!({"spec": {"user": "bob"}});
    let error = server.client().create(&path, nothing).await.unwrap_err();
    assert_eq!(
        error.message,
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: \
         Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must \
         be specified"
    );
}

#[tokio::test]
async fn a_local_review_is_limited_to_its_namespace() {
    let client = server().client();
    let path = "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews";
    let ask = |namespace: &str| {
        json!({"spec": {"user": "bob", "resourceAttributes":
            {"verb": "get", "resource": "pods", "namespace": namespace}}})
    };
    let answer = client.create(path, ask("a")).await.unwrap();
    assert_eq!(answer["status"]["allowed"], false);
    let error = client.create(path, ask("b")).await.unwrap_err();
    assert_eq!(
        error.message,
        ".authorization.k8s.io \"\" is invalid: \
         spec.resourceAttributes.namespace: Invalid value: \"b\": must match \
         metadata.namespace"
    );
}

#[tokio::test]
async fn a_rules_review_lists_the_permissions_of_its_user() {
    let server = server();
    grant(&server, "team", json!([rule(&["get"], "pods")])).await;
    let client = server.client_as(alice());
    let status = review(
        &client,
        "selfsubjectrulesreviews",
        json!({"namespace": "a"}),
    )
    .await;
    assert_eq!(status["incomplete"], false);
    let pods = rule(&["get"], "pods");
    assert!(status["resourceRules"].as_array().unwrap().contains(&pods));
    assert!(
        status["nonResourceRules"]
            .to_string()
            .contains("/openapi/*")
    );
    let path = format!("{REVIEWS}/selfsubjectrulesreviews");
    let error = client.create(&path, json!({"spec": {}})).await.unwrap_err();
    assert_eq!(error.message, "no namespace on request");
}

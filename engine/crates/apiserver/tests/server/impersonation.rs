//! Impersonation requires a permission.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http::header::{HeaderName, HeaderValue};
use http_body_util::Full;
use kubemu_apiserver::{Audit, Options, Server, User};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::fixture::{options, read, server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PODS: &str = "/api/v1/pods";
const SELF_SUBJECT_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The status code and the response to a SelfSubjectReview.
async fn user_info(
    server: &Server,
    user: User,
    headers: &[(&str, &str)],
) -> (u16, Value) {
    let request = Request::builder()
        .method("POST")
        .uri(SELF_SUBJECT_REVIEWS)
        .header("content-type", "application/json");
    let request = request.body(Full::new("{}".into())).unwrap();
    send(server, user, headers, request).await
}

/// The status code and the response to a list.
async fn list(
    server: &Server,
    user: User,
    headers: &[(&str, &str)],
    path: &str,
) -> (u16, Value) {
    let request = Request::get(path).body(Full::default()).unwrap();
    send(server, user, headers, request).await
}

async fn send(
    server: &Server,
    user: User,
    headers: &[(&str, &str)],
    mut request: Request<Full<Bytes>>,
) -> (u16, Value) {
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        request.headers_mut().append(name, value);
    }
    let response = server.in_process_as(user).oneshot(request).await.unwrap();
    let (code, text) = read(response).await;
    (code, serde_json::from_str(&text).unwrap())
}

fn alice() -> User {
    User::new("alice", &["system:authenticated"])
}

/// A server of a release, on which `alice` and the service account `tools/agent` may do the
/// actions of `rules`.
async fn allowing(release: &str, rules: Value) -> Server {
    let server = Server::new(Options {
        kube: release.parse().unwrap(),
        ..options()
    })
    .unwrap();
    let client = server.client();
    let role = json!({"metadata": {"name": "impersonators"}, "rules": rules});
    client
        .create(&format!("{RBAC}/clusterroles"), role)
        .await
        .unwrap();
    let binding = json!({"metadata": {"name": "impersonators"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "impersonators"},
        "subjects": [{"kind": "User", "name": "alice"},
            {"kind": "ServiceAccount", "namespace": "tools", "name": "agent"}]});
    let path = format!("{RBAC}/clusterrolebindings");
    client.create(&path, binding).await.unwrap();
    server
}

/// A rule about a resource of the core group or of `authentication.k8s.io`.
fn rule(verb: &str, resource: &str) -> Value {
    json!({"verbs": [verb], "apiGroups": ["", "authentication.k8s.io"],
        "resources": [resource]})
}

#[tokio::test]
async fn an_administrator_may_impersonate_any_user() {
    let headers = [
        ("impersonate-user", "bob"),
        ("impersonate-group", "team"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-scopes", "a"),
        ("impersonate-extra-example.com%2fkey", "b"),
    ];
    let (code, review) = user_info(&server(), User::admin(), &headers).await;
    assert_eq!(code, 201);
    assert_eq!(
        review["status"]["userInfo"],
        json!({
            "username": "bob",
            "uid": "7",
            "groups": ["team", "system:authenticated"],
            "extra": {"scopes": ["a"], "example.com/key": ["b"]},
        })
    );
    let account = [("impersonate-user", "system:serviceaccount:tools:bot")];
    let (_, review) = user_info(&server(), User::admin(), &account).await;
    assert_eq!(
        review["status"]["userInfo"]["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:tools",
            "system:authenticated"
        ])
    );
}

#[tokio::test]
async fn headers_that_are_not_ascii_are_never_ignored() {
    let headers = [
        ("impersonate-user", "müller"),
        ("impersonate-group", "büro"),
        ("impersonate-uid", "ü"),
        ("impersonate-extra-scopes", "grün"),
    ];
    let (code, review) = user_info(&server(), User::admin(), &headers).await;
    assert_eq!(code, 201);
    assert_eq!(
        review["status"]["userInfo"],
        json!({
            "username": "müller",
            "uid": "ü",
            "groups": ["büro", "system:authenticated"],
            "extra": {"scopes": ["grün"]},
        })
    );
    let (code, _) = user_info(&server(), alice(), &headers).await;
    assert_eq!(code, 403);
}

#[tokio::test]
async fn impersonation_without_a_role_is_forbidden() {
    let bob = [("impersonate-user", "bob")];
    let old = allowing("1.35", json!([])).await;
    let (code, answer) = list(&old, alice(), &bob, PODS).await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in \
         API group \"\" at the cluster scope"
    );
    let (code, answer) = list(&server(), alice(), &bob, PODS).await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "pods is forbidden: User \"alice\" cannot impersonate-on:user-info:list resource \
         \"pods\" in API group \"\" at the cluster scope"
    );
    let group = [("impersonate-group", "system:masters")];
    let (code, answer) = user_info(&server(), alice(), &group).await;
    assert_eq!(code, 400);
    assert_eq!(
        answer["message"],
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", \
         Groups:[]string{\"system:masters\"}, Extra:map[string][]string(nil)} without \
         impersonating a user name"
    );
}

#[tokio::test]
async fn the_audit_record_has_both_users() {
    let recorded: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let log = recorded.clone();
    let audit = Audit::new(move |event| {
        let names = (event.user.clone(), event.impersonated.clone());
        log.lock().unwrap().push(names);
    });
    let server = Server::new(Options {
        audit: Some(audit),
        ..options()
    })
    .unwrap();
    user_info(&server, User::admin(), &[("impersonate-user", "bob")]).await;
    let names = ("kubernetes-admin".to_owned(), "bob".to_owned());
    assert_eq!(*recorded.lock().unwrap(), [names]);
}

#[tokio::test]
async fn an_impersonated_node_is_in_the_group_of_nodes() {
    let node = [("impersonate-user", "system:node:a")];
    for (release, groups) in [
        ("1.35", json!(["system:authenticated"])),
        ("1.36", json!(["system:nodes", "system:authenticated"])),
    ] {
        let server = allowing(release, json!([])).await;
        let (_, review) = user_info(&server, User::admin(), &node).await;
        assert_eq!(review["status"]["userInfo"]["groups"], groups, "{release}");
    }
    // A user with groups is not impersonated as a node.
    let headers = [node[0], ("impersonate-group", "team")];
    let (_, review) = user_info(&server(), User::admin(), &headers).await;
    assert_eq!(
        review["status"]["userInfo"]["groups"],
        json!(["team", "system:authenticated"])
    );
}

#[tokio::test]
async fn constrained_impersonation_allows_only_some_actions() {
    let bob = [("impersonate-user", "bob")];
    let rules = || {
        json!([
            rule("impersonate:user-info", "users"),
            rule("impersonate-on:user-info:list", "pods")
        ])
    };
    let server = allowing("1.36", rules()).await;
    let grant = json!([{"verbs": ["list"], "apiGroups": [""],
        "resources": ["pods", "services"]}]);
    let role = json!({"metadata": {"name": "readers"}, "rules": grant});
    let client = server.client();
    client
        .create(&format!("{RBAC}/clusterroles"), role)
        .await
        .unwrap();
    let binding = json!({"metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "readers"},
        "subjects": [{"kind": "User", "name": "bob"}]});
    let path = format!("{RBAC}/clusterrolebindings");
    client.create(&path, binding).await.unwrap();
    assert_eq!(list(&server, alice(), &bob, PODS).await.0, 200);
    let services = "/api/v1/services";
    let (code, answer) = list(&server, alice(), &bob, services).await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "services is forbidden: User \"alice\" cannot impersonate-on:user-info:list resource \
         \"services\" in API group \"\" at the cluster scope"
    );
    let old = allowing("1.35", rules()).await;
    assert_eq!(list(&old, alice(), &bob, PODS).await.0, 403);
}

#[tokio::test]
async fn constrained_impersonation_checks_every_attribute() {
    let rules = json!([rule("impersonate:user-info", "users"),
        rule("impersonate-on:user-info:create", "selfsubjectreviews"),
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"],
            "resources": ["groups", "uids", "userextras/example.com/key"],
            "resourceNames": ["team", "system:masters", "7", "value"]}]);
    let server = allowing("1.36", rules).await;
    let bob = ("impersonate-user", "bob");
    let all = [
        bob,
        ("impersonate-uid", "7"),
        ("impersonate-group", "team"),
        ("impersonate-extra-example.com%2fkey", "value"),
    ];
    let (code, review) = user_info(&server, alice(), &all).await;
    assert_eq!(code, 201, "{review}");
    assert_eq!(
        review["status"]["userInfo"],
        json!({"username": "bob", "uid": "7", "groups": ["team", "system:authenticated"],
            "extra": {"example.com/key": ["value"]}})
    );
    let end = "at the cluster scope";
    let group = "resource \"groups\" in API group \"authentication.k8s.io\"";
    let rows = [
        (
            ("impersonate-uid", "8"),
            format!(
                "uids.authentication.k8s.io \"8\" is forbidden: User \"alice\" cannot \
                 impersonate:user-info resource \"uids\" in API group \
                 \"authentication.k8s.io\" {end}"
            ),
        ),
        (
            ("impersonate-group", "crew"),
            format!(
                "groups.authentication.k8s.io \"crew\" is forbidden: User \"alice\" cannot \
                 impersonate:user-info {group} {end}"
            ),
        ),
        (
            ("impersonate-group", "system:masters"),
            format!(
                "groups.authentication.k8s.io \"system:masters\" is forbidden: User \"alice\" \
                 cannot impersonate:user-info {group} {end}: impersonating the system:masters \
                 group is not allowed"
            ),
        ),
        (
            ("impersonate-extra-scopes", "value"),
            format!(
                "userextras.authentication.k8s.io is forbidden: User \"alice\" cannot \
                 impersonate:user-info resource \"userextras\" in API group \
                 \"authentication.k8s.io\" {end}: impersonating an invalid key in extra is not \
                 allowed: extra.key: Invalid value: \"scopes\": must be a domain-prefixed path \
                 (such as \"acme.io/foo\")"
            ),
        ),
    ];
    for (header, expected) in rows {
        let (code, answer) = user_info(&server, alice(), &[bob, header]).await;
        assert_eq!((code, &answer["message"]), (403, &json!(expected)));
    }
}

#[tokio::test]
async fn many_groups_are_allowed_by_the_name_of_all() {
    let rules = json!([rule("impersonate:user-info", "users"),
        rule("impersonate-on:user-info:create", "selfsubjectreviews"),
        {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"],
            "resources": ["groups"], "resourceNames": ["*"]}]);
    let server = allowing("1.36", rules).await;
    let group = |name| ("impersonate-group", name);
    let mut headers = vec![
        ("impersonate-user", "bob"),
        group("a"),
        group("b"),
        group("c"),
    ];
    assert_eq!(user_info(&server, alice(), &headers).await.0, 403);
    headers.push(group("d"));
    assert_eq!(user_info(&server, alice(), &headers).await.0, 201);
}

#[tokio::test]
async fn a_service_account_may_impersonate_the_node_of_its_token() {
    let rules = json!([rule("impersonate-on:associated-node:create", "selfsubjectreviews"),
        {"verbs": ["impersonate:associated-node"], "apiGroups": ["authentication.k8s.io"],
            "resources": ["nodes"], "resourceNames": ["*"]}]);
    let server = allowing("1.36", rules).await;
    let mut agent = User::service_account("tools", "agent");
    let key = "authentication.kubernetes.io/node-name".to_owned();
    agent.extra.insert(key, vec!["a".to_owned()]);
    let own = [("impersonate-user", "system:node:a")];
    let (code, review) = user_info(&server, agent.clone(), &own).await;
    assert_eq!(code, 201, "{review}");
    assert_eq!(review["status"]["userInfo"]["username"], "system:node:a");
    let other = [("impersonate-user", "system:node:b")];
    assert_eq!(user_info(&server, agent, &other).await.0, 403);
}

#[tokio::test]
async fn the_last_successful_mode_is_tried_first() {
    let legacy = json!([{"verbs": ["impersonate"], "apiGroups": [""],
        "resources": ["users"], "resourceNames": ["bob"]}]);
    let server = allowing("1.36", legacy).await;
    let message = async |name| {
        let header = [("impersonate-user", name)];
        user_info(&server, alice(), &header).await.1["message"].clone()
    };
    let refused = message("carol").await;
    let refused = refused.as_str().unwrap();
    assert!(
        refused.contains("impersonate-on:user-info:create"),
        "{refused}"
    );
    assert_eq!(message("bob").await, Value::Null);
    let refused = message("carol").await;
    let refused = refused.as_str().unwrap();
    assert!(refused.contains("cannot impersonate resource"), "{refused}");
}

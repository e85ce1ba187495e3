//! Impersonation requires a permission.

use std::sync::{Arc, Mutex};

use fivespot_apiserver::{Audit, Options, Server, User};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::fixture::{options, read, server};

const SELF_SUBJECT_REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The status code and the response to a SelfSubjectReview.
async fn user_info(
    server: &Server,
    user: User,
    headers: &[(&str, &str)],
) -> (u16, Value) {
    let mut request = Request::builder()
        .method("POST")
        .uri(SELF_SUBJECT_REVIEWS)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new("{}".into())).unwrap();
    let response = server.in_process_as(user).oneshot(request).await.unwrap();
    let (code, text) = read(response).await;
    (code, serde_json::from_str(&text).unwrap())
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
    let alice = User::new("alice", &["system:authenticated"]);
    let (code, _) = user_info(&server(), alice, &headers).await;
    assert_eq!(code, 403);
}

#[tokio::test]
async fn impersonation_without_a_role_is_forbidden() {
    let alice = || User::new("alice", &["system:authenticated"]);
    let (code, answer) =
        user_info(&server(), alice(), &[("impersonate-user", "bob")]).await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in \
         API group \"\" at the cluster scope"
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

use std::sync::{Arc, Mutex};

use http::{Response, StatusCode};
use kube::client::Body;
use kube::core::GroupVersionKind;

use super::*;
use crate::cache::{TOO_MANY, WholeObject};

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// A request: method, path with query, body.
type ReceivedRequest = (Method, String, Value);

/// A server that sends the same response to all requests and records them.
fn server(
    code: StatusCode,
    content: Value,
) -> (ApiClient, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let own = requests.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (requests, content) = (own.clone(), content.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let received = (head.method, head.uri.to_string(), body);
            requests.lock().unwrap().push(received);
            let response = Response::builder().status(code);
            Ok::<_, kube::Error>(
                response
                    .body(Body::from(content.to_string().into_bytes()))
                    .unwrap(),
            )
        }
    });
    (
        ApiClient::new(Client::new(service, "default"), "5spot"),
        requests,
    )
}

fn pod() -> ApiResource {
    resource("", "v1", "Pod")
}

fn at<'a>(resource: &'a ApiResource, name: &'a str) -> Address<'a> {
    Address {
        resource,
        namespace: Some("default"),
        name,
        projection: None,
    }
}

#[test]
fn every_kind_has_its_url() {
    let machines = resource("cluster.x-k8s.io", "v1beta2", "Machine");
    let nodes = resource("", "v1", "Node");
    let all_nodes = Address {
        resource: &nodes,
        namespace: None,
        name: "",
        projection: None,
    };
    assert_eq!(
        at(&machines, "worker").path(),
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/worker"
    );
    assert_eq!(all_nodes.path(), "/api/v1/nodes");
}

#[tokio::test]
async fn an_eviction_that_is_refused_with_a_success_code_is_an_error() {
    let refusal = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500,
        "message": "This pod has more than one PodDisruptionBudget",
    });
    let (api, _) = server(StatusCode::CREATED, refusal);
    let response = api.evict(&at(&pod(), "web"), "uid-1").await;
    let Err(kube::Error::Api(status)) = response else {
        panic!("{response:?}");
    };
    assert_eq!(status.code, 500);
}

#[tokio::test]
async fn an_eviction_has_the_uid_of_its_pod_as_the_precondition() {
    let (api, requests) = server(StatusCode::CREATED, json!({"kind": "Status"}));
    api.evict(&at(&pod(), "web"), "uid-1").await.unwrap();
    let (method, path, body) = requests.lock().unwrap().remove(0);
    assert_eq!(method, Method::POST);
    assert_eq!(path, "/api/v1/namespaces/default/pods/web/eviction");
    assert_eq!(body["apiVersion"], "policy/v1");
    assert_eq!(body["deleteOptions"]["preconditions"]["uid"], "uid-1");
}

#[tokio::test]
async fn a_deletion_has_the_uid_of_its_object_as_the_precondition() {
    let (api, requests) = server(StatusCode::OK, json!({"kind": "Status"}));
    api.delete(&at(&pod(), "web"), "uid-1", None).await.unwrap();
    let (method, _, body) = requests.lock().unwrap().remove(0);
    assert_eq!(method, Method::DELETE);
    assert_eq!(body["preconditions"]["uid"], "uid-1");
    assert_eq!(body["propagationPolicy"], "Background");
}

#[tokio::test]
async fn a_create_uses_strict_field_validation() {
    let (api, requests) = server(StatusCode::CREATED, json!({}));
    let object = json!({"metadata": {"name": "web"}});
    api.create(&at(&pod(), ""), &object).await.unwrap();
    let (_, path, body) = requests.lock().unwrap().remove(0);
    assert!(path.contains("fieldValidation=Strict"), "{path}");
    assert!(path.contains("fieldManager=5spot"), "{path}");
    assert_eq!(body, object);
}

#[tokio::test]
async fn a_missing_object_is_no_error_and_every_other_failure_is() {
    let missing = json!({
        "kind": "Status", "apiVersion": "v1", "code": 404, "details": {"name": "web"},
    });
    let (api, _) = server(StatusCode::NOT_FOUND, missing);
    assert_eq!(api.get(&at(&pod(), "web")).await.unwrap(), None);
    let unserved =
        json!({"kind": "Status", "apiVersion": "v1", "code": 404, "details": {}});
    let (api, _) = server(StatusCode::NOT_FOUND, unserved);
    assert!(api.get(&at(&pod(), "web")).await.is_err());
    let broken = json!({"kind": "Status", "code": 500, "message": "broken"});
    let (api, _) = server(StatusCode::INTERNAL_SERVER_ERROR, broken);
    assert!(api.get(&at(&pod(), "web")).await.is_err());
}

#[test]
fn a_text_that_would_leave_its_place_in_a_path_is_no_segment() {
    for text in ["web", "web-1.example.org", "system:node", "...", "a_b~c"] {
        assert!(is_segment(text), "{text}");
    }
    for text in ["", ".", "..", "a/b", "a?b", "a%2fb", "é"] {
        assert!(!is_segment(text), "{text}");
    }
}

/// Reads objects of a server that nobody vouches for.
#[derive(Debug)]
struct OfStrangers;

impl Projection for OfStrangers {
    fn mask(&self) -> &'static FieldMask {
        &LEAN
    }

    fn rejects_too_many_values(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn an_object_with_too_many_values_is_an_error_only_where_its_projection_says_so() {
    let object = json!({"metadata": {"name": "web"}, "data": vec![0; 100_001]});
    let (api, _) = server(StatusCode::OK, object);
    let pods = pod();
    let read = |projection| {
        let (api, pods) = (&api, &pods);
        async move {
            let place = Address {
                projection: Some(projection),
                ..at(pods, "web")
            };
            api.get(&place).await
        }
    };
    let kept = read(&WholeObject).await.unwrap().unwrap();
    assert_eq!(kept["metadata"]["name"], "web");
    assert_eq!(kept["data"], TOO_MANY);
    assert!(read(&OfStrangers).await.is_err());
}

#[tokio::test]
async fn the_query_of_a_list_is_escaped() {
    let response = json!({"items": [{"metadata": {"name": "web"}}]});
    let (api, requests) = server(StatusCode::OK, response);
    let mut found = 0;
    let each = |_| {
        found += 1;
        Ok(())
    };
    let query = [
        ("fieldSelector", "spec.nodeName=n1"),
        ("continue", "a+/=&b"),
    ];
    let page = api.page(&at(&pod(), ""), &query, each).await.unwrap();
    assert_eq!((found, page), (1, Page::default()));
    let (_, path, _) = requests.lock().unwrap().remove(0);
    assert!(
        path.ends_with("?fieldSelector=spec.nodeName%3Dn1&continue=a%2B/%3D%26b"),
        "{path}"
    );
}

#[tokio::test]
async fn a_busy_server_says_when_it_is_asked_again() {
    let asked = async |code: u16, header: &'static str, body: Value| {
        let service = tower::service_fn(move |_: Request<Body>| {
            let body = body.to_string().into_bytes();
            async move {
                let response = Response::builder().status(code);
                let response = response.header("Retry-After", header);
                Ok::<_, kube::Error>(response.body(Body::from(body)).unwrap())
            }
        });
        let api = ApiClient::new(Client::new(service, "default"), "5spot");
        let error = api.get(&at(&pod(), "it")).await.unwrap_err();
        crate::http::error::retry_after(&error).map(|span| span.as_secs())
    };
    let status = |seconds: u32| {
        json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "details": {"retryAfterSeconds": seconds},
        })
    };
    assert_eq!(asked(429, "7", json!("Too many requests")).await, Some(7));
    assert_eq!(asked(503, "7", status(3)).await, Some(3));
    assert_eq!(asked(503, "86400", json!("")).await, Some(300));
    assert_eq!(
        asked(429, "Fri, 06 Mar 2026 12:00:00 GMT", json!("")).await,
        None
    );
    assert_eq!(asked(500, "7", json!("")).await, None);
}

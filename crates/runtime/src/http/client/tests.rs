use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http_body_util::StreamBody;
use kube::client::Body;
use kube::core::GroupVersionKind;

use super::*;
use crate::cache::{TOO_MANY, WholeObject};
use crate::http::error::message;
use crate::http::{MAX_OBJECT_BYTES, Outage};

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
    let service = tower::service_fn(move |request: http::Request<Body>| {
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
    let deletion = Deletion::of("uid-1");
    api.delete(&at(&pod(), "web"), deletion).await.unwrap();
    let (method, _, body) = requests.lock().unwrap().remove(0);
    assert_eq!(method, Method::DELETE);
    assert_eq!(body["preconditions"], json!({"uid": "uid-1"}));
    assert_eq!(body["propagationPolicy"], "Background");
    let deletion = deletion.in_version("7");
    api.delete(&at(&pod(), "web"), deletion).await.unwrap();
    let (_, _, body) = requests.lock().unwrap().remove(0);
    let expected = json!({"uid": "uid-1", "resourceVersion": "7"});
    assert_eq!(body["preconditions"], expected);
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
        let service = tower::service_fn(move |_: http::Request<Body>| {
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

/// A server whose responses have these pieces, each as long after the one before.
fn slow_server(pause: Duration, pieces: Vec<Bytes>) -> ApiClient {
    let service = tower::service_fn(move |_: http::Request<Body>| {
        let pieces = stream::iter(pieces.clone()).then(move |piece| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, kube::Error>(hyper::body::Frame::data(piece))
        });
        async { Ok::<_, kube::Error>(Response::new(StreamBody::new(pieces.boxed()))) }
    });
    ApiClient::new(Client::new(service, "default"), "5spot")
}

const LATE: &str = "the server did not complete its response within 30 s";

#[tokio::test(start_paused = true)]
async fn a_response_that_does_not_end_in_time_is_given_up() {
    let pieces = ["{\"items\": [", "]}"].map(|it| Bytes::from_static(it.as_bytes()));
    let api = slow_server(Duration::from_secs(29), pieces.to_vec());
    let object = api.get(&at(&pod(), "web")).await.unwrap_err();
    assert_eq!(message(&object), LATE);
    let page = api.page(&at(&pod(), ""), &[], |_| Ok(())).await;
    assert_eq!(message(&page.unwrap_err()), LATE);
    let api = slow_server(Duration::from_secs(14), pieces.to_vec());
    assert!(api.get(&at(&pod(), "web")).await.unwrap().is_some());
    api.page(&at(&pod(), ""), &[], |_| Ok(())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_silent_server_is_given_up_and_counts_as_an_outage() {
    let service = tower::service_fn(|_: http::Request<Body>| {
        std::future::pending::<kube::Result<Response<Body>>>()
    });
    let outage = Arc::new(Outage::new("the server"));
    let observed = outage.clone();
    let api = ApiClient::new(Client::new(service, "default"), "5spot")
        .observed_by(Arc::new(move |exchange| observed.record(exchange.answer)));
    let read = api.get(&at(&pod(), "web")).await;
    assert_eq!(message(&read.unwrap_err()), LATE);
    assert!(outage.is_active());
    let watch = api.watch(&at(&pod(), ""), &[], "1").await;
    assert_eq!(message(&watch.unwrap_err()), LATE);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_not_limited_in_time() {
    let event = json!({"type": "MODIFIED", "object": {"metadata": {"name": "web"}}});
    let event = Bytes::from(format!("{event}\n"));
    let api = slow_server(Duration::from_secs(280), vec![event; 3]);
    let pods = pod();
    let at = at(&pods, "");
    let mut events = api.watch(&at, &[], "1").await.unwrap();
    let mut found = 0;
    while events.next(&at).await.unwrap().is_some() {
        found += 1;
    }
    assert_eq!(found, 3);
}

#[tokio::test]
async fn only_a_list_may_be_larger_than_an_object() {
    let half = "x".repeat(MAX_OBJECT_BYTES / 2);
    let pieces = [
        format!("{{\"items\": [{{\"a\": \"{half}\"}}, "),
        format!("{{\"a\": \"{half}\"}}]}}"),
    ];
    let api = slow_server(Duration::ZERO, pieces.map(Bytes::from).to_vec());
    let pods = pod();
    let object = api.get(&at(&pods, "web")).await.unwrap_err();
    assert_eq!(
        message(&object),
        format!("the server's response is larger than {MAX_OBJECT_BYTES} bytes")
    );
    let mut found = 0;
    let each = |_| {
        found += 1;
        Ok(())
    };
    api.page(&at(&pods, ""), &[], each).await.unwrap();
    assert_eq!(found, 2);
}

#[tokio::test]
async fn an_object_of_a_list_or_an_event_that_is_too_large_is_not_read_to_its_end() {
    let pieces = vec![Bytes::from("x".repeat(MAX_OBJECT_BYTES / 2)); 3];
    let begun = |text: &'static str| {
        let first = [Bytes::from_static(text.as_bytes())];
        slow_server(
            Duration::ZERO,
            first.into_iter().chain(pieces.clone()).collect(),
        )
    };
    let pods = pod();
    let at = at(&pods, "");
    let api = begun("{\"items\": [{\"a\": \"");
    let page = api.page(&at, &[], |_| Ok(())).await.unwrap_err();
    let api = begun("{\"type\": \"MODIFIED\", \"object\": {\"a\": \"");
    let mut events = api.watch(&at, &[], "1").await.unwrap();
    let event = events.next(&at).await.unwrap_err();
    let expected = format!(
        "an object in the server's response is larger than {MAX_OBJECT_BYTES} bytes"
    );
    assert_eq!([message(&page), message(&event)], [&*expected, &*expected]);
}

#[tokio::test]
async fn a_gateway_that_responds_for_its_server_counts_as_an_outage() {
    let outage = Outage::new("the server");
    for (code, is_active) in [
        (503, true),
        (502, true),
        (504, true),
        (500, false),
        (200, false),
    ] {
        outage.record(Ok(StatusCode::from_u16(code).unwrap()));
        assert_eq!(outage.is_active(), is_active, "{code}");
    }
}

#[tokio::test]
async fn a_request_is_shown_by_verb_and_resource() {
    let (api, _) = server(StatusCode::OK, json!({}));
    let shown = Arc::new(Mutex::new(Vec::new()));
    let all = shown.clone();
    let api = api.observed_by(Arc::new(move |exchange| {
        let code = exchange.answer.map_or(0, |code| code.as_u16());
        let request = format!("{} {} {code}", exchange.verb, exchange.resource);
        all.lock().unwrap().push(request);
    }));
    let (pods, object) = (pod(), json!({}));
    let [all, web] = [at(&pods, ""), at(&pods, "web")];
    let merge = PatchFormat::Merge;
    api.get(&web).await.unwrap();
    let _ = api.page(&all, &[], |_| Ok(())).await;
    api.watch(&all, &[], "1").await.unwrap();
    api.create(&all, &object).await.unwrap();
    api.replace(&web, &object).await.unwrap();
    api.patch(&web, Some("status"), merge, &object)
        .await
        .unwrap();
    api.delete(&web, Deletion::of("uid-1")).await.unwrap();
    api.evict(&web, "uid-1").await.unwrap();
    api.document("/apis/cluster.x-k8s.io").await.unwrap();
    let expected = [
        "get pods 200",
        "list pods 200",
        "watch pods 200",
        "create pods 200",
        "update pods 200",
        "patch pods/status 200",
        "delete pods 200",
        "create pods/eviction 200",
        "get discovery 200",
    ];
    assert_eq!(*shown.lock().unwrap(), expected);
}

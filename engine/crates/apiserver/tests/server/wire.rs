//! HTTP: status codes, media types and errors.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kubemu_apiserver::{Body, Server};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, PODS, THINGS, definition, map, pod, read, request, send,
    send_json, server, thing,
};

/// A request with an additional header.
fn with(
    mut request: Request<Full<Bytes>>,
    name: &'static str,
    value: &str,
) -> Request<Full<Bytes>> {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

async fn send_and_read(server: &Server, request: Request<Full<Bytes>>) -> (u16, Value) {
    let (code, text) = read(send(server, request).await).await;
    (
        code,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

#[tokio::test]
async fn an_unserved_path_is_not_found_in_plain_text() {
    let server = server();
    for path in ["/nonsense", "/apis/none.example.com/v1/things"] {
        let (code, text) = send_json(&server, "GET", path, Value::Null).await;
        assert_eq!((code, text), (404, "404 page not found\n".into()), "{path}");
    }
}

#[tokio::test]
async fn a_verb_that_is_not_served_is_not_allowed() {
    let server = server();
    for (method, path) in [
        ("POST", "/api/v1/configmaps"),
        ("PUT", MAPS),
        ("PATCH", MAPS),
    ] {
        let (code, refused) = send_json(&server, method, path, json!({})).await;
        assert_eq!(
            (code, &refused["reason"]),
            (405, &"MethodNotAllowed".into()),
            "{method}"
        );
        assert_eq!(
            refused["message"],
            "the server does not allow this method on the requested resource"
        );
    }
}

#[tokio::test]
async fn a_body_with_an_unsupported_media_type_is_rejected() {
    let server = server();
    let post = request("POST", MAPS, &map("x"));
    let post = with(post, "content-type", "application/cbor");
    let (code, refused) = send_and_read(&server, post).await;
    assert_eq!(
        (code, &refused["reason"]),
        (415, &"UnsupportedMediaType".into())
    );
    assert_eq!(
        refused["message"],
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
}

#[tokio::test]
async fn a_media_type_that_is_not_offered_is_not_acceptable() {
    let get = with(
        request("GET", MAPS, &Value::Null),
        "accept",
        "application/xml",
    );
    let (code, refused) = send_and_read(&server(), get).await;
    assert_eq!((code, &refused["reason"]), (406, &"NotAcceptable".into()));
}

#[tokio::test]
async fn a_body_over_three_mebibytes_is_too_large() {
    let mut large = map("x");
    large["data"]["a"] = "x".repeat(3 * 1024 * 1024).into();
    let (code, refused) = send_json(&server(), "POST", MAPS, large).await;
    assert_eq!(
        (code, &refused["reason"]),
        (413, &"RequestEntityTooLarge".into())
    );
}

#[tokio::test]
async fn a_body_that_is_not_json_is_a_bad_request() {
    let mut post = request("POST", MAPS, &Value::Null);
    *post.body_mut() = Full::new(Bytes::from_static(b"{nonsense"));
    assert_eq!(send_and_read(&server(), post).await.0, 400);
}

#[tokio::test]
async fn yaml_is_decoded_with_its_content_type() {
    let mut post = request("POST", MAPS, &Value::Null);
    post.headers_mut()
        .insert("content-type", "application/yaml".parse().unwrap());
    *post.body_mut() = Full::new(Bytes::from_static(
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata: {a: b}\n",
    ));
    let (code, created) = send_and_read(&server(), post).await;
    assert_eq!((code, &created["data"]["a"]), (201, &"b".into()));
}

#[tokio::test]
async fn the_version_of_the_object_must_match_the_path() {
    let mut wrong = map("x");
    wrong["apiVersion"] = "v2".into();
    let (code, refused) = send_json(&server(), "POST", MAPS, wrong).await;
    assert_eq!(code, 400);
    assert_eq!(
        refused["message"],
        "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is \
         registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\""
    );
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let server = server();
    let (code, created) =
        send_json(&server, "POST", &format!("{MAPS}?dryRun=All"), map("x")).await;
    assert_eq!((code, &created["metadata"]["name"]), (201, &"x".into()));
    assert_eq!(
        send_json(&server, "GET", &format!("{MAPS}/x"), Value::Null)
            .await
            .0,
        404
    );
    send_json(&server, "POST", MAPS, map("x")).await;
    let delete = format!("{MAPS}/x?dryRun=All");
    assert_eq!(
        send_json(&server, "DELETE", &delete, Value::Null).await.0,
        200
    );
    assert_eq!(
        send_json(&server, "GET", &format!("{MAPS}/x"), Value::Null)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn unknown_fields_are_rejected_or_warned_about_by_field_validation() {
    let server = server();
    send_json(&server, "POST", DEFINITIONS, definition()).await;
    let mut odd = thing("x");
    odd["spec"]["colour"] = "red".into();
    let strict = format!("{THINGS}?fieldValidation=Strict");
    let (code, refused) = send_json(&server, "POST", &strict, odd.clone()).await;
    assert_eq!(code, 400);
    assert_eq!(
        refused["message"],
        "Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: \
         unknown field \"spec.colour\""
    );
    let response = send(&server, request("POST", THINGS, &odd)).await;
    let warning = response.headers()["warning"].to_str().unwrap().to_owned();
    assert_eq!(warning, "299 - \"unknown field \\\"spec.colour\\\"\"");
    let (_, text) = read(response).await;
    assert!(!text.contains("colour"));
}

/// The texts of the `Warning` headers of a response.
fn warnings(response: &Response<Body>) -> Vec<String> {
    let all = response.headers().get_all("warning").iter();
    all.map(|it| it.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn warnings_that_exceed_the_limit_are_truncated() {
    let server = server();
    let mut odd = map("odd");
    for at in 0..30 {
        let key = format!("{at:02}{}", "x".repeat(398));
        odd[key] = 1.into();
    }
    let response = send(&server, request("POST", MAPS, &odd)).await;
    let found = warnings(&response);
    // 16 texts of 256 characters reach the limit of 4,096 characters.
    assert_eq!(found.len(), 16);
    let text = format!("unknown field \\\"00{}", "x".repeat(256 - 17));
    assert_eq!(found[0], format!("299 - \"{text}\""));
}

#[tokio::test]
async fn a_warning_is_sent_once() {
    let server = server();
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["deprecated"] = true.into();
    version["deprecationWarning"] = "unknown field \"spec.colour\"".into();
    send_json(&server, "POST", DEFINITIONS, definition).await;
    let mut odd = thing("x");
    odd["spec"]["colour"] = "red".into();
    let response = send(&server, request("POST", THINGS, &odd)).await;
    let text = "299 - \"unknown field \\\"spec.colour\\\"\"";
    assert_eq!(warnings(&response), [text]);
}

#[tokio::test]
async fn duplicate_fields_are_rejected_by_strict_validation() {
    let mut post = request(
        "POST",
        &format!("{MAPS}?fieldValidation=Strict"),
        &Value::Null,
    );
    *post.body_mut() = Full::new(Bytes::from_static(
        br#"{"metadata": {"name": "x"}, "data": {"a": "1", "a": "2"}}"#,
    ));
    let (code, refused) = send_and_read(&server(), post).await;
    assert_eq!(code, 400);
    assert_eq!(
        refused["message"],
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding \
         error: duplicate field \"data.a\""
    );
}

/// Kubernetes' decoder reports both kinds of errors as it meets them, and nothing twice.
#[tokio::test]
async fn unknown_and_duplicate_fields_are_reported_in_the_order_of_the_document() {
    let body = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
        "spec": {"unknown1": "a", "unknownDupe": "b", "unknownDupe": "c", "paused": true,
        "paused": false, "unknown2": {"x": 1, "x": 2}, "selector": {"matchLabels":
        {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec":
        {"containers": [{"name": "c", "image": "i", "unknownNested": "d",
        "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}}}}"#;
    let path = "/apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict";
    let mut post = request("POST", path, &Value::Null);
    *post.body_mut() = Full::new(Bytes::from_static(body.as_bytes()));
    let (_, refused) = send_and_read(&server(), post).await;
    let errors = [
        "unknown field \"spec.unknown1\"",
        "unknown field \"spec.unknownDupe\"",
        "duplicate field \"spec.paused\"",
        "unknown field \"spec.unknown2\"",
        "unknown field \"spec.template.spec.containers[0].unknownNested\"",
        "duplicate field \"spec.template.spec.containers[0].imagePullPolicy\"",
    ];
    let start = "Deployment in version \"v1\" cannot be handled as a Deployment: strict \
         decoding error: ";
    assert_eq!(refused["message"], format!("{start}{}", errors.join(", ")));
}

#[tokio::test]
async fn a_table_has_the_columns_of_the_definition() {
    let server = server();
    send_json(&server, "POST", DEFINITIONS, definition()).await;
    send_json(&server, "POST", THINGS, thing("x")).await;
    let get = request("GET", THINGS, &Value::Null);
    let get = with(
        get,
        "accept",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    );
    let (_, table) = send_and_read(&server, get).await;
    assert_eq!(table["kind"], "Table");
    let names: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["Name", "Size"]);
    assert_eq!(table["rows"][0]["cells"], json!(["x", 3]));
}

/// Kubernetes' storage of these has no `TableConvertor`.
#[tokio::test]
async fn what_has_no_columns_is_not_returned_as_a_table_and_not_performed() {
    let server = server();
    send_json(&server, "POST", PODS, pod("p", "", "a")).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let review = json!({"spec": {"resourceAttributes": {"verb": "get"}}});
    let review_path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n1"}});
    let binding_path = format!("{PODS}/p/binding");
    for (path, body) in [(review_path, &review), (&binding_path, &binding)] {
        let post = with(request("POST", path, body), "accept", table);
        let (code, refused) = send_and_read(&server, post).await;
        assert_eq!((code, &refused["reason"]), (406, &"NotAcceptable".into()));
        let message = refused["message"].as_str().unwrap();
        let start = "only the following media types are accepted: application/json, ";
        assert!(message.starts_with(start), "{message}");
    }
    let path = format!("{PODS}/p");
    let (_, pod) = send_json(&server, "GET", &path, Value::Null).await;
    assert!(pod["spec"]["nodeName"].is_null(), "{pod}");
    let either = format!("{table},application/json");
    let post = with(request("POST", review_path, &review), "accept", &either);
    let (code, answer) = send_and_read(&server, post).await;
    assert_eq!(
        (code, &answer["kind"]),
        (201, &"SelfSubjectAccessReview".into())
    );
}

#[tokio::test]
async fn metadata_can_be_listed_without_the_objects() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
    let get = request("GET", MAPS, &Value::Null);
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (_, list) = send_and_read(&server, with(get, "accept", accept)).await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["name"], "x");
    assert!(list["items"][0].get("data").is_none());
}

#[tokio::test]
async fn string_data_of_secrets_is_stored_as_encoded_data() {
    let server = server();
    let path = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "x"}, "stringData": {"a": "text"}});
    let (_, created) = send_json(&server, "POST", path, secret).await;
    assert_eq!(created["data"]["a"], "dGV4dA==");
    assert!(created.get("stringData").is_none());
    assert_eq!(created["type"], "Opaque");
    let wrong = json!({"metadata": {"name": "y"}, "data": {"a": "%"}});
    assert_eq!(send_json(&server, "POST", path, wrong).await.0, 400);
}

#[tokio::test]
async fn an_event_is_returned_in_both_of_its_versions() {
    let server = server();
    let created = json!({
        "metadata": {"name": "e"},
        "regarding": {"kind": "Node", "name": "n1", "namespace": "default"},
        "note": "hello",
        "reason": "Said",
        "action": "Say",
        "type": "Normal",
        "eventTime": "2026-03-06T21:30:00.000000Z",
        "reportingController": "me",
        "reportingInstance": "me-1",
    });
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    assert_eq!(send_json(&server, "POST", new, created).await.0, 201);
    let old = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dn1";
    let (_, list) = send_json(&server, "GET", old, Value::Null).await;
    assert_eq!(list["items"][0]["message"], "hello");
    assert_eq!(list["apiVersion"], "v1");
    let (_, list) = send_json(&server, "GET", new, Value::Null).await;
    assert_eq!(list["items"][0]["note"], "hello");
}

/// The labels of `AddFieldLabelConversionsForEvent` of both versions, and `ToSelectableFields`.
#[tokio::test]
async fn the_fields_of_events_are_selected_by_the_names_of_their_version() {
    let server = server();
    let event = json!({
        "metadata": {"name": "e"},
        "regarding": {"kind": "Node", "name": "n1", "namespace": "default"},
        "note": "hello", "reason": "Said", "action": "Say", "type": "Normal",
        "eventTime": "2026-03-06T21:30:00.000000Z",
        "reportingController": "me", "reportingInstance": "me-1",
    });
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let old = "/api/v1/namespaces/default/events";
    assert_eq!(send_json(&server, "POST", new, event).await.0, 201);
    for (path, field, value) in [
        (old, "source", "me"),
        (old, "reportingComponent", "me"),
        (old, "involvedObject.name", "n1"),
        (new, "reportingController", "me"),
        (new, "regarding.name", "n1"),
        (new, "reason", "Said"),
    ] {
        let count = async |value: &str| {
            let path = format!("{path}?fieldSelector={field}%3D{value}");
            let (code, list) = send_json(&server, "GET", &path, Value::Null).await;
            assert_eq!(code, 200, "{path}: {list}");
            list["items"].as_array().unwrap().len()
        };
        assert_eq!(count(value).await, 1, "{path} {field}");
        assert_eq!(count("other").await, 0, "{path} {field}");
    }
    for (path, field) in [
        (old, "reportingController"),
        (old, "regarding.name"),
        (new, "source"),
        (new, "reportingComponent"),
        (new, "involvedObject.kind"),
    ] {
        let list = format!("{path}?fieldSelector={field}%3Dx");
        let (code, refused) = send_json(&server, "GET", &list, Value::Null).await;
        assert_eq!(code, 400, "{list}");
        let expected = format!("field label not supported: {field}");
        assert!(
            refused["message"].as_str().unwrap().contains(&expected),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_timeout_that_is_not_a_duration_is_rejected_before_anything_else() {
    let server = server();
    for (timeout, why) in [
        ("abc", "invalid duration \"abc\""),
        ("5", "missing unit in duration \"5\""),
        ("5x", "unknown unit \"x\" in duration \"5x\""),
        ("1.2.3s", "missing unit in duration \"1.2.3s\""),
    ] {
        let get = request("GET", &format!("{MAPS}?timeout={timeout}"), &Value::Null);
        // Even a bad token is not looked at.
        let get = with(get, "authorization", "Bearer nonsense");
        let (code, refused) = send_and_read(&server, get).await;
        assert_eq!((code, &refused["reason"]), (400, &"BadRequest".into()));
        let start = "invalid timeout specified in the request URL - time:";
        assert_eq!(refused["message"], format!("{start} {why}"));
    }
    for timeout in ["", "0s", "32s", "-1s", "100h", "1h0.5m"] {
        let path = format!("{MAPS}?timeout={timeout}");
        assert_eq!(send_json(&server, "GET", &path, Value::Null).await.0, 200);
    }
    // A request without an end has no timeout.
    let watch = request(
        "GET",
        &format!("{MAPS}?watch=true&timeout=abc"),
        &Value::Null,
    );
    assert_eq!(send(&server, watch).await.status(), 200);
}

#[tokio::test]
async fn health_and_version_are_served() {
    let server = server();
    assert_eq!(
        send_json(&server, "GET", "/readyz", Value::Null).await,
        (200, "ok".into())
    );
    let (_, version) = send_json(&server, "GET", "/version", Value::Null).await;
    assert_eq!(
        (&version["major"], &version["minor"]),
        (&"1".into(), &"36".into())
    );
}

#[tokio::test]
async fn events_are_deleted_an_hour_after_they_were_written() {
    let server = server();
    let path = "/api/v1/namespaces/default/events";
    let event = |name: &str| {
        json!({
            "metadata": {"name": name},
            "involvedObject": {"kind": "Node", "name": "n1", "namespace": "default"},
            "reason": "Said",
        })
    };
    send_json(&server, "POST", path, event("first")).await;
    let later = server.clock().now() + jiff::SignedDuration::from_mins(61);
    server.clock().advance_to(later).await;
    send_json(&server, "POST", path, event("second")).await;
    server.clock().wait_until_idle().await;
    let (_, list) = send_json(&server, "GET", path, Value::Null).await;
    let names: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["metadata"]["name"])
        .collect();
    assert_eq!(names, ["second"]);
}

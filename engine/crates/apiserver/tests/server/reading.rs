//! Bodies and patches that cannot be decoded, and the formats of responses.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use kubemu_apiserver::Server;
use serde_json::{Value, json};

use crate::fixture::{MAPS, at, map, read, request, send, send_json, server};

/// The message of the response to a request with this body.
async fn error_message(
    server: &Server,
    method: &str,
    path: &str,
    sent: (&str, &str),
) -> Value {
    let (media, text) = sent;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Full::new(Bytes::copy_from_slice(text.as_bytes())))
        .unwrap();
    let (_, answer) = read(send(server, request).await).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["message"].clone()
}

#[tokio::test]
async fn an_invalid_body_is_quoted_and_truncated() {
    let server = server();
    let rows = [
        ("", "unexpected end of JSON input (<empty>)"),
        ("{", "unexpected end of JSON input ({)"),
        (
            "nonsense",
            "invalid character 'o' in literal null (expecting 'u') (6e6f6e73656e7365)",
        ),
        (
            r#"{"metadata": {"name": "a"}, "data": {"a" "b"}}"#,
            "invalid character '\"' after object key ({\"metadata\": {\"name\": \"a\"}, \"d ...)",
        ),
    ];
    for (text, expected) in rows {
        let expected = format!(
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get \
             version/kind; json parse error: {expected}"
        );
        let answer =
            error_message(&server, "POST", MAPS, ("application/json", text)).await;
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn duplicate_yaml_keys_are_reported_with_their_line() {
    let server = server();
    let path = format!("{MAPS}?fieldValidation=Strict");
    let text = "metadata: {name: x}\ndata:\n  a: b\n  a: c\n";
    assert_eq!(
        error_message(&server, "POST", &path, ("application/yaml", text)).await,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
         yaml: unmarshal errors:\n  line 4: key \"a\" already set in map"
    );
    let lenient = format!("{MAPS}?fieldValidation=Ignore");
    error_message(&server, "POST", &lenient, ("application/yaml", text)).await;
    let (_, created) = send_json(&server, "GET", &at("x"), Value::Null).await;
    assert_eq!(created["data"]["a"], "c");
}

#[tokio::test]
async fn a_patch_with_an_undecodable_result_is_quoted() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
    let merge = (
        "application/merge-patch+json",
        r#"{"kind": "Secret", "metadata": null}"#,
    );
    assert_eq!(
        error_message(&server, "PATCH", &at("x"), merge).await,
        " \"\" is invalid: patch: Invalid value: \"{\\\"apiVersion\\\":\\\"v1\\\",\\\"data\\\":\
         {\\\"a\\\":\\\"1\\\"},\\\"kind\\\":\\\"Secret\\\"}\": converting (v1.Secret) to \
         (core.ConfigMap): unknown conversion"
    );
    let strategic = "application/strategic-merge-patch+json";
    let rows = [
        (
            r#"{"data": ["a"]}"#,
            "map[data:[a]]",
            "cannot restore map from slice",
        ),
        (
            r#"{"data": {"a": 1}}"#,
            "map[data:map[a:1]]",
            "cannot convert int64 to string",
        ),
        (
            r#"{"metadata": "m"}"#,
            "map[metadata:m]",
            "cannot restore struct from: string",
        ),
        (
            r#"{"immutable": {}}"#,
            "map[immutable:map[]]",
            "unrecognized type: bool",
        ),
    ];
    for (patch, quoted, why) in rows {
        let answer = error_message(&server, "PATCH", &at("x"), (strategic, patch)).await;
        let expected =
            format!(" \"\" is invalid: patch: Invalid value: \"{quoted}\": {why}");
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn a_quoted_patch_result_has_sorted_keys_where_the_patch_has_read_it() {
    let server = server();
    let stored = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"},
        "spec": {"clusterIP": "None", "selector": {"b": "1", "a": "1"},
            "ports": [{"port": 80, "protocol": "TCP", "name": "b"},
                {"name": "a", "targetPort": 1, "port": 81}]}}"#;
    let json = serde_json::from_str(stored).expect("a service");
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(send_json(&server, "POST", services, json).await.0, 201);
    let at = format!("{services}/x");
    let spec = async |media: &str, patch: &str| {
        let answer = error_message(&server, "PATCH", &at, (media, patch)).await;
        let answer = answer.as_str().unwrap_or_default().replace("\\\"", "'");
        let (_, rest) = answer.split_once("'spec':").expect("a spec");
        let (spec, _) = rest.split_once(",'status'").expect("a status");
        spec.replace('\'', "")
    };
    let json = "application/json-patch+json";
    let item = "name:a,protocol:TCP,port:81,targetPort:1";
    assert_eq!(
        spec(
            json,
            r#"[{"op": "add", "path": "/spec/ports/0/port", "value": "x"}]"#
        )
        .await,
        format!(
            "{{clusterIP:None,clusterIPs:[None],internalTrafficPolicy:Cluster,\
             ipFamilies:[IPv4],ipFamilyPolicy:SingleStack,\
             ports:[{{name:b,port:x,protocol:TCP,targetPort:80}},{{{item}}}],\
             selector:{{a:1,b:1}},sessionAffinity:None,type:ClusterIP}}"
        )
    );
    let unread = r#"[{"op": "replace", "path": "/kind", "value": 1, "from": "/spec/a"}]"#;
    let ports = spec(json, unread).await;
    assert!(ports.starts_with("{ports:[{name:b,protocol:TCP,port:80,targetPort:80}"));
    let merge = "application/merge-patch+json";
    let ports = spec(
        merge,
        r#"{"spec": {"ports": [{"port": "x", "name": "b"}], "type": null}}"#,
    );
    assert!(ports.await.contains("ports:[{name:b,port:x}]"));
    let sent = spec(
        json,
        r#"[{"op": "add", "path": "/spec/ports/-", "value": {"port": "x", "name": "c"}}]"#,
    );
    assert!(
        sent.await
            .contains(&format!("{{{item}}},{{port:x,name:c}}]"))
    );
}

#[tokio::test]
async fn a_number_must_fit_the_type_of_its_field() {
    let server = server();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let rows = [
        ("1.5", "1.5"),
        ("2147483648", "2147483648"),
        ("-2147483649", "-2147483649"),
    ];
    for (number, shown) in rows {
        let body = format!(
            r#"{{"metadata": {{"name": "a"}}, "spec": {{"minAvailable": {number}}}}}"#
        );
        assert_eq!(
            error_message(&server, "POST", budgets, ("application/json", &body)).await,
            format!(
                "PodDisruptionBudget in version \"v1\" cannot be handled as a \
                 PodDisruptionBudget: json: cannot unmarshal number {shown} into Go struct field \
                 PodDisruptionBudgetSpec.spec.minAvailable of type int32"
            )
        );
    }
}

#[tokio::test]
async fn a_scale_is_decoded_before_its_object_is_read() {
    let server = server();
    let path = "/apis/apps/v1/namespaces/default/deployments/none/scale";
    let body = r#"{"metadata": {"name": "none", "labels": 5}}"#;
    assert_eq!(
        error_message(&server, "PUT", path, ("application/json", body)).await,
        "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal number into \
         Go struct field ObjectMeta.metadata.labels of type map[string]string"
    );
}

#[tokio::test]
async fn an_apply_requires_a_name_and_a_status_apply_an_object() {
    let server = server();
    let apply = "application/apply-patch+yaml";
    let path = format!("{}?fieldManager=me", at("x"));
    let map = r#"{"apiVersion": "v1", "kind": "ConfigMap"}"#;
    assert_eq!(
        error_message(&server, "PATCH", &path, (apply, map)).await,
        "the name of the object (x based on URL) was undeterminable: name must be provided"
    );
    let path = "/api/v1/nodes/none/status?fieldManager=me";
    let node = r#"{"apiVersion": "v1", "kind": "Node", "spec": "odd"}"#;
    assert_eq!(
        error_message(&server, "PATCH", path, (apply, node)).await,
        "nodes \"none\" not found"
    );
}

#[tokio::test]
async fn a_patch_that_removes_the_api_version_has_an_undeterminable_name() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
    let patch = r#"[{"op": "remove", "path": "/apiVersion"}]"#;
    assert_eq!(
        error_message(
            &server,
            "PATCH",
            &at("x"),
            ("application/json-patch+json", patch)
        )
        .await,
        "the name of the object (x based on URL) was undeterminable: name must be provided"
    );
}

#[tokio::test]
async fn responses_and_errors_are_yaml_if_accepted() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
    let accepting = |path: &str| {
        let mut get = request("GET", path, &Value::Null);
        let yaml = "application/yaml".parse().unwrap();
        get.headers_mut().insert("accept", yaml);
        get
    };
    let answer = send(&server, accepting(&at("x"))).await;
    assert_eq!(answer.headers()["content-type"], "application/yaml");
    let (code, text) = read(answer).await;
    assert_eq!(code, 200);
    assert!(
        text.starts_with("apiVersion: v1\ndata:\n  a: \"1\"\n"),
        "{text}"
    );
    let (code, text) = read(send(&server, accepting(&at("y"))).await).await;
    assert_eq!(code, 404);
    assert!(
        text.contains("message: configmaps \"y\" not found\n"),
        "{text}"
    );
    let watch = format!("{MAPS}?watch=true");
    assert_eq!(send(&server, accepting(&watch)).await.status(), 406);
}

#[tokio::test]
async fn a_get_of_one_object_ignores_the_watch_parameter() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
    let path = format!("{}?watch=true", at("x"));
    let (code, object) = send_json(&server, "GET", &path, Value::Null).await;
    assert_eq!((code, &object["data"]), (200, &json!({"a": "1"})));
}

#[tokio::test]
async fn a_patch_with_too_deep_nesting_is_rejected() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
    let deep = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
    let inside = format!("/m{}", "/a".repeat(60));
    let deepen = json!([
        {"op": "add", "path": "/m", "value": deep},
        {"op": "move", "from": "/n", "path": inside},
        {"op": "move", "from": "/m", "path": "/n"},
    ]);
    let mut operations = vec![json!({"op": "add", "path": "/n", "value": {}})];
    for _ in 0..1_000 {
        operations.extend(deepen.as_array().unwrap().clone());
    }
    let patch = Value::from(operations).to_string();
    let sent = ("application/json-patch+json", patch.as_str());
    assert_eq!(
        error_message(&server, "PATCH", &at("x"), sent).await,
        "the server rejected our request due to an error in our request"
    );
}

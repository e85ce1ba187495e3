//! The OpenAPI v2 document.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kubemu_apiserver::Server;
use serde_json::{Value, json};

use crate::fixture::{DEFINITIONS, definition, request, send, send_json, server};

/// A server with the kind Thing, whose spec has this schema.
async fn server_with(spec: Value) -> Server {
    let server = server();
    let mut defined = definition();
    let schema = &mut defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"] = spec;
    let (code, answer) = send_json(&server, "POST", DEFINITIONS, defined).await;
    assert_eq!(code, 201, "{answer}");
    server
}

fn spec() -> Value {
    json!({
        "type": "object",
        "required": ["size", "maybe"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "maybe": {"type": "string", "nullable": true},
            "port": {"x-kubernetes-int-or-string": true},
            "open": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"a": {"type": "string"}},
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "names": {"type": "array", "items": {"type": "string", "not": {"enum": ["x"]}}},
            "one": {
                "type": "object",
                "properties": {"a": {"type": "string", "enum": ["b"]}},
                "oneOf": [{"required": ["a"]}, {"not": {"required": ["a"]}}],
            },
        },
    })
}

async fn document(server: &Server) -> Value {
    let (code, document) = send_json(server, "GET", "/openapi/v2", Value::Null).await;
    assert_eq!((code, &document["swagger"]), (200, &json!("2.0")));
    document
}

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|it| references(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| references(it, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_in_openapi_v2_is_resolved_in_it() {
    let document = document(&server_with(spec()).await).await;
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 1_000, "{}", found.len());
    for reference in found {
        let name = reference.strip_prefix("#/definitions/").unwrap();
        assert!(document["definitions"][name].is_object(), "{name}");
    }
}

#[tokio::test]
async fn a_built_in_kind_has_its_references_and_no_defaults_in_openapi_v2() {
    let document = document(&server()).await;
    let definition = |name: &str| &document["definitions"][name];
    let pod = &definition("io.k8s.api.core.v1.Pod");
    assert_eq!(
        pod["properties"]["spec"]["$ref"],
        "#/definitions/io.k8s.api.core.v1.PodSpec"
    );
    assert!(pod["properties"]["spec"]["description"].is_string());
    assert_eq!(pod["x-kubernetes-group-version-kind"][0]["kind"], "Pod");
    let quantity = definition("io.k8s.apimachinery.pkg.api.resource.Quantity");
    assert_eq!(
        (&quantity["type"], quantity.get("oneOf")),
        (&json!("string"), None)
    );
    let text = document["definitions"].to_string();
    assert!(!text.contains(r#""default":{}"#));
}

#[tokio::test]
async fn a_custom_kind_has_only_what_openapi_v2_and_kubectl_can_express() {
    let document = document(&server_with(spec()).await).await;
    let thing = &document["definitions"]["com.example.v1.Thing"];
    assert_eq!(
        thing["properties"]["spec"],
        json!({
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "maybe": {},
                "port": {"x-kubernetes-int-or-string": true},
                "open": {"x-kubernetes-preserve-unknown-fields": true},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "names": {"type": "array", "items": {"type": "string"}},
                "one": {
                    "type": "object",
                    "properties": {"a": {"type": "string", "enum": ["b"]}},
                },
            },
        })
    );
    let list = &document["definitions"]["com.example.v1.ThingList"];
    assert_eq!(
        list["properties"]["items"]["items"]["$ref"],
        "#/definitions/com.example.v1.Thing"
    );
}

#[tokio::test]
async fn operations_have_their_body_and_types_among_the_parameters_in_openapi_v2() {
    let document = document(&server_with(spec()).await).await;
    let path = "/apis/example.com/v1/namespaces/{namespace}/things";
    let things = &document["paths"][path];
    let namespace = json!({"name": "namespace", "in": "path", "required": true,
        "type": "string", "uniqueItems": true});
    assert_eq!(things["parameters"][0], namespace);
    let thing = json!({"$ref": "#/definitions/com.example.v1.Thing"});
    let post = &things["post"];
    let parameters = post["parameters"].as_array().unwrap();
    let body = json!({"name": "body", "in": "body", "required": true, "schema": thing});
    assert_eq!(parameters.last(), Some(&body));
    let media = json!(["application/json", "application/yaml"]);
    assert_eq!((&post["consumes"], &post["produces"]), (&media, &media));
    assert_eq!(
        post["responses"]["201"],
        json!({"description": "Created", "schema": thing})
    );
    assert_eq!((post.get("requestBody"), post.get("content")), (None, None));
}

#[tokio::test]
async fn openapi_v2_follows_the_definitions() {
    let server = server();
    let name = "com.example.v1.Thing";
    assert!(document(&server).await["definitions"].get(name).is_none());
    send_json(&server, "POST", DEFINITIONS, definition()).await;
    assert!(document(&server).await["definitions"].get(name).is_some());
    let mut later = definition();
    later["spec"]["versions"][0]["name"] = "v2".into();
    let path = format!("{DEFINITIONS}/things.example.com");
    let (code, mut now) = send_json(&server, "GET", &path, Value::Null).await;
    assert_eq!(code, 200);
    now["spec"]["versions"][0]["served"] = false.into();
    later["spec"]["versions"][0]["storage"] = false.into();
    if let Value::Array(versions) = &mut now["spec"]["versions"] {
        versions.push(later["spec"]["versions"][0].take());
    }
    let (code, answer) = send_json(&server, "PUT", &path, now).await;
    assert_eq!(code, 200, "{answer}");
    let document = document(&server).await;
    assert!(document["definitions"].get(name).is_none());
    assert!(
        document["definitions"]
            .get("com.example.v2.Thing")
            .is_some()
    );
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// The contents of all fields of a protobuf message with this number that are messages or texts.
fn parts(mut bytes: &[u8], number: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => {
                varint(&mut bytes);
                continue;
            }
            1 => 8,
            kind => {
                assert_eq!(kind, 2, "wire type");
                usize::try_from(varint(&mut bytes)).unwrap()
            }
        };
        let (content, rest) = bytes.split_at(length);
        bytes = rest;
        if key >> 3 == number {
            found.push(content);
        }
    }
    found
}

/// The value of the member called `name` in a list of named values.
fn member<'a>(all: &'a [u8], name: &str) -> &'a [u8] {
    let members = parts(all, 1);
    let found = members.iter().find(|it| parts(it, 1) == [name.as_bytes()]);
    parts(found.unwrap(), 2)[0]
}

async fn protobuf(server: &Server, media: &str) -> Bytes {
    let mut get = request("GET", "/openapi/v2", &Value::Null);
    get.headers_mut().insert("accept", media.parse().unwrap());
    let response = send(server, get).await;
    assert_eq!(
        response.headers()["content-type"],
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
    response.into_body().collect().await.unwrap().to_bytes()
}

/// The numbers are those of gnostic's `OpenAPIv2.proto`.
#[tokio::test]
async fn openapi_v2_in_protobuf_has_the_definitions() {
    let server = server_with(spec()).await;
    let media = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let body = protobuf(&server, media).await;
    assert_eq!(body, protobuf(&server, &media.replace('@', ".")).await);
    assert_eq!(parts(&body, 1), [b"2.0"]);
    let definitions = parts(&body, 9)[0];
    let json = document(&server).await;
    let names = json["definitions"].as_object().unwrap().len();
    assert_eq!(parts(definitions, 1).len(), names);
    let properties = |schema| parts(schema, 25)[0];
    let pod = member(definitions, "io.k8s.api.core.v1.Pod");
    let spec = member(properties(pod), "spec");
    assert_eq!(
        parts(spec, 1),
        [b"#/definitions/io.k8s.api.core.v1.PodSpec"]
    );
    let thing = member(definitions, "com.example.v1.Thing");
    let spec = member(properties(thing), "spec");
    assert_eq!(parts(parts(spec, 22)[0], 1), [b"object"]);
    assert_eq!(parts(spec, 19), [b"size"]);
    let size = member(properties(spec), "size");
    assert_eq!(parts(parts(size, 22)[0], 1), [b"integer"]);
    assert_eq!(parts(size, 9), [1f64.to_le_bytes()]);
    let kind = parts(thing, 31)[0];
    assert_eq!(parts(kind, 1), [b"x-kubernetes-group-version-kind"]);
    let yaml = parts(parts(kind, 2)[0], 2)[0];
    assert_eq!(
        serde_json::from_slice::<Value>(yaml).unwrap(),
        json!([{"group": "example.com", "version": "v1", "kind": "Thing"}])
    );
    let paths = parts(parts(&body, 8)[0], 2).len();
    assert_eq!(paths, json["paths"].as_object().unwrap().len());
}

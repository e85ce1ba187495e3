//! The managers of the replicas of an object that is scaled.

use kubemu_apiserver::Server;
use serde_json::{Value, json};

use crate::fixture::{DEFINITIONS, THINGS, definition, patch, send_json, server, thing};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

/// A server with the kind Thing, whose replicas are its size.
async fn server_with_scalable_things() -> Server {
    let server = server();
    let mut scaled = definition();
    scaled["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
    });
    let (code, answer) = send_json(&server, "POST", DEFINITIONS, scaled).await;
    assert_eq!(code, 201, "{answer}");
    server
}

/// Who owns `field` of the spec of the object at `path`: the manager, the operation, the API version
/// and the subresource; and all that the entry owns.
async fn owners(server: &Server, path: &str, field: &str) -> Vec<(String, Value)> {
    let (_, object) = send_json(server, "GET", path, Value::Null).await;
    let all = object["metadata"]["managedFields"].as_array();
    all.into_iter()
        .flatten()
        .filter(|it| it["fieldsV1"]["f:spec"].get(field).is_some())
        .map(|it| {
            let keys = ["manager", "operation", "apiVersion", "subresource"];
            let words = keys.map(|key| it[key].as_str().unwrap_or("-"));
            (words.join(" "), it["fieldsV1"].clone())
        })
        .collect()
}

#[tokio::test]
async fn every_way_to_scale_records_who_set_the_replicas() {
    let server = server_with_scalable_things().await;
    let (code, answer) = send_json(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    assert_eq!(code, 201, "{answer}");
    let (code, answer) = send_json(&server, "POST", THINGS, thing("t")).await;
    assert_eq!(code, 201, "{answer}");
    let scaled = [
        (format!("{DEPLOYMENTS}/web"), "apps/v1", "f:replicas"),
        (format!("{THINGS}/t"), "example.com/v1", "f:size"),
    ];
    for (object, version, field) in scaled {
        let by = |manager: &str| format!("{object}/scale?fieldManager={manager}");
        let only = json!({"f:spec": {field: {}}});
        let merged = json!({"spec": {"replicas": 4}});
        let form = "merge-patch+json";
        let (code, answer) = patch(&server, form, &by("merges"), merged).await;
        assert_eq!(code, 200, "{answer}");
        let expected = format!("merges Update {version} scale");
        let found = owners(&server, &object, field).await;
        assert_eq!(found, [(expected, only.clone())]);

        let replaced = json!([{"op": "replace", "path": "/spec/replicas", "value": 5}]);
        let form = "json-patch+json";
        let (code, answer) = patch(&server, form, &by("patches"), replaced).await;
        assert_eq!(code, 200, "{answer}");
        let expected = format!("patches Update {version} scale");
        let found = owners(&server, &object, field).await;
        assert_eq!(found, [(expected, only.clone())]);

        let path = format!("{object}/scale");
        let (_, mut scale) = send_json(&server, "GET", &path, Value::Null).await;
        scale["spec"]["replicas"] = 6.into();
        let (code, answer) = send_json(&server, "PUT", &by("puts"), scale).await;
        assert_eq!(code, 200, "{answer}");
        let expected = format!("puts Update {version} scale");
        let found = owners(&server, &object, field).await;
        assert_eq!(found, [(expected, only.clone())]);
    }
}

/// Kubernetes tracks the fields of an object, once it exists, only if a field of it has a manager
/// (`skipNonAppliedManager` in k8s.io/apimachinery); the only field of a Scale is the replicas.
#[tokio::test]
async fn scaling_replicas_that_nobody_manages_records_no_manager() {
    let server = server_with_scalable_things().await;
    let path = format!("{THINGS}/t");
    let apply = format!("{path}?fieldManager=maker");
    let (code, answer) = patch(&server, "apply-patch+yaml", &apply, thing("t")).await;
    assert_eq!(code, 201, "{answer}");
    let scale = format!("{path}/scale?fieldManager=scaler");
    let merged = json!({"spec": {"replicas": 4}});
    let form = "merge-patch+json";
    let (code, answer) = patch(&server, form, &scale, merged).await;
    assert_eq!(
        (code, &answer["spec"]["replicas"]),
        (200, &json!(4)),
        "{answer}"
    );
    assert_eq!(owners(&server, &path, "f:size").await, []);
}

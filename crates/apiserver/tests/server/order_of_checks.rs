//! What is refused first where several things are wrong, and in which words, as on a real API
//! server.

use http::Request;
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, THINGS, ask, definition, map, patch, read, send, server, thing,
};

const POLICIES: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

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

#[tokio::test]
async fn a_namespace_that_is_ending_refuses_before_a_missing_name() {
    let server = server();
    let namespace = json!({"metadata": {"name": "ending"}});
    ask(&server, "POST", "/api/v1/namespaces", namespace).await;
    let maps = "/api/v1/namespaces/ending/configmaps";
    let mut kept = map("kept");
    kept["metadata"] = json!({"name": "kept", "finalizers": ["example.com/f"]});
    ask(&server, "POST", maps, kept).await;
    ask(&server, "DELETE", "/api/v1/namespaces/ending", Value::Null).await;
    for (metadata, name) in [
        (json!({}), "Unknown"),
        (json!({"generateName": "made-"}), "made-"),
        (json!({"name": "said"}), "said"),
    ] {
        let mut object = map("");
        object["metadata"] = metadata;
        let (code, refused) = ask(&server, "POST", maps, object).await;
        assert_eq!(code, 403, "{refused}");
        let expected = format!(
            "configmaps \"{name}\" is forbidden: unable to create new content in namespace \
             ending because it is being terminated"
        );
        assert_eq!(message(&refused), expected);
    }
}

#[tokio::test]
async fn a_missing_name_is_one_of_the_things_that_are_wrong() {
    let server = server();
    let mut object = map("");
    object["metadata"] = json!({"labels": {"a b": "c"}});
    let (code, refused) = ask(&server, "POST", MAPS, object).await;
    assert_eq!(code, 422);
    let fields = refused["details"]["causes"].as_array().unwrap().iter();
    let fields: Vec<_> = fields.map(|it| it["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["metadata.name", "metadata.labels"]);
}

#[tokio::test]
async fn an_applied_status_of_a_policy_that_is_not_there_makes_it() {
    let server = server();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "made"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["configmaps"],
            }]},
            "validations": [{"expression": "true"}],
        },
        "status": {"observedGeneration": 1},
    });
    let path = format!("{POLICIES}/made/status?fieldManager=m");
    let (code, made) = patch(&server, "apply-patch+yaml", &path, policy.clone()).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["spec"]["validations"][0]["expression"], "true");
    let path = format!("{POLICIES}/wrong/status?fieldManager=m");
    let mut wrong = policy;
    wrong["metadata"]["name"] = "wrong".into();
    wrong["spec"]["validations"][0]["expression"] = "true +".into();
    let (code, refused) = patch(&server, "apply-patch+yaml", &path, wrong).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test]
async fn an_applied_object_is_not_made_at_a_version_that_is_no_number() {
    let server = server();
    let mut object = map("new");
    object["metadata"]["resourceVersion"] = "x".into();
    let path = format!("{MAPS}/new?fieldManager=m");
    let (code, refused) = patch(&server, "apply-patch+yaml", &path, object).await;
    assert_eq!(code, 500, "{refused}");
    let expected = "strconv.ParseUint: parsing \"x\": invalid syntax";
    assert_eq!(message(&refused), expected);
}

#[tokio::test]
async fn an_event_is_not_read_at_a_version_that_is_no_number() {
    let server = server();
    for group in ["api", "apis/events.k8s.io"] {
        let path =
            format!("/{group}/v1/namespaces/default/events/missing?resourceVersion=x");
        let (code, refused) = ask(&server, "GET", &path, Value::Null).await;
        assert_eq!(code, 400, "{refused}");
        assert_eq!(
            message(&refused),
            "invalid resource version: resourceVersion: Invalid value: \"x\": \
             strconv.ParseUint: parsing \"x\": invalid syntax"
        );
    }
}

#[tokio::test]
async fn the_metadata_of_a_scale_is_validated() {
    let server = server();
    ask(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    let (_, mut scale) = ask(&server, "GET", &path, Value::Null).await;
    scale["metadata"]["labels"] = json!({"a b": "c"});
    let (code, refused) = ask(&server, "PUT", &path, scale.clone()).await;
    assert_eq!(code, 422, "{refused}");
    let start = "Scale.autoscaling \"web\" is invalid: metadata.labels: Invalid value: \
                 \"a b\"";
    assert!(message(&refused).starts_with(start), "{refused}");
    let body = json!({"metadata": {"labels": {"a b": "c"}}});
    let (code, _) = patch(&server, "merge-patch+json", &path, body).await;
    assert_eq!(code, 422);
    let body = json!({"metadata": {"finalizers": ["x"]}});
    let (code, _) = patch(&server, "merge-patch+json", &path, body).await;
    assert_eq!(code, 422);
    let at = format!("{path}?resourceVersion=x");
    assert_eq!(ask(&server, "GET", &at, Value::Null).await.0, 500);
    scale["metadata"]["labels"] = json!({"a": "b"});
    let (code, _) = ask(&server, "PUT", &path, scale).await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn a_scale_of_another_object_is_a_conflict() {
    let server = server();
    ask(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    let (_, mut scale) = ask(&server, "GET", &path, Value::Null).await;
    let uid = scale["metadata"]["uid"].as_str().unwrap().to_owned();
    scale["metadata"]["uid"] = "other".into();
    let (code, refused) = ask(&server, "PUT", &path, scale).await;
    assert_eq!(code, 409, "{refused}");
    let body = json!({"metadata": {"uid": "other"}});
    let (code, refused) = patch(&server, "merge-patch+json", &path, body).await;
    assert_eq!(code, 409, "{refused}");
    let expected = format!(
        "Operation cannot be fulfilled on deployments/scale.apps \"web\": Precondition \
         failed: UID in precondition: other, UID in object meta: {uid}"
    );
    assert_eq!(message(&refused), expected);
}

#[tokio::test]
async fn a_scale_says_no_fields_that_it_does_not_have() {
    let server = server();
    ask(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    let path = format!("{DEPLOYMENTS}/web/scale?fieldValidation=Strict");
    let (_, mut scale) = ask(&server, "GET", &path, Value::Null).await;
    scale["spec"]["odd"] = 1.into();
    let (code, refused) = ask(&server, "PUT", &path, scale).await;
    assert_eq!(code, 400, "{refused}");
    assert_eq!(
        message(&refused),
        "Scale in version \"v1\" cannot be handled as a Scale: strict decoding error: unknown \
         field \"spec.odd\""
    );
    let body = json!({"spec": {"odd": 1}});
    let (code, refused) = patch(&server, "merge-patch+json", &path, body).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test]
async fn the_form_of_a_patch_of_a_scale_is_looked_at_before_its_object() {
    let server = server();
    let mut scaled = definition();
    scaled["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
    });
    let (code, _) = ask(&server, "POST", DEFINITIONS, scaled).await;
    assert_eq!(code, 201);
    ask(&server, "POST", THINGS, thing("t")).await;
    for name in ["t", "missing"] {
        let path = format!("{THINGS}/{name}/scale");
        let body = json!({"spec": {"replicas": 2}});
        let found = patch(&server, "strategic-merge-patch+json", &path, body).await;
        assert_eq!(found.0, 415, "{found:?}");
    }
}

#[tokio::test]
async fn a_review_belongs_into_the_namespace_of_its_path() {
    let server = server();
    let path =
        "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let review = |namespace: &str| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": namespace},
            "spec": {
                "user": "u",
                "resourceAttributes":
                    {"namespace": namespace, "verb": "get", "resource": "pods"},
            },
        })
    };
    let (code, refused) = ask(&server, "POST", path, review("other")).await;
    assert_eq!(code, 400, "{refused}");
    let expected = "the namespace of the provided object does not match the namespace sent \
                    on the request";
    assert_eq!(message(&refused), expected);
    let (code, _) = ask(&server, "POST", path, review("default")).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn a_version_of_a_new_object_is_refused_after_everything_else() {
    let server = server();
    let mut object = map("new");
    object["metadata"] =
        json!({"name": "new", "resourceVersion": "1", "labels": {"a b": "c"}});
    let (code, _) = ask(&server, "POST", MAPS, object.clone()).await;
    assert_eq!(code, 422);
    object["metadata"]["labels"] = json!({});
    let (code, refused) = ask(&server, "POST", MAPS, object.clone()).await;
    assert_eq!(code, 500);
    let expected = "resourceVersion should not be set on objects to be created";
    assert_eq!(message(&refused), expected);
    // A rehearsal does not get as far as the store, which is what looks at it.
    let dry = format!("{MAPS}?dryRun=All");
    let (code, _) = ask(&server, "POST", &dry, object).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn the_selectors_of_a_review_are_validated() {
    let server = server();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = |selector: Value| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            // What the server sets is cleared first.
            "metadata": {"uid": "other", "deletionGracePeriodSeconds": 5},
            "spec": {"resourceAttributes":
                {"verb": "list", "resource": "pods", "fieldSelector": selector}},
        })
    };
    let (code, refused) = ask(&server, "POST", path, review(json!({}))).await;
    assert_eq!(code, 422, "{refused}");
    assert_eq!(
        message(&refused),
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.fieldSelector.\
         requirements: Required value: when spec.resourceAttributes.fieldSelector is \
         specified, requirements or rawSelector is required"
    );
    let (code, _) =
        ask(&server, "POST", path, review(json!({"rawSelector": "a=b"}))).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn limits_without_a_name_get_one() {
    let server = server();
    let limits = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {},
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}});
    let path = "/api/v1/namespaces/default/limitranges";
    let (code, made) = ask(&server, "POST", path, limits).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["metadata"]["name"].as_str().unwrap().len(), 36);
}

#[tokio::test]
async fn the_metadata_of_a_custom_object_is_read_as_that_of_any_other() {
    let server = server();
    ask(&server, "POST", DEFINITIONS, definition()).await;
    for (metadata, why) in [
        (
            json!({"name": "t", "finalizers": true}),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.finalizers of type \
             []string",
        ),
        (
            json!({"name": {}}),
            "json: cannot unmarshal object into Go struct field ObjectMeta.name of type string",
        ),
    ] {
        let mut object = thing("t");
        object["metadata"] = metadata;
        let (code, refused) = ask(&server, "POST", THINGS, object).await;
        assert_eq!(code, 400, "{refused}");
        let expected =
            format!("Thing in version \"v1\" cannot be handled as a Thing: {why}");
        assert_eq!(message(&refused), expected);
    }
}

#[tokio::test]
async fn a_null_in_a_list_is_an_empty_text() {
    let server = server();
    let mut object = map("new");
    object["metadata"]["finalizers"] = json!([null]);
    let (code, refused) = ask(&server, "POST", MAPS, object.clone()).await;
    assert_eq!(code, 422, "{refused}");
    object["metadata"]["finalizers"] = json!([]);
    object["data"] = json!({"a": null});
    let (code, made) = ask(&server, "POST", MAPS, object).await;
    assert_eq!((code, &made["data"]), (201, &json!({"a": ""})));
}

#[tokio::test]
async fn an_active_namespace_without_a_phase_is_active() {
    let server = server();
    let namespace = json!({"metadata": {"name": "n"}});
    ask(&server, "POST", "/api/v1/namespaces", namespace).await;
    let body = json!([{"op": "add", "path": "/status", "value": {}}]);
    let path = "/api/v1/namespaces/n/status";
    let (code, patched) = patch(&server, "json-patch+json", path, body).await;
    assert_eq!(code, 200, "{patched}");
    assert_eq!(patched["status"]["phase"], "Active");
}

#[tokio::test]
async fn whoever_says_the_finalizers_of_a_namespace_manages_them() {
    let server = server();
    let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}});
    ask(&server, "POST", "/api/v1/namespaces", namespace.clone()).await;
    namespace["spec"]["finalizers"] = json!(["example.com/f"]);
    let path = "/api/v1/namespaces/n?fieldManager=other";
    let (code, refused) = patch(&server, "apply-patch+yaml", path, namespace).await;
    assert_eq!(code, 409, "{refused}");
}

#[tokio::test]
async fn an_update_of_a_volume_validates_its_metadata_again() {
    let server = server();
    let path = "/api/v1/persistentvolumes";
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}});
    ask(&server, "POST", path, volume).await;
    let body = json!({"metadata": {"generateName": "Made "}});
    let at = format!("{path}/v");
    let (code, refused) = patch(&server, "merge-patch+json", &at, body.clone()).await;
    assert_eq!(code, 422, "{refused}");
    ask(&server, "POST", MAPS, map("x")).await;
    let at = format!("{MAPS}/x");
    let (code, refused) = patch(&server, "merge-patch+json", &at, body).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test]
async fn an_empty_policy_of_traffic_inside_is_refused() {
    let server = server();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "internalTrafficPolicy": ""}});
    let path = "/api/v1/namespaces/default/services";
    let (code, refused) = ask(&server, "POST", path, service).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test]
async fn a_patch_that_removes_the_version_leaves_no_known_field() {
    let server = server();
    ask(&server, "POST", MAPS, map("x")).await;
    let body = || json!({"apiVersion": null});
    let form = "merge-patch+json";
    let path = format!("{MAPS}/x?fieldValidation=Strict");
    let (code, refused) = patch(&server, form, &path, body()).await;
    assert_eq!(code, 422, "{refused}");
    let expected =
        "strict decoding error: unknown field \"data\", unknown field \"metadata\"";
    assert!(
        message(&refused).ends_with(expected),
        "{}",
        message(&refused)
    );
    let (code, _) = patch(&server, form, &format!("{MAPS}/x"), body()).await;
    assert_eq!(code, 400);
    let body = json!({"apiVersion": 1});
    let (code, _) = patch(&server, form, &format!("{MAPS}/x"), body).await;
    assert_eq!(code, 422);
}

#[tokio::test]
async fn who_may_not_list_is_refused_before_a_limit_that_is_no_number() {
    let server = server();
    for (user, code) in [("nobody", 403), ("", 400)] {
        let path = format!("{MAPS}?limit=x");
        let mut request = Request::get(path);
        if !user.is_empty() {
            request = request.header("impersonate-user", user);
        }
        let request = request.body(Vec::new().into()).unwrap();
        let (found, text) = read(send(&server, request).await).await;
        assert_eq!(found, code, "{text}");
    }
}

#[tokio::test]
async fn a_list_of_numbers_is_bytes_too() {
    let server = server();
    let path = "/api/v1/namespaces/default/secrets";
    let secret = |value: Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"key": value}})
    };
    let (code, _) = ask(&server, "POST", path, secret(json!([256]))).await;
    assert_eq!(code, 400);
    let (code, made) = ask(&server, "POST", path, secret(json!([97, 98]))).await;
    assert_eq!((code, &made["data"]["key"]), (201, &json!("YWI=")));
}

#[tokio::test]
async fn fields_behind_a_gate_are_managed_and_not_kept() {
    let server = server();
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "strategy": "OldestEmulationVersion"}});
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let (code, made) = ask(&server, "POST", path, lease.clone()).await;
    assert_eq!((code, &made["spec"]["strategy"]), (201, &Value::Null));
    let at = format!("{path}/l?fieldManager=other");
    let (code, refused) = patch(&server, "apply-patch+yaml", &at, lease).await;
    assert_eq!(code, 409, "{refused}");
}

#[tokio::test]
async fn the_metadata_of_an_event_was_never_validated() {
    let server = server();
    let path = "/api/v1/namespaces/default/events";
    let event = json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "a-", "finalizers": ["nodomain"]},
        "involvedObject": {"namespace": "default"}});
    let (code, made) = ask(&server, "POST", path, event).await;
    assert_eq!(code, 201, "{made}");
}

#[tokio::test]
async fn a_struct_without_fields_has_no_unknown_ones() {
    let server = server();
    let mut odd = definition();
    odd["spec"]["versions"][0]["subresources"]["status"] = json!({"odd": "x"});
    let path = format!("{DEFINITIONS}?fieldValidation=Strict");
    let (code, refused) = ask(&server, "POST", &path, odd).await;
    assert_eq!(code, 400, "{refused}");
}

#[tokio::test]
async fn an_applied_quantity_is_a_scalar() {
    let server = server();
    let object = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": {"a": "b"}}}]}});
    let path = "/api/v1/namespaces/default/limitranges/l?fieldManager=m";
    let (code, refused) = patch(&server, "apply-patch+yaml", path, object).await;
    assert_eq!(code, 500, "{refused}");
    let end = ".spec.limits[0].max.cpu: expected any scalar, got &{map[a:b]}";
    assert!(message(&refused).ends_with(end), "{refused}");
}

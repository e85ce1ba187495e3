//! The first error of a request with several, and its message, as of kube-apiserver.

use http::Request;
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, THINGS, definition, map, patch, read, send, send_json, server,
    thing,
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
async fn a_terminating_namespace_is_reported_before_a_missing_name() {
    let server = server();
    let namespace = json!({"metadata": {"name": "ending"}});
    send_json(&server, "POST", "/api/v1/namespaces", namespace).await;
    let maps = "/api/v1/namespaces/ending/configmaps";
    let mut retained = map("kept");
    retained["metadata"] = json!({"name": "kept", "finalizers": ["example.com/f"]});
    send_json(&server, "POST", maps, retained).await;
    send_json(&server, "DELETE", "/api/v1/namespaces/ending", Value::Null).await;
    for (metadata, name) in [
        (json!({}), "Unknown"),
        (json!({"generateName": "made-"}), "made-"),
        (json!({"name": "said"}), "said"),
    ] {
        let mut object = map("");
        object["metadata"] = metadata;
        let (code, refused) = send_json(&server, "POST", maps, object).await;
        assert_eq!(code, 403, "{refused}");
        let expected = format!(
            "configmaps \"{name}\" is forbidden: unable to create new content in namespace \
             ending because it is being terminated"
        );
        assert_eq!(message(&refused), expected);
    }
}

#[tokio::test]
async fn a_missing_name_is_reported_with_other_errors() {
    let server = server();
    let mut object = map("");
    object["metadata"] = json!({"labels": {"a b": "c"}});
    let (code, refused) = send_json(&server, "POST", MAPS, object).await;
    assert_eq!(code, 422);
    let fields = refused["details"]["causes"].as_array().unwrap().iter();
    let fields: Vec<_> = fields.map(|it| it["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["metadata.name", "metadata.labels"]);
}

#[tokio::test]
async fn applying_the_status_of_a_missing_policy_creates_it() {
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
    let (code, created) = patch(&server, "apply-patch+yaml", &path, policy.clone()).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["spec"]["validations"][0]["expression"], "true");
    let path = format!("{POLICIES}/wrong/status?fieldManager=m");
    let mut wrong = policy;
    wrong["metadata"]["name"] = "wrong".into();
    wrong["spec"]["validations"][0]["expression"] = "true +".into();
    let (code, refused) = patch(&server, "apply-patch+yaml", &path, wrong).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test]
async fn applying_a_new_object_with_an_invalid_version_fails() {
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
async fn getting_an_event_with_an_invalid_version_fails() {
    let server = server();
    for group in ["api", "apis/events.k8s.io"] {
        let path =
            format!("/{group}/v1/namespaces/default/events/missing?resourceVersion=x");
        let (code, refused) = send_json(&server, "GET", &path, Value::Null).await;
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
    send_json(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    let (_, mut scale) = send_json(&server, "GET", &path, Value::Null).await;
    scale["metadata"]["labels"] = json!({"a b": "c"});
    let (code, refused) = send_json(&server, "PUT", &path, scale.clone()).await;
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
    assert_eq!(send_json(&server, "GET", &at, Value::Null).await.0, 500);
    scale["metadata"]["labels"] = json!({"a": "b"});
    let (code, _) = send_json(&server, "PUT", &path, scale).await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn a_scale_with_another_uid_is_a_conflict() {
    let server = server();
    send_json(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    let (_, mut scale) = send_json(&server, "GET", &path, Value::Null).await;
    let uid = scale["metadata"]["uid"].as_str().unwrap().to_owned();
    scale["metadata"]["uid"] = "other".into();
    let (code, refused) = send_json(&server, "PUT", &path, scale).await;
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
async fn unknown_fields_of_a_scale_are_rejected() {
    let server = server();
    send_json(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    let path = format!("{DEPLOYMENTS}/web/scale?fieldValidation=Strict");
    let (_, mut scale) = send_json(&server, "GET", &path, Value::Null).await;
    scale["spec"]["odd"] = 1.into();
    let (code, refused) = send_json(&server, "PUT", &path, scale).await;
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
async fn the_media_type_of_a_scale_patch_is_checked_before_its_object() {
    let server = server();
    let mut scaled = definition();
    scaled["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
    });
    let (code, _) = send_json(&server, "POST", DEFINITIONS, scaled).await;
    assert_eq!(code, 201);
    send_json(&server, "POST", THINGS, thing("t")).await;
    for name in ["t", "missing"] {
        let path = format!("{THINGS}/{name}/scale");
        let body = json!({"spec": {"replicas": 2}});
        let found = patch(&server, "strategic-merge-patch+json", &path, body).await;
        assert_eq!(found.0, 415, "{found:?}");
    }
}

#[tokio::test]
async fn the_namespace_of_a_review_must_match_its_path() {
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
    let (code, refused) = send_json(&server, "POST", path, review("other")).await;
    assert_eq!(code, 400, "{refused}");
    let expected = "the namespace of the provided object does not match the namespace sent \
                    on the request";
    assert_eq!(message(&refused), expected);
    let (code, _) = send_json(&server, "POST", path, review("default")).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn a_version_of_a_new_object_is_reported_last() {
    let server = server();
    let mut object = map("new");
    object["metadata"] =
        json!({"name": "new", "resourceVersion": "1", "labels": {"a b": "c"}});
    let (code, _) = send_json(&server, "POST", MAPS, object.clone()).await;
    assert_eq!(code, 422);
    object["metadata"]["labels"] = json!({});
    let (code, refused) = send_json(&server, "POST", MAPS, object.clone()).await;
    assert_eq!(code, 500);
    let expected = "resourceVersion should not be set on objects to be created";
    assert_eq!(message(&refused), expected);
    // A dry run does not reach the store, which checks this.
    let dry = format!("{MAPS}?dryRun=All");
    let (code, _) = send_json(&server, "POST", &dry, object).await;
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
            // Fields that the server sets are cleared before validation.
            "metadata": {"uid": "other", "deletionGracePeriodSeconds": 5},
            "spec": {"resourceAttributes":
                {"verb": "list", "resource": "pods", "fieldSelector": selector}},
        })
    };
    let (code, refused) = send_json(&server, "POST", path, review(json!({}))).await;
    assert_eq!(code, 422, "{refused}");
    assert_eq!(
        message(&refused),
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.fieldSelector.\
         requirements: Required value: when spec.resourceAttributes.fieldSelector is \
         specified, requirements or rawSelector is required"
    );
    let (code, _) =
        send_json(&server, "POST", path, review(json!({"rawSelector": "a=b"}))).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn a_limit_range_without_a_name_gets_one() {
    let server = server();
    let limits = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {},
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}});
    let path = "/api/v1/namespaces/default/limitranges";
    let (code, created) = send_json(&server, "POST", path, limits).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["metadata"]["name"].as_str().unwrap().len(), 36);
}

#[tokio::test]
async fn the_metadata_of_a_custom_object_is_decoded_by_type() {
    let server = server();
    send_json(&server, "POST", DEFINITIONS, definition()).await;
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
        let (code, refused) = send_json(&server, "POST", THINGS, object).await;
        assert_eq!(code, 400, "{refused}");
        let expected =
            format!("Thing in version \"v1\" cannot be handled as a Thing: {why}");
        assert_eq!(message(&refused), expected);
    }
}

#[tokio::test]
async fn a_null_in_a_list_is_an_empty_string() {
    let server = server();
    let mut object = map("new");
    object["metadata"]["finalizers"] = json!([null]);
    let (code, refused) = send_json(&server, "POST", MAPS, object.clone()).await;
    assert_eq!(code, 422, "{refused}");
    object["metadata"]["finalizers"] = json!([]);
    object["data"] = json!({"a": null});
    let (code, created) = send_json(&server, "POST", MAPS, object).await;
    assert_eq!((code, &created["data"]), (201, &json!({"a": ""})));
}

#[tokio::test]
async fn an_empty_phase_of_a_namespace_is_defaulted() {
    let server = server();
    let namespace = json!({"metadata": {"name": "n"}});
    send_json(&server, "POST", "/api/v1/namespaces", namespace).await;
    let body = json!([{"op": "add", "path": "/status", "value": {}}]);
    let path = "/api/v1/namespaces/n/status";
    let (code, patched) = patch(&server, "json-patch+json", path, body).await;
    assert_eq!(code, 200, "{patched}");
    assert_eq!(patched["status"]["phase"], "Active");
}

#[tokio::test]
async fn the_finalizers_of_a_namespace_have_a_manager() {
    let server = server();
    let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}});
    send_json(&server, "POST", "/api/v1/namespaces", namespace.clone()).await;
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
    send_json(&server, "POST", path, volume).await;
    let body = json!({"metadata": {"generateName": "Made "}});
    let at = format!("{path}/v");
    let (code, refused) = patch(&server, "merge-patch+json", &at, body.clone()).await;
    assert_eq!(code, 422, "{refused}");
    send_json(&server, "POST", MAPS, map("x")).await;
    let at = format!("{MAPS}/x");
    let (code, refused) = patch(&server, "merge-patch+json", &at, body).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test]
async fn an_empty_internal_traffic_policy_is_rejected() {
    let server = server();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "internalTrafficPolicy": ""}});
    let path = "/api/v1/namespaces/default/services";
    let (code, refused) = send_json(&server, "POST", path, service).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test]
async fn fields_are_unknown_if_a_patch_removes_the_api_version() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
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
async fn authorization_is_checked_before_an_invalid_limit() {
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
async fn a_list_of_numbers_is_accepted_as_bytes() {
    let server = server();
    let path = "/api/v1/namespaces/default/secrets";
    let secret = |value: Value| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"key": value}})
    };
    let (code, _) = send_json(&server, "POST", path, secret(json!([256]))).await;
    assert_eq!(code, 400);
    let (code, created) = send_json(&server, "POST", path, secret(json!([97, 98]))).await;
    assert_eq!((code, &created["data"]["key"]), (201, &json!("YWI=")));
}

#[tokio::test]
async fn gated_fields_are_managed_and_not_stored() {
    let server = server();
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "strategy": "OldestEmulationVersion"}});
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let (code, created) = send_json(&server, "POST", path, lease.clone()).await;
    assert_eq!((code, &created["spec"]["strategy"]), (201, &Value::Null));
    let at = format!("{path}/l?fieldManager=other");
    let (code, refused) = patch(&server, "apply-patch+yaml", &at, lease).await;
    assert_eq!(code, 409, "{refused}");
}

#[tokio::test]
async fn the_metadata_of_an_event_is_not_validated() {
    let server = server();
    let path = "/api/v1/namespaces/default/events";
    let event = json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "a-", "finalizers": ["nodomain"]},
        "involvedObject": {"namespace": "default"}});
    let (code, created) = send_json(&server, "POST", path, event).await;
    assert_eq!(code, 201, "{created}");
}

#[tokio::test]
async fn fields_of_an_empty_struct_are_unknown() {
    let server = server();
    let mut odd = definition();
    odd["spec"]["versions"][0]["subresources"]["status"] = json!({"odd": "x"});
    let path = format!("{DEFINITIONS}?fieldValidation=Strict");
    let (code, refused) = send_json(&server, "POST", &path, odd).await;
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

#[tokio::test]
async fn a_job_cannot_change_from_a_manual_to_a_generated_selector() {
    let server = server();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {
            "manualSelector": true,
            "selector": {"matchLabels": {"job": "a"}},
            "template": {
                "metadata": {"labels": {"job": "a"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "i"}],
                },
            },
        },
    });
    let (code, created) = send_json(&server, "POST", jobs, job).await;
    assert_eq!(code, 201, "{created}");
    let body = json!({"spec": {"manualSelector": false}});
    let path = format!("{jobs}/j");
    let (code, refused) = patch(&server, "merge-patch+json", &path, body).await;
    assert_eq!(code, 422, "{refused}");
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let expected = format!(
        "Job.batch \"j\" is invalid: [spec.template.metadata.labels[controller-uid]: Required \
         value: must be '{uid}', spec.template.metadata.labels[job-name]: Required value: must \
         be 'j', spec.selector: Invalid value: {{\"matchLabels\":{{\"job\":\"a\"}}}}: `selector` \
         not auto-generated]"
    );
    assert_eq!(message(&refused), expected);
    // A job that has its labels may be changed.
    let body = json!({"spec": {"suspend": true}});
    assert_eq!(patch(&server, "merge-patch+json", &path, body).await.0, 200);
}

#[tokio::test]
async fn the_status_of_a_missing_service_creates_one_without_an_address() {
    let server = server();
    let services = "/api/v1/namespaces/default/services";
    let mut service =
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let status = format!("{services}/s/status");
    service["spec"]["clusterIP"] = "10.0.0.77".into();
    let (code, refused) = send_json(&server, "PUT", &status, service.clone()).await;
    assert_eq!(code, 422, "{refused}");
    let expected = "Service \"s\" is invalid: spec.clusterIPs: Required value";
    assert_eq!(message(&refused), expected);
    service["apiVersion"] = "v1".into();
    service["kind"] = "Service".into();
    let applied = format!("{status}?fieldManager=m");
    let (code, refused) =
        patch(&server, "apply-patch+yaml", &applied, service.clone()).await;
    assert_eq!((code, message(&refused)), (422, expected), "{refused}");
    service["spec"]["clusterIP"] = Value::Null;
    let (code, created) = send_json(&server, "PUT", &status, service).await;
    assert_eq!((code, &created["spec"]["clusterIP"]), (201, &Value::Null));
    assert_eq!(created["spec"]["type"], "ClusterIP");
}

#[tokio::test]
async fn an_applied_null_is_rejected_and_a_posted_one_is_removed() {
    let server = server();
    send_json(&server, "POST", DEFINITIONS, definition()).await;
    let mut colored = thing("t");
    colored["spec"]["color"] = Value::Null;
    let path = format!("{THINGS}/t?fieldManager=m");
    let (code, refused) =
        patch(&server, "apply-patch+yaml", &path, colored.clone()).await;
    assert_eq!(code, 422, "{refused}");
    let start = "Thing.example.com \"t\" is invalid: spec.color: Invalid value: \"null\": \
                 spec.color in body must be of type string: \"null\"";
    assert!(message(&refused).starts_with(start), "{refused}");
    // A default replaces null.
    let mut sized = thing("t");
    sized["spec"]["size"] = Value::Null;
    let (code, created) = patch(&server, "apply-patch+yaml", &path, sized).await;
    assert_eq!((code, &created["spec"]["size"]), (201, &json!(3)));
    colored["metadata"]["name"] = "u".into();
    let (code, created) = send_json(&server, "POST", THINGS, colored).await;
    assert_eq!((code, created["spec"].get("color")), (201, None));
}

#[tokio::test]
async fn a_patch_of_the_api_version_is_reported_with_other_errors() {
    let server = server();
    send_json(&server, "POST", DEFINITIONS, definition()).await;
    send_json(&server, "POST", THINGS, thing("t")).await;
    let path = format!("{THINGS}/t");
    let form = "merge-patch+json";
    for (version, kind) in [
        ("a b", "Thing"),
        ("/a", "Thing"),
        ("a/b", "Thing.a"),
        ("example.com/v2", "Thing.example.com"),
    ] {
        let body = json!({"apiVersion": version});
        let (code, refused) = patch(&server, form, &path, body).await;
        assert_eq!(code, 422, "{refused}");
        let value = version.trim_start_matches('/');
        let expected = format!(
            "{kind} \"t\" is invalid: apiVersion: Invalid value: {value:?}: must be \
             example.com/v1"
        );
        assert_eq!(message(&refused), expected);
    }
    let body = || json!({"apiVersion": "example.com/v2", "kind": "Odd"});
    let (_, refused) = patch(&server, form, &path, body()).await;
    let causes = refused["details"]["causes"].as_array().unwrap().iter();
    let fields: Vec<_> = causes.map(|it| it["field"].clone()).collect();
    assert_eq!(fields, ["kind", "apiVersion"]);
    let strict = format!("{path}?fieldValidation=Strict");
    let (code, refused) = patch(&server, form, &strict, body()).await;
    assert_eq!(code, 422, "{refused}");
    let unknown = "strict decoding error: unknown field \"spec\"";
    assert!(message(&refused).ends_with(unknown), "{refused}");
    let body = json!({"apiVersion": "a/b/c"});
    let (code, refused) = patch(&server, form, &path, body).await;
    assert_eq!(code, 422, "{refused}");
    let why = "unexpected GroupVersion string: a/b/c";
    assert!(message(&refused).ends_with(why), "{refused}");
}

fn scale(name: &str, replicas: u64) -> Value {
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas},
    })
}

#[tokio::test]
async fn replicas_of_a_scale_are_applied_with_conflicts() {
    let server = server();
    let created = format!("{DEPLOYMENTS}?fieldManager=maker");
    send_json(&server, "POST", &created, deployment("web")).await;
    let path = |manager: &str| format!("{DEPLOYMENTS}/web/scale?fieldManager={manager}");
    let form = "apply-patch+yaml";
    // Before the error for the name, which is invalid too.
    let (code, refused) = patch(&server, form, &path("a"), scale("other", 3)).await;
    assert_eq!(code, 409, "{refused}");
    let expected = "Apply failed with 1 conflict: conflict with \"maker\" using \
                    autoscaling/v1: .spec.replicas";
    assert_eq!(message(&refused), expected);
    let forced = format!("{}&force=true", path("a"));
    let (code, _) = patch(&server, form, &forced, scale("other", 3)).await;
    assert_eq!(code, 400);
    let (code, scaled) = patch(&server, form, &forced, scale("web", 3)).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(3)));
    let owners = |object: &Value| -> Vec<String> {
        let entries = object["metadata"]["managedFields"].as_array().unwrap();
        let owners = entries
            .iter()
            .filter(|it| it["fieldsV1"]["f:spec"].get("f:replicas").is_some());
        let named = owners.map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            format!(
                "{} {} {}",
                text("manager"),
                text("operation"),
                text("apiVersion")
            )
        });
        named.collect()
    };
    let (_, now) =
        send_json(&server, "GET", &format!("{DEPLOYMENTS}/web"), Value::Null).await;
    assert_eq!(owners(&now), ["a Apply apps/v1"]);
    let (code, _) = patch(&server, form, &path("b"), scale("web", 3)).await;
    assert_eq!(code, 200);
    let (_, now) =
        send_json(&server, "GET", &format!("{DEPLOYMENTS}/web"), Value::Null).await;
    assert_eq!(owners(&now), ["a Apply apps/v1", "b Apply apps/v1"]);
    let (code, refused) = patch(&server, form, &path("b"), scale("web", 4)).await;
    assert_eq!(code, 409, "{refused}");
    let expected = "Apply failed with 1 conflict: conflict with \"a\" with subresource \
                    \"scale\": .spec.replicas";
    assert_eq!(message(&refused), expected);
}

#[tokio::test]
async fn applying_a_custom_scale_works_only_without_a_change() {
    let server = server();
    let mut scaled = definition();
    scaled["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
    });
    send_json(&server, "POST", DEFINITIONS, scaled).await;
    send_json(&server, "POST", THINGS, thing("t")).await;
    let path = format!("{THINGS}/t/scale?fieldManager=a");
    let form = "apply-patch+yaml";
    let (code, refused) = patch(&server, form, &path, scale("t", 4)).await;
    assert_eq!(code, 409, "{refused}");
    let (code, same) = patch(&server, form, &path, scale("t", 3)).await;
    assert_eq!(
        (code, &same["spec"]["replicas"]),
        (200, &json!(3)),
        "{same}"
    );
    let forced = format!("{path}&force=true");
    let (code, refused) = patch(&server, form, &forced, scale("t", 4)).await;
    assert_eq!(code, 500, "{refused}");
}

/// Kinds whose names are validated by updates too, with an object of each.
fn revalidated() -> Vec<(&'static str, Value)> {
    let spec =
        json!({"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"});
    vec![
        ("/api/v1/namespaces/default/pods", json!({"spec": spec})),
        ("/api/v1/namespaces/default/endpoints", json!({})),
        ("/api/v1/nodes", json!({})),
        ("/api/v1/namespaces", json!({})),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"spec": {"template": {"spec": spec}}}),
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"addressType": "IPv4", "endpoints": []}),
        ),
        (
            "/apis/networking.k8s.io/v1/ingressclasses",
            json!({"spec": {"controller": "example.com/c"}}),
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"provisioner": "example.com/p"}),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            json!({}),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            json!({}),
        ),
    ]
}

#[tokio::test]
async fn updates_of_many_kinds_validate_generate_name_and_status_updates_do_not() {
    let server = server();
    let prefix = || json!({"metadata": {"generateName": "Made "}});
    let form = "merge-patch+json";
    for (path, mut object) in revalidated() {
        object["metadata"] = json!({"name": "named"});
        let (code, created) = send_json(&server, "POST", path, object).await;
        assert_eq!(code, 201, "{created}");
        let path = format!("{path}/named");
        let (code, refused) = patch(&server, form, &path, prefix()).await;
        assert_eq!(code, 422, "{path}: {refused}");
        assert!(
            message(&refused).contains("metadata.generateName: Invalid value: \"Made \""),
            "{refused}"
        );
    }
    let status = "/api/v1/nodes/named/status";
    assert_eq!(patch(&server, form, status, prefix()).await.0, 200);
    send_json(&server, "POST", DEPLOYMENTS, deployment("web")).await;
    let path = format!("{DEPLOYMENTS}/web");
    assert_eq!(patch(&server, form, &path, prefix()).await.0, 200);
}

#[tokio::test]
async fn the_status_of_a_cron_job_is_not_validated() {
    let server = server();
    let path = "/apis/batch/v1/namespaces/default/cronjobs";
    let job = json!({"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
    }}});
    let cron = json!({
        "metadata": {"name": "c"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": job}},
    });
    let (code, created) = send_json(&server, "POST", path, cron).await;
    assert_eq!(code, 201, "{created}");
    let body = || json!({"metadata": {"finalizers": ["A"]}});
    let form = "merge-patch+json";
    let refused = patch(&server, form, &format!("{path}/c"), body()).await;
    assert_eq!(refused.0, 422, "{refused:?}");
    let (code, _) = patch(&server, form, &format!("{path}/c/status"), body()).await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn the_indexes_of_a_job_are_intervals_below_its_completions() {
    let server = server();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {
            "completions": 5,
            "completionMode": "Indexed",
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i"}],
            }},
        },
    });
    let (code, created) = send_json(&server, "POST", jobs, job).await;
    assert_eq!(code, 201, "{created}");
    let path = format!("{jobs}/j/status");
    for (indices, why) in [
        ("x", "cannot convert string to integer for index: \"x\""),
        ("0,7", "too large index: \"7\""),
        ("3,1", "non-increasing order, previous: 3, current: 1"),
        ("3-2", "non-increasing order, previous: 3, current: 2"),
        (
            "1-2-3",
            "the fragment \"1-2-3\" violates the requirement that an index interval can have at \
             most two parts separated by '-'",
        ),
    ] {
        let body = json!({"status": {"completedIndexes": indices}});
        let (code, refused) = patch(&server, "merge-patch+json", &path, body).await;
        assert_eq!(code, 422, "{refused}");
        let expected = format!(
            "Job.batch \"j\" is invalid: status.completedIndexes: Invalid value: {indices:?}: \
             error parsing completedIndexes: {why}"
        );
        assert_eq!(message(&refused), expected);
    }
    let body = json!({"status": {"completedIndexes": "0,2-4"}});
    assert_eq!(patch(&server, "merge-patch+json", &path, body).await.0, 200);
}

#[tokio::test]
async fn plugins_reject_a_replacement_before_its_version_is_checked() {
    let server = server();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = || json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1}});
    send_json(&server, "POST", budgets, budget()).await;
    let policy = json!({
        "metadata": {"name": "add.example.com"},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["policy"], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["poddisruptionbudgets"],
            }]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {
                "expression": "[JSONPatch{op: 'remove', path: '/spec/nothing'}]",
            }}],
        },
    });
    let group = "/apis/admissionregistration.k8s.io/v1";
    let path = format!("{group}/mutatingadmissionpolicies");
    let (code, created) = send_json(&server, "POST", &path, policy).await;
    assert_eq!(code, 201, "{created}");
    let binding = json!({
        "metadata": {"name": "add"}, "spec": {"policyName": "add.example.com"},
    });
    let path = format!("{group}/mutatingadmissionpolicybindings");
    let (code, created) = send_json(&server, "POST", &path, binding).await;
    assert_eq!(code, 201, "{created}");
    // A replacement of a budget requires a resourceVersion.
    let (code, refused) =
        send_json(&server, "PUT", &format!("{budgets}/b"), budget()).await;
    assert!(
        !message(&refused).contains("resourceVersion"),
        "{code} {refused}"
    );
}

#[tokio::test]
async fn an_empty_host_is_validated_and_an_empty_struct_accepts_applied_fields() {
    let server = server();
    let ingress = json!({"metadata": {"name": "i"}, "spec": {
        "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
        "tls": [{"hosts": [""]}],
    }});
    let path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let (code, refused) = send_json(&server, "POST", path, ingress).await;
    assert_eq!(code, 422, "{refused}");
    let start = "Ingress.networking.k8s.io \"i\" is invalid: spec.tls[0].hosts[0]: Invalid value: \
                 \"\": a lowercase RFC 1123 subdomain";
    assert!(message(&refused).starts_with(start), "{refused}");
    let mut odd = definition();
    odd["spec"]["versions"][0]["subresources"]["status"] = json!({"odd": "x"});
    let path = format!("{DEFINITIONS}/things.example.com?fieldManager=m");
    let (code, created) = patch(&server, "apply-patch+yaml", &path, odd).await;
    assert_eq!(code, 201, "{created}");
}

#[tokio::test]
async fn an_invalid_kind_is_reported_before_the_name() {
    let server = server();
    send_json(&server, "POST", DEFINITIONS, definition()).await;
    send_json(&server, "POST", THINGS, thing("t")).await;
    let form = "merge-patch+json";
    let body = json!({"kind": {}, "metadata": {"name": "other"}});
    let (code, refused) = patch(&server, form, &format!("{THINGS}/t"), body).await;
    assert_eq!(code, 422, "{refused}");
    let why = "couldn't get version/kind; json parse error: json: cannot unmarshal object into \
               Go struct field .kind of type string";
    assert!(message(&refused).ends_with(why), "{refused}");
    send_json(&server, "POST", MAPS, map("x")).await;
    let body = json!({"kind": "Odd", "apiVersion": null});
    let (code, refused) = patch(&server, form, &format!("{MAPS}/x"), body).await;
    assert_eq!(code, 422, "{refused}");
    let why = "no kind \"Odd\" is registered for the internal version of group \"\" in scheme \
               \"pkg/runtime/scheme.go:111\"";
    assert!(message(&refused).ends_with(why), "{refused}");
}

#[tokio::test]
async fn a_version_that_cannot_be_parsed_is_reported_before_the_kind() {
    let server = server();
    let sent = |version: &str| {
        let mut sent = map("x");
        sent["apiVersion"] = version.into();
        sent
    };
    let (_, refused) = send_json(&server, "POST", MAPS, sent("a/b/c")).await;
    assert_eq!(
        message(&refused),
        "the object provided is unrecognized (must be of type ConfigMap): unexpected \
         GroupVersion string: a/b/c ({\"apiVersion\":\"a/b/c\",\"kind\":\" ...)"
    );
    let (_, refused) = send_json(&server, "POST", MAPS, sent("/a")).await;
    assert_eq!(
        message(&refused),
        "ConfigMap in version \"a\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is \
         registered for version \"a\" in scheme \"pkg/runtime/scheme.go:111\""
    );
    let at = format!("{MAPS}/x");
    let applied = format!("{at}?fieldManager=m");
    let (_, refused) = patch(&server, "apply-patch+yaml", &applied, sent("a/b/c")).await;
    assert_eq!(message(&refused), "invalid object type: /, Kind=");
    send_json(&server, "POST", MAPS, map("x")).await;
    let version = json!({"apiVersion": "a/b/c"});
    let (_, refused) = patch(&server, "merge-patch+json", &at, version).await;
    assert!(message(&refused).ends_with("\": unexpected GroupVersion string: a/b/c"));
}

#[tokio::test]
async fn another_namespace_is_reported_before_another_name() {
    let server = server();
    send_json(&server, "POST", MAPS, map("x")).await;
    let other = json!({"metadata": {"name": "y", "namespace": "other"}});
    let (code, refused) =
        patch(&server, "merge-patch+json", &format!("{MAPS}/x"), other).await;
    assert_eq!(code, 400);
    assert_eq!(
        message(&refused),
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}

#[tokio::test]
async fn all_errors_of_delete_options_are_reported() {
    let server = server();
    let options = json!({"propagationPolicy": "Odd", "orphanDependents": true,
        "dryRun": ["Some"]});
    let (code, refused) =
        send_json(&server, "DELETE", &format!("{MAPS}/x"), options).await;
    assert_eq!(code, 422);
    assert_eq!(
        message(&refused),
        "DeleteOptions.meta.k8s.io \"\" is invalid: [propagationPolicy: Invalid value: \"Odd\": \
         orphanDependents and deletionPropagation cannot be both set, propagationPolicy: \
         Unsupported value: \"Odd\": supported values: \"Foreground\", \"Background\", \"Orphan\", \
         \"nil\", dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"]"
    );
}

#[tokio::test]
async fn some_kinds_have_words_of_their_own() {
    let server = server();
    let message = async |method: &str, path: &str, body: Value| {
        let (_, refused) = send_json(&server, method, path, body).await;
        message(&refused).to_owned()
    };
    let selected = async |list: &str| {
        let path = format!("/apis/{list}?fieldSelector=status.replicas%3D1");
        message("GET", &path, Value::Null).await
    };
    assert_eq!(
        selected("batch/v1/jobs").await,
        "field label \"status.replicas\" not supported for Job"
    );
    assert_eq!(
        selected("resource.k8s.io/v1/resourceslices").await,
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: status.replicas"
    );
    assert_eq!(
        selected("apps/v1/replicasets").await,
        "\"status.replicas\" is not a known field selector: only \"metadata.name\", \
         \"metadata.namespace\""
    );
    let namespaces = "/api/v1/namespaces";
    send_json(
        &server,
        "POST",
        namespaces,
        json!({"metadata": {"name": "n", "uid": "u"}}),
    )
    .await;
    let refused = message(
        "DELETE",
        "/api/v1/namespaces/n",
        json!({"preconditions": {"uid": "other"}}),
    );
    assert!(refused.await.starts_with(
        "Operation cannot be fulfilled on namespaces \"n\": Precondition failed: UID in \
         precondition: other, UID in object meta: "
    ));
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let hook = json!({"metadata": {"name": "h"}, "webhooks": [{"name": "h.example.com",
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "s"}}}]});
    assert!(
        message("POST", hooks, hook)
            .await
            .ends_with("webhooks[0].clientConfig.service.name: Required value")
    );
}

#[tokio::test]
async fn the_metadata_of_a_new_budget_is_validated_after_its_spec() {
    let server = server();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let mut budget = json!({"metadata": {"name": "x", "labels": {"a b": "c"}},
        "spec": {"minAvailable": -1}});
    let (_, refused) = send_json(&server, "POST", budgets, budget.clone()).await;
    assert_eq!(
        message(&refused),
        "PodDisruptionBudget.policy \"x\" is invalid: spec.minAvailable: Invalid value: -1: must \
         be greater than or equal to 0"
    );
    budget["spec"]["minAvailable"] = 1.into();
    let (_, refused) = send_json(&server, "POST", budgets, budget).await;
    assert!(message(&refused).contains("metadata.labels: Invalid value: \"a b\": "));
}

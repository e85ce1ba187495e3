//! Built-in kinds are decoded, stored and validated as in Kubernetes.

use std::time::{Duration, Instant};

use kubemu_apiserver::{Delete, Selector, Server};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, PODS, THINGS, client, definition, map, patch, pod, send_json,
    server, thing,
};

#[tokio::test]
async fn an_object_above_the_etcd_size_limit_is_rejected() {
    let server = server();
    let client = server.client();
    let mut open = definition();
    let schema = &mut open["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["color"] = json!({"type": "string"});
    client.create(DEFINITIONS, open).await.unwrap();
    server.clock().wait_until_idle().await;
    let sized = |size: usize| {
        let mut sized = thing("large");
        sized["spec"]["color"] = "x".repeat(size).into();
        sized
    };
    let refused = client.create(THINGS, sized(1_572_864)).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (500, "etcdserver: request is too large")
    );
    client.create(THINGS, sized(1_500_000)).await.unwrap();
}

#[tokio::test]
async fn an_object_that_only_its_managed_fields_make_too_large_is_stored_without_them() {
    let server = server();
    let mut many = map("many");
    let keys = (0..70_000).map(|it| (format!("k{it:05}"), Value::from("")));
    many["data"] = Value::Object(keys.collect());
    let (code, created) = send_json(&server, "POST", MAPS, many.clone()).await;
    assert_eq!(code, 201, "{}", created["message"]);
    assert_eq!(created["metadata"]["managedFields"], Value::Null);
    many["data"]["k00000"] = "1".into();
    let path = format!("{MAPS}/many");
    let (code, updated) = send_json(&server, "PUT", &path, many.clone()).await;
    assert_eq!(code, 200, "{}", updated["message"]);
    assert_eq!(updated["metadata"]["managedFields"], Value::Null);
    many["metadata"]["name"] = "applied".into();
    let path = format!("{MAPS}/applied?fieldManager=me");
    let (code, refused) = patch(&server, "apply-patch+yaml", &path, many).await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (500, Some("etcdserver: request is too large")),
        "an apply needs its managed fields"
    );
}

#[tokio::test]
async fn many_errors_are_reported_in_proportion_to_their_number() {
    let server = server();
    let rejected = async |count: usize| -> Duration {
        let mut wrong = map("wrong");
        let finalizers = (0..count).map(|it| format!("not a name {it}"));
        wrong["metadata"]["finalizers"] = finalizers.collect();
        let mut shortest = Duration::MAX;
        for _ in 0..2 {
            let wrong = wrong.clone();
            let begun = Instant::now();
            let (code, _) = send_json(&server, "POST", MAPS, wrong).await;
            shortest = shortest.min(begun.elapsed());
            assert_eq!(code, 422);
        }
        shortest
    };
    let (short, long) = (rejected(2_000).await, rejected(32_000).await);
    // Comparing each error with each other one would take 256 times as long. Other tests run
    // meanwhile.
    assert!(long < short * 100, "{short:?}, then {long:?}");
}

#[tokio::test]
async fn an_invalid_quantity_is_rejected() {
    let server = server();
    let form = "quantities must match the regular expression \
                '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for wrong in [
        json!(true),
        json!("abc"),
        json!(""),
        json!(["1"]),
        json!({}),
    ] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i",
                "resources": {"requests": {"cpu": wrong}}}]}});
        let (code, answer) = send_json(&server, "POST", PODS, pod).await;
        assert_eq!(code, 400, "{wrong}: {answer}");
        let expected =
            format!("Pod in version \"v1\" cannot be handled as a Pod: {form}");
        assert_eq!(answer["message"], expected, "{wrong}");
    }
    for (name, right) in [
        ("a", json!(1)),
        ("b", json!("100m")),
        ("c", json!("1e3")),
        ("d", json!(0.5)),
    ] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i",
                "resources": {"requests": {"cpu": right}}}]}});
        let (code, answer) = send_json(&server, "POST", PODS, pod).await;
        assert_eq!(code, 201, "{right}: {answer}");
    }
}

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";

#[tokio::test]
async fn a_stateful_set_can_be_stored_listed_and_watched() {
    let client = client();
    let everywhere = "/apis/apps/v1/statefulsets";
    let all = client.list(everywhere, &Selector::default()).await.unwrap();
    assert_eq!(all.items.len(), 0);
    let mut watch = client.watch(SETS, &Selector::default(), "").unwrap();
    let set = json!({"metadata": {"name": "db"}, "spec": {"serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}]}});
    let created = client.create(SETS, set).await.unwrap();
    assert_eq!(created["metadata"]["generation"], 1);
    let event = crate::fixture::next(&mut watch).await;
    assert_eq!(event.object["metadata"]["name"], "db");
    let path = format!("{SETS}/db");
    let status = json!({"metadata": {"name": "db"}, "status": {"replicas": 1}});
    client.update_status(&path, status).await.unwrap();
    client.delete(&path, &Delete::default()).await.unwrap();
}

#[tokio::test]
async fn a_deleted_system_namespace_is_recreated() {
    let server = server();
    let client = server.client();
    let path = "/api/v1/namespaces/kube-node-lease";
    let first = client.get(path).await.unwrap();
    client.delete(path, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    let second = client.get(path).await.unwrap();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(second["status"]["phase"], "Active");
}

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn token_secret(account: &str) -> Value {
    json!({"metadata": {"name": "token",
            "annotations": {"kubernetes.io/service-account.name": account}},
        "type": "kubernetes.io/service-account-token"})
}

fn decoded(secret: &Value, key: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let text = secret["data"][key].as_str().unwrap();
    String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
}

#[tokio::test]
async fn a_token_secret_is_filled_for_its_service_account() {
    let server = Server::new(kubemu_apiserver::Options {
        authority: Some("the authority".to_owned()),
        ..crate::fixture::options()
    })
    .unwrap();
    server.clock().wait_until_idle().await;
    let client = server.client();
    client
        .create(SECRETS, token_secret("default"))
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    let path = format!("{SECRETS}/token");
    let filled = client.get(&path).await.unwrap();
    assert_eq!(decoded(&filled, "namespace"), "default");
    assert_eq!(decoded(&filled, "ca.crt"), "the authority");
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    let account = client.get(account).await.unwrap();
    assert_eq!(
        filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"],
        account["metadata"]["uid"]
    );
    let token = decoded(&filled, "token");
    let user = server.authenticate(&token).unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:default");
    client.delete(&path, &Delete::default()).await.unwrap();
    server.authenticate(&token).unwrap_err();
}

#[tokio::test]
async fn a_token_secret_of_a_missing_service_account_is_deleted() {
    let server = server();
    let client = server.client();
    client
        .create(SECRETS, token_secret("nobody"))
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    let path = format!("{SECRETS}/token");
    assert_eq!(client.get(&path).await.unwrap_err().code, 404);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let somebody = json!({"metadata": {"name": "somebody"}});
    client.create(accounts, somebody).await.unwrap();
    client
        .create(SECRETS, token_secret("somebody"))
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    client.get(&path).await.unwrap();
    let account = format!("{accounts}/somebody");
    client.delete(&account, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&path).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn the_service_of_the_api_server_exists() {
    let server = server();
    server.clock().wait_until_idle().await;
    let client = server.client();
    let path = "/api/v1/namespaces/default/services/kubernetes";
    let service = client.get(path).await.unwrap();
    assert_eq!(service["metadata"]["labels"]["component"], "apiserver");
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    client.delete(path, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    client.get(path).await.unwrap();
    client.create(MAPS, map("x")).await.unwrap();
}

#[tokio::test]
async fn nulls_in_lists_are_zero_values() {
    let server = server();
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [null], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["pods"]}]},
        "validations": [{"expression": "true"}],
    }});
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let (code, created) = send_json(&server, "POST", policies, policy).await;
    assert_eq!(code, 201, "{}", created["message"]);
    let rule = &created["spec"]["matchConstraints"]["resourceRules"][0];
    assert_eq!(rule["apiGroups"], json!([""]));
    let mut branches = definition();
    let schema = &mut branches["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["anyOf"] = json!([null]);
    let (code, created) = send_json(&server, "POST", DEFINITIONS, branches).await;
    assert_eq!(code, 201, "{}", created["message"]);
    let schema = &created["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["spec"]["anyOf"], json!([{}]));
    let mut pod = pod("p", "", "a");
    pod["spec"]["securityContext"] = json!({"supplementalGroups": [null, 5]});
    let (code, created) = send_json(&server, "POST", PODS, pod).await;
    assert_eq!(code, 201, "{}", created["message"]);
    let context = &created["spec"]["securityContext"];
    assert_eq!(context["supplementalGroups"], json!([0, 5]));
}

#[tokio::test]
async fn a_binding_needs_a_node_and_a_pod_that_may_be_scheduled() {
    let server = server();
    let mut gated = pod("p", "", "a");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    let (code, created) = send_json(&server, "POST", PODS, gated).await;
    assert_eq!(code, 201, "{}", created["message"]);
    let path = format!("{PODS}/p/binding");
    let bind = async |target: Value| {
        let binding = json!({"metadata": {"name": "p"}, "target": target});
        let (code, answer) = send_json(&server, "POST", &path, binding).await;
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        (code, text("reason"), text("message"))
    };
    let refused = |message: &str| (500, String::new(), message.to_owned());
    assert_eq!(
        bind(json!({})).await,
        refused("target.name: Required value")
    );
    assert_eq!(
        bind(json!({"kind": "Pod"})).await,
        refused(
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \
             \"<empty>\", target.name: Required value]"
        )
    );
    let (code, _, message) = bind(json!({"kind": "Node", "name": "n"})).await;
    assert_eq!(
        (code, message.as_str()),
        (
            409,
            "Operation cannot be fulfilled on pods/binding \"p\": pod p has non-empty \
             .spec.schedulingGates"
        )
    );
}

#[tokio::test]
async fn a_dry_run_asks_the_allocators_of_services_otherwise() {
    let server = server();
    let create = async |query: &str, spec: Value| {
        let service = json!({"metadata": {"name": "s"}, "spec": spec});
        let path = format!("/api/v1/namespaces/default/services{query}");
        let (code, answer) = send_json(&server, "POST", &path, service).await;
        let message = answer["message"].as_str().unwrap_or_default();
        let why = message.rsplit("failed to allocate IP 192.168.0.1: ").next();
        (code, why.unwrap_or_default().to_owned())
    };
    let outside = json!({"clusterIP": "192.168.0.1", "ports": [{"port": 80}]});
    let of_all = "the provided network does not match the current range";
    let of_first = "the provided IP (192.168.0.1) is not in the valid range. The range of \
                    valid IPs is 10.0.0.0/24";
    assert_eq!(create("", outside.clone()).await, (422, of_all.to_owned()));
    let dry = create("?dryRun=All", outside).await;
    assert_eq!(dry, (422, of_first.to_owned()));
    let port = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]});
    assert_eq!(create("?dryRun=All", port.clone()).await.0, 201);
    assert_eq!(create("", port).await.0, 422);
}

//! The mutations, rejections and messages of the admission plugins.

use kubemu_apiserver::{Client, Delete, Options, Patch, Selector, Server, Status, User};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, PODS, THINGS, definition, map, options, pod, send_json, thing,
};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";
const NODES: &str = "/api/v1/nodes";
const DEFAULT: &str = "/api/v1/namespaces/default";

fn with(names: &[&str]) -> Server {
    let enable_plugins = names.iter().map(|it| (*it).to_owned()).collect();
    Server::new(Options {
        enable_plugins,
        ..options()
    })
    .unwrap()
}

fn configured(name: &str, configuration: Value) -> Server {
    Server::new(Options {
        enable_plugins: vec![name.to_owned()],
        plugin_configurations: [(name.to_owned(), configuration)].into(),
        ..options()
    })
    .unwrap()
}

fn plain(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// A pod with a changed spec.
fn with_spec(name: &str, change: Value) -> Value {
    let mut pod = plain(name);
    for (field, value) in change.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// A pod whose container has resource requirements.
fn pod_with_resources(name: &str, resources: Value) -> Value {
    let mut pod = plain(name);
    pod["spec"]["containers"][0]["resources"] = resources;
    pod
}

async fn refused(client: &Client, path: &str, object: Value) -> Status {
    client.create(path, object).await.unwrap_err()
}

async fn rejection(client: &Client, path: &str, object: Value) -> String {
    refused(client, path, object).await.message
}

async fn annotate(client: &Client, annotations: Value) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    client.patch(DEFAULT, patch).await.unwrap();
}

#[tokio::test]
async fn always_deny_rejects_every_write_and_no_read() {
    let client = with(&["AlwaysDeny", "AlwaysAdmit"]).client();
    assert_eq!(
        rejection(&client, MAPS, map("x")).await,
        "configmaps \"x\" is forbidden: admission control is denying all modifications"
    );
    let found = client.list(MAPS, &Selector::default()).await.unwrap();
    assert_eq!(found.items.len(), 0);
}

#[tokio::test]
async fn always_pull_images_sets_the_policy_of_every_container() {
    let client = with(&["AlwaysPullImages"]).client();
    let wish = json!([{"name": "c", "image": "i:1", "imagePullPolicy": "Never"}]);
    let pod = with_spec(
        "p",
        json!({"containers": wish, "initContainers": [
        {"name": "d", "image": "i:1"}]}),
    );
    let created = client.create(PODS, pod).await.unwrap();
    let spec = &created["spec"];
    assert_eq!(spec["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(spec["initContainers"][0]["imagePullPolicy"], "Always");
}

#[tokio::test]
async fn namespace_exists_alone_rejects_a_missing_namespace() {
    let server = Server::new(Options {
        enable_plugins: vec!["NamespaceExists".to_owned()],
        disable_plugins: vec!["NamespaceLifecycle".to_owned()],
        ..options()
    });
    let client = server.unwrap().client();
    let path = "/api/v1/namespaces/blue/configmaps";
    let refused = refused(&client, path, map("x")).await;
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (404, "namespaces \"blue\" not found")
    );
}

#[tokio::test]
async fn required_anti_affinity_is_limited_to_the_hostname_topology() {
    let client = with(&["LimitPodHardAntiAffinityTopology"]).client();
    let affinity = |key: &str| {
        json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key,
                "labelSelector": {"matchLabels": {"a": "b"}}}]}}})
    };
    let node = with_spec("a", affinity("kubernetes.io/hostname"));
    client.create(PODS, node).await.unwrap();
    let zone = with_spec("b", affinity("topology.kubernetes.io/zone"));
    assert_eq!(
        rejection(&client, PODS, zone).await,
        "pods \"b\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has \
         TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed"
    );
}

#[tokio::test]
async fn a_limit_range_defaults_and_rejects() {
    let client = with(&[]).client();
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "250m"},
            "min": {"cpu": "100m"}, "max": {"cpu": "1"},
            "maxLimitRequestRatio": {"cpu": "2"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}});
    client.create(RANGES, range).await.unwrap();
    let created = client.create(PODS, plain("a")).await.unwrap();
    let resources = &created["spec"]["containers"][0]["resources"];
    assert_eq!(
        *resources,
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "250m"}})
    );
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let rows = [
        (
            json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "100m"}}),
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}),
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            json!({"requests": {"cpu": "200m"}, "limits": {"cpu": "1"}}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000",
        ),
    ];
    for (resources, expected) in rows {
        let found = rejection(&client, PODS, pod_with_resources("b", resources)).await;
        assert_eq!(found, format!("pods \"b\" is forbidden: {expected}"));
    }
    let both = json!({"requests": {"cpu": "10m"}, "limits": {"cpu": "2"}});
    let found = rejection(&client, PODS, pod_with_resources("b", both)).await;
    assert!(
        found.starts_with("pods \"b\" is forbidden: [minimum cpu"),
        "{found}"
    );
    let claim = json!({"metadata": {"name": "v"}, "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}}}});
    assert_eq!(
        rejection(&client, CLAIMS, claim).await,
        "persistentvolumeclaims \"v\" is forbidden: maximum storage usage per \
         PersistentVolumeClaim is 1Gi, but request is 2Gi"
    );
}

#[tokio::test]
async fn a_quota_counts_objects_of_any_resource() {
    let server = with(&[]);
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    server.clock().wait_until_idle().await;
    let hard = json!({"count/things.example.com": "2", "configmaps": "3"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    client.create(QUOTAS, quota).await.unwrap();
    client.create(THINGS, thing("a")).await.unwrap();
    client.create(THINGS, thing("b")).await.unwrap();
    let refused = refused(&client, THINGS, thing("c")).await;
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            403,
            "things.example.com \"c\" is forbidden: exceeded quota: q, requested: \
             count/things.example.com=1, used: count/things.example.com=2, limited: \
             count/things.example.com=2"
        )
    );
    server.clock().wait_until_idle().await;
    let at = format!("{QUOTAS}/q");
    let shown = client.get(&at).await.unwrap();
    let used = json!({"configmaps": "0", "count/things.example.com": "2"});
    assert_eq!(shown["status"]["used"], used);
    assert_eq!(shown["status"]["hard"], hard);
    // A deletion frees quota.
    let gone = format!("{THINGS}/a");
    client.delete(&gone, &Delete::default()).await.unwrap();
    client.create(THINGS, thing("c")).await.unwrap();
    server.clock().wait_until_idle().await;
    let shown = client.get(&at).await.unwrap();
    assert_eq!(shown["status"]["used"], used);
}

#[tokio::test]
async fn a_quota_counts_the_devices_of_each_class() {
    let server = with(&[]);
    let client = server.client();
    let hard = json!({"gold.deviceclass.resource.k8s.io/devices": "3"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    client.create(QUOTAS, quota).await.unwrap();
    let claim = |name: &str, count: i64| {
        json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gold", "count": count}},
            {"name": "s", "exactly": {"deviceClassName": "silver", "count": 9}}]}}})
    };
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    client.create(claims, claim("a", 2)).await.unwrap();
    let refused = client.create(claims, claim("b", 2)).await.unwrap_err();
    let why = "exceeded quota: q, requested: gold.deviceclass.resource.k8s.io/devices=2, used: \
               gold.deviceclass.resource.k8s.io/devices=2, limited: \
               gold.deviceclass.resource.k8s.io/devices=3";
    assert!(refused.message.ends_with(why), "{}", refused.message);
    server.clock().wait_until_idle().await;
    let quota = client.get(&format!("{QUOTAS}/q")).await.unwrap();
    let used = &quota["status"]["used"];
    assert_eq!(used["gold.deviceclass.resource.k8s.io/devices"], "2");
}

#[tokio::test]
async fn a_compute_quota_requires_that_containers_set_the_resources() {
    let client = with(&[]).client();
    let hard = json!({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "2"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    client.create(QUOTAS, quota).await.unwrap();
    assert_eq!(
        rejection(&client, PODS, plain("a")).await,
        "pods \"a\" is forbidden: failed quota: q: must specify limits.memory for: c; \
         requests.cpu for: c"
    );
    let send_json =
        |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"memory": "100Mi"}});
    client
        .create(PODS, pod_with_resources("a", send_json("800m")))
        .await
        .unwrap();
    assert_eq!(
        rejection(&client, PODS, pod_with_resources("b", send_json("0.3"))).await,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=300m, used: \
         requests.cpu=800m, limited: requests.cpu=1"
    );
}

#[tokio::test]
async fn a_quota_with_a_scope_covers_only_pods_in_the_scope() {
    let client = with(&[]).client();
    let quota =
        |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let best = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]});
    client.create(QUOTAS, quota("best", best)).await.unwrap();
    let class = json!({"metadata": {"name": "high"}, "value": 7});
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    client.create(classes, class).await.unwrap();
    let high = json!({"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}});
    client.create(QUOTAS, quota("high", high)).await.unwrap();
    let small = json!({"requests": {"cpu": "1m"}});
    client.create(PODS, plain("a")).await.unwrap();
    client
        .create(PODS, pod_with_resources("b", small.clone()))
        .await
        .unwrap();
    assert_eq!(
        rejection(&client, PODS, plain("c")).await,
        "pods \"c\" is forbidden: exceeded quota: best, requested: pods=1, used: pods=1, \
         limited: pods=1"
    );
    let mut important = pod_with_resources("d", small);
    important["spec"]["priorityClassName"] = "high".into();
    assert_eq!(
        rejection(&client, PODS, important).await,
        "pods \"d\" is forbidden: exceeded quota: high, requested: pods=1, used: pods=0, \
         limited: pods=0"
    );
}

#[tokio::test]
async fn resources_that_the_configuration_limits_require_a_quota() {
    let limited = json!([{"resource": "configmaps", "matchContains": ["configmaps"]}]);
    let server = configured(
        "ResourceQuota",
        json!({"kind": "ResourceQuotaConfiguration",
            "apiVersion": "apiserver.config.k8s.io/v1", "limitedResources": limited}),
    );
    let client = server.client();
    assert_eq!(
        rejection(&client, MAPS, map("x")).await,
        "configmaps \"x\" is forbidden: insufficient quota to consume: \
         configmaps,count/configmaps"
    );
}

async fn labelled(client: &Client, labels: Value) -> Result<(), Status> {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    client.patch(DEFAULT, patch).await.map(|_| ())
}

#[tokio::test]
async fn pods_must_conform_to_the_security_standard_of_their_namespace() {
    let client = with(&[]).client();
    let enforce = |level: &str| json!({"pod-security.kubernetes.io/enforce": level});
    labelled(&client, enforce("baseline")).await.unwrap();
    client.create(PODS, plain("a")).await.unwrap();
    let mut bad = with_spec("b", json!({"hostNetwork": true}));
    bad["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    assert_eq!(
        rejection(&client, PODS, bad).await,
        "pods \"b\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces \
         (hostNetwork=true), privileged (container \"c\" must not set \
         securityContext.privileged=true)"
    );
    labelled(&client, enforce("restricted")).await.unwrap();
    assert_eq!(
        rejection(&client, PODS, plain("b")).await,
        "pods \"b\" is forbidden: violates PodSecurity \"restricted:latest\": \
         allowPrivilegeEscalation != false (container \"c\" must set \
         securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \
         \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod \
         or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or \
         container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")"
    );
    let mut good = with_spec(
        "b",
        json!({"securityContext": {"runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"}}}),
    );
    good["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    client.create(PODS, good).await.unwrap();
    let refused = labelled(&client, enforce("none")).await.unwrap_err();
    assert_eq!(
        refused.message,
        "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: \
         Invalid value: \"none\": must be one of privileged, baseline, restricted"
    );
}

#[tokio::test]
async fn a_security_standard_can_warn_and_have_a_version() {
    let server = with(&[]);
    let client = server.client();
    labelled(
        &client,
        json!({"pod-security.kubernetes.io/warn": "baseline",
        "pod-security.kubernetes.io/warn-version": "v1.26"}),
    )
    .await
    .unwrap();
    let sysctl = |name: &str| {
        with_spec(
            "a",
            json!({"securityContext": {"sysctls": [{"name": name, "value": "1"}]}}),
        )
    };
    let path = format!("{PODS}?dryRun=All");
    let warnings = async |pod: Value| {
        let request = crate::fixture::request("POST", &path, &pod);
        let response = crate::fixture::send(&server, request).await;
        assert_eq!(response.status(), 201);
        let headers = response.headers().get_all("warning").iter();
        let texts = headers.map(|it| it.to_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        warnings(sysctl("net.ipv4.tcp_rmem")).await,
        [
            "299 - \"would violate PodSecurity \\\"baseline:v1.26\\\": forbidden sysctls \
          (net.ipv4.tcp_rmem)\""
        ]
    );
    let latest = json!({"pod-security.kubernetes.io/warn-version": "latest"});
    labelled(&client, latest).await.unwrap();
    assert_eq!(warnings(sysctl("net.ipv4.tcp_rmem")).await, [""; 0]);
}

#[tokio::test]
async fn a_priority_is_set_from_the_class() {
    let client = with(&[]).client();
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64, default: bool| {
        json!({"metadata": {"name": name}, "value": value, "globalDefault": default,
            "preemptionPolicy": "Never"})
    };
    client.create(classes, class("low", 5, true)).await.unwrap();
    let created = client.create(PODS, plain("a")).await.unwrap();
    let spec = &created["spec"];
    assert_eq!(
        (
            &spec["priorityClassName"],
            &spec["priority"],
            &spec["preemptionPolicy"]
        ),
        (&json!("low"), &json!(5), &json!("Never"))
    );
    assert_eq!(
        rejection(&client, classes, class("other", 9, true)).await,
        "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass low is already \
         marked as default. Only one default can exist"
    );
    let none = with_spec("b", json!({"priorityClassName": "none"}));
    assert_eq!(
        rejection(&client, PODS, none).await,
        "pods \"b\" is forbidden: no PriorityClass with name none was found"
    );
    let system = with_spec("b", json!({"priorityClassName": "system-node-critical"}));
    let created = client.create(PODS, system).await.unwrap();
    assert_eq!(created["spec"]["priority"], 2_000_001_000);
}

#[tokio::test]
async fn claims_and_pods_get_default_and_named_classes() {
    let client = with(&[]).client();
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let class = json!({"metadata": {"name": "fast", "annotations": {
        "storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "example.com/d"});
    client.create(classes, class).await.unwrap();
    let claim = json!({"metadata": {"name": "v"}, "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let created = client.create(CLAIMS, claim).await.unwrap();
    assert_eq!(created["spec"]["storageClassName"], "fast");
    assert_eq!(
        created["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"])
    );
    let grow =
        Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
    let refused = client
        .patch(&format!("{CLAIMS}/v"), grow)
        .await
        .unwrap_err();
    assert!(
        refused.message.contains("spec is immutable after creation"),
        "{refused}"
    );
    let runtimes = "/apis/node.k8s.io/v1/runtimeclasses";
    let runtime = json!({"metadata": {"name": "vm"}, "handler": "vm",
        "overhead": {"podFixed": {"memory": "64Mi"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}}});
    client.create(runtimes, runtime).await.unwrap();
    let pod = with_spec("p", json!({"runtimeClassName": "vm"}));
    let created = client.create(PODS, pod).await.unwrap();
    assert_eq!(created["spec"]["overhead"], json!({"memory": "64Mi"}));
    assert_eq!(created["spec"]["nodeSelector"], json!({"vm": "yes"}));
    let missing = with_spec("q", json!({"runtimeClassName": "none"}));
    assert_eq!(
        rejection(&client, PODS, missing).await,
        "pods \"q\" is forbidden: pod rejected: RuntimeClass \"none\" not found"
    );
    let costly = with_spec("q", json!({"overhead": {"cpu": "1"}}));
    assert_eq!(
        rejection(&client, PODS, costly).await,
        "pods \"q\" is forbidden: pod rejected: Pod Overhead set without corresponding \
         RuntimeClass defined Overhead"
    );
}

#[tokio::test]
async fn a_claim_can_be_expanded_if_its_class_allows_it() {
    let client = with(&[]).client();
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    for (name, expandable) in [("fixed", false), ("elastic", true)] {
        let class = json!({"metadata": {"name": name}, "provisioner": "example.com/d",
            "allowVolumeExpansion": expandable});
        client.create(classes, class).await.unwrap();
        let claim = json!({"metadata": {"name": name}, "spec": {"storageClassName": name,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
        let created = client.create(CLAIMS, claim).await.unwrap();
        let mut bound = Value::clone(&created);
        bound["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
        client
            .update_status(&format!("{CLAIMS}/{name}"), bound)
            .await
            .unwrap();
    }
    let grow =
        || Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
    client
        .patch(&format!("{CLAIMS}/elastic"), grow())
        .await
        .unwrap();
    let refused = client
        .patch(&format!("{CLAIMS}/fixed"), grow())
        .await
        .unwrap_err();
    assert_eq!(
        refused.message,
        "persistentvolumeclaims \"fixed\" is forbidden: only dynamically provisioned pvc can be \
         resized and the storageclass that provisions the pvc must support resize"
    );
}

#[tokio::test]
async fn deletion_of_a_claim_waits_for_the_pods_that_use_it() {
    let server = with(&[]);
    let client = server.client();
    let claim = json!({"metadata": {"name": "v"}, "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    client.create(CLAIMS, claim).await.unwrap();
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]);
    let user = with_spec("p", json!({"volumes": volumes, "nodeName": "n"}));
    client.create(PODS, user).await.unwrap();
    let at = format!("{CLAIMS}/v");
    client.delete(&at, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    client.get(&at).await.unwrap();
    let now = Delete {
        grace_seconds: Some(0),
        ..Delete::default()
    };
    client.delete(&format!("{PODS}/p"), &now).await.unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&at).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_new_node_is_tainted_until_it_is_ready() {
    let server = with(&[]);
    let client = server.client();
    let node = json!({"metadata": {"name": "n"}});
    let created = client.create(NODES, node).await.unwrap();
    let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    assert_eq!(created["spec"]["taints"], taint);
    let mut ready = Value::clone(&created);
    ready["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    client
        .update_status(&format!("{NODES}/n"), ready)
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    let now = client.get(&format!("{NODES}/n")).await.unwrap();
    assert_eq!(now["spec"].get("taints"), None);
}

#[tokio::test]
async fn pods_get_the_node_selector_of_their_namespace() {
    let server = configured(
        "PodNodeSelector",
        json!({"podNodeSelectorPluginConfig": {
            "clusterDefaultNodeSelector": "pool=all", "default": "pool=a,pool2=b"}}),
    );
    let client = server.client();
    annotate(
        &client,
        json!({"scheduler.alpha.kubernetes.io/node-selector": "pool=a"}),
    )
    .await;
    let created = client.create(PODS, plain("a")).await.unwrap();
    assert_eq!(created["spec"]["nodeSelector"], json!({"pool": "a"}));
    let other = with_spec("b", json!({"nodeSelector": {"pool": "b"}}));
    assert_eq!(
        rejection(&client, PODS, other).await,
        "pods \"b\" is forbidden: pod node label selector conflicts with its namespace node \
         label selector"
    );
    let further = with_spec("b", json!({"nodeSelector": {"disk": "ssd"}}));
    assert_eq!(
        rejection(&client, PODS, further).await,
        "pods \"b\" is forbidden: pod node label selector labels conflict with its namespace \
         whitelist"
    );
}

#[tokio::test]
async fn pods_get_the_tolerations_of_their_namespace() {
    let client = with(&["PodTolerationRestriction"]).client();
    let toleration = json!([{"key": "a", "operator": "Exists"}]);
    annotate(
        &client,
        json!({
            "scheduler.alpha.kubernetes.io/defaultTolerations": toleration.to_string(),
            "scheduler.alpha.kubernetes.io/tolerationsWhitelist": json!([
                {"key": "a", "operator": "Exists"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists"},
            ]).to_string(),
        }),
    )
    .await;
    let created = client.create(PODS, plain("a")).await.unwrap();
    let tolerations = created["spec"]["tolerations"].as_array().unwrap();
    assert!(tolerations.contains(&toleration[0]), "{tolerations:?}");
    let other = with_spec(
        "b",
        json!({"tolerations": [{"key": "b", "operator": "Exists"}]}),
    );
    let refused = refused(&client, PODS, other).await;
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            500,
            "pod tolerations (possibly merged with namespace default tolerations) conflict with \
             its namespace whitelist"
        )
    );
}

#[tokio::test]
async fn a_pod_with_an_extended_resource_tolerates_its_taint() {
    let client = with(&["ExtendedResourceToleration"]).client();
    let gpu =
        json!({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}});
    let created = client
        .create(PODS, pod_with_resources("a", gpu))
        .await
        .unwrap();
    let expected =
        json!({"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"});
    let tolerations = created["spec"]["tolerations"].as_array().unwrap();
    assert!(tolerations.contains(&expected), "{tolerations:?}");
}

#[tokio::test]
async fn events_above_the_rate_limit_are_rejected() {
    let configuration = |kind: &str| {
        json!({"kind": "Configuration",
            "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1",
            "limits": [{"type": kind, "qps": 1, "burst": 1}]})
    };
    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str, about: &str| {
        json!({"metadata": {"name": name}, "reason": "R", "message": "m", "type": "Normal",
            "involvedObject": {"kind": "Pod", "name": about, "namespace": "default"},
            "source": {"component": "c"}})
    };
    for (kind, key) in [
        ("Server", ""),
        ("Namespace", "default"),
        ("User", "kubernetes-admin"),
        ("SourceAndObject", "cPoddefaultp"),
    ] {
        let client = configured("EventRateLimit", configuration(kind)).client();
        client.create(events, event("a", "p")).await.unwrap();
        let refused = refused(&client, events, event("b", "p")).await;
        assert_eq!(refused.code, 429);
        let expected = format!("limit reached on type {kind} for key {key}");
        assert_eq!(refused.message, expected);
        let other = client.create(events, event("c", "q")).await;
        assert_eq!(other.is_ok(), kind == "SourceAndObject", "{kind}");
    }
}

#[tokio::test]
async fn new_external_ips_of_services_are_rejected() {
    let client = with(&["DenyServiceExternalIPs"]).client();
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}],
        "externalIPs": ["192.0.2.1"]}});
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(
        rejection(&client, services, service).await,
        "services \"s\" is forbidden: Use of external IPs is denied by admission control"
    );
}

#[tokio::test]
async fn setting_owners_requires_permission_to_delete_the_object() {
    let server = with(&["OwnerReferencesPermissionEnforcement"]);
    let admin = server.client();
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"],
        "verbs": ["create", "get", "update", "patch"]}]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    admin.create(&format!("{roles}/roles"), role).await.unwrap();
    let binding = json!({"metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "ann",
            "apiGroup": "rbac.authorization.k8s.io"}]});
    admin
        .create(&format!("{roles}/rolebindings"), binding)
        .await
        .unwrap();
    let ann = server.client_as(User::new("ann", &["system:authenticated"]));
    let owned = |block: bool| {
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u",
            "blockOwnerDeletion": block}])
    };
    let mut blocking = map("x");
    blocking["metadata"]["ownerReferences"] = owned(true);
    assert_eq!(
        rejection(&ann, MAPS, blocking).await,
        "configmaps \"x\" is forbidden: cannot set blockOwnerDeletion if an ownerReference \
         refers to a resource you can't set finalizers on: , <nil>"
    );
    ann.create(MAPS, map("x")).await.unwrap();
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owned(false)}}));
    let refused = ann.patch(&format!("{MAPS}/x"), patch).await.unwrap_err();
    assert_eq!(
        refused.message,
        "configmaps \"x\" is forbidden: cannot set an ownerRef on a resource you can't delete: \
         , <nil>"
    );
}

/// Changes the `default` service account.
async fn change_account(client: &Client, change: Value) {
    let path = format!("{DEFAULT}/serviceaccounts/default");
    client.patch(&path, Patch::Merge(change)).await.unwrap();
}

#[tokio::test]
async fn a_pod_references_only_the_secrets_of_a_service_account_that_enforces_them() {
    let client = with(&[]).client();
    let with_env = |list: &str, field: &str, value: Value| {
        let mut pod = plain("p");
        pod["spec"][list] = json!([{"name": "c", "image": "i", field: value}]);
        pod
    };
    let volume = |name: &str| {
        with_spec(
            "p",
            json!({"volumes": [{"name": "v", "secret": {"secretName": name}}]}),
        )
    };
    let key = json!([{"name": "E",
        "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]);
    let from = json!([{"secretRef": {"name": "other"}}]);
    let end = "is not allowed because service account default does not reference that";
    let rows = [
        (
            volume("other"),
            format!("volume with secret.secretName=\"other\" {end} secret"),
        ),
        (
            with_env("initContainers", "env", key.clone()),
            format!(
                "init container c with envVar E referencing secret.secretName=\"other\" {end} \
                 secret"
            ),
        ),
        (
            with_env("containers", "env", key),
            format!(
                "container c with envVar E referencing secret.secretName=\"other\" {end} secret"
            ),
        ),
        (
            with_env("containers", "envFrom", from),
            format!(
                "container c with envFrom referencing secret.secretName=\"other\" {end} secret"
            ),
        ),
        (
            with_spec(
                "p",
                json!({"imagePullSecrets": [{"name": "pull"}, {"name": "other"}]}),
            ),
            format!("imagePullSecrets[1].name=\"other\" {end} imagePullSecret"),
        ),
    ];
    client.create(PODS, volume("other")).await.unwrap();
    client
        .delete(&format!("{PODS}/p"), &Delete::default())
        .await
        .unwrap();
    let annotations = json!({"kubernetes.io/enforce-mountable-secrets": "true"});
    let enforced = json!({"metadata": {"annotations": annotations},
        "secrets": [{"name": "own"}], "imagePullSecrets": [{"name": "pull"}]});
    change_account(&client, enforced).await;
    for (pod, why) in rows {
        let refused = refused(&client, PODS, pod).await;
        let expected = format!("pods \"p\" is forbidden: {why}");
        assert_eq!((refused.code, refused.message), (403, expected));
    }
    let created = client.create(PODS, volume("own")).await.unwrap();
    assert_eq!(
        created["spec"]["imagePullSecrets"],
        json!([{"name": "pull"}])
    );
}

#[tokio::test]
async fn a_kubelet_can_change_only_its_own_node_and_labels() {
    let server = with(&["NodeRestriction"]);
    let kubelet = User::new("system:node:a", &["system:nodes", "system:masters"]);
    let kubelet = server.client_as(kubelet);
    let node =
        |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    assert_eq!(
        rejection(&kubelet, NODES, node("b", json!({}))).await,
        "nodes \"b\" is forbidden: node \"a\" is not allowed to modify node \"b\""
    );
    let restricted =
        json!({"node-restriction.kubernetes.io/x": "y", "kubernetes.io/os": "linux"});
    assert_eq!(
        rejection(&kubelet, NODES, node("a", restricted)).await,
        "nodes \"a\" is forbidden: node \"a\" is not allowed to set the following labels: \
         node-restriction.kubernetes.io/x"
    );
    kubelet
        .create(NODES, node("a", json!({"kubernetes.io/os": "linux"})))
        .await
        .unwrap();
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let path = format!("{NODES}/a");
    let refused = kubelet.patch(&path, Patch::Merge(taint)).await.unwrap_err();
    assert_eq!(
        refused.message,
        "nodes \"a\" is forbidden: node \"a\" is not allowed to modify taints"
    );
    let admin = server.client();
    admin.create(PODS, pod("theirs", "b", "x")).await.unwrap();
    let refused = kubelet.evict("default", "theirs").await.unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"theirs\" is forbidden: node a can only evict pods with spec.nodeName set to \
         itself"
    );
    assert_eq!(
        rejection(&kubelet, PODS, pod("mine", "a", "x")).await,
        "pods \"mine\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" \
         annotation, node \"a\" can only create mirror pods"
    );
    let lease = json!({"metadata": {"name": "a"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    assert_eq!(
        rejection(&kubelet, leases, lease.clone()).await,
        "leases.coordination.k8s.io \"a\" is forbidden: can only access leases in the \
         \"kube-node-lease\" system namespace"
    );
    let own = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    kubelet.create(own, lease).await.unwrap();
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (code, _) = send_json(&server, "POST", path, json!({"spec": {}})).await;
    assert_eq!(code, 201, "an administrator is not a kubelet");
}

/// The recommended list of the admission-controllers document, without removed plugins.
#[tokio::test]
async fn the_server_starts_with_the_recommended_plugins() {
    let names = "NamespaceLifecycle,LimitRanger,ServiceAccount,DefaultStorageClass,\
         DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,Priority,\
         ResourceQuota";
    let names: Vec<&str> = names.split(',').collect();
    with(&names)
        .client()
        .create(PODS, plain("a"))
        .await
        .unwrap();
}

#[test]
fn withdrawn_plugins_are_an_error_with_their_replacement() {
    let start_error = |name: &str| {
        let refused = Server::new(Options {
            enable_plugins: vec![name.to_owned()],
            removed_plugins: true,
            ..options()
        });
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        start_error("Initializers"),
        "admission plugin 'Initializers' was withdrawn in Kubernetes 1.14; use \
         MutatingAdmissionWebhook"
    );
    assert_eq!(
        start_error("InitialResources"),
        "admission plugin 'InitialResources' was withdrawn in Kubernetes 1.10; use LimitRanger \
         or the Vertical Pod Autoscaler"
    );
}

#[test]
fn missing_and_unused_plugin_configurations_are_errors() {
    let bare = Server::new(Options {
        enable_plugins: vec!["EventRateLimit".to_owned()],
        ..options()
    });
    assert_eq!(
        bare.unwrap_err().to_string(),
        "configuration of admission plugin 'EventRateLimit': required, because the plugin has \
         no effect without it"
    );
    let off = Server::new(Options {
        plugin_configurations: [("PodNodeSelector".to_owned(), json!({}))].into(),
        ..options()
    });
    assert_eq!(
        off.unwrap_err().to_string(),
        "there is a configuration of admission plugin 'PodNodeSelector', which is not enabled"
    );
}

#[tokio::test]
async fn removed_plugins_work_if_they_are_allowed() {
    let options = |removed_plugins: bool| Options {
        enable_plugins: vec!["SecurityContextDeny".to_owned()],
        removed_plugins,
        ..options()
    };
    assert_eq!(
        Server::new(options(false)).unwrap_err().to_string(),
        "admission plugin 'SecurityContextDeny' was removed in Kubernetes 1.30; use PodSecurity, \
         or set --removed-admission-plugins"
    );
    let client = Server::new(options(true)).unwrap().client();
    let root = with_spec("a", json!({"securityContext": {"runAsUser": 0}}));
    assert_eq!(
        rejection(&client, PODS, root).await,
        "pods \"a\" is forbidden: pod.Spec.SecurityContext.RunAsUser is forbidden"
    );
}

#[tokio::test]
async fn a_bound_pod_gets_the_zone_and_region_of_its_node() {
    let client = Server::new(options()).unwrap().client();
    let labels = json!({"topology.kubernetes.io/zone": "north", "other": "kept"});
    let node = json!({"metadata": {"name": "host", "labels": labels}});
    client.create(NODES, node).await.unwrap();
    let mut own = plain("x");
    own["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "south", "a": "b"});
    client.create(PODS, own).await.unwrap();
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": "host"});
    let binding = json!({"metadata": {"name": "x"}, "target": target});
    client
        .create(&format!("{PODS}/x/binding"), binding)
        .await
        .unwrap();
    let bound = client.get(&format!("{PODS}/x")).await.unwrap();
    assert_eq!(
        bound["metadata"]["labels"],
        json!({"topology.kubernetes.io/zone": "north", "a": "b"})
    );
    let mut elsewhere = plain("y");
    elsewhere["spec"]["nodeName"] = "missing".into();
    let created = client.create(PODS, elsewhere).await.unwrap();
    assert!(created["metadata"].get("labels").is_none());
}

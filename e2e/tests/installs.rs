//! Real Helm and kubectl install, upgrade and uninstall the manifests in `deploy/`. No machine is
//! removed by accident.

use std::collections::{BTreeMap, BTreeSet};

use fivespot_install::controller::Settings;
use fivespot_install::file;
use fivespot_install::pod::NodeFeatures;
use fivespot_install::role::Rights;
use fivespot_testkit::{CLOSING, instant, machine_path, scheduled_machine};
use serde_json::{Value, json};

use crate::kubectl::session::Session;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(helm_installs_upgrades_and_uninstalls_and_every_machine_stays)
        .with_programs(&["helm"])
        .disruptive(),
    promise!(helm_upgrades_from_the_chart_before)
        .with_programs(&["helm"])
        .on_embedded_alone("installs two versions under names that other promises use"),
    promise!(helm_renders_what_kubectl_applies)
        .with_programs(&["helm"])
        .on_embedded_alone("renders without a cluster"),
    promise!(network_values_apply_to_the_operator_and_to_the_webhook)
        .with_programs(&["helm"])
        .on_embedded_alone("renders without a cluster"),
    promise!(audit_applies_to_the_webhook)
        .with_programs(&["helm"])
        .on_embedded_alone("renders without a cluster"),
    promise!(two_releases_share_no_object)
        .with_programs(&["helm"])
        .on_embedded_alone("renders without a cluster"),
    promise!(helm_refuses_what_could_not_run)
        .with_programs(&["helm"])
        .on_embedded_alone("renders without a cluster"),
    promise!(every_overlay_of_kustomize_applies)
        .with_programs(&["kubectl"])
        .on_embedded_alone("installs under names that other promises use"),
];

const ADMISSION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const CHART: &str = "deploy/chart";
const OPENED: &str = "2026-03-06T22:50:00Z";
const IMAGES: &str = "image.repository=registry.example/5spot-controller,\
                      webhook.image.repository=registry.example/5spot-webhook,\
                      dashboard.image.repository=registry.example/5spot";

/// All settings of the values at once.
fn every_value() -> Value {
    json!({
        "image": {"repository": "registry.example/5spot-controller", "digest": format!("sha256:{:064}", 7)},
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "podLabels": {"team": "platform"},
        "podAnnotations": {"note": "pod"},
        "serviceAccount": {"annotations": {"note": "account"}},
        "extraArgs": ["--max-starts-per-minute=5"],
        "extraEnv": [{"name": "TZDIR", "value": "/zones"}],
        "log": {"level": "debug", "format": "text"},
        "namespaces": ["default"],
        "providers": ["k0smotron", "metal3"],
        "kubeconfigs": {"clusters": [{"namespace": "default", "name": "prod"}]},
        "networkPolicy": {"egressPorts": [443, 16443], "metricsNamespace": "observability"},
        "userRoles": {"aggregate": false},
        "commonLabels": {"cost-centre": "42"},
        "commonAnnotations": {"owner": "platform"},
        "fullnameOverride": "desks",
        "appArmor": true,
        "zoneinfo": {"volume": {"configMap": {"name": "zones"}}},
    })
}

/// Writes values into the session's folder, and returns the path.
fn values(session: &Session, values: &Value) -> String {
    let path = session.folder().join("values.json");
    std::fs::write(&path, values.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn helm_installs_upgrades_and_uninstalls_and_every_machine_stays() {
    let session = Session::start(OPENED).await;
    let cluster = &session.cluster;
    let home = cluster.namespace("default");
    let helm = async |words: &[&str]| {
        let words = [words, &["-n", home.as_str()]].concat();
        session.run("helm", &words).await
    };
    let values = values(&session, &every_value());
    // The CRD and the policy exist already, as after `kubectl apply`.
    let words = ["install", "desks", CHART, "-f", &values, "--take-ownership"];
    let installed = helm(&words).await;
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    let check =
        format!("5spot check --operator-namespace {home} --service-account desks\n");
    assert!(installed.contains(&check), "{installed}");
    let path = "/apis/apps/v1/namespaces/default/deployments/desks";
    let deployment = cluster.get(path).await.unwrap();
    let labels = &deployment["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/managed-by"], "Helm");
    assert_eq!(labels["cost-centre"], "42");
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"]["team"], "platform");
    assert_eq!(
        pod["spec"]["nodeSelector"],
        json!({"kubernetes.io/os": "linux", "zone": "a"})
    );
    assert_eq!(pod["spec"]["priorityClassName"], "system-cluster-critical");
    let container = &pod["spec"]["containers"][0];
    let digest = format!("registry.example/5spot-controller@sha256:{:064}", 7);
    assert_eq!(container["image"], digest.as_str());
    assert_eq!(
        container["args"],
        json!([
            "--enable-leader-election",
            "--log-level=debug",
            "--log-format=text",
            "--lease-duration-secs=15",
            "--lease-renew-deadline-secs=10",
            "--lease-retry-period-secs=2",
            "--namespaces=default",
            "--zoneinfo=/usr/share/zoneinfo",
            "--max-starts-per-minute=5",
        ])
    );

    let worker = machine_path("worker");
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    // The drain lasts until its deadline.
    cluster.hold_last_pod().await;
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster
        .wait_for_phase("worker", "ShuttingDown", limit)
        .await;
    let words = [
        "upgrade",
        "desks",
        CHART,
        "-f",
        &values,
        "--set",
        "replicas=1",
    ];
    let upgraded = helm(&words).await;
    assert!(upgraded.contains("REVISION: 2"), "{upgraded}");
    let deployment = cluster.get(path).await.unwrap();
    assert_eq!(deployment["spec"]["replicas"], 1);
    cluster.wait_for_phase("worker", "Inactive", limit).await;

    let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-20"]}}});
    cluster.patch(&worker, &longer).await;
    let limit = instant("2026-03-06T23:15:00Z");
    let before = cluster.wait_for_phase("worker", "Active", limit).await;
    let uninstalled = helm(&["uninstall", "desks"]).await;
    assert!(uninstalled.contains("uninstalled"), "{uninstalled}");
    assert!(
        uninstalled.contains("[CustomResourceDefinition]"),
        "{uninstalled}"
    );
    assert_eq!(cluster.get(path).await, None);
    let after = cluster.get(&worker).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"].get("deletionTimestamp"), None);
    for object in cluster.owned_paths("worker") {
        assert!(cluster.get(&object).await.is_some(), "{object}");
    }
}

/// The chart before its values followed the usual conventions: an image in one string, the
/// NetworkPolicy as a flag, one template for the CRD.
const BEFORE: &str = "e2e/tests/installs/5spot-0.1.0-first.tgz";

async fn helm_upgrades_from_the_chart_before() {
    let session = Session::start(OPENED).await;
    let cluster = &session.cluster;
    let helm = async |words: &[&str]| {
        let words = [words, &["-n", "5spot-system", "--create-namespace"]].concat();
        session.run("helm", &words).await
    };
    let installed =
        helm(&["upgrade", "--install", "5spot", BEFORE, "--take-ownership"]).await;
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    // The chart's CRDs are older than this operator, which creates nothing with them.
    cluster.apply(&scheduled_machine("worker")).await;
    let limit = instant("2026-03-06T22:55:00Z");
    let is_outdated = |worker: &Value| {
        let conditions = worker["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["reason"] == "CustomResourceDefinitionOutdated")
    };
    cluster
        .wait_for(&machine_path("worker"), limit, is_outdated)
        .await;
    // Other tests on this cluster have created roles with the same names.
    let words = [
        "upgrade",
        "--install",
        "5spot",
        CHART,
        "--set",
        IMAGES,
        "--take-ownership",
    ];
    let upgraded = helm(&words).await;
    assert!(upgraded.contains("REVISION: 2"), "{upgraded}");
    let deployment = "/apis/apps/v1/namespaces/5spot-system/deployments/5spot-controller";
    let deployment = cluster.get(deployment).await.unwrap();
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let expected = format!(
        "registry.example/5spot-controller:{}",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(image, expected.as_str());
    cluster.bring_up(&scheduled_machine("worker")).await;
}

/// Documents by kind, namespace and name, without what the chart and the values add.
fn comparable(text: &str) -> BTreeMap<String, Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let of_chart = ["instance", "managed-by", "part-of", "version"]
        .map(|it| format!("app.kubernetes.io/{it}"));
    let mut all = BTreeMap::new();
    for mut document in documents.into_iter().filter(|it| !it.is_null()) {
        let metadata = &mut document["metadata"];
        let name = format!("{} {}", metadata["namespace"], metadata["name"]);
        let metadata = metadata.as_object_mut().unwrap();
        metadata.remove("annotations");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.retain(|key, _| key != "helm.sh/chart" && !of_chart.contains(key));
            if labels.is_empty() {
                metadata.remove("labels");
            }
        }
        let path = "/spec/template/spec/containers/0";
        if let Some(container) = document.pointer_mut(path) {
            container["image"] = Value::Null;
            container["args"] = Value::Null;
        }
        all.insert(format!("{} {name}", document["kind"]), document);
    }
    all
}

async fn helm_renders_what_kubectl_applies() {
    let zones = json!({"persistentVolumeClaim": {"claimName": "zones"}});
    let optional = Settings {
        node_features: NodeFeatures {
            app_armor: true,
            user_namespaces: true,
        },
        zoneinfo: zones.as_object().cloned(),
        ..Settings::default()
    };
    let values = "appArmor=true,userNamespaces=true,\
                  zoneinfo.volume.persistentVolumeClaim.claimName=zones";
    renders_the_same("", &Settings::default()).await;
    renders_the_same(values, &optional).await;
    let kinds = [
        "deployments.apps/scale",
        "nodepools.karpenter.sh",
        "resourcequotas/template",
    ];
    let with_targets = Settings {
        rights: Rights {
            capacity_targets: kinds.iter().map(|it| it.parse().unwrap()).collect(),
            ..Rights::default()
        },
        ..Settings::default()
    };
    let in_values = [
        "[0].kind=ResourceQuota,[0].resource=resourcequotas,[0].access=template",
        "[1].kind=Deployment,[1].group=apps,[1].resource=deployments,[1].access=scale",
        "[2].kind=NodePool,[2].group=karpenter.sh,[2].resource=nodepools,[2].clusterScoped=true",
    ];
    let in_values = in_values.join(",").replace('[', "capacity.targets[");
    renders_the_same(&in_values, &with_targets).await;
    let of_operator = |it: &Value| it["kind"] == "Deployment";
    let rendered = rendered(values, "5spot-system").await;
    let operator = rendered.into_iter().find(of_operator).unwrap();
    let words = &operator["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(
        words
            .to_string()
            .contains("\"--zoneinfo=/usr/share/zoneinfo\"")
    );
}

/// Compares the chart with these values with the manifests for the same settings.
async fn renders_the_same(values: &str, settings: &Settings) {
    let session = Session::start(OPENED).await;
    let set = format!("{IMAGES},{values}");
    let rendered = session
        .run(
            "helm",
            &[
                "template",
                "5spot",
                CHART,
                "-n",
                "5spot-system",
                "--set",
                set.trim_end_matches(','),
            ],
        )
        .await;
    let install = file::install(settings).unwrap();
    let (chart, mut applied) = (comparable(&rendered), comparable(&install.text));
    // Helm creates the namespace itself, and the chart has no NetworkPolicy for other pods.
    applied.retain(|name, _| {
        !name.starts_with("\"Namespace\"") && !name.contains("deny-all")
    });
    let names =
        |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&chart), names(&applied));
    for (name, document) in &chart {
        assert_eq!(Some(document), applied.get(name), "{name}");
    }
}

/// The documents that Helm renders with these settings.
async fn rendered(settings: &str, namespace: &str) -> Vec<Value> {
    let session = Session::start(OPENED).await;
    let set = format!("{IMAGES},{settings}");
    let words = ["template", "spot", CHART, "-n", namespace, "--set", &set];
    let text = session.run("helm", &words).await;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    documents.into_iter().filter(|it| !it.is_null()).collect()
}

async fn network_values_apply_to_the_operator_and_to_the_webhook() {
    let policies = async |settings: &str| {
        let settings = format!("webhook.enabled=true{settings}");
        let mut all = rendered(&settings, "5spot-system").await;
        all.retain(|it| it["kind"] == "NetworkPolicy");
        all
    };
    let default = policies("").await;
    assert_eq!(default.len(), 2);
    for (setting, old, new) in [
        ("egressPorts={16443}", ":6443", ":16443"),
        (
            "metricsNamespace=observability",
            "\"monitoring\"",
            "\"observability\"",
        ),
    ] {
        let changed = policies(&format!(",networkPolicy.{setting}")).await;
        assert_eq!(changed.len(), 2, "{setting}");
        for (before, after) in default.iter().zip(&changed) {
            let (before, after) = (before.to_string(), after.to_string());
            assert!(before.contains(old) && !before.contains(new), "{before}");
            assert!(after.contains(new) && !after.contains(old), "{after}");
        }
    }
    let disabled = policies(",networkPolicy.enabled=false").await;
    assert_eq!(disabled, Vec::<Value>::new());
}

async fn audit_applies_to_the_webhook() {
    let settings = "webhook.enabled=true,admission=Audit";
    let documents = rendered(settings, "5spot-system").await;
    let webhook = documents.iter().find(|it| {
        it["kind"] == "Deployment" && it["metadata"]["name"] == "5spot-webhook"
    });
    let args = &webhook.unwrap()["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(*args, json!(["--validation-actions=Audit", "--classes"]));
}

async fn two_releases_share_no_object() {
    let identities = async |settings: &str, namespace: &str| {
        let documents = rendered(settings, namespace).await;
        let all: BTreeSet<String> = documents
            .iter()
            .map(|it| {
                let metadata = &it["metadata"];
                let (kind, name) = (&it["kind"], &metadata["name"]);
                format!("{kind} {} {name}", metadata["namespace"])
            })
            .collect();
        assert!(all.len() > 10, "{all:?}");
        all
    };
    let first = identities("namespaces={team-a}", "5spot-system").await;
    let second = "namespaces={team-b},fullnameOverride=second,crds.install=false,\
                  admission=None,userRoles.create=false";
    let second = identities(second, "team-b").await;
    let shared: Vec<&String> = first.intersection(&second).collect();
    assert_eq!(shared, Vec::<&String>::new());
}

async fn helm_refuses_what_could_not_run() {
    let session = Session::start(OPENED).await;
    let helm = async |words: &[&str]| session.run("helm", words).await;
    let lint = helm(&["lint", CHART, "--strict", "--set", IMAGES]).await;
    assert!(lint.contains("0 chart(s) failed"), "{lint}");
    let unnamed = helm(&["template", CHART]).await;
    assert!(unnamed.contains("image.repository is not set"), "{unnamed}");
    for (setting, said) in [
        (
            "image.repository=finos/5spot-controller",
            "image.repository \"finos/5spot-controller\" has no registry; for Docker Hub, write \
             docker.io/finos/5spot-controller",
        ),
        (
            "image.repository=registry.example/5spot",
            "image.repository \"registry.example/5spot\" is the image of the command line; give \
             that of 5spot-controller, such as registry.example/5spot-controller",
        ),
        (
            "webhook.enabled=true,webhook.image.repository=",
            "webhook.image.repository is not set",
        ),
        ("image.repository=http://registry", "image.repository"),
        ("admission=deny", "admission"),
        ("admision=Audit", "admision"),
        ("log.level=verbose", "log.level"),
        ("nodeAccess=managment", "nodeAccess"),
        ("networkPolicy=false", "networkPolicy"),
        ("replicas=two", "replicas"),
        ("reclaimByOverride=1s", "reclaimByOverride"),
        ("reclaimByOverride=400h", "reclaimByOverride"),
    ] {
        let refused = helm(&["template", CHART, "--set", IMAGES, "--set", setting]).await;
        let name = said.replace('.', "/");
        assert!(
            refused.contains("exit status: 1")
                && (refused.contains(&name) || refused.contains(said)),
            "{setting}: {refused}"
        );
    }
    let whole = [
        "webhook.enabled=true",
        "webhook.certManager=true",
        "agent.enabled=true",
        "agent.image.repository=registry.example/agent",
        "agent.detection=scan",
        "nodeAccess=management",
        "crds.keep=false",
        "kubeconfigs.clusterWide=true",
    ]
    .join(",");
    let rendered =
        helm(&["template", "5spot", CHART, "--set", IMAGES, "--set", &whole]).await;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&rendered).unwrap();
    for kind in ["DaemonSet", "ValidatingWebhookConfiguration", "Certificate"] {
        assert!(documents.iter().any(|it| it["kind"] == kind), "{kind}");
    }
    assert!(!rendered.contains("resource-policy: keep\n  name: scheduledmachines"));
}

async fn every_overlay_of_kustomize_applies() {
    let session = Session::start(OPENED).await;
    let kubectl = async |words: &str| session.kubectl(words).await;
    let base =
        kubectl("apply --server-side --force-conflicts -k deploy/kustomize/base").await;
    assert!(!base.contains("rror"), "{base}");
    let path = "/apis/apps/v1/namespaces/5spot-system/deployments/5spot-controller";
    assert!(session.cluster.get(path).await.is_some());
    for (overlay, object, action) in [
        (
            "audit",
            "validatingadmissionpolicybinding.admissionregistration.k8s.io/scheduledmachine-validation-binding",
            "- Audit",
        ),
        (
            "cluster-wide-kubeconfigs",
            "clusterrole.rbac.authorization.k8s.io/5spot-controller-kubeconfigs",
            "- secrets",
        ),
        (
            "webhook",
            "deployment.apps/5spot-webhook",
            "image: 5spot-webhook:",
        ),
    ] {
        let folder = format!("deploy/kustomize/overlays/{overlay}");
        let words = format!("apply --server-side --force-conflicts -k {folder}");
        let applied = kubectl(&words).await;
        assert!(
            !applied.contains("rror") && applied.contains(object),
            "{applied}"
        );
        let stored = kubectl(&format!("get {object} -n 5spot-system -o yaml")).await;
        assert!(stored.contains(action), "{stored}");
        // No overlay lifts a limit of the operator.
        for limited in ["scheduledmachines", "leases"] {
            let path = format!("{ADMISSION}/5spot-controller-{limited}");
            let binding = session.cluster.get(&path).await.unwrap();
            assert_eq!(
                binding["spec"]["validationActions"],
                json!(["Deny"]),
                "{overlay}"
            );
        }
    }
}

//! Values of other projects' objects follow a schedule, with the CRDs that those projects publish.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fivespot_testkit::{BEFORE_CLOSING, CLOSING, Cluster, instant, path_of};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::folder::Folder;
use crate::kubectl::session::Session;
use crate::program;
use crate::promise::{Promise, promise};
use crate::scales_on_schedule::{capacity, wait_for_phase};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_node_pool_of_karpenter_starts_machines_at_weekends_alone)
        .with_programs(CRDS)
        .on_embedded_alone(OWN_KINDS),
    promise!(a_cluster_queue_of_kueue_lends_at_night)
        .with_programs(CRDS)
        .on_embedded_alone(OWN_KINDS),
    promise!(a_scaled_object_of_keda_has_other_bounds)
        .with_programs(CRDS)
        .on_embedded_alone(OWN_KINDS),
    promise!(workers_of_cluster_api_follow_by_their_scale_and_by_a_topology)
        .with_programs(CRDS)
        .on_embedded_alone(OWN_KINDS),
    promise!(kueue_admits_a_job_when_its_quota_opens)
        .with_variable(KUEUE)
        .on_embedded_alone(OWN_KINDS),
    promise!(dev_prints_each_change_of_an_example_at_its_instant)
        .with_programs(&["5spot", "target-crds"])
        .on_embedded_alone("starts a server of its own"),
];

const CRDS: &[&str] = &["target-crds"];
/// The folder of Kueue's controller and its CRDs, which `cargo xtask tools kueue` prints.
const KUEUE: &str = "E2E_KUEUE";
/// Where Kueue's controller is installed, and the Secret of its certificate.
const KUEUE_NAMESPACE: &str = "kueue-system";
const KUEUE_SECRET: &str =
    "/api/v1/namespaces/kueue-system/secrets/kueue-webhook-server-cert";
const OWN_KINDS: &str = "installs the CRDs of other projects";

/// The CRD with this name.
fn definition(name: &str) -> Value {
    let text = std::fs::read_to_string(program::path("target-crds").unwrap()).unwrap();
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let mut found = all.into_iter().filter(|it| it["metadata"]["name"] == name);
    found.next().unwrap()
}

/// Installs a CRD, and waits until its kind is served.
async fn install(cluster: &Cluster, name: &str) {
    establish(cluster, &definition(name)).await;
}

/// Applies a CRD, and waits until its kind is served.
async fn establish(cluster: &Cluster, definition: &Value) {
    cluster.apply(definition).await;
    let is_served = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|it| it["type"] == "Established" && it["status"] == "True")
        })
    };
    cluster.wait_briefly(&path_of(definition), is_served).await;
}

/// The path of an example.
fn path_of_example(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    format!("{root}/../examples/capacity/{name}.yaml")
}

/// The documents of an example.
fn documents(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path_of_example(name)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// The ScheduledCapacity of an example.
fn example(name: &str) -> Value {
    let mut object = documents(name).pop().unwrap();
    object["metadata"]["namespace"] = json!("default");
    object
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The value of the field at each of these instants, once the capacity is in the phase.
async fn plays(
    cluster: &Cluster,
    object: (&Value, &str),
    story: &[(&str, &str, Value)],
    name: &str,
) {
    let (target, pointer) = object;
    for (now, phase, value) in story {
        cluster.advance_to(now).await;
        wait_for_phase(cluster, name, phase).await;
        let found = cluster.get(&path_of(target)).await.unwrap();
        assert_eq!(found.pointer(pointer), Some(value), "{name} at {now}");
    }
}

async fn a_node_pool_of_karpenter_starts_machines_at_weekends_alone() {
    let cluster = Cluster::start(instant("2026-03-05T12:00:00Z")).await;
    let _operator = cluster.operator();
    install(&cluster, "nodepools.karpenter.sh").await;
    let pool = documents("karpenter-weekends").swap_remove(0);
    cluster.create(&pool).await.unwrap();
    let capacity = example("karpenter-weekends");
    cluster.apply(&capacity).await;
    // In Zurich, from Friday at 20:00 to Monday at 08:00.
    let story = [
        ("2026-03-05T12:01:00Z", "Inactive", json!("0")),
        ("2026-03-06T18:59:59Z", "Inactive", json!("0")),
        ("2026-03-06T19:00:00Z", "Active", json!("200")),
        ("2026-03-09T06:59:59Z", "Active", json!("200")),
        ("2026-03-09T07:00:00Z", "Inactive", json!("0")),
    ];
    let field = (&pool, "/spec/limits/cpu");
    plays(&cluster, field, &story, name_of(&capacity)).await;
    let found = cluster.get(&path_of(&pool)).await.unwrap();
    assert_eq!(found["spec"]["limits"]["memory"], "1000Gi");
    assert_eq!(cluster.operator_writes_to("nodepools").len(), 3);
}

async fn a_cluster_queue_of_kueue_lends_at_night() {
    let cluster = Cluster::start(instant("2026-03-05T12:00:00Z")).await;
    let _operator = cluster.operator();
    install(&cluster, "clusterqueues.kueue.x-k8s.io").await;
    let resource = |name: &str| json!({"name": name, "nominalQuota": "1"});
    let flavor = |name: &str| json!({"name": name, "resources": [resource("memory"), resource("cpu")]});
    // The items of the example's lists have other items before them.
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {"name": "batch"},
        "spec": {"resourceGroups": [{
            "coveredResources": ["memory", "cpu"],
            "flavors": [flavor("spot"), flavor("default")],
        }]},
    });
    cluster.create(&queue).await.unwrap();
    let capacity = example("kueue-nights");
    cluster.apply(&capacity).await;
    let story = [
        ("2026-03-05T12:01:00Z", "Inactive", json!("0")),
        ("2026-03-05T19:00:00Z", "Active", json!("400")),
        ("2026-03-06T05:00:00Z", "Inactive", json!("0")),
    ];
    let pointer = "/spec/resourceGroups/0/flavors/1/resources/1/nominalQuota";
    plays(&cluster, (&queue, pointer), &story, name_of(&capacity)).await;
    let found = cluster.get(&path_of(&queue)).await.unwrap();
    let flavors = &found["spec"]["resourceGroups"][0]["flavors"];
    assert_eq!(flavors[0], flavor("spot"));
    assert_eq!(flavors[1]["resources"][0], resource("memory"));
}

async fn a_scaled_object_of_keda_has_other_bounds() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    install(&cluster, "scaledobjects.keda.sh").await;
    let scaler = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"name": "worker"},
            "minReplicaCount": 1, "maxReplicaCount": 5,
            "triggers": [{"type": "cpu", "metadata": {"value": "60"}}],
        },
    });
    cluster.create(&scaler).await.unwrap();
    let target = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "worker",
    });
    let bounds = json!([
        {"field": "minReplicaCount", "activeValue": 4, "inactiveValue": 0},
        {"field": "maxReplicaCount", "activeValue": 20, "inactiveValue": 1},
    ]);
    cluster.apply(&capacity("worker", target, bounds)).await;
    let least = (&scaler, "/spec/minReplicaCount");
    let story = [(BEFORE_CLOSING, "Active", json!(4))];
    plays(&cluster, least, &story, "worker").await;
    let most = (&scaler, "/spec/maxReplicaCount");
    let story = [
        (BEFORE_CLOSING, "Active", json!(20)),
        (CLOSING, "Inactive", json!(1)),
    ];
    plays(&cluster, most, &story, "worker").await;
    assert_eq!(cluster.operator_writes_to("scaledobjects").len(), 2);
}

/// A MachineDeployment, and a Cluster with a topology.
fn workers() -> [Value; 2] {
    let version = "cluster.x-k8s.io/v1beta2";
    let labels = json!({"pool": "workers"});
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "workers"});
    let bootstrap = reference("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate");
    [
        json!({
            "apiVersion": version, "kind": "MachineDeployment",
            "metadata": {"name": "workers", "namespace": "default"},
            "spec": {
                "clusterName": "production",
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "clusterName": "production",
                        "bootstrap": {"configRef": bootstrap},
                        "infrastructureRef": reference(
                            "infrastructure.cluster.x-k8s.io", "DockerMachineTemplate",
                        ),
                    },
                },
            },
        }),
        json!({
            "apiVersion": version, "kind": "Cluster",
            "metadata": {"name": "production", "namespace": "default"},
            "spec": {"topology": {
                "classRef": {"name": "quick-start"},
                "version": "v1.34.0",
                "workers": {"machineDeployments": [
                    {"class": "default", "name": "md-1", "replicas": 7},
                    {"class": "default", "name": "md-0", "replicas": 7},
                ]},
            }},
        }),
    ]
}

async fn workers_of_cluster_api_follow_by_their_scale_and_by_a_topology() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    for kind in ["clusters", "machinedeployments"] {
        install(&cluster, &format!("{kind}.cluster.x-k8s.io")).await;
    }
    let [pool, topology] = workers();
    for object in [&pool, &topology] {
        cluster.create(object).await.unwrap();
    }
    let (by_scale, by_topology) = (example("machine-deployment"), example("topology"));
    for object in [&by_scale, &by_topology] {
        cluster.apply(object).await;
    }
    // In Zurich, where 17:00 is the last hour.
    let of_topology = (
        &topology,
        "/spec/topology/workers/machineDeployments/1/replicas",
    );
    for (now, of_pool, phase, value) in [
        ("2026-03-06T15:01:00Z", "Active", "Active", 3),
        ("2026-03-06T17:00:00Z", "HandingBack", "Inactive", 0),
    ] {
        let story = [(now, of_pool, json!(value))];
        plays(&cluster, (&pool, "/spec/replicas"), &story, "workers").await;
        plays(&cluster, of_topology, &[(now, phase, json!(value))], "md-0").await;
    }
    let found = cluster.get(&path_of(&topology)).await.unwrap();
    let others = &found["spec"]["topology"]["workers"]["machineDeployments"][0];
    assert_eq!(others["replicas"], 7);
    assert_eq!(cluster.operator_writes_to("machinedeployments"), [""; 0]);
}

/// The lines about a ScheduledCapacity that `5spot dev` prints for an example, from an instant until
/// the capacity is in a phase. The CRD of the example's target is applied first.
async fn story(
    (definition_name, example): (&str, &str),
    start: &str,
    until: &str,
) -> Vec<String> {
    let folder = Folder::new("story");
    let crd = folder.path().join("crd.yaml");
    std::fs::write(&crd, definition(definition_name).to_string()).unwrap();
    let mut dev = Command::new(program::path("5spot").unwrap());
    dev.current_dir(folder.path())
        .args(["dev", "--start", start, "--speed", "100000"])
        .arg("--apply")
        .arg(&crd)
        .args(["--apply", &path_of_example(example)])
        .args(["--until", &format!("ScheduledCapacity/{until}")])
        .args(["--timeout", "60s"]);
    let printed = program::output(&mut dev).await;
    let about = printed.lines().filter(|line| line.contains("/scap/"));
    about.map(str::to_owned).collect()
}

async fn dev_prints_each_change_of_an_example_at_its_instant() {
    let weekend = story(
        ("nodepools.karpenter.sh", "karpenter-weekends"),
        "2026-03-07T00:00:00Z",
        "weekend-batch=Inactive",
    );
    let night = story(
        ("clusterqueues.kueue.x-k8s.io", "kueue-nights"),
        "2026-03-05T12:00:00Z",
        "night-batch=Active",
    );
    // Nothing deletes the machines of a MachineDeployment here, so that they are awaited in vain.
    let workers = story(
        ("machinedeployments.cluster.x-k8s.io", "machine-deployment"),
        "2026-03-05T18:00:00Z",
        "workers=HandbackTimedOut",
    );
    let all = [weekend.await, night.await, workers.await].concat();
    insta::assert_snapshot!(all.join("\n"), @r"
    2026-03-07T00:00:00Z  default/scap/weekend-batch  -> Active  NodePool weekend-batch has the active values until 2026-03-09T07:00:00Z
    2026-03-09T07:00:00Z  default/scap/weekend-batch  Active -> Inactive  NodePool weekend-batch has the inactive values until 2026-03-13T19:00:00Z
    2026-03-05T12:00:00Z  default/scap/night-batch  -> Inactive  ClusterQueue batch has the inactive values until 2026-03-05T19:00:00Z
    2026-03-05T19:00:00Z  default/scap/night-batch  Inactive -> Active  ClusterQueue batch has the active values until 2026-03-06T05:00:00Z
    2026-03-05T18:00:00Z  default/scap/workers  -> Inactive  MachineDeployment workers has the inactive values until 2026-03-06T06:45:00Z
    2026-03-06T06:45:00Z  default/scap/workers  Inactive -> Active  MachineDeployment workers has the active values until 2026-03-06T17:00:00Z
    2026-03-06T17:00:00Z  default/scap/workers  Active -> HandingBack  MachineDeployment workers has the inactive values, and is awaited: status.replicas is unknown
    2026-03-06T17:30:00Z  default/scap/workers  HandingBack -> HandbackTimedOut  MachineDeployment workers has the inactive values, and is still in use: status.replicas is unknown; nothing is forced
    ");
}

/// The Secret in which Kueue keeps its certificate.
fn secret_of_kueue() -> Value {
    let metadata = json!({"name": KUEUE_SECRET, "namespace": KUEUE_NAMESPACE});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
}

/// Installs the CRDs of Kueue with a conversion, as Kueue's own manifests do: it waits until it has put
/// its authority into them. No object is converted, because all are written in the stored version.
async fn install_kueue(cluster: &Cluster, folder: &Path) {
    let text = std::fs::read_to_string(folder.join("crds.yaml")).unwrap();
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    for mut definition in all.into_iter().filter(Value::is_object) {
        definition["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:9443/convert"},
            },
        });
        establish(cluster, &definition).await;
    }
    let metadata = json!({"name": KUEUE_NAMESPACE});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    cluster.apply(&namespace).await;
    cluster.apply(&secret_of_kueue()).await;
}

/// Starts Kueue's controller. Its certificate is that of its Secret, which no kubelet mounts here.
async fn start_kueue(session: &Session, program: &Path) -> Child {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
        "health": {"healthProbeBindAddress": "127.0.0.1:0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": session.folder()},
        "leaderElection": {"leaderElect": false},
        "internalCertManagement": {"enable": true},
        "integrations": {"frameworks": ["batch/job"]},
    });
    let file = session.folder().join("kueue.yaml");
    std::fs::write(&file, config.to_string()).unwrap();
    let log = std::fs::File::create(session.folder().join("kueue.log")).unwrap();
    let mut kueue = Command::new(program)
        .arg("--config")
        .arg(file)
        .arg("--feature-gates=VisibilityOnDemand=false")
        .env("KUBECONFIG", session.folder().join("kubeconfig"))
        .stderr(Stdio::from(log))
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let is_issued = |secret: &Value| secret["data"]["tls.crt"].is_string();
    let secret =
        eventually(&mut kueue, session, &path_of(&secret_of_kueue()), is_issued).await;
    for name in ["ca.crt", "tls.crt", "tls.key"] {
        let text = secret["data"][name].as_str().unwrap();
        let bytes: ByteString = serde_json::from_value(json!(text)).unwrap();
        std::fs::write(session.folder().join(name), bytes.0).unwrap();
    }
    kueue
}

/// The object once Kueue has made it so. The clock stands meanwhile.
async fn eventually(
    kueue: &mut Child,
    session: &Session,
    path: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    loop {
        if let Some(object) = session.cluster.get(path).await.filter(|it| is_so(it)) {
            return object;
        }
        if let Some(status) = kueue.try_wait().unwrap() {
            let log = std::fs::read_to_string(session.folder().join("kueue.log"));
            panic!("Kueue has ended, {status}: {}", log.unwrap());
        }
        tokio::task::yield_now().await;
    }
}

async fn kueue_admits_a_job_when_its_quota_opens() {
    let folder = PathBuf::from(std::env::var_os(KUEUE).unwrap());
    let session = Session::start("2026-03-05T18:55:00Z").await;
    let cluster = &session.cluster;
    install_kueue(cluster, &folder).await;
    let mut kueue = start_kueue(&session, &folder.join("kueue")).await;
    let [queue, _] = documents("kueue-nights").try_into().unwrap();
    let capacity = example("kueue-nights");
    let metadata = json!({"name": "batch", "namespace": "default"});
    let version = "kueue.x-k8s.io/v1beta2";
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "render", "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "batch"},
        },
        "spec": {"suspend": true, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "render", "image": "registry.example/render:1",
                "resources": {"requests": {"cpu": "100", "memory": "1Gi"}},
            }],
        }}},
    });
    for object in [
        json!({"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "default"}}),
        queue.clone(),
        json!({
            "apiVersion": version, "kind": "LocalQueue", "metadata": metadata,
            "spec": {"clusterQueue": "batch"},
        }),
        capacity,
        job.clone(),
    ] {
        cluster.apply(&object).await;
    }
    cluster.advance_to("2026-03-05T18:59:59Z").await;
    wait_for_phase(cluster, "night-batch", "Inactive").await;
    let waits = |queue: &Value| queue["status"]["pendingWorkloads"] == 1;
    eventually(&mut kueue, &session, &path_of(&queue), waits).await;
    let found = cluster.get(&path_of(&job)).await.unwrap();
    assert_eq!(found["spec"]["suspend"], true);
    cluster.advance_to("2026-03-05T19:00:00Z").await;
    wait_for_phase(cluster, "night-batch", "Active").await;
    let runs = |job: &Value| job["spec"]["suspend"] == false;
    eventually(&mut kueue, &session, &path_of(&job), runs).await;
}

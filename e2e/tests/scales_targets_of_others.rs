//! Values of other projects' objects follow a schedule, with the CRDs that those projects publish.

use fivespot_testkit::{BEFORE_CLOSING, CLOSING, Cluster, instant, path_of};
use serde_json::{Value, json};

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
];

const CRDS: &[&str] = &["target-crds"];
const OWN_KINDS: &str = "installs the CRDs of other projects";

/// Installs a CRD, and waits until its kind is served.
async fn install(cluster: &Cluster, name: &str) {
    let text = std::fs::read_to_string(program::path("target-crds").unwrap()).unwrap();
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let mut found = all.into_iter().filter(|it| it["metadata"]["name"] == name);
    let definition = found.next().unwrap();
    cluster.apply(&definition).await;
    let is_served = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|it| it["type"] == "Established" && it["status"] == "True")
        })
    };
    cluster.wait_briefly(&path_of(&definition), is_served).await;
}

/// The document of an example.
fn example(name: &str) -> Value {
    let path = format!(
        "{}/../examples/capacity/{name}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut object: Value = serde_saphyr::from_str(&text).unwrap();
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
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "weekend-batch"},
        "spec": {
            "limits": {"cpu": "1000", "memory": "1000Gi"},
            "template": {"spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
                },
                "requirements": [{
                    "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"],
                }],
            }},
        },
    });
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

//! The kinds of targets.

use serde_json::{Value, json};

/// A kind whose objects are targets.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its group and version.
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// The field that is written, below `spec`.
    field: &'static str,
    /// Whether it is written through the subresource `scale`.
    is_scaled: bool,
    /// Its value while the schedule is closed and open; the objects are created with neither.
    values: fn() -> [Value; 2],
    /// The spec of an object.
    spec: fn() -> Value,
}

/// The ten kinds: six of Kubernetes, and four of CRDs.
pub(crate) const TARGETS: [Target; 10] = [
    workload("Deployment", "deployments"),
    workload("StatefulSet", "statefulsets"),
    workload("ReplicaSet", "replicasets"),
    Target {
        api_version: "batch/v1",
        kind: "CronJob",
        plural: "cronjobs",
        field: "startingDeadlineSeconds",
        is_scaled: false,
        values: numbers,
        spec: || json!({"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": pods()}}),
    },
    Target {
        api_version: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        plural: "horizontalpodautoscalers",
        field: "maxReplicas",
        is_scaled: false,
        values: numbers,
        spec: || {
            json!({
                "maxReplicas": 1,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"},
            })
        },
    },
    Target {
        api_version: "policy/v1",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        field: "minAvailable",
        is_scaled: false,
        values: numbers,
        spec: || json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "it"}}}),
    },
    custom("LaneA", "laneas"),
    custom("LaneB", "lanebs"),
    custom("LaneC", "lanecs"),
    custom("LaneD", "laneds"),
];

const LANES: &str = "lanes.example.com";

fn numbers() -> [Value; 2] {
    [json!(2), json!(5)]
}

fn pods() -> Value {
    json!({"template": {
        "metadata": {"labels": {"app": "it"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "app", "image": "registry.example/app:1"}],
        },
    }})
}

/// A kind of `apps/v1` with replicas. Its controller does not run.
const fn workload(kind: &'static str, plural: &'static str) -> Target {
    Target {
        api_version: "apps/v1",
        kind,
        plural,
        field: "replicas",
        is_scaled: true,
        values: numbers,
        spec: || {
            let mut spec = pods();
            spec["template"]["spec"]["restartPolicy"] = json!("Always");
            spec["replicas"] = json!(1);
            spec["selector"] = json!({"matchLabels": {"app": "it"}});
            spec
        },
    }
}

const fn custom(kind: &'static str, plural: &'static str) -> Target {
    Target {
        api_version: "lanes.example.com/v1",
        kind,
        plural,
        field: "limits[\"cpu\"]",
        is_scaled: false,
        values: || [json!("2"), json!("5")],
        spec: || json!({"limits": {"cpu": "1", "memory": "1Gi"}}),
    }
}

impl Target {
    /// The path of its objects in a namespace.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let (version, plural) = (self.api_version, self.plural);
        format!("/apis/{version}/namespaces/{namespace}/{plural}")
    }

    /// An object of it.
    pub(crate) fn object(&self, name: &str) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "metadata": {"name": name}, "spec": (self.spec)(),
        })
    }

    /// The ScheduledCapacity about the object of that name, without its schedule.
    pub(crate) fn capacity(&self, name: &str) -> Value {
        let [inactive, active] = (self.values)();
        let mut target =
            json!({"apiVersion": self.api_version, "kind": self.kind, "name": name});
        if self.is_scaled {
            target["subresource"] = json!("scale");
        }
        json!({
            "apiVersion": fivespot_api::name::API_VERSION, "kind": "ScheduledCapacity",
            "metadata": {"name": name},
            "spec": {
                "target": target,
                "fields": [
                    {"field": self.field, "activeValue": active, "inactiveValue": inactive},
                ],
            },
        })
    }

    /// Its CRD. `None` if it is one of Kubernetes.
    pub(crate) fn definition(&self) -> Option<Value> {
        let group = self.api_version.split('/').next()?;
        (group == LANES).then(|| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{}.{LANES}", self.plural)},
                "spec": {
                    "group": LANES, "scope": "Namespaced",
                    "names": {"kind": self.kind, "plural": self.plural},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {
                                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                            }},
                        }},
                    }],
                },
            })
        })
    }
}

//! A sample object of every built-in kind, with its defaults and its invalid variants.

use serde_json::{Value, json};

use crate::resource::Resource;

/// A certificate signing request in base64-encoded PEM; its key is discarded.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHZE1GRUNBUUF3SGpFTk1Bc0dBMV\
    VFQ2d3RWRHVmhiVEVOTUFzR0ExVUVBd3dFYW1GdVpUQXFNQVVHQXl0bApjQU1oQUxxcG4wTjFoT09r\
    NlFCbUhzaHZ6TGkvaE5kQWI4WGh0SWo5eU5URDVjM1lvQUF3QlFZREsyVndBMEVBCkFkeFhRNVlQOW\
    xiK0dlQzc2ZlVuZXpSWmJZYUhYcDI0WGFjamxGYUUrRktyZU5xejFLSzFCZWd6SmZnSE0xdGwKbDVP\
    SzlPTzUzaFI5c2dRazU5eGpCQT09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

/// The sample of a kind.
pub(super) struct Sample {
    /// A small valid object.
    pub(super) object: Value,
    /// The defaults that the server sets, by JSON pointer.
    pub(super) defaults: Vec<(&'static str, Value)>,
    /// Merge patches that make it invalid, and the field of the error. An invalid name is tested
    /// for every kind.
    pub(super) mistakes: Vec<(Value, &'static str)>,
}

impl Sample {
    fn of(body: Value) -> Self {
        Self {
            object: body,
            defaults: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    fn fills(mut self, pointer: &'static str, value: Value) -> Self {
        self.defaults.push((pointer, value));
        self
    }

    fn refuses(mut self, change: Value, field: &'static str) -> Self {
        self.mistakes.push((change, field));
        self
    }
}

/// The sample of a kind, with the fields that every object has; `None` if the kind has no sample.
pub(super) fn sample(resource: &Resource) -> Option<Sample> {
    let mut found = core(resource)
        .or_else(|| workload(resource))
        .or_else(|| job(resource))
        .or_else(|| network(resource))
        .or_else(|| access(resource))
        .or_else(|| limits(resource))
        .or_else(|| volumes(resource))
        .or_else(|| drivers(resource))
        .or_else(|| templates(resource))
        .or_else(|| addresses(resource))
        .or_else(|| server(resource))
        .or_else(|| devices(resource))
        .or_else(|| extension(resource))?;
    let object = &mut found.object;
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = resource.kind.as_str().into();
    if object["metadata"].is_null() && !crate::review::is_review(resource) {
        object["metadata"] = json!({"name": "sample"});
    }
    Some(found)
}

fn core(resource: &Resource) -> Option<Sample> {
    let about = json!({"kind": "Pod", "name": "p", "namespace": "default"});
    Some(match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "ConfigMap") => Sample::of(json!({"data": {"a": "1"}}))
            .refuses(json!({"data": {"a b": "1"}}), "data[a b]"),
        ("", "Secret") => Sample::of(json!({"data": {"a": "MQ=="}}))
            .fills("/type", json!("Opaque"))
            .refuses(json!({"type": "kubernetes.io/tls"}), "data[tls.crt]"),
        ("", "Namespace") => Sample::of(json!({}))
            .fills("/spec/finalizers", json!(["kubernetes"]))
            .fills("/status/phase", json!("Active"))
            .refuses(json!({"metadata": {"name": "a.b"}}), "metadata.name"),
        ("", "Node") => Sample::of(json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}}))
            .fills("/spec/podCIDR", json!("10.0.0.0/24"))
            .refuses(
                json!({"spec": {"taints": [{"key": "k"}]}}),
                "metadata.taints[0].effect",
            ),
        ("", "ServiceAccount") => Sample::of(json!({})),
        ("", "Service") => Sample::of(json!({"spec": {"ports": [{"port": 80,
            "targetPort": "web"}]}}))
        .fills("/spec/clusterIP", json!("10.0.0.2"))
        .fills("/spec/ports/0/protocol", json!("TCP"))
        .refuses(json!({"spec": {"ports": null}}), "spec.ports")
        .refuses(json!({"spec": {"type": "Odd"}}), "spec.type"),
        ("", "Event") => Sample::of(json!({"involvedObject": about, "reason": "R",
            "message": "m", "type": "Normal", "count": 1, "source": {"component": "c"},
            "firstTimestamp": "2026-03-06T21:00:00Z"}))
        .refuses(
            json!({"involvedObject": {"namespace": "other"}}),
            "involvedObject.namespace",
        ),
        ("events.k8s.io", "Event") => Sample::of(json!({"regarding": about,
            "reason": "R", "note": "m", "type": "Normal", "action": "A",
            "reportingController": "example.com/c", "reportingInstance": "c-0",
            "eventTime": "2026-03-06T21:00:00.000000Z"}))
        .refuses(json!({"type": "Odd"}), "type"),
        ("coordination.k8s.io", "Lease") => {
            Sample::of(json!({"spec": {"holderIdentity": "me",
                "renewTime": "2026-03-06T21:00:00.000000Z"}}))
            .refuses(
                json!({"spec": {"leaseDurationSeconds": 0}}),
                "spec.leaseDurationSeconds",
            )
        }
        _ => return None,
    })
}

fn workload(resource: &Resource) -> Option<Sample> {
    let template = json!({"metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let selector = json!({"matchLabels": {"app": "a"}});
    Some(match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => Sample::of(json!({"spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}}))
        .fills("/spec/restartPolicy", json!("Always"))
        .fills("/spec/containers/0/imagePullPolicy", json!("Always"))
        .fills("/status/qosClass", json!("Burstable"))
        .refuses(json!({"spec": {"containers": null}}), "spec.containers"),
        ("apps", "Deployment") => Sample::of(json!({"spec": {
            "selector": selector, "template": template,
            "strategy": {"rollingUpdate": {"maxUnavailable": 1}}}}))
        .fills("/spec/replicas", json!(1))
        .fills("/spec/strategy/rollingUpdate/maxSurge", json!("25%"))
        .fills("/spec/template/spec/dnsPolicy", json!("ClusterFirst"))
        .refuses(
            json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}}),
            "spec.template.metadata.labels",
        )
        .refuses(
            json!({"spec": {"strategy": {"type": "Recreate"}}}),
            "spec.strategy.rollingUpdate",
        ),
        ("apps", "ReplicaSet") => {
            Sample::of(json!({"spec": {"selector": selector, "template": template}}))
                .fills("/spec/replicas", json!(1))
                .fills("/status/replicas", json!(0))
                .refuses(json!({"spec": {"selector": null}}), "spec.selector")
        }
        ("apps", "StatefulSet") => Sample::of(json!({"spec": {"serviceName": "s",
            "selector": selector, "template": template}}))
        .fills("/spec/podManagementPolicy", json!("OrderedReady"))
        .fills("/spec/updateStrategy/rollingUpdate/partition", json!(0))
        .refuses(
            json!({"spec": {"podManagementPolicy": "Odd"}}),
            "spec.podManagementPolicy",
        ),
        ("apps", "DaemonSet") => {
            Sample::of(json!({"spec": {"selector": selector, "template": template}}))
                .fills("/spec/updateStrategy/rollingUpdate/maxSurge", json!(0))
                .refuses(
                    json!({"spec": {"updateStrategy": {"type": "Odd"}}}),
                    "spec.updateStrategy",
                )
        }
        ("", "ReplicationController") => {
            Sample::of(json!({"spec": {"template": template}}))
                .fills("/spec/selector", json!({"app": "a"}))
                .fills("/metadata/labels", json!({"app": "a"}))
                .refuses(json!({"spec": {"template": null}}), "spec.template")
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            let target =
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
            let created =
                Sample::of(json!({"spec": {"scaleTargetRef": target, "maxReplicas": 3}}))
                    .fills("/spec/minReplicas", json!(1));
            let created = if resource.version == "v1" {
                created.fills("/spec/targetCPUUtilizationPercentage", json!(80))
            } else {
                created.fills("/spec/metrics/0/resource/name", json!("cpu"))
            };
            created.refuses(json!({"spec": {"minReplicas": 5}}), "spec.maxReplicas")
        }
        _ => return None,
    })
}

fn job(resource: &Resource) -> Option<Sample> {
    let template = json!({"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}]}});
    let always = json!({"spec": {"restartPolicy": "Always"}});
    Some(match resource.kind.as_str() {
        "Job" => Sample::of(json!({"spec": {"manualSelector": true,
            "selector": {"matchLabels": {"job": "a"}},
            "template": {"metadata": {"labels": {"job": "a"}}, "spec": template["spec"]}}}))
        .fills("/spec/completions", json!(1))
        .fills("/spec/backoffLimit", json!(6))
        .fills("/metadata/labels/job", json!("a"))
        .refuses(
            json!({"spec": {"template": always}}),
            "spec.template.spec.restartPolicy",
        )
        .refuses(json!({"spec": {"parallelism": -1}}), "spec.parallelism"),
        "CronJob" => Sample::of(json!({"spec": {"schedule": "*/5 * * * *",
            "jobTemplate": {"spec": {"template": template}}}}))
        .fills("/spec/concurrencyPolicy", json!("Allow"))
        .fills("/spec/successfulJobsHistoryLimit", json!(3))
        .refuses(json!({"spec": {"schedule": "often"}}), "spec.schedule"),
        _ => return None,
    })
}

fn network(resource: &Resource) -> Option<Sample> {
    let selector = json!({"matchLabels": {"app": "a"}});
    Some(match (resource.group.as_str(), resource.kind.as_str()) {
        ("networking.k8s.io", "NetworkPolicy") => {
            Sample::of(json!({"spec": {"podSelector": selector,
                "ingress": [{"ports": [{"port": 80}, {"port": "web"}]}]}}))
            .fills("/spec/policyTypes", json!(["Ingress"]))
            .fills("/spec/ingress/0/ports/0/protocol", json!("TCP"))
            .refuses(
                json!({"spec": {"ingress": [{"from": [{}]}]}}),
                "spec.ingress[0].from[0]",
            )
        }
        ("networking.k8s.io", "Ingress") => {
            let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
            let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
            Sample::of(json!({"spec": {"rules": [{"host": "example.com",
                "http": {"paths": [path]}}]}}))
            .fills("/status/loadBalancer", json!({}))
            .refuses(json!({"spec": {"rules": null}}), "spec")
            .refuses(
                json!({"spec": {"rules": [{"host": "A"}]}}),
                "spec.rules[0].host",
            )
        }
        ("", "Endpoints") => {
            Sample::of(json!({"subsets": [{"addresses": [{"ip": "10.1.1.1"}],
                "ports": [{"port": 80}]}]}))
            .fills("/subsets/0/ports/0/protocol", json!("TCP"))
            .refuses(json!({"subsets": [{}]}), "subsets[0]")
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            Sample::of(json!({"addressType": "IPv4",
                "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"port": 80}]}))
            .fills("/ports/0/protocol", json!("TCP"))
            .refuses(json!({"addressType": "IPv5"}), "addressType")
        }
        ("policy", "PodDisruptionBudget") => {
            Sample::of(json!({"spec": {"minAvailable": 1, "selector": selector}}))
                .fills("/status/disruptionsAllowed", json!(0))
                .refuses(
                    json!({"spec": {"minAvailable": "200%"}}),
                    "spec.minAvailable",
                )
        }
        _ => return None,
    })
}

fn access(resource: &Resource) -> Option<Sample> {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let role = |kind: &str| json!({"kind": kind, "name": "r"});
    let subjects = json!([{"kind": "User", "name": "u"}]);
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let group = "rbac.authorization.k8s.io";
    Some(match resource.kind.as_str() {
        "CertificateSigningRequest" => Sample::of(json!({"spec": {"request": REQUEST,
            "signerName": "example.com/own", "usages": ["client auth"]}}))
        .fills("/spec/username", json!("kubernetes-admin"))
        .refuses(json!({"spec": {"usages": []}}), "spec.usages"),
        "Role" | "ClusterRole" => Sample::of(json!({"rules": rules}))
            .refuses(json!({"rules": [{"verbs": []}]}), "rules[0].verbs"),
        "RoleBinding" => {
            Sample::of(json!({"roleRef": role("Role"), "subjects": subjects}))
                .fills("/roleRef/apiGroup", json!(group))
                .fills("/subjects/0/apiGroup", json!(group))
                .refuses(json!({"roleRef": {"kind": "Rule"}}), "roleRef.kind")
        }
        "ClusterRoleBinding" => {
            Sample::of(json!({"roleRef": role("ClusterRole"), "subjects": subjects}))
                .fills("/roleRef/apiGroup", json!(group))
                .fills("/subjects/0/apiGroup", json!(group))
                .refuses(json!({"roleRef": {"kind": "Role"}}), "roleRef.kind")
        }
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            Sample::of(json!({"metadata": {},
                "spec": {"user": "u", "resourceAttributes": pods}}))
            .fills("/status/allowed", json!(false))
        }
        "SelfSubjectAccessReview" => {
            Sample::of(json!({"spec": {"resourceAttributes": pods}}))
                .fills("/status/allowed", json!(true))
        }
        "SelfSubjectRulesReview" => Sample::of(json!({"spec": {"namespace": "default"}}))
            .fills("/status/incomplete", json!(false)),
        "SelfSubjectReview" => Sample::of(json!({})),
        "TokenReview" => Sample::of(json!({"spec": {"token": "t"}})),
        _ => return None,
    })
}

fn limits(resource: &Resource) -> Option<Sample> {
    let limit =
        json!({"type": "Container", "max": {"cpu": "1000m"}, "min": {"cpu": "0.1"}});
    let inverted =
        json!([{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]);
    let toleration = json!({"key": "a", "operator": "Exists"});
    Some(match resource.kind.as_str() {
        "LimitRange" => Sample::of(json!({"spec": {"limits": [limit]}}))
            .fills("/spec/limits/0/max/cpu", json!("1"))
            .fills("/spec/limits/0/default/cpu", json!("1"))
            .fills("/spec/limits/0/defaultRequest/cpu", json!("1"))
            .refuses(
                json!({"spec": {"limits": inverted}}),
                "spec.limits[0].min[cpu]",
            )
            .refuses(
                json!({"spec": {"limits": [{"type": "Thing"}]}}),
                "spec.limits[0].type",
            ),
        "ResourceQuota" => Sample::of(json!({"spec": {"hard": {"pods": "10",
            "count/things.example.com": "1e1", "requests.cpu": "0.5"}}}))
        .fills("/spec/hard/requests.cpu", json!("500m"))
        .refuses(
            json!({"spec": {"hard": {"pods": "1.5"}}}),
            "spec.hard[pods]",
        )
        .refuses(json!({"spec": {"hard": {"what": "1"}}}), "spec.hard[what]")
        .refuses(json!({"spec": {"scopes": ["BestEffort"]}}), "spec.scopes"),
        "PriorityClass" => Sample::of(json!({"value": 1000}))
            .fills("/preemptionPolicy", json!("PreemptLowerPriority"))
            .refuses(json!({"value": 1_000_000_001}), "value")
            .refuses(json!({"metadata": {"name": "system-own"}}), "metadata.name"),
        "RuntimeClass" => Sample::of(json!({"handler": "gvisor",
            "overhead": {"podFixed": {"cpu": "0.25"}}}))
        .fills("/overhead/podFixed/cpu", json!("250m"))
        .refuses(json!({"handler": "G"}), "handler")
        .refuses(
            json!({"overhead": {"podFixed": {"hugepages-2Mi": "1Mi", "cpu": null}}}),
            "overhead.limits[hugepages-2Mi]",
        )
        .refuses(
            json!({"scheduling": {"tolerations": [toleration, toleration]}}),
            "scheduling.tolerations[1]",
        )
        .refuses(
            json!({"scheduling": {"tolerations": [{"key": "a", "effect": "Odd"}]}}),
            "scheduling.tolerations[0].effect",
        )
        .refuses(
            json!({"scheduling": {"nodeSelector": {"a b": "c"}}}),
            "scheduling.nodeSelector",
        ),
        "IngressClass" => Sample::of(
            json!({"spec": {"controller": "example.com/ingress",
            "parameters": {"kind": "K", "name": "n"}}}),
        )
        .fills("/spec/parameters/scope", json!("Cluster"))
        .refuses(json!({"spec": {"controller": "none"}}), "spec.controller")
        .refuses(
            json!({"spec": {"parameters": {"apiGroup": "-a"}}}),
            "spec.parameters.apiGroup",
        )
        .refuses(
            json!({"spec": {"parameters": {"scope": "Namespace", "namespace": "a.b"}}}),
            "spec.parameters.namespace",
        ),
        _ => return None,
    })
}

fn volumes(resource: &Resource) -> Option<Sample> {
    let zone = json!({"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]});
    Some(match resource.kind.as_str() {
        "StorageClass" => Sample::of(json!({"provisioner": "example.com/disk"}))
            .fills("/reclaimPolicy", json!("Delete"))
            .fills("/volumeBindingMode", json!("Immediate"))
            .refuses(json!({"reclaimPolicy": "Recycle"}), "reclaimPolicy")
            .refuses(
                json!({"allowedTopologies": [zone, zone]}),
                "allowedTopologies[1].matchLabelExpressions",
            )
            .refuses(
                json!({"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone"}]}]}),
                "allowedTopologies[0].matchLabelExpressions[0].values",
            ),
        "PersistentVolume" => {
            Sample::of(json!({"spec": {"capacity": {"storage": "1024Mi"},
            "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}}))
            .fills("/spec/capacity/storage", json!("1Gi"))
            .fills("/spec/persistentVolumeReclaimPolicy", json!("Retain"))
            .fills("/status/phase", json!("Pending"))
            .refuses(json!({"spec": {"hostPath": null}}), "spec")
            .refuses(
                json!({"spec": {"hostPath": {"path": "/a/../b"}}}),
                "spec.hostPath.path",
            )
            .refuses(
                json!({"spec": {"hostPath": null, "local": {"path": "/data"}}}),
                "spec.nodeAffinity",
            )
            .refuses(
                json!({"spec": {"nodeAffinity": {"required": {}}}}),
                "spec.nodeAffinity.required.nodeSelectorTerms",
            )
            .refuses(
                json!({"spec": {"hostPath": null, "csi": {"driver": "example.com"}}}),
                "spec.csi.volumeHandle",
            )
            .refuses(
                json!({"spec": {"storageClassName": "A"}}),
                "spec.storageClassName",
            )
            .refuses(
                json!({"spec": {"accessModes": ["Any"]}}),
                "spec.accessModes",
            )
        }
        "PersistentVolumeClaim" => Sample::of(json!({"spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}))
        .fills("/spec/volumeMode", json!("Filesystem"))
        .fills("/status/phase", json!("Pending"))
        .refuses(
            json!({"spec": {"selector": {"matchLabels": {"a": "/"}}}}),
            "spec.selector.matchLabels",
        )
        .refuses(
            json!({"spec": {"dataSourceRef": {"kind": "Secret", "name": "s"}}}),
            "spec.dataSource",
        )
        .refuses(
            json!({"spec": {"resources": null}}),
            "spec.resources[storage]",
        ),
        _ => return None,
    })
}

fn templates(resource: &Resource) -> Option<Sample> {
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    Some(match resource.kind.as_str() {
        "ControllerRevision" => {
            Sample::of(json!({"data": {"spec": {"replicas": 1}}, "revision": 1}))
                .refuses(json!({"data": null}), "data")
                .refuses(json!({"data": ["a"]}), "data")
                .refuses(json!({"revision": -1}), "revision")
        }
        "PodTemplate" => Sample::of(json!({"template": {"spec": spec}}))
            .fills("/template/spec/dnsPolicy", json!("ClusterFirst"))
            .refuses(
                json!({"template": {"spec": {"containers": null}}}),
                "template.spec.containers",
            ),
        _ => return None,
    })
}

fn drivers(resource: &Resource) -> Option<Sample> {
    Some(match resource.kind.as_str() {
        "CSIDriver" => Sample::of(json!({"spec": {"attachRequired": false}}))
            .fills("/spec/attachRequired", json!(false))
            .fills("/spec/fsGroupPolicy", json!("ReadWriteOnceWithFSType"))
            .fills("/spec/volumeLifecycleModes", json!(["Persistent"]))
            .refuses(json!({"spec": {"fsGroupPolicy": "Odd"}}), "spec.fsGroupPolicy")
            .refuses(
                json!({"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "a"}]}}),
                "spec.tokenRequests[1].audience",
            )
            .refuses(
                json!({"spec": {"nodeAllocatableUpdatePeriodSeconds": 9}}),
                "spec.nodeAllocatableUpdatePeriodSeconds",
            ),
        "CSINode" => Sample::of(json!({"spec": {"drivers": [
            {"name": "example.com", "nodeID": "n", "topologyKeys": ["zone"]}]}}))
        .refuses(
            json!({"spec": {"drivers": [{"name": "example.com", "nodeID": ""}]}}),
            "spec.drivers[0].nodeID",
        )
        .refuses(
            json!({"spec": {"drivers": [{"name": "a_b", "nodeID": "n"}]}}),
            "spec.drivers[0].name",
        ),
        "CSIStorageCapacity" => {
            Sample::of(json!({"storageClassName": "fast", "capacity": "1024Mi"}))
                .fills("/capacity", json!("1Gi"))
                .refuses(json!({"storageClassName": "A"}), "storageClassName")
                .refuses(json!({"capacity": "-1Gi"}), "capacity")
        }
        "VolumeAttachment" => Sample::of(json!({"spec": {"attacher": "example.com",
            "nodeName": "n", "source": {"persistentVolumeName": "v"}}}))
        .fills("/status/attached", json!(false))
        .refuses(json!({"spec": {"attacher": "a_b"}}), "spec.attacher")
        .refuses(
            json!({"spec": {"source": {"persistentVolumeName": null}}}),
            "spec.source",
        ),
        "VolumeAttributesClass" => {
            Sample::of(json!({"driverName": "example.com", "parameters": {"iops": "5"}}))
                .refuses(json!({"driverName": "a b"}), "driverName")
                .refuses(json!({"parameters": null}), "parameters")
        }
        _ => return None,
    })
}

fn addresses(resource: &Resource) -> Option<Sample> {
    Some(match resource.kind.as_str() {
        "ServiceCIDR" => Sample::of(json!({"spec": {"cidrs": ["10.9.0.0/24"]}}))
            .refuses(json!({"spec": {"cidrs": null}}), "spec.cidrs")
            .refuses(json!({"spec": {"cidrs": ["10.9.0.1/24"]}}), "spec.cidrs[0]")
            .refuses(
                json!({"spec": {"cidrs": ["10.9.0.0/24", "10.8.0.0/24"]}}),
                "spec.cidrs",
            ),
        "IPAddress" => Sample::of(json!({"metadata": {"name": "192.0.2.1"},
            "spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}}))
        .refuses(json!({"metadata": {"name": "s"}}), "metadata.name")
        .refuses(json!({"spec": {"parentRef": null}}), "spec.parentRef")
        .refuses(
            json!({"spec": {"parentRef": {"name": null}}}),
            "spec.parentRef.name",
        ),
        _ => return None,
    })
}

fn server(resource: &Resource) -> Option<Sample> {
    let rule = json!({"subjects": [{"kind": "User", "user": {"name": "u"}}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]});
    let odd = json!({"subjects": [{"kind": "Odd"}], "nonResourceRules": [
        {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]});
    Some(match resource.kind.as_str() {
        "FlowSchema" => Sample::of(json!({"spec": {"rules": [rule],
            "priorityLevelConfiguration": {"name": "global-default"}}}))
        .fills("/spec/matchingPrecedence", json!(1000))
        .refuses(
            json!({"spec": {"matchingPrecedence": 1}}),
            "spec.matchingPrecedence",
        )
        .refuses(
            json!({"spec": {"rules": [odd]}}),
            "spec.rules[0].subjects[0].kind",
        ),
        "PriorityLevelConfiguration" => {
            let queuing = json!({"queues": 1024, "handSize": 7});
            let response = json!({"type": "Queue", "queuing": queuing});
            Sample::of(json!({"spec": {"type": "Limited",
                "limited": {"limitResponse": {"type": "Reject"}}}}))
            .fills("/spec/limited/nominalConcurrencyShares", json!(30))
            .refuses(json!({"spec": {"type": "Odd"}}), "spec.type")
            .refuses(
                json!({"spec": {"limited": {"limitResponse": response}}}),
                "spec.limited.limitResponse.queuing.handSize",
            )
        }
        "APIService" => Sample::of(json!({"metadata": {"name": "v1.example.com"},
            "spec": {"group": "example.com", "version": "v1",
                "groupPriorityMinimum": 100, "versionPriority": 10}}))
        .fills("/status/conditions/0/reason", json!("Local"))
        .refuses(
            json!({"spec": {"versionPriority": 0}}),
            "spec.versionPriority",
        )
        .refuses(
            json!({"metadata": {"name": "v2.example.com"}}),
            "metadata.name",
        ),
        _ => return None,
    })
}

fn devices(resource: &Resource) -> Option<Sample> {
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu"}});
    let nameless = json!({"name": "", "exactly": {"deviceClassName": "gpu"}});
    Some(match resource.kind.as_str() {
        "DeviceClass" => Sample::of(json!({"spec": {"selectors": [
            {"cel": {"expression": "device.driver == \"example.com\""}}]}}))
        .refuses(json!({"spec": {"selectors": [{}]}}), "spec.selectors[0].cel")
        .refuses(
            json!({"spec": {"extendedResourceName": "cpu"}}),
            "spec.extendedResourceName",
        ),
        "ResourceClaim" => {
            Sample::of(json!({"spec": {"devices": {"requests": [request]}}}))
                .fills("/spec/devices/requests/0/exactly/count", json!(1))
                .refuses(
                    json!({"spec": {"devices": {"requests": [nameless]}}}),
                    "spec.devices.requests[0].name",
                )
                .refuses(
                    json!({"spec": {"devices": {"requests": [{"name": "a"}]}}}),
                    "spec.devices.requests[0]",
                )
        }
        "ResourceClaimTemplate" => {
            Sample::of(json!({"spec": {"spec": {"devices": {"requests": [request]}}}}))
                .fills("/spec/spec/devices/requests/0/exactly/count", json!(1))
                .refuses(
                    json!({"spec": {"spec": {"devices": {"requests": [request, request]}}}}),
                    "spec.spec.devices.requests[1]",
                )
        }
        "ResourceSlice" => Sample::of(json!({"spec": {"driver": "example.com",
            "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "attributes": {"model": {"string": "m"}},
                "capacity": {"memory": {"value": "1024Mi"}}}]}}))
        .fills("/spec/devices/0/capacity/memory/value", json!("1Gi"))
        .refuses(json!({"spec": {"nodeName": null}}), "spec")
        .refuses(json!({"spec": {"pool": {"name": ""}}}), "spec.pool.name")
        .refuses(
            json!({"spec": {"devices": [{"name": "a", "attributes": {"model": {}}}]}}),
            "spec.devices[0].attributes[model]",
        ),
        _ => return None,
    })
}

fn extension(resource: &Resource) -> Option<Sample> {
    let constraints = json!({"resourceRules": [{"operations": ["CREATE"],
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]});
    let hooks = json!([{"name": "hook.example.com", "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com/hook"}}]);
    let misplaced = json!({"name": "hook.example.com", "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "p"}}});
    let path = "webhooks[0].clientConfig.service.path";
    Some(match resource.kind.as_str() {
        "ValidatingAdmissionPolicy" => {
            Sample::of(json!({"spec": {"matchConstraints": constraints,
                "validations": [{"expression": "true"}]}}))
            .fills("/spec/failurePolicy", json!("Fail"))
            .fills("/spec/matchConstraints/matchPolicy", json!("Equivalent"))
            .refuses(
                json!({"spec": {"validations": [{"expression": "1 +"}]}}),
                "spec.validations[0].expression",
            )
        }
        "ValidatingAdmissionPolicyBinding" => {
            Sample::of(json!({"spec": {"policyName": "p",
                "validationActions": ["Deny"], "matchResources": {}}}))
            .fills("/spec/matchResources/matchPolicy", json!("Equivalent"))
            .refuses(
                json!({"spec": {"validationActions": null}}),
                "spec.validationActions",
            )
        }
        "MutatingAdmissionPolicy" => {
            let mutation = |expression: &str| {
                json!([{"patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": expression}}])
            };
            Sample::of(json!({"spec": {"matchConstraints": constraints,
                "mutations": mutation("Object{}"), "reinvocationPolicy": "Never"}}))
            .fills("/spec/failurePolicy", json!("Fail"))
            .fills("/spec/matchConstraints/matchPolicy", json!("Equivalent"))
            .refuses(
                json!({"spec": {"mutations": mutation("1 +")}}),
                "spec.mutations[0].applyConfiguration.expression",
            )
        }
        "MutatingAdmissionPolicyBinding" => {
            Sample::of(json!({"spec": {"policyName": "p", "matchResources": {}}}))
                .fills("/spec/matchResources/matchPolicy", json!("Equivalent"))
                .refuses(json!({"spec": {"policyName": null}}), "spec.policyName")
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            Sample::of(json!({"webhooks": hooks}))
                .fills("/webhooks/0/timeoutSeconds", json!(10))
                .refuses(json!({"webhooks": [{"name": "x"}]}), "webhooks[0].name")
                .refuses(json!({"webhooks": [misplaced]}), path)
        }
        "CustomResourceDefinition" => Sample::of(json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object",
                        "properties": {"spec": {"type": "object",
                            "additionalProperties": {"type": "string"}}}}}}]}}))
        .fills("/spec/names/singular", json!("thing"))
        .fills("/spec/conversion/strategy", json!("None"))
        .refuses(json!({"spec": {"versions": []}}), "spec.versions"),
        _ => return None,
    })
}

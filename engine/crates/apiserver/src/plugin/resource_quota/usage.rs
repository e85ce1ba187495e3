//! The usage of resources that quotas limit (pkg/quota/v1/evaluator/core).

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kubemu_admission::Quantity;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::scope;
use crate::kind::resource_name;
use crate::meta;
use crate::plugin::Attributes;
use crate::plugin::pod::{list, text};
use crate::plugin::pod_resources::{self, Amounts};
use crate::resource::GroupResource;
use crate::state::State;
use crate::store::Range;

/// Counts the usage of the objects of one resource.
#[derive(Clone, Debug)]
pub(super) struct Evaluator {
    kind: Kind,
    /// `count/<resource>.<group>`.
    count: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pods,
    Claims,
    /// Claims of devices.
    DeviceClaims,
    Services,
    /// Counted by number of objects, also under another name if there is one.
    Counted(Option<&'static str>),
}

/// The compute resources of pods.
const COMPUTE: [&str; 9] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// The compute resources that each container must set if a quota limits them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];
/// Resources with names that are older than `count/`.
const ALIASES: [&str; 4] = [
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "secrets",
];
/// What follows the name of a device class whose devices are limited.
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// The number of devices that a request for all of them counts for: the most that a claim can get.
const ALL_DEVICES: i64 = 32;
/// The separator between a storage class and its limited resource.
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

impl Evaluator {
    pub(super) fn of(resource: &GroupResource) -> Self {
        let plural = |it: &&&'static str| *resource == GroupResource::new("", it);
        let is = |plural: &str| *resource == GroupResource::new("", plural);
        let kind = if is("pods") {
            Kind::Pods
        } else if is("persistentvolumeclaims") {
            Kind::Claims
        } else if is("services") {
            Kind::Services
        } else if *resource == GroupResource::new("resource.k8s.io", "resourceclaims") {
            Kind::DeviceClaims
        } else {
            Kind::Counted(ALIASES.iter().find(plural).copied())
        };
        Self {
            kind,
            count: format!("count/{resource}"),
        }
    }

    /// Whether the request can change the usage.
    pub(super) fn handles(&self, attributes: &Attributes<'_>, object: &Value) -> bool {
        let operation = attributes.operation();
        let creates = operation == Operation::Create;
        let updates = operation == Operation::Update;
        match (self.kind, attributes.subresource()) {
            (Kind::Pods, "") => {
                let old = attributes.old_object();
                let changed = old.is_some_and(|old| {
                    scope::is_terminating(old) != scope::is_terminating(object)
                });
                creates || updates && changed
            }
            (Kind::Pods, "resize") | (Kind::Claims, "status") => updates,
            (Kind::Claims | Kind::DeviceClaims | Kind::Services, "") => {
                creates || updates
            }
            (Kind::Counted(_), "") => creates,
            _ => false,
        }
    }

    /// The resources of a quota that objects of this kind use.
    pub(super) fn restricted<'a>(
        &self,
        hard: impl Iterator<Item = &'a String>,
    ) -> Vec<String> {
        hard.filter(|it| self.uses(it)).cloned().collect()
    }

    fn uses(&self, resource: &str) -> bool {
        if resource == self.count {
            return true;
        }
        match self.kind {
            Kind::Pods => {
                resource == "pods"
                    || COMPUTE.contains(&resource)
                    || resource.starts_with("hugepages-")
                    || resource.starts_with("requests.hugepages-")
                    || resource.starts_with("requests.")
                        && !resource_name::is_native(resource)
            }
            Kind::Claims => {
                let own = resource.split_once(STORAGE_CLASS);
                let resource = own.map_or(resource, |(_, it)| it);
                ["persistentvolumeclaims", "requests.storage"].contains(&resource)
            }
            Kind::Services => {
                ["services", "services.nodeports", "services.loadbalancers"]
                    .contains(&resource)
            }
            Kind::DeviceClaims => resource.ends_with(DEVICES),
            Kind::Counted(alias) => alias == Some(resource),
        }
    }

    /// Whether a quota covers the object.
    pub(super) fn matches(&self, quota: &Value, object: &Value) -> bool {
        let selectors = scope::selectors(quota);
        selectors.iter().all(|it| self.matches_scope(it, object))
    }

    pub(super) fn matches_scope(&self, selector: &Value, object: &Value) -> bool {
        match self.kind {
            Kind::Pods => scope::matches_pod(selector, object),
            Kind::Claims => scope::matches_claim(selector, object),
            Kind::DeviceClaims | Kind::Services | Kind::Counted(_) => false,
        }
    }

    /// Containers must set the compute resources that a quota limits.
    ///
    /// # Errors
    /// The missing resources and their containers.
    pub(super) fn constraints(
        &self,
        restricted: &[String],
        object: &Value,
    ) -> Result<(), String> {
        let spec = &object["spec"];
        let has_own = ["requests", "limits"]
            .iter()
            .any(|it| spec["resources"][it].is_object());
        if self.kind != Kind::Pods || has_own {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for field in ["containers", "initContainers"] {
            for container in list(spec, field) {
                let own = &container["resources"];
                let has = compute_usage(
                    &pod_resources::amounts(&own["requests"]),
                    &pod_resources::amounts(&own["limits"]),
                );
                let required = restricted.iter().map(String::as_str);
                let required = required.filter(|it| REQUIRED.contains(it));
                for resource in required.filter(|it| !has.contains_key(*it)) {
                    let names = missing.entry(resource).or_default();
                    names.insert(text(container, "name"));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let parts = missing.iter().map(|(resource, names)| {
            let names: Vec<&str> = names.iter().copied().collect();
            format!("{resource} for: {}", names.join(","))
        });
        let parts: Vec<String> = parts.collect();
        Err(format!("must specify {}", parts.join("; ")))
    }

    /// The usage of an object.
    pub(super) fn usage(&self, object: &Value, cluster: &State) -> Amounts {
        let one = Quantity::count(1);
        let mut usage = Amounts::from([(self.count.clone(), one.clone())]);
        match self.kind {
            Kind::Pods => {
                if !is_over(object, cluster.instant()) {
                    let spec = &object["spec"];
                    let mut requests =
                        pod_resources::total(spec, "requests", cluster.kube);
                    let mut limits = pod_resources::total(spec, "limits", cluster.kube);
                    let overhead = pod_resources::amounts(&spec["overhead"]);
                    pod_resources::add(&mut requests, &overhead);
                    let previous = limits.clone();
                    let overhead = overhead.into_iter();
                    let of_limits = overhead.filter(|(it, _)| previous.contains_key(it));
                    pod_resources::add(&mut limits, &of_limits.collect());
                    usage.extend(compute_usage(&requests, &limits));
                }
            }
            Kind::Claims => usage.extend(claim_usage(object)),
            Kind::DeviceClaims => usage.extend(device_usage(object)),
            Kind::Services => usage.extend(service_usage(object)),
            Kind::Counted(alias) => {
                usage.extend(alias.map(|it| (it.to_owned(), one)));
            }
        }
        usage
    }
}

/// Whether a pod has finished, or its grace period is over.
fn is_over(pod: &Value, now: Timestamp) -> bool {
    let metadata = &pod["metadata"];
    let due = metadata["deletionTimestamp"].as_str();
    let due: Option<Timestamp> = due.and_then(|it| it.parse().ok());
    let grace = metadata["deletionGracePeriodSeconds"].as_i64();
    let overdue = due.zip(grace).is_some_and(|(due, grace)| {
        let end = due.saturating_add(SignedDuration::from_secs(grace));
        end.is_ok_and(|end| now > end)
    });
    matches!(text(&pod["status"], "phase"), "Succeeded" | "Failed") || overdue
}

fn compute_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), Quantity::count(1))]);
    for (resource, amount) in requests {
        let standard =
            ["cpu", "memory", "ephemeral-storage"].contains(&resource.as_str());
        if standard || resource.starts_with("hugepages-") {
            usage.insert(resource.clone(), amount.clone());
        } else if !resource_name::is_extended(resource) {
            continue;
        }
        usage.insert(format!("requests.{resource}"), amount.clone());
    }
    for (resource, amount) in limits {
        if ["cpu", "memory", "ephemeral-storage"].contains(&resource.as_str()) {
            usage.insert(format!("limits.{resource}"), amount.clone());
        }
    }
    usage
}

fn claim_usage(claim: &Value) -> Amounts {
    let spec = &claim["spec"];
    let storage = |list: &Value| resource_name::quantity(&list["storage"]);
    let requested = storage(&spec["resources"]["requests"]);
    let allocated = storage(&claim["status"]["allocatedResources"]);
    let one = Some(Quantity::count(1));
    let class = text(spec, "storageClassName");
    let mut usage = Amounts::new();
    let charged = requested.max(allocated);
    for (resource, amount) in [
        ("persistentvolumeclaims", one),
        ("requests.storage", charged),
    ] {
        let Some(amount) = amount else {
            continue;
        };
        if !class.is_empty() {
            let of_class = format!("{class}{STORAGE_CLASS}{resource}");
            usage.insert(of_class, amount.clone());
        }
        usage.insert(resource.to_owned(), amount);
    }
    usage
}

/// The devices that a claim may get, by class. Of alternatives those with the most devices of each class
/// count. Devices in place of extended resources are not counted for those.
fn device_usage(claim: &Value) -> Amounts {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for request in list(&claim["spec"]["devices"], "requests") {
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        let exactly = request.get("exactly");
        for one in list(request, "firstAvailable").iter().chain(exactly) {
            let number = match text(one, "allocationMode") {
                "ExactCount" => one["count"].as_i64().unwrap_or_default(),
                "All" => ALL_DEVICES,
                _ => 0,
            };
            let of_class = most.entry(text(one, "deviceClassName")).or_default();
            *of_class = number.max(*of_class);
        }
        for (class, number) in most {
            let sum = sums.entry(class).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    let sums = sums.into_iter();
    sums.map(|(class, sum)| (format!("{class}{DEVICES}"), Quantity::count(sum)))
        .collect()
}

fn service_usage(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = list(spec, "ports");
    let count = |it: usize| Quantity::count(i64::try_from(it).unwrap_or(i64::MAX));
    let (node_ports, balancers) = match text(spec, "type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => {
            let own = ports.iter().filter(|it| it["nodePort"].as_i64() > Some(0));
            (own.count(), 1)
        }
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    Amounts::from([
        ("services".to_owned(), count(1)),
        ("services.nodeports".to_owned(), count(node_ports)),
        ("services.loadbalancers".to_owned(), count(balancers)),
    ])
}

/// The current usage of the resources that a quota limits. Resources that are not counted here are
/// omitted, as in Kubernetes.
pub(crate) fn used(cluster: &State, quota: &Value) -> Amounts {
    let hard = pod_resources::amounts(&quota["spec"]["hard"]);
    let namespace = meta::namespace(quota);
    let mut used = Amounts::new();
    let mut counted = BTreeSet::new();
    for resource in cluster.registry.all() {
        if !resource.namespaced || !counted.insert(resource.storage.clone()) {
            continue;
        }
        let evaluator = Evaluator::of(&resource.storage);
        let restricted = evaluator.restricted(hard.keys());
        let Some(bucket) = cluster.store.known_bucket(&resource.storage) else {
            continue;
        };
        if restricted.is_empty() {
            continue;
        }
        let mut sum = Amounts::new();
        for it in &restricted {
            sum.insert(it.clone(), Quantity::count(0));
        }
        let range = Range {
            namespace: Some(namespace),
            after: None,
        };
        let objects = cluster.store.list(bucket, &range, None);
        for (_, object) in objects.into_iter().flatten() {
            if evaluator.matches(quota, object) {
                pod_resources::add(&mut sum, &evaluator.usage(object, cluster));
            }
        }
        sum.retain(|it, _| restricted.contains(it));
        used.extend(sum);
    }
    used
}

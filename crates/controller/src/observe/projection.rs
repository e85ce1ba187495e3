//! Which fields of an object a cache keeps, which keys it enqueues, and how it is indexed.

mod capacity;
mod class;
mod mask;
mod target;
mod term;

use fivespot_api::host_claim::HostClaim;
use fivespot_api::name;
use fivespot_plan::set::owner_of;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::provider_specs;
pub(crate) use capacity::{hosted_term, machine_node_term, target_group_term};
pub(crate) use class::{claims_term, class_term, host_term, limited_term};
use fivespot_runtime::Key;
use fivespot_runtime::cache::{self, CacheProjection, FieldMask, Projection};
use mask::LABELLED_META;
pub(crate) use target::Target;
pub(crate) use term::{
    calendar_term, cluster_term, node_terms, set_term, spot_schedule_term,
};
use term::{
    calendar_terms, coming_term, foreign, node_term, provider_term, schedule_terms, text,
};

/// A provider spec: arbitrary JSON.
const INLINE: FieldMask =
    FieldMask::AllBut(&[("spec", FieldMask::Text(provider_specs::MAX_BYTES))]);

static SCHEDULED_MACHINE: FieldMask = FieldMask::Only(
    &["apiVersion", "kind", "status"],
    &[
        ("metadata", LABELLED_META),
        (
            "spec",
            FieldMask::AllBut(&[
                ("bootstrapSpec", INLINE),
                ("infrastructureSpec", INLINE),
            ]),
        ),
    ],
);

/// One cached object.
pub(crate) type Object = cache::Object<Target>;

/// A cache, and the watches that fill it.
pub(crate) type KindInformer = cache::Informer<CachedKind>;

/// The kind of the objects of a watch, and how they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CachedKind {
    /// ScheduledMachines.
    ScheduledMachine,
    /// ScheduleOverrides.
    Override,
    /// ScheduleCalendars.
    Calendar,
    /// The schedules of this kind that ScheduledMachines follow.
    SpotSchedule(String),
    /// The schedules of this kind of another provider, which are followed by their status.
    ProvidedSchedule(String),
    /// ScheduledMachineSets.
    Set,
    /// ScheduledCapacities.
    Capacity,
    /// The targets of ScheduledCapacities, of any kind.
    CapacityTarget,
    /// ScheduledMachineClasses, which are in no namespace.
    Class,
    /// The namespaces in which classes with a selector are used.
    Namespace,
    /// The Leases with which ScheduledMachines claim hosts of classes.
    HostClaim,
    /// Clusters of Cluster API.
    Cluster,
    /// Machines of Cluster API, those of other owners too: they may have a name that we need, or
    /// refer to a Node of ours.
    Machine,
    /// Bootstrap and infrastructure objects that have our label.
    Provider,
    /// Nodes of the workload cluster of this Cluster.
    Node(Key),
    /// Pods on the Node of this ScheduledMachine.
    Pod(Key),
    /// ConfigMaps of agents on Nodes of the workload cluster of this Cluster.
    AgentConfig(Key),
}

impl CachedKind {
    /// Whether it is read from a workload cluster.
    pub(crate) fn is_of_workload(&self) -> bool {
        matches!(self, Self::Node(_) | Self::Pod(_) | Self::AgentConfig(_))
    }

    /// Whether the watches of this kind show `object`.
    pub(crate) fn shows(&self, object: &Value) -> bool {
        *self != Self::Provider || has_label(object)
    }

    fn links(&self, object: &Value, own: &Key) -> (Vec<Target>, Vec<String>) {
        let itself = || Target::Own(own.clone());
        match self {
            Self::ScheduledMachine => scheduled_machine_links(object, own),
            Self::Override => (capacity::of_override(object, own), Vec::new()),
            Self::Set | Self::ProvidedSchedule(_) => (vec![itself()], Vec::new()),
            Self::Capacity => (
                vec![itself(), Target::Capacity(own.clone())],
                capacity::terms(object, own),
            ),
            Self::CapacityTarget => (capacity::target(object, own), Vec::new()),
            Self::Calendar => {
                let term = calendar_term(own);
                let followers =
                    [Target::Machines(term.clone()), Target::Capacities(term)];
                (
                    followers.into_iter().chain([itself()]).collect(),
                    Vec::new(),
                )
            }
            Self::SpotSchedule(_) => {
                let terms = calendar_terms(&object["spec"], own).collect();
                (vec![itself()], terms)
            }
            Self::Class => {
                let machines = Target::Machines(class_term(&own.name));
                (vec![itself(), machines], Vec::new())
            }
            Self::Namespace => {
                let term = class::used_in(&own.name);
                (vec![Target::Machines(term)], Vec::new())
            }
            Self::HostClaim => host_claim_links(object, own),
            Self::Cluster => (cluster_targets(own), Vec::new()),
            Self::Machine => machine_links(object, own),
            Self::Provider => (labelled_or_named(object, own), Vec::new()),
            Self::Node(cluster) => {
                let mut terms = vec![
                    node_term(cluster, &own.name),
                    coming_term(cluster, &own.name),
                ];
                let provider_id = text(&object["spec"]["providerID"]);
                terms.extend(
                    (!provider_id.is_empty())
                        .then(|| provider_term(cluster, provider_id)),
                );
                (vec![Target::Machine(terms)], Vec::new())
            }
            Self::Pod(whose) => (vec![Target::One(whose.clone())], Vec::new()),
            Self::AgentConfig(cluster) => {
                let node = name::reclaim_node(&own.name);
                let targets =
                    node.map(|node| Target::Machine(vec![node_term(cluster, node)]));
                (targets.into_iter().collect(), Vec::new())
            }
        }
    }
}

/// The ScheduledMachines that name a Cluster, or that have a Machine in it. Those of the namespace
/// that leave the Cluster to their class may mean it too.
fn cluster_targets(own: &Key) -> Vec<Target> {
    let term = cluster_term(own);
    let unnamed = cluster_term(&Key::new(own.namespace.clone(), ""));
    vec![
        Target::Machines(term.clone()),
        Target::Machines(unnamed),
        Target::Machine(vec![term]),
    ]
}

/// The Cluster that an object names in its spec.
fn cluster_of(object: &Value, own: &Key) -> Key {
    let cluster = text(&object["spec"]["clusterName"]);
    Key::new(own.namespace.clone(), cluster)
}

/// The targets of a Machine, and its index terms: its Cluster and its Node.
fn machine_links(object: &Value, own: &Key) -> (Vec<Target>, Vec<String>) {
    let cluster = cluster_of(object, own);
    let node = text(&object["status"]["nodeRef"]["name"]);
    let provider_id = text(&object["spec"]["providerID"]);
    let mut terms = vec![cluster_term(&cluster)];
    terms.push(if node.is_empty() {
        coming_term(&cluster, &own.name)
    } else {
        node_term(&cluster, node)
    });
    terms.extend((!provider_id.is_empty()).then(|| provider_term(&cluster, provider_id)));
    if !has_label(object) {
        for term in &mut terms {
            *term = foreign(term);
        }
    }
    (labelled_or_named(object, own), terms)
}

/// The targets of a ScheduledMachine, itself and its host, and its index terms: its Cluster, its
/// calendars and its Node.
fn scheduled_machine_links(object: &Value, own: &Key) -> (Vec<Target>, Vec<String>) {
    let mut terms = vec![cluster_term(&cluster_of(object, own))];
    terms.extend(schedule_terms(&object["spec"]["schedule"], own));
    terms.extend(class::terms(object, own));
    terms.extend(owner_of(object).map(set_term));
    if let Some(node) = object["status"]["nodeRef"]["name"].as_str() {
        terms.push(machine_node_term(&own.namespace, node));
    }
    let host = class::recorded_host(object);
    let host = host.map(|(class, host)| Target::Host(name::host_claim(class, host)));
    let targets = [Target::One(own.clone())].into_iter().chain(host);
    (targets.collect(), terms)
}

/// The targets of the claim of a host, and its index term: the ScheduledMachine that has it.
fn host_claim_links(object: &Value, own: &Key) -> (Vec<Target>, Vec<String>) {
    let mut targets = vec![Target::Own(own.clone())];
    let mut terms = Vec::new();
    if let Some(claim) = HostClaim::read(object) {
        let holder = Key::new(claim.holder.namespace, &claim.holder.name);
        terms.push(claims_term(&holder));
        targets.push(Target::Holder(holder));
    }
    (targets, terms)
}

impl Projection for CachedKind {
    fn mask(&self) -> &'static FieldMask {
        match self {
            Self::ScheduledMachine | Self::Class => &SCHEDULED_MACHINE,
            Self::Namespace => &mask::NAMESPACE,
            Self::HostClaim => &mask::HOST_CLAIM,
            Self::Override
            | Self::Calendar
            | Self::SpotSchedule(_)
            | Self::Set
            | Self::Capacity => &mask::SCHEDULE_INPUT,
            Self::CapacityTarget => &mask::CAPACITY_TARGET,
            Self::ProvidedSchedule(_) => &mask::PROVIDED_SCHEDULE,
            Self::Cluster => &mask::CLUSTER,
            Self::Machine => &mask::MACHINE,
            Self::Provider => &mask::PROVIDER,
            Self::Node(_) => &mask::NODE,
            Self::Pod(_) => &mask::POD,
            Self::AgentConfig(_) => &mask::AGENT_CONFIG,
        }
    }

    fn rejects_too_many_values(&self) -> bool {
        self.is_of_workload() || matches!(self, Self::ProvidedSchedule(_))
    }

    /// Prepares an object that was read [with these fields](Self::mask) for planning. The
    /// provider specs of a ScheduledMachine or a class stay if they are small, else they are
    /// replaced by their hash.
    fn complete(&self, object: &mut Value) {
        if matches!(self, Self::ScheduledMachine | Self::Class) {
            provider_specs::compact(object, provider_specs::INLINE);
        }
    }
}

impl CacheProjection for CachedKind {
    type Target = Target;

    fn cache(&self, mut object: Value, resource: &ApiResource) -> Object {
        name_kind(&mut object, resource);
        if matches!(self, Self::ScheduledMachine | Self::Class) {
            provider_specs::compact(&mut object, 0);
        }
        if *self == Self::Machine && !has_label(&object) {
            keep_identity(&mut object);
        }
        let meta = &object["metadata"];
        let own = Key::new(text(&meta["namespace"]), text(&meta["name"]));
        let (targets, terms) = self.links(&object, &own);
        Object::new(object, targets, terms)
    }
}

/// Drops what is not needed of a Machine of another owner: all but its name, its owners and the
/// Node that it refers to.
fn keep_identity(object: &mut Value) {
    let node = object["status"]["nodeRef"].clone();
    let Value::Object(fields) = object else {
        return;
    };
    fields.insert("status".to_owned(), json!({"nodeRef": node}));
    if let Some(Value::Object(meta)) = fields.get_mut("metadata") {
        meta.retain(|field, _| field != "annotations" && field != "finalizers");
    }
}

/// Whether an object has our label, with any value.
fn has_label(object: &Value) -> bool {
    object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL].is_string()
}

/// Items of a list may omit their kind.
fn name_kind(object: &mut Value, resource: &ApiResource) {
    if let Value::Object(fields) = object {
        fields
            .entry("apiVersion")
            .or_insert_with(|| Value::String(resource.api_version.clone()));
        fields
            .entry("kind")
            .or_insert_with(|| Value::String(resource.kind.clone()));
    }
}

/// The ScheduledMachine that the object's label names. If that is not the one with the object's
/// name, also this one: it waits for the name.
fn labelled_or_named(object: &Value, own: &Key) -> Vec<Target> {
    let mut targets = labelled(object, own);
    if !targets.contains(&Target::One(own.clone())) {
        targets.push(Target::Named(own.clone()));
    }
    targets
}

/// The ScheduledMachine that the object's label names.
fn labelled(object: &Value, own: &Key) -> Vec<Target> {
    let label = &object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL];
    let owner = label.as_str().filter(|owner| !owner.is_empty());
    owner
        .map(|owner| Target::One(Key::new(own.namespace.clone(), owner)))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests;

//! ScheduledMachineClass: what a platform team has prepared, and ScheduledMachines name.

mod host;
mod limits;
mod rates;

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_schedule::Duration;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::label_selector::selects;
use crate::object::{named, with_spec};
use crate::scheduled_machine::{
    InlineObject, MAX_TAINTS, MachineTemplate, NO_TIME, NodeTaint, Provisioning,
    ReclaimSpec, ScheduledMachineSpec, ShutdownSpec, default_timeout, default_timezone,
    null_is_default,
};
use crate::schema::{MAX_LABEL, MAX_NAME, MAX_SHORT};
use crate::{name, schema};

pub use host::{HostPool, merge};
pub use limits::{ClassLimits, LimitsOfClass};
pub use rates::RatesOfClass;
use rates::{MAX_ACTIVE, MAX_RATE};

/// How many Clusters a class allows at most.
pub const MAX_CLUSTERS: usize = 64;

/// How many hosts a class has at most.
pub const MAX_HOSTS: usize = 1_000;

/// A host on which a machine of the class is made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ClassHost {
    /// Name of the host, a DNS label.
    #[schemars(length(max = MAX_LABEL))]
    pub name: String,
    /// What differs on this host: a JSON merge patch (RFC 7386) of infrastructureSpec.spec, such as
    /// its address.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(schema_with = "schema::passed_on")]
    pub infrastructure: Map<String, Value>,
}

/// What machines are made from: the fields of a ScheduledMachine that are about its hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledMachineClass {
    /// Name, uid and the rest.
    pub metadata: ObjectMeta,
    /// What the machines are made from, and who may have them.
    pub spec: ScheduledMachineClassSpec,
}

/// What the machines are made from, and who may have them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineClassSpec {
    /// The names of the Clusters that machines of this class may join, each in the namespace of
    /// the ScheduledMachine. The first one is joined where the ScheduledMachine names none.
    #[schemars(length(max = MAX_CLUSTERS), inner(length(max = MAX_NAME)))]
    pub cluster_names: Vec<String>,
    /// Selects by their labels the namespaces in which the class may be used: all if absent, none if
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::namespace_selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// The bootstrap object that is created for each machine. Changes take effect at its next
    /// activation.
    #[schemars(transform = InlineObject::bootstrap)]
    pub bootstrap_spec: InlineObject,
    /// The infrastructure object that is created for each machine. Changes take effect at its
    /// next activation.
    #[schemars(transform = InlineObject::infrastructure)]
    pub infrastructure_spec: InlineObject,
    /// Additional labels, annotations and fields of the created Machines. Changes take effect at
    /// the next activation.
    #[serde(default, deserialize_with = "null_is_default")]
    pub machine_template: MachineTemplate,
    /// Taints of the Nodes while the machines are running.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_TAINTS), extend("x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub node_taints: Vec<NodeTaint>,
    /// Time limit for the whole shutdown, from the end of the window to the deletion of the
    /// Machine: digits and one of s, m, h, at most 24h. 0s means no waiting.
    #[serde(default = "default_timeout")]
    #[schemars(length(max = MAX_SHORT))]
    pub graceful_shutdown_timeout: String,
    /// Time limit for evicting the pods of the Node, within gracefulShutdownTimeout: digits and one
    /// of s, m, h, at most 24h. 0s means no waiting.
    #[serde(default = "default_timeout")]
    #[schemars(length(max = MAX_SHORT))]
    pub node_drain_timeout: String,
    /// How the machines are provisioned.
    #[serde(default, deserialize_with = "null_is_default")]
    pub provisioning: Provisioning,
    /// How the machines are shut down at the end of a window.
    #[serde(default, deserialize_with = "null_is_default")]
    pub shutdown: ShutdownSpec,
    /// When a machine returns its host to the owner at once, and when it comes back. If set, it
    /// replaces that of the machine, and its commands replace killIfCommands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<ReclaimSpec>,
    /// The hosts that machines are made on, each by at most one machine at a time. Absent: as many
    /// machines as there are, and the provider chooses their hosts. A host that is removed stays in
    /// use until its machine leaves.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = MAX_HOSTS), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub hosts: Vec<ClassHost>,
    /// What the machines of this class in one namespace may use together. Their schedules are
    /// counted, not their objects. An edit stops nothing that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ClassLimits>,
    /// The zone of the tz database in which the week of limits begins, on Monday at 00:00.
    #[serde(default = "default_timezone")]
    #[schemars(length(max = MAX_SHORT))]
    pub timezone: String,
    /// By how much the windows of machines open and close later, at most 30m. Each machine has a
    /// fixed part of it, so that not all of them begin at the same instant.
    #[serde(default = "no_time")]
    #[schemars(length(max = MAX_SHORT))]
    pub jitter: String,
    /// How many machines of the class, in all namespaces, may begin within a minute, at most 10,000.
    /// The others wait; the highest priority of a namespace comes first, and namespaces take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_RATE))]
    pub starts_per_minute: Option<u32>,
    /// How many shutdowns by schedule may begin within a minute, in all namespaces, at most 10,000.
    /// The others wait; the lowest priority of a namespace comes first, and namespaces take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_RATE))]
    pub stops_per_minute: Option<u32>,
    /// How many machines of the class, in all namespaces, stay Active at least, at most 100,000: no
    /// shutdown by schedule begins that would leave fewer. The highest priority stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_ACTIVE))]
    pub minimum_active: Option<u32>,
}

fn no_time() -> String {
    NO_TIME.to_string()
}

/// The class that a ScheduledMachine is made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ClassRef {
    /// Name of the ScheduledMachineClass.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// Name of the host of the class that the machine is made on. Without it, and if the class has
    /// hosts, the first free one by name when the window opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub host: Option<String>,
}

/// The class of a ScheduledMachine that has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedClass {
    /// Its name.
    pub name: String,
    /// The host that the machine names.
    pub host: Option<String>,
    /// The hosts of the class; `None` if it has none, or does not exist.
    pub pool: Option<Arc<HostPool>>,
    /// Its limits; `None` if it has none, or does not exist.
    pub limits: Option<Arc<LimitsOfClass>>,
    /// Its jitter; zero if it has none, or does not exist.
    pub jitter: SignedDuration,
    /// How many of its machines begin and leave in a minute, and how many stay.
    pub rates: RatesOfClass,
    /// Why no machine is created from it; `None` if one may be.
    pub problem: Option<ClassProblem>,
}

/// Why no machine is created from a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassProblem {
    /// There is no class of that name.
    NotFound,
    /// Its selector does not select the namespace.
    NamespaceNotSelected,
    /// It does not allow the Cluster; those that it allows.
    ClusterNotAllowed(Vec<String>),
    /// The machine names a host that the class does not have.
    HostNotFound(String),
}

/// A class as machines are made from it: read once for each version of its object, and shared.
#[derive(Clone, Debug)]
pub struct PreparedClass {
    /// Its spec without the hosts.
    pub spec: ScheduledMachineClassSpec,
    /// The hosts, if it has any.
    pub pool: Option<Arc<HostPool>>,
    /// The limits, if it has any.
    pub limits: Option<Arc<LimitsOfClass>>,
}

impl From<ScheduledMachineClassSpec> for PreparedClass {
    fn from(mut spec: ScheduledMachineClassSpec) -> Self {
        let hosts = std::mem::take(&mut spec.hosts);
        let pool = (!hosts.is_empty()).then(|| {
            let hosts = hosts.into_iter();
            Arc::new(hosts.map(|of| (of.name, of.infrastructure)).collect())
        });
        let limits = LimitsOfClass::of(&spec).map(Arc::new);
        Self { spec, pool, limits }
    }
}

impl ScheduledMachineClassSpec {
    /// Whether the class may be used in a namespace with these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        let selector = self.namespace_selector.as_ref();
        selector.is_none_or(|selector| selects(selector, label))
    }
}

impl ScheduledMachineSpec {
    /// Replaces the reference to a class by the fields of the class. Without a class, or without
    /// a reference to it, only the reference is replaced. `labels` are those of the namespace.
    ///
    /// What follows reads the spec of a machine and need not know about classes, except to say
    /// why nothing is created.
    pub fn resolve(
        &mut self,
        class: Option<&PreparedClass>,
        labels: &BTreeMap<String, String>,
    ) {
        let Some(ClassRef { name, host }) = self.class_ref.take() else {
            return;
        };
        let pool = class.and_then(|class| class.pool.clone());
        let limits = class.and_then(|class| class.limits.clone());
        let jitter = class.map(|class| class.spec.jitter.parse());
        let jitter: Duration = jitter.and_then(Result::ok).unwrap_or(NO_TIME);
        let rates = class.map(|class| RatesOfClass::of(&class.spec));
        let problem = match class {
            None => Some(ClassProblem::NotFound),
            Some(PreparedClass { spec, .. }) => {
                self.take_from(spec);
                let is_there =
                    |host: &&String| pool.as_ref().is_some_and(|pool| pool.has(host));
                let missing = host.as_ref().filter(|host| !is_there(host));
                let missing = missing.cloned().map(ClassProblem::HostNotFound);
                self.problem_with(spec, labels).or(missing)
            }
        };
        self.class = Some(ResolvedClass {
            name,
            host,
            pool,
            limits,
            jitter: jitter.into(),
            rates: rates.unwrap_or_default(),
            problem,
        });
    }

    fn take_from(&mut self, class: &ScheduledMachineClassSpec) {
        self.bootstrap_spec.clone_from(&class.bootstrap_spec);
        self.infrastructure_spec
            .clone_from(&class.infrastructure_spec);
        self.machine_template.clone_from(&class.machine_template);
        self.node_taints.clone_from(&class.node_taints);
        self.graceful_shutdown_timeout
            .clone_from(&class.graceful_shutdown_timeout);
        self.node_drain_timeout
            .clone_from(&class.node_drain_timeout);
        self.provisioning.clone_from(&class.provisioning);
        self.shutdown.clone_from(&class.shutdown);
        if let Some(reclaim) = &class.reclaim {
            if reclaim.commands.is_some() {
                self.kill_if_commands = None;
            }
            self.reclaim = Some(reclaim.clone());
        }
        if self.cluster_name.is_empty() {
            self.cluster_name = class.cluster_names.first().cloned().unwrap_or_default();
        }
    }

    fn problem_with(
        &self,
        class: &ScheduledMachineClassSpec,
        labels: &BTreeMap<String, String>,
    ) -> Option<ClassProblem> {
        if !class.selects(labels) {
            return Some(ClassProblem::NamespaceNotSelected);
        }
        let is_allowed = class.cluster_names.contains(&self.cluster_name);
        (!is_allowed)
            .then(|| ClassProblem::ClusterNotAllowed(class.cluster_names.clone()))
    }
}

named!(
    ScheduledMachineClass,
    scope: ClusterResourceScope,
    api_version: name::API_VERSION,
    group: name::GROUP,
    plural: name::CLASS_PLURAL
);
with_spec!(ScheduledMachineClass);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class() -> ScheduledMachineClassSpec {
        serde_json::from_value(json!({
            "clusterNames": ["prod", "staging"],
            "bootstrapSpec": {"apiVersion": "b/v1", "kind": "B", "spec": {"a": 1}},
            "infrastructureSpec": {"apiVersion": "i/v1", "kind": "I", "spec": {}},
            "machineTemplate": {"version": "v1.31.2"},
            "nodeTaints": [{"key": "desk", "effect": "NoSchedule"}],
            "gracefulShutdownTimeout": "10m",
            "nodeDrainTimeout": "2m",
            "provisioning": {"leadTime": "15m"},
            "shutdown": {"endPolicy": "CompleteByWindowEnd"},
            "reclaim": {"commands": ["steam"], "return": {"after": "30m", "maxPerDay": 2}},
        }))
        .unwrap()
    }

    fn machine(cluster: Option<&str>) -> ScheduledMachineSpec {
        serde_json::from_value(json!({
            "schedule": {}, "clusterName": cluster.unwrap_or_default(), "classRef": {"name": "desks"},
        }))
        .unwrap()
    }

    fn problem(spec: &ScheduledMachineSpec) -> Option<ClassProblem> {
        let name = spec.class.as_ref().map(|class| class.name.as_str());
        assert_eq!(name, Some("desks"));
        spec.class.clone()?.problem
    }

    #[test]
    fn a_machine_takes_everything_that_its_class_sets_and_the_first_cluster() {
        let mut spec = machine(None);
        spec.resolve(Some(&class().into()), &BTreeMap::new());
        assert_eq!(problem(&spec), None);
        assert_eq!(spec.class_ref, None);
        let inline = json!(class());
        let mut resolved = json!(spec);
        assert_eq!(resolved["clusterName"], "prod");
        let fields = resolved.as_object_mut().unwrap();
        for (field, value) in inline.as_object().unwrap() {
            if !["clusterNames", "jitter", "timezone"].contains(&field.as_str()) {
                assert_eq!(fields.get(field), Some(value), "{field}");
            }
        }
    }

    #[test]
    fn the_reclaim_of_a_class_replaces_that_of_the_machine() {
        let mut spec = machine(None);
        spec.kill_if_commands = Some(vec!["chrome".to_owned()]);
        let own = spec.clone();
        spec.resolve(Some(&class().into()), &BTreeMap::new());
        assert_eq!(spec.reclaim_commands().1, ["steam"]);
        assert_eq!(spec.kill_if_commands, None);
        let mut kept = own;
        let without = ScheduledMachineClassSpec {
            reclaim: None,
            ..class()
        };
        kept.resolve(Some(&without.into()), &BTreeMap::new());
        assert_eq!(kept.reclaim_commands().1, ["chrome"]);
    }

    #[test]
    fn a_machine_joins_only_clusters_that_its_class_allows() {
        let mut allowed = machine(Some("staging"));
        allowed.resolve(Some(&class().into()), &BTreeMap::new());
        assert_eq!(problem(&allowed), None);
        assert_eq!(allowed.cluster_name, "staging");
        let mut other = machine(Some("other"));
        other.resolve(Some(&class().into()), &BTreeMap::new());
        let names = vec!["prod".to_owned(), "staging".to_owned()];
        assert_eq!(
            problem(&other),
            Some(ClassProblem::ClusterNotAllowed(names))
        );
    }

    #[test]
    fn a_class_is_for_the_namespaces_that_its_selector_selects() {
        let labels = |team: &str| BTreeMap::from([("team".to_owned(), team.to_owned())]);
        let mut class = class();
        let resolved = |class: &ScheduledMachineClassSpec, labels: &BTreeMap<_, _>| {
            let mut spec = machine(None);
            spec.resolve(Some(&class.clone().into()), labels);
            problem(&spec)
        };
        let refused = Some(ClassProblem::NamespaceNotSelected);
        for (selector, a, b) in [
            (json!({"matchLabels": {"team": "a"}}), None, refused.clone()),
            (
                json!({"matchExpressions": [
                    {"key": "team", "operator": "NotIn", "values": ["a"]},
                ]}),
                refused.clone(),
                None,
            ),
        ] {
            class.namespace_selector = Some(serde_json::from_value(selector).unwrap());
            assert_eq!(resolved(&class, &labels("a")), a);
            assert_eq!(resolved(&class, &labels("b")), b);
        }
    }

    #[test]
    fn a_machine_names_only_hosts_that_its_class_has() {
        let resolved = |hosts: serde_json::Value, host: Option<&str>| {
            let mut class = class();
            class.hosts = serde_json::from_value(hosts).unwrap();
            let mut spec = machine(None);
            if let Some(reference) = &mut spec.class_ref {
                reference.host = host.map(str::to_owned);
            }
            spec.resolve(Some(&class.into()), &BTreeMap::new());
            spec.class.unwrap()
        };
        let desks = json!([{"name": "desk-2"}, {"name": "desk-1"}]);
        let any = resolved(desks.clone(), None);
        assert_eq!(any.problem, None);
        let names: Vec<&str> = any.pool.as_ref().unwrap().names().collect();
        assert_eq!(names, ["desk-1", "desk-2"]);
        assert_eq!(resolved(desks.clone(), Some("desk-2")).problem, None);
        let missing = Some(ClassProblem::HostNotFound("desk-9".to_owned()));
        assert_eq!(resolved(desks, Some("desk-9")).problem, missing);
        assert_eq!(resolved(json!([]), Some("desk-9")).problem, missing);
        assert_eq!(resolved(json!([]), None).pool, None);
    }

    #[test]
    fn without_its_class_a_machine_says_so_and_one_without_a_reference_is_unchanged() {
        let mut spec = machine(None);
        spec.resolve(None, &BTreeMap::new());
        assert_eq!(problem(&spec), Some(ClassProblem::NotFound));
        let mut inline = machine(Some("prod"));
        inline.class_ref = None;
        let before = inline.clone();
        inline.resolve(Some(&class().into()), &BTreeMap::new());
        assert_eq!(inline, before);
    }

    #[test]
    fn a_reclaim_disables_no_schedule_of_a_machine_that_may_return() {
        let day = Some(Duration::hours(24));
        assert_eq!(machine(None).reclaim_stop(), day, "its class was not read");
        let resolved = |class: Option<ScheduledMachineClassSpec>| {
            let mut spec = machine(None);
            spec.resolve(class.map(PreparedClass::from).as_ref(), &BTreeMap::new());
            spec.reclaim_stop()
        };
        assert_eq!(resolved(None), day, "there is no such class");
        assert_eq!(resolved(Some(class())), day, "its class lets it return");
        let mut without = class();
        without.reclaim = None;
        assert_eq!(resolved(Some(without)), None);
        let mut inline = machine(Some("prod"));
        inline.class_ref = None;
        assert_eq!(inline.reclaim_stop(), None);
    }
}

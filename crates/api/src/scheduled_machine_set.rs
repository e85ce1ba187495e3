//! ScheduledMachineSet: a number of ScheduledMachines that are alike, made from one class.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::{named, with_spec};
use crate::scheduled_machine::{
    Enforcement, ReclaimSpec, ScheduleSpec, default_priority, null_is_default,
};
use crate::schema::{MAX_LABEL, MAX_NAME, NO_GENERATION};
use crate::status::written_generation;
use crate::{name, schema};

/// How many machines a set has at most.
pub const MAX_REPLICAS: u32 = 1_000;

/// The number below which the indexes of machines are. There are as many again as a set has
/// machines, because one that is being deleted keeps its index.
pub const INDEXES: u32 = 2 * MAX_REPLICAS;

/// A number of ScheduledMachines that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledMachineSet {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// How many machines there are, and what they are like.
    pub spec: ScheduledMachineSetSpec,
    /// What was observed; absent before the first reconcile.
    pub status: Option<ScheduledMachineSetStatus>,
}

/// How many machines there are, and what they are like.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineSetSpec {
    /// How many ScheduledMachines the set has. Each is in service according to its schedule. If
    /// the number is lowered, machines that are not Active are deleted first, then those with the
    /// lowest priority, then those with the highest index.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = MAX_REPLICAS))]
    pub replicas: u32,
    /// The ScheduledMachines. A change of a field reaches machines that exist as if it were made
    /// to each of them; what was changed of one of them, and not here, stays as it is.
    pub template: SetTemplate,
}

/// The ScheduledMachines of a set.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SetTemplate {
    /// Their labels and annotations.
    #[serde(default, deserialize_with = "null_is_default")]
    pub metadata: SetMetadata,
    /// Their spec: the fields that a ScheduledMachine with a class may have.
    pub spec: MachineOfSet,
}

/// Labels and annotations of the ScheduledMachines of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct SetMetadata {
    /// Labels. Keys of Kubernetes, Cluster API and 5-Spot are reserved.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(transform = schema::map::<64, MAX_LABEL>)]
    pub labels: BTreeMap<String, String>,
    /// Annotations, at most 64 KiB of keys and values in total. The same keys as for labels are
    /// reserved.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(transform = schema::map::<64, 4096>)]
    pub annotations: BTreeMap<String, String>,
}

/// The spec of a ScheduledMachine of a set.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineOfSet {
    /// When the machines run, as in a ScheduledMachine.
    pub schedule: ScheduleSpec,
    /// Whether the machines follow their schedule, like schedule.enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The class that the machines are made from. Changes take effect at the next activation.
    pub class_ref: ClassOfSet,
    /// The Cluster API Cluster, in the same namespace, that the machines join; by default the
    /// first one of the class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = MAX_NAME))]
    pub cluster_name: String,
    /// Priority from 0 to 255, as in a ScheduledMachine.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// If true, the machines are removed immediately, without grace period and without drain.
    #[serde(default)]
    pub kill_switch: bool,
    /// Whether machines are created and removed, or what would be done is only reported.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// Commands that trigger an emergency reclaim, as in a ScheduledMachine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(max = 256)))]
    pub kill_if_commands: Option<Vec<String>>,
    /// How the owner of a host gets it back, and how it returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<ReclaimSpec>,
}

/// The class that the machines of a set are made from.
// It names no host: each machine has another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ClassOfSet {
    /// Name of the ScheduledMachineClass.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
}

/// What was observed of a set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineSetStatus {
    /// The generation of the spec that the status refers to.
    #[serde(
        default,
        deserialize_with = "written_generation",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = NO_GENERATION))]
    pub observed_generation: Option<i64>,
    /// How many ScheduledMachines the set has, without those that are being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// How many of them are Active: their Nodes are in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_replicas: Option<i32>,
    /// How many of them are Ready: in service, or rightly not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ready_replicas: Option<i32>,
    /// Selects the ScheduledMachines of the set by their labels, for the subresource scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316))]
    pub selector: Option<String>,
    /// Conditions.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(schema_with = "schema::conditions_of_scheduled_machine_set")]
    pub conditions: Vec<Condition>,
}

impl ScheduledMachineSet {
    /// The name of the machine with that index.
    pub fn machine_name(set: &str, index: u32) -> String {
        format!("{set}-{index}")
    }

    /// The index of the machine of that name. `None` if no machine of the set could have it.
    ///
    /// # Example
    /// ```
    /// use fivespot_api::ScheduledMachineSet;
    /// assert_eq!(ScheduledMachineSet::index_of("desks", "desks-7"), Some(7));
    /// assert_eq!(ScheduledMachineSet::index_of("desks", "desks-07"), None);
    /// assert_eq!(ScheduledMachineSet::index_of("desks", "desks-b-7"), None);
    /// ```
    pub fn index_of(set: &str, machine: &str) -> Option<u32> {
        let digits = machine.strip_prefix(set)?.strip_prefix('-')?;
        let index: u32 = digits.parse().ok()?;
        (index < INDEXES && digits == index.to_string()).then_some(index)
    }
}

impl SetTemplate {
    /// The template as the annotation [`name::SET_TEMPLATE_ANNOTATION`] contains it: labels,
    /// annotations and spec. Cannot fail.
    pub fn applied(&self) -> Value {
        json!({
            "labels": self.metadata.labels,
            "annotations": self.metadata.annotations,
            "spec": self.spec,
        })
    }
}

fn one() -> u32 {
    1
}

named!(
    ScheduledMachineSet,
    scope: NamespaceResourceScope,
    api_version: name::API_VERSION,
    group: name::GROUP,
    plural: name::SET_PLURAL
);
with_spec!(ScheduledMachineSet, status);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::schema::whole::{scheduled_machine, scheduled_machine_set};

    /// A field that a machine with a class may have must be one that the machines of a set may
    /// have.
    #[test]
    fn a_template_has_the_fields_that_a_class_leaves_to_a_machine() {
        let fields = |root: &Value, path: &str| -> BTreeSet<String> {
            let found = root.pointer(path).and_then(Value::as_object);
            found.into_iter().flatten().map(|it| it.0.clone()).collect()
        };
        let machine = fields(&scheduled_machine(), "/properties/spec/properties");
        let template = fields(
            &scheduled_machine_set(),
            "/properties/spec/properties/template/properties/spec/properties",
        );
        let of_class: Vec<_> = machine.difference(&template).collect();
        assert_eq!(
            of_class,
            [
                "bootstrapSpec",
                "gracefulShutdownTimeout",
                "infrastructureSpec",
                "kata",
                "machineTemplate",
                "nodeDrainTimeout",
                "nodeTaints",
                "provisioning",
                "shutdown",
            ]
        );
        assert_eq!(template.difference(&machine).count(), 0);
    }

    #[test]
    fn the_longest_name_of_a_set_leaves_room_for_every_index() {
        let set = "a".repeat(name::MAX_SET_NAME);
        let longest = ScheduledMachineSet::machine_name(&set, INDEXES - 1);
        assert_eq!(longest.len(), MAX_LABEL as usize);
        assert_eq!(
            ScheduledMachineSet::index_of(&set, &longest),
            Some(INDEXES - 1)
        );
        let none = ScheduledMachineSet::machine_name(&set, INDEXES);
        assert_eq!(ScheduledMachineSet::index_of(&set, &none), None);
    }
}

//! The ScheduledMachine itself: its identity and the status that an earlier reconcile stored.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::reclaim::FreeHost;
use fivespot_api::{ScheduledMachine, ScheduledMachineStatus, name};
use fivespot_capi::{Machine, key};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Identity, metadata and status of the ScheduledMachine that is being planned for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: Option<i64>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) is_deleting: bool,
    pub(crate) is_paused: bool,
    /// The report of a host that is free.
    pub(crate) free_host: Option<FreeHost>,
    pub(crate) status: ScheduledMachineStatus,
}

impl Subject {
    pub(crate) fn of(object: &ScheduledMachine) -> Self {
        let meta = &object.metadata;
        let annotations = meta.annotations.as_ref();
        Self {
            name: meta.name.clone().unwrap_or_default(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation,
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            is_deleting: meta.deletion_timestamp.is_some(),
            is_paused: annotations.is_some_and(|all| all.contains_key(key::PAUSED)),
            free_host: annotations
                .and_then(|all| all.get(name::HOST_FREE_ANNOTATION)?.parse().ok()),
            status: object.status.clone().unwrap_or_default(),
        }
    }

    /// Whether the object has our finalizer.
    pub(crate) fn has_finalizer(&self) -> bool {
        self.finalizers
            .iter()
            .any(|finalizer| finalizer == name::FINALIZER)
    }

    /// A condition as the stored status has it.
    pub(crate) fn reported(&self, kind: ConditionType) -> Option<&Condition> {
        condition::find(&self.status.conditions, kind)
    }

    /// Whether the stored status records this Machine.
    pub(crate) fn records(&self, machine: &Machine) -> bool {
        let recorded = self.status.machine_ref.as_ref();
        recorded.is_some_and(|of| of.uid.as_ref() == Some(&machine.meta.uid))
    }

    /// The common name of all three objects.
    pub(crate) fn child(&self) -> &str {
        name::child(&self.name)
    }
}

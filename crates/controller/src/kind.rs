//! The API resources of the kinds that the controller watches and writes.

use fivespot_api::{
    CapitalMarketsSchedule, ScheduleCalendar, ScheduleOverride, ScheduledCapacity,
    ScheduledMachine, ScheduledMachineClass, ScheduledMachineSet, TimeBasedSpotSchedule,
    name,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::api::{ApiResource, GroupVersionKind};

/// The name of the cache of a kind of the management cluster.
pub(crate) fn cache_name(resource: &ApiResource) -> String {
    format!(
        "{}.{}/{}",
        resource.plural, resource.group, resource.version
    )
}

/// ScheduledMachines, as a kind.
pub(crate) fn scheduled_machine() -> ApiResource {
    ApiResource::erase::<ScheduledMachine>(&())
}

/// ScheduledMachineClasses, as a kind.
pub(crate) fn scheduled_machine_class() -> ApiResource {
    ApiResource::erase::<ScheduledMachineClass>(&())
}

/// ScheduledMachineSets, as a kind.
pub(crate) fn scheduled_machine_set() -> ApiResource {
    ApiResource::erase::<ScheduledMachineSet>(&())
}

/// Namespaces, as a kind.
pub(crate) fn namespace() -> ApiResource {
    ApiResource::erase::<Namespace>(&())
}

/// ScheduledCapacities, as a kind.
pub(crate) fn scheduled_capacity() -> ApiResource {
    ApiResource::erase::<ScheduledCapacity>(&())
}

/// ScheduleOverrides, as a kind.
pub(crate) fn schedule_override() -> ApiResource {
    ApiResource::erase::<ScheduleOverride>(&())
}

/// ScheduleCalendars, as a kind.
pub(crate) fn schedule_calendar() -> ApiResource {
    ApiResource::erase::<ScheduleCalendar>(&())
}

/// A kind of the schedules that machines follow.
pub(crate) fn spot_schedule(kind: &str) -> ApiResource {
    if kind == name::CAPITAL_MARKETS_KIND {
        ApiResource::erase::<CapitalMarketsSchedule>(&())
    } else {
        ApiResource::erase::<TimeBasedSpotSchedule>(&())
    }
}

/// Clusters or Machines of Cluster API, as a kind.
pub(crate) fn cluster_api(contract: fivespot_capi::Contract, kind: &str) -> ApiResource {
    let group = fivespot_capi::version::GROUP;
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, contract.name(), kind))
}

/// Nodes, as a kind.
pub(crate) fn node() -> ApiResource {
    ApiResource::erase::<Node>(&())
}

/// Leases, as a kind.
pub(crate) fn lease() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

/// ConfigMaps, as a kind.
pub(crate) fn config_map() -> ApiResource {
    ApiResource::erase::<ConfigMap>(&())
}

/// Pods, as a kind.
pub(crate) fn pod() -> ApiResource {
    ApiResource::erase::<Pod>(&())
}

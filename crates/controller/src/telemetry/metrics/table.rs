//! Every metric: its name, its labels and its meaning.

use super::process;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, as Prometheus shows it.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Its meaning.
    pub help: &'static str,
}

pub(super) const fn row(
    name: &'static str,
    kind: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Row {
    Row {
        name,
        kind,
        labels,
        help,
    }
}

/// Every metric.
pub const METRICS: &[Row] = &[
    row(
        "fivespot_reconciliations_total",
        "counter",
        &["phase", "result"],
        "Reconciliations of one ScheduledMachine, by resulting phase and by result (success, or \
         failure if a step failed)",
    ),
    row(
        "fivespot_reconciliation_duration_seconds",
        "histogram",
        &["phase"],
        "Duration of a reconciliation",
    ),
    row(
        "fivespot_transition_lateness_seconds",
        "histogram",
        &[],
        "Delay between status.nextTransition and the status update with the new phase",
    ),
    row(
        "fivespot_machines_active",
        "gauge",
        &[],
        "ScheduledMachines of this replica in phase Active",
    ),
    row(
        "fivespot_machines_by_phase",
        "gauge",
        &["phase"],
        "ScheduledMachines of this replica by phase",
    ),
    row(
        "fivespot_machines_unready",
        "gauge",
        &["reason"],
        "ScheduledMachines of this replica whose condition Ready is not True, by its reason",
    ),
    row(
        "fivespot_oldest_pending_seconds",
        "gauge",
        &[],
        "How long the ScheduledMachine in phase Pending that waits longest has not been Ready",
    ),
    row(
        "fivespot_ready_lateness_seconds",
        "histogram",
        &[],
        "Time to phase Active from the opening of the window, or from when Ready became False within \
         it; 0 if a lead time was long enough",
    ),
    row(
        "fivespot_machine_seconds_total",
        "counter",
        &["namespace", "phase"],
        "Time that ScheduledMachines of this replica have spent in a phase, counted at each scrape",
    ),
    row(
        "fivespot_orphaned_machines",
        "gauge",
        &[],
        "Machines whose ScheduledMachine no longer exists; no schedule and no kill switch \
         applies to them",
    ),
    row(
        "fivespot_schedule_evaluations_total",
        "counter",
        &["result"],
        "Reconciliations by the state of the schedule: active or inactive",
    ),
    row(
        "fivespot_kill_switch_activations_total",
        "counter",
        &[],
        "Machines removed by their kill switch",
    ),
    row(
        "fivespot_spot_schedule_resolution_errors_total",
        "counter",
        &["reason"],
        "Times that the schedule which a ScheduledMachine follows became unresolved, by the reason \
         of SpotScheduleResolved",
    ),
    row(
        "fivespot_node_drains_total",
        "counter",
        &["result"],
        "Machines deleted after a drain: success if the drain finished before the deadline, else \
         failure",
    ),
    row(
        "fivespot_pod_evictions_total",
        "counter",
        &["result"],
        "Eviction requests: success, or failure if rejected",
    ),
    row(
        "fivespot_finalizer_cleanup_timeouts_total",
        "counter",
        &[],
        "Finalizers removed although objects remained, see --force-finalizer-on-timeout",
    ),
    row(
        "fivespot_errors_total",
        "counter",
        &["error_type"],
        "Failed steps and reads: kube_api, not_found, validation or timeout",
    ),
    row(
        "fivespot_api_requests_total",
        "counter",
        &["cluster", "verb", "resource", "code"],
        "Requests to API servers; code 0 means no response; cluster is management or workload",
    ),
    row(
        "fivespot_queue_depth",
        "gauge",
        &[],
        "Objects in the work queues that are due: of all kinds that the operator reconciles",
    ),
    row(
        "fivespot_is_leader",
        "gauge",
        &[],
        "1 if this replica may act on machines (leader, active shard, or without leader election), \
         else 0",
    ),
    row(
        "fivespot_capacity_is_leader",
        "gauge",
        &[],
        "1 if this replica may act on ScheduledCapacities, else 0",
    ),
    row(
        "fivespot_shards",
        "gauge",
        &[],
        "Number of shards that this replica holds; 0 without sharding",
    ),
    row(
        "fivespot_controller_info",
        "gauge",
        &["version", "instance_id"],
        "Always 1; the release and the name of a replica that reconciles machines",
    ),
    row(
        "fivespot_tzdata_info",
        "gauge",
        &["release", "source"],
        "Always 1; the release of the time zone data in use, and its source: embedded, system or \
         directory",
    ),
    process::CPU,
    process::RESIDENT,
    process::VIRTUAL,
    process::THREADS,
    process::START,
    process::OPEN_FDS,
    process::MAX_FDS,
];

//! The alerts.

use serde_json::{Value, json};

/// The runbook, with one section for each alert.
const RUNBOOK: &str =
    concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/runbook.md#");

/// One alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// `critical`: page someone now; `warning`: handle it during the day.
    pub severity: &'static str,
    /// The PromQL expression.
    pub expression: &'static str,
    /// For how long the expression must be true, in Prometheus' notation.
    pub for_duration: &'static str,
    /// What is wrong, in one sentence.
    pub summary: &'static str,
    /// The effect on machines.
    pub description: &'static str,
    /// The section of the runbook, `docs/runbook.md`.
    pub anchor: &'static str,
}

/// Every alert.
pub const ALERTS: &[Alert] = &[
    Alert {
        name: "FivespotAbsent",
        severity: "critical",
        expression: "absent(fivespot_controller_info)",
        for_duration: "5m",
        summary: "No replica of 5-Spot is scraped.",
        description: "No window opens or closes, and deletions block. Machines keep running.",
        anchor: "operator-not-ready",
    },
    Alert {
        name: "FivespotNoLeader",
        severity: "critical",
        expression: "max(fivespot_is_leader) == 0",
        for_duration: "2m",
        summary: "No replica of 5-Spot holds the Lease.",
        description: "Replicas run, but no window opens or closes until one of them holds it.",
        anchor: "no-leader",
    },
    Alert {
        name: "FivespotNoCapacityLeader",
        severity: "critical",
        expression: "max(fivespot_capacity_is_leader) == 0",
        for_duration: "2m",
        summary: "No replica of 5-Spot acts on ScheduledCapacities.",
        description: "Replicas run, but no value of another object follows its schedule.",
        anchor: "no-leader",
    },
    Alert {
        name: "FivespotMachinesPending",
        severity: "warning",
        expression: "max(fivespot_oldest_pending_seconds) > 1800",
        for_duration: "1m",
        summary: "A wanted machine has had no Ready Node for {{ $value | humanizeDuration }}.",
        description: "Its window is open. `5spot status -A` lists it, `5spot explain` shows why.",
        anchor: "machines-stay-pending",
    },
    Alert {
        name: "FivespotMachinesUnready",
        severity: "warning",
        expression: "sum by (reason) (fivespot_machines_unready{reason!~\"Provisioning|ShuttingDown|Paused|RemovalStalled\"}) > 0",
        for_duration: "15m",
        summary: "{{ $value }} machines are not ready: {{ $labels.reason }}.",
        description: "They need manual intervention; see docs/troubleshooting.md for each reason.",
        anchor: "machines-stay-pending",
    },
    Alert {
        name: "FivespotRemovalStalled",
        severity: "warning",
        expression: "sum(fivespot_machines_unready{reason=\"RemovalStalled\"}) > 0",
        for_duration: "5m",
        summary: "{{ $value }} machines could not be removed in time.",
        description: "A provider or a finalizer blocks a deletion. The message names the object.",
        anchor: "removal-stalled",
    },
    Alert {
        name: "FivespotMachinesLate",
        severity: "warning",
        expression: "histogram_quantile(0.9, sum by (le) (rate(fivespot_ready_lateness_seconds_bucket[1h]))) > 600",
        for_duration: "5m",
        summary: "Machines are Ready more than 10 minutes after their window opened.",
        description: "Consider a longer spec.provisioning.leadTime.",
        anchor: "machines-start-late",
    },
    Alert {
        name: "FivespotTransitionsLate",
        severity: "warning",
        expression: "histogram_quantile(0.99, sum by (le) (rate(fivespot_transition_lateness_seconds_bucket[30m]))) > 30",
        for_duration: "5m",
        summary: "The operator acts more than 30 seconds after a window opened or closed.",
        description: "It lacks CPU, or the API server is slow.",
        anchor: "machines-start-late",
    },
    Alert {
        name: "FivespotDrainsCutOff",
        severity: "warning",
        expression: "sum(increase(fivespot_node_drains_total{result=\"failure\"}[1h])) > 0",
        for_duration: "0m",
        summary: "Nodes were removed before all their pods had left.",
        description: "A PodDisruptionBudget or a long grace period held pods until the deadline.",
        anchor: "drains-hit-the-deadline",
    },
    Alert {
        name: "FivespotWorkloadClusterUnreachable",
        severity: "warning",
        expression: "sum(rate(fivespot_api_requests_total{cluster=\"workload\",code=~\"0|5..\"}[10m])) / sum(rate(fivespot_api_requests_total{cluster=\"workload\"}[10m])) > 0.5",
        for_duration: "10m",
        summary: "More than half of the requests to workload clusters fail.",
        description: "Their nodes are not drained or tainted by 5-Spot; Cluster API drains them.",
        anchor: "workload-cluster-unreachable",
    },
    Alert {
        name: "FivespotOrphanedMachines",
        severity: "warning",
        expression: "max(fivespot_orphaned_machines) > 0",
        for_duration: "15m",
        summary: "{{ $value }} Machines belong to a ScheduledMachine that does not exist.",
        description: "No schedule and no kill switch applies to them.",
        anchor: "orphaned-machines",
    },
    Alert {
        name: "FivespotErrors",
        severity: "warning",
        expression: "sum by (error_type) (rate(fivespot_errors_total[15m])) > 0.1",
        for_duration: "15m",
        summary: "Steps fail continuously: {{ $labels.error_type }}.",
        description: "They are retried with backoff. The log names the objects.",
        anchor: "errors",
    },
    Alert {
        name: "FivespotFinalizerReleased",
        severity: "critical",
        expression: "sum(increase(fivespot_finalizer_cleanup_timeouts_total[1h])) > 0",
        for_duration: "0m",
        summary: "A ScheduledMachine was deleted, and objects of its machine remain.",
        description: "--force-finalizer-on-timeout removed its finalizer. Delete them by hand.",
        anchor: "removal-stalled",
    },
    Alert {
        name: "FivespotWebhookCertificateExpires",
        severity: "critical",
        expression: "min(fivespot_webhook_certificate_end_timestamp_seconds > 0) - time() < 86400",
        for_duration: "10m",
        summary: "The certificate of the webhook expires within a day.",
        description: "Every change of a ScheduledMachine is rejected after that.",
        anchor: "webhook-certificate",
    },
];

/// The alerts as a Prometheus rule file. Cannot fail.
pub fn rules() -> Value {
    let rules: Vec<Value> = ALERTS.iter().map(rule).collect();
    json!({"groups": [{"name": "5spot", "rules": rules}]})
}

fn rule(alert: &Alert) -> Value {
    json!({
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.for_duration,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": format!("{RUNBOOK}{}", alert.anchor),
        },
    })
}

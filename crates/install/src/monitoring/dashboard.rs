//! The Grafana dashboard.

use serde_json::{Value, json};

/// One panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Its title.
    pub title: &'static str,
    /// `timeseries` or `stat`.
    pub kind: &'static str,
    /// The unit in Grafana's notation.
    pub unit: &'static str,
    /// Expressions, each with its legend.
    pub series: &'static [Series],
}

/// An expression and its legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// The PromQL expression.
    pub expression: &'static str,
    /// Its legend.
    pub legend: &'static str,
}

const fn series(expression: &'static str, legend: &'static str) -> Series {
    Series { expression, legend }
}

/// Every panel, in order.
pub const PANELS: &[Panel] = &[
    Panel {
        title: "Active machines",
        kind: "stat",
        unit: "short",
        series: &[series("sum(fivespot_machines_active)", "active")],
    },
    Panel {
        title: "Machines that need intervention",
        kind: "stat",
        unit: "short",
        series: &[series(
            "sum(fivespot_machines_unready{reason!~\"Provisioning|ShuttingDown|Paused\"}) or vector(0)",
            "unready",
        )],
    },
    Panel {
        title: "Longest wait for a Ready Node",
        kind: "stat",
        unit: "s",
        series: &[series("max(fivespot_oldest_pending_seconds)", "oldest")],
    },
    Panel {
        title: "Leader",
        kind: "stat",
        unit: "short",
        series: &[series("sum(fivespot_is_leader)", "leading replicas")],
    },
    Panel {
        title: "Machines by phase",
        kind: "timeseries",
        unit: "short",
        series: &[series(
            "sum by (phase) (fivespot_machines_by_phase)",
            "{{phase}}",
        )],
    },
    Panel {
        title: "Unready machines by reason",
        kind: "timeseries",
        unit: "short",
        series: &[series(
            "sum by (reason) (fivespot_machines_unready)",
            "{{reason}}",
        )],
    },
    Panel {
        title: "Machine hours per day",
        kind: "timeseries",
        unit: "h",
        series: &[series(
            "sum by (namespace, phase) (increase(fivespot_machine_seconds_total[1d])) / 3600",
            "{{namespace}} {{phase}}",
        )],
    },
    Panel {
        title: "Ready after the window opened",
        kind: "timeseries",
        unit: "s",
        series: &[
            series(
                "histogram_quantile(0.5, sum by (le) (rate(fivespot_ready_lateness_seconds_bucket[1h])))",
                "median",
            ),
            series(
                "histogram_quantile(0.95, sum by (le) (rate(fivespot_ready_lateness_seconds_bucket[1h])))",
                "95 %",
            ),
        ],
    },
    Panel {
        title: "Operator acts after a window opened or closed",
        kind: "timeseries",
        unit: "s",
        series: &[series(
            "histogram_quantile(0.99, sum by (le) (rate(fivespot_transition_lateness_seconds_bucket[30m])))",
            "99 %",
        )],
    },
    Panel {
        title: "Drains per hour",
        kind: "timeseries",
        unit: "short",
        series: &[series(
            "sum by (result) (increase(fivespot_node_drains_total[1h]))",
            "{{result}}",
        )],
    },
    Panel {
        title: "Evictions per hour",
        kind: "timeseries",
        unit: "short",
        series: &[series(
            "sum by (result) (increase(fivespot_pod_evictions_total[1h]))",
            "{{result}}",
        )],
    },
    Panel {
        title: "Reconciliations per second",
        kind: "timeseries",
        unit: "ops",
        series: &[
            series(
                "sum by (result) (rate(fivespot_reconciliations_total[5m]))",
                "{{result}}",
            ),
            series("sum(fivespot_queue_depth)", "queue"),
        ],
    },
    Panel {
        title: "API requests per second",
        kind: "timeseries",
        unit: "reqps",
        series: &[series(
            "sum by (cluster, code) (rate(fivespot_api_requests_total[5m]))",
            "{{cluster}} {{code}}",
        )],
    },
    Panel {
        title: "Memory",
        kind: "timeseries",
        unit: "bytes",
        series: &[series(
            "process_resident_memory_bytes and on (instance) fivespot_controller_info",
            "{{instance}}",
        )],
    },
];

/// Columns of Grafana's grid.
const COLUMNS: usize = 24;

/// The dashboard as JSON that Grafana imports. Cannot fail.
pub fn dashboard() -> Value {
    let (mut left, mut top) = (0, 0);
    let mut panels = Vec::new();
    for (id, panel) in PANELS.iter().enumerate() {
        let (width, height) = match panel.kind {
            "stat" => (6, 4),
            _ => (12, 8),
        };
        panels.push(panel_json(
            panel,
            id + 1,
            json!({"x": left, "y": top, "w": width, "h": height}),
        ));
        left += width;
        if left + width > COLUMNS {
            (left, top) = (0, top + height);
        }
    }
    json!({
        "title": "5-Spot",
        "uid": "fivespot",
        "tags": ["5spot", "cluster-api"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [{
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
        }]},
        "panels": panels,
    })
}

fn panel_json(panel: &Panel, id: usize, place: Value) -> Value {
    let datasource = json!({"type": "prometheus", "uid": "${datasource}"});
    let targets: Vec<Value> = panel
        .series
        .iter()
        .zip('A'..='Z')
        .map(|(series, letter)| {
            json!({
                "refId": letter.to_string(),
                "datasource": datasource,
                "expr": series.expression,
                "legendFormat": series.legend,
            })
        })
        .collect();
    json!({
        "id": id,
        "title": panel.title,
        "type": panel.kind,
        "datasource": datasource,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    })
}

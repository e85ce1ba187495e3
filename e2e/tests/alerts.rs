//! Real Prometheus (promtool) fires the shipped alerts when they should fire, and no others: for
//! series made for each alert, and for the metrics of an operator with several failures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fivespot_install::monitoring::rules;
use fivespot_testkit::{Cluster, instant, scheduled_machine};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::program;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(each_alert_fires_for_what_it_is_about)
        .with_programs(&["promtool"])
        .on_embedded_alone("is only about Prometheus"),
    promise!(a_bad_day_fires_the_alerts_that_name_its_causes)
        .with_programs(&["promtool"])
        .on_embedded_alone("scrapes every minute for hours, which needs an exact clock"),
];

/// A time series: its name with labels, and one value per minute. `None` if it is absent.
type Series = BTreeMap<String, Vec<Option<f64>>>;

/// The output of promtool for these series: one line for each alert whose state at a minute is not
/// as expected.
async fn judged(series: &Series, expected: &[(u32, &str, bool)]) -> String {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "alerts-{}-{}",
        std::process::id(),
        series.len()
    ));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("rules.yml"), rules().to_string()).unwrap();
    let inputs: Vec<Value> = series
        .iter()
        .map(|(name, values)| {
            let mut written = String::new();
            for value in values {
                let _ = match value {
                    Some(value) => write!(written, "{value} "),
                    None => write!(written, "_ "),
                };
            }
            json!({"series": name, "values": written.trim_end()})
        })
        .collect();
    let expressions: Vec<Value> = expected
        .iter()
        .map(|(minute, alert, fires)| {
            let firing = format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}");
            json!({
                "expr": format!("count({firing}) > bool 0 or vector(0)"),
                "eval_time": format!("{minute}m"),
                "exp_samples": [{"labels": "{}", "value": u32::from(*fires)}],
            })
        })
        .collect();
    let test = json!({
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": inputs,
            "promql_expr_test": expressions,
        }],
    });
    std::fs::write(folder.join("test.yml"), test.to_string()).unwrap();
    let done = tokio::process::Command::new(program::path("promtool").unwrap())
        .args(["test", "rules", "test.yml"])
        .current_dir(&folder)
        .output()
        .await
        .unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    if done.status.success() {
        return String::new();
    }
    let said = [done.stdout, done.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// `minutes` values that begin with `first` and grow by `step`.
fn growing(first: f64, step: f64, minutes: u32) -> Vec<Option<f64>> {
    (0..minutes)
        .map(|minute| Some(first + step * f64::from(minute)))
        .collect()
}

/// The series of a healthy operator.
fn well(minutes: u32) -> Series {
    let bucket = |name: &str, le: &str| format!("{name}_bucket{{le=\"{le}\"}}");
    let mut series = Series::from([
        (
            "fivespot_controller_info{version=\"1\",instance_id=\"a\"}".to_owned(),
            growing(1.0, 0.0, minutes),
        ),
        (
            "fivespot_is_leader{instance=\"a\"}".to_owned(),
            growing(1.0, 0.0, minutes),
        ),
        (
            "fivespot_capacity_is_leader{instance=\"a\"}".to_owned(),
            growing(1.0, 0.0, minutes),
        ),
        (
            "fivespot_is_leader{instance=\"b\"}".to_owned(),
            growing(0.0, 0.0, minutes),
        ),
        (
            "fivespot_oldest_pending_seconds".to_owned(),
            growing(60.0, 0.0, minutes),
        ),
        (
            "fivespot_machines_unready{reason=\"Provisioning\"}".to_owned(),
            growing(2.0, 0.0, minutes),
        ),
        (
            "fivespot_machines_unready{reason=\"RemovalStalled\"}".to_owned(),
            growing(0.0, 0.0, minutes),
        ),
        (
            "fivespot_node_drains_total{result=\"success\"}".to_owned(),
            growing(0.0, 1.0, minutes),
        ),
        (
            "fivespot_node_drains_total{result=\"failure\"}".to_owned(),
            growing(3.0, 0.0, minutes),
        ),
        (
            "fivespot_api_requests_total{cluster=\"workload\",code=\"200\"}".to_owned(),
            growing(0.0, 60.0, minutes),
        ),
        (
            "fivespot_api_requests_total{cluster=\"workload\",code=\"0\"}".to_owned(),
            growing(0.0, 1.0, minutes),
        ),
        (
            "fivespot_orphaned_machines".to_owned(),
            growing(0.0, 0.0, minutes),
        ),
        (
            "fivespot_errors_total{error_type=\"timeout\"}".to_owned(),
            growing(0.0, 0.5, minutes),
        ),
        (
            "fivespot_finalizer_cleanup_timeouts_total".to_owned(),
            growing(0.0, 0.0, minutes),
        ),
        // promtool's time begins in 1970.
        (
            "fivespot_webhook_certificate_end_timestamp_seconds".to_owned(),
            growing(2_000_000.0, 0.0, minutes),
        ),
    ]);
    for (name, bounds) in [
        (
            "fivespot_ready_lateness_seconds",
            ["300", "600", "1800", "+Inf"],
        ),
        (
            "fivespot_transition_lateness_seconds",
            ["1", "5", "60", "+Inf"],
        ),
    ] {
        for le in bounds {
            series.insert(bucket(name, le), growing(0.0, 1.0, minutes));
        }
    }
    series
}

/// The series that make an alert fire.
fn broken(alert: &str, minutes: u32) -> Vec<(&'static str, Vec<Option<f64>>)> {
    let constant = |value: f64| growing(value, 0.0, minutes);
    match alert {
        "FivespotAbsent" => {
            vec![(
                "fivespot_controller_info{version=\"1\",instance_id=\"a\"}",
                vec![None],
            )]
        }
        "FivespotNoLeader" => vec![("fivespot_is_leader{instance=\"a\"}", constant(0.0))],
        "FivespotNoCapacityLeader" => {
            vec![("fivespot_capacity_is_leader{instance=\"a\"}", constant(0.0))]
        }
        "FivespotMachinesPending" => {
            vec![("fivespot_oldest_pending_seconds", constant(3600.0))]
        }
        "FivespotMachinesUnready" => {
            vec![(
                "fivespot_machines_unready{reason=\"ClusterNotFound\"}",
                constant(1.0),
            )]
        }
        "FivespotRemovalStalled" => {
            vec![(
                "fivespot_machines_unready{reason=\"RemovalStalled\"}",
                constant(1.0),
            )]
        }
        "FivespotMachinesLate" => vec![
            (
                "fivespot_ready_lateness_seconds_bucket{le=\"300\"}",
                constant(0.0),
            ),
            (
                "fivespot_ready_lateness_seconds_bucket{le=\"600\"}",
                constant(0.0),
            ),
        ],
        "FivespotTransitionsLate" => vec![
            (
                "fivespot_transition_lateness_seconds_bucket{le=\"1\"}",
                constant(0.0),
            ),
            (
                "fivespot_transition_lateness_seconds_bucket{le=\"5\"}",
                constant(0.0),
            ),
        ],
        // The first one of a process.
        "FivespotDrainsCutOff" => {
            let mut values = growing(0.0, 0.0, minutes - 30);
            values.extend(growing(1.0, 0.0, 30));
            vec![("fivespot_node_drains_total{result=\"failure\"}", values)]
        }
        "FivespotWorkloadClusterUnreachable" => vec![(
            "fivespot_api_requests_total{cluster=\"workload\",code=\"0\"}",
            growing(0.0, 100.0, minutes),
        )],
        "FivespotOrphanedMachines" => vec![("fivespot_orphaned_machines", constant(1.0))],
        "FivespotErrors" => {
            vec![(
                "fivespot_errors_total{error_type=\"timeout\"}",
                growing(0.0, 30.0, minutes),
            )]
        }
        "FivespotFinalizerReleased" => {
            vec![(
                "fivespot_finalizer_cleanup_timeouts_total",
                growing(0.0, 0.1, minutes),
            )]
        }
        "FivespotWebhookCertificateExpires" => {
            vec![(
                "fivespot_webhook_certificate_end_timestamp_seconds",
                constant(20_000.0),
            )]
        }
        other => panic!("say what makes {other} fire"),
    }
}

/// The names of all alerts.
fn alerts() -> Vec<String> {
    let rules = rules();
    let rules = rules["groups"][0]["rules"].as_array().unwrap().iter();
    rules
        .map(|rule| rule["alert"].as_str().unwrap().to_owned())
        .collect()
}

/// Each alert, and whether it fires at a minute.
fn expected(
    alerts: &[String],
    minute: u32,
    fires: impl Fn(&str) -> bool,
) -> Vec<(u32, &str, bool)> {
    let alerts = alerts.iter();
    alerts
        .map(|alert| (minute, alert.as_str(), fires(alert)))
        .collect()
}

async fn each_alert_fires_for_what_it_is_about() {
    const MINUTES: u32 = 120;
    let alerts = alerts();
    let quiet = expected(&alerts, MINUTES - 1, |_| false);
    assert_eq!(judged(&well(MINUTES), &quiet).await, "");
    for alert in &alerts {
        let mut series = well(MINUTES);
        for (name, values) in broken(alert, MINUTES) {
            series.insert(name.to_owned(), values);
        }
        let only_this = expected(&alerts, MINUTES - 1, |other| other == alert);
        assert_eq!(judged(&series, &only_this).await, "", "{alert}");
    }
}

/// The samples of an operator's metrics.
fn samples(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name, value.parse().ok()?))
        })
}

async fn a_bad_day_fires_the_alerts_that_name_its_causes() {
    const MINUTES: u32 = 90;
    let start = instant("2026-03-06T14:05:00Z");
    let cluster = Cluster::start(start).await;
    let operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    // Its Cluster does not exist, and its spec is not corrected.
    let mut typo = scheduled_machine("typo");
    typo["spec"]["clusterName"] = json!("prodd");
    cluster.apply(&typo).await;
    let mut series = Series::new();
    for minute in 0..MINUTES {
        let now: Timestamp = start + SignedDuration::from_mins(i64::from(minute));
        cluster.advance_until(now).await;
        let text = operator.instruments().metrics();
        for (name, value) in samples(&text) {
            let values = series.entry(name.to_owned()).or_default();
            values.resize(usize::try_from(minute).unwrap(), None);
            values.push(Some(value));
        }
    }
    let named = ["FivespotMachinesUnready", "FivespotMachinesPending"];
    let alerts = alerts();
    let expected = expected(&alerts, MINUTES - 1, |alert| named.contains(&alert));
    assert_eq!(judged(&series, &expected).await, "");
}

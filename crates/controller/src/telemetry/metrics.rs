//! The metrics: one table, from which the metrics and their reference page are generated. There is no
//! global registry, because a test has several operators in one process.

mod process;
mod table;

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::failure::ErrorType;
use fivespot_runtime::http::Exchange;
use table::row;
pub use table::{METRICS, Row};

/// The reference page of the metrics.
pub fn reference() -> String {
    let mut page = "# Metrics\n\nServed at `:8080/metrics` (`--metrics-port`) in the OpenMetrics text format.\n\n\
                    | name | type | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for Row {
        name,
        kind,
        labels,
        help,
    } in METRICS
    {
        let labels: Vec<String> =
            labels.iter().map(|label| format!("`{label}`")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{name}` | {kind} | {} | {help} |",
            labels.join(", ")
        );
    }
    page
}

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;

/// The metrics of one replica.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    reconciliations: Counters<2>,
    durations: Family<Labels<1>, Histogram>,
    lateness: Histogram,
    pub(super) active: Gauge,
    pub(super) by_phase: Family<Labels<1>, Gauge>,
    pub(super) unready: Family<Labels<1>, Gauge>,
    pub(super) oldest_pending: Gauge,
    ready_lateness: Histogram,
    pub(super) machine_seconds: Family<Labels<2>, Counter<f64, AtomicU64>>,
    /// When the time in phases was last counted.
    counted_at: Mutex<Option<Timestamp>>,
    pub(super) orphans: Gauge,
    evaluations: Counters<1>,
    kill_switches: Counter,
    unresolved: Counters<1>,
    drains: Counters<1>,
    evictions: Counters<1>,
    releases: Counter,
    errors: Counters<1>,
    requests: Counters<4>,
    pub(super) queue: Gauge,
    pub(super) is_leader: Gauge,
    pub(super) capacity_is_leader: Gauge,
    pub(super) shards: Gauge,
    info: Family<Labels<2>, Gauge>,
    zones: Family<Labels<2>, Gauge>,
}

const DURATIONS: [f64; 12] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
const LATENESSES: [f64; 12] = [
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0, 300.0,
];

/// Ten seconds to two hours: the time that hosts take to boot.
const READY_LATENESSES: [f64; 10] = [
    10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0, 7_200.0,
];

impl Metrics {
    /// All metrics, at zero.
    pub(crate) fn new() -> Self {
        let durations: fn() -> Histogram = || Histogram::new(DURATIONS);
        let mut all = Register::default();
        let mut metrics = Self {
            reconciliations: all.zero("fivespot_reconciliations_total"),
            durations: all.add(
                "fivespot_reconciliation_duration_seconds",
                Family::new_with_constructor(durations),
            ),
            lateness: all.add(
                "fivespot_transition_lateness_seconds",
                Histogram::new(LATENESSES),
            ),
            active: all.zero("fivespot_machines_active"),
            by_phase: all.zero("fivespot_machines_by_phase"),
            unready: all.zero("fivespot_machines_unready"),
            oldest_pending: all.zero("fivespot_oldest_pending_seconds"),
            ready_lateness: all.add(
                "fivespot_ready_lateness_seconds",
                Histogram::new(READY_LATENESSES),
            ),
            machine_seconds: all.zero("fivespot_machine_seconds_total"),
            orphans: all.zero("fivespot_orphaned_machines"),
            evaluations: all.zero("fivespot_schedule_evaluations_total"),
            kill_switches: all.zero("fivespot_kill_switch_activations_total"),
            unresolved: all.zero("fivespot_spot_schedule_resolution_errors_total"),
            drains: all.zero("fivespot_node_drains_total"),
            evictions: all.zero("fivespot_pod_evictions_total"),
            releases: all.zero("fivespot_finalizer_cleanup_timeouts_total"),
            errors: all.zero("fivespot_errors_total"),
            requests: all.zero("fivespot_api_requests_total"),
            queue: all.zero("fivespot_queue_depth"),
            is_leader: all.zero("fivespot_is_leader"),
            capacity_is_leader: all.zero("fivespot_capacity_is_leader"),
            shards: all.zero("fivespot_shards"),
            info: all.zero("fivespot_controller_info"),
            zones: all.zero("fivespot_tzdata_info"),
            counted_at: Mutex::default(),
            registry: Registry::default(),
        };
        metrics.registry = all.0;
        metrics
            .registry
            .register_collector(Box::new(process::Process));
        metrics.begin_at_zero();
        metrics
    }

    /// Creates the counters whose labels have few values: Prometheus sees no increase in a series
    /// that begins with 1.
    fn begin_at_zero(&self) {
        for is_success in [true, false] {
            let labels = [("result", result(is_success))];
            self.drains.get_or_create(&labels).inc_by(0);
            self.evictions.get_or_create(&labels).inc_by(0);
        }
        for is_active in [true, false] {
            let labels = [evaluation(is_active)];
            self.evaluations.get_or_create(&labels).inc_by(0);
        }
        for error_type in ErrorType::ALL {
            let labels = [error_label(error_type)];
            self.errors.get_or_create(&labels).inc_by(0);
        }
    }

    /// Sets the info metrics of the time zone data and of this replica, unless it reconciles no
    /// machines: an alert fires where no replica does.
    pub(crate) fn set_info(&self, instance: Option<&str>) {
        let zones = fivespot_schedule::zone_data();
        let release = zones.release().to_owned();
        let source = zones.source().as_str().to_owned();
        let labels = [("release", release), ("source", source)];
        self.zones.get_or_create(&labels).set(1);
        if let Some(instance) = instance {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            let labels = [("version", version), ("instance_id", instance.to_owned())];
            self.info.get_or_create(&labels).set(1);
        }
    }

    /// Counts a reconcile and its duration.
    pub(crate) fn count_reconcile(
        &self,
        phase: &str,
        is_success: bool,
        took: SignedDuration,
    ) {
        let phase = ("phase", phase.to_owned());
        let labels = [phase.clone(), ("result", result(is_success))];
        self.reconciliations.get_or_create(&labels).inc();
        self.durations
            .get_or_create(&[phase])
            .observe(took.as_secs_f64().max(0.0));
    }

    /// Records how late a change of phase was stored, compared with the announced transition.
    pub(crate) fn observe_lateness(&self, by: SignedDuration) {
        self.lateness.observe(by.as_secs_f64().max(0.0));
    }

    /// Records how long after it was wanted a machine became ready; zero if a lead time was long
    /// enough.
    pub(crate) fn observe_ready_lateness(&self, after: SignedDuration) {
        self.ready_lateness.observe(after.as_secs_f64().max(0.0));
    }

    /// The time since the last call; none at the first.
    pub(super) fn since_last(&self, now: Timestamp) -> SignedDuration {
        let counted = self.counted_at.lock();
        let mut counted = counted.unwrap_or_else(PoisonError::into_inner);
        let elapsed = counted.replace(now).map(|last| now.duration_since(last));
        elapsed.unwrap_or_default().max(SignedDuration::ZERO)
    }

    /// Counts the evaluation of a schedule.
    pub(crate) fn count_evaluation(&self, is_active: bool) {
        self.evaluations
            .get_or_create(&[evaluation(is_active)])
            .inc();
    }

    /// Counts a machine that was removed by its kill switch.
    pub(crate) fn count_kill(&self) {
        self.kill_switches.inc();
    }

    /// Counts a machine whose schedule, which it follows, has become unresolved for that reason.
    pub(crate) fn count_unresolved(&self, reason: &str) {
        self.unresolved
            .get_or_create(&[("reason", reason.to_owned())])
            .inc();
    }

    /// Counts a finalizer that was removed although objects remained.
    pub(crate) fn count_finalizer_release(&self) {
        self.releases.inc();
    }

    /// Counts a Machine that was deleted after a drain.
    pub(crate) fn count_drain(&self, is_success: bool) {
        self.drains
            .get_or_create(&[("result", result(is_success))])
            .inc();
    }

    /// Counts the response to an eviction.
    pub(crate) fn count_eviction(&self, is_success: bool) {
        self.evictions
            .get_or_create(&[("result", result(is_success))])
            .inc();
    }

    /// Counts an error.
    pub(crate) fn count_error(&self, error_type: ErrorType) {
        self.errors.get_or_create(&[error_label(error_type)]).inc();
    }

    /// Counts a request to `cluster` by its response, or with code 0 if there was none.
    pub(crate) fn count_request(&self, cluster: &'static str, exchange: &Exchange<'_>) {
        let code = exchange.answer.map_or(0, |code| code.as_u16());
        let labels = [
            ("cluster", cluster.to_owned()),
            ("verb", exchange.verb.to_owned()),
            ("resource", exchange.resource.to_owned()),
            ("code", code.to_string()),
        ];
        self.requests.get_or_create(&labels).inc();
    }

    /// The metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Registers metrics under their names.
#[derive(Default)]
struct Register(Registry);

impl Register {
    fn zero<M: Metric + Clone + Default>(&mut self, name: &str) -> M {
        self.add(name, M::default())
    }

    fn add<M: Metric + Clone>(&mut self, name: &str, metric: M) -> M {
        let row = METRICS.iter().find(|row| row.name == name);
        let help = row.map_or("", |row| row.help);
        // The library adds the suffix of counters.
        let name = name.strip_suffix("_total").unwrap_or(name);
        self.0.register(name, help, metric.clone());
        metric
    }
}

fn error_label(error_type: ErrorType) -> (&'static str, String) {
    ("error_type", error_type.as_str().to_owned())
}

fn evaluation(is_active: bool) -> (&'static str, String) {
    let result = if is_active { "active" } else { "inactive" };
    ("result", result.to_owned())
}

fn result(is_success: bool) -> String {
    if is_success { "success" } else { "failure" }.to_owned()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    /// Prometheus sees no increase in a series that begins with 1.
    #[test]
    fn what_alerts_count_is_zero_before_it_first_happens() {
        let text = Metrics::new().text();
        for series in [
            "fivespot_node_drains_total{result=\"success\"}",
            "fivespot_node_drains_total{result=\"failure\"}",
            "fivespot_pod_evictions_total{result=\"success\"}",
            "fivespot_pod_evictions_total{result=\"failure\"}",
            "fivespot_schedule_evaluations_total{result=\"active\"}",
            "fivespot_schedule_evaluations_total{result=\"inactive\"}",
            "fivespot_errors_total{error_type=\"kube_api\"}",
            "fivespot_errors_total{error_type=\"not_found\"}",
            "fivespot_errors_total{error_type=\"timeout\"}",
            "fivespot_errors_total{error_type=\"validation\"}",
            "fivespot_kill_switch_activations_total",
            "fivespot_finalizer_cleanup_timeouts_total",
        ] {
            assert!(text.contains(&format!("{series} 0\n")), "{series}: {text}");
        }
    }

    #[test]
    fn exactly_the_metrics_of_the_table_are_served_with_their_labels() {
        let metrics = Metrics::new();
        let phase = || ("phase", "Active".to_owned());
        metrics.set_info(Some("pod-a"));
        metrics.count_reconcile("Active", true, SignedDuration::from_millis(3));
        metrics.observe_lateness(SignedDuration::from_millis(20));
        metrics.count_evaluation(true);
        metrics.count_unresolved("ProviderNotFound");
        metrics.count_drain(false);
        metrics.count_eviction(true);
        metrics.count_error(ErrorType::KubeApi);
        let exchange = Exchange {
            verb: "get",
            resource: "nodes",
            answer: Ok(StatusCode::OK),
        };
        metrics.count_request("management", &exchange);
        metrics.observe_ready_lateness(SignedDuration::from_mins(3));
        let labels = [("namespace", "team-a".to_owned()), phase()];
        metrics.machine_seconds.get_or_create(&labels).inc_by(60.0);
        metrics.by_phase.get_or_create(&[phase()]).set(2);
        let reason = ("reason", "Provisioning".to_owned());
        metrics.unready.get_or_create(&[reason]).set(2);
        let text = metrics.text();
        for row in METRICS {
            let stem = row.name.strip_suffix("_total").unwrap_or(row.name);
            assert!(
                text.contains(&format!("# TYPE {stem} {}\n", row.kind)),
                "{text}"
            );
            assert!(
                text.contains(&format!("# HELP {stem} {}", row.help)),
                "{text}"
            );
            for label in row.labels {
                let is_shown = text.lines().any(|line| {
                    line.starts_with(stem) && line.contains(&format!("{label}=\""))
                });
                assert!(is_shown, "{label} of {}: {text}", row.name);
            }
        }
        assert_eq!(text.matches("# TYPE").count(), METRICS.len());
    }

    #[test]
    fn time_is_counted_from_one_request_to_the_next_and_never_backwards() {
        let metrics = Metrics::new();
        let start: Timestamp = "2026-03-06T14:00:00Z".parse().unwrap();
        let after = SignedDuration::from_secs;
        let counted = [0, 30, 10, 15].map(|it| metrics.since_last(start + after(it)));
        assert_eq!(counted, [0, 30, 0, 5].map(after));
    }
}

//! The metrics of the webhook.

use std::fmt::Write as _;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::serve::ReviewObserver;
use crate::validator::Verdict;

/// Name, type, labels and help of every metric.
const METRICS: [[&str; 4]; 3] = [
    [
        "fivespot_webhook_reviews_total",
        "counter",
        "`verdict`",
        "Admission reviews by verdict: admitted, refused or malformed",
    ],
    [
        "fivespot_webhook_review_duration_seconds",
        "histogram",
        "",
        "Duration of a review, without reading the request",
    ],
    [
        "fivespot_webhook_certificate_end_timestamp_seconds",
        "gauge",
        "",
        "Expiry of the certificate that the webhook issues itself; 0 if it does not",
    ],
];

/// The page of the reference, without its header. Cannot fail.
pub fn reference() -> String {
    let mut page = "## Webhook\n\n| name | type | labels | meaning |\n\
                    |---|---|---|---|\n"
        .to_owned();
    for [name, kind, labels, help] in METRICS {
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help} |");
    }
    page
}

/// The counters of one webhook.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reviews: Family<[(&'static str, &'static str); 1], Counter>,
    took: Histogram,
    ends: Gauge<i64, AtomicI64>,
}

impl Default for Metrics {
    fn default() -> Self {
        // From 20 microseconds to a third of a second.
        let buckets = std::iter::successors(Some(2e-5), |it| Some(it * 4.0)).take(8);
        let (reviews, took) = (Family::default(), Histogram::new(buckets));
        let ends = Gauge::default();
        let [of_reviews, of_took, of_ends] = METRICS.map(|[_, _, _, help]| help);
        let mut registry = Registry::with_prefix("fivespot_webhook");
        registry.register("reviews", of_reviews, reviews.clone());
        let seconds = Unit::Seconds;
        registry.register_with_unit("review_duration", of_took, seconds, took.clone());
        let (name, seconds) = ("certificate_end_timestamp", Unit::Seconds);
        registry.register_with_unit(name, of_ends, seconds, ends.clone());
        Self {
            registry,
            reviews,
            took,
            ends,
        }
    }
}

impl Metrics {
    /// The metrics in the OpenMetrics text format. The certificate expires at `ends`.
    pub fn text(&self, ends: Option<Timestamp>) -> String {
        self.ends.set(ends.map_or(0, Timestamp::as_second));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl ReviewObserver for Metrics {
    fn reviewed(&self, verdict: Verdict, took: Duration) {
        let verdict = [("verdict", verdict.as_str())];
        self.reviews.get_or_create(&verdict).inc();
        self.took.observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_exposed_under_its_name() {
        let metrics = Metrics::default();
        metrics.reviewed(Verdict::Refused, Duration::from_micros(50));
        let text = metrics.text(Some("2026-04-05T00:00:00Z".parse().unwrap()));
        assert!(text.contains("fivespot_webhook_reviews_total{verdict=\"refused\"} 1\n"));
        let ends = "fivespot_webhook_certificate_end_timestamp_seconds 1775347200\n";
        assert!(text.contains(ends), "{text}");
        for [name, _, _, help] in METRICS {
            let family = name.trim_end_matches("_total");
            assert!(
                text.contains(&format!("# HELP {family} {help}.\n")),
                "{text}"
            );
        }
    }
}

//! The reference page of the metrics.

use fivespot_api::manifest::{GeneratedFile, PAGE_HEADER};

/// The reference page of the metrics. Cannot fail.
pub(super) fn page() -> GeneratedFile {
    let page = fivespot_controller::metrics::reference();
    let webhook = fivespot_webhook::metrics::reference();
    GeneratedFile {
        path: "metrics.md".to_owned(),
        text: format!("{PAGE_HEADER}{page}\n{webhook}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use fivespot_install::monitoring::{DASHBOARD, rules};
    use serde_json::Value;

    use super::page;

    /// The metrics that an expression uses.
    fn metric_names(expression: &str) -> BTreeSet<String> {
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let words = expression.split(|it| !is_of_name(it));
        let metrics =
            words.filter(|it| it.starts_with("fivespot_") || it.starts_with("process_"));
        metrics
            .map(|it| it.trim_end_matches("_bucket").to_owned())
            .collect()
    }

    /// The rules of a Prometheus rule file with one group.
    fn alerts(rules: &Value) -> impl Iterator<Item = &Value> {
        rules["groups"][0]["rules"].as_array().unwrap().iter()
    }

    #[test]
    fn every_metric_of_an_alert_or_a_panel_is_on_the_page() {
        let page = page().text;
        let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
        let panels = dashboard["panels"].as_array().unwrap().iter();
        let queries = panels.flat_map(|panel| {
            let targets = panel["targets"].as_array().unwrap().iter();
            targets.map(|target| (&panel["title"], &target["expr"]))
        });
        let rules = rules();
        let alerts = alerts(&rules).map(|alert| (&alert["alert"], &alert["expr"]));
        let mut count = 0;
        for (title, expression) in alerts.chain(queries) {
            let (title, expression) =
                (title.as_str().unwrap(), expression.as_str().unwrap());
            let metric_names = metric_names(expression);
            assert!(
                !metric_names.is_empty(),
                "{title} names no metric: {expression}"
            );
            for metric in metric_names {
                let row = page
                    .lines()
                    .find(|line| line.starts_with(&format!("| `{metric}` |")));
                let row = row.unwrap_or_else(|| panic!("{title}: there is no {metric}"));
                let is_histogram = row.contains("| histogram |");
                assert_eq!(is_histogram, expression.contains("_bucket"), "{title}");
                count += 1;
            }
        }
        assert!(count > 25, "{count}");
    }

    #[test]
    fn a_scrape_keeps_the_labels_of_metrics_that_the_prometheus_operator_sets_too() {
        let of_target = [
            "namespace",
            "pod",
            "service",
            "container",
            "job",
            "instance",
        ];
        let rows = fivespot_controller::metrics::METRICS.iter();
        let mut labels = rows.flat_map(|row| row.labels);
        assert!(labels.any(|label| of_target.contains(label)));
        let settings = fivespot_install::monitoring::Settings::default();
        for (monitor, endpoints) in [
            (settings.service_monitor(), "endpoints"),
            (settings.pod_monitor(), "podMetricsEndpoints"),
        ] {
            let endpoint = &monitor["spec"][endpoints][0];
            assert_eq!(endpoint["honorLabels"], true, "{monitor:#}");
        }
    }

    #[test]
    fn every_alert_has_a_section_in_the_runbook() {
        let runbook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbook.md");
        let runbook = fs::read_to_string(runbook).unwrap();
        let titles = runbook.lines().filter_map(|line| line.strip_prefix("## "));
        let anchors: BTreeSet<String> = titles
            .map(|title| title.to_lowercase().replace(' ', "-"))
            .collect();
        let page = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/runbook.md#");
        for alert in alerts(&rules()) {
            let url = alert["annotations"]["runbook_url"].as_str().unwrap();
            let anchor = url.strip_prefix(page).unwrap_or_default();
            assert!(anchors.contains(anchor), "{alert}: {anchors:?}");
        }
    }

    #[test]
    fn the_page_in_the_source_tree_lists_every_metric() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let page = page();
        let found = fs::read_to_string(tree.join(&page.path)).ok();
        let difference = page.difference(found.as_deref());
        let remedy = "cargo run --bin 5spot -- generate docs -o docs/reference";
        assert_eq!(difference, None, "run `{remedy}`");
    }
}

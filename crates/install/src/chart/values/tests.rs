use std::collections::BTreeSet;

use fivespot_api::schedule_override::MAX_OVERRIDE_DURATION;
use regex::Regex;
use serde_json::{Value, json};

use super::{each_value, markdown, schema, table, text};
use crate::capacity_target::REFUSED_GROUPS;
use crate::provider::PROVIDERS;
use crate::{chart, controller};

fn templates() -> String {
    let files = chart::files().unwrap();
    let templates = files.iter().filter(|it| it.path.starts_with("templates/"));
    templates.map(|it| it.text.as_str()).collect()
}

/// Every part of `text` between `before` and the next `after`.
fn between<'t>(text: &'t str, before: &str, after: char) -> BTreeSet<&'t str> {
    let rests = text.split(before).skip(1);
    rests.filter_map(|rest| rest.split(after).next()).collect()
}

/// The values of an enum in the schema.
fn allowed<'s>(schema: &'s Value, place: &str) -> BTreeSet<&'s str> {
    let words = schema.pointer(place).and_then(Value::as_array).unwrap();
    words.iter().map(|it| it.as_str().unwrap()).collect()
}

/// The path of each value, with its default.
fn defaults() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    each_value("", &table(), &mut |path, value| {
        all.push((path.to_owned(), value["default"].clone()));
    });
    all
}

fn default_values() -> Value {
    serde_saphyr::from_str(&text().unwrap()).unwrap()
}

/// The path of each value that a template reads, in its longest form.
fn values_read_by(templates: &str) -> BTreeSet<String> {
    let rests = templates.split("$.Values.").skip(1);
    let of_path = |it: char| it.is_ascii_alphanumeric() || it == '.';
    rests
        .map(|rest| rest.split(|it| !of_path(it)).next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_schema_allows_the_values_that_templates_compare_with() {
    let (schema, templates) = (schema(), templates());
    for (place, value) in [
        ("/properties/admission/enum", "$.Values.admission \""),
        ("/properties/nodeAccess/enum", "$.Values.nodeAccess \""),
        (
            "/properties/agent/properties/detection/enum",
            "$.Values.agent.detection \"",
        ),
    ] {
        let known = between(&templates, value, '"');
        let allowed = allowed(&schema, place);
        // At most one allowed value is in no template: the default branch.
        assert!(known.is_subset(&allowed), "{place}: {known:?}");
        assert!(allowed.len() <= known.len() + 1, "{place}: {known:?}");
    }
    let providers = allowed(&schema, "/properties/providers/items/enum");
    assert_eq!(providers, between(&templates, "if has \"", '"'));
    assert_eq!(providers, PROVIDERS.iter().map(|it| it.name).collect());
}

#[test]
fn what_the_manifests_have_is_the_default_of_the_chart_too() {
    let values = default_values();
    let network = controller::Network::default();
    let shipped = json!({
        "resources": controller::resources(),
        "egressPorts": network.egress_ports,
        "metricsNamespace": network.metrics_namespace,
        "interval": crate::monitoring::Settings::default().interval,
    });
    let of_chart = json!({
        "resources": values["resources"],
        "egressPorts": values["networkPolicy"]["egressPorts"],
        "metricsNamespace": values["networkPolicy"]["metricsNamespace"],
        "interval": values["monitoring"]["interval"],
    });
    assert_eq!(of_chart, shipped);
}

#[test]
fn the_groups_that_no_target_may_have_are_refused_by_the_schema_too() {
    let place =
        "/properties/capacity/properties/targets/items/anyOf/0/properties/group/not/enum";
    let refused = schema().pointer(place).cloned();
    assert_eq!(refused, Some(json!(REFUSED_GROUPS)));
}

#[test]
fn templates_read_exactly_the_values_of_the_schema() {
    let read = values_read_by(&templates());
    let known: BTreeSet<String> = defaults().into_iter().map(|it| it.0).collect();
    let is_read = |path: &String| {
        read.iter()
            .any(|it| it == path || path.starts_with(&format!("{it}.")))
    };
    let unread: Vec<&String> = known.iter().filter(|it| !is_read(it)).collect();
    assert_eq!(unread, Vec::<&String>::new());
    let is_known = |path: &String| {
        known
            .iter()
            .any(|it| it == path || it.starts_with(&format!("{path}.")))
    };
    let unknown: Vec<&String> = read.iter().filter(|it| !is_known(it)).collect();
    assert_eq!(unknown, Vec::<&String>::new());
}

#[test]
fn every_value_is_in_the_file_the_schema_and_the_readme() {
    let (shipped, schema, readme) = (default_values(), schema(), markdown());
    for (path, default) in defaults() {
        let pointer = format!("/{}", path.replace('.', "/"));
        assert_eq!(shipped.pointer(&pointer), Some(&default), "{pointer}");
        let place = format!("/properties{}", pointer.replace('/', "/properties/"));
        let place = place.replacen("/properties/properties/", "/properties/", 1);
        assert!(schema.pointer(&place).is_some(), "{place}");
        assert!(readme.contains(&format!("| `{path}` |")), "{readme}");
    }
}

#[test]
fn a_group_rejects_unknown_keys() {
    let schema = schema();
    for group in [
        "",
        "/properties/kubeconfigs",
        "/properties/agent/properties/image",
    ] {
        let closed = schema.pointer(&format!("{group}/additionalProperties"));
        assert_eq!(closed, Some(&json!(false)), "{group}");
        assert_ne!(
            schema.pointer(&format!("{group}/required")),
            None,
            "{group}"
        );
    }
}

#[test]
fn a_reclaim_stops_a_machine_for_as_long_as_the_operator_accepts() {
    let schema = schema();
    let pattern = schema["properties"]["reclaimByOverride"]["pattern"].as_str();
    let pattern = Regex::new(pattern.unwrap()).unwrap();
    assert!(pattern.is_match(""));
    let longest = MAX_OVERRIDE_DURATION.as_secs();
    for (unit, seconds) in [("s", 1), ("m", 60), ("h", 3600)] {
        let last = longest / seconds;
        let near_the_end = last - 1000..=last + 1000;
        let numbers = (0..20_000)
            .chain(near_the_end)
            .chain([last * 10, last * 11]);
        for number in numbers.filter(|it| *it >= 0) {
            let is_accepted = (60..=longest).contains(&(number * seconds));
            let text = format!("{number}{unit}");
            assert_eq!(pattern.is_match(&text), is_accepted, "{text}");
        }
    }
}

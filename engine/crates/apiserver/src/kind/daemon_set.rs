//! DaemonSets: validated and stored; no controller runs them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::go_struct;
use super::pod_spec::default::fill;
use super::{BuiltinKind, Write, column, rule, workload};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `daemonsets` of `apps/v1`.
#[derive(Debug)]
pub(super) struct DaemonSet;

/// The annotation with the generation of the template.
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// The numeric fields of a status.
const NUMBERS: [&str; 8] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
];

impl BuiltinKind for DaemonSet {
    fn resource(&self) -> Resource {
        Resource::new("apps", "v1", "DaemonSet", "daemonsets")
            .with_short_names(&["ds"])
            .with_category("all")
            .with_subresources(&[Subresource::Status])
            .with_columns(columns())
    }

    fn default(&self, object: &mut Value) {
        set_generation(object, generation(object));
        let spec = meta::field(meta::fields(object), "spec");
        workload::default_template(spec);
        let strategy = meta::field(spec, "updateStrategy");
        fill(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate" {
            let rolling = meta::field(strategy, "rollingUpdate");
            fill(rolling, "maxUnavailable", 1);
            fill(rolling, "maxSurge", 0);
        }
        fill(spec, "revisionHistoryLimit", 10);
    }

    fn prepare_create(&self, object: &mut Value) {
        let status = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0,
            "numberMisscheduled": 0, "numberReady": 0});
        workload::begin(object, status);
        set_generation(object, generation(object).max(1));
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        let changed = object["spec"]["template"] != old["spec"]["template"];
        set_generation(object, generation(old) + i64::from(changed));
    }

    fn prepare_subresource(&self, _: &str, object: &mut Value, old: &Value, _: &str) {
        set_generation(object, generation(old));
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            let status = Field::of(write.object, "status");
            workload::counts(&status, &NUMBERS, &mut errors);
            workload::collisions(write, &mut errors);
        } else {
            workload::same_selector(write, &mut errors);
            spec(&Field::of(write.object, "spec"), &mut errors);
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        workload::template_warnings(write, "template", workload::Name::Validated)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let counted = [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ];
        let mut cells = vec![column::name(object)];
        cells.extend(counted.map(|it| column::number(&status[it])));
        cells.push(column::labels(&spec["template"]["spec"]["nodeSelector"]));
        cells.push(column::age(object, now));
        cells.extend(workload::container_cells(&spec["template"]));
        cells.push(column::selector_text(&spec["selector"]).into());
        cells
    }
}

fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::new(
            "Desired",
            "integer",
            "The total number of nodes that should be running the daemon pod (including nodes \
             correctly running the daemon pod). More info: \
             https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
        ),
        Column::new(
            "Current",
            "integer",
            "The number of nodes that are running at least 1 daemon pod and are supposed to \
             run the daemon pod. More info: \
             https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
        ),
        Column::new(
            "Ready",
            "integer",
            "numberReady is the number of nodes that should be running the daemon pod and \
             have one or more of the daemon pod running with a Ready Condition.",
        ),
        Column::new(
            "Up-to-date",
            "integer",
            "The total number of nodes that are running updated daemon pod",
        ),
        Column::new(
            "Available",
            "integer",
            "The number of nodes that should be running the daemon pod and have one or more \
             of the daemon pod running and available (ready for at least \
             spec.minReadySeconds)",
        ),
        Column::new(
            "Node Selector",
            "string",
            "NodeSelector is a selector which must be true for the pod to fit on a node. \
             Selector which must match a node's labels for the pod to be scheduled on that \
             node. More info: \
             https://kubernetes.io/docs/concepts/configuration/assign-pod-node/",
        ),
        Column::age(),
    ];
    columns.extend(workload::container_columns());
    let selector = "A label query over pods that are managed by the daemon set. Must match in \
         order to be controlled. It must match the pod template's labels. More info: \
         https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors";
    columns.push(Column::new("Selector", "string", selector).wide());
    columns
}

fn generation(object: &Value) -> i64 {
    let value = object["metadata"]["annotations"][GENERATION].as_str();
    value.and_then(|it| it.parse().ok()).unwrap_or_default()
}

fn set_generation(object: &mut Value, generation: i64) {
    let annotations = meta::field(meta::edit(object), "annotations");
    annotations.insert(GENERATION.to_owned(), generation.to_string().into());
}

fn spec(spec: &Field<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    rule::selector(&selector, errors);
    if rule::is_readable(&selector) {
        rule::matches_template(&selector, &template, errors);
    }
    workload::empty_selector(&selector, "daemonset", errors);
    workload::running_template(&template, "DaemonSet", errors);
    rule::non_negative(&spec.child("minReadySeconds"), errors);
    strategy(&spec.child("updateStrategy"), errors);
    rule::non_negative(&spec.child("revisionHistoryLimit"), errors);
}

fn strategy(strategy: &Field<'_>, errors: &mut Errors) {
    match strategy.child("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => rolling_update(&strategy.child("rollingUpdate"), errors),
        _ => {
            let shown =
                go_struct::text(strategy.value, "apps.v1.DaemonSetUpdateStrategy");
            let known = ["RollingUpdate", "OnDelete"];
            errors.push(go_struct::not_supported(strategy, &shown, &known));
        }
    }
}

fn rolling_update(rolling: &Field<'_>, errors: &mut Errors) {
    let (unavailable, surge) =
        (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
    rule::int_or_percent(&unavailable, errors);
    rule::int_or_percent(&surge, errors);
    rule::at_most_100_percent(&unavailable, errors);
    rule::at_most_100_percent(&surge, errors);
    let any = |field: &Field<'_>| rule::int_or_percent_value(field.value) != 0;
    match (any(&unavailable), any(&surge)) {
        (true, true) => {
            let why = "may not be set when maxUnavailable is non-zero";
            errors.push(surge.invalid(why));
        }
        (false, false) => {
            errors.push(unavailable.required("cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

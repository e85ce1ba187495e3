//! Deployments: validated and stored; no controller runs them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::go_struct;
use super::pod_spec::default::fill;
use super::{BuiltinKind, StatusMetadata, Write, column, rule, workload};
use crate::meta;
use crate::resource::{Column, Resource};

/// `deployments` of `apps/v1`.
#[derive(Debug)]
pub(super) struct Deployment;

impl BuiltinKind for Deployment {
    fn resource(&self) -> Resource {
        let mut columns = vec![
            Column::new("Ready", "string", "Number of the pod with ready state"),
            Column::new(
                "Up-to-date",
                "string",
                "Total number of non-terminating pods targeted by this deployment that have \
                 the desired template spec.",
            ),
            Column::new(
                "Available",
                "string",
                "Total number of available non-terminating pods (ready for at least \
                 minReadySeconds) targeted by this deployment.",
            ),
            Column::age(),
        ];
        columns.extend(workload::container_columns());
        let selector = "Label selector for pods. Existing ReplicaSets whose pods are selected \
             by this will be the ones affected by this deployment. It must match the pod \
             template's labels.";
        columns.push(Column::new("Selector", "string", selector).wide());
        Resource::new("apps", "v1", "Deployment", "deployments")
            .with_short_names(&["deploy"])
            .with_category("all")
            .with_subresources(&workload::subresources())
            .with_columns(columns)
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        workload::default_template(spec);
        fill(spec, "replicas", 1);
        let strategy = meta::field(spec, "strategy");
        fill(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate" {
            let rolling = meta::field(strategy, "rollingUpdate");
            fill(rolling, "maxUnavailable", "25%");
            fill(rolling, "maxSurge", "25%");
        }
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "progressDeadlineSeconds", 600);
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({}));
    }

    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::Fixed(&["labels"])
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            status(write, &mut errors);
        } else {
            spec(&Field::of(write.object, "spec"), &mut errors);
            workload::same_selector(write, &mut errors);
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        workload::template_warnings(write, "template", workload::Name::InPods)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let status = &object["status"];
        let mut cells = vec![
            column::name(object),
            workload::ready(object),
            column::number(&status["updatedReplicas"]),
            column::number(&status["availableReplicas"]),
            column::age(object, now),
        ];
        cells.extend(workload::container_cells(&object["spec"]["template"]));
        cells.push(column::selector_text(&object["spec"]["selector"]).into());
        cells
    }
}

fn spec(spec: &Field<'_>, errors: &mut Errors) {
    rule::non_negative(&spec.child("replicas"), errors);
    workload::selected_template(spec, errors);
    strategy(&spec.child("strategy"), errors);
    rule::non_negative(&spec.child("minReadySeconds"), errors);
    rule::non_negative(&spec.child("revisionHistoryLimit"), errors);
    let deadline = spec.child("progressDeadlineSeconds");
    if deadline.is_set() {
        rule::non_negative(&deadline, errors);
        if deadline.count() <= spec.child("minReadySeconds").count() {
            errors.push(deadline.invalid("must be greater than minReadySeconds"));
        }
    }
}

fn strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.child("rollingUpdate");
    match strategy.child("type").text() {
        "Recreate" if rolling.is_set() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(rolling.forbidden(why));
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => {
            let shown = go_struct::text(strategy.value, "apps.v1.DeploymentStrategy");
            let known = ["Recreate", "RollingUpdate"];
            errors.push(go_struct::not_supported(strategy, &shown, &known));
        }
    }
}

fn rolling_update(rolling: &Field<'_>, errors: &mut Errors) {
    let (unavailable, surge) =
        (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
    rule::int_or_percent(&unavailable, errors);
    rule::int_or_percent(&surge, errors);
    let none = |field: &Field<'_>| rule::int_or_percent_value(field.value) == 0;
    if none(&unavailable) && none(&surge) {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
    rule::at_most_100_percent(&unavailable, errors);
}

fn status(write: &Write<'_>, errors: &mut Errors) {
    let status = Field::of(write.object, "status");
    let numbers = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
    ];
    workload::counts(&status, &numbers, errors);
    let numbers = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    workload::within_replicas(&status, &numbers, errors);
    workload::available(&status, "cannot be greater than readyReplicas", errors);
    workload::collisions(write, errors);
}

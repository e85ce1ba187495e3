//! HorizontalPodAutoscalers: validated and stored; no controller scales their targets.

mod metric;
mod v1;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::{Fields, fill, part};
use super::{BuiltinKind, Write, column, resource_name, rule, text, workload};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

pub(super) use v1::V1;

/// `horizontalpodautoscalers` of `autoscaling/v2`.
#[derive(Debug)]
pub(super) struct HorizontalPodAutoscaler;

/// The maximum stabilization window and policy period in seconds.
const MAX_WINDOW_SECONDS: i64 = 3600;
const MAX_PERIOD_SECONDS: i64 = 1800;

impl BuiltinKind for HorizontalPodAutoscaler {
    fn resource(&self) -> Resource {
        Resource::new(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        )
        .with_short_names(&["hpa"])
        .with_category("all")
        .without_generation()
        .with_subresources(&[Subresource::Status])
        .with_columns(columns())
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        fill(spec, "minReplicas", 1);
        if spec.get("metrics").is_none_or(|it| column::count(it) == 0) {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let metric = json!({"type": "Resource",
                "resource": {"name": "cpu", "target": target}});
            spec.insert("metrics".to_owned(), json!([metric]));
        }
        if let Some(behavior) = part(spec, "behavior") {
            default_rules(behavior, "scaleUp");
            default_rules(behavior, "scaleDown");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(
            object,
            json!({"currentMetrics": null, "desiredReplicas": 0}),
        );
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            let status = Field::of(write.object, "status");
            let numbers = ["currentReplicas", "desiredReplicas"];
            workload::counts(&status, &numbers, &mut errors);
        } else {
            spec(write, &mut errors);
        }
        errors
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        v1::convert(object, api_version)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let target = &spec["scaleTargetRef"];
        let reference = format!("{}/{}", text(target, "kind"), text(target, "name"));
        let least = match spec["minReplicas"].as_i64() {
            Some(number) => number.to_string(),
            None => "<unset>".to_owned(),
        };
        vec![
            column::name(object),
            reference.into(),
            metric::metrics_text(&spec["metrics"], &status["currentMetrics"]).into(),
            least.into(),
            column::number(&spec["maxReplicas"]),
            column::number(&status["currentReplicas"]),
            column::age(object, now),
        ]
    }
}

fn columns() -> Vec<Column> {
    let column = |name: &str, text: &str| Column::new(name, "string", text);
    vec![
        column(
            "Reference",
            "scaleTargetRef points to the target resource to scale, and is used to the pods \
             for which metrics should be collected, as well as to actually change the replica \
             count.",
        ),
        column(
            "Targets",
            "metrics contains the specifications for which to use to calculate the desired \
             replica count (the maximum replica count across all metrics will be used).  The \
             desired replica count is calculated multiplying the ratio between the target \
             value and the current value by the current number of pods.  Ergo, metrics used \
             must decrease as the pod count is increased, and vice-versa.  See the individual \
             metric source types for more information about how each type of metric must \
             respond. If not set, the default metric will be set to 80% average CPU \
             utilization.",
        ),
        column(
            "MinPods",
            "minReplicas is the lower limit for the number of replicas to which the \
             autoscaler can scale down.  It defaults to 1 pod.  minReplicas is allowed to be 0 \
             if the alpha feature gate HPAScaleToZero is enabled and at least one Object or \
             External metric is configured.  Scaling is active as long as at least one metric \
             value is available.",
        ),
        column(
            "MaxPods",
            "maxReplicas is the upper limit for the number of replicas to which the \
             autoscaler can scale up. It cannot be less that minReplicas.",
        ),
        column(
            "Replicas",
            "currentReplicas is current number of replicas of pods managed by this \
             autoscaler, as last seen by the autoscaler.",
        ),
        Column::age(),
    ]
}

/// Defaults the rules of one direction. Kubernetes sets them whenever `behavior` is set.
fn default_rules(behavior: &mut Fields, direction: &str) {
    let rules = meta::field(behavior, direction);
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let policies = if direction == "scaleUp" {
        fill(rules, "stabilizationWindowSeconds", 0);
        json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, percent])
    } else {
        json!([percent])
    };
    fill(rules, "selectPolicy", "Max");
    rules.entry("policies").or_insert(policies);
}

fn spec(write: &Write<'_>, errors: &mut Errors) {
    let spec = Field::of(write.object, "spec");
    let old = write.old.map(|it| Field::of(it, "spec"));
    let (least, most) = (spec.child("minReplicas"), spec.child("maxReplicas"));
    if least.is_set() && least.count() < 1 {
        errors.push(least.invalid("must be greater than or equal to 1"));
    }
    if most.count() == 0 {
        errors.push(most.required("must be set and greater than 0"));
    } else if most.count() < 0 {
        errors.push(most.invalid("must be greater than or equal to 1"));
    }
    if least.is_set() && most.count() < least.count() {
        let value = most.count().into();
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(most.path.clone(), value, why));
    }
    let target = spec.child("scaleTargetRef");
    let before = old.as_ref().map(|it| it.child("scaleTargetRef"));
    let is_same = |it: Field<'_>| {
        let fields = ["apiVersion", "kind"];
        fields.iter().all(|at| it.value[at] == target.value[at])
    };
    let version = if before.is_some_and(is_same) {
        ApiVersion::Any
    } else if target.child("kind").text() == "ReplicationController" {
        ApiVersion::Readable
    } else {
        ApiVersion::WithGroup
    };
    reference(&target, version, errors);
    let metrics = spec.child("metrics");
    let before = old.map(|it| it.child("metrics"));
    let version = if before.is_some_and(|it| metric::has_unreadable_version(&it)) {
        ApiVersion::Any
    } else {
        ApiVersion::Readable
    };
    for each in metrics.items() {
        metric::errors(&each, version, errors);
    }
    let counted = metrics
        .items()
        .any(|it| matches!(it.child("type").text(), "Object" | "External"));
    if least.is_set() && least.count() == 0 && !counted {
        let why = "must specify at least one Object or External metric to support scaling to \
             zero replicas";
        errors.push(metrics.forbidden(why));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.child("behavior").child(direction);
        if rules.is_set() {
            scaling_rules(&rules, errors);
        }
    }
}

/// Which `apiVersion` of a reference is valid (`CrossVersionObjectReferenceValidationOptions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiVersion {
    /// Every text, because the object had an invalid one before.
    Any,
    /// With at most one slash.
    Readable,
    /// As [`Readable`](Self::Readable), and with a group.
    WithGroup,
}

impl ApiVersion {
    /// Why an `apiVersion` is invalid.
    fn error(self, text: &str) -> Option<String> {
        match text.split_once('/') {
            _ if self == Self::Any => None,
            Some((_, version)) if version.contains('/') => {
                Some(format!("unexpected GroupVersion string: {text}"))
            }
            Some((group, _)) if !group.is_empty() => None,
            _ if self == Self::WithGroup => {
                Some("apiVersion must specify API group".to_owned())
            }
            _ => None,
        }
    }
}

/// Validates a reference to an object of any kind in the namespace.
pub(super) fn reference(target: &Field<'_>, version: ApiVersion, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let field = target.child(field);
        if field.text().is_empty() {
            errors.push(field.required(""));
        } else {
            rule::text(&field, name::path_segment, errors);
        }
    }
    let field = target.child("apiVersion");
    if let Some(why) = version.error(field.text()) {
        errors.push(field.invalid_text(why));
    }
}

fn scaling_rules(rules: &Field<'_>, errors: &mut Errors) {
    let window = rules.child("stabilizationWindowSeconds");
    if window.count() < 0 {
        errors.push(window.invalid("must be greater than or equal to zero"));
    } else if window.count() > MAX_WINDOW_SECONDS {
        let why = format!("must be less than or equal to {MAX_WINDOW_SECONDS}");
        errors.push(window.invalid(why));
    }
    let select = rules.child("selectPolicy");
    rule::one_of_if_set(&select, &["Disabled", "Max", "Min"], errors);
    let policies = rules.child("policies");
    if policies.len() == 0 {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        let kind = policy.child("type");
        if !["Percent", "Pods"].contains(&kind.text()) {
            errors.push(kind.not_supported(&["Percent", "Pods"]));
        }
        rule::above_zero(&policy.child("value"), errors);
        let period = policy.child("periodSeconds");
        rule::above_zero(&period, errors);
        if period.count() > MAX_PERIOD_SECONDS {
            let why = format!("must be less than or equal to {MAX_PERIOD_SECONDS}");
            errors.push(period.invalid(why));
        }
    }
    let tolerance = rules.child("tolerance");
    let amount = resource_name::quantity(tolerance.value);
    if amount.is_some_and(|it| it.signum() < 0) {
        errors.push(tolerance.invalid("must be greater than or equal to 0"));
    }
}

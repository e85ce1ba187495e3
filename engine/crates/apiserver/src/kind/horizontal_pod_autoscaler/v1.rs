//! HorizontalPodAutoscalers of `autoscaling/v1`, which has one field for a CPU target and keeps the
//! other fields in annotations (pkg/apis/autoscaling/v1/conversion.go).

mod behavior;
mod metric;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Map, Value, json};

use super::super::pod_spec::default::fill;
use super::super::{BuiltinKind, Write, column};
use super::HorizontalPodAutoscaler;
use crate::meta;
use crate::resource::Resource;

/// `horizontalpodautoscalers` of `autoscaling/v1`, stored as those of `autoscaling/v2`.
#[derive(Debug)]
pub(in crate::kind) struct V1;

pub(super) const VERSION: &str = "autoscaling/v1";
const LATEST: &str = "autoscaling/v2";

/// The field in place of the metrics of later versions.
const TARGET: &str = "targetCPUUtilizationPercentage";

/// The annotations for values without a field in this version.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const STATUSES: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

impl BuiltinKind for V1 {
    fn resource(&self) -> Resource {
        let mut resource = HorizontalPodAutoscaler.resource();
        "v1".clone_into(&mut resource.version);
        resource
    }

    fn default(&self, object: &mut Value) {
        // The default of this field comes from the conversion, which reads annotations too.
        let target = from_latest(&to_latest(object))["spec"][TARGET].take();
        let spec = meta::field(meta::fields(object), "spec");
        fill(spec, "minReplicas", 1);
        if !target.is_null() {
            fill(spec, TARGET, target);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let status = json!({"currentReplicas": 0, "desiredReplicas": 0});
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let object = to_latest(write.object);
        let old = write.old.map(to_latest);
        HorizontalPodAutoscaler.validate(&Write {
            object: &object,
            old: old.as_ref(),
            ..*write
        })
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        HorizontalPodAutoscaler.cells(&to_latest(object), now)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        convert(object, api_version)
    }
}

/// An autoscaler converted to another version.
pub(super) fn convert(object: &Value, api_version: &str) -> Option<Value> {
    match api_version {
        VERSION => Some(from_latest(object)),
        LATEST => Some(to_latest(object)),
        _ => None,
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

fn from_latest(object: &Value) -> Value {
    let mut converted = object.clone();
    let fields = meta::fields(&mut converted);
    fields.insert("apiVersion".to_owned(), VERSION.into());
    let (spec, status) = (&object["spec"], &object["status"]);
    fields.insert("spec".to_owned(), spec_from_latest(spec));
    fields.insert("status".to_owned(), status_from_latest(status));
    annotate(&mut converted, spec, status);
    converted
}

/// Whether this version has a field for the metric.
fn is_cpu_utilization(metric: &Value) -> bool {
    is_cpu(metric) && !metric["resource"]["target"]["averageUtilization"].is_null()
}

fn spec_from_latest(spec: &Value) -> Value {
    let mut converted = json!({});
    for key in ["scaleTargetRef", "minReplicas", "maxReplicas"] {
        if let Some(value) = spec.get(key) {
            converted[key] = value.clone();
        }
    }
    let mut metrics = column::list(&spec["metrics"]).iter();
    if let Some(cpu) = metrics.find(|it| is_cpu_utilization(it)) {
        let target = &cpu["resource"]["target"]["averageUtilization"];
        converted[TARGET] = target.clone();
    }
    converted
}

fn status_from_latest(status: &Value) -> Value {
    let mut converted = json!({});
    for key in ["observedGeneration", "lastScaleTime"] {
        if let Some(value) = status.get(key) {
            converted[key] = value.clone();
        }
    }
    for key in ["currentReplicas", "desiredReplicas"] {
        converted[key] = status[key].as_i64().unwrap_or_default().into();
    }
    let current = column::list(&status["currentMetrics"]).iter();
    let cpu = current.filter(|it| is_cpu(it));
    let mut cpu = cpu.map(|it| &it["resource"]["current"]["averageUtilization"]);
    if let Some(value) = cpu.rfind(|it| !it.is_null()) {
        converted["currentCPUUtilizationPercentage"] = value.clone();
    }
    converted
}

/// Writes the annotations for values without a field in this version.
fn annotate(object: &mut Value, spec: &Value, status: &Value) {
    let metrics = column::list(&spec["metrics"]).iter();
    let others: Vec<Value> = metrics
        .filter(|it| !is_cpu_utilization(it))
        .map(|it| metric::from_latest(it, &metric::SOURCES))
        .collect();
    let current = column::list(&status["currentMetrics"]).iter();
    let current: Vec<Value> = current
        .map(|it| metric::from_latest(it, &metric::CURRENT))
        .collect();
    let conditions = column::list(&status["conditions"]).iter();
    let conditions: Vec<Value> = conditions.map(condition).collect();
    write_annotation(object, METRICS, !others.is_empty(), &json!(others));
    write_annotation(object, STATUSES, !current.is_empty(), &json!(current));
    let behavior = &spec["behavior"];
    let is_set = behavior.is_object();
    write_annotation(object, BEHAVIOR, is_set, &behavior::written(behavior));
    let is_set = !conditions.is_empty();
    write_annotation(object, CONDITIONS, is_set, &json!(conditions));
}

/// Writes an annotation if it has a value.
fn write_annotation(object: &mut Value, key: &str, is_set: bool, value: &Value) {
    if is_set {
        let annotations = meta::field(meta::edit(object), "annotations");
        annotations.insert(key.to_owned(), value.to_string().into());
    }
}

/// A condition with its fields in Go's order.
fn condition(condition: &Value) -> Value {
    let mut converted = json!({"type": condition["type"], "status": condition["status"],
        "lastTransitionTime": condition["lastTransitionTime"]});
    for key in ["reason", "message"] {
        if let Some(value) = condition.get(key).filter(|it| *it != "") {
            converted[key] = value.clone();
        }
    }
    converted
}

/// The value of an annotation; `None` if it is absent or not JSON.
fn read_annotation(object: &Value, key: &str) -> Option<Value> {
    let text = object["metadata"]["annotations"][key].as_str()?;
    serde_json::from_str(text).ok()
}

/// The value of an annotation; `None` if it is not a list.
fn read_list_annotation(object: &Value, key: &str) -> Option<Value> {
    read_annotation(object, key).filter(Value::is_array)
}

fn to_latest(object: &Value) -> Value {
    let mut converted = object.clone();
    if object["apiVersion"] == LATEST {
        return converted;
    }
    let fields = meta::fields(&mut converted);
    fields.insert("apiVersion".to_owned(), LATEST.into());
    spec_to_latest(object, meta::field(fields, "spec"));
    status_to_latest(object, meta::field(fields, "status"));
    remove_annotations(&mut converted);
    converted
}

/// Converts the spec to the latest version.
fn spec_to_latest(object: &Value, spec: &mut Map<String, Value>) {
    let mut metrics: Vec<Value> = read_list_annotation(object, METRICS)
        .iter()
        .flat_map(column::list)
        .map(|it| metric::to_latest(it, &metric::SOURCES))
        .collect();
    let cpu = |utilization: &Value| {
        let target = json!({"type": "Utilization", "averageUtilization": utilization});
        json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    };
    match spec.shift_remove(TARGET) {
        Some(utilization) => metrics.push(cpu(&utilization)),
        None if metrics.is_empty() => metrics.push(cpu(&json!(80))),
        None => {}
    }
    spec.insert("metrics".to_owned(), metrics.into());
    if let Some(behavior) =
        read_annotation(object, BEHAVIOR).map(|it| behavior::read(&it))
        && behavior != json!({})
    {
        spec.insert("behavior".to_owned(), behavior);
    }
}

/// Converts the status to the latest version.
fn status_to_latest(object: &Value, status: &mut Map<String, Value>) {
    let used = status.shift_remove("currentCPUUtilizationPercentage");
    if object["status"]["currentReplicas"] == 0 {
        status.shift_remove("currentReplicas");
    }
    let current = match (read_list_annotation(object, STATUSES), used) {
        (Some(all), _) => column::list(&all)
            .iter()
            .map(|it| metric::to_latest(it, &metric::CURRENT))
            .collect(),
        (None, Some(used)) => json!([{"type": "Resource", "resource":
            {"name": "cpu", "current": {"averageUtilization": used}}}]),
        (None, None) => Value::Null,
    };
    status.insert("currentMetrics".to_owned(), current);
    if let Some(conditions) = read_list_annotation(object, CONDITIONS) {
        status.insert("conditions".to_owned(), conditions);
    }
}

/// Removes the annotations whose values have fields in the latest version.
fn remove_annotations(object: &mut Value) {
    let metadata = meta::edit(object);
    if let Some(annotations) = metadata.get_mut("annotations") {
        let annotations = meta::fields(annotations);
        for key in [METRICS, STATUSES, CONDITIONS, BEHAVIOR] {
            annotations.shift_remove(key);
        }
        if annotations.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_through_v1_loses_no_fields() {
        let rule = json!({"stabilizationWindowSeconds": 5, "selectPolicy": "Max",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]});
        let latest = json!({"apiVersion": LATEST, "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                "minReplicas": 1, "maxReplicas": 3, "behavior": {"scaleUp": rule},
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "m"},
                        "target": {"type": "AverageValue", "averageValue": "5"}}},
                    {"type": "Object", "object": {"metric": {"name": "m"},
                        "describedObject": {"kind": "Service", "name": "s"},
                        "target": {"type": "Value", "value": "5"}}},
                    {"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 70}}}]},
            "status": {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics":
                [{"type": "Resource", "resource": {"name": "cpu",
                    "current": {"averageUtilization": 40, "averageValue": "40m"}}}],
                "conditions": [{"type": "AbleToScale", "status": "True",
                    "lastTransitionTime": "2020-01-01T00:00:00Z"}]}});
        let older = from_latest(&latest);
        assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 70);
        assert_eq!(older["status"]["currentCPUUtilizationPercentage"], 40);
        assert_eq!(to_latest(&older), latest);
    }
}

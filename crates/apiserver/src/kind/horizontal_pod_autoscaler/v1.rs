//! HorizontalPodAutoscalers as `autoscaling/v1`, which has one target of the CPU and keeps the rest
//! in annotations (pkg/apis/autoscaling/v1/conversion.go).

use fivespot_admission::FieldError;
use jiff::Timestamp;
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

/// The annotations that have what this version has no fields for.
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
        let spec = meta::field(meta::fields(object), "spec");
        fill(spec, "minReplicas", 1);
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

/// An autoscaler in another version.
pub(super) fn convert(object: &Value, api_version: &str) -> Option<Value> {
    match api_version {
        VERSION => Some(from_latest(object)),
        LATEST => Some(to_latest(object)),
        _ => None,
    }
}

/// One kind of metric: its name, and where its fields are in this version and in the latest, in
/// the order of this version's. A field of a quantity that cannot be absent here is `0` then.
struct Metric {
    kind: &'static str,
    name: &'static str,
    fields: &'static [(&'static str, &'static str, Absent)],
}

#[derive(Clone, Copy, PartialEq)]
enum Absent {
    Omitted,
    Zero,
}
use Absent::{Omitted, Zero};

const SOURCES: [Metric; 5] = [
    Metric {
        kind: "Object",
        name: "object",
        fields: &[
            ("target", "describedObject", Omitted),
            ("metricName", "metric.name", Omitted),
            ("targetValue", "target.value", Zero),
            ("selector", "metric.selector", Omitted),
            ("averageValue", "target.averageValue", Omitted),
        ],
    },
    Metric {
        kind: "Pods",
        name: "pods",
        fields: &[
            ("metricName", "metric.name", Omitted),
            ("targetAverageValue", "target.averageValue", Zero),
            ("selector", "metric.selector", Omitted),
        ],
    },
    Metric {
        kind: "Resource",
        name: "resource",
        fields: &[
            ("name", "name", Omitted),
            (
                "targetAverageUtilization",
                "target.averageUtilization",
                Omitted,
            ),
            ("targetAverageValue", "target.averageValue", Omitted),
        ],
    },
    Metric {
        kind: "ContainerResource",
        name: "containerResource",
        fields: &[
            ("name", "name", Omitted),
            (
                "targetAverageUtilization",
                "target.averageUtilization",
                Omitted,
            ),
            ("targetAverageValue", "target.averageValue", Omitted),
            ("container", "container", Omitted),
        ],
    },
    Metric {
        kind: "External",
        name: "external",
        fields: &[
            ("metricName", "metric.name", Omitted),
            ("metricSelector", "metric.selector", Omitted),
            ("targetValue", "target.value", Omitted),
            ("targetAverageValue", "target.averageValue", Omitted),
        ],
    },
];

const CURRENT: [Metric; 5] = [
    Metric {
        kind: "Object",
        name: "object",
        fields: &[
            ("target", "describedObject", Omitted),
            ("metricName", "metric.name", Omitted),
            ("currentValue", "current.value", Zero),
            ("selector", "metric.selector", Omitted),
            ("averageValue", "current.averageValue", Omitted),
        ],
    },
    Metric {
        kind: "Pods",
        name: "pods",
        fields: &[
            ("metricName", "metric.name", Omitted),
            ("currentAverageValue", "current.averageValue", Zero),
            ("selector", "metric.selector", Omitted),
        ],
    },
    Metric {
        kind: "Resource",
        name: "resource",
        fields: &[
            ("name", "name", Omitted),
            (
                "currentAverageUtilization",
                "current.averageUtilization",
                Omitted,
            ),
            ("currentAverageValue", "current.averageValue", Zero),
        ],
    },
    Metric {
        kind: "ContainerResource",
        name: "containerResource",
        fields: &[
            ("name", "name", Omitted),
            (
                "currentAverageUtilization",
                "current.averageUtilization",
                Omitted,
            ),
            ("currentAverageValue", "current.averageValue", Zero),
            ("container", "container", Omitted),
        ],
    },
    Metric {
        kind: "External",
        name: "external",
        fields: &[
            ("metricName", "metric.name", Omitted),
            ("metricSelector", "metric.selector", Omitted),
            ("currentValue", "current.value", Zero),
            ("currentAverageValue", "current.averageValue", Omitted),
        ],
    },
];

/// A metric of the latest version in this one.
fn metric_from(metric: &Value, all: &[Metric]) -> Value {
    let mut made = json!({"type": metric["type"]});
    let found = all.iter().find(|it| metric["type"] == it.kind);
    if let Some(known) = found {
        let mut fields = Map::new();
        for (own, latest, absent) in known.fields {
            let path = latest.split('.');
            let value = path.fold(&metric[known.name], |at, name| &at[name]);
            if !value.is_null() {
                fields.insert((*own).to_owned(), value.clone());
            } else if *absent == Zero {
                fields.insert((*own).to_owned(), "0".into());
            }
        }
        made[known.name] = fields.into();
    }
    made
}

/// A metric of this version in the latest.
fn metric_to(metric: &Value, all: &[Metric]) -> Value {
    let mut made = json!({"type": metric["type"]});
    let found = all.iter().find(|it| metric["type"] == it.kind);
    if let Some(known) = found {
        let mut fields = json!({});
        for (own, latest, _) in known.fields {
            let value = &metric[known.name][own];
            if value.is_null() {
                continue;
            }
            match latest.split_once('.') {
                Some((part, name)) => fields[part][name] = value.clone(),
                None => fields[*latest] = value.clone(),
            }
        }
        if let Some(target) = fields.get_mut("target").filter(|it| it.is_object()) {
            let kind = target_kind(known.kind, target);
            target["type"] = kind.into();
        }
        made[known.name] = fields;
    }
    made
}

/// What a target is compared with.
fn target_kind(metric: &str, target: &mut Value) -> &'static str {
    if target.get("averageUtilization").is_some() {
        return "Utilization";
    }
    let has_average = target.get("averageValue").is_some();
    if metric == "Object" && has_average {
        // This version cannot leave out a value, which is zero then.
        if target["value"] == "0" {
            meta::fields(target).shift_remove("value");
        }
        return "AverageValue";
    }
    if target.get("value").is_some() {
        "Value"
    } else {
        "AverageValue"
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

fn from_latest(object: &Value) -> Value {
    let mut made = object.clone();
    let fields = meta::fields(&mut made);
    fields.insert("apiVersion".to_owned(), VERSION.into());
    let (spec, status) = (&object["spec"], &object["status"]);
    let metrics = column::list(&spec["metrics"]);
    let utilization = |it: &&Value| {
        is_cpu(it) && !it["resource"]["target"]["averageUtilization"].is_null()
    };
    let mut kept = json!({});
    for key in ["scaleTargetRef", "minReplicas", "maxReplicas"] {
        if let Some(value) = spec.get(key) {
            kept[key] = value.clone();
        }
    }
    if let Some(cpu) = metrics.iter().find(utilization) {
        let target = &cpu["resource"]["target"]["averageUtilization"];
        kept["targetCPUUtilizationPercentage"] = target.clone();
    }
    fields.insert("spec".to_owned(), kept);
    let mut kept = json!({});
    for key in ["observedGeneration", "lastScaleTime"] {
        if let Some(value) = status.get(key) {
            kept[key] = value.clone();
        }
    }
    for key in ["currentReplicas", "desiredReplicas"] {
        kept[key] = status[key].as_i64().unwrap_or_default().into();
    }
    let current = column::list(&status["currentMetrics"]);
    let cpu = current.iter().filter(|it| is_cpu(it));
    let mut cpu = cpu.map(|it| &it["resource"]["current"]["averageUtilization"]);
    if let Some(value) = cpu.rfind(|it| !it.is_null()) {
        kept["currentCPUUtilizationPercentage"] = value.clone();
    }
    fields.insert("status".to_owned(), kept);
    let others: Vec<Value> = metrics
        .iter()
        .filter(|it| !utilization(it))
        .map(|it| metric_from(it, &SOURCES))
        .collect();
    let current: Vec<Value> =
        current.iter().map(|it| metric_from(it, &CURRENT)).collect();
    let conditions = column::list(&status["conditions"]).iter();
    let conditions: Vec<Value> = conditions.map(condition).collect();
    note(&mut made, METRICS, !others.is_empty(), &json!(others));
    note(&mut made, STATUSES, !current.is_empty(), &json!(current));
    let behavior = &spec["behavior"];
    note(
        &mut made,
        BEHAVIOR,
        behavior.is_object(),
        &written(behavior),
    );
    note(
        &mut made,
        CONDITIONS,
        !conditions.is_empty(),
        &json!(conditions),
    );
    made
}

/// Writes an annotation where there is something to say.
fn note(object: &mut Value, key: &str, is_said: bool, value: &Value) {
    if is_said {
        let annotations = meta::field(meta::edit(object), "annotations");
        annotations.insert(key.to_owned(), value.to_string().into());
    }
}

/// A condition with its fields in Go's order.
fn condition(condition: &Value) -> Value {
    let mut made = json!({"type": condition["type"], "status": condition["status"],
        "lastTransitionTime": condition["lastTransitionTime"]});
    for key in ["reason", "message"] {
        if let Some(value) = condition.get(key).filter(|it| *it != "") {
            made[key] = value.clone();
        }
    }
    made
}

/// The fields of a behavior, whose annotation has the names of a Go type.
const DIRECTIONS: [(&str, &str); 2] =
    [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];
const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [
    ("Type", "type"),
    ("Value", "value"),
    ("PeriodSeconds", "periodSeconds"),
];

fn renamed<'a>(
    value: &Value,
    names: impl Iterator<Item = (&'a str, &'a str)>,
    is_complete: bool,
    inner: impl Fn(&Value) -> Value,
) -> Value {
    let mut made = json!({});
    for (from, to) in names {
        let found = value.get(from).unwrap_or(&Value::Null);
        if is_complete || !found.is_null() {
            made[to] = inner(found);
        }
    }
    made
}

fn written(behavior: &Value) -> Value {
    let back = |names: &'static [(&str, &str)]| {
        names.iter().map(|(own, latest)| (*latest, *own))
    };
    let policies = |found: &Value| match found {
        Value::Array(all) => all
            .iter()
            .map(|it| renamed(it, back(&POLICY), true, Value::clone))
            .collect(),
        other => other.clone(),
    };
    renamed(behavior, back(&DIRECTIONS), true, |rules| match rules {
        Value::Null => Value::Null,
        rules => renamed(rules, back(&RULES), true, policies),
    })
}

fn read(behavior: &Value) -> Value {
    let policies = |found: &Value| match found {
        Value::Array(all) => all
            .iter()
            .map(|it| renamed(it, POLICY.into_iter(), false, Value::clone))
            .collect(),
        other => other.clone(),
    };
    renamed(behavior, DIRECTIONS.into_iter(), false, |rules| {
        renamed(rules, RULES.into_iter(), false, policies)
    })
}

/// What an annotation says; none where it is not there or no JSON.
fn noted(object: &Value, key: &str) -> Option<Value> {
    let text = object["metadata"]["annotations"][key].as_str()?;
    serde_json::from_str(text).ok()
}

fn to_latest(object: &Value) -> Value {
    let mut made = object.clone();
    if object["apiVersion"] == LATEST {
        return made;
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    let list = |key: &str| noted(object, key).filter(Value::is_array);
    let mut metrics: Vec<Value> = list(METRICS)
        .iter()
        .flat_map(column::list)
        .map(|it| metric_to(it, &SOURCES))
        .collect();
    let cpu = |utilization: &Value| {
        let target = json!({"type": "Utilization", "averageUtilization": utilization});
        json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    };
    match spec.get("targetCPUUtilizationPercentage") {
        Some(utilization) => metrics.push(cpu(utilization)),
        None if metrics.is_empty() => metrics.push(cpu(&json!(80))),
        None => {}
    }
    let fields = meta::fields(&mut made);
    fields.insert("apiVersion".to_owned(), LATEST.into());
    let own = meta::field(fields, "spec");
    own.shift_remove("targetCPUUtilizationPercentage");
    own.insert("metrics".to_owned(), metrics.into());
    if let Some(behavior) = noted(object, BEHAVIOR).map(|it| read(&it))
        && behavior != json!({})
    {
        own.insert("behavior".to_owned(), behavior);
    }
    let own = meta::field(fields, "status");
    let used = own.shift_remove("currentCPUUtilizationPercentage");
    if status["currentReplicas"] == 0 {
        own.shift_remove("currentReplicas");
    }
    let current = match (list(STATUSES), used) {
        (Some(all), _) => column::list(&all)
            .iter()
            .map(|it| metric_to(it, &CURRENT))
            .collect(),
        (None, Some(used)) => json!([{"type": "Resource", "resource":
            {"name": "cpu", "current": {"averageUtilization": used}}}]),
        (None, None) => Value::Null,
    };
    own.insert("currentMetrics".to_owned(), current);
    if let Some(conditions) = list(CONDITIONS) {
        own.insert("conditions".to_owned(), conditions);
    }
    let metadata = meta::edit(&mut made);
    if let Some(annotations) = metadata.get_mut("annotations") {
        let annotations = meta::fields(annotations);
        for key in [METRICS, STATUSES, CONDITIONS, BEHAVIOR] {
            annotations.shift_remove(key);
        }
        if annotations.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way_through_the_older_version() {
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

//! Conversion of metrics between `autoscaling/v1`, which keeps them in annotations, and the latest
//! version.

use serde_json::{Map, Value, json};

use crate::meta;
use AbsentField::{Omitted, Zero};

/// One kind of metric: its name, and the paths of its fields in this version and in the latest, in
/// the order of this version.
pub(super) struct Metric {
    kind: &'static str,
    name: &'static str,
    fields: &'static [(&'static str, &'static str, AbsentField)],
}

/// How a field that is absent in the latest version is written in this one: omitted or `0`.
#[derive(Clone, Copy, PartialEq)]
enum AbsentField {
    Omitted,
    Zero,
}

/// The metrics that an autoscaler scales by (`MetricSpec`).
pub(super) const SOURCES: [Metric; 5] = [
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

/// The last measured metrics (`MetricStatus`).
pub(super) const CURRENT: [Metric; 5] = [
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

/// A metric of the latest version, converted to this one.
pub(super) fn from_latest(metric: &Value, all: &[Metric]) -> Value {
    let mut converted = json!({"type": metric["type"]});
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
        converted[known.name] = fields.into();
    }
    converted
}

/// A metric of this version, converted to the latest.
pub(super) fn to_latest(metric: &Value, all: &[Metric]) -> Value {
    let mut converted = json!({"type": metric["type"]});
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
        converted[known.name] = fields;
    }
    converted
}

/// The type of a metric target.
fn target_kind(metric: &str, target: &mut Value) -> &'static str {
    if target.get("averageUtilization").is_some() {
        return "Utilization";
    }
    let has_average = target.get("averageValue").is_some();
    if metric == "Object" && has_average {
        // This version cannot omit a value; an absent one is zero.
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

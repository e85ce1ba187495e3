//! The metrics of an autoscaler.

use kubemu_admission::{FieldError, name};
use serde_json::Value;

use super::{ApiVersion, reference};
use crate::kind::field::{Errors, Field};
use crate::kind::{column, resource_name, rule};

/// Metric sources in the order of Kubernetes' checks, with their types.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

const TYPES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

/// Validates a metric: its type, and that only the source of that type is set.
pub(super) fn errors(metric: &Field<'_>, version: ApiVersion, errors: &mut Errors) {
    let kind = metric.child("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric source type"));
    }
    let is_known = TYPES.contains(&kind.text());
    if !is_known {
        errors.push(kind.not_supported(TYPES));
    }
    let present = SOURCES.iter().filter(|it| metric.child(it.0).is_set());
    let present: Vec<&str> = present.map(|it| it.0).collect();
    if let Some(first) = present.first() {
        source((first, version), &metric.child(first), errors);
    }
    let expected = SOURCES.iter().find(|it| it.1 == kind.text()).map(|it| it.0);
    if let Some(expected) = expected.filter(|it| !present.contains(it)) {
        let why = "must populate information for the given metric source";
        errors.push(metric.child(expected).required(why));
    }
    if !is_known {
        errors.push(kind.not_supported(TYPES));
    }
    if present.len() == 1 {
        return;
    }
    for other in present.iter().filter(|it| Some(**it) != expected) {
        let why = "must populate the given metric source only";
        errors.push(metric.child(other).forbidden(why));
    }
}

/// Whether a metric refers to an object with an `apiVersion` that cannot be read.
pub(super) fn has_unreadable_version(metrics: &Field<'_>) -> bool {
    let objects = metrics
        .items()
        .filter(|it| it.child("type").text() == "Object");
    let mut objects = objects.filter(|it| it.child("object").is_set());
    objects.any(|it| {
        let version = it.child("object.describedObject.apiVersion");
        ApiVersion::Readable.error(version.text()).is_some()
    })
}

fn source((name, version): (&str, ApiVersion), source: &Field<'_>, errors: &mut Errors) {
    let target = source.child("target");
    let (value, average) = (target.child("value"), target.child("averageValue"));
    match name {
        "object" => {
            reference(&source.child("describedObject"), version, errors);
            identifier(source, errors);
            self::target(&target, errors);
            if !value.is_set() && !average.is_set() {
                let why = "must set either a target value or averageValue";
                errors.push(average.required(why));
            }
        }
        "external" => {
            identifier(source, errors);
            self::target(&target, errors);
            if !value.is_set() && !average.is_set() {
                let why = "must set either a target value for metric or a per-pod target";
                errors.push(average.required(why));
            }
            if value.is_set() && average.is_set() {
                let why =
                    "may not set both a target value for metric and a per-pod target";
                errors.push(value.forbidden(why));
            }
        }
        "pods" => {
            identifier(source, errors);
            self::target(&target, errors);
            if !average.is_set() {
                let why = "must specify a positive target averageValue";
                errors.push(average.required(why));
            }
        }
        _ => of_resource(name, source, errors),
    }
}

fn of_resource(kind: &str, source: &Field<'_>, errors: &mut Errors) {
    let resource = source.child("name");
    if resource.text().is_empty() {
        errors.push(resource.required("must specify a resource name"));
    } else if kind == "containerResource" {
        let path = resource.path.to_string();
        let found = resource_name::container_name_errors(resource.text(), &path);
        errors.extend(found);
    }
    if kind == "containerResource" {
        let container = source.child("container");
        if container.text().is_empty() {
            errors.push(container.required("must specify a container"));
        } else {
            rule::text(&container, name::dns_label, errors);
        }
    }
    let target = source.child("target");
    self::target(&target, errors);
    let share = target.child("averageUtilization");
    let average = target.child("averageValue");
    if !share.is_set() && !average.is_set() {
        let why = "must set either a target raw value or a target utilization";
        errors.push(share.required(why));
    }
    if share.is_set() && average.is_set() {
        let why = "may not set both a target raw value and a target utilization";
        errors.push(average.forbidden(why));
    }
}

fn identifier(source: &Field<'_>, errors: &mut Errors) {
    let name = source.child("metric.name");
    if name.text().is_empty() {
        errors.push(name.required("must specify a metric name"));
    } else {
        rule::text(&name, name::path_segment, errors);
    }
}

fn target(target: &Field<'_>, errors: &mut Errors) {
    let kind = target.child("type");
    if kind.text().is_empty() {
        errors.push(kind.required("must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind.text()) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(kind.invalid_text(why));
    }
    for name in ["value", "averageValue"] {
        let field = target.child(name);
        let amount = resource_name::quantity(field.value);
        if let Some(amount) = amount.filter(|it| it.signum() < 1) {
            let actual = amount.to_string().into();
            let path = field.path.clone();
            errors.push(FieldError::invalid(path, actual, "must be positive"));
        }
    }
    let share = target.child("averageUtilization");
    if share.is_set() && share.count() < 1 {
        errors.push(share.invalid("must be greater than 0"));
    }
}

/// The first two metrics with their current and target values.
pub(super) fn metrics_text(metrics: &Value, current: &Value) -> String {
    const MAX_SHOWN: usize = 2;
    let all = column::list(metrics);
    if all.is_empty() {
        return "<none>".to_owned();
    }
    let current = column::list(current);
    let none = Value::Null;
    let lines = all.iter().enumerate().take(MAX_SHOWN);
    let lines = lines.map(|(index, it)| line(it, current.get(index).unwrap_or(&none)));
    let text = lines.collect::<Vec<_>>().join(", ");
    if all.len() > MAX_SHOWN {
        return format!("{text} + {} more...", all.len() - MAX_SHOWN);
    }
    text
}

fn line(metric: &Value, current: &Value) -> String {
    const UNKNOWN: &str = "<unknown>";
    let kind = metric["type"].as_str().unwrap_or_default();
    let Some((field, _)) = SOURCES.iter().find(|it| it.1 == kind) else {
        return "<unknown type>".to_owned();
    };
    let (target, now) = (&metric[field]["target"], &current[field]["current"]);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let known = |value: &Value| text(value).unwrap_or_else(|| UNKNOWN.to_owned());
    let average = text(&target["averageValue"]);
    let of_resource = matches!(kind, "Resource" | "ContainerResource");
    let name = metric[field]["name"].as_str().unwrap_or_default();
    match average {
        Some(average) if of_resource => {
            format!("{name}: {}/{average}", known(&now["averageValue"]))
        }
        Some(average) if kind == "Pods" => {
            format!("{}/{average}", known(&now["averageValue"]))
        }
        Some(average) => format!("{}/{average} (avg)", known(&now["averageValue"])),
        None if of_resource => {
            let share = |value: &Value, absent: &str| match value.as_i64() {
                Some(number) => format!("{number}%"),
                None => absent.to_owned(),
            };
            let field = "averageUtilization";
            let now = share(&now[field], UNKNOWN);
            format!("{name}: {now}/{}", share(&target[field], "<auto>"))
        }
        None => {
            let requested = text(&target["value"]).unwrap_or_default();
            format!("{}/{requested}", known(&now["value"]))
        }
    }
}

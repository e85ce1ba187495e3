//! LimitRanges. The plugin LimitRanger applies them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::{FieldError, Quantity, name};
use serde_json::{Map, Value};

use super::{BuiltinKind, Write, column, items, resource_name, text};
use crate::meta;
use crate::resource::{Column, Resource};

/// `limitranges` of `v1`.
#[derive(Debug)]
pub(super) struct LimitRange;

/// The lists of one limit.
const LISTS: [&str; 5] = [
    "max",
    "min",
    "default",
    "defaultRequest",
    "maxLimitRequestRatio",
];

impl BuiltinKind for LimitRange {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "LimitRange", "limitranges")
            .with_short_names(&["limits"])
            .without_generation()
            .allow_create_on_update()
            .with_columns(vec![Column::created_at()])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let limits = object.pointer_mut("/spec/limits");
        let limits = limits.and_then(Value::as_array_mut);
        let limits = limits.into_iter().flatten();
        limits.filter_map(Value::as_object_mut).for_each(fill_in);
    }

    /// A LimitRange without a name gets its uid as the name.
    fn prepare_create(&self, object: &mut Value) {
        if meta::name(object).is_empty() {
            let name = meta::uid(object).to_owned();
            meta::set(object, "name", name);
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut types = BTreeSet::new();
        for (index, limit) in items(&write.object["spec"], "limits") {
            let path = format!("spec.limits[{index}]");
            let kind = text(limit, "type");
            let at = format!("{path}.type");
            errors.extend(type_errors(kind, &at));
            if !types.insert(kind) {
                errors.push(FieldError::duplicate(at, kind.into()));
            }
            errors.extend(limit_errors(limit, &path));
        }
        errors
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let created = column::string(&object["metadata"]["creationTimestamp"]);
        vec![column::name(object), created]
    }
}

/// Defaults the amounts of a container limit from its other amounts (`SetDefaults_LimitRangeItem`).
fn fill_in(limit: &mut Map<String, Value>) {
    for list in LISTS {
        if let Some(amounts) = limit.get_mut(list).and_then(Value::as_object_mut) {
            resource_name::canonical(amounts);
        }
    }
    if limit.get("type").is_none_or(|it| it != "Container") {
        return;
    }
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let from = limit.get(from).and_then(Value::as_object).cloned();
        let previous = limit.contains_key(to);
        let into = meta::field(limit, to);
        for (resource, amount) in from.into_iter().flatten() {
            into.entry(resource).or_insert(amount);
        }
        if !previous && into.is_empty() {
            limit.shift_remove(to);
        }
    }
}

fn type_errors(kind: &str, path: &str) -> Vec<FieldError> {
    let wrong = name::label_key(kind);
    if !wrong.is_empty() {
        let wrong = wrong.into_iter();
        return wrong
            .map(|it| FieldError::invalid(path, kind.into(), it))
            .collect();
    }
    let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind);
    if kind.contains('/') || standard {
        return Vec::new();
    }
    let why = "must be a standard limit type or fully qualified";
    vec![FieldError::invalid(path, kind.into(), why)]
}

fn limit_errors(limit: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(limit, "type");
    let mut resources = BTreeSet::new();
    for list in LISTS {
        let of_pod = kind == "Pod" && list.starts_with("default");
        if of_pod && column::count(&limit[list]) > 0 {
            let why = "may not be specified when `type` is 'Pod'";
            errors.push(FieldError::forbidden(format!("{path}.{list}"), why));
            continue;
        }
        for (resource, _) in resource_name::amounts(&limit[list]) {
            let at = format!("{path}.{list}[{resource}]");
            errors.extend(if matches!(kind, "Pod" | "Container") {
                resource_name::container_name_errors(resource, &at)
            } else {
                resource_name::name_errors(resource, &at)
            });
            resources.insert(resource);
        }
    }
    let has = |list: &str| !limit[list]["storage"].is_null();
    if kind == "PersistentVolumeClaim" && !has("min") && !has("max") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(format!("{path}.limits"), why));
    }
    for resource in resources {
        let amount = |list: &str| resource_name::quantity(&limit[list][resource]);
        let item = Item {
            path,
            resource,
            min: amount("min"),
            max: amount("max"),
            default: amount("default").filter(|_| kind != "Pod"),
            request: amount("defaultRequest").filter(|_| kind != "Pod"),
            ratio: amount("maxLimitRequestRatio"),
        };
        item.errors(&mut errors);
    }
    errors
}

/// The amounts of one limit for one resource.
struct Item<'a> {
    path: &'a str,
    resource: &'a str,
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

/// An amount of a limit, and its name in error messages.
type NamedAmount<'a> = (&'a Option<Quantity>, &'a str);

impl Item<'_> {
    fn invalid(&self, list: &str, value: &Quantity, why: String) -> FieldError {
        let at = format!("{}.{list}[{}]", self.path, self.resource);
        FieldError::invalid(at, value.to_string().into(), why)
    }

    /// The error of `list` if the first amount is greater than the second.
    fn order(
        &self,
        list: &str,
        less: NamedAmount<'_>,
        more: NamedAmount<'_>,
    ) -> Option<FieldError> {
        let (Some(low), Some(high)) = (less.0, more.0) else {
            return None;
        };
        let why = format!(
            "{} value {low} is greater than {} value {high}",
            less.1, more.1
        );
        // For a default that is out of bounds Kubernetes shows the bound.
        let is_high = match list {
            "min" => false,
            "default" => less.1 != "min",
            _ => less.1 == "min",
        };
        let shown = if is_high { high } else { low };
        (low > high).then(|| self.invalid(list, shown, why))
    }

    fn errors(&self, errors: &mut Vec<FieldError>) {
        let min = (&self.min, "min");
        let max = (&self.max, "max");
        let request = (&self.request, "default request");
        let limit = (&self.default, "default limit");
        let default = (&self.default, "default");
        errors.extend(self.order("min", min, max));
        errors.extend(self.order("defaultRequest", min, request));
        errors.extend(self.order("defaultRequest", request, max));
        errors.extend(self.order("defaultRequest", request, limit));
        errors.extend(self.order("default", min, default));
        errors.extend(self.order("default", default, max));
        if let Some(ratio) = &self.ratio {
            errors.extend(self.ratio_errors(ratio));
        }
        if let (Some(default), Some(request)) = (&self.default, &self.request)
            && default != request
            && !resource_name::is_overcommit_allowed(self.resource)
        {
            let why = format!(
                "default value {default} must equal to defaultRequest value {request} in {}",
                self.resource
            );
            errors.push(self.invalid("defaultRequest", request, why));
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "Kubernetes compares the ratios as floats"
    )]
    fn ratio_errors(&self, ratio: &Quantity) -> Vec<FieldError> {
        let list = "maxLimitRequestRatio";
        let mut errors = Vec::new();
        if *ratio < Quantity::count(1) {
            let why = format!("ratio {ratio} is less than 1");
            errors.push(self.invalid(list, ratio, why));
        }
        if let (Some(min), Some(max)) = (&self.min, &self.max) {
            let bound = max.milli_value() as f64 / min.milli_value() as f64;
            if ratio.milli_value() as f64 / 1000.0 > bound {
                let why = format!("ratio {ratio} is greater than max/min = {bound:.6}");
                errors.push(self.invalid(list, ratio, why));
            }
        }
        errors
    }
}

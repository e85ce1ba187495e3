//! ResourceSlices: the devices that drivers offer.

mod request_policy;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::Value;

use super::csi_node::driver_name;
use super::field::{Errors, Field};
use super::go_struct;
use super::pod_spec::default::{Fields, each, fill};
use super::{
    BuiltinKind, FieldSelector, Write, column, device, pod_spec, resource_name, rule,
};
use crate::meta;
use crate::resource::{Column, Resource};

/// `resourceslices` of `resource.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ResourceSlice;

/// The maximum number of devices.
const MAX_DEVICES: u64 = 128;
/// The maximum number of devices, if one has taints or counters.
const MAX_ADVANCED_DEVICES: u64 = 64;
/// The maximum number of attributes and capacities of a device.
const MAX_ATTRIBUTES: usize = 32;
/// The maximum length of the value of an attribute in bytes.
const MAX_VALUE: usize = 64;
/// The maximum number of taints of a device.
const MAX_TAINTS: u64 = 16;
/// The maximum number of sets of counters.
const MAX_COUNTER_SETS: u64 = 8;
/// The maximum number of sets of counters that a device uses.
const MAX_USED_SETS: u64 = 2;
/// The maximum number of counters of a set.
const MAX_COUNTERS: usize = 32;
/// The maximum number of conditions for the binding of a device.
const MAX_CONDITIONS: u64 = 4;

/// The fields of an attribute, of which one is set.
const VALUES: [&str; 4] = ["bool", "int", "string", "version"];
/// The same, and lists, which only a server with the feature gate `DRAListTypeAttributes` keeps.
const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];

impl BuiltinKind for ResourceSlice {
    fn resource(&self) -> Resource {
        let spec = |name: &str, field: &str| {
            column::described(name, "string", "resource.v1.ResourceSliceSpec", field)
        };
        let pool = "resource.v1.ResourcePool";
        Resource::new("resource.k8s.io", "v1", "ResourceSlice", "resourceslices")
            .cluster_scoped()
            .returned_when_deleted()
            .with_columns(vec![
                spec("Node", "nodeName"),
                spec("Driver", "driver"),
                column::described("Pool", "string", pool, "name"),
                Column::age(),
            ])
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const ALL: &[FieldSelector] = &[
            FieldSelector::new("spec.nodeName"),
            FieldSelector::new("spec.driver"),
        ];
        ALL
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        for device in each(spec, "devices") {
            for capacity in values(device, "capacity") {
                if let Some(value) = capacity.get_mut("value")
                    && let Some(found) = resource_name::quantity(value)
                {
                    *value = found.rounded_up_to_milli().to_string().into();
                }
            }
        }
    }

    fn default_times(&self, object: &mut Value, now: &str) {
        let spec = meta::field(meta::fields(object), "spec");
        for device in each(spec, "devices") {
            each(device, "taints").for_each(|it| fill(it, "timeAdded", now));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        drop_disabled(object);
    }

    fn prepare_update(&self, object: &mut Value, _old: &Value) {
        drop_disabled(object);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let spec = Field::of(write.object, "spec");
        let mut errors = Errors::new();
        driver_name(&spec.child("driver"), &mut errors);
        pool(&spec.child("pool"), &mut errors);
        if let Some(old) = write.old {
            let old = Field::of(old, "spec");
            for field in ["pool.name", "driver", "nodeName"] {
                rule::immutable(&spec.child(field), &old.child(field), &mut errors);
            }
        }
        nodes(&spec, &mut errors);
        devices(&spec, &mut errors);
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let driver = write.object["spec"]["driver"].as_str().unwrap_or_default();
        if driver.to_lowercase() == driver {
            return Vec::new();
        }
        vec![format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase \
             characters"
        )]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        vec![
            column::name(object),
            column::string(&spec["nodeName"]),
            column::string(&spec["driver"]),
            column::string(&spec["pool"]["name"]),
            column::age(object, now),
        ]
    }
}

/// The values of a map that are objects.
fn values<'v>(
    fields: &'v mut Fields,
    map: &str,
) -> impl Iterator<Item = &'v mut Fields> + use<'v> {
    let map = fields.get_mut(map).and_then(Value::as_object_mut);
    let all = map.into_iter().flat_map(serde_json::Map::values_mut);
    all.filter_map(Value::as_object_mut)
}

/// Removes what only a server with feature gates that are off by default keeps.
fn drop_disabled(object: &mut Value) {
    let spec = meta::field(meta::fields(object), "spec");
    for device in each(spec, "devices") {
        device.shift_remove("nodeAllocatableResourceMappings");
        for attribute in values(device, "attributes") {
            for list in LISTS {
                attribute.shift_remove(list);
            }
        }
    }
}

fn pool(pool: &Field<'_>, errors: &mut Errors) {
    device::pool_name(&pool.child("name"), errors);
    rule::above_zero(&pool.child("resourceSliceCount"), errors);
    let generation = pool.child("generation");
    if generation.count() < 0 {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
}

/// Validates that the nodes are given in one way.
fn nodes(spec: &Field<'_>, errors: &mut Errors) {
    let node = spec.child("nodeName");
    let mut given = Vec::new();
    if !node.text().is_empty() {
        given.push("`nodeName`");
        rule::text(&node, name::dns_subdomain, errors);
    } else if node.is_set() {
        errors.push(node.invalid("must be either unset or set to a non-empty string"));
    }
    let selector = spec.child("nodeSelector");
    if selector.is_set() {
        given.push("`nodeSelector`");
        pod_spec::node_selector(&selector, errors);
        let terms = selector.child("nodeSelectorTerms");
        if terms.len() != 1 {
            let path = selector.path_of("nodeSelectorTerms");
            let why = "must have exactly one node selector term";
            errors.push(FieldError::invalid(path, terms.value.clone(), why));
        }
    }
    for (field, shown) in [
        ("allNodes", "`allNodes`"),
        ("perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ] {
        let field = spec.child(field);
        if field.is_true() {
            given.push(shown);
        } else if field.is_set() {
            errors.push(field.invalid("must be either unset or set to true"));
        }
    }
    let why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
               `perDeviceNodeSelection` is required";
    match given.len() {
        0 => errors.push(spec.required(why)),
        1 => {}
        _ => {
            let value = format!("{{{}}}", given.join(", ")).into();
            let why = format!("{why}, but multiple fields are set");
            errors.push(FieldError::invalid(&spec.path, value, why));
        }
    }
}

fn devices(spec: &Field<'_>, errors: &mut Errors) {
    let (devices, counters) = (spec.child("devices"), spec.child("sharedCounters"));
    if devices.is_set() && counters.is_set() {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(FieldError::invalid(&spec.path, "".into(), why));
    }
    let is_advanced = |it: Field<'_>| {
        it.child("taints").len() > 0 || it.child("consumesCounters").len() > 0
    };
    let most = if devices.items().any(is_advanced) {
        MAX_ADVANCED_DEVICES
    } else {
        MAX_DEVICES
    };
    let by_device = spec.child("perDeviceNodeSelection").is_true();
    device::set(&devices, (most, "name"), errors, |it, errors| {
        self::device(it, by_device, errors);
    });
    device::set(
        &counters,
        (MAX_COUNTER_SETS, "name"),
        errors,
        |it, errors| {
            counter_set(it, "name", errors);
        },
    );
}

fn device(device: &Field<'_>, by_device: bool, errors: &mut Errors) {
    rule::dns_label(&device.child("name"), errors);
    let (attributes, capacity) = (device.child("attributes"), device.child("capacity"));
    let count = attributes.len() + capacity.len();
    if count > MAX_ATTRIBUTES {
        let why = format!(
            "the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
        );
        errors.push(FieldError::invalid(&device.path, count.into(), why));
    }
    for (name, value) in attributes.entries() {
        device::qualified_name(&attributes, name, errors);
        attribute(&value, errors);
    }
    for (name, value) in capacity.entries() {
        device::qualified_name(&capacity, name, errors);
        let policy = value.child("requestPolicy");
        if device.child("allowMultipleAllocations").is_true() {
            request_policy::errors(&value, errors);
        } else if policy.is_set() {
            errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        }
    }
    device::list(&device.child("taints"), MAX_TAINTS, errors, device::taint);
    let used = device.child("consumesCounters");
    device::set(
        &used,
        (MAX_USED_SETS, "counterSet"),
        errors,
        |it, errors| {
            counter_set(it, "counterSet", errors);
        },
    );
    device_nodes(device, by_device, errors);
    conditions(device, errors);
}

/// Validates that the nodes of a device are given in one way, if each device has its own.
fn device_nodes(device: &Field<'_>, by_device: bool, errors: &mut Errors) {
    let [node, selector, all] =
        ["nodeName", "nodeSelector", "allNodes"].map(|it| device.child(it));
    if !by_device {
        if node.is_set() || selector.is_set() || all.is_set() {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.push(FieldError::invalid(&device.path, Value::Null, why));
        }
        return;
    }
    let mut given = Vec::new();
    if !node.text().is_empty() {
        given.push("`nodeName`");
        rule::text(&node, name::dns_subdomain, errors);
    } else if node.is_set() {
        errors.push(node.invalid("must not be empty"));
    }
    if selector.is_set() {
        given.push("`nodeSelector`");
        pod_spec::node_selector(&selector, errors);
    }
    if all.is_true() {
        given.push("`allNodes`");
    } else if all.is_set() {
        errors.push(all.invalid("must be either unset or set to true"));
    }
    let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
               `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    match given.len() {
        0 => errors.push(device.required(why)),
        1 => {}
        _ => {
            let value = format!("{{{}}}", given.join(", ")).into();
            errors.push(FieldError::invalid(&device.path, value, why));
        }
    }
}

/// Validates the conditions under which a device is bound, and those that say that it cannot be
/// (`validateDeviceBindingParameters`).
fn conditions(device: &Field<'_>, errors: &mut Errors) {
    let (ready, failed) = (
        device.child("bindingConditions"),
        device.child("bindingFailureConditions"),
    );
    for list in [&ready, &failed] {
        device::list(list, MAX_CONDITIONS, errors, rule::qualified_name);
    }
    for list in [&ready, &failed] {
        let mut seen = Vec::new();
        for item in list.items() {
            if seen.contains(&item.text()) {
                errors.push(item.duplicate());
            }
            seen.push(item.text());
        }
    }
    let names: Vec<&str> = ready.items().map(|it| it.text()).collect();
    for item in failed.items().filter(|it| names.contains(&it.text())) {
        let why = "bindingFailureConditions must not overlap with bindingConditions";
        errors.push(item.invalid(why));
    }
    if ready.len() == 0 && failed.len() > 0 {
        let why = "bindingConditions are required to use bindingFailureConditions";
        errors.push(ready.invalid(why));
    }
    if failed.len() == 0 && ready.len() > 0 {
        let why = "bindingFailureConditions are required to use bindingConditions";
        errors.push(failed.invalid(why));
    }
}

/// Validates that an attribute has one value, which is not too long.
fn attribute(attribute: &Field<'_>, errors: &mut Errors) {
    value_length(&attribute.child("string"), errors);
    let version = attribute.child("version");
    if version.is_set() {
        if !is_version(version.text()) {
            let why = "must be a string compatible with semver.org spec 2.0.0";
            errors.push(version.invalid(why));
        }
        value_length(&version, errors);
    }
    let given = VALUES
        .iter()
        .filter(|it| attribute.child(it).is_set())
        .count();
    let why = "exactly one value must be specified";
    match given {
        0 => errors.push(FieldError::invalid(&attribute.path, "".into(), why)),
        1 => {}
        _ => {
            let shown = go_struct::text(attribute.value, "resource.v1.DeviceAttribute");
            errors.push(go_struct::invalid(attribute, &shown, why));
        }
    }
}

fn value_length(text: &Field<'_>, errors: &mut Errors) {
    if text.text().len() > MAX_VALUE {
        errors.push(FieldError::too_long(&text.path, MAX_VALUE as u64));
    }
}

/// Whether a text is a version as semver.org defines it (`semverRe`): numbers may be of any size.
fn is_version(text: &str) -> bool {
    let (rest, build) = match text.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (text, None),
    };
    let (core, before_release) = match rest.split_once('-') {
        Some((core, before)) => (core, Some(before)),
        None => (rest, None),
    };
    let is_number = |it: &str| {
        let is_padded = it.len() > 1 && it.starts_with('0');
        !it.is_empty() && !is_padded && it.bytes().all(|it| it.is_ascii_digit())
    };
    let is_identifier = |it: &str| {
        !it.is_empty()
            && it
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    let has_other = |it: &str| it.bytes().any(|it| !it.is_ascii_digit());
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && before_release.is_none_or(|all| {
            all.split('.')
                .all(|it| is_number(it) || (is_identifier(it) && has_other(it)))
        })
        && build.is_none_or(|all| all.split('.').all(is_identifier))
}

/// Validates a set of counters that a device has or uses.
fn counter_set(set: &Field<'_>, name: &'static str, errors: &mut Errors) {
    let name = set.child(name);
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        rule::dns_label(&name, errors);
    }
    let counters = set.child("counters");
    match counters.len() {
        0 => errors.push(counters.required("")),
        found if found > MAX_COUNTERS => {
            let (found, most) = (found as u64, MAX_COUNTERS as u64);
            errors.push(FieldError::too_many(&counters.path, found, most));
        }
        _ => {
            for (name, _) in counters.entries() {
                let wrong = name::dns_label(name).into_iter();
                let each = |it| FieldError::invalid(&counters.path, name.into(), it);
                errors.extend(wrong.map(each));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_three_numbers_and_may_name_a_release_candidate_and_a_build() {
        let long = format!("1.2.{}", "9".repeat(30));
        let valid = [
            "0.0.0",
            "1.2.3",
            "1.2.3-a",
            "1.2.3-0.a-.10",
            "1.2.3--",
            "1.2.3+001.-a",
            "1.2.3-rc.1+b-1.2",
            &long,
        ];
        for text in valid {
            assert!(is_version(text), "{text}");
        }
        let invalid = [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "01.2.3",
            "1.2.03",
            "v1.2.3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3+",
            "1.2.3+a+b",
            "1.2.3+a_b",
            " 1.2.3",
            "1.2.3\n",
            "1.2.é",
            "-1.2.3",
        ];
        for text in invalid {
            assert!(!is_version(text), "{text}");
        }
    }
}

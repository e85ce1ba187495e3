//! ResourceSlices: the devices that drivers offer.

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::csi_node::driver_name;
use super::field::{Errors, Field};
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
/// The maximum number of devices, if one has taints, counters or lists.
const MAX_ADVANCED_DEVICES: u64 = 64;
/// The maximum number of attributes and capacities of a device.
const MAX_ATTRIBUTES: usize = 32;
/// The maximum length of the value of an attribute in bytes.
const MAX_VALUE: usize = 64;
/// The maximum number of taints of a device.
const MAX_TAINTS: u64 = 16;
/// The maximum number of sets of counters.
const MAX_COUNTER_SETS: u64 = 8;

/// The fields of an attribute, of which one is set.
const VALUES: [&str; 8] = [
    "bool", "int", "string", "version", "bools", "ints", "strings", "versions",
];

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
        for device in pod_spec::default::each(spec, "devices") {
            let Some(Value::Object(capacities)) = device.get_mut("capacity") else {
                continue;
            };
            for capacity in capacities.values_mut().filter_map(Value::as_object_mut) {
                if let Some(found) =
                    capacity.get("value").and_then(resource_name::quantity)
                {
                    let text = found.rounded_up_to_milli().to_string();
                    capacity.insert("value".to_owned(), json!(text));
                }
            }
        }
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
        let lists = ["bools", "ints", "strings", "versions"];
        let mut attributes = it.child("attributes").entries();
        it.child("taints").len() > 0
            || it.child("consumesCounters").len() > 0
            || attributes.any(|(_, it)| lists.iter().any(|list| it.child(list).is_set()))
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
        if policy.is_set() && !device.child("allowMultipleAllocations").is_true() {
            errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        }
    }
    device::list(&device.child("taints"), MAX_TAINTS, errors, device::taint);
    for used in device.child("consumesCounters").items() {
        counter_set(&used, "counterSet", errors);
    }
    let own = ["nodeName", "nodeSelector", "allNodes"];
    let given = own.iter().filter(|it| device.child(it).is_set()).count();
    if by_device && given != 1 {
        errors.push(device.required(
            "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
             `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
        ));
    } else if !by_device && given > 0 {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                   `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        errors.push(FieldError::invalid(&device.path, Value::Null, why));
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
    if given != 1 {
        let value = match given {
            0 => "".into(),
            _ => attribute.value.clone(),
        };
        let why = "exactly one value must be specified";
        errors.push(FieldError::invalid(&attribute.path, value, why));
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
    if counters.len() == 0 {
        errors.push(counters.required(""));
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

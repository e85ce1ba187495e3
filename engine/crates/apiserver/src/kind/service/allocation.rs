//! Allocation of cluster IPs and node ports (pkg/registry/core/service/storage/alloc.go).
//!
//! kube-apiserver chooses them at random; here the lowest free one is allocated.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::{has_health_check, has_node_ports, is_external_name, is_headless};
use crate::kind::{Stored, column, items};
use crate::meta;

/// The cluster IP network: kube-apiserver's default.
const NETWORK: &str = "10.0.0.0/24";
/// Its addresses without the network address and the broadcast address.
const ADDRESSES: RangeInclusive<u8> = 1..=254;
/// The node port range.
const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;

/// Sets `clusterIPs` from `clusterIP` if it is absent.
pub(super) fn same_address(object: &mut Value) {
    let spec = meta::field(meta::fields(object), "spec");
    let is_missing = spec
        .get("clusterIPs")
        .is_none_or(|it| column::count(it) == 0);
    let address = spec.get("clusterIP").and_then(Value::as_str);
    if let Some(address) = address.filter(|it| is_missing && !it.is_empty()) {
        let address = json!([address]);
        spec.insert("clusterIPs".to_owned(), address);
    }
}

/// The addresses and ports that other services have.
#[derive(Default)]
struct Allocated {
    addresses: BTreeSet<String>,
    ports: BTreeSet<i64>,
    /// A dry run asks Kubernetes' allocators otherwise: that of ports does not know their range,
    /// and that of addresses is the one of the first network.
    dry_run: bool,
}

impl Allocated {
    fn of(own: &Value, stored: &mut Stored<'_>) -> Self {
        let mut allocated = Self {
            dry_run: stored.dry_run,
            ..Self::default()
        };
        let id = |it: &Value| (meta::namespace(it).to_owned(), meta::name(it).to_owned());
        let own = id(own);
        for other in stored.objects.filter(|it| id(it) != own) {
            let spec = &other["spec"];
            let addresses = column::list(&spec["clusterIPs"]).iter();
            let addresses = addresses.filter_map(Value::as_str);
            allocated.addresses.extend(addresses.map(str::to_owned));
            let ports =
                items(spec, "ports").filter_map(|(_, it)| it["nodePort"].as_i64());
            allocated.ports.extend(ports);
            allocated.ports.extend(spec["healthCheckNodePort"].as_i64());
        }
        allocated
    }

    /// Allocates the lowest free port.
    fn next_port(&mut self) -> Option<i64> {
        let mut ports = NODE_PORTS;
        let free = ports.find(|it| !self.ports.contains(it))?;
        self.ports.insert(free);
        Some(free)
    }

    fn next_address(&self) -> Option<String> {
        let all = ADDRESSES.map(|it| Ipv4Addr::new(10, 0, 0, it).to_string());
        let mut all = all.into_iter();
        all.find(|it| !self.addresses.contains(it))
    }
}

/// Allocates the addresses and ports that a service lacks.
pub(super) fn allocate(object: &mut Value, stored: &mut Stored<'_>) -> Vec<FieldError> {
    let mut allocated = Allocated::of(object, stored);
    let mut errors = Vec::new();
    if !is_external_name(object) {
        errors.extend(families(object));
        if errors.is_empty() {
            errors.extend(address(object, &allocated));
        }
    }
    if has_node_ports(object) {
        node_ports(object, &mut allocated, &mut errors);
    }
    if has_health_check(object) && object["spec"]["healthCheckNodePort"].is_null() {
        let port = allocated.next_port();
        let spec = meta::field(meta::fields(object), "spec");
        spec.insert("healthCheckNodePort".to_owned(), port.into());
    }
    errors
}

/// Defaults and validates the IP families, for a single-stack cluster.
fn families(object: &mut Value) -> Option<FieldError> {
    let headless = is_headless(object);
    let spec = meta::field(meta::fields(object), "spec");
    let is_selected = spec.get("selector").is_some_and(|it| column::count(it) > 0);
    let families = spec.get("ipFamilies").map_or(&[][..], column::list);
    let other = families.iter().position(|it| *it != "IPv4");
    let policy = spec.get("ipFamilyPolicy").and_then(Value::as_str);
    // A headless service without a selector can have endpoints of any family.
    if headless && !is_selected {
        if policy.is_none() {
            spec.insert("ipFamilyPolicy".to_owned(), "RequireDualStack".into());
            spec.insert("ipFamilies".to_owned(), json!(["IPv4", "IPv6"]));
        }
        return None;
    }
    if policy == Some("RequireDualStack") {
        let why = "this cluster is not configured for dual-stack services";
        let path = "spec.ipFamilyPolicy";
        return Some(FieldError::invalid(path, "RequireDualStack".into(), why));
    }
    if let Some(index) = other {
        let path = format!("spec.ipFamilies[{index}]");
        let requested = families[index].clone();
        let why = "not configured on this cluster";
        return Some(FieldError::invalid(path, requested, why));
    }
    if policy.is_none() {
        spec.insert("ipFamilyPolicy".to_owned(), "SingleStack".into());
    }
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    None
}

fn address(object: &mut Value, allocated: &Allocated) -> Option<FieldError> {
    if is_headless(object) {
        return None;
    }
    let spec = meta::field(meta::fields(object), "spec");
    let refuse = |requested: &str, why: &str| {
        let why = format!("failed to allocate IP {requested}: {why}");
        Some(FieldError::invalid(
            "spec.clusterIPs",
            json!([requested]),
            why,
        ))
    };
    let requested = spec.get("clusterIP").and_then(Value::as_str);
    if let Some(requested) = requested.filter(|it| !it.is_empty()) {
        let last = requested
            .strip_prefix("10.0.0.")
            .and_then(|it| it.parse().ok());
        if !last.is_some_and(|it: u8| ADDRESSES.contains(&it)) {
            let of_first = format!(
                "the provided IP ({requested}) is not in the valid range. The range of valid IPs \
                 is {NETWORK}"
            );
            let of_all = "the provided network does not match the current range";
            let why = if allocated.dry_run { &of_first } else { of_all };
            return refuse(requested, why);
        }
        if allocated.addresses.contains(requested) {
            return refuse(requested, "provided IP is already allocated");
        }
        return None;
    }
    let Some(free) = allocated.next_address() else {
        return refuse("", "range is full");
    };
    spec.insert("clusterIPs".to_owned(), json!([free]));
    spec.insert("clusterIP".to_owned(), free.into());
    None
}

fn node_ports(
    object: &mut Value,
    allocated: &mut Allocated,
    errors: &mut Vec<FieldError>,
) {
    let ports = object
        .pointer_mut("/spec/ports")
        .and_then(Value::as_array_mut);
    let Some(ports) = ports else {
        return;
    };
    // Requested ports are allocated before arbitrary ones. One number may be requested for two
    // protocols.
    let mut own = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let Some(number) = port["nodePort"].as_i64().filter(|it| *it != 0) else {
            continue;
        };
        let path = format!("spec.ports[{index}].nodePort");
        if !allocated.dry_run && !NODE_PORTS.contains(&number) {
            let (least, most) = (NODE_PORTS.start(), NODE_PORTS.end());
            let why = format!(
                "provided port is not in the valid range. The range of valid ports is \
                 {least}-{most}"
            );
            errors.push(FieldError::invalid(path, number.into(), why));
        } else if own.insert(number) && !allocated.ports.insert(number) {
            let why = "provided port is already allocated";
            errors.push(FieldError::invalid(path, number.into(), why));
        }
    }
    for port in ports.iter_mut().filter_map(Value::as_object_mut) {
        let requested = port.get("nodePort").and_then(Value::as_i64);
        if requested.unwrap_or_default() == 0
            && let Some(free) = allocated.next_port()
        {
            port.insert("nodePort".to_owned(), free.into());
        }
    }
}

//! Endpoints: validated and stored; no controller creates them for services.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::pod_spec::default::{each, fill};
use super::{BuiltinKind, Write, column, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `endpoints` of `v1`.
#[derive(Debug)]
pub(super) struct Endpoints;

impl BuiltinKind for Endpoints {
    fn resource(&self) -> Resource {
        let description = "The set of all endpoints is the union of all subsets. Addresses are \
             placed into subsets according to the IPs they share. A single address with \
             multiple ports, some of which are ready and some of which are not (because they \
             come from different containers) will result in the address being displayed in \
             different subsets for the different ports. No address will appear in both \
             Addresses and NotReadyAddresses in the same subset. Sets of addresses and ports \
             that comprise a service.";
        let mut resource = Resource::new("", "v1", "Endpoints", "endpoints")
            .with_short_names(&["ep"])
            .without_generation()
            .allow_create_on_update()
            .with_columns(vec![
                Column::new("Endpoints", "string", description),
                Column::age(),
            ]);
        "endpoints".clone_into(&mut resource.singular);
        let deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 \
             EndpointSlice";
        resource.deprecation = Some(deprecation.to_owned());
        resource
    }

    fn default(&self, object: &mut Value) {
        for subset in each(meta::fields(object), "subsets") {
            for port in each(subset, "ports") {
                fill(port, "protocol", "TCP");
            }
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let same = write
            .old
            .is_some_and(|it| it["subsets"] == write.object["subsets"]);
        for subset in Field::of(write.object, "subsets").items().filter(|_| !same) {
            self::subset(&subset, &mut errors);
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            addresses_text(object).into(),
            column::age(object, now),
        ]
    }
}

fn subset(subset: &Field<'_>, errors: &mut Errors) {
    let lists = ["addresses", "notReadyAddresses"].map(|it| subset.child(it));
    if lists.iter().all(|it| it.len() == 0) {
        let why = "must specify `addresses` or `notReadyAddresses`";
        errors.push(subset.required(why));
    }
    for address in lists.iter().flat_map(Field::items) {
        let ip = address.child("ip");
        let found = rule::address(&ip, errors);
        let host = address.child("hostname");
        rule::text_if_set(&host, kubemu_admission::name::dns_label, errors);
        let node = address.child("nodeName");
        if node.is_set() {
            rule::dns_subdomain(&node, errors);
        }
        match found {
            Some(found) => rule::reachable(&ip, found, errors),
            None => errors.push(ip.invalid_text("must be a valid IP address")),
        }
    }
    let ports = subset.child("ports");
    for port in ports.items() {
        let name = port.child("name");
        if ports.len() > 1 && name.text().is_empty() {
            errors.push(name.required(""));
        }
        rule::text_if_set(&name, kubemu_admission::name::dns_label, errors);
        rule::port(&port.child("port"), errors);
        rule::protocol(&port.child("protocol"), errors);
        let protocol = port.child("appProtocol");
        if protocol.is_set() {
            rule::qualified_name(&protocol, errors);
        }
    }
}

/// The first three addresses with their ports.
fn addresses_text(object: &Value) -> String {
    let mut all = Vec::new();
    let subsets = column::list(&object["subsets"]);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    for subset in subsets {
        let addresses = column::list(&subset["addresses"]).iter();
        let addresses = addresses.filter_map(|it| it["ip"].as_str());
        let ports = column::list(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in ports {
            let port = &port["port"];
            all.extend(addresses.clone().map(|it| {
                if it.contains(':') {
                    format!("[{it}]:{port}")
                } else {
                    format!("{it}:{port}")
                }
            }));
        }
    }
    column::first_three(&all)
}

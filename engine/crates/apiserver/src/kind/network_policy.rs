//! NetworkPolicies: validated and stored; no network enforces them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::{each, fill};
use super::{BuiltinKind, Write, column, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `networkpolicies` of `networking.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct NetworkPolicy;

impl BuiltinKind for NetworkPolicy {
    fn resource(&self) -> Resource {
        let selector = "podSelector selects the pods to which this NetworkPolicy object \
             applies. The array of rules is applied to any pods selected by this field. An empty \
             selector matches all pods in the policy's namespace. Multiple network policies can \
             select the same set of pods. In this case, the ingress rules for each are combined \
             additively. This field is optional. If it is not specified, it defaults to an empty \
             selector.";
        Resource::new(
            "networking.k8s.io",
            "v1",
            "NetworkPolicy",
            "networkpolicies",
        )
        .with_short_names(&["netpol"])
        .with_columns(vec![
            Column::new("Pod-Selector", "string", selector),
            Column::age(),
        ])
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        let is_empty = |list: &str, spec: &serde_json::Map<String, Value>| {
            spec.get(list).is_none_or(|it| column::count(it) == 0)
        };
        if is_empty("policyTypes", spec) {
            let types = if is_empty("egress", spec) {
                json!(["Ingress"])
            } else {
                json!(["Ingress", "Egress"])
            };
            spec.insert("policyTypes".to_owned(), types);
        }
        for list in ["ingress", "egress"] {
            for rule in each(spec, list) {
                for port in each(rule, "ports") {
                    fill(port, "protocol", "TCP");
                }
            }
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if !write.is_spec_unchanged() {
            spec(&Field::of(write.object, "spec"), &mut errors);
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::selector(&object["spec"]["podSelector"]),
            column::age(object, now),
        ]
    }
}

fn spec(spec: &Field<'_>, errors: &mut Errors) {
    rule::selector(&spec.child("podSelector"), errors);
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.child(list).items() {
            for each in rule.child("ports").items() {
                port(&each, errors);
            }
            for each in rule.child(peers).items() {
                peer(&each, errors);
            }
        }
    }
    let types = spec.child("policyTypes");
    if types.len() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for each in types.items() {
        rule::one_of_if_set(&each, &["Ingress", "Egress"], errors);
    }
}

fn port(field: &Field<'_>, errors: &mut Errors) {
    let protocol = field.child("protocol");
    rule::one_of_if_set(&protocol, &["TCP", "UDP", "SCTP"], errors);
    let (port, end) = (field.child("port"), field.child("endPort"));
    if port.value.is_string() {
        if end.is_set() {
            let why = "may not be specified when `port` is non-numeric";
            errors.push(end.invalid(why));
        }
        rule::port_or_name(&port, errors);
    } else if port.is_set() {
        rule::port(&port, errors);
        if end.is_set() {
            if end.count() < port.count() {
                let actual = port.count().into();
                let why = "must be greater than or equal to `port`";
                errors.push(FieldError::invalid(end.path.clone(), actual, why));
            }
            rule::port(&end, errors);
        }
    } else if end.is_set() {
        let why = "may not be specified when `port` is not specified";
        errors.push(end.invalid(why));
    }
}

fn peer(peer: &Field<'_>, errors: &mut Errors) {
    let mut selectors = 0;
    for name in ["podSelector", "namespaceSelector"] {
        let selector = peer.child(name);
        selectors += i32::from(selector.is_set());
        rule::selector(&selector, errors);
    }
    let block = peer.child("ipBlock");
    if block.is_set() {
        ip_block(&block, errors);
        if selectors > 0 {
            let why = "may not specify both ipBlock and another peer";
            errors.push(peer.forbidden(why));
        }
    } else if selectors == 0 {
        errors.push(peer.required("must specify a peer"));
    }
}

fn ip_block(block: &Field<'_>, errors: &mut Errors) {
    let cidr = block.child("cidr");
    if cidr.text().is_empty() {
        errors.push(cidr.required(""));
        return;
    }
    let Some(whole) = rule::network(&cidr, errors) else {
        return;
    };
    for except in block.child("except").items() {
        let Some(part) = rule::network(&except, errors) else {
            continue;
        };
        if !whole.contains(part.address) || part.prefix <= whole.prefix {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

//! Nodes: what is filled in, and what is checked.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fivespot_admission::{FieldError, name};
use serde_json::{Value, json};

use super::{items, text};
use crate::meta;

/// The network of a node is the first of its networks.
pub(super) fn default(object: &mut Value) {
    let spec = meta::field(meta::fields(object), "spec");
    let first = spec.get("podCIDRs").and_then(|all| all.get(0)).cloned();
    match (spec.get("podCIDR").cloned(), first) {
        (Some(one), first) if first.as_ref() != Some(&one) => {
            spec.insert("podCIDRs".to_owned(), json!([one]));
        }
        (None, Some(first)) => {
            spec.insert("podCIDR".to_owned(), first);
        }
        _ => {}
    }
}

/// What is wrong with a node (pkg/apis/core/validation).
pub(super) fn errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = taint_errors(&object["spec"]);
    for (index, network) in items(&object["spec"], "podCIDRs") {
        let said = network.as_str().unwrap_or_default();
        if !is_network(said) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            let path = format!("spec.podCIDRs[{index}]");
            errors.push(FieldError::invalid(path, said.into(), why));
        }
    }
    let Some(old) = old else {
        return errors;
    };
    let (spec, had) = (&object["spec"], &old["spec"]);
    if had["podCIDRs"].is_array() && had["podCIDRs"] != spec["podCIDRs"] {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.podCIDRs", why));
    }
    let provider = text(had, "providerID");
    if !provider.is_empty() && provider != text(spec, "providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", why));
    }
    errors
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|it| it <= most)
}

fn taint_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut seen = BTreeSet::new();
    for (index, taint) in items(spec, "taints") {
        let path = format!("metadata.taints[{index}]");
        let (key, value, effect) = (
            text(taint, "key"),
            text(taint, "value"),
            text(taint, "effect"),
        );
        for wrong in name::label_key(key) {
            let at = format!("{path}.key");
            errors.push(FieldError::invalid(at, key.into(), wrong));
        }
        for wrong in name::label_value(value) {
            let at = format!("{path}.value");
            errors.push(FieldError::invalid(at, value.into(), wrong));
        }
        let at = format!("{path}.effect");
        if effect.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !effects.contains(&effect) {
            errors.push(FieldError::not_supported(at, effect.into(), effects));
        }
        if !seen.insert((key, effect)) {
            // In the order of the fields of Kubernetes' type.
            let added = taint.get("timeAdded").unwrap_or(&Value::Null);
            let (key, value, effect) = (json!(key), json!(value), json!(effect));
            let why = format!(
                "{{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\"TimeAdded\":{added}}}: \
                 taints must be unique by key and effect pair"
            );
            let twice = FieldError::duplicate(path, Value::Null);
            errors.push(twice.without_value().because(why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_with_a_number_of_bits() {
        for (text, expected) in [
            ("10.0.0.0/8", true),
            ("2001:db8::/64", true),
            ("10.0.0.0", false),
            ("10.0.0.0/33", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_network(text), expected, "{text}");
        }
    }
}

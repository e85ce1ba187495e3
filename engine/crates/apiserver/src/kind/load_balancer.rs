//! The load balancer status of services and ingresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use kubemu_admission::name;
use serde_json::Value;

use super::field::{Errors, Field};
use super::{column, rule};

/// The maximum length of addresses in a table.
const WIDTH: usize = 16;

/// Validates the addresses and host names of a status.
pub(super) fn addresses(status: &Field<'_>, errors: &mut Errors) {
    for ingress in status.child("ingress").items() {
        let (address, host) = (ingress.child("ip"), ingress.child("hostname"));
        if !address.text().is_empty() {
            rule::address(&address, errors);
        }
        rule::text_if_set(&host, name::dns_subdomain, errors);
        if host.text().parse::<IpAddr>().is_ok() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
    }
}

/// The addresses or host names of a status, as a table shows them.
pub(super) fn addresses_text(status: &Value) -> String {
    let all = column::list(&status["ingress"]).iter();
    let all: BTreeSet<&str> = all
        .filter_map(|it| it["ip"].as_str().or_else(|| it["hostname"].as_str()))
        .collect();
    let text = all.into_iter().collect::<Vec<_>>().join(",");
    match text.get(..WIDTH - 3) {
        Some(start) if text.len() > WIDTH => format!("{start}..."),
        _ => text,
    }
}

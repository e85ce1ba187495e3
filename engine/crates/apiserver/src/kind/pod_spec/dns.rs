//! The DNS configuration and the host names of a pod.

use kubemu_admission::FieldError;

use super::Spec;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

const MAX_SERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_LENGTH: usize = 2048;

/// Validates the DNS policy and configuration of a pod.
pub(super) fn dns(spec: &Spec<'_>, errors: &mut Errors) {
    let config = spec.child("dnsConfig");
    let servers = config.child("nameservers");
    if spec.child("dnsPolicy").text() == "None" {
        if !config.is_set() {
            let why = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(config.required(why));
            return;
        }
        if servers.len() == 0 {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(why));
            return;
        }
    }
    if servers.len() > MAX_SERVERS {
        let why = format!("must not have more than {MAX_SERVERS} nameservers");
        errors.push(servers.invalid(why));
    }
    for server in servers.items() {
        rule::address(&server, errors);
    }
    searches(&config.child("searches"), errors);
    for option in config.child("options").items() {
        if option.child("name").text().is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

fn searches(list: &Field<'_>, errors: &mut Errors) {
    if list.len() > MAX_SEARCHES {
        let why = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(list.invalid(why));
    }
    let length: usize = list.items().map(|it| it.text().len() + 1).sum();
    if length > MAX_SEARCH_LENGTH + 1 {
        let why = format!(
            "must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the \
             search list"
        );
        errors.push(list.invalid(why));
    }
    for search in list.items() {
        let text = search.text();
        if text == "." {
            continue;
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        for wrong in subdomain_with_underscores(text) {
            let path = search.path.clone();
            errors.push(FieldError::invalid(path, text.into(), wrong));
        }
    }
}

/// The errors of a DNS name whose labels may have underscores.
fn subdomain_with_underscores(text: &str) -> Vec<String> {
    let is_end = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        label.first().is_some_and(|it| is_end(*it))
            && label.last().is_some_and(|it| is_end(*it))
            && label.iter().all(|it| is_end(*it) || b"-_".contains(it))
    };
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    if !text.split('.').all(is_label) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
             characters, '_', '-' or '.', and must start and end with an alphanumeric \
             character (e.g. 'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// Validates the host aliases.
pub(super) fn aliases(list: &Field<'_>, errors: &mut Errors) {
    for alias in list.items() {
        rule::address(&alias.child("ip"), errors);
        for name in alias.child("hostnames").items() {
            rule::dns_subdomain(&name, errors);
        }
    }
}

/// Validates `hostnameOverride`.
pub(super) fn host_name_override(spec: &Spec<'_>, errors: &mut Errors) {
    let field = spec.child("hostnameOverride");
    if !field.is_set() {
        return;
    }
    if spec.child("setHostnameAsFQDN").is_true() {
        let why = "may not be specified when setHostnameAsFQDN is true";
        errors.push(field.forbidden(why));
    }
    if spec.shares_host_network() {
        let why = "may not be specified when hostNetwork is true";
        errors.push(field.forbidden(why));
    }
    if field.text().len() > 64 {
        errors.push(FieldError::too_long(field.path.clone(), 64));
    }
    rule::dns_subdomain(&field, errors);
}

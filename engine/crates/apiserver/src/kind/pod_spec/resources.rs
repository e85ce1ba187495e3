//! Resource requests, limits and claims of containers and pods.

use std::collections::BTreeSet;

use kubemu_admission::{FieldError, Quantity};

use crate::kind::field::{Errors, Field};
use crate::kind::resource_name;

/// A function that returns the errors of a resource's name.
type NameRule = fn(&str, &str) -> Vec<FieldError>;

/// Validates the resources of a container.
pub(super) fn of_container(field: &Field<'_>, claims: &Field<'_>, errors: &mut Errors) {
    let (limits, requests) = (field.child("limits"), field.child("requests"));
    let rule: NameRule = resource_name::container_name_errors;
    amounts(&limits, rule, errors);
    requested(&limits, &requests, rule, errors);
    huge_pages(field, errors);
    claimed(&field.child("claims"), claims, errors);
}

/// Validates the pod-level resources.
pub(super) fn of_pod(field: &Field<'_>, errors: &mut Errors) {
    if !field.is_set() {
        return;
    }
    let claims = field.child("claims");
    if claims.is_set() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(claims.forbidden(why));
    }
    let (limits, requests) = (field.child("limits"), field.child("requests"));
    amounts(&limits, pod_name_errors, errors);
    requested(&limits, &requests, pod_name_errors, errors);
    huge_pages(field, errors);
}

/// Validates the overhead of a pod, with the path of limits.
pub(in crate::kind) fn overhead(field: &Field<'_>, errors: &mut Errors) {
    let limits = field.at(field.path_of("limits"));
    amounts(&limits, resource_name::container_name_errors, errors);
    huge_pages_alone(field, limits.entries().map(|(name, _)| name), errors);
}

fn pod_name_errors(resource: &str, path: &str) -> Vec<FieldError> {
    let errors = resource_name::name_errors(resource, path);
    let known = ["cpu", "memory"].contains(&resource) || is_huge_page(resource);
    if known || !errors.is_empty() {
        return errors;
    }
    let known = ["cpu", "hugepages-", "memory"];
    vec![FieldError::not_supported(path, resource.into(), known)]
}

fn is_huge_page(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

/// Validates an amount. Returns it if it can be parsed.
fn amount(
    resource: &str,
    field: &Field<'_>,
    rule: NameRule,
    errors: &mut Errors,
) -> Option<Quantity> {
    let path = field.path.to_string();
    errors.extend(rule(resource, &path));
    let amount = resource_name::quantity(field.value)?;
    errors.extend(resource_name::amount_errors(resource, &amount, &path));
    Some(amount)
}

/// The error if an amount of huge pages is not a multiple of their size.
fn page_multiple(
    resource: &str,
    field: &Field<'_>,
    amount: &Quantity,
) -> Option<FieldError> {
    let size = resource.strip_prefix("hugepages-")?;
    let size = Quantity::parse(size).map_or(0, |it| it.value());
    if size > 0 && amount.value() % size == 0 {
        return None;
    }
    let actual = amount.to_string();
    let why = format!("{actual} is not positive integer multiple of {resource}");
    Some(FieldError::invalid(field.path.clone(), actual.into(), why))
}

fn amounts(list: &Field<'_>, rule: NameRule, errors: &mut Errors) {
    for (resource, field) in list.entries() {
        if let Some(amount) = amount(resource, &field, rule, errors) {
            errors.extend(page_multiple(resource, &field, &amount));
        }
    }
}

/// Validates the requests against the limits.
fn requested(
    limits: &Field<'_>,
    requests: &Field<'_>,
    rule: NameRule,
    errors: &mut Errors,
) {
    for (resource, field) in requests.entries() {
        let Some(amount) = amount(resource, &field, rule, errors) else {
            continue;
        };
        let limit = limits.value.get(resource);
        let limit = limit.and_then(resource_name::quantity);
        let overcommitted = resource_name::is_overcommit_allowed(resource);
        match limit {
            Some(limit) => {
                let why = if amount != limit && !overcommitted {
                    format!("must be equal to {resource} limit of {limit}")
                } else if amount > limit {
                    format!("must be less than or equal to {resource} limit of {limit}")
                } else {
                    String::new()
                };
                if !why.is_empty() {
                    let actual = amount.to_string().into();
                    errors.push(FieldError::invalid(requests.path.clone(), actual, why));
                }
            }
            None if !overcommitted => {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(limits.required(why));
            }
            None => {}
        }
        errors.extend(page_multiple(resource, &field, &amount));
    }
}

fn huge_pages(field: &Field<'_>, errors: &mut Errors) {
    let lists = [field.child("limits"), field.child("requests")];
    let named = lists.iter().flat_map(Field::entries).map(|(name, _)| name);
    huge_pages_alone(field, named, errors);
}

fn huge_pages_alone<'a>(
    field: &Field<'_>,
    named: impl Iterator<Item = &'a str>,
    errors: &mut Errors,
) {
    let named: Vec<&str> = named.collect();
    let has_base = named.iter().any(|it| *it == "cpu" || *it == "memory");
    if named.iter().any(|it| is_huge_page(it)) && !has_base {
        errors.push(field.forbidden("HugePages require cpu or memory"));
    }
}

/// Validates that the claims of a container are claims of the pod.
fn claimed(list: &Field<'_>, claims: &Field<'_>, errors: &mut Errors) {
    let known: BTreeSet<&str> =
        claims.items().map(|it| it.child("name").text()).collect();
    let mut seen = BTreeSet::new();
    for claim in list.items() {
        let name = claim.child("name").text();
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        if !seen.insert((name, claim.child("request").text())) {
            let path = claim.path.clone();
            errors.push(FieldError::duplicate(path, name.into()));
        }
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().copied().collect();
            let rest = if names.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", names.join(", "))
            };
            let why =
                format!("must be one of the names in pod.spec.resourceClaims{rest}");
            let error = FieldError::not_found(claim.path, name.into());
            errors.push(error.because(why));
        }
    }
}

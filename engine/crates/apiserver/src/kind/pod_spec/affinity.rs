//! The node and pod affinities of a pod.

use kubemu_admission::{FieldError, name};

use crate::kind::field::{Errors, Field};
use crate::kind::rule;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates the affinities of a pod.
pub(super) fn affinity(field: &Field<'_>, errors: &mut Errors) {
    nodes(&field.child("nodeAffinity"), errors);
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = field.child(name);
        for term in pods.child(REQUIRED).items() {
            pod_term(&term, errors);
        }
        for weighted in pods.child(PREFERRED).items() {
            weight(&weighted, errors);
            pod_term(&weighted.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Field<'_>, errors: &mut Errors) {
    let weight = term.child("weight");
    if !(1..=100).contains(&weight.count()) {
        let value = weight.count().into();
        let why = "must be in the range 1-100";
        errors.push(FieldError::invalid(weight.path, value, why));
    }
}

fn nodes(field: &Field<'_>, errors: &mut Errors) {
    let required = field.child(REQUIRED);
    if required.is_set() {
        node_selector(&required, errors);
    }
    for weighted in field.child(PREFERRED).items() {
        weight(&weighted, errors);
        node_term(&weighted.child("preference"), errors);
    }
}

/// Validates a node selector, which needs at least one term.
pub(in crate::kind) fn node_selector(selector: &Field<'_>, errors: &mut Errors) {
    let terms = selector.child("nodeSelectorTerms");
    if terms.len() == 0 {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        node_term(&term, errors);
    }
}

fn node_term(term: &Field<'_>, errors: &mut Errors) {
    for requirement in term.child("matchExpressions").items() {
        label_requirement(&requirement, errors);
    }
    for requirement in term.child("matchFields").items() {
        field_requirement(&requirement, errors);
    }
}

fn label_requirement(requirement: &Field<'_>, errors: &mut Errors) {
    let (operator, values) = (requirement.child("operator"), requirement.child("values"));
    match operator.text() {
        "In" | "NotIn" => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.extend((values.len() == 0).then(|| values.required(why)));
        }
        "Exists" | "DoesNotExist" => {
            let why =
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.extend((values.len() > 0).then(|| values.forbidden(why)));
        }
        "Gt" | "Lt" => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.extend((values.len() != 1).then(|| values.required(why)));
        }
        _ => errors.push(operator.invalid_text("not a valid selector operator")),
    }
    rule::qualified_name(&requirement.child("key"), errors);
    for value in values.items() {
        rule::text(&value, name::label_value, errors);
    }
}

fn field_requirement(requirement: &Field<'_>, errors: &mut Errors) {
    let (operator, values) = (requirement.child("operator"), requirement.child("values"));
    if !["In", "NotIn"].contains(&operator.text()) {
        errors.push(operator.invalid_text("not a valid selector operator"));
    } else if values.len() != 1 {
        let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field \
             selector";
        errors.push(values.required(why));
    }
    let key = requirement.child("key");
    if key.text() != "metadata.name" {
        errors.push(key.invalid_text("not a valid field selector key"));
        return;
    }
    for value in values.items() {
        rule::dns_subdomain(&value, errors);
    }
}

fn pod_term(term: &Field<'_>, errors: &mut Errors) {
    rule::selector(&term.child("labelSelector"), errors);
    rule::selector(&term.child("namespaceSelector"), errors);
    for namespace in term.child("namespaces").items() {
        let at = namespace.at(term.path_of("namespace"));
        rule::dns_label(&at, errors);
    }
    label_keys(term, errors);
    let key = term.child("topologyKey");
    if key.text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    rule::qualified_name(&key, errors);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`
/// (`ValidateMatchLabelKeysAndMismatchLabelKeys`).
pub(super) fn label_keys(term: &Field<'_>, errors: &mut Errors) {
    let selector = term.child("labelSelector");
    let matched = term.child("matchLabelKeys");
    let mismatched = term.child("mismatchLabelKeys");
    for list in [&matched, &mismatched] {
        if list.len() > 0 && !selector.is_set() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(list.forbidden(why));
        } else {
            list.items()
                .for_each(|it| rule::qualified_name(&it, errors));
        }
    }
    let labels = selector.child("matchLabels");
    let mut known: Vec<&str> = labels.entries().map(|(key, _)| key).collect();
    for expression in selector.child("matchExpressions").items() {
        let key = expression.child("key").text();
        let index = matched.items().position(|it| it.text() == key);
        if let Some(index) = index.filter(|_| known.contains(&key)) {
            let path = format!("{}[{index}]", term.path);
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(path, key.into(), why));
        }
        known.push(key);
    }
    for key in matched.items() {
        if mismatched.items().any(|it| it.text() == key.text()) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(key.invalid(why));
        }
    }
}

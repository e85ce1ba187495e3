//! Warnings about deprecated node labels (pkg/api/node/util.go).

use kubemu_admission::name;

use crate::kind::field::Field;

const DEPRECATED: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

/// The deprecation of a label, if it is deprecated.
pub(in crate::kind) fn deprecated(label: &str) -> Option<&'static str> {
    let found = DEPRECATED.iter().find(|(known, _)| *known == label);
    found.map(|(_, why)| *why)
}

/// Warns about deprecated labels in a node selector map.
pub(in crate::kind) fn labels(map: &Field<'_>, warnings: &mut Vec<String>) {
    for (label, field) in map.entries() {
        if let Some(why) = deprecated(label) {
            warnings.push(format!("{}: {why}", field.path));
        }
    }
}

/// Warns about a deprecated label in a field.
pub(in crate::kind) fn key(field: &Field<'_>, warnings: &mut Vec<String>) {
    if let Some(why) = deprecated(field.text()) {
        warnings.push(format!("{}: {} is {why}", field.path, field.text()));
    }
}

/// Warns about a node selector term; the values of a preferred term are checked too.
pub(in crate::kind) fn term(
    term: &Field<'_>,
    is_preferred: bool,
    warnings: &mut Vec<String>,
) {
    for expression in term.child("matchExpressions").items() {
        key(&expression.child("key"), warnings);
        let values = expression.child("values").items();
        for value in values.filter(|_| is_preferred) {
            for wrong in name::label_value(value.text()) {
                warnings.push(format!(
                    "{}: {} is invalid, {wrong}",
                    value.path,
                    value.text()
                ));
            }
        }
    }
}

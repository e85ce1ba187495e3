//! Label selectors, as Kubernetes evaluates them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement,
};

/// Whether the selector matches these labels. An empty selector matches nothing.
pub(crate) fn selects<'a>(
    selector: &LabelSelector,
    label: impl Fn(&str) -> Option<&'a str>,
) -> bool {
    let wanted = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    let is_empty =
        wanted.clone().next().is_none() && expressions.clone().next().is_none();
    !is_empty
        && wanted
            .into_iter()
            .all(|(key, value)| label(key) == Some(value))
        && expressions
            .into_iter()
            .all(|expression| holds(expression, label(&expression.key)))
}

/// Whether a requirement holds for a label with this value.
fn holds(expression: &LabelSelectorRequirement, found: Option<&str>) -> bool {
    let is_listed = || {
        let mut values = expression.values.iter().flatten();
        found.is_some_and(|found| values.any(|value| value == found))
    };
    match expression.operator.as_str() {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

//! The validation of the annotations that affect a pod (`ValidatePodSpecificAnnotations` in
//! pkg/apis/core/validation).

use kubemu_admission::FieldError;
use serde_json::Value;

use crate::kind::field::{Errors, Field};

/// The annotation of a mirror pod, which represents a static pod of the kubelet.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";
/// The prefix of the deprecated annotations with the AppArmor profile of a container; the name of
/// the container follows.
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The validation errors of a pod's annotations.
pub(super) fn errors(object: &Value, old: Option<&Value>) -> Errors {
    let metadata = Field::of(object, "metadata");
    let mut errors = Errors::new();
    if let Some(old) = old {
        changes(&metadata, old, &mut errors);
    }
    let annotations = metadata.child("annotations");
    let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
    for (name, value) in annotations.entries() {
        if name == MIRROR && node.is_empty() {
            let why = "must set spec.nodeName if mirror pod annotation is set";
            errors.push(value.invalid(why));
        }
    }
    let cost = |object: &Value| {
        let value = object["metadata"]["annotations"][DELETION_COST].as_str();
        value.is_none_or(is_cost)
    };
    if !cost(object) && old.is_none_or(cost) {
        let found = annotations.entries().find(|it| it.0 == DELETION_COST);
        let found = found.map(|(_, value)| value.invalid("must be a 32bit integer"));
        errors.extend(found);
    }
    errors
}

/// Whether a string is a deletion cost as the controllers parse it: a leading plus or zero is
/// invalid.
fn is_cost(text: &str) -> bool {
    let is_plain = text == "0" || !text.starts_with(['+', '0']);
    is_plain && text.parse::<i32>().is_ok()
}

/// The errors for immutable annotations that are added, removed or changed.
fn changes(metadata: &Field<'_>, old: &Value, errors: &mut Errors) {
    let fixed = |name: &str| {
        if name == MIRROR {
            Some("mirror pod annotation")
        } else {
            name.starts_with(APP_ARMOR)
                .then_some("AppArmor annotations")
        }
    };
    let mut forbid = |name: &str, why: String| {
        let path = metadata.path_of(&format!("annotations[{name}]"));
        errors.push(FieldError::forbidden(path, why));
    };
    let (new, previous) = (
        &metadata.value["annotations"],
        &old["metadata"]["annotations"],
    );
    for (name, value) in previous.as_object().into_iter().flatten() {
        if let Some(what) = fixed(name).filter(|_| new.get(name) != Some(value)) {
            forbid(name, format!("may not remove or update {what}"));
        }
    }
    for (name, _) in new.as_object().into_iter().flatten() {
        if let Some(what) = fixed(name).filter(|_| previous.get(name).is_none()) {
            forbid(name, format!("may not add {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(annotations: Value) -> Value {
        json!({"metadata": {"annotations": annotations}, "spec": {}})
    }

    fn found(object: &Value, old: Option<&Value>) -> Vec<String> {
        let errors = errors(object, old);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_mirror_pod_requires_a_node_name() {
        let mut mirror = pod(json!({MIRROR: "x"}));
        let expected = "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": \
                        must set spec.nodeName if mirror pod annotation is set";
        assert_eq!(found(&mirror, None), [expected]);
        mirror["spec"]["nodeName"] = "n".into();
        assert_eq!(found(&mirror, None), [""; 0]);
    }

    #[test]
    fn mirror_and_apparmor_annotations_are_immutable() {
        let profile = format!("{APP_ARMOR}c");
        let none = pod(json!({}));
        let mut both = pod(json!({MIRROR: "x", (profile): "unconfined"}));
        both["spec"]["nodeName"] = "n".into();
        let prefix =
            "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not";
        let added = found(&both, Some(&none));
        assert_eq!(added[0], format!("{prefix} add mirror pod annotation"));
        let removed = found(&none, Some(&both));
        let expected = format!("{prefix} remove or update mirror pod annotation");
        assert_eq!(removed[0], expected);
        assert_eq!((added.len(), removed.len()), (2, 2));
        assert_eq!(found(&both, Some(&both)), [""; 0]);
    }

    #[test]
    fn the_pod_deletion_cost_is_a_32_bit_integer() {
        for good in ["0", "-1", "-01", "100", "2147483647"] {
            let object = pod(json!({DELETION_COST: good}));
            assert_eq!(found(&object, None), [""; 0], "{good}");
        }
        for bad in ["", "+1", "01", "x", "2147483648"] {
            let object = pod(json!({DELETION_COST: bad}));
            assert_eq!(found(&object, None).len(), 1, "{bad}");
            assert_eq!(found(&object, Some(&object)), [""; 0], "{bad}");
        }
    }
}

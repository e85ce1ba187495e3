//! The validation of pods (pkg/apis/core/validation).

use kubemu_admission::FieldError;
use serde_json::Value;

use super::{annotation, change, ephemeral, resize};
use crate::kind::field::{Errors, Field};
use crate::kind::pod_spec::{self, Owner};

/// The validation errors of a pod.
pub(super) fn errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = Field::of(object, "spec");
    let mut errors = annotation::errors(object, old);
    errors.extend(pod_spec::errors(&spec, Owner::Pod));
    pod_spec::only_for_pods(&spec, &mut errors);
    match old {
        None => on_create(&spec, &mut errors),
        Some(old) => change::errors(&spec, &old["spec"], &mut errors),
    }
    errors
}

/// The validation errors of a write to `ephemeralcontainers` or `resize`.
pub(super) fn part_errors(object: &Value, old: &Value, part: &str) -> Vec<FieldError> {
    if old["metadata"]["annotations"]
        .get(annotation::MIRROR)
        .is_some()
    {
        let why = match part {
            "resize" => "static pods cannot be resized",
            _ => "static pods do not support ephemeral containers",
        };
        return vec![FieldError::forbidden("", why)];
    }
    let spec = Field::of(object, "spec");
    let mut errors = annotation::errors(object, Some(old));
    errors.extend(pod_spec::errors(&spec, Owner::Pod));
    match part {
        "resize" => resize::errors(object, old, &mut errors),
        _ => ephemeral::errors(object, old, &mut errors),
    }
    errors
}

/// The errors for fields that must not be set on create.
fn on_create(spec: &Field<'_>, errors: &mut Errors) {
    let ephemeral = spec.child("ephemeralContainers");
    if ephemeral.len() > 0 {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    let node = spec.child("nodeName");
    if !node.text().is_empty() && spec.child("schedulingGates").len() > 0 {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(node.forbidden(why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::default::fill_in;
    use super::*;

    #[test]
    fn container_errors_have_the_path_of_the_field() {
        let mut pod = json!({"spec": {"containers": [{"name": "A B"},
            {"name": "c", "image": "c", "ports": [{"containerPort": 70000}]},
            {"name": "c", "image": "c", "imagePullPolicy": "Often"}]}});
        fill_in(&mut pod);
        let found: Vec<_> = errors(&pod, None).into_iter().map(|it| it.path).collect();
        let expected = [
            "spec.containers[0].name",
            "spec.containers[0].image",
            "spec.containers[1].ports[0].containerPort",
            "spec.containers[2].imagePullPolicy",
            "spec.containers[2].name",
        ];
        assert_eq!(found, expected);
    }
}

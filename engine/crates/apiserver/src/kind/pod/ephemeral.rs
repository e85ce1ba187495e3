//! Writes to `ephemeralcontainers`: containers for debugging are added to a pod
//! (`ValidatePodEphemeralContainersUpdate` in pkg/apis/core/validation).

use serde_json::Value;

use crate::kind::field::{Errors, Field};
use crate::kind::items;

/// The list.
pub(super) const LIST: &str = "ephemeralContainers";

/// The validation errors of a pod with new ephemeral containers, beyond those of the rest of its
/// spec.
pub(super) fn errors(object: &Value, old: &Value, errors: &mut Errors) {
    let list = Field::of(object, "spec").child(LIST);
    for (_, old) in items(&old["spec"], LIST) {
        let name = old["name"].to_string();
        let new = list.items().find(|it| it.value["name"] == old["name"]);
        match new {
            None => {
                let why =
                    format!("existing ephemeral containers {name} may not be removed\n");
                errors.push(list.forbidden(why));
            }
            Some(new) if new.value != old => {
                let why =
                    format!("existing ephemeral containers {name} may not be changed\n");
                errors.push(list.forbidden(why));
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(before: &Value, after: &Value) -> Vec<String> {
        let pod = |list: &Value| json!({"spec": {"containers": [{"name": "c"}], "ephemeralContainers": list}});
        let mut found = Errors::new();
        errors(&pod(after), &pod(before), &mut found);
        found.into_iter().map(|it| it.path).collect()
    }

    fn container(name: &str, image: &str) -> Value {
        json!({"name": name, "image": image})
    }

    #[test]
    fn an_ephemeral_container_is_added_and_never_changed() {
        let (none, one) = (json!([]), json!([container("d", "i")]));
        assert!(refused(&none, &one).is_empty());
        assert_eq!(refused(&one, &none), ["spec.ephemeralContainers"]);
        let other = json!([container("d", "j")]);
        assert_eq!(refused(&one, &other), ["spec.ephemeralContainers"]);
    }
}

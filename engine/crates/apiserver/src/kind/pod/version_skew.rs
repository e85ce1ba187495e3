//! Sets AppArmor profile fields from the deprecated annotations of a pod
//! (`applyAppArmorVersionSkew` in pkg/registry/core/pod).

use serde_json::{Value, json};

use super::annotation::APP_ARMOR;
use crate::kind::text;
use crate::meta;

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// The maximum size of a profile's name in bytes.
const MAX_PROFILE_LENGTH: usize = 4095;

/// The warnings for annotations without an equal field.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let outdated =
        of_containers(pod).filter(|it| it.profile.as_ref() != Some(of_pod(pod)));
    let outdated = outdated.map(|it| {
        format!(
            "metadata.annotations[{}]: deprecated since v1.30; use the \"appArmorProfile\" field \
             instead",
            it.key
        )
    });
    outdated.collect()
}

/// Sets the fields of the containers. A profile equal to that of the pod is not set.
pub(super) fn fill_in(pod: &mut Value) {
    let of_pod = of_pod(pod).clone();
    let found: Vec<_> = of_containers(pod)
        .filter_map(|it| Some((it.list, it.index, it.profile?.clone())))
        .filter(|(_, _, profile)| *profile != of_pod)
        .collect();
    for (list, index, profile) in found {
        let containers = pod["spec"][list].as_array_mut();
        let Some(container) = containers.and_then(|it| it.get_mut(index)) else {
            continue;
        };
        let context = meta::field(meta::fields(container), "securityContext");
        context.insert("appArmorProfile".to_owned(), profile);
    }
}

/// A container with the annotation and without the field.
struct AnnotatedContainer {
    list: &'static str,
    index: usize,
    key: String,
    /// The profile of the annotation; `None` if it is invalid.
    profile: Option<Value>,
}

fn of_pod(pod: &Value) -> &Value {
    &pod["spec"]["securityContext"]["appArmorProfile"]
}

fn of_containers(pod: &Value) -> impl Iterator<Item = AnnotatedContainer> {
    let annotations = &pod["metadata"]["annotations"];
    let is_for_windows = text(&pod["spec"]["os"], "name") == "windows";
    let lists = LISTS.into_iter().filter(move |_| !is_for_windows);
    lists.flat_map(move |list| {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers
            .enumerate()
            .filter_map(move |(index, container)| {
                let key = format!("{APP_ARMOR}{}", text(container, "name"));
                let annotation = annotations[&key].as_str()?;
                let own = &container["securityContext"]["appArmorProfile"];
                let profile = profile(annotation);
                own.is_null().then_some(AnnotatedContainer {
                    list,
                    index,
                    key,
                    profile,
                })
            })
    })
}

/// The profile of an annotation; `None` if it is not a valid field value.
fn profile(annotation: &str) -> Option<Value> {
    let local = |name: &str| {
        let is_valid =
            !name.is_empty() && name.trim() == name && name.len() <= MAX_PROFILE_LENGTH;
        is_valid.then(|| json!({"type": "Localhost", "localhostProfile": name}))
    };
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => local(annotation.strip_prefix("localhost/")?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotation: &str, context: Value, of_container: Value) -> Value {
        json!({
            "metadata": {"annotations": {(format!("{APP_ARMOR}c")): annotation}},
            "spec": {
                "securityContext": context,
                "containers": [{"name": "c", "securityContext": of_container}],
            },
        })
    }

    #[test]
    fn an_annotation_becomes_the_field_of_its_container() {
        let mut created = pod("localhost/p", json!({}), json!({}));
        assert_eq!(warnings(&created).len(), 1);
        fill_in(&mut created);
        let own = &created["spec"]["containers"][0]["securityContext"]["appArmorProfile"];
        let expected = json!({"type": "Localhost", "localhostProfile": "p"});
        assert_eq!(*own, expected);
    }

    #[test]
    fn existing_fields_are_not_overwritten() {
        let profile = json!({"appArmorProfile": {"type": "RuntimeDefault"}});
        for annotation in [
            pod("runtime/default", profile.clone(), json!({})),
            pod("unconfined", json!({}), profile),
        ] {
            assert_eq!(warnings(&annotation), [""; 0]);
            let mut created = annotation.clone();
            fill_in(&mut created);
            assert_eq!(created, annotation);
        }
    }

    #[test]
    fn an_invalid_annotation_has_a_warning() {
        for annotation in ["odd", "localhost/", "localhost/ p"] {
            let mut created = pod(annotation, json!({}), json!({}));
            let before = created.clone();
            assert_eq!(warnings(&created).len(), 1, "{annotation}");
            fill_in(&mut created);
            assert_eq!(created, before);
        }
    }
}

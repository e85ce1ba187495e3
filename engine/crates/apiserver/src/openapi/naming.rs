//! Names of kinds, of operations and of their tags in OpenAPI documents.

use serde_json::{Value, json};

use crate::resource::Resource;

/// The operation id, such as `createCoreV1NamespacedPod`: the verb, the group and version, the
/// prefix (`Namespaced`), the kind and the suffix (such as `Status`).
pub(super) fn operation(resource: &Resource, verb: &str, place: (&str, &str)) -> String {
    let (before, after) = place;
    let group = capital(&group(resource));
    let version = capital(&resource.version);
    let kind = &resource.kind;
    format!("{verb}{group}{version}{before}{kind}{after}")
}

/// The tag, such as `core_v1`, by which documentation groups operations.
pub(super) fn tag(resource: &Resource) -> String {
    format!("{}_{}", group(resource), resource.version)
}

/// `rbacAuthorization` for `rbac.authorization.k8s.io`, `core` for the core group.
fn group(resource: &Resource) -> String {
    if resource.group.is_empty() {
        return "core".to_owned();
    }
    let own = resource.group.as_str();
    let own = own.strip_suffix(".k8s.io").unwrap_or(own);
    let mut words = own.split(['.', '-']);
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &capital(word))
}

/// The word with its first letter in upper case.
pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Group, version and kind as in `x-kubernetes-group-version-kind`.
pub(super) fn group_version_kind(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_named_after_group_version_and_kind() {
        let rows = [
            ("", "createCoreV1NamespacedThing", "core_v1"),
            (
                "rbac.authorization.k8s.io",
                "createRbacAuthorizationV1NamespacedThing",
                "rbacAuthorization_v1",
            ),
            (
                "some-things.example.com",
                "createSomeThingsExampleComV1NamespacedThing",
                "someThingsExampleCom_v1",
            ),
        ];
        for (group, name, of_group) in rows {
            let resource = Resource::new(group, "v1", "Thing", "things");
            let found = operation(&resource, "create", ("Namespaced", ""));
            assert_eq!((found.as_str(), tag(&resource).as_str()), (name, of_group));
        }
    }
}

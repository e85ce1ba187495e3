//! `--apply`: objects from files, directories or the built-in examples.

use std::path::PathBuf;

use super::example;
use crate::Failure;
use crate::cluster::error_message;
use crate::document::{self, Document};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kubemu_apiserver::Registry;

/// The field manager of the applied objects.
const FIELD_MANAGER: &str = "5spot-dev";

/// Reads all objects of `paths` in order, or the built-in examples if there are none.
///
/// # Errors
/// A path cannot be read, or a text is neither YAML nor JSON. The failure names the file.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    if !paths.is_empty() {
        return document::read(paths);
    }
    let mut all = Vec::new();
    for (name, text) in example::ALL {
        all.extend(document::parse(name, text)?);
    }
    Ok(all)
}

/// Removes the objects whose kinds are not served, and returns them.
pub(crate) fn take_unserved(
    objects: &mut Vec<Document>,
    registry: &Registry,
) -> Vec<Document> {
    let is_unserved = |object: &mut Document| {
        let version = object.text("/apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = registry.of_kind(group, version, object.text("/kind"));
        kind.is_none()
    };
    objects.extract_if(.., is_unserved).collect()
}

/// `Kind/name` of each object, as text.
pub(crate) fn titles(objects: &[Document]) -> String {
    objects.iter().map(title).collect::<Vec<_>>().join(", ")
}

fn title(object: &Document) -> String {
    format!("{}/{}", object.text("/kind"), object.text("/metadata/name"))
}

/// Applies one object.
///
/// # Errors
/// The API server returns an error, the object has no name, or its kind is not served. The failure
/// names the file of the object.
pub(crate) async fn apply(
    client: &kube::Client,
    written: &Document,
) -> Result<(), Failure> {
    let failed = |why: String| {
        Failure::new(
            format!("applying {} from {}", title(written), written.origin),
            why,
        )
    };
    let (group, version) = match written.text("/apiVersion").split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", written.text("/apiVersion")),
    };
    let kind = GroupVersionKind::gvk(group, version, written.text("/kind"));
    let (resource, capabilities) = pinned_kind(client, &kind).await.map_err(|error| {
        failed(error_message(error))
            .remedy("correct apiVersion and kind, or apply the CRD first")
    })?;
    let api: Api<DynamicObject> =
        match (capabilities.scope, written.text("/metadata/namespace")) {
            (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
            (Scope::Namespaced, "") => {
                Api::default_namespaced_with(client.clone(), &resource)
            }
            (Scope::Namespaced, namespace) => {
                Api::namespaced_with(client.clone(), namespace, &resource)
            }
        };
    let name = written.text("/metadata/name");
    if name.is_empty() {
        let failure = failed("metadata.name is missing".to_owned());
        return Err(failure.remedy("give it a name"));
    }
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match api
        .patch(name, &params, &Patch::Apply(&written.object))
        .await
    {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(failed(error_message(error))
                .remedy("correct it, or remove it from --apply"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_examples_are_read_when_nothing_is_given() {
        let titles: Vec<String> = read(&[]).unwrap().iter().map(title).collect();
        assert!(titles.contains(&"ScheduledMachine/business-hours-worker".to_owned()));
        assert!(titles.contains(&"ScheduledMachine/every-other-minute".to_owned()));
    }

    #[test]
    fn a_missing_path_is_named_in_the_error() {
        let failure = read(&[PathBuf::from("/nowhere.yaml")])
            .err()
            .unwrap()
            .to_string();
        assert!(failure.starts_with("reading /nowhere.yaml: "), "{failure}");
    }
}

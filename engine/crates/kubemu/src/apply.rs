//! `--apply`: applies objects from files and directories.

use crate::document::Document;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kubemu_apiserver::Registry;
use kubemu_terminal::Failure;

/// Removes the objects whose kinds are not served, and returns them.
pub fn take_unserved(objects: &mut Vec<Document>, registry: &Registry) -> Vec<Document> {
    let is_unserved = |object: &mut Document| {
        let version = object.text("/apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = registry.of_kind(group, version, object.text("/kind"));
        kind.is_none()
    };
    objects.extract_if(.., is_unserved).collect()
}

/// `Kind/name` of each object, as text.
pub fn titles(objects: &[Document]) -> String {
    objects.iter().map(title).collect::<Vec<_>>().join(", ")
}

fn title(object: &Document) -> String {
    format!("{}/{}", object.text("/kind"), object.text("/metadata/name"))
}

/// Applies one object as a field manager.
///
/// # Errors
/// The API server returns an error, the object has no name, or its kind is not served. The failure
/// names the file of the object.
pub async fn apply(
    client: &kube::Client,
    written: &Document,
    field_manager: &str,
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
    let params = PatchParams::apply(field_manager).force();
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

/// The message of the API server's Status, or the error of the client.
pub fn error_message(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

//! Reading and writing the two objects.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::rotation::Certificates;

/// The key of the Secret that contains the whole rotation.
const STATE: &str = "rotation.json";
/// The key with the CAs, for users and for clients that are not API servers.
const BUNDLE: &str = "ca.crt";
/// The field manager.
const MANAGER: &str = "5spot-webhook";

/// The certificates in the Secret; empty if it contains something else.
pub(super) fn stored_certificates(secret: &Secret) -> Certificates {
    let data = secret.data.as_ref();
    let state = data.and_then(|data| data.get(STATE));
    state
        .map(|it| Certificates::read(&it.0))
        .unwrap_or_default()
}

/// Replaces the content of `stored` by `next`; `None` if the Secret has changed meanwhile.
pub(super) async fn replace(
    secrets: &Api<Secret>,
    mut stored: Secret,
    next: &Certificates,
) -> Result<Option<Secret>, String> {
    let name = stored.metadata.name.clone().unwrap_or_default();
    let text = next.text().map_err(|error| error.to_string())?;
    stored.data = Some(BTreeMap::from([
        (STATE.to_owned(), ByteString(text)),
        (BUNDLE.to_owned(), ByteString(next.bundle().into_bytes())),
    ]));
    let by = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    // With the resourceVersion that was read.
    conflict_is_none(secrets.replace(&name, &by, &stored).await)
        .map_err(|why| format!("writing Secret {name}: {why}"))
}

/// The bundle of the webhooks with these names; `None` if one is missing or has none, or they
/// differ.
pub(super) fn trusted_bundle(
    configuration: &ValidatingWebhookConfiguration,
    webhooks: &[String],
) -> Option<String> {
    let bundle = |webhook: &String| {
        let mut all = configuration.webhooks.iter().flatten();
        let own = all.find(|it| it.name == *webhook)?;
        own.client_config.ca_bundle.as_ref()
    };
    let mut bundles = webhooks.iter().map(bundle);
    let first = bundles.next()??;
    let is_one = bundles.all(|other| other == Some(first));
    is_one.then(|| String::from_utf8_lossy(&first.0).into_owned())
}

/// The patch that makes the webhooks trust `bundle`; `None` if they do already.
///
/// # Errors
/// There is no webhook with one of the names.
pub(super) fn bundle_patch(
    configuration: &ValidatingWebhookConfiguration,
    webhooks: &[String],
    bundle: &str,
) -> Result<Option<Value>, String> {
    let found = configuration.webhooks.as_deref().unwrap_or_default();
    let is_missing = |webhook: &&String| !found.iter().any(|it| it.name == **webhook);
    if let Some(webhook) = webhooks.iter().find(is_missing) {
        let name = configuration.metadata.name.as_deref().unwrap_or_default();
        return Err(format!(
            "ValidatingWebhookConfiguration {name} has no webhook {webhook}; apply the \
             manifests of the webhook"
        ));
    }
    if trusted_bundle(configuration, webhooks).as_deref() == Some(bundle) {
        return Ok(None);
    }
    let bundle = ByteString(bundle.as_bytes().to_vec());
    let trusting: Vec<Value> = webhooks
        .iter()
        .map(|webhook| json!({"name": webhook, "clientConfig": {"caBundle": bundle}}))
        .collect();
    Ok(Some(json!({
        // The API server returns a conflict if the configuration has changed meanwhile.
        "metadata": {"resourceVersion": configuration.metadata.resource_version},
        "webhooks": trusting,
    })))
}

/// Sends the patch; `None` if the configuration has changed since it was read.
pub(super) async fn apply(
    configurations: &Api<ValidatingWebhookConfiguration>,
    found: &ValidatingWebhookConfiguration,
    patch: Value,
) -> Result<Option<ValidatingWebhookConfiguration>, String> {
    let name = found.metadata.name.clone().unwrap_or_default();
    let by = PatchParams::apply(MANAGER);
    // Webhooks are merged by their names, so that no other webhook or field is changed.
    let patch = Patch::Strategic(patch);
    conflict_is_none(configurations.patch(&name, &by, &patch).await)
        .map_err(|why| format!("patching ValidatingWebhookConfiguration {name}: {why}"))
}

fn conflict_is_none<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, String> {
    match answer {
        Ok(written) => Ok(Some(written)),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => Err(error.to_string()),
    }
}

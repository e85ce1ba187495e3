//! Conversion webhooks of custom resources (pkg/apiserver/conversion/webhook_converter.go of
//! k8s.io/apiextensions-apiserver).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::meta;
use crate::webhook_client::{Endpoint, Services};

/// The timeout of a conversion webhook.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A conversion webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Webhook(Endpoint);

impl Webhook {
    /// Reads `spec.conversion.webhook`, and looks up its service.
    ///
    /// # Errors
    /// The reason why the webhook cannot be called.
    pub(crate) fn of(services: &Services<'_>, webhook: &Value) -> Result<Self, String> {
        let endpoint = Endpoint::of(services, &webhook["clientConfig"])?;
        endpoint.address.clone()?;
        Ok(Self(endpoint))
    }

    /// Converts objects to `api_version` by calling the webhook.
    ///
    /// # Errors
    /// The reason why the objects cannot be converted.
    pub(crate) async fn convert(
        &self,
        objects: &[Arc<Value>],
        api_version: &str,
    ) -> Result<Vec<Value>, String> {
        let sent: Vec<&Value> = objects.iter().map(|it| &**it).collect();
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": UID, "desiredAPIVersion": api_version, "objects": sent},
        });
        let review = self.0.post(&review, TIMEOUT).await?;
        let response = &review["response"];
        if response["uid"] != UID {
            return Err(format!(
                "expected response.uid={UID:?}, got {}",
                response["uid"]
            ));
        }
        if response["result"]["status"] != "Success" {
            let message = text(&response["result"], "message");
            return Err(if message.is_empty() {
                "no message from the webhook".to_owned()
            } else {
                message.to_owned()
            });
        }
        let converted = response["convertedObjects"].as_array();
        let converted = converted.map(Vec::as_slice).unwrap_or_default();
        if converted.len() != objects.len() {
            return Err(format!(
                "expected {} converted objects, got {}",
                objects.len(),
                converted.len()
            ));
        }
        let both = objects.iter().zip(converted);
        both.map(|(before, after)| checked(before, after, api_version))
            .collect()
    }
}

/// The uid of the request; a ConversionReview contains only one request, so a constant is
/// enough.
const UID: &str = "00000000-0000-4000-8000-000000000001";

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Checks that a converted object is the same object. A webhook may only change labels and
/// annotations in its metadata.
fn checked(before: &Value, after: &Value, api_version: &str) -> Result<Value, String> {
    let (actual, kind) = (text(after, "apiVersion"), text(after, "kind"));
    if actual != api_version {
        return Err(format!(
            "invalid converted object: invalid apiVersion: expected {api_version}, got {actual}"
        ));
    }
    if kind != text(before, "kind") {
        return Err(format!(
            "invalid converted object: invalid kind: expected {}, got {kind}",
            text(before, "kind")
        ));
    }
    for field in ["name", "namespace", "uid"] {
        let (previous, has) = (meta::text(before, field), meta::text(after, field));
        if previous != has {
            return Err(format!(
                "invalid metadata of the converted object: metadata.{field} changed from \
                 {previous:?} to {has:?}"
            ));
        }
    }
    let mut object = after.clone();
    let mut metadata = before["metadata"].clone();
    for field in ["labels", "annotations"] {
        let fields = meta::fields(&mut metadata);
        match after["metadata"].get(field) {
            Some(value) => {
                fields.insert(field.to_owned(), value.clone());
            }
            None => {
                fields.shift_remove(field);
            }
        }
    }
    object["metadata"] = metadata;
    Ok(object)
}

//! Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::{BuiltinKind, FieldSelector, Write, column, data, text};
use crate::json_type::go_kind;
use crate::meta;
use crate::resource::{Column, Resource};
use crate::syntax;

/// `secrets` of `v1`.
#[derive(Debug)]
pub(super) struct Secret;

const TYPE: &str = "Used to facilitate programmatic handling of secret data. More info: \
     https://kubernetes.io/docs/concepts/configuration/secret/#secret-types";
const DATA: &str = "Data contains the secret data. Each key must consist of alphanumeric \
     characters, '-', '_' or '.'. The serialized form of the secret data is a base64 encoded \
     string, representing the arbitrary (possibly non-string) data value here. Described in \
     https://tools.ietf.org/html/rfc4648#section-4";

impl BuiltinKind for Secret {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "Secret", "secrets")
            .without_generation()
            .with_columns(vec![
                Column::new("Type", "string", TYPE),
                Column::new("Data", "string", DATA),
                Column::age(),
            ])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const { &[FieldSelector::new("type")] }
    }

    fn default(&self, object: &mut Value) {
        let fields = meta::fields(object);
        if let Some(Value::Object(texts)) = fields.shift_remove("stringData") {
            let data = meta::field(fields, "data");
            for (key, text) in texts {
                let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
                data.insert(key, encoded.into());
            }
        }
        fields.entry("type").or_insert_with(|| "Opaque".into());
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let object = write.object;
        let mut errors = Vec::new();
        if write.old.is_some_and(|old| old["type"] != object["type"]) {
            let why = "field is immutable";
            errors.push(FieldError::invalid("type", object["type"].clone(), why));
        }
        errors.extend(data::errors(object, write.old, &["data"]));
        let sizes = data::entries(object, "data").map(|(_, it)| data::decoded_size(it));
        errors.extend(data::size_error("data", sizes.sum()));
        errors.extend(missing_keys(object));
        errors.extend(docker_config(object));
        errors.extend(missing_account(object));
        errors
    }

    /// The warnings for a TLS certificate or key without PEM data.
    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let object = write.object;
        if text(object, "type") != "kubernetes.io/tls" {
            return Vec::new();
        }
        let is_pem = |key: &str| {
            let encoded = object["data"][key].as_str().unwrap_or_default();
            let decoded = STANDARD.decode(encoded).unwrap_or_default();
            String::from_utf8_lossy(&decoded).contains("-----BEGIN ")
        };
        let parts = [("tls.crt", "certificate"), ("tls.key", "key")];
        let missing = parts.iter().find(|(key, _)| !is_pem(key));
        let warning = missing
            .map(|(_, what)| format!("tls: failed to find any PEM data in {what} input"));
        warning.into_iter().collect()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::string(&object["type"]),
            column::count(&object["data"]).into(),
            column::age(object, now),
        ]
    }
}

/// The errors for missing keys that the type of a secret requires.
fn missing_keys(object: &Value) -> Vec<FieldError> {
    let has = |key: &str| object["data"].get(key).is_some();
    let needed: &[&str] = match text(object, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            &["username", "password"]
        }
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        _ => &[],
    };
    // An empty value is valid, except for an SSH key.
    let is_empty = |key: &str| object["data"][key] == "";
    let missing = needed.iter();
    let missing =
        missing.filter(|key| !has(key) || (**key == "ssh-privatekey" && is_empty(key)));
    missing
        .map(|key| FieldError::required(format!("data[{key}]"), ""))
        .collect()
}

/// The error if a token secret does not name its service account.
fn missing_account(object: &Value) -> Option<FieldError> {
    let key = "kubernetes.io/service-account.name";
    let missing = text(object, "type") == "kubernetes.io/service-account-token"
        && text(&object["metadata"]["annotations"], key).is_empty();
    missing.then(|| FieldError::required(format!("metadata.annotations[{key}]"), ""))
}

/// The error if registry credentials are not JSON; it does not show the credentials.
fn docker_config(object: &Value) -> Option<FieldError> {
    let key = match text(object, "type") {
        "kubernetes.io/dockerconfigjson" => ".dockerconfigjson",
        "kubernetes.io/dockercfg" => ".dockercfg",
        _ => return None,
    };
    let config = STANDARD.decode(object["data"].get(key)?.as_str()?).ok()?;
    let why = match serde_json::from_slice::<Value>(&config) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(other) => {
            let kind = go_kind(&other);
            format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )
        }
        Err(error) => syntax::error(&config).unwrap_or_else(|| error.to_string()),
    };
    let path = format!("data[{key}]");
    Some(FieldError::invalid(
        path,
        "<secret contents redacted>".into(),
        why,
    ))
}

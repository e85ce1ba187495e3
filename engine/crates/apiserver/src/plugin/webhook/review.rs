//! The requests to webhooks and their responses: `AdmissionReview`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_admission::policy::{
    GroupVersionKind, GroupVersionResource, Invocation, Request,
};
use serde_json::{Map, Value, json};

use super::source::AdmissionWebhook;
use crate::plugin::pod::text;
use crate::random::Random;
use crate::status::{Reason, Status};

/// A review that is sent to a webhook.
pub(super) struct Review {
    pub(super) body: Value,
    pub(super) uid: String,
}

/// The response of a webhook.
#[derive(Debug)]
pub(crate) struct AdmissionResponse {
    pub(crate) allowed: bool,
    result: Value,
    /// The JSON patch; null if there is none.
    pub(crate) patch: Value,
    pub(crate) warnings: Vec<String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

fn of_kind(it: GroupVersionKind<'_>) -> Value {
    json!({"group": it.group, "version": it.version, "kind": it.kind})
}

fn of_resource(it: GroupVersionResource<'_>) -> Value {
    json!({"group": it.group, "version": it.version, "resource": it.resource})
}

impl Review {
    /// The review of a request, with the new and the old object.
    pub(super) fn new(
        request: &Request<'_>,
        invocation: &Invocation<'_>,
        objects: [Value; 2],
        hook: &AdmissionWebhook,
    ) -> Self {
        let [object, old] = objects;
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| {
            if value != "" {
                fields.insert(name.to_owned(), value);
            }
        };
        set("kind", of_kind(invocation.kind));
        set("resource", of_resource(invocation.resource));
        set("subResource", request.subresource.into());
        set("requestKind", of_kind(request.kind));
        set("requestResource", of_resource(request.resource));
        set("requestSubResource", request.subresource.into());
        set("name", request.name.into());
        set("namespace", request.namespace.into());
        set("operation", request.operation.as_str().into());
        set("userInfo", user(request));
        set("object", object);
        set("oldObject", old);
        set("dryRun", request.dry_run.into());
        let options = request.options.cloned();
        set("options", options.unwrap_or_default());
        let uid = uid(&fields, hook);
        fields.shift_insert(0, "uid".to_owned(), uid.as_str().into());
        let version = &hook.review_version;
        let body = json!({"kind": "AdmissionReview",
            "apiVersion": format!("admission.k8s.io/{version}"), "request": fields});
        Self { body, uid }
    }
}

fn user(request: &Request<'_>) -> Value {
    let user = request.user;
    let mut info = Map::new();
    for (name, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            info.insert(name.to_owned(), text.as_str().into());
        }
    }
    if !user.groups.is_empty() {
        info.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra".to_owned(), json!(user.extra));
    }
    Value::Object(info)
}

/// A uid that looks random, and is the same if the request is performed again. It is seeded with an
/// FNV-1a hash.
fn uid(fields: &Map<String, Value>, hook: &AdmissionWebhook) -> String {
    let text = format!("{}/{}", hook.id, Value::Object(fields.clone()));
    let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Random::new(seed).uid()
}

impl AdmissionResponse {
    /// Validates a response (`VerifyAdmissionResponse`).
    ///
    /// # Errors
    /// The error of the response.
    pub(super) fn read(
        review: &Value,
        uid: &str,
        hook: &AdmissionWebhook,
    ) -> Result<Self, String> {
        let response = &review["response"];
        if !response.is_object() {
            return Err("webhook response was absent".to_owned());
        }
        let is_v1 = hook.review_version == "v1";
        let (patch, kind) = (text(response, "patch"), response["patchType"].as_str());
        if is_v1 {
            let received = text(response, "uid");
            if received != uid {
                return Err(format!("expected response.uid={uid:?}, got {received:?}"));
            }
            check_kind(review)?;
            check_patch(hook, patch, kind)?;
        }
        let patch = if hook.is_mutating && !patch.is_empty() {
            decoded(patch)?
        } else {
            Value::Null
        };
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let annotations = response["auditAnnotations"].as_object();
        let annotations = annotations.into_iter().flatten().filter_map(|(key, it)| {
            let key = format!("{}/{key}", hook.name);
            Some((key, it.as_str()?.to_owned()))
        });
        Ok(Self {
            allowed: response["allowed"] == true,
            result: response["status"].clone(),
            patch,
            warnings: warnings
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect(),
            annotations: annotations.collect(),
        })
    }

    /// The rejection by a webhook (`ToStatusErr`).
    pub(crate) fn refusal(&self, hook: &AdmissionWebhook) -> Status {
        let mut status = Status::from_value(&self.result, 0);
        status.code = status.code.max(400);
        let by = format!("admission webhook {:?} denied the request", hook.name);
        let reason = text(&self.result, "reason");
        status.message = if !status.message.is_empty() {
            format!("{by}: {}", status.message)
        } else if !reason.is_empty() {
            format!("{by}: {reason}")
        } else {
            format!("{by} without explanation")
        };
        if reason.is_empty() {
            status.reason = Reason::Unknown;
        }
        status
    }
}

fn check_kind(review: &Value) -> Result<(), String> {
    let (version, kind) = (text(review, "apiVersion"), text(review, "kind"));
    if version == "admission.k8s.io/v1" && kind == "AdmissionReview" {
        return Ok(());
    }
    let (group, number) = version.rsplit_once('/').unwrap_or(("", version));
    Err(format!(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got \
         {group}/{number}, Kind={kind}"
    ))
}

fn check_patch(
    hook: &AdmissionWebhook,
    patch: &str,
    kind: Option<&str>,
) -> Result<(), String> {
    let why = match (hook.is_mutating, patch.is_empty(), kind) {
        (true, false, None) => {
            "webhook returned response.patch but not response.patchType"
        }
        (true, true, Some(_)) => {
            "webhook returned response.patchType but not response.patch"
        }
        (true, _, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (true, _, Some(other)) if other != "JSONPatch" => {
            return Err(format!("unsupported patch type {other:?}"));
        }
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// Decodes a patch, which is base64-encoded.
fn decoded(patch: &str) -> Result<Value, String> {
    let undecodable =
        |why: String| format!("received undecodable patch in webhook response: {why}");
    let bytes = STANDARD.decode(patch);
    let bytes = bytes.map_err(|error| undecodable(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| undecodable(error.to_string()))
}

//! ImagePolicyWebhook: calls a backend that decides whether the images of a pod may run
//! (plugin/pkg/admission/imagepolicy).

mod backend;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use jiff::{SignedDuration, Timestamp};
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::{Value, json};

use super::{Attributes, Plugin, pod, webhook};
use crate::admission_configuration::Fields;
use crate::conversion::ReviewCall;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;
use crate::webhook_client::Endpoint;

/// The plugin. Without a configuration it has no backend, and the server does not start.
#[derive(Debug, Default)]
pub(super) struct ImagePolicyWebhook(Option<Backend>);

/// The backend.
#[derive(Debug)]
struct Backend {
    endpoint: Endpoint,
    /// How long an allowed and a denied response are cached.
    allow: SignedDuration,
    deny: SignedDuration,
    backoff: Duration,
    default_allow: bool,
    cache: Mutex<IndexMap<String, CachedStatus>>,
}

/// A cached response.
#[derive(Clone, Debug)]
struct CachedStatus {
    status: Value,
    expires_at: Timestamp,
}

/// The maximum number of cached responses.
const MAX_CACHED_RESPONSES: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The infix of pod annotations that are sent to the backend.
const ANNOTATIONS: &str = ".image-policy.k8s.io/";
/// The prefix of audit annotations.
const AUDIT: &str = "imagepolicywebhook.image-policy.k8s.io/";

impl Plugin for ImagePolicyWebhook {
    fn name(&self) -> &'static str {
        "ImagePolicyWebhook"
    }

    fn description(&self) -> &'static str {
        "Calls the webhook of a kubeconfig to check the images of a pod. Caches its \
         responses, and admits or rejects the pod as configured if the call fails. \
         Requires a configuration."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn needs_configuration(&self) -> bool {
        true
    }

    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let fields = Fields::plain(configuration, "")?;
        fields.only(&["imagePolicy"])?;
        let Some(fields) = fields.object("imagePolicy")? else {
            return Err("imagePolicy: Required value".to_owned());
        };
        fields.only(&[
            "kubeConfigFile",
            "allowTTL",
            "denyTTL",
            "retryBackoff",
            "defaultAllow",
        ])?;
        let seconds = |name: &str, default: i64| {
            let seconds = fields.number(name)?.unwrap_or_default();
            let within = duration_setting(seconds, default, 1..=1800);
            within.map_err(|why| format!("imagePolicy.{name}: {why}"))
        };
        let backoff = duration_setting(
            fields.number("retryBackoff")?.unwrap_or(0),
            500,
            1..=300_000,
        );
        let backoff =
            backoff.map_err(|why| format!("imagePolicy.retryBackoff: {why}"))?;
        let default_allow = match fields.get("defaultAllow") {
            None => false,
            Some(Value::Bool(allow)) => *allow,
            Some(_) => {
                return Err("imagePolicy.defaultAllow: must be a boolean".into());
            }
        };
        let file = fields.text("kubeConfigFile")?;
        let endpoint = backend::endpoint(Path::new(&file));
        let endpoint = endpoint
            .map_err(|why| format!("imagePolicy.kubeConfigFile: {file}: {why}"))?;
        Ok(Arc::new(Self(Some(Backend {
            endpoint,
            allow: SignedDuration::from_secs(seconds("allowTTL", 300)?),
            deny: SignedDuration::from_secs(seconds("denyTTL", 30)?),
            backoff: Duration::from_millis(u64::try_from(backoff).unwrap_or_default()),
            default_allow,
            cache: Mutex::default(),
        }))))
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let is_pod = attributes.resource().storage == GroupResource::new("", "pods");
        let writes = matches!(
            attributes.operation(),
            Operation::Create | Operation::Update
        );
        let lists: &[&str] = match attributes.subresource() {
            "" => &["containers", "initContainers"],
            "ephemeralcontainers" => &["ephemeralContainers"],
            _ => return Ok(()),
        };
        let (Some(service), Some(pod)) = (&self.0, object) else {
            return Ok(());
        };
        if !is_pod || !writes {
            return Ok(());
        }
        let images = lists.iter().flat_map(|it| pod::list(&pod["spec"], it));
        let images: Vec<Value> = images.map(|it| json!({"image": it["image"]})).collect();
        let all = pod["metadata"]["annotations"].as_object();
        let annotations = all.into_iter().flatten();
        let annotations = annotations.filter(|(key, _)| key.contains(ANNOTATIONS));
        let annotations: serde_json::Map<_, _> = annotations
            .map(|(key, it)| (key.clone(), it.clone()))
            .collect();
        let mut spec = json!({"containers": images});
        if !annotations.is_empty() {
            spec["annotations"] = annotations.into();
        }
        spec["namespace"] = attributes.namespace().into();
        service.check(cluster, attributes, spec)
    }
}

impl Backend {
    fn check(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        spec: Value,
    ) -> Result<(), Status> {
        let key = spec.to_string();
        let status = match self.cached_status(&key, cluster.instant()) {
            Some(status) => status,
            None => match self.call_backend(cluster, spec) {
                None => return Err(webhook::pending_error()),
                Some(Ok(status)) => {
                    self.cache_status(key, &status, cluster.instant());
                    status
                }
                Some(Err(_)) if self.default_allow => {
                    attributes.annotate(format!("{AUDIT}failed-open"), "true");
                    return Ok(());
                }
                Some(Err(why)) => return Err(attributes.forbidden(&why)),
            },
        };
        let notes = status["auditAnnotations"].as_object();
        for (key, note) in notes.into_iter().flatten() {
            let note = note.as_str().unwrap_or_default();
            attributes.annotate(format!("{AUDIT}{key}"), note);
        }
        if status["allowed"] == true {
            return Ok(());
        }
        Err(attributes.forbidden(&match pod::text(&status, "reason") {
            "" => "one or more images rejected by webhook backend".to_owned(),
            reason => {
                format!(
                    "image policy webhook backend denied one or more images: {reason}"
                )
            }
        }))
    }

    /// The response of the backend, or the error of the call; `None` until it has been called.
    fn call_backend(
        &self,
        cluster: &State,
        spec: Value,
    ) -> Option<Result<Value, String>> {
        let body = json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview",
            "spec": spec});
        let call = ReviewCall {
            endpoint: self.endpoint.clone(),
            body: Arc::new(body),
            timeout: TIMEOUT,
            backoff: self.backoff,
        };
        let response = cluster.webhook_calls.lock().review(call)?;
        Some(response.map(|it| it["status"].clone()))
    }

    fn cached_status(&self, key: &str, now: Timestamp) -> Option<Value> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cache.get(key).filter(|it| now < it.expires_at);
        found.map(|it| it.status.clone())
    }

    fn cache_status(&self, key: String, status: &Value, now: Timestamp) {
        let allowed = status["allowed"] == true;
        let time = if allowed { self.allow } else { self.deny };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.shift_remove(&key);
        if cache.len() >= MAX_CACHED_RESPONSES.get() {
            cache.shift_remove_index(0);
        }
        let expires_at = now.saturating_add(time).unwrap_or(now);
        let status = status.clone();
        cache.insert(key, CachedStatus { status, expires_at });
    }
}

/// A duration of the configuration: -1 means zero, 0 means the default.
fn duration_setting(
    seconds: i64,
    default: i64,
    within: std::ops::RangeInclusive<i64>,
) -> Result<i64, String> {
    match seconds {
        -1 => Ok(0),
        0 => Ok(default),
        seconds if within.contains(&seconds) => Ok(seconds),
        seconds => Err(format!(
            "valid value is between {} and {}, got {seconds}",
            within.start(),
            within.end()
        )),
    }
}

//! The registered webhooks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubemu_admission::{KubeVersion, policy};
use serde_json::Value;

use crate::meta;
use crate::plugin::pod::{list, text};
use crate::store::Change;

/// A webhook of a configuration.
#[derive(Debug)]
pub(crate) struct AdmissionWebhook {
    /// The name of its configuration.
    pub(crate) configuration: String,
    pub(crate) name: String,
    /// Its unique identifier.
    pub(crate) id: String,
    pub(crate) is_mutating: bool,
    /// Its `clientConfig`.
    pub(crate) client: Value,
    pub(crate) matching: policy::Webhook,
    pub(crate) ignores_failures: bool,
    pub(crate) timeout: Duration,
    pub(crate) supports_dry_run: bool,
    /// The first supported version of its `admissionReviewVersions`.
    pub(crate) review_version: String,
    /// Whether it is called again if the object has changed after its call.
    pub(crate) reinvokes: bool,
}

/// The webhooks of all configurations.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookSource {
    mutating: BTreeMap<Arc<str>, Vec<Arc<AdmissionWebhook>>>,
    validating: BTreeMap<Arc<str>, Vec<Arc<AdmissionWebhook>>>,
}

impl WebhookSource {
    /// Updates the webhooks of a written configuration, or removes those of a deleted one.
    pub(crate) fn update(&mut self, change: &Change, kube: KubeVersion) {
        let is_mutating = change.object["kind"] == "MutatingWebhookConfiguration";
        let all = if is_mutating {
            &mut self.mutating
        } else {
            &mut self.validating
        };
        match &change.after {
            Some(configuration) => {
                let hooks = hooks(configuration, kube);
                all.insert(change.key.name.clone(), hooks);
            }
            None => {
                all.remove(&change.key.name);
            }
        }
    }

    /// The mutating webhooks, in the order in which they are called.
    pub(crate) fn mutating(&self) -> Vec<Arc<AdmissionWebhook>> {
        self.mutating.values().flatten().cloned().collect()
    }

    /// The validating webhooks.
    pub(crate) fn validating(&self) -> Vec<Arc<AdmissionWebhook>> {
        self.validating.values().flatten().cloned().collect()
    }
}

fn hooks(configuration: &Value, kube: KubeVersion) -> Vec<Arc<AdmissionWebhook>> {
    let named = meta::name(configuration);
    let is_mutating = configuration["kind"] == "MutatingWebhookConfiguration";
    let all = list(configuration, "webhooks").iter();
    let hook = |hook: &Value| {
        let name = text(hook, "name");
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10);
        let mut versions = list(hook, "admissionReviewVersions").iter();
        let known = versions.find(|it| **it == "v1" || **it == "v1beta1");
        let known = known.and_then(Value::as_str);
        AdmissionWebhook {
            configuration: named.to_owned(),
            name: name.to_owned(),
            id: format!("{named}/{name}"),
            is_mutating,
            client: hook["clientConfig"].clone(),
            matching: policy::Webhook::stored(hook, kube),
            ignores_failures: text(hook, "failurePolicy") == "Ignore",
            timeout: Duration::from_secs(seconds.clamp(1, 30)),
            supports_dry_run: matches!(
                text(hook, "sideEffects"),
                "None" | "NoneOnDryRun"
            ),
            review_version: known.unwrap_or("v1").to_owned(),
            reinvokes: text(hook, "reinvocationPolicy") == "IfNeeded",
        }
    };
    all.map(|it| Arc::new(hook(it))).collect()
}

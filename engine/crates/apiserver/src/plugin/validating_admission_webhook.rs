//! ValidatingAdmissionWebhook: calls the validating webhooks.

use std::sync::Arc;

use serde_json::Value;

use super::webhook::source::AdmissionWebhook;
use super::webhook::{self, Outcome};
use super::{Attributes, Plugin};
use crate::state::State;
use crate::status::Status;

/// The plugin. The registered webhooks are in the state.
#[derive(Debug)]
pub(super) struct ValidatingAdmissionWebhook;

const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io";

impl Plugin for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn description(&self) -> &'static str {
        "Calls the matching webhooks of ValidatingWebhookConfigurations concurrently. \
         The first rejection is the response."
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let mut all_responded = true;
        let mut refusal: Option<Status> = None;
        let mut index = 0;
        for hook in cluster.admission_webhooks.validating() {
            let refused = match webhook::call(cluster, attributes, &hook, object)? {
                Outcome::NoMatch => continue,
                Outcome::Pending => {
                    all_responded = false;
                    None
                }
                Outcome::Failed(_) if hook.ignores_failures => {
                    let key = format!("{FAILED_OPEN}/round_0_index_{index}");
                    attributes.annotate(key, hook.name.clone());
                    None
                }
                Outcome::Failed(why) => Some(Outcome::failure(&hook, &why)),
                Outcome::Response(response, _) => record(attributes, &hook, &response),
            };
            refusal = refusal.or(refused);
            index += 1;
        }
        if !all_responded {
            return Err(webhook::pending_error());
        }
        refusal.map_or(Ok(()), Err)
    }
}

/// Records the warnings and audit annotations of a webhook. Returns its rejection, if any.
fn record(
    attributes: &Attributes<'_>,
    hook: &Arc<AdmissionWebhook>,
    response: &webhook::AdmissionResponse,
) -> Option<Status> {
    for warning in &response.warnings {
        attributes.warn(warning.clone());
    }
    for (key, value) in &response.annotations {
        attributes.annotate(key.clone(), value.clone());
    }
    (!response.allowed).then(|| response.refusal(hook))
}

//! ValidatingAdmissionWebhook: calls the validating webhooks.

use std::sync::Arc;

use serde_json::Value;

use super::webhook::{self, Hook, Outcome};
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
        let mut is_answered = true;
        let mut refusal: Option<Status> = None;
        let mut index = 0;
        for hook in cluster.admission_webhooks.validating() {
            let refused = match webhook::ask(cluster, attributes, &hook, object)? {
                Outcome::Uncalled => continue,
                Outcome::Unanswered => {
                    is_answered = false;
                    None
                }
                Outcome::Failed(_) if hook.ignores_failures => {
                    let key = format!("{FAILED_OPEN}/round_0_index_{index}");
                    attributes.annotate(key, hook.name.clone());
                    None
                }
                Outcome::Failed(why) => Some(Outcome::failure(&hook, &why)),
                Outcome::Answered(reply, _) => record(attributes, &hook, &reply),
            };
            refusal = refusal.or(refused);
            index += 1;
        }
        if !is_answered {
            return Err(webhook::unanswered());
        }
        refusal.map_or(Ok(()), Err)
    }
}

/// Records the warnings and audit annotations of a webhook. Returns its rejection, if any.
fn record(
    attributes: &Attributes<'_>,
    hook: &Arc<Hook>,
    reply: &webhook::Reply,
) -> Option<Status> {
    for warning in &reply.warnings {
        attributes.warn(warning.clone());
    }
    for (key, value) in &reply.annotations {
        attributes.annotate(key.clone(), value.clone());
    }
    (!reply.allowed).then(|| reply.refusal(hook))
}

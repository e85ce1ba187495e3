//! MutatingAdmissionWebhook: calls the mutating webhooks.

use serde_json::{Value, json};

use super::webhook::source::AdmissionWebhook;
use super::webhook::{self, AdmissionResponse, Outcome};
use super::{Attributes, Plugin};
use crate::decode::{self, Repeated};
use crate::patch;
use crate::state::State;
use crate::status::Status;

/// The plugin. The registered webhooks are in the state.
#[derive(Debug)]
pub(super) struct MutatingAdmissionWebhook;

/// The prefix of audit annotations.
const PREFIX: &str = "mutation.webhook.admission.k8s.io";

impl Plugin for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    fn description(&self) -> &'static str {
        "Calls the matching webhooks of MutatingWebhookConfigurations one after the \
         other, and applies their JSON patches. Webhooks with `reinvocationPolicy: \
         IfNeeded` are called again if the object changed after them."
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
    ) -> Result<(), Status> {
        {
            let mut reinvocation = attributes.reinvocation();
            if reinvocation.is_second && reinvocation.output.as_ref() != object.as_deref()
            {
                reinvocation.require_reinvocation();
            }
        }
        for (index, hook) in cluster.admission_webhooks.mutating().iter().enumerate() {
            let is_second = {
                let reinvocation = attributes.reinvocation();
                if reinvocation.is_second && !reinvocation.to_reinvoke.contains(&hook.id)
                {
                    continue;
                }
                reinvocation.is_second
            };
            let position = format!("round_{}_index_{index}", u8::from(is_second));
            let call = WebhookCall {
                attributes,
                hook,
                position,
            };
            let changed = call.perform(cluster, object.as_deref_mut())?;
            let mut reinvocation = attributes.reinvocation();
            if changed {
                reinvocation.require_reinvocation();
                reinvocation.is_required = true;
            }
            if hook.reinvokes {
                reinvocation.called.insert(hook.id.clone());
            }
        }
        let mut reinvocation = attributes.reinvocation();
        if !reinvocation.called.is_empty() {
            reinvocation.output = object.as_deref().cloned();
        }
        Ok(())
    }
}

/// A call of a webhook.
struct WebhookCall<'a> {
    attributes: &'a Attributes<'a>,
    hook: &'a AdmissionWebhook,
    /// The position of the call, for the audit annotations.
    position: String,
}

impl WebhookCall<'_> {
    /// Calls the webhook, and applies its patch. Returns whether the object has changed.
    ///
    /// # Errors
    /// The rejection by the webhook, or the failure of the call.
    fn perform(
        &self,
        cluster: &mut State,
        object: Option<&mut Value>,
    ) -> Result<bool, Status> {
        let hook = self.hook;
        let outcome = webhook::call(cluster, self.attributes, hook, object.as_deref())?;
        let (response, api_version) = match outcome {
            Outcome::NoMatch => return Ok(false),
            Outcome::Pending => return Err(webhook::pending_error()),
            Outcome::Failed(_) if hook.ignores_failures => {
                let key = format!("failed-open.{PREFIX}/{}", self.position);
                self.attributes.annotate(key, hook.name.clone());
                return Ok(false);
            }
            Outcome::Failed(why) => return Err(Outcome::failure(hook, &why)),
            Outcome::Response(response, api_version) => (response, api_version),
        };
        for warning in &response.warnings {
            self.attributes.warn(warning.clone());
        }
        for (key, value) in &response.annotations {
            self.attributes.annotate(key.clone(), value.clone());
        }
        if !response.allowed {
            return Err(response.refusal(hook));
        }
        let changed = self.apply(cluster, object, &response, &api_version)?;
        let note = json!({"configuration": hook.configuration, "webhook": hook.name,
            "mutated": changed});
        let key = format!("{PREFIX}/{}", self.position);
        self.attributes.annotate(key, note.to_string());
        Ok(changed)
    }

    /// Applies a patch to the object in the version that was sent to the webhook.
    fn apply(
        &self,
        cluster: &State,
        object: Option<&mut Value>,
        response: &AdmissionResponse,
        api_version: &str,
    ) -> Result<bool, Status> {
        let operations =
            patch::operations_of_webhook(&response.patch).map_err(|why| {
                let why =
                    format!("received undecodable patch in webhook response: {why}");
                Outcome::failure(self.hook, &why)
            })?;
        if operations.is_empty() {
            return Ok(false);
        }
        let Some(object) = object else {
            let name = &self.hook.name;
            return Err(Status::internal(format!(
                "admission webhook {name:?} attempted to modify the object, which is not \
                 supported for this operation"
            )));
        };
        let resource = self.attributes.resource();
        let own_version = resource.api_version();
        let is_own = object["apiVersion"] == api_version
            || !self.attributes.subresource().is_empty();
        let conversion = cluster.conversion(resource);
        let mut changed = if is_own {
            object.clone()
        } else {
            conversion.converted(resource, object.clone(), api_version)?
        };
        changed = patch::of_webhook(&changed, operations).map_err(Status::internal)?;
        if !is_own {
            changed = conversion.converted(resource, changed, &own_version)?;
        }
        if self.attributes.subresource().is_empty() || changed["kind"] == resource.kind {
            if !resource.custom {
                decode::decode(resource, &mut changed).map_err(Status::internal)?;
            }
            decode::prune_and_default(
                &cluster.definitions,
                resource,
                &mut changed,
                Repeated::default(),
            );
            if let Some(kind) = &resource.builtin {
                kind.default(&mut changed);
            }
        }
        let differs = *object != changed;
        *object = changed;
        Ok(differs)
    }
}

//! MutatingAdmissionPolicy: applies the mutations of bound policies.

mod patcher;
pub(crate) mod source;

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::admission_request::with_request;
use super::validating_admission_policy::{Environment, refusal};
use super::{Attributes, Plugin};
use crate::state::State;
use crate::status::Status;

/// The plugin. The compiled policies are in the state.
#[derive(Debug)]
pub(super) struct MutatingAdmissionPolicy;

impl Plugin for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    fn description(&self) -> &'static str {
        "Applies the bound MutatingAdmissionPolicies to objects, one after the other. \
         Policies with `reinvocationPolicy: IfNeeded` are applied again if the object \
         changed after them."
    }

    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        kube.is_at_least(36)
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        // A deletion writes no object.
        let Some(object) = object else {
            return Ok(());
        };
        let policies = &cluster.mutating_policies.compiled;
        if policies.is_empty() {
            return Ok(());
        }
        let mut memory = {
            let mut reinvocation = attributes.reinvocation();
            let mut memory = std::mem::take(&mut reinvocation.policies);
            if reinvocation.is_second {
                memory.begin_reinvocation(Some(object));
            }
            memory
        };
        let changed = with_request(cluster, attributes, Some(object), |request| {
            policies.mutate(request, &Environment(cluster), &mut memory)
        });
        attributes.reinvocation().policies = memory;
        if let Some(changed) = changed.map_err(|it| refusal(attributes, &it))? {
            *object = changed;
            attributes.reinvocation().is_required = true;
        }
        Ok(())
    }
}

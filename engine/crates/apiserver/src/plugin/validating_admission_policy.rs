//! ValidatingAdmissionPolicy: evaluates the bound policies.

mod environment;
pub(crate) mod source;

use kubemu_admission::policy::{Decision, Denial};
use serde_json::Value;

use super::admission_request::with_request;
use super::{Attributes, Plugin};
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
pub(super) use environment::Environment;

/// The plugin. The compiled policies are in the state.
#[derive(Debug)]
pub(super) struct ValidatingAdmissionPolicy;

impl Plugin for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn description(&self) -> &'static str {
        "Evaluates the bound ValidatingAdmissionPolicies."
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let decision = decide(cluster, attributes, object);
        for warning in &decision.warnings {
            attributes.warn(warning.clone());
        }
        if let Some(denial) = decision.denied() {
            return Err(refusal(attributes, denial));
        }
        for (key, value) in decision.audit_annotations {
            attributes.annotate(key, value);
        }
        Ok(())
    }
}

fn decide(
    cluster: &State,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Decision {
    let policies = &cluster.policies.compiled;
    if policies.is_empty() {
        return Decision::default();
    }
    with_request(cluster, attributes, object, |request| {
        policies.decide(request, &Environment(cluster))
    })
}

/// The error response of a denial.
pub(super) fn refusal(attributes: &Attributes<'_>, denial: &Denial) -> Status {
    let causes = denial.causes.iter().cloned().map(Cause::from);
    // The deletion of a collection has no name.
    let name = match attributes.name() {
        "" => "Unknown",
        name => name,
    };
    Status::new(
        denial.code,
        Reason::parse(&denial.reason),
        denial.message.clone(),
    )
    .with_details(Details {
        name: name.to_owned(),
        group: attributes.resource().group.clone(),
        kind: attributes.resource().plural.clone(),
        causes: causes.collect(),
        ..Details::default()
    })
}

//! The decision: the bytes of a review in, the bytes of the response out. No I/O, no clock.

use std::sync::Arc;

use fivespot_api::{RESOURCES, name, vap};
use kubemu_admission::policy::{Binding, Policies, Policy};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::json;

use crate::authorization::Subject;
use crate::bounds::Bounds;
use crate::review::AdmissionRequest;

pub use crate::review::Malformed;

/// Why the policy cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The policy or its binding was rejected, with the messages of an API server.
    #[error("the policy cannot be used: {}", joined(.0))]
    Refused(Vec<FieldError>),
}

fn joined(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// The HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewResponse {
    /// The HTTP status: 200 with an `AdmissionReview`, 400 with an error message.
    pub code: u16,
    /// The body.
    pub body: String,
    /// What was decided.
    pub verdict: Verdict,
}

impl ReviewResponse {
    /// The response to a body that is not a review.
    pub(crate) fn malformed(why: &Malformed) -> Self {
        Self {
            code: 400,
            body: format!("{why}\n"),
            verdict: Verdict::Malformed,
        }
    }
}

/// A response, and what it does not decide.
#[derive(Debug)]
pub(crate) struct Reviewed {
    /// The response.
    pub(crate) response: ReviewResponse,
    /// What the API server is still to be asked about the user of an admitted object.
    pub(crate) unasked: Option<Subject>,
}

/// The verdict on a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// The object may be written.
    Admitted,
    /// It may not.
    Refused,
    /// It was not a review. The API server treats that as a failure of the webhook.
    Malformed,
}

impl Verdict {
    /// The name in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
        }
    }
}

/// The policy of each kind with one binding, ready to decide. Immutable.
#[derive(Debug)]
pub struct Validator {
    policies: Policies,
    /// Whether a binding rejects, and does not only warn or record.
    denies: bool,
    /// The bounds of each kind, in the order of [`RESOURCES`].
    bounds: Vec<Bounds>,
}

impl Validator {
    /// Compiles the policy as it is shipped, with a binding that has these `actions`: `Deny`,
    /// `Warn` or `Audit`, or those that a binding may combine.
    ///
    /// # Errors
    /// `actions` are missing, unknown or may not be combined. The messages are those of an API
    /// server for a binding with them.
    ///
    /// # Example
    /// ```
    /// use fivespot_webhook::Validator;
    ///
    /// assert!(Validator::new(&["Deny"]).is_ok());
    /// let refused = Validator::new(&["Deny", "Warn"]).map(|_| ()).unwrap_err().to_string();
    /// assert!(refused.contains("must not contain both Deny and Warn"), "{refused}");
    /// ```
    pub fn new<S: AsRef<str>>(actions: &[S]) -> Result<Self, Error> {
        let actions: Vec<&str> = actions.iter().map(AsRef::as_ref).collect();
        let (mut policies, mut bindings) = (Vec::new(), Vec::new());
        for resource in &RESOURCES {
            let policy =
                Policy::compile(&vap::policy_of(resource), KubeVersion::default());
            let binding = Binding::compile(&json!({
                "metadata": {"name": resource.policy_binding},
                "spec": {"policyName": resource.policy, "validationActions": actions},
            }));
            policies.push(Arc::new(policy.map_err(Error::Refused)?));
            bindings.push(Arc::new(binding.map_err(Error::Refused)?));
        }
        let bounds: Result<Vec<_>, _> = RESOURCES.iter().map(Bounds::of).collect();
        Ok(Self {
            policies: Policies::new(policies, bindings),
            denies: actions.contains(&"Deny"),
            bounds: bounds.map_err(Error::Refused)?,
        })
    }

    /// Returns the response to one body. Cannot fail: a body that cannot be read gets an error
    /// response.
    ///
    /// A review of anything but the creation or the update of an object of our kinds is admitted,
    /// as by the policies. An object that its schema refuses for a size or a type is refused before
    /// the policies are evaluated.
    pub fn review(&self, body: &[u8]) -> ReviewResponse {
        self.examine(body).response
    }

    /// The same, and what is still to be asked.
    pub(crate) fn examine(&self, body: &[u8]) -> Reviewed {
        let request = match AdmissionRequest::read(body) {
            Ok(request) => request,
            Err(malformed) => {
                return Reviewed {
                    response: ReviewResponse::malformed(&malformed),
                    unasked: None,
                };
            }
        };
        let response = self.decide(&request);
        let is_admitted = response.verdict == Verdict::Admitted;
        Reviewed {
            unasked: is_admitted.then(|| unasked(&request)).flatten(),
            response,
        }
    }

    fn decide(&self, request: &AdmissionRequest) -> ReviewResponse {
        if let Some((object, error)) = self.excess(request) {
            let verdict = if self.denies {
                Verdict::Refused
            } else {
                Verdict::Admitted
            };
            return ReviewResponse {
                code: 200,
                body: request
                    .out_of_bounds(object, &error, self.denies)
                    .to_string(),
                verdict,
            };
        }
        let decision = self.policies.decide(&request.request(), &());
        let verdict = match decision.denied() {
            None => Verdict::Admitted,
            Some(_) => Verdict::Refused,
        };
        ReviewResponse {
            code: 200,
            body: request.response(&decision).to_string(),
            verdict,
        }
    }

    /// The first excess over the bounds of the schema, of the new or the old object.
    ///
    /// An update that leaves the spec unchanged is never refused for its size. One of a stored
    /// object that is beyond the bounds of today is, because the rules would compare both.
    fn excess(&self, request: &AdmissionRequest) -> Option<(&'static str, FieldError)> {
        let kind = request.changed_kind()?;
        let (_, bounds) = RESOURCES
            .iter()
            .zip(&self.bounds)
            .find(|(resource, _)| resource.kind == kind.kind)?;
        request
            .objects()
            .find_map(|(name, object)| Some((name, bounds.check(object)?)))
    }
}

/// What the rights of its user decide about a review.
fn unasked(request: &AdmissionRequest) -> Option<Subject> {
    let names_other = |path| request.names_other_class(path);
    match request.changed_kind()?.plural {
        name::CAPACITY_PLURAL => Some(Subject::Target),
        name::PLURAL if names_other("/spec/classRef") => Some(Subject::Class),
        name::SET_PLURAL if names_other("/spec/template/spec/classRef") => {
            Some(Subject::ClassOfSet)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! What the user of a review may do: write the target of a ScheduledCapacity, which the operator
//! changes for them with its own rights, and use the class of a ScheduledMachine or of a set of them.
//!
//! The policies about that ask the `authorizer` of the request. Here the API server is asked, by
//! SubjectAccessReviews, while the same policy is evaluated, so that the words are the same.

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use fivespot_api::name;
use fivespot_api::vap::{capacity_target, class};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubemu_admission::policy::{
    Access, Authorizer, Binding, Decision, ParamKind, Permission, Policies, Policy,
    Resolver, Target,
};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::review::AdmissionRequest;
use crate::validator::{self, ReviewResponse, Verdict};

/// Time limit for one review to have its turn, and then for all questions about it. An API server that
/// has waited five seconds refuses by itself.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How many reviews wait for answers at a time; each holds its object and a thread.
const MAX_WAITING: usize = 8;

/// What there is to ask about an object that the other policies admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Whether its user may write the target of a ScheduledCapacity.
    Target,
    /// Whether its user may use the class of a ScheduledMachine.
    Class,
    /// The same of a ScheduledMachineSet.
    ClassOfSet,
}

impl Subject {
    fn field(self) -> &'static str {
        match self {
            Self::Target => "spec.target",
            Self::Class => "spec.classRef.name",
            Self::ClassOfSet => "spec.template.spec.classRef.name",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Target => "write",
            Self::Class | Self::ClassOfSet => "use",
        }
    }

    /// What a webhook says that was started without the flag.
    fn nobody_asked(self) -> &'static str {
        match self {
            Self::Target => {
                "spec.target: this webhook does not ask who may write targets, so it admits no \
                 ScheduledCapacity; apply the manifests of `5spot generate webhook \
                 --capacity-targets`"
            }
            Self::Class => {
                "spec.classRef.name: this webhook does not ask who may use classes, so it admits \
                 no machine that names one; apply the manifests of `5spot generate webhook`"
            }
            Self::ClassOfSet => {
                "spec.template.spec.classRef.name: this webhook does not ask who may use classes, \
                 so it admits no set; apply the manifests of `5spot generate webhook`"
            }
        }
    }
}

/// A policy that asks what a user may do, and the API server that is asked. Clones share what
/// they hold.
#[derive(Clone, Debug)]
pub struct Authorization {
    policies: Arc<Policies>,
    reviews: Api<SubjectAccessReview>,
    /// Where the kinds of targets are.
    kinds: Option<(Api<ConfigMap>, String)>,
    waiting: Arc<Semaphore>,
}

impl Authorization {
    /// Whether a user may write the target of a ScheduledCapacity. `kinds` is the namespace and the
    /// name of the ConfigMap with the kinds that may be targets, which is read for each review.
    /// Without it none may.
    ///
    /// # Errors
    /// The policy was rejected, which is not known to happen.
    pub fn of_targets(
        client: kube::Client,
        (namespace, name): (&str, &str),
    ) -> Result<Self, validator::Error> {
        let kinds = (Api::namespaced(client.clone(), namespace), name.to_owned());
        Ok(Self {
            kinds: Some(kinds),
            ..Self::of(client, policy_about_targets(namespace)?)
        })
    }

    /// Whether a user may use the class of a ScheduledMachine, or of a ScheduledMachineSet.
    ///
    /// # Errors
    /// The policy was rejected, which is not known to happen.
    pub fn of_classes(client: kube::Client) -> Result<Self, validator::Error> {
        let with_binding = |name, spec| (name, spec, class::binding_spec(name));
        let policies = compiled([
            with_binding(class::USE, class::use_spec()),
            with_binding(class::USE_BY_SET, class::use_by_set_spec()),
        ])?;
        Ok(Self::of(client, policies))
    }

    fn of(client: kube::Client, policies: Arc<Policies>) -> Self {
        Self {
            policies,
            reviews: Api::all(client),
            kinds: None,
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
        }
    }

    /// The refusal of a review that the other policies admit; `None` if its user has the right.
    async fn refusal(
        &self,
        subject: Subject,
        body: bytes::Bytes,
    ) -> Option<ReviewResponse> {
        let (field, verb) = (subject.field(), subject.verb());
        let place = self.waiting.clone().acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(TIMEOUT, place).await else {
            let message =
                format!("{field}: too many reviews wait for the API server; try again");
            return Some(refused(&body, 503, &message));
        };
        let (this, runtime) = (self.clone(), Handle::current());
        let text = body.clone();
        // The object is read outside the threads that serve connections.
        let deciding = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let request = match AdmissionRequest::read(&body) {
                Ok(request) => request,
                Err(malformed) => return Some(ReviewResponse::malformed(&malformed)),
            };
            let why = match this.decide(&request, runtime) {
                Ok(decision) => {
                    decision.denied()?;
                    return Some(ReviewResponse {
                        code: 200,
                        body: request.response(&decision).to_string(),
                        verdict: Verdict::Refused,
                    });
                }
                Err(why) => why,
            };
            let message = format!(
                "{field}: could not ask the API server whether you may {verb} it; try again: {why}"
            );
            Some(refused_request(&request, 503, &message))
        });
        deciding.await.unwrap_or_else(|_| {
            let message = format!("{field}: the review of who may {verb} it failed");
            Some(refused(&text, 500, &message))
        })
    }

    /// The decision of the policy, with the answers of the API server. Not to be called on a thread
    /// that serves connections: it waits for them.
    fn decide(
        &self,
        request: &AdmissionRequest,
        runtime: Handle,
    ) -> Result<Decision, String> {
        let api_server = ApiServer {
            reviews: self.reviews.clone(),
            runtime,
            until: Instant::now() + TIMEOUT,
            failure: OnceLock::new(),
        };
        let kinds = match &self.kinds {
            Some((kinds, name)) => api_server.answer(kinds.get_opt(name))?,
            None => None,
        };
        let data = kinds.and_then(|it| it.data).unwrap_or_default();
        let api_server = Arc::new(api_server);
        let facts = Facts {
            kinds: kinds_of(json!(data)),
            authorizer: api_server.clone(),
        };
        let decision = self.policies.decide(&request.request(), &facts);
        api_server.failure.get().cloned().map_or(Ok(decision), Err)
    }
}

/// The refusal of a review of an object whose user may not do what it needs. A webhook that asks
/// nobody refuses each, but for a ScheduledCapacity that is switched off.
pub(crate) async fn refusal(
    subject: Subject,
    authorization: Option<&Authorization>,
    body: bytes::Bytes,
) -> Option<ReviewResponse> {
    match authorization {
        Some(authorization) => authorization.refusal(subject, body).await,
        None if subject == Subject::Target && is_only_switched_off(&body) => None,
        None => Some(refused(&body, 403, subject.nobody_asked())),
    }
}

/// Whether a review is of a ScheduledCapacity that is switched off and not changed otherwise: the
/// policy admits nothing else where no kind may be a target.
fn is_only_switched_off(body: &[u8]) -> bool {
    static POLICY: LazyLock<Option<Arc<Policies>>> =
        LazyLock::new(|| policy_about_targets(name::SYSTEM_NAMESPACE).ok());
    let (Some(policy), Ok(request)) = (&*POLICY, AdmissionRequest::read(body)) else {
        return false;
    };
    let facts = Facts {
        kinds: kinds_of(json!({})),
        authorizer: Arc::new(NoRights),
    };
    policy.decide(&request.request(), &facts).denied().is_none()
}

/// The policy about the targets of ScheduledCapacities, of an operator in this namespace.
fn policy_about_targets(namespace: &str) -> Result<Arc<Policies>, validator::Error> {
    let name = capacity_target::policy_name();
    let binding = capacity_target::binding_spec(&name, namespace);
    compiled([(&*name, capacity_target::spec(), binding)])
}

/// The ConfigMap with these kinds of targets.
fn kinds_of(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
}

/// Policies, each by its name, with their bindings.
fn compiled<const N: usize>(
    all: [(&str, Value, Value); N],
) -> Result<Arc<Policies>, validator::Error> {
    let refused = |errors: Vec<FieldError>| validator::Error::Refused(errors);
    let (mut policies, mut bindings) = (Vec::new(), Vec::new());
    for (name, spec, binding) in all {
        let named = |spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        let policy = Policy::compile(&named(spec), KubeVersion::default());
        let binding = Binding::compile(&named(binding));
        policies.push(Arc::new(policy.map_err(refused)?));
        bindings.push(Arc::new(binding.map_err(refused)?));
    }
    Ok(Arc::new(Policies::new(policies, bindings)))
}

/// A response that refuses with these words.
fn refused(body: &[u8], code: u16, message: &str) -> ReviewResponse {
    match AdmissionRequest::read(body) {
        Ok(request) => refused_request(&request, code, message),
        Err(malformed) => ReviewResponse::malformed(&malformed),
    }
}

fn refused_request(
    request: &AdmissionRequest,
    code: u16,
    message: &str,
) -> ReviewResponse {
    ReviewResponse {
        code: 200,
        body: request.refused(code, message).to_string(),
        verdict: Verdict::Refused,
    }
}

/// The API server, as a policy asks it while it is evaluated for one review.
#[derive(Debug)]
struct ApiServer {
    reviews: Api<SubjectAccessReview>,
    runtime: Handle,
    /// When no answer is awaited any longer.
    until: Instant,
    /// Why the first question without an answer has none.
    failure: OnceLock<String>,
}

impl ApiServer {
    /// Waits for an answer.
    fn answer<T>(
        &self,
        asking: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, String> {
        let answered = async { tokio::time::timeout_at(self.until, asking).await };
        match self.runtime.block_on(answered) {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!(
                "the API server did not answer within {} seconds",
                TIMEOUT.as_secs()
            )),
        }
    }
}

impl Authorizer for ApiServer {
    fn authorize(&self, access: &Access<'_>) -> Result<Permission, String> {
        let review = review(access)?;
        let answered = self.answer(self.reviews.create(&PostParams::default(), &review));
        let answered =
            answered.inspect_err(|why| _ = self.failure.get_or_init(|| why.clone()))?;
        let status = answered.status.unwrap_or_default();
        Ok(Permission {
            allowed: status.allowed,
            reason: status.reason.unwrap_or_default(),
        })
    }
}

/// The question whether something may be done. The versions are all, as in a policy.
fn review(access: &Access<'_>) -> Result<SubjectAccessReview, String> {
    let Target::Resource {
        group,
        resource,
        subresource,
        namespace,
        name,
        ..
    } = access.target
    else {
        return Err("only access to objects is asked about".to_owned());
    };
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let user = access.user;
    Ok(SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: filled(&user.name),
            uid: filled(&user.uid),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
            resource_attributes: Some(ResourceAttributes {
                verb: filled(access.verb),
                group: filled(group),
                version: Some("*".to_owned()),
                resource: filled(resource),
                subresource: filled(subresource),
                namespace: filled(namespace),
                name: filled(name),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    })
}

/// Nobody may do anything.
#[derive(Debug)]
struct NoRights;

impl Authorizer for NoRights {
    fn authorize(&self, _: &Access<'_>) -> Result<Permission, String> {
        Ok(Permission::default())
    }
}

/// What the policy reads beside the request.
struct Facts {
    kinds: Value,
    authorizer: Arc<dyn Authorizer>,
}

impl Resolver for Facts {
    fn param_is_namespaced(&self, _: &ParamKind) -> Option<bool> {
        Some(true)
    }

    fn param(&self, _: &ParamKind, _: &str, _: &str) -> Option<Value> {
        Some(self.kinds.clone())
    }

    fn authorizer(&self) -> Option<Arc<dyn Authorizer>> {
        Some(self.authorizer.clone())
    }
}

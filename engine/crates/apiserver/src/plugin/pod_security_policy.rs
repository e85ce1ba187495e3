//! PodSecurityPolicy: admits a pod only if it conforms to a policy that its user or its service
//! account may `use` (plugin/pkg/admission/security/podsecuritypolicy in Kubernetes 1.24).

mod allowed;
mod container;
mod identity;
mod preparation;

use std::sync::Arc;

use kubemu_admission::FieldError;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::pod::text;
use super::{Attributes, Plugin, Removal};
use crate::authorization::{self, Action};
use crate::kind::{self, BuiltinKind};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;
use crate::user::User;

/// The plugin.
#[derive(Debug)]
pub(super) struct PodSecurityPolicy;

/// The annotation with the policy that has admitted a pod.
const ANNOTATION: &str = "kubernetes.io/psp";
/// The prefix of audit annotations.
const PREFIX: &str = "podsecuritypolicy.policy.k8s.io";

impl Plugin for PodSecurityPolicy {
    fn name(&self) -> &'static str {
        "PodSecurityPolicy"
    }

    fn description(&self) -> &'static str {
        "Rejects pods unless they are allowed by a PodSecurityPolicy (`policy/v1beta1`, \
         served while the plugin is enabled) that the user or the pod's service account \
         may `use`, and sets the fields that the policy requires. Without a policy, \
         every pod is rejected."
    }

    fn removal(&self) -> Option<Removal> {
        Some(Removal {
            release: "1.25",
            instead: "PodSecurity",
        })
    }

    fn kinds(&self) -> Vec<Arc<dyn BuiltinKind>> {
        vec![Arc::new(kind::pod_security_policy::PodSecurityPolicy)]
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        let Some(pod) = object.filter(|_| creates && is_pod_write(attributes)) else {
            return Ok(());
        };
        // If no policy allows the pod, it is rejected after all plugins have changed it.
        if let Verdict::Allowed { changed, policy } =
            evaluate(cluster, attributes, pod, Mutation::Allowed)?
        {
            *pod = changed;
            let annotations = meta::field(meta::edit(pod), "annotations");
            annotations.insert(ANNOTATION.to_owned(), policy.as_str().into());
            attributes.annotate(format!("{PREFIX}/admit-policy"), policy);
        }
        Ok(())
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_pod_write(attributes)) else {
            return Ok(());
        };
        if attributes.old_object().is_some_and(|old| is_same(old, pod)) {
            return Ok(());
        }
        match evaluate(cluster, attributes, pod, Mutation::Refused)? {
            Verdict::Allowed { policy, .. } => {
                attributes.annotate(format!("{PREFIX}/validate-policy"), policy);
                Ok(())
            }
            Verdict::Refused(errors) => {
                let errors: Vec<String> =
                    errors.iter().map(ToString::to_string).collect();
                let errors = errors.join(" ");
                Err(attributes.forbidden(&format!(
                    "PodSecurityPolicy: unable to admit pod: [{errors}]"
                )))
            }
        }
    }
}

fn is_pod_write(attributes: &Attributes<'_>) -> bool {
    let writes = matches!(
        attributes.operation(),
        Operation::Create | Operation::Update
    );
    writes && attributes.is_about("", "pods")
}

/// Whether an update changes only the fields that the garbage collector changes.
fn is_same(old: &Value, pod: &Value) -> bool {
    let compared = |pod: &Value| {
        let mut pod = pod.clone();
        let metadata = meta::edit(&mut pod);
        for key in [
            "ownerReferences",
            "finalizers",
            "managedFields",
            "resourceVersion",
            "generation",
        ] {
            metadata.shift_remove(key);
        }
        pod
    };
    compared(old) == compared(pod)
}

/// Whether a policy may change a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutation {
    Allowed,
    Refused,
}

/// The result of the policies for a pod.
enum Verdict {
    /// The pod as changed by the policy.
    Allowed { changed: Value, policy: String },
    /// The errors of the policies that may be used.
    Refused(Vec<FieldError>),
}

/// Finds the policy that allows a pod: the first that does not change it, else the first that
/// allows it (`computeSecurityContext`).
///
/// # Errors
/// 403 if there is no policy.
fn evaluate(
    cluster: &State,
    attributes: &Attributes<'_>,
    pod: &Value,
    changes: Mutation,
) -> Result<Verdict, Status> {
    let mut policies =
        cluster.objects(&GroupResource::new("policy", "podsecuritypolicies"), None);
    if policies.is_empty() {
        let why = "PodSecurityPolicy: no providers available to validate pod request";
        return Err(attributes.forbidden(why));
    }
    // The policy that admitted the pod before is evaluated first.
    let before = text(&pod["metadata"]["annotations"], ANNOTATION);
    policies.sort_by_key(|it| meta::name(it) != before);
    let mut errors = Vec::new();
    let mut found = None;
    for policy in &policies {
        let name = meta::name(policy);
        if !may_use(cluster, attributes, pod, name) {
            continue;
        }
        let spec = &policy["spec"];
        let mut changed = pod.clone();
        preparation::prepare(spec, &mut changed);
        let wrong = allowed::errors(spec, &changed);
        if !wrong.is_empty() {
            errors.extend(wrong);
            continue;
        }
        let policy = name.to_owned();
        if changed == *pod {
            return Ok(Verdict::Allowed { changed, policy });
        }
        if changes == Mutation::Allowed && found.is_none() {
            found = Some(Verdict::Allowed { changed, policy });
        }
    }
    Ok(found.unwrap_or(Verdict::Refused(errors)))
}

/// Whether the user or the service account of the pod may use a policy.
fn may_use(
    cluster: &State,
    attributes: &Attributes<'_>,
    pod: &Value,
    policy: &str,
) -> bool {
    let namespace = attributes.namespace();
    let account = text(&pod["spec"], "serviceAccountName");
    let account =
        (!account.is_empty()).then(|| User::service_account(namespace, account));
    let action = |group: &str| Action {
        verb: "use".to_owned(),
        namespace: namespace.to_owned(),
        group: group.to_owned(),
        resource: "podsecuritypolicies".to_owned(),
        name: policy.to_owned(),
        ..Action::default()
    };
    let actions = ["policy", "extensions"].map(action);
    let mut users = account.iter().chain([attributes.user()]);
    users.any(|user| {
        let mut all = actions.iter();
        all.any(|it| authorization::decide(&cluster.rules, user, it).allowed)
    })
}

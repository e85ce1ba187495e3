//! Authorization of parameters: the writer of a policy or binding must have permission to read
//! the parameters that it refers to (pkg/registry/admissionregistration/*/authz.go).

use kubemu_admission::FieldError;
use serde_json::Value;

use super::action::Action;
use super::decision::decide;
use crate::kind::Write;
use crate::resource::GroupResource;
use crate::route::Target;
use crate::state::State;
use crate::store::Key;
use crate::user::{MASTERS, User};

/// The errors if `user` may not read the `paramKind` of a policy or the `paramRef` of a
/// binding; empty for other kinds.
pub(crate) fn errors(
    state: &State,
    user: &User,
    target: &Target,
    write: &Write<'_>,
) -> Option<FieldError> {
    let Write { object, old, .. } = *write;
    let resource = &target.resource.storage;
    if resource.group != "admissionregistration.k8s.io"
        || !target.subresource.is_empty()
        || user.is_in(MASTERS)
    {
        return None;
    }
    let (spec, path, why) = match resource.resource.as_str() {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            let kind = object["spec"].get("paramKind")?;
            if old.is_some_and(|old| old["spec"]["paramKind"] == *kind) {
                return None;
            }
            (kind, "spec.paramKind", policy(state, user, kind)?)
        }
        // A reference that did not change is checked again, as in Kubernetes.
        kind @ ("validatingadmissionpolicybindings"
        | "mutatingadmissionpolicybindings") => {
            let reference = object["spec"].get("paramRef")?;
            let policies = match kind {
                "mutatingadmissionpolicybindings" => state.buckets.mutating_policies,
                _ => state.buckets.policies,
            };
            let name = text(&object["spec"], "policyName");
            let policy = state.get(policies, &Key::new("", name));
            let bound = BoundPolicy {
                name,
                policy: policy.map(|it| &**it),
            };
            let why = binding(state, user, &bound, reference)?;
            (reference, "spec.paramRef", why)
        }
        _ => return None,
    };
    (!spec.is_null()).then(|| FieldError::forbidden(path, why))
}

fn policy(state: &State, user: &User, kind: &Value) -> Option<String> {
    let (resource, _) = resolved(state, kind);
    let action = Action {
        verb: "get".to_owned(),
        namespace: "*".to_owned(),
        group: resource.group,
        resource: resource.resource,
        name: "*".to_owned(),
        ..Action::default()
    };
    let allowed = decide(&state.rules, user, &action).allowed;
    (!allowed).then(|| {
        format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind \
             (kind={}, apiVersion={})",
            printed(user),
            text(kind, "kind"),
            text(kind, "apiVersion")
        )
    })
}

/// The policy that a binding refers to.
struct BoundPolicy<'a> {
    name: &'a str,
    /// `None` if no policy has that name.
    policy: Option<&'a Value>,
}

fn binding(
    state: &State,
    user: &User,
    bound: &BoundPolicy<'_>,
    reference: &Value,
) -> Option<String> {
    let BoundPolicy { name, policy } = *bound;
    let kind = policy.and_then(|it| it["spec"].get("paramKind"));
    let (resource, is_served) = match kind {
        Some(kind) => resolved(state, kind),
        None => (GroupResource::new("*", "*"), true),
    };
    let verb = if text(reference, "name").is_empty() {
        "list"
    } else {
        "get"
    };
    let action = Action {
        verb: verb.to_owned(),
        namespace: text(reference, "namespace").to_owned(),
        group: resource.group,
        resource: resource.resource,
        name: text(reference, "name").to_owned(),
        ..Action::default()
    };
    if decide(&state.rules, user, &action).allowed {
        return None;
    }
    let user = printed(user);
    let everything = format!(
        "user {user} does not have \"{verb}\" permission for all groups, versions and resources"
    );
    Some(match (policy, kind) {
        (None, _) => format!(
            "unable to get policy {name} to determine minimum required permissions and \
             {everything}"
        ),
        (_, Some(kind)) if !is_served => format!(
            "unable to resolve paramKind &ParamKind{{APIVersion:{},Kind:{},}} to determine \
             minimum required permissions and {everything}",
            text(kind, "apiVersion"),
            text(kind, "kind")
        ),
        _ => format!(
            "user {user} does not have \"{verb}\" permission on the object referenced by \
             paramRef"
        ),
    })
}

/// The resource of a kind, and whether it is served; all resources of its group if it is not.
fn resolved(state: &State, kind: &Value) -> (GroupResource, bool) {
    let value = text(kind, "apiVersion");
    let (group, version) = value.split_once('/').unwrap_or(("", value));
    let found = state.registry.of_kind(group, version, text(kind, "kind"));
    let plural = found.map_or("*", |it| it.plural.as_str());
    (GroupResource::new(group, plural), found.is_some())
}

/// The user as Go prints a pointer to its struct.
fn printed(user: &User) -> String {
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        user.name,
        user.uid,
        user.groups.join(" "),
        extra.join(" ")
    )
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

//! Admission policies of a workload cluster for Nodes: what the agent may change, and which
//! users may write the annotations of 5-Spot.

use fivespot_api::name::{
    AGENT_FIELD_MANAGER as AGENT, AGENT_NAMESPACE, AGENT_POLICY, ANNOTATION_PREFIX,
    NODE_ANNOTATION_POLICY, RECLAIM_AGENT_KEY, RECLAIM_REASON_ANNOTATION,
    RECLAIM_REQUESTED_ANNOTATION, RECLAIM_REQUESTED_AT_ANNOTATION, service_account_user,
};
use serde_json::{Value, json};

use super::component;
use super::host::IS_HOST;

/// The annotations that the agent may write, on its own Node only.
pub const ANNOTATIONS: [&str; 4] = [
    RECLAIM_AGENT_KEY,
    RECLAIM_REASON_ANNOTATION,
    RECLAIM_REQUESTED_ANNOTATION,
    RECLAIM_REQUESTED_AT_ANNOTATION,
];

/// The maximum length of such an annotation's value, in characters.
pub(super) const MAX_VALUE_LENGTH: u32 = 2048;

/// The entry of a token's user info that names the Node of its pod; since Kubernetes 1.30.
const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";

/// The annotations of a Node before and after a request.
pub(super) fn annotations() -> Value {
    json!([
        {
            "name": "before",
            "expression": "oldObject == null ? {} : oldObject.?metadata.?annotations.orValue({})",
        },
        {
            "name": "after",
            "expression": "object == null ? {} : object.?metadata.?annotations.orValue({})",
        },
    ])
}

fn agent_user() -> String {
    service_account_user(AGENT_NAMESPACE, AGENT)
}

/// The policy and the binding that restrict writes of 5-Spot's annotations on Nodes. Only the
/// agent, `operators` by their user names, and cluster administrators may write them. An agent that is
/// a service of its host may write its own [`ANNOTATIONS`], and
/// [`host::policy`](super::host::policy) restricts it further.
///
/// A kubelet may annotate its own Node. Without this policy, an attacker who controls a host
/// could forge the operator's record of its own changes on that Node.
pub fn node_annotations(operators: &[String]) -> [Value; 2] {
    let writers: Vec<String> = [agent_user()].iter().chain(operators).cloned().collect();
    let writers = json!(writers);
    let is_ours = format!("key.startsWith('{ANNOTATION_PREFIX}')");
    let has_ours = |object: &str| {
        format!(
            "{object} != null && \
             {object}.?metadata.?annotations.orValue({{}}).exists(key, {is_ours})"
        )
    };
    let unchanged = format!(
        "variables.after.all(key, !{is_ours} || \
         variables.before[?key] == variables.after[?key]) && \
         variables.before.all(key, !{is_ours} || key in variables.after)"
    );
    let of_agents = ANNOTATIONS.map(|key| format!("'{key}'")).join(", ");
    let by_host = format!(
        "({IS_HOST} && variables.after.all(key, !{is_ours} || key in [{of_agents}] || \
         variables.before[?key] == variables.after[?key]) && \
         variables.before.all(key, !{is_ours} || key in [{of_agents}] || \
         key in variables.after))"
    );
    component().policy(
        NODE_ANNOTATION_POLICY,
        json!({
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["nodes", "nodes/status"],
                }],
            },
            // Nodes are written continuously, and few of these writes concern 5-Spot.
            "matchConditions": [{
                "name": "has-annotations-of-5spot",
                "expression": format!("{} || {}", has_ours("object"), has_ours("oldObject")),
            }],
            "variables": annotations(),
            "validations": [{
                "expression": format!(
                    "({unchanged}) || request.userInfo.username in {writers} || {by_host} || \
                     authorizer.group('*').resource('*').check('*').allowed()"
                ),
                "message": format!(
                    "annotations {ANNOTATION_PREFIX}* of a Node may only be changed by the \
                     operator, its agent and cluster administrators"
                ),
                "reason": "Forbidden",
            }],
        }),
    )
}

/// The policy and the binding that restrict the agent to writing its annotations on its own
/// Node.
///
/// A token without the name of its pod's node may not write to any Node.
pub fn own_node() -> [Value; 2] {
    let annotated = ANNOTATIONS.map(|key| format!("'{key}'")).join(", ");
    let mut variables = annotations();
    if let Some(variables) = variables.as_array_mut() {
        variables.push(json!({"name": "own", "expression": format!("[{annotated}]")}));
    }
    component().policy(
        AGENT_POLICY,
        json!({
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE", "CONNECT"],
                    "resources": ["nodes", "nodes/*"],
                }],
            },
            "matchConditions": [{
                "name": "requested-by-agent",
                "expression": format!("request.userInfo.username == '{}'", agent_user()),
            }],
            "variables": variables,
            "validations": validations().map(|(expression, message)| {
                json!({"expression": expression, "message": message, "reason": "Forbidden"})
            }),
        }),
    )
}

/// That nothing but annotations changes.
///
/// Nor who applies which field: a manager that was made the owner of a field removes it with its
/// next apply.
pub(super) fn only_annotations() -> String {
    let same = |path: &str| format!("object.?{path} == oldObject.?{path}");
    let applied = |object: &str| {
        format!(
            "{object}.?metadata.?managedFields.orValue([])\
             .filter(it, it.?operation.orValue('') == 'Apply')"
        )
    };
    [
        "spec",
        "status",
        "metadata.?labels",
        "metadata.?finalizers",
        "metadata.?ownerReferences",
    ]
    .map(same)
    .into_iter()
    .chain([format!("{} == {}", applied("object"), applied("oldObject"))])
    .collect::<Vec<_>>()
    .join(" && ")
}

/// That no annotation changes except for those in the variable `own`.
pub(super) fn only_own_annotations() -> String {
    "variables.after.all(key, key in variables.own || \
     variables.before[?key] == variables.after[?key]) && \
     variables.before.all(key, key in variables.own || key in variables.after)"
        .to_owned()
}

/// That the annotations in the variable `own` have short values.
pub(super) fn short_annotations() -> String {
    format!(
        "variables.own.all(key, \
         variables.after[?key].orValue('').size() <= {MAX_VALUE_LENGTH})"
    )
}

/// What a request of the agent must satisfy, each with its message.
fn validations() -> [(String, String); 5] {
    [
        (
            "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''"
                .to_owned(),
            "the reclaim agent may only annotate a Node".to_owned(),
        ),
        (
            format!(
                "request.userInfo.?extra[?'{NODE_OF_TOKEN}'].orValue([]) == [request.name]"
            ),
            "the reclaim agent may only annotate the Node that its token names"
                .to_owned(),
        ),
        (
            only_annotations(),
            "the reclaim agent may only change annotations of a Node".to_owned(),
        ),
        (
            only_own_annotations(),
            format!(
                "the reclaim agent may only change the annotations {}",
                ANNOTATIONS.join(", ")
            ),
        ),
        (
            short_annotations(),
            format!(
                "an annotation of the reclaim agent must be at most {MAX_VALUE_LENGTH} characters"
            ),
        ),
    ]
}

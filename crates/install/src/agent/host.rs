//! The identity of an agent that is a service of its host, outside the cluster: it may report to the
//! ScheduledMachine of that host, request a reclaim on its Node, and nothing else.

use fivespot_api::name::{
    GROUP, HOST_ACCOUNT_PREFIX, HOST_FREE_ANNOTATION, HOST_POLICY, PLURAL,
    SYSTEM_NAMESPACE, reclaim_config_map,
};
use serde_json::{Value, json};

use super::component;
use super::policy::{
    ANNOTATIONS, MAX_VALUE_LENGTH, annotations, only_annotations, only_own_annotations,
    short_annotations,
};
use crate::component::Component;

/// Whether a request is one of such an agent.
pub(super) const IS_HOST: &str =
    "request.userInfo.username.matches('^system:serviceaccount:[^:]+:5spot-host-')";

/// The cluster whose objects are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The cluster of the Node and of the ScheduledMachine.
    #[default]
    Both,
    /// The cluster of the ScheduledMachine.
    Management,
    /// The cluster of the Node.
    Workload,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The namespace of its ScheduledMachine, and of its ServiceAccount.
    pub namespace: String,
    /// The name of its ScheduledMachine.
    pub machine: String,
    /// The name of its Node.
    pub node: String,
    /// Which of them the cluster has.
    pub part: Part,
}

impl Host {
    /// The name of the ServiceAccount.
    pub fn account(&self) -> String {
        format!("{HOST_ACCOUNT_PREFIX}{}", self.machine)
    }

    /// All objects of this host alone, so that deleting them takes away its identity and nothing
    /// else. The cluster has the [`policy`] already, and the namespace. Cannot fail.
    pub fn documents(&self) -> Vec<Value> {
        let mut all = vec![self.component().service_account(&self.account())];
        if self.part != Part::Workload {
            all.extend(self.machine_role());
        }
        if self.part != Part::Management {
            all.extend(self.node_roles());
        }
        all
    }

    fn component(&self) -> Component {
        component().within(&self.namespace)
    }

    fn machine_role(&self) -> [Value; 2] {
        let rule = json!({
            "apiGroups": [GROUP],
            "resources": [PLURAL],
            "resourceNames": [self.machine],
            "verbs": ["get", "list", "watch", "patch"],
        });
        self.role(&self.component(), "Role", &self.account(), rule)
    }

    fn node_roles(&self) -> Vec<Value> {
        let name = format!("{HOST_POLICY}:{}:{}", self.namespace, self.machine);
        let nodes = json!({
            "apiGroups": [""],
            "resources": ["nodes"],
            "resourceNames": [self.node],
            "verbs": ["get", "list", "watch", "patch"],
        });
        let configurations = json!({
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [reclaim_config_map(&self.node)],
            "verbs": ["get", "list", "watch"],
        });
        let system = component().within(SYSTEM_NAMESPACE);
        [
            self.role(&system, "ClusterRole", &name, nodes),
            self.role(&system, "Role", &name, configurations),
        ]
        .concat()
    }

    /// A role with one rule, and its binding to the account.
    fn role(
        &self,
        component: &Component,
        kind: &str,
        name: &str,
        rule: Value,
    ) -> [Value; 2] {
        let subject = self.component().subject(&self.account());
        let binding = format!("{kind}Binding");
        [
            component.role(kind, name, &[rule]),
            component.binding(&binding, (kind, name), &[subject]),
        ]
    }
}

/// The policy and the binding that restrict the agents of all hosts. Which ScheduledMachine is that
/// of a host follows from the name of its account; which Node, from its role alone.
pub fn policy() -> [Value; 2] {
    let mut variables = annotations();
    if let Some(variables) = variables.as_array_mut() {
        let of_node = ANNOTATIONS.map(|key| format!("'{key}'")).join(", ");
        variables.push(json!({
            "name": "own",
            "expression": format!(
                "request.resource.resource == 'nodes' ? [{of_node}] : ['{HOST_FREE_ANNOTATION}']"
            ),
        }));
    }
    let rule = |group: &str, plural: &str| {
        json!({
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE", "CONNECT"],
            "resources": [plural, format!("{plural}/*")],
        })
    };
    component().policy(
        HOST_POLICY,
        json!({
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule(GROUP, PLURAL), rule("", "nodes")]},
            "matchConditions": [{"name": "requested-by-host", "expression": IS_HOST}],
            "variables": variables,
            "validations": validations().map(|(expression, message)| {
                json!({"expression": expression, "message": message, "reason": "Forbidden"})
            }),
        }),
    )
}

/// What a request of a host must satisfy, each with its message.
fn validations() -> [(String, String); 5] {
    [
        (
            "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''"
                .to_owned(),
            "a host may only annotate its Node and its ScheduledMachine".to_owned(),
        ),
        (
            format!(
                "request.resource.resource != '{PLURAL}' || request.userInfo.username == \
                 'system:serviceaccount:' + request.namespace + ':{HOST_ACCOUNT_PREFIX}' + \
                 request.name"
            ),
            "a host may only annotate the ScheduledMachine that its account names"
                .to_owned(),
        ),
        (
            only_annotations(),
            "a host may only change annotations".to_owned(),
        ),
        (
            only_own_annotations(),
            format!(
                "a host may only change the annotation {HOST_FREE_ANNOTATION} of its \
                 ScheduledMachine, and of its Node {}",
                ANNOTATIONS.join(", ")
            ),
        ),
        (
            short_annotations(),
            format!(
                "an annotation of a host must be at most {MAX_VALUE_LENGTH} characters"
            ),
        ),
    ]
}

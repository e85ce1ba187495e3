//! The controller of capacities in the chart, where values name kinds of targets.

use fivespot_api::name;
use serde_json::{Value, json};

use super::loop_namespace;
use super::template::{self, Block};
use crate::role::{NamespaceScope, Rights};

/// Where capacities have a controller of their own.
pub(super) const HAS_TARGETS: &str = "if $.Values.capacity.targets";

/// The rules about the kinds of targets.
const TARGET_RULES: &str = r#"{{- range $.Values.capacity.targets }}
{{- $access := .access | default "patch" }}
- apiGroups: [{{ .group | default "" | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: [get, list, watch{{ if eq $access "template" }}, create{{ end }}{{ if ne $access "scale" }}, patch{{ end }}]
{{- if eq $access "scale" }}
- apiGroups: [{{ .group | default "" | quote }}]
  resources: [{{ printf "%s/scale" .resource | quote }}]
  verbs: [patch]
{{- end }}
{{- end }}"#;

/// The account of the controller of capacities, beside that of the operator.
fn capacity_subject() -> String {
    let name = name::CAPACITY_CONTROLLER;
    format!(
        "{{{{- if $.Values.capacity.targets }}}}
- kind: ServiceAccount
  name: {name}
  namespace: {{{{ $.Release.Namespace | quote }}}}
{{{{- end }}}}"
    )
}

/// Lets the controller of capacities have the rights of a binding too.
pub(super) fn add_subject(document: &mut Value) {
    let subjects = document.get_mut("subjects");
    if let Some(subjects) = subjects.and_then(Value::as_array_mut) {
        subjects.push(template::lines(&capacity_subject()).into());
    }
}

/// The rights of the controller of capacities, and the policy about who may use them.
pub(super) fn roles(rights: &Rights) -> Vec<Block> {
    let roles_in = |namespaces: NamespaceScope| {
        let rights = Rights {
            namespaces,
            ..rights.clone()
        };
        let rules = json!([template::lines(TARGET_RULES)]);
        let all = rights.capacity_roles(rules).into_iter();
        all.partition(|it| it["kind"] == "ClusterRole")
    };
    let (roles_of, everywhere): (Vec<_>, Vec<_>) = roles_in(NamespaceScope::All);
    let (_, in_each): (Vec<_>, Vec<_>) = roles_in(loop_namespace());
    let kinds = json!({template::included("5spot.capacityKinds"): true});
    let all = [
        Block::always(roles_of),
        Block::when("if not $.Values.namespaces", everywhere),
        Block::when("range $.Values.namespaces", in_each),
    ];
    let roles = all.into_iter().map(|it| it.within(HAS_TARGETS));
    let policy = Block::always(rights.policy_with(kinds));
    roles.chain(std::iter::once(policy)).collect()
}

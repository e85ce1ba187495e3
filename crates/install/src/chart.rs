//! The Helm chart: the same documents, with expressions where a value may differ.
//!
//! Templates are never concatenated from text: each document is rendered as for `kubectl apply`,
//! with an expression in the place of a value, and put between the lines of an action where it
//! depends on a value. What cannot be a string in YAML is marked, and replaced after emission.

mod values;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fivespot_api::manifest::{self, Error, GeneratedFile};
use fivespot_api::vap::Action;
use fivespot_api::{crd, name};
use serde_json::{Value, json};

use crate::controller::{self, Settings};
use crate::provider::PROVIDERS;
use crate::role::{self, Reach, Rights};

/// Stands for the number of replicas until the YAML is there.
const REPLICAS: &str = "@replicas@";
/// Stands for what an instance asks for and may take.
const RESOURCES: &str = "@resources@";
/// Stands for the line of further arguments.
const ARGUMENTS: &str = "        - \"@arguments@\"\n";

const MORE_ARGUMENTS: &str = r#"        {{- with $.Values.namespaces }}
        - --namespaces={{ join "," . }}
        {{- end }}
        {{- if eq $.Values.nodeAccess "management" }}
        - --node-access=management
        {{- end }}
        {{- with $.Values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
"#;

const NOTES: &str = r#"5-Spot watches {{ if $.Values.namespaces }}{{ join ", " $.Values.namespaces }}{{ else }}all namespaces{{ end }}.

  kubectl get scheduledmachines -A
{{- if and (eq $.Values.nodeAccess "workload") (not $.Values.kubeconfigs.clusterWide) (not $.Values.kubeconfigs.namespaces) (not $.Values.kubeconfigs.clusters) }}

It cannot read kubeconfigs of workload clusters, so it does not drain or taint nodes; Cluster API
drains them. Set kubeconfigs.clusters to grant access.
{{- end }}
"#;

/// Documents and the actions they stand in, outermost first.
struct Block {
    actions: Vec<String>,
    documents: Vec<Value>,
}

impl Block {
    fn always(documents: Vec<Value>) -> Self {
        Self {
            actions: Vec::new(),
            documents,
        }
    }

    fn when(action: impl Into<String>, documents: Vec<Value>) -> Self {
        Self {
            actions: vec![action.into()],
            documents,
        }
    }

    fn within(mut self, action: &str) -> Self {
        self.actions.insert(0, action.to_owned());
        self
    }

    fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        for action in &self.actions {
            let _ = writeln!(text, "{{{{- {action} }}}}");
        }
        for document in &self.documents {
            let file =
                GeneratedFile::manifest("", "chart", std::slice::from_ref(document))?;
            let (_, yaml) = file.text.split_once('\n').unwrap_or_default();
            text.push_str("---\n");
            text.push_str(yaml);
        }
        for _ in &self.actions {
            text.push_str("{{- end }}\n");
        }
        Ok(text)
    }
}

/// The files of the chart.
///
/// # Errors
/// None is known; the YAML emitter could refuse.
pub(crate) fn files() -> Result<Vec<GeneratedFile>, Error> {
    let settings = settings();
    let controller = [
        Block::always(vec![
            settings.service_account(),
            deployment(&settings),
            settings.service(),
            settings.disruption_budget(),
        ]),
        Block::when("if $.Values.networkPolicy", settings.network_policies()),
    ];
    let resources = "{{- toYaml $.Values.resources | nindent 10 }}";
    let text = template(&controller)?
        .replace(&format!("\"{REPLICAS}\""), "{{ int $.Values.replicas }}")
        .replace(
            &format!(" \"{RESOURCES}\""),
            &format!("\n          {resources}"),
        )
        .replace(ARGUMENTS, MORE_ARGUMENTS);
    let controller = file("templates/controller.yaml", text);
    Ok(vec![
        GeneratedFile::manifest("Chart.yaml", "chart", &[description()])?,
        file("values.yaml", values::text()?),
        file("values.schema.json", format!("{:#}\n", values::schema())),
        file("templates/NOTES.txt", NOTES.to_owned()),
        file("templates/definition.yaml", template(&[definitions()])?),
        file("templates/admission.yaml", template(&admission())?),
        file("templates/rbac.yaml", template(&roles(&settings.rights))?),
        controller,
    ])
}

/// The operator, with marks where a value is no string.
fn deployment(settings: &Settings) -> Value {
    let mut deployment = settings.deployment();
    for (place, mark) in [
        ("/spec/replicas", REPLICAS),
        ("/spec/template/spec/containers/0/resources", RESOURCES),
    ] {
        if let Some(value) = deployment.pointer_mut(place) {
            *value = mark.into();
        }
    }
    let arguments = deployment.pointer_mut("/spec/template/spec/containers/0/args");
    if let Some(Value::Array(arguments)) = arguments {
        arguments.push("@arguments@".into());
    }
    deployment
}

fn settings() -> Settings {
    Settings {
        rights: Rights {
            home: "{{ $.Release.Namespace }}".to_owned(),
            ..Rights::default()
        },
        image: "{{ $.Values.image }}".to_owned(),
        ..Settings::default()
    }
}

fn file(path: &str, text: String) -> GeneratedFile {
    GeneratedFile {
        path: path.to_owned(),
        text,
    }
}

fn template(blocks: &[Block]) -> Result<String, Error> {
    let mut text =
        String::from("{{- /* Generated by `5spot generate chart`; do not edit. */ -}}\n");
    for block in blocks {
        text.push_str(&block.text()?);
    }
    Ok(text)
}

fn description() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "apiVersion": "v2",
        "name": "5spot",
        "description": "Adds machines to Cluster API clusters and removes them again, on a schedule.",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    })
}

/// The definitions stay when the chart goes, and with them every ScheduledMachine.
fn definitions() -> Block {
    let definitions = manifest::definitions(crd::SHIPPED_MINOR);
    Block::always(definitions.into_iter().map(kept).collect())
}

/// The same, to be left alone when the chart goes, or a value changes on which it depends.
fn kept(mut document: Value) -> Value {
    document["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    document
}

/// The namespace of the agents' configurations, where the nodes of this cluster are the ones and
/// neither Helm nor the agent's own manifests have made it. It stays, and so do those.
fn system_namespace() -> Block {
    let system = name::SYSTEM_NAMESPACE;
    let is_missing = format!(
        "if and (eq $.Values.nodeAccess \"management\") (ne $.Release.Namespace \"{system}\") \
         (not (lookup \"v1\" \"Namespace\" \"\" \"{system}\"))"
    );
    Block::when(is_missing, vec![kept(controller::system_namespace())])
}

fn admission() -> [Block; 3] {
    [
        Block::when("if ne $.Values.admission \"None\"", manifest::policies()),
        Block::when(
            "if eq $.Values.admission \"Deny\"",
            manifest::bindings(Action::Deny),
        ),
        Block::when(
            "if eq $.Values.admission \"Audit\"",
            manifest::bindings(Action::Audit),
        ),
    ]
}

fn roles(rights: &Rights) -> Vec<Block> {
    let own = vec![role::own_role(), role::override_editor()];
    let mut blocks = vec![Block::always(own)];
    blocks.extend(bound(rights, fivespot_api::name::CONTROLLER));
    for provider in PROVIDERS {
        let is_chosen = format!("if has \"{}\" $.Values.providers", provider.name);
        let made = Block::when(&is_chosen, vec![role::provider_role(provider)]);
        blocks.push(made);
        for block in bound(rights, &role::provider_name(provider)) {
            blocks.push(block.within(&is_chosen));
        }
    }
    blocks.push(Block::always(vec![role::others_role()]));
    blocks.extend(bound(rights, &role::others_name()));
    let mut definitions = vec![role::definitions_role()];
    definitions.extend(rights.bindings(&role::definitions_name(), &Reach::Everywhere));
    blocks.push(Block::always(definitions));
    blocks.push(system_namespace());
    blocks.push(Block::when(
        "if eq $.Values.nodeAccess \"management\"",
        rights.own_nodes(),
    ));
    blocks.push(Block::always(rights.at_home()));
    let secrets = |kubeconfigs| Rights {
        kubeconfigs,
        ..rights.clone()
    };
    blocks.push(Block::when(
        "if $.Values.kubeconfigs.clusterWide",
        secrets(Reach::Everywhere).kubeconfigs(),
    ));
    blocks.push(Block::when(
        "range $.Values.kubeconfigs.namespaces",
        secrets(each()).kubeconfigs(),
    ));
    blocks.push(Block::when(
        "range $.Values.kubeconfigs.clusters",
        rights
            .kubeconfig("{{ .namespace }}", "{{ .name }}")
            .to_vec(),
    ));
    blocks
}

/// The bindings of a role: one for the cluster, or one in each of the given namespaces.
fn bound(rights: &Rights, role: &str) -> [Block; 2] {
    [
        Block::when(
            "if not $.Values.namespaces",
            rights.bindings(role, &Reach::Everywhere),
        ),
        Block::when("range $.Values.namespaces", rights.bindings(role, &each())),
    ]
}

/// The namespace that a loop is at.
fn each() -> Reach {
    Reach::Only(BTreeSet::from(["{{ . }}".to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::{files, template};

    fn text(path: &str) -> String {
        let files = files().unwrap();
        files.into_iter().find(|it| it.path == path).unwrap().text
    }

    #[test]
    fn what_cannot_be_a_string_is_none() {
        let text = text("templates/controller.yaml");
        assert!(
            text.contains("\n  replicas: {{ int $.Values.replicas }}\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "\n        resources:\n          {{- toYaml $.Values.resources | nindent 10 }}\n"
            ),
            "{text}"
        );
        assert!(!text.contains('@'), "{text}");
        assert!(text.contains("--namespaces={{ join"), "{text}");
    }

    #[test]
    fn every_action_that_opens_is_closed() {
        for file in files().unwrap() {
            let opened = ["{{- if ", "{{- range ", "{{- with ", "{{ if "]
                .iter()
                .map(|word| file.text.matches(word).count())
                .sum::<usize>();
            let closed = file.text.matches("end }}").count();
            assert_eq!(opened, closed, "{}", file.path);
        }
    }

    #[test]
    fn nothing_in_the_definition_and_the_policy_reads_as_an_action() {
        let empty = template(&[]).unwrap();
        let definition = text("templates/definition.yaml");
        assert!(!definition[empty.len()..].contains("{{"));
        let actions = text("templates/admission.yaml")[empty.len()..]
            .matches("{{")
            .count();
        assert_eq!(actions, 6);
    }
}

//! Objects that policies may look up: parameters and namespaces from files.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::crd::Crd;
use kubemu_admission::object_meta::Scope;
use kubemu_admission::policy::{ParamKind, Resolver};
use kubemu_terminal::Failure;
use serde_json::{Value, json};

use super::engine::Sources;
use super::write::set_in_metadata;

/// Built-in kinds that are cluster-scoped.
const CLUSTER_WIDE: [&str; 4] =
    ["Namespace", "Node", "ClusterRole", "ClusterRoleBinding"];

/// The given objects other than those that are validated.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    params: Vec<Value>,
    /// Namespaces by name.
    namespaces: BTreeMap<String, Value>,
    /// The group and kind of each CRD, and whether it is namespaced.
    defined: Vec<(String, String, bool)>,
}

impl Lookup {
    /// Collects the objects from the sources.
    ///
    /// # Errors
    /// An object that is given as a namespace has another kind.
    pub(super) fn of(
        sources: &Sources,
        definitions: &[Arc<Crd>],
    ) -> Result<Self, Failure> {
        let mut namespaces = BTreeMap::new();
        for document in &sources.namespaces {
            let (kind, name) = (document.text("/kind"), document.text("/metadata/name"));
            if kind != "Namespace" {
                let why = format!("kind is '{kind}', not Namespace");
                return Err(Failure::new(format!("reading {}", document.origin), why)
                    .remedy("give Namespaces with --namespace-object"));
            }
            let mut object = document.object.clone();
            // Every namespace has this label; the API server sets it.
            let labels = object.pointer_mut("/metadata/labels");
            let mut labels = labels.map(Value::take).unwrap_or_default();
            if !labels.is_object() {
                labels = json!({});
            }
            labels["kubernetes.io/metadata.name"] = name.into();
            set_in_metadata(&mut object, "labels", labels);
            for (part, default) in [
                ("spec", json!({"finalizers": ["kubernetes"]})),
                ("status", json!({"phase": "Active"})),
            ] {
                if object[part].is_null() {
                    object[part] = default;
                }
            }
            namespaces.insert(name.to_owned(), object);
        }
        let defined = definitions.iter().map(|it| {
            let is_namespaced = it.scope() == Scope::Namespaced;
            (it.group().to_owned(), it.kind().to_owned(), is_namespaced)
        });
        Ok(Self {
            params: sources.params.iter().map(|it| it.object.clone()).collect(),
            namespaces,
            defined: defined.collect(),
        })
    }

    /// The namespace of that name, if it was given.
    pub(super) fn namespace(&self, name: &str) -> Option<&Value> {
        self.namespaces.get(name)
    }

    fn of_kind<'a>(
        &'a self,
        kind: &'a ParamKind,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        self.params.iter().filter(move |it| {
            let found = it["metadata"]["namespace"].as_str().unwrap_or_default();
            it["apiVersion"] == kind.api_version
                && it["kind"] == kind.kind
                && found == namespace
        })
    }
}

impl Resolver for Lookup {
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        let (group, _) = kind.api_version.split_once('/').unwrap_or_default();
        let defined = self.defined.iter();
        let mut defined =
            defined.filter(|it| (it.0.as_str(), it.1.as_str()) == (group, &*kind.kind));
        if let Some((_, _, is_namespaced)) = defined.next() {
            return Some(*is_namespaced);
        }
        let is_kind =
            |it: &&Value| it["apiVersion"] == kind.api_version && it["kind"] == kind.kind;
        match self.params.iter().find(is_kind) {
            Some(given) => Some(given["metadata"].get("namespace").is_some()),
            // The scope of built-in kinds is known without an object.
            None if !group.contains('.') || group.ends_with(".k8s.io") => {
                Some(!CLUSTER_WIDE.contains(&kind.kind.as_str()))
            }
            None => None,
        }
    }

    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let mut all = self.of_kind(kind, namespace);
        all.find(|it| it["metadata"]["name"] == name).cloned()
    }

    fn params(&self, kind: &ParamKind, namespace: &str) -> Vec<Value> {
        let mut all: Vec<Value> = self.of_kind(kind, namespace).cloned().collect();
        all.sort_by_key(|it| it["metadata"]["name"].as_str().map(str::to_owned));
        all
    }
}

//! Translates a test's names to the actual names of its objects.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Providers;

/// The label of a Node with the namespace that it is visible from, if it is not visible to all.
const VIEWED_FROM: &str = "sim.5spot.finos.org/namespace";

/// The namespace that tests use.
const DEFAULT: &str = "default";

/// Translates between a test's names and the cluster's.
///
/// A test uses namespace `default` and Node `worker` on every backend. A real cluster is
/// shared, so there the namespace is one of the test's own, and the name of a Node, which has
/// no namespace, ends with it.
#[derive(Debug, Default)]
pub(crate) struct NameMapping {
    /// The actual namespaces by the test's names for them; empty if the names are the same.
    namespaces: Mutex<BTreeMap<String, String>>,
    /// The suffix of the names of Nodes.
    suffix: String,
    /// The providers whose kinds replace those that the test names.
    providers: Providers,
}

impl NameMapping {
    /// A mapping for `namespace` of a shared cluster.
    pub(crate) fn in_namespace(namespace: &str, providers: Providers) -> Self {
        let names = Self {
            suffix: format!(".{namespace}"),
            providers,
            ..Self::default()
        };
        names.add_namespace(DEFAULT, namespace);
        names
    }

    /// The suffix of the names of Nodes.
    pub(crate) fn suffix(&self) -> &str {
        &self.suffix
    }

    /// The providers whose kinds replace those that the test names.
    pub(crate) fn providers(&self) -> Providers {
        self.providers
    }

    /// Maps the test's name `name` to `namespace`.
    pub(crate) fn add_namespace(&self, name: &str, namespace: &str) {
        let mut namespaces = self
            .namespaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        namespaces.insert(name.to_owned(), namespace.to_owned());
    }

    /// The test's own namespaces; empty if it has the whole cluster.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let namespaces = self
            .namespaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        namespaces.values().cloned().collect()
    }

    /// The actual name of the namespace that the test calls `name`.
    pub(crate) fn namespace(&self, name: &str) -> String {
        let namespaces = self
            .namespaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        namespaces.get(name).map_or(name, String::as_str).to_owned()
    }

    /// The actual name of the Node that the test calls `name`.
    pub(crate) fn node(&self, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        format!("{name}{}", self.suffix)
    }

    /// The test's name for the object with the actual name `name`.
    pub(crate) fn test_name(&self, name: &str) -> String {
        let test_name = Some(name).filter(|_| !self.suffix.is_empty());
        test_name
            .and_then(|name| name.strip_suffix(&self.suffix))
            .unwrap_or(name)
            .to_owned()
    }

    /// The actual path for the test's path `path`.
    pub(crate) fn path(&self, path: &str) -> String {
        let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        for at in 1..parts.len() {
            let (name, query) = match parts[at].split_once('?') {
                Some((name, query)) => (name, format!("?{query}")),
                None => (parts[at].as_str(), String::new()),
            };
            let translated = match parts[at - 1].as_str() {
                "namespaces" => self.namespace(name),
                "nodes" => self.node(name),
                _ => self.providers.plural(name).to_owned(),
            } + &query;
            parts[at] = translated;
        }
        parts.join("/")
    }

    /// The object in the cluster for the object of the test.
    pub(crate) fn object(&self, object: &Value) -> Value {
        let mut object = object.clone();
        self.providers.translate(&mut object);
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .map(|name| self.namespace(name));
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        for part in ["bootstrapSpec", "infrastructureSpec"] {
            if let Some(named) = object.pointer_mut(&format!("/spec/{part}/namespace"))
                && let Some(name) = named.as_str()
            {
                *named = json!(self.namespace(name));
            }
        }
        if object["kind"] == "Node" && self.providers == Providers::Real {
            object["metadata"]["labels"][VIEWED_FROM] = json!(self.namespace(DEFAULT));
        }
        let (pointer, translate): (_, fn(&Self, &str) -> String) =
            match object["kind"].as_str() {
                Some("Pod") => ("/spec/nodeName", Self::node),
                Some("Node") => ("/metadata/name", Self::node),
                Some("Namespace") => ("/metadata/name", Self::namespace),
                _ => return object,
            };
        if let Some(named) = object.pointer_mut(pointer)
            && let Some(name) = named.as_str()
        {
            *named = json!(translate(self, name));
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_cluster_translates_the_names_of_namespaces_and_nodes() {
        let names = NameMapping::in_namespace("e2e-1", Providers::StandIn);
        names.add_namespace("team-a", "e2e-1-a");
        for (written, actual) in [
            (
                "/api/v1/namespaces/default/pods/x",
                "/api/v1/namespaces/e2e-1/pods/x",
            ),
            ("/api/v1/namespaces/team-a", "/api/v1/namespaces/e2e-1-a"),
            (
                "/api/v1/namespaces/kube-system",
                "/api/v1/namespaces/kube-system",
            ),
            (
                "/api/v1/nodes/worker/status",
                "/api/v1/nodes/worker.e2e-1/status",
            ),
            ("/api/v1/nodes", "/api/v1/nodes"),
            (
                "/apis/a.example/v1/namespaces/default/things?dryRun=All",
                "/apis/a.example/v1/namespaces/e2e-1/things?dryRun=All",
            ),
        ] {
            assert_eq!(names.path(written), actual);
        }
        assert_eq!(names.test_name("worker.e2e-1"), "worker");
        let pod = names.object(&crate::pod("x", "shop", "worker"));
        assert_eq!(pod["metadata"]["namespace"], "e2e-1");
        assert_eq!(pod["spec"]["nodeName"], "worker.e2e-1");
    }

    #[test]
    fn an_unshared_cluster_needs_no_translation() {
        let names = NameMapping::default();
        for path in ["/api/v1/namespaces/default/pods/x", "/api/v1/nodes/worker"] {
            assert_eq!(names.path(path), path);
        }
        let pod = crate::pod("x", "shop", "worker");
        assert_eq!(names.object(&pod), pod);
    }
}

//! The actual names of the objects that a test names.

use serde_json::Value;

use crate::{Cluster, Providers};

impl Cluster {
    /// The actual name of the Node that the test calls `name`.
    pub fn node_name(&self, name: &str) -> String {
        self.names().node(name)
    }

    /// The providerID of the host at an address.
    pub fn provider_id(&self, address: &str) -> String {
        match self.names().providers() {
            Providers::StandIn => {
                format!("remote-machine://{}:22", self.names().node(address))
            }
            Providers::Real => {
                let machine = address.split('.').next().unwrap_or_default();
                format!("in-memory://{machine}")
            }
        }
    }

    /// The object with the cluster's kinds instead of those that the test names, as it is
    /// applied. For a test that changes the spelling of a kind.
    pub fn with_kinds(&self, mut object: Value) -> Value {
        self.names().providers().translate(&mut object);
        object
    }

    /// The cluster's kind for the kind that the test calls `named`.
    pub fn kind<'k>(&self, named: &'k str) -> &'k str {
        self.names().providers().kind(named)
    }

    /// A merge patch for the spec of an infrastructure object that selects another host, and
    /// the pointer to the field that it changes.
    pub fn other_host(&self) -> (Value, &'static str) {
        self.names().providers().other_host()
    }

    /// Each actual name that differs from the test's name, with the test's name: of the Node
    /// `worker`, of the namespace `default`, and of kinds.
    pub fn own_names(&self) -> Vec<(String, String)> {
        let kinds = self.names().providers().own_kinds();
        let kinds = kinds.map(|(real, named)| (real.to_owned(), named.to_owned()));
        [
            (self.node_name("worker"), "worker".to_owned()),
            (self.namespace("default"), "default".to_owned()),
        ]
        .into_iter()
        .chain(kinds)
        .collect()
    }

    /// The actual name of the namespace that the test calls `name`.
    pub fn namespace(&self, name: &str) -> String {
        self.names().namespace(name)
    }
}

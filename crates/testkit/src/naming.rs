//! What the cluster of a test calls what the test names.

use serde_json::Value;

use crate::{Cluster, Providers};

impl Cluster {
    /// What the cluster calls the Node that the test calls `name`.
    pub fn node_name(&self, name: &str) -> String {
        self.home().node(name)
    }

    /// The provider's name for the host at an address.
    pub fn provider_id(&self, address: &str) -> String {
        match self.home().providers() {
            Providers::StandIn => {
                format!("remote-machine://{}:22", self.home().node(address))
            }
            Providers::Real => {
                let machine = address.split('.').next().unwrap_or_default();
                format!("in-memory://{machine}")
            }
        }
    }

    /// The object with the kinds that the cluster has for those that the test names, as it is
    /// applied. For a test that changes how a kind is written.
    pub fn with_kinds(&self, mut object: Value) -> Value {
        self.home().providers().translate(&mut object);
        object
    }

    /// What the cluster has for the kind that the test calls `named`.
    pub fn kind<'k>(&self, named: &'k str) -> &'k str {
        self.home().providers().kind(named)
    }

    /// What is merged into the spec of an infrastructure object to make it another host, and the
    /// pointer to what that changes.
    pub fn other_host(&self) -> (Value, &'static str) {
        self.home().providers().other_host()
    }

    /// Each name of this cluster that the test has another name for, with that: of the Node
    /// `worker`, of the namespace `default`, and of kinds.
    pub fn own_names(&self) -> Vec<(String, String)> {
        let kinds = self.home().providers().own_kinds();
        let kinds = kinds.map(|(real, named)| (real.to_owned(), named.to_owned()));
        [
            (self.node_name("worker"), "worker".to_owned()),
            (self.namespace("default"), "default".to_owned()),
        ]
        .into_iter()
        .chain(kinds)
        .collect()
    }

    /// What the cluster calls the namespace that the test calls `name`.
    pub fn namespace(&self, name: &str) -> String {
        self.home().namespace(name)
    }
}

//! Which kinds the management cluster serves, and under which URLs.

use std::collections::BTreeMap;

use fivespot_capi::{Contract, Reference, version};
use kube::api::ApiResource;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::port::{Port, is_segment};

/// What discovery has answered. Asked once, and again after a CustomResourceDefinition of the
/// group has changed.
pub(crate) struct Served {
    port: Port,
    /// Held while asking, so that many who want to know ask once.
    groups: Mutex<BTreeMap<String, Group>>,
}

#[derive(Default)]
struct Group {
    /// In the server's order of preference; none before it was asked for.
    versions: Option<Vec<String>>,
    /// By version and kind.
    kinds: BTreeMap<String, BTreeMap<String, ApiResource>>,
}

impl Served {
    /// Nothing is known yet about the server behind `port`.
    pub(crate) fn new(port: Port) -> Self {
        Self {
            port,
            groups: Mutex::new(BTreeMap::new()),
        }
    }

    /// The version in which Clusters and Machines are read and written; none where Cluster API
    /// is not installed.
    pub(crate) async fn contract(&self) -> kube::Result<Option<Contract>> {
        let mut groups = self.groups.lock().await;
        let group = groups.entry(version::GROUP.to_owned()).or_default();
        let versions = group.versions(&self.port, version::GROUP).await?;
        Ok(Contract::choose(versions.iter().map(String::as_str)))
    }

    /// The kind that `place` names; without a version the most preferred one that has it.
    /// None where it is not served.
    pub(crate) async fn resource(
        &self,
        place: &Reference,
    ) -> kube::Result<Option<ApiResource>> {
        let version = place.version.as_deref();
        if !is_segment(&place.group) || !version.is_none_or(is_segment) {
            return Ok(None);
        }
        let mut groups = self.groups.lock().await;
        let group = groups.entry(place.group.clone()).or_default();
        let versions = match &place.version {
            Some(version) => vec![version.clone()],
            None => group.versions(&self.port, &place.group).await?.to_vec(),
        };
        for version in versions {
            let kinds = group.kinds(&self.port, &place.group, &version).await?;
            if let Some(resource) = kinds.get(&place.kind) {
                return Ok(Some(resource.clone()));
            }
        }
        Ok(None)
    }

    /// Something about the group has changed: ask again.
    pub(crate) async fn forget(&self, group: &str) {
        self.groups.lock().await.remove(group);
    }
}

impl Group {
    async fn versions(&mut self, port: &Port, name: &str) -> kube::Result<&[String]> {
        if self.versions.is_none() {
            let path = format!("/apis/{name}");
            let answer = port.document(&path).await?.unwrap_or_default();
            self.versions = Some(versions(&answer));
        }
        Ok(self.versions.as_deref().unwrap_or_default())
    }

    async fn kinds(
        &mut self,
        port: &Port,
        group: &str,
        version: &str,
    ) -> kube::Result<&BTreeMap<String, ApiResource>> {
        if !self.kinds.contains_key(version) {
            let path = format!("/apis/{group}/{version}");
            let answer = port.document(&path).await?.unwrap_or_default();
            let kinds = kinds(&answer, group, version);
            self.kinds.insert(version.to_owned(), kinds);
        }
        Ok(self.kinds.entry(version.to_owned()).or_default())
    }
}

/// The versions of an APIGroup document, the preferred one first.
fn versions(group: &Value) -> Vec<String> {
    let preferred = &group["preferredVersion"]["version"];
    let listed = group["versions"].as_array().into_iter().flatten();
    let mut versions: Vec<String> =
        preferred.as_str().map(str::to_owned).into_iter().collect();
    for version in listed.filter_map(|version| version["version"].as_str()) {
        if !versions.iter().any(|known| known == version) {
            versions.push(version.to_owned());
        }
    }
    versions
}

/// The namespaced kinds of an APIResourceList document.
fn kinds(list: &Value, group: &str, version: &str) -> BTreeMap<String, ApiResource> {
    let resources = list["resources"].as_array().into_iter().flatten();
    let mut kinds = BTreeMap::new();
    for resource in resources {
        let (Some(plural), Some(kind)) =
            (resource["name"].as_str(), resource["kind"].as_str())
        else {
            continue;
        };
        // Subresources are listed beside the kinds they belong to.
        if plural.contains('/') || resource["namespaced"] != Value::Bool(true) {
            continue;
        }
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        kinds.insert(kind.to_owned(), resource);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_preferred_version_comes_first_and_once() {
        let group = json!({
            "versions": [{"version": "v1beta1"}, {"version": "v1beta2"}],
            "preferredVersion": {"version": "v1beta2"},
        });
        assert_eq!(versions(&group), ["v1beta2", "v1beta1"]);
        assert!(versions(&Value::Null).is_empty());
    }

    #[test]
    fn plurals_are_those_that_the_server_names() {
        let list = json!({"resources": [
            {"name": "metal3machines", "kind": "Metal3Machine", "namespaced": true},
            {"name": "metal3machines/status", "kind": "Metal3Machine", "namespaced": true},
            {"name": "proxies", "kind": "Proxy", "namespaced": true},
            {"name": "regions", "kind": "Region", "namespaced": false},
            {"kind": "Nameless", "namespaced": true},
        ]});
        let found = kinds(&list, "g", "v1");
        let plurals: Vec<&str> =
            found.values().map(|found| found.plural.as_str()).collect();
        assert_eq!(plurals, ["metal3machines", "proxies"]);
    }
}
